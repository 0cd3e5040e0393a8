//! `cobre launch` from the outside: real processes, real signals, nothing left behind.

#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use processes::{command, unique_sleep, wait_until, with_argument};

/// No test takes longer unless something hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// Writes a report by hand: `report RANK FROM REASON`.
const REPORT: &str = r#"report() { echo "$@" > "/proc/self/fd/${COBRE_LAUNCH_REPORT%%:*}"; }; R=$COBRE_LAUNCH_RANK; "#;

/// Launcher, guard and supervisor of the job that the rank `pid` or a process of it belongs to.
fn between(launcher: i32, pid: i32) -> (i32, i32) {
    let (mut guard, mut supervisor) = (parent(pid), pid);
    while parent(guard) != launcher {
        (guard, supervisor) = (parent(guard), guard);
    }
    (guard, supervisor)
}

/// The parent of a process.
fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let field = fields.split_ascii_whitespace().nth(1).unwrap();
    field.parse().unwrap()
}

struct Job {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

struct Finished {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

fn cobre(ranks: usize, options: &[&str], program: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_cobre"));
    command.args(["launch", "-n", &ranks.to_string()]);
    command.args(options).arg("--").args(program);
    command
}

/// A job of ranks that run a shell script.
fn script(ranks: usize, options: &[&str], script: &str) -> Command {
    cobre(ranks, options, &["sh", "-c", script])
}

fn reader(mut source: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

impl Job {
    fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = reader(child.stdout.take().unwrap());
        let stderr = reader(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    fn signal(&self, signal: i32) {
        signal_process(self.child.id().cast_signed(), signal);
    }

    /// Waits for the launcher's end and for that of its output.
    fn finish(mut self) -> Finished {
        let mut status = None;
        wait_until("the launcher ends", LIMIT, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let status = status.unwrap();
        Finished {
            code: status
                .code()
                .or(status.signal().map(|signal| -signal))
                .unwrap(),
            stdout: self.stdout.join().unwrap(),
            stderr: String::from_utf8_lossy(&self.stderr.join().unwrap()).into_owned(),
        }
    }
}

fn run(command: &mut Command) -> Finished {
    Job::start(command).finish()
}

fn signal_process(pid: i32, signal: i32) {
    let words = format!("kill -{signal} {pid}");
    let sent = Command::new("sh").args(["-c", &words]).status();
    assert!(sent.unwrap().success());
}

impl Finished {
    fn output(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The lines the launcher itself wrote.
    fn own_lines(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines
            .filter_map(|line| line.strip_prefix("cobre launch: "))
            .collect()
    }

    /// The launcher's first line, with the process number taken out.
    fn cause(&self) -> String {
        let line = self.own_lines().first().copied().unwrap_or_default();
        match (line.find(" (pid "), line.find(')')) {
            (Some(start), Some(end)) => format!("{}{}", &line[..start], &line[end + 1..]),
            _ => line.to_owned(),
        }
    }
}

#[test]
fn the_exit_code_of_a_failing_rank_becomes_the_launchers() {
    for _ in 0..20 {
        let finished = run(&mut script(
            4,
            &[],
            "[ $COBRE_LAUNCH_RANK != 2 ] || exit 3; exec sleep 1000",
        ));
        assert_eq!(finished.code, 3, "{}", finished.stderr);
        assert_eq!(finished.cause(), "rank 2 exited with code 3");
        let rest = "ranks 0, 1, 3 were ended because of it";
        assert_eq!(finished.own_lines()[1..], [rest]);
    }
}

#[test]
fn a_killed_rank_is_named_with_its_signal() {
    for _ in 0..10 {
        let finished = run(&mut script(
            3,
            &[],
            "[ $COBRE_LAUNCH_RANK != 1 ] || kill -9 $$; exec sleep 1000",
        ));
        assert_eq!(finished.code, 137, "{}", finished.stderr);
        assert_eq!(finished.cause(), "rank 1 was killed by signal 9 (SIGKILL)");
    }
}

#[test]
fn the_last_lines_of_the_failed_rank_follow_the_cause() {
    let finished = run(&mut script(
        2,
        &[],
        "[ $COBRE_LAUNCH_RANK = 1 ] || exec sleep 1000; seq 20 >&2; exit 1",
    ));
    let shown: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.starts_with("    "))
        .collect();
    let expected: Vec<_> = (11..=20).map(|number| format!("    {number}")).collect();
    assert_eq!(shown, expected);
    let first_own = finished.stderr.find("cobre launch").unwrap();
    assert!(
        !finished.stderr[first_own..].contains("[1]"),
        "ranks' output comes before"
    );
}

#[test]
fn a_reported_rank_is_the_cause_although_others_end_before_it() {
    for _ in 0..5 {
        let finished = run(&mut script(
            4,
            &[],
            &format!(
                "{REPORT} case $R in 0) report 2 0 rank no answer; exit 1;; \
                 2) sleep 0.2; exit 7;; *) exec sleep 1000;; esac"
            ),
        ));
        assert_eq!(finished.code, 7, "{}", finished.stderr);
        let cause = "rank 2 exited with code 7; rank 0 reported: no answer";
        assert_eq!(finished.cause(), cause);
        let rest = "ranks 1, 3 were ended because of it; rank 0 exited with code 1";
        assert_eq!(finished.own_lines()[1], rest);
    }
}

#[test]
fn a_rank_that_gives_up_is_quoted() {
    let finished = run(&mut script(
        3,
        &[],
        &format!(
            "{REPORT} [ $R = 0 ] && exec sleep 1000; report $R $R io the disk is full; exit $R"
        ),
    ));
    assert!([1, 2].contains(&finished.code), "{}", finished.stderr);
    let code = finished.code;
    let cause = format!("rank {code} aborted: the disk is full (exited with code {code})");
    assert_eq!(finished.cause(), cause);
}

#[test]
fn a_rank_that_finishes_early_is_no_failure() {
    let finished = run(&mut script(
        3,
        &[],
        "[ $COBRE_LAUNCH_RANK = 0 ] || sleep 0.2; exit 0",
    ));
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
}

/// Every rank starts processes that try to get away: in the background, in a session of their
/// own, and with a dead parent.
const FAMILY: &str =
    "sleep $MARK & setsid sleep $MARK & (setsid sh -c 'sleep $MARK & exec sleep $MARK' &); ";
const FAMILY_SIZE: usize = 4;

#[test]
fn nothing_survives_a_killed_launcher() {
    for _ in 0..5 {
        let mark = unique_sleep();
        let mut command = script(3, &[], &format!("{FAMILY} exec sleep $MARK"));
        let job = Job::start(command.env("MARK", &mark));
        wait_until("all run", LIMIT, || {
            with_argument(&mark).len() == 3 * (FAMILY_SIZE + 1)
        });
        job.signal(9);
        wait_until("all are dead", LIMIT, || with_argument(&mark).is_empty());
        assert_eq!(job.finish().code, -9);
    }
}

#[test]
fn nothing_survives_a_launcher_killed_while_it_starts_ranks() {
    for delay in 0..10 {
        let mark = unique_sleep();
        let mut command = script(50, &[], "sleep $MARK & exec sleep $MARK");
        let job = Job::start(command.env("MARK", &mark));
        std::thread::sleep(Duration::from_millis(4 * delay));
        job.signal(9);
        job.finish();
        wait_until("all are dead", LIMIT, || with_argument(&mark).is_empty());
    }
}

#[test]
fn nothing_survives_a_killed_supervisor_or_guard() {
    for supervisor_goes in [true, false] {
        let mark = unique_sleep();
        let mut command = script(2, &[], &format!("{FAMILY} exec sleep $MARK"));
        let job = Job::start(command.env("MARK", &mark));
        wait_until("all run", LIMIT, || {
            with_argument(&mark).len() == 2 * (FAMILY_SIZE + 1)
        });
        let launcher = job.child.id().cast_signed();
        let (guard, supervisor) = between(launcher, with_argument(&mark)[0]);
        signal_process(if supervisor_goes { supervisor } else { guard }, 9);
        let finished = job.finish();
        assert_eq!(finished.code, 4, "{}", finished.stderr);
        assert!(
            finished.cause().contains("supervisor"),
            "{}",
            finished.stderr
        );
        assert_eq!(with_argument(&mark), []);
    }
}

#[test]
fn supervisor_and_guard_are_not_killed_with_launchers_by_name() {
    let mark = unique_sleep();
    let job = Job::start(script(1, &[], "exec sleep $MARK").env("MARK", &mark));
    wait_until("the rank runs", LIMIT, || !with_argument(&mark).is_empty());
    let launcher = job.child.id().cast_signed();
    let (guard, supervisor) = between(launcher, with_argument(&mark)[0]);
    for pid in [guard, supervisor] {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert!(
            !line.contains("cobre") && !line.contains("launch"),
            "{line}"
        );
        assert!(!name.contains("cobre"), "{name}");
    }
    job.signal(15);
    assert_eq!(job.finish().code, 143);
}

#[test]
fn what_ranks_leave_running_is_killed_when_they_are_done() {
    let mark = unique_sleep();
    let mut command = script(2, &[], &format!("{FAMILY} exit 0"));
    let finished = run(command.env("MARK", &mark));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(with_argument(&mark), []);
}

#[test]
fn a_signal_reaches_the_ranks_and_decides_the_exit_code() {
    for (number, name) in [(15, "SIGTERM"), (2, "SIGINT"), (1, "SIGHUP")] {
        let directory = tempfile::tempdir().unwrap();
        let ready = |rank: usize| directory.path().join(rank.to_string());
        let words = format!(
            "trap 'echo caught; exit 0' {number}; touch {}/$COBRE_LAUNCH_RANK; \
             while :; do sleep 0.02; done",
            directory.path().display()
        );
        let job = Job::start(&mut script(2, &[], &words));
        wait_until("ranks are ready", LIMIT, || {
            ready(0).exists() && ready(1).exists()
        });
        job.signal(number);
        let finished = job.finish();
        assert_eq!(finished.code, 128 + number, "{}", finished.stderr);
        let mut lines: Vec<_> = finished.output().lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["[0] caught", "[1] caught"]);
        let expected = format!("stopped by signal {number} ({name}); ranks 0, 1 were ended");
        assert_eq!(finished.own_lines(), [expected]);
    }
}

#[test]
fn a_signal_sent_twice_at_once_leaves_time_to_end() {
    // On a very busy machine the launcher may see the second one too late for it to be the same.
    let is_clean = (0..5).any(|_| output_after_two_signals() == "[0] clean\n");
    assert!(is_clean);
}

/// The output of a rank that takes its time to end, after two signals to its launcher.
fn output_after_two_signals() -> String {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let words = format!(
        "trap 'sleep 0.4; echo clean; exit 0' TERM; touch {}; while :; do sleep 0.02; done",
        ready.display()
    );
    let job = Job::start(&mut script(1, &[], &words));
    wait_until("the rank is ready", LIMIT, || ready.exists());
    // By one process: the two are to come within 0.2 s.
    let launcher = job.child.id();
    let twice = format!("kill {launcher}; kill {launcher}");
    let sent = Command::new("sh").args(["-c", &twice]).status();
    assert!(sent.unwrap().success());
    let finished = job.finish();
    assert_eq!(finished.code, 143, "{}", finished.stderr);
    finished.output()
}

#[test]
fn a_later_second_signal_kills_without_grace() {
    // With grace it takes 2 s at least; without, less, unless the machine is very busy.
    let without_grace = (0..10).any(|_| time_of_a_second_signal() < Duration::from_millis(1500));
    assert!(without_grace);
}

/// The time that a job whose rank ignores signals lasts after the first one.
fn time_of_a_second_signal() -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let words = format!(
        "trap '' INT TERM; touch {}; while :; do sleep 1; done",
        ready.display()
    );
    let mut job = Job::start(&mut script(1, &[], &words));
    wait_until("the rank is ready", LIMIT, || ready.exists());
    let start = Instant::now();
    while job.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < LIMIT);
        job.signal(2);
        std::thread::sleep(Duration::from_millis(30));
    }
    let taken = start.elapsed();
    assert_eq!(job.finish().code, 130);
    taken
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let (ready, go) = (directory.path().join("ready"), directory.path().join("go"));
    let words = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.02; done; echo done",
        ready.display(),
        go.display()
    );
    let launcher = script(1, &[], &words);
    let mut command = Command::new("env");
    command.arg("--ignore-signal=HUP");
    // Without what gives the launcher the default actions.
    command.args(launcher.get_args().skip(1));
    let job = Job::start(&mut command);
    wait_until("the rank is ready", LIMIT, || ready.exists());
    job.signal(1);
    std::fs::write(&go, "").unwrap();
    let finished = job.finish();
    assert_eq!(
        (finished.code, finished.output().as_str()),
        (0, "[0] done\n")
    );
}

#[test]
fn the_deadline_names_the_ranks_still_running() {
    let words = "[ $COBRE_LAUNCH_RANK = 1 ] && exit 0; exec sleep 1000";
    let finished = run(&mut script(3, &["--timeout", "3"], words));
    assert_eq!(finished.code, 124);
    let expected = "the deadline of 3 s passed with ranks 0, 2 still running";
    assert_eq!(finished.own_lines(), [expected]);
}

#[test]
fn a_reader_that_does_not_read_cannot_hold_up_the_deadline() {
    let mut command = script(2, &["--timeout", "0.3"], "exec yes");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut status = None;
    wait_until("the launcher ends", LIMIT, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(124));
}

#[test]
fn programs_that_cannot_be_started_give_the_codes_of_shells() {
    let finished = run(&mut cobre(3, &[], &["no-such-program"]));
    assert_eq!(finished.code, 127);
    let cause = finished.cause();
    assert!(
        cause.contains("no-such-program") && cause.contains("PATH"),
        "{cause}"
    );

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, "not a program").unwrap();
    let finished = run(&mut cobre(3, &[], &[path.to_str().unwrap()]));
    assert_eq!(finished.code, 126);
    assert!(finished.cause().contains("data"), "{}", finished.stderr);
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    for options in [
        &["launch", "-n", "0", "true"][..],
        &["launch", "-n", "257", "true"],
        &["launch", "-n", "2"],
        &["launch", "-n", "2", "--timeout", "-1", "true"],
        &["launch", "-n", "2", "--timeout", "nan", "true"],
        &["launch", "--unknown"],
        &["no-such-command"],
        &[],
    ] {
        let finished = run(command(env!("CARGO_BIN_EXE_cobre")).args(options));
        assert_eq!(finished.code, 64, "{options:?}: {}", finished.stderr);
    }
    let help = run(command(env!("CARGO_BIN_EXE_cobre")).arg("--help"));
    assert_eq!(help.code, 0);
}

#[test]
fn a_backend_that_does_not_exist_is_refused_with_the_list() {
    let finished = run(&mut cobre(2, &["--backend", "pigeon"], &["true"]));
    assert_eq!(finished.code, 1);
    let cause = finished.cause();
    assert!(
        cause.contains("pigeon") && cause.contains("local"),
        "{cause}"
    );
}

#[test]
fn logs_hold_both_streams_of_each_rank_and_nothing_of_an_earlier_job() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("deep/logs");
    let options = ["--logs", logs.to_str().unwrap()];
    let log = |rank| std::fs::read_to_string(logs.join(format!("rank-{rank}.log"))).unwrap();
    for _ in 0..2 {
        let words =
            "echo out $COBRE_LAUNCH_RANK; echo err >&2; [ $COBRE_LAUNCH_RANK = 0 ] || exit 5";
        let finished = run(&mut script(2, &options, words));
        assert_eq!((finished.code, finished.output().as_str()), (5, ""));
        assert_eq!(
            (log(0), log(1)),
            ("out 0\nerr\n".into(), "out 1\nerr\n".into())
        );
        let shown = ["    out 1", "    err"];
        assert!(
            shown.iter().all(|line| finished.stderr.contains(line)),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn the_log_of_a_rank_that_still_writes_is_not_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--logs", directory.path().to_str().unwrap()];
    let log = directory.path().join("rank-0.log");
    let has = |text: &str| std::fs::read_to_string(&log).is_ok_and(|found| found == text);
    let go = directory.path().join("go");
    let words = format!(
        "echo one; until [ -e {} ]; do sleep 0.01; done; echo two",
        go.display()
    );
    let first = Job::start(&mut script(1, &options, &words));
    wait_until("the log has a line", LIMIT, || has("one\n"));
    let second = run(&mut script(1, &options, "echo three"));
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(
        second.stderr.contains("another job writes there"),
        "{}",
        second.stderr
    );
    std::fs::write(&go, "").unwrap();
    assert_eq!(first.finish().code, 0);
    assert!(has("one\ntwo\n"));
    assert_eq!(run(&mut script(1, &options, "echo three")).code, 0);
    assert!(has("three\n"));
}

#[test]
fn lines_stay_whole_whatever_ranks_write() {
    // Longer than what a pipe is sure to take in one piece.
    let words = "long=$(head -c 10000 /dev/zero | tr \"\\0\" x); R=$COBRE_LAUNCH_RANK; \
                 for i in $(seq 50); do \
                 echo $R $i out; echo $R $i err >&2; echo $R $long out; echo $R $long err >&2; done";
    let slowly = "{ sleep 0.3; cat; }";
    let both = format!("\"$0\" launch -n 8 -- sh -c '{words}' 2>&1 | {slowly}");
    let finished = run(Command::new("sh").args(["-c", &both, env!("CARGO_BIN_EXE_cobre")]));
    let output = finished.output();
    let long = "x".repeat(10_000);
    for rank in 0..8 {
        for stream in ["out", "err"] {
            let prefix = format!("[{rank}] ");
            let mine = output
                .lines()
                .filter(|line| line.starts_with(&prefix) && line.ends_with(stream));
            let expected = (1..=50).flat_map(|number| {
                [number.to_string(), long.clone()]
                    .map(|word| format!("[{rank}] {rank} {word} {stream}"))
            });
            assert!(mine.eq(expected), "rank {rank} {stream}");
        }
    }
    assert_eq!(output.lines().count(), 8 * 50 * 4);
}

#[test]
fn long_lines_binary_bytes_and_missing_newlines_pass_through() {
    let words = r"printf '\000\377\n'; head -c 200000 /dev/zero; printf 'end'";
    let finished = run(&mut script(1, &[], words));
    let lines: Vec<_> = finished
        .stdout
        .split_inclusive(|byte| *byte == b'\n')
        .collect();
    assert_eq!(lines[0], b"[0] \x00\xff\n");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with(b"[0] ") && line.ends_with(b"\n"))
    );
    let content: Vec<_> = lines[1..]
        .iter()
        .flat_map(|line| &line[4..line.len() - 1])
        .collect();
    assert_eq!(content.len(), 200_003);
    assert!(finished.stdout.ends_with(b"end\n"));
}

#[test]
fn the_first_rank_alone_reads_standard_input() {
    let mut command = script(3, &[], "cat");
    command.stdin(Stdio::piped());
    let mut job = Job::start(&mut command);
    let mut stdin = job.child.stdin.take().unwrap();
    stdin.write_all(b"data\n").unwrap();
    drop(stdin);
    let finished = job.finish();
    assert_eq!(
        (finished.code, finished.output().as_str()),
        (0, "[0] data\n")
    );
}

#[test]
fn settings_of_an_outer_job_are_not_inherited() {
    let mut command = script(2, &[], "env | grep ^COBRE_ | grep -v REPORT | sort");
    command
        .env("COBRE_SHM_NAME", "/outer")
        .env("COBRE_TCP_RANK", "5");
    command
        .env("COBRE_LAUNCH_RANK", "9")
        .env("COBRE_COMM_BACKEND", "mpi");
    let finished = run(&mut command);
    assert!(
        finished.output().contains("[1] COBRE_LAUNCH_RANK=1\n"),
        "{}",
        finished.output()
    );
    assert!(finished.output().contains("[1] COBRE_LAUNCH_SIZE=2\n"));
    for stale in ["outer", "TCP_RANK", "=9", "=mpi"] {
        assert!(!finished.output().contains(stale), "{}", finished.output());
    }
}

#[test]
fn a_job_whose_output_nobody_reads_ends_quietly() {
    for _ in 0..5 {
        let mut command = script(3, &[], "exec yes");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 4];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let stderr = reader(child.stderr.take().unwrap());
        let mut status = None;
        wait_until("the launcher ends", LIMIT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(141));
        assert_eq!(String::from_utf8(stderr.join().unwrap()).unwrap(), "");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = script(2, &[], "exec yes").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
}

#[test]
fn bound_ranks_run_on_one_processor_each() {
    let words = "grep Cpus_allowed_list /proc/self/status | tr -d '\\t'";
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))
        .unwrap();
    let allowed: Vec<usize> = own
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse().unwrap()..=last.parse().unwrap()
        })
        .collect();
    let finished = run(&mut script(allowed.len() + 1, &["--bind", "core"], words));
    for rank in 0..=allowed.len() {
        let processor = allowed[rank % allowed.len()];
        let expected = format!("[{rank}] Cpus_allowed_list:{processor}\n");
        assert!(
            finished.output().contains(&expected),
            "{}",
            finished.output()
        );
    }
    let free = run(&mut script(1, &[], words));
    assert_eq!(free.output(), format!("[0] Cpus_allowed_list:{own}\n"));
}

#[test]
fn bindings_are_reported_as_ranks_have_them() {
    let words = "grep Cpus_allowed_list /proc/self/status | cut -f2";
    for bind in ["numa", "socket", "cores:1", "core"] {
        let finished = run(&mut script(
            1,
            &["--bind", bind, "--report-bindings"],
            words,
        ));
        let output = finished.output();
        let mask = output
            .trim()
            .strip_prefix("[0] ")
            .expect("a mask")
            .to_owned();
        let expected = format!("cobre launch: rank 0: processors {mask} (NUMA node ");
        let said = &finished.stderr;
        assert!(said.starts_with(&expected), "{bind}: {said}{mask}");
    }
    let finished = run(&mut script(1, &["--bind", "cores:4096"], "true"));
    assert_eq!(Some(finished.code), Some(1));
    assert!(
        &finished.stderr.contains("4096 cores each"),
        "{}",
        &finished.stderr
    );
    let finished = run(&mut script(1, &["--bind", "cores:0"], "true"));
    assert_eq!(Some(finished.code), Some(64));
}

#[test]
fn the_most_ranks_run_under_the_usual_limit_of_open_files_and_keep_it() {
    let words = "ulimit -S -n 1024; exec \"$0\" launch -n 256 -- sh -c 'ulimit -n'";
    let finished = run(Command::new("sh").args(["-c", words, env!("CARGO_BIN_EXE_cobre")]));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let lines: std::collections::BTreeSet<_> =
        finished.output().lines().map(str::to_owned).collect();
    let expected = (0..256).map(|rank| format!("[{rank}] 1024")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn too_low_a_limit_of_open_files_is_explained() {
    let words = "ulimit -n 100; exec \"$0\" launch -n 256 true";
    let finished = run(Command::new("sh").args(["-c", words, env!("CARGO_BIN_EXE_cobre")]));
    assert_eq!(finished.code, 2);
    let cause = finished.cause();
    assert!(
        cause.contains("256 ranks") && cause.contains("ulimit -n 1"),
        "{cause}"
    );
}

#[test]
fn ranks_that_close_everything_or_flood_are_survived() {
    let words = "exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&-; sleep 0.1";
    assert_eq!(run(&mut script(3, &[], words)).code, 0);
    let words = format!(
        "{REPORT} yes 1 0 rank flood | head -c 3000000 > /proc/self/fd/${{COBRE_LAUNCH_REPORT%%:*}}; exit 0"
    );
    assert_eq!(run(&mut script(3, &[], &words)).code, 1);
}

#[test]
fn a_rank_that_gave_up_fails_the_job_even_if_every_rank_exits_with_0() {
    let words =
        format!("{REPORT} [ $COBRE_LAUNCH_RANK = 1 ] && report '1 1 io no more disk'; exit 0");
    let finished = run(&mut script(3, &[], &words));
    assert_eq!(finished.code, 1);
    let cause = finished.cause();
    assert!(
        cause.contains("rank 1") && cause.contains("no more disk"),
        "{cause}"
    );
}
