//! Jobs on several hosts, from the outside. The hosts are processes of this machine behind a remote shell that behaves as ssh
//! does: their commands are no descendants of the launcher, have an environment of their own, and notice only the end of
//! their standard input when the connection is gone. `ci/ssh.py` does the same with sshd.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use processes::{command, ranks_of, unique_sleep, wait_until, with_argument};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Nothing takes longer unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

const SHELL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/remote_host.py");

/// Hosts a and b.
struct Network {
    directory: TempDir,
    daemons: BTreeMap<&'static str, Child>,
}

impl Network {
    fn new() -> Self {
        let mut network = Self {
            directory: TempDir::new().unwrap(),
            daemons: BTreeMap::new(),
        };
        network.raise("a");
        network.raise("b");
        network
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn raise(&mut self, host: &'static str) {
        let daemon = Command::new("python3")
            .args([SHELL, "serve"])
            .arg(self.path())
            .arg(host)
            .spawn()
            .expect("python3 starts");
        self.daemons.insert(host, daemon);
        wait_until("the host is up", LIMIT, || self.path().join(host).exists());
    }

    /// The host is gone: its connections end, and nobody answers.
    fn lose(&mut self, host: &str) {
        fs::remove_file(self.path().join(host)).unwrap();
        let mut daemon = self.daemons.remove(host).unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// The processes of this kind that were started for a host, in order.
    fn noted(&self, host: &str, kind: &str) -> Vec<i32> {
        let text = fs::read_to_string(self.path().join(format!("{host}.{kind}")));
        let text = text.unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The remote shell to its hosts.
    fn shell(&self) -> String {
        format!("python3 {SHELL} {}", self.path().display())
    }

    fn cobre(&self, subcommand: &str) -> Command {
        let mut command = command(env!("CARGO_BIN_EXE_cobre"));
        command.args([subcommand, "--rsh", &self.shell()]);
        command.args(["--coordinator", "127.0.0.1"]);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for daemon in self.daemons.values_mut() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn finished(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("cobre starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).unwrap()
}

#[test]
fn ranks_of_two_hosts_are_one_job_and_the_secret_is_seen_by_nobody() {
    let network = Network::new();
    let script = "echo $COBRE_LAUNCH_RANK of $COBRE_LAUNCH_SIZE, $COBRE_LAUNCH_HOST_SIZE on $HOST_NAME, $COBRE_STALL_SECS; \
                  [ -n \"$COBRE_TCP_SECRET\" ] && pwd >&2";
    let mut launch = network.cobre("launch");
    launch.args(["--hosts", "a:2,b", "--", "sh", "-c", script]);
    launch.env("COBRE_STALL_SECS", "77");
    let (code, stdout, stderr) = finished(&mut launch);
    assert_eq!(code, 0, "{stderr}");
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[0] 0 of 3, 2 on a, 77",
            "[1] 1 of 3, 2 on a, 77",
            "[2] 2 of 3, 1 on b, 77"
        ]
    );
    let here = std::env::current_dir().unwrap();
    let here = here.display();
    let mut lines: Vec<&str> = stderr.lines().collect();
    lines.sort_unstable();
    let expected = [0, 1, 2].map(|rank| format!("[{rank}] {here}"));
    assert_eq!(lines, expected);
    // All that a process table shows of the connection.
    let line = fs::read_to_string(network.path().join("b.line")).unwrap();
    let agent = format!("exec '{}' host-agent\n", env!("CARGO_BIN_EXE_cobre"));
    assert_eq!(line, agent);
}

#[test]
fn the_first_failure_is_named_with_its_host_and_all_others_end() {
    let network = Network::new();
    let mark = unique_sleep();
    let script =
        format!("[ $COBRE_LAUNCH_RANK = 2 ] && {{ echo no disk >&2; exit 3; }}; exec sleep {mark}");
    let mut launch = network.cobre("launch");
    launch.args(["--hosts=a:2,b:2", "--", "sh", "-c", &script]);
    let (code, _, stderr) = finished(&mut launch);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains("cobre launch: rank 2 (host b, pid "),
        "{stderr}"
    );
    assert!(stderr.contains("    no disk\n"), "{stderr}");
    assert!(
        stderr.contains("ranks 0, 1, 3 were ended because of it"),
        "{stderr}"
    );
    assert_eq!(with_argument(&mark), [0; 0]);
}

#[test]
fn signals_go_out_to_all_hosts() {
    let network = Network::new();
    let mark = unique_sleep();
    let script = format!("trap 'echo told; exit 9' TERM; echo ready; sleep {mark} & wait");
    let mut launch = network.cobre("launch");
    launch.args(["--hosts=a,b", "--", "sh", "-c", &script]);
    let launcher = launch
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("both run", LIMIT, || with_argument(&mark).len() == 2);
    kill_process(Pid::from_child(&launcher), Signal::TERM).unwrap();
    let output = launcher.wait_with_output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(143), "{stderr}");
    assert_eq!(stdout.matches("told").count(), 2, "{stdout}");
    assert!(stderr.contains("stopped by signal 15"), "{stderr}");
    assert_eq!(with_argument(&mark), [0; 0]);
}

#[test]
fn nothing_stays_on_any_host_whatever_is_killed() {
    for victim in ["client", "agent", "supervisor", "launcher", "host"] {
        let mut network = Network::new();
        let mark = unique_sleep();
        // One of them leaves the group of its rank.
        let script = format!("setsid sleep {mark} & exec sleep {mark}");
        let mut launch = network.cobre("launch");
        launch.args(["--hosts=a:2,b:2", "--", "sh", "-c", &script]);
        let mut launcher = launch.stderr(Stdio::piped()).spawn().unwrap();
        wait_until("all run", LIMIT, || with_argument(&mark).len() == 8);
        let agent = network.noted("b", "agent")[0];
        match victim {
            "client" => kill_process(pid(network.noted("b", "client")[0]), Signal::KILL).unwrap(),
            "agent" => kill_process(pid(agent), Signal::KILL).unwrap(),
            "supervisor" => kill_process(pid(supervisor_of(agent)), Signal::KILL).unwrap(),
            "launcher" => launcher.kill().unwrap(),
            _ => network.lose("b"),
        }
        wait_until(&format!("all end after the {victim}"), LIMIT, || {
            with_argument(&mark).is_empty()
        });
        let output = launcher.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if victim != "launcher" {
            assert_eq!(output.status.code(), Some(4), "{victim}: {stderr}");
            assert!(
                stderr.contains("cobre launch: host b: "),
                "{victim}: {stderr}"
            );
        }
        for number in [agent, network.noted("a", "agent")[0]] {
            wait_until("the agents end", LIMIT, || !is_running(number));
        }
    }
}

/// The child of the guard that is the child of an agent.
fn supervisor_of(agent: i32) -> i32 {
    let child = |pid: i32| -> i32 {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        list.split_whitespace().next().unwrap().parse().unwrap()
    };
    child(child(agent))
}

/// True if the process is there and no zombie.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map_or("X", |(_, rest)| rest.trim_start());
    !state.starts_with(['Z', 'X'])
}

#[test]
fn what_cannot_work_is_refused_with_host_and_reason() {
    let network = Network::new();
    let no_shell = |shell: &str| {
        let mut launch = command(env!("CARGO_BIN_EXE_cobre"));
        launch.args(["launch", "--hosts", "a,b", "--rsh", shell, "--", "true"]);
        launch
    };
    let mut unreachable = network.cobre("launch");
    unreachable.args(["--hosts=a,c", "--", "true"]);
    let mut no_program = network.cobre("launch");
    no_program.args(["--hosts=a", "--", "no-such-program"]);
    let mut unknown = network.cobre("launch");
    unknown.args(["--hosts=a,b", "--remote-cobre=/no/cobre", "--", "true"]);
    let mut shared = network.cobre("launch");
    shared.args(["--hosts=a,b", "--backend=shm", "--", "true"]);
    let mut loopback = command(env!("CARGO_BIN_EXE_cobre"));
    loopback.args(["launch", "--hosts=localhost,b", "--", "true"]);
    let mut lone = command(env!("CARGO_BIN_EXE_cobre"));
    lone.args(["launch", "-n2", "--rsh=ssh", "--", "true"]);
    for (command, code, words) in [
        (&mut unreachable, 4, "host c: no agent began"),
        (
            &mut no_program,
            2,
            "host a: program \"no-such-program\" was not found",
        ),
        (&mut unknown, 4, "no agent began"),
        (&mut shared, 1, "backend \"shm\" does not connect ranks"),
        (&mut loopback, 2, "other hosts cannot reach it by this name"),
        (&mut lone, 64, "--rsh is for several hosts"),
        (&mut no_shell("no-such-shell"), 127, "no-such-shell"),
        (
            &mut no_shell("false"),
            4,
            "no agent began: false exited with code 1",
        ),
        (
            &mut no_shell("yes"),
            4,
            "is not from an agent of this version",
        ),
    ] {
        let (found, _, stderr) = finished(command);
        assert_eq!(found, code, "{stderr}");
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}

/// A remote shell that runs the rest of its words here, in the way of a script.
fn shell(place: &Path, script: &str) -> String {
    let path = place.join("shell.sh");
    let text = format!("#!/bin/sh\nhost=$1\nshift\n{script}\n");
    fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

fn launch_by(shell: &str) -> Command {
    let mut launch = command(env!("CARGO_BIN_EXE_cobre"));
    launch.args(["launch", "--hosts=a,b", "--coordinator=127.0.0.1", "--rsh"]);
    launch.arg(shell).stdin(Stdio::null());
    launch
}

#[test]
fn what_a_remote_shell_says_beside_the_agent_is_no_part_of_the_job() {
    let place = TempDir::new().unwrap();
    for script in [
        "echo Welcome; printf 'no end of line'; echo mail >&2; exec sh -c \"$*\"",
        "sh -c \"$*\"; echo logout; echo logout >&2",
    ] {
        let mut launch = launch_by(&shell(place.path(), script));
        let (code, stdout, stderr) = finished(launch.args(["--", "echo", "hello"]));
        assert_eq!(code, 0, "{script}: {stderr}");
        let mut lines: Vec<&str> = stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["[0] hello", "[1] hello"], "{script}");
        assert_eq!(stderr, "", "{script}");
    }
}

#[test]
fn a_remote_shell_that_is_no_way_to_an_agent_gets_one_line_with_the_remedy() {
    let place = TempDir::new().unwrap();
    // The first words of an agent: its preamble, and its version in a frame.
    let other_version =
        r"printf '\0cobre host agent 1\n\016\0\0\0\001\005\0\0\0\0\0\0\0009.9.9'; exec sleep 60";
    for (script, code, words) in [
        ("exec sh -c \"$*\" </dev/null", 2, "ssh without -n"),
        (
            "exec python3 -c 'import pty, sys; sys.exit(pty.spawn([\"sh\", \"-c\", sys.argv[1]]) >> 8)' \"$*\"",
            4,
            "ssh -T",
        ),
        ("exec /no/such/cobre", 4, "--remote-cobre"),
        ("yes | tr -d '\\n' | head -c 300000", 4, "a start-up file"),
        (other_version, 2, "its cobre is version 9.9.9, this one "),
    ] {
        let mut launch = launch_by(&shell(place.path(), script));
        let (found, _, stderr) = finished(launch.args(["--", "true"]));
        assert_eq!(found, code, "{script}: {stderr}");
        assert!(stderr.contains(words), "{script}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{script}: {stderr}");
        assert!(stderr.len() < 1000, "{script}: {stderr}");
    }
}

/// Host b has no network, although its remote shell works: needs the right to make a namespace.
const WITHOUT_NETWORK: &str = "[ $host = a ] && exec sh -c \"$*\"; exec unshare -n sh -c \"$*\"";

fn may_unshare() -> bool {
    let status = Command::new("unshare").args(["-n", "true"]).status();
    let may = status.is_ok_and(|status| status.success());
    if !may {
        println!("skipped: network namespaces are not permitted here");
    }
    may
}

#[test]
fn a_host_that_does_not_reach_the_first_is_named_before_ranks_start() {
    if !may_unshare() {
        return;
    }
    let place = TempDir::new().unwrap();
    let mut launch = launch_by(&shell(place.path(), WITHOUT_NETWORK));
    let (code, stdout, stderr) = finished(launch.args(["--", "echo", "started"]));
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.starts_with(
            "cobre launch: host b: it does not reach 127.0.0.1, where the ranks would meet: "
        ),
        "{stderr}"
    );
    assert_eq!((stdout.as_str(), stderr.lines().count()), ("", 1));
}

#[test]
fn a_run_goes_on_without_a_host_that_does_not_reach_the_first() {
    if !may_unshare() {
        return;
    }
    let place = TempDir::new().unwrap();
    let output = place.path().join("out");
    let mut run = command(env!("CARGO_BIN_EXE_cobre"));
    run.args(["run", "--hosts=a,b", "--coordinator=127.0.0.1", "--rsh"]);
    run.arg(shell(place.path(), WITHOUT_NETWORK));
    run.args(["--ranks=1:2", "--retries=1"])
        .stdin(Stdio::null());
    train(&mut run, &output);
    let (code, _, stderr) = finished(&mut run);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("host b: it does not reach"), "{stderr}");
    // It answers all the while, but its ranks would not meet the others.
    assert!(!stderr.contains("is back"), "{stderr}");
    assert!(results(&output) == undisturbed(), "other bits: {stderr}");
}

/// A run on hosts a and b that does not come to its end, with a checkpoint after each iteration.
fn endless(place: &Path, shell: &str) -> Child {
    let mut command = command(env!("CARGO_BIN_EXE_cobre"));
    command.args(["run", "--hosts=a,b", "--coordinator=127.0.0.1"]);
    command.args(["--rsh", shell]);
    command.args(["--ranks=1:2", "--retries=3", "--checkpoint=iterations:1"]);
    command.args([
        "--bound=0",
        "--threads=1",
        "--quiet",
        "--iterations=1000000",
    ]);
    command
        .arg(problem())
        .arg("--output")
        .arg(place.join("out"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(place.join("said")).unwrap());
    let run = command.spawn().expect("cobre starts");
    wait_until("a checkpoint is there", LIMIT, || {
        outputs::newest_checkpoint(&place.join("out")).is_some()
    });
    run
}

/// Asks a run to end, and waits until nothing of it writes any more.
fn end(run: Child) {
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    status_of(run);
}

/// The status with which a run ends; one that does not end in time is killed.
fn status_of(mut run: Child) -> ExitStatus {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(status) = run.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            run.kill().unwrap();
            run.wait().unwrap();
            panic!("the run does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(place: &Path) -> String {
    fs::read_to_string(place.join("said")).unwrap()
}

#[test]
fn a_lost_host_that_does_not_see_the_output_yet_is_not_taken_back() {
    let status = Command::new("unshare").args(["-m", "true"]).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: mount namespaces are not permitted here");
        return;
    }
    let directory = TempDir::new().unwrap();
    let place = directory.path();
    // Once `early` is there, host b answers, but has not mounted the output.
    let script = format!(
        "[ $host = a ] && exec sh -c \"$*\"; echo $$ >>{place}/b.calls; \
         [ -e {place}/early ] || exec sh -c \"$*\"; \
         exec unshare -m sh -c \"mount -t tmpfs none {place}/out && $*\"",
        place = place.display()
    );
    let run = endless(place, &shell(place, &script));
    let calls = || -> Vec<i32> {
        let text = fs::read_to_string(place.join("b.calls")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    fs::write(place.join("early"), "").unwrap();
    let before = calls();
    kill_process(pid(*before.last().unwrap()), Signal::KILL).unwrap();
    wait_until("it was asked twice", LIMIT, || {
        calls().len() >= before.len() + 3
    });
    assert!(!said(place).contains("is back"), "{}", said(place));
    fs::remove_file(place.join("early")).unwrap();
    wait_until("it is taken back", LIMIT, || {
        said(place).contains("host b is back")
    });
    end(run);
}

#[test]
fn a_run_that_is_told_to_end_does_not_start_again() {
    let network = Network::new();
    let place = TempDir::new().unwrap();
    let run = endless(place.path(), &network.shell());
    // Its host is lost a while after the ranks were asked to end.
    let agent = Held(pid(*network.noted("b", "agent").last().unwrap()));
    kill_process(agent.0, Signal::STOP).unwrap();
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let status = status_of(run);
    let said = said(place.path());
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("host b: nothing was heard of it"), "{said}");
    assert!(!said.contains("starting again"), "{said}");
}

#[test]
fn a_run_goes_on_after_the_supervisor_of_a_host_was_killed() {
    let network = Network::new();
    let place = TempDir::new().unwrap();
    let run = endless(place.path(), &network.shell());
    let agent = *network.noted("b", "agent").last().unwrap();
    kill_process(pid(supervisor_of(agent)), Signal::KILL).unwrap();
    wait_until("it starts again", LIMIT, || {
        said(place.path()).contains("starting again from the newest checkpoint; 2 more retries")
    });
    let said = said(place.path());
    assert!(
        said.contains("host b: the supervisor of its ranks"),
        "{said}"
    );
    end(run);
}

fn results(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = outputs::results(output);
    assert!(files.len() >= 6, "{:?}", files.keys());
    files
}

/// Options of a training long enough to be disturbed.
const TRAINING: [&str; 6] = [
    "--bound=0",
    "--forward-passes=3",
    "--simulate=40",
    "--iterations=400",
    "--threads=1",
    "--quiet",
];

fn problem() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn train(command: &mut Command, output: &Path) {
    command.args(TRAINING).arg(problem());
    command.arg("--output").arg(output);
}

/// The files of a run that nothing disturbs.
fn undisturbed() -> BTreeMap<String, Vec<u8>> {
    let place = TempDir::new().unwrap();
    let output = place.path().join("out");
    let mut alone = command(env!("CARGO_BIN_EXE_cobre"));
    alone.arg("run");
    train(&mut alone, &output);
    let (code, _, stderr) = finished(&mut alone);
    assert_eq!(code, 0, "{stderr}");
    results(&output)
}

/// A stopped process that goes on when this is dropped. The job of a rank cannot get on meanwhile.
struct Held(Pid);

impl Held {
    /// Stops the first rank of the newest agent of a host.
    fn new(network: &Network, host: &str) -> Self {
        let rank = || {
            let agent = *network.noted(host, "agent").last()?;
            ranks_of(agent.cast_unsigned()).first().copied()
        };
        wait_until("the rank runs", LIMIT, || rank().is_some());
        let held = pid(rank().unwrap().cast_signed());
        kill_process(held, Signal::STOP).unwrap();
        Self(held)
    }

    /// Waits until it has been asked to end.
    fn wait_for_request(&self) {
        let pending = || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.0.as_raw_pid()));
            let status = status.unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
            let mask = u64::from_str_radix(line.unwrap_or_default().trim(), 16);
            mask.unwrap_or(0) & (1 << 14) != 0
        };
        wait_until("the rank is asked to end", LIMIT, pending);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_run_goes_on_without_a_lost_host_and_takes_it_back_with_the_same_bits() {
    let expected = undisturbed();
    let mut network = Network::new();
    let place = TempDir::new().unwrap();
    let output = place.path().join("out");
    let mut run = network.cobre("run");
    run.args([
        "--hosts=a:1,b:1",
        "--ranks=1:2",
        "--retries=3",
        "--checkpoint=iterations:1",
    ]);
    train(&mut run, &output);
    let run = run
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a checkpoint is there", LIMIT, || {
        outputs::newest_checkpoint(&output).is_some()
    });
    network.lose("b");
    // The first agents were those of the check at the start and of the first attempt.
    wait_until("the run goes on", LIMIT, || {
        network.noted("a", "agent").len() >= 3
    });
    let held = Held::new(&network, "a");
    network.raise("b");
    held.wait_for_request();
    drop(held);
    let finished = run.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&finished.stderr);
    assert_eq!(finished.status.code(), Some(0), "{stderr}");
    for words in [
        "host b: the connection ended",
        "2 more retries",
        "host b is back",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(results(&output) == expected, "other bits: {stderr}");
}

#[test]
fn a_run_that_needs_all_ranks_waits_for_a_lost_host() {
    let mut network = Network::new();
    let place = TempDir::new().unwrap();
    let output = place.path().join("out");
    let mut run = network.cobre("run");
    run.args([
        "--hosts=a:1,b:1",
        "--retries=1",
        "--checkpoint=iterations:1",
    ]);
    train(&mut run, &output);
    let said = place.path().join("said");
    let run = run
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).unwrap());
    let mut run = run.spawn().unwrap();
    let heard = |words: &str| {
        fs::read_to_string(&said)
            .unwrap_or_default()
            .contains(words)
    };
    wait_until("a checkpoint is there", LIMIT, || {
        outputs::newest_checkpoint(&output).is_some()
    });
    network.lose("b");
    wait_until("it waits", LIMIT, || {
        heard("waiting for b: 1 ranks are left, 2 are the fewest")
    });
    network.raise("b");
    let status = run.wait().unwrap();
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(status.code(), Some(0), "{said}");
}

#[test]
fn retries_need_a_directory_that_all_hosts_see() {
    let network = Network::new();
    let mut run = network.cobre("run");
    run.args(["--hosts=a:1,b:1", "--retries=1"]);
    train(&mut run, Path::new("/proc/no-directory/out"));
    let (code, _, stderr) = finished(&mut run);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("host a: cannot write there"), "{stderr}");
}

#[test]
fn top_shows_the_ranks_of_every_host_where_the_launcher_runs() {
    let network = Network::new();
    let mut run = network.cobre("run");
    run.arg(problem())
        .args(["--hosts", "a:2,b", "--bound=0", "--quiet", "--threads=1"])
        .args(["--iterations=1000000"])
        .arg("--output")
        .arg(network.path().join("out"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut run = run.spawn().expect("cobre starts");
    let id = run.id().to_string();
    let top = |words: &[&str]| {
        finished(
            Command::new(env!("CARGO_BIN_EXE_cobre"))
                .arg("top")
                .args(words),
        )
    };
    wait_until("all ranks are seen", LIMIT, || {
        let (code, stdout, _) = top(&[&id]);
        code == 0 && stdout.starts_with("3 ranks on tcp, 2 hosts; collective ")
    });
    // The one rank of host b is held.
    let held = Held::new(&network, "b");
    let mut seen = String::new();
    wait_until("two wait for rank 2", LIMIT, || {
        kill_process(held.0, Signal::STOP).unwrap();
        let shown = (0..40).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            seen = top(&[&id]).1;
            seen.matches(": waits for rank 2\n").count() == 2
        });
        if !shown {
            // Held inside a collective, it is in it as the others are: held again, it may compute.
            kill_process(held.0, Signal::CONT).unwrap();
        }
        shown
    });
    let host_of = |rank: &str| {
        let mut lines = seen.lines().map(|line| line.split_whitespace());
        lines.find_map(|mut words| (words.next() == Some(rank)).then(|| words.next()))
    };
    assert_eq!(host_of("0"), Some(Some("a")), "{seen}");
    assert_eq!(host_of("2"), Some(Some("b")), "{seen}");
    // Both hosts are this machine: their ranks are no jobs beside that of the launcher.
    let all = top(&[]).1;
    let rank = held.0.as_raw_nonzero().to_string();
    let lines = all
        .lines()
        .filter(|line| line.split_whitespace().any(|word| word == rank));
    assert_eq!(lines.count(), 1, "{all}");
    run.kill().unwrap();
    run.wait().unwrap();
    let rank = Path::new("/proc").join(rank);
    wait_until("the rank is gone", LIMIT, || !rank.exists());
}

#[test]
fn a_lost_host_that_does_not_answer_holds_nothing_up() {
    let mut network = Network::new();
    let mut run = endless(network.path(), &network.shell());
    fs::write(network.path().join("b.silent"), "").unwrap();
    let asked = network.noted("b", "client").len();
    network.lose("b");
    wait_until("b is asked for", LIMIT, || {
        network.noted("b", "client").len() > asked
    });
    let launcher = pid(run.id().cast_signed());
    kill_process(launcher, Signal::TERM).unwrap();
    // Asking takes 20 s.
    let ended = wait_until("the run ends", LIMIT, || run.try_wait().unwrap().is_some());
    assert!(ended < Duration::from_secs(15), "{ended:?}");
    let said = said(network.path());
    assert!(
        said.contains("starting again from the newest checkpoint"),
        "{said}"
    );
    let client = *network.noted("b", "client").last().unwrap();
    wait_until("nothing stays", LIMIT, || {
        !Path::new(&format!("/proc/{client}")).exists()
    });
}
