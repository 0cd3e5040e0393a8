//! `cobre run --json` prints one line of JSON, and one error, whatever goes wrong on whichever rank.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use outputs::finish;
use processes::{ranks_of, wait_until};
use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn run(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(["run", "--bound=0", "--quiet", "--json"]);
    command.args(words);
    command
}

/// The one line of standard output.
fn line(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 1, "{output:?}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The run failed with this code and this kind of error, and said so once.
fn failed(output: &Output, code: i32, kind: &str) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let error = line(output)["error"].take();
    assert_eq!(error["kind"], kind, "{output:?}");
    let message = error["message"].as_str().expect("a message").to_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.matches(&message).count(), 1, "{message}: {told}");
    message
}

const RANKS: [&[&str]; 3] = [&["-n=1"], &["-n3"], &["--workers", "3", "--backend", "tcp"]];

/// A problem, the directory of its results, options, the code of its end and the kind of its error.
type Case<'c> = (&'c Path, PathBuf, &'c [&'c str], i32, &'c str);

#[test]
fn what_cannot_be_run_is_said_once() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name);
    let broken = place("broken.sof.json");
    std::fs::write(&broken, "{\"version\": {\"major\": 1}}").expect("it is written");
    let text = std::fs::read_to_string(example()).expect("it is there");
    let any = r#""name": "shortage"}, "set": {"type": "GreaterThan", "lower": 0.0}"#;
    let none = r#""name": "shortage"}, "set": {"type": "EqualTo", "value": 0.0}"#;
    let short = text
        .replace(any, none)
        .replace("\"lower\": 75.0", "\"lower\": 200.0");
    let unsolvable = place("short.sof.json");
    std::fs::write(&unsolvable, short).expect("it is written");
    std::fs::create_dir_all(place("mine/checkpoint/deep")).expect("it is made");
    std::fs::write(place("file"), "").expect("it is written");
    let kept = place("kept");
    let first = run(&["--iterations=3"])
        .arg(example())
        .arg("--output")
        .arg(&kept)
        .output();
    assert!(first.expect("it starts").status.success());
    let policy = format!("--warm-start={}", kept.display());
    let example = example();
    let cases: [Case<'_>; 9] = [
        (&broken, place("a"), &[], 1, "input"),
        (&place("missing.sof.json"), place("b"), &[], 2, "io"),
        (&example, place("file/c"), &[], 2, "io"),
        (&unsolvable, place("d"), &[], 3, "solver"),
        (&example, place("mine"), &[], 1, "input"),
        (
            &example,
            kept.clone(),
            &["--resume", "--seed=7"],
            1,
            "input",
        ),
        (&example, place("e"), &["--warm-start=nowhere"], 2, "io"),
        (
            &example,
            place("f"),
            &[&policy, "--simulate-only"],
            64,
            "usage",
        ),
        (
            &example,
            place("g"),
            &["--retries=1", "--stop=statistical:9", "--risk=cvar:0.5,0.5"],
            64,
            "usage",
        ),
    ];
    for ranks in RANKS {
        for (path, output, more, code, kind) in &cases {
            let mut command = run(ranks);
            command.args(*more).arg(path).arg("--output").arg(output);
            let ended = finish(&mut command);
            failed(&ended, *code, kind);
            if *kind == "solver" {
                assert!(line(&ended)["error"]["node"].is_string(), "{ended:?}");
            }
        }
        // A command line that cannot be read.
        for wrong in ["--iterations=0", "--threads=0"] {
            let ended = finish(run(ranks).arg(wrong).arg(&example));
            assert_eq!(ended.status.code(), Some(64), "{ended:?}");
            assert_eq!(line(&ended)["error"]["kind"], "usage");
        }
    }
}

/// The error of a run that ends with this code.
fn error(command: &mut Command, code: i32) -> Value {
    let ended = finish(command);
    assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    line(&ended)["error"].take()
}

#[test]
fn errors_have_the_fields_that_a_program_acts_on() {
    let (example, scratch) = (example(), tempfile::tempdir().expect("a directory"));
    let missing = error(&mut run(&[]), 64);
    assert_eq!(missing["kind"], "usage");
    let text = "the following required arguments were not provided: <PATH>";
    assert_eq!(missing["message"], text);
    for ranks in [&[][..], &["-n1"], &["-n2"]] {
        let bogus = error(run(ranks).arg("--backend=bogus").arg(&example), 64);
        assert_eq!(bogus["kind"], "usage", "{bogus}");
        let path = scratch.path().join("nowhere.sof.json");
        let absent = error(run(ranks).arg(&path), 2);
        assert_eq!(absent["file"].as_str(), path.to_str(), "{absent}");
    }
    let risk = ["-n2", "--risk=cvar:0.5,0.5", "--stop=statistical:9"];
    let setting = error(run(&risk).arg(&example), 64);
    assert_eq!(
        (&setting["key"], &setting["value"]),
        (&"stop".into(), &"statistical:9".into())
    );
    let strange = [("COBRE_COMM_BACKEND", "bogus")];
    let backend = error(run(&[]).arg(&example).envs(strange), 4);
    assert_eq!(backend["kind"], "communication");
    let found = (&backend["variable"], &backend["value"]);
    assert_eq!(found, (&"COBRE_COMM_BACKEND".into(), &"bogus".into()));
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_cobre"));
    let doctor = doctor.args(["doctor", "--json"]);
    let sound = line(&finish(doctor));
    assert_eq!(sound["selection"]["backend"], "local", "{sound}");
    assert!(
        sound["machine"]
            .as_array()
            .is_some_and(|checks| checks.len() > 5)
    );
    let wrong = error(doctor.envs(strange), 1);
    assert_eq!(wrong["variable"], "COBRE_COMM_BACKEND");
}

/// Runs with so many KiB of addresses.
fn with_addresses(limit: u32, options: &str) -> Output {
    let script = format!(
        "ulimit -v {limit}; exec '{}' run --bound=0 --quiet --json --threads=1 {options} '{}'",
        env!("CARGO_BIN_EXE_cobre"),
        example().display()
    );
    finish(Command::new("sh").args(["-c", &script]))
}

#[test]
fn training_that_memory_does_not_hold_is_refused_before_it_begins() {
    for ranks in ["", "-n 2", "-n 2 --backend=tcp"] {
        let options = format!("--forward-passes=100000 --iterations=100 {ranks}");
        let ended = with_addresses(600_000, &options);
        let message = failed(&ended, 2, "memory");
        let expected = "training with 100000 forward passes takes about ";
        assert!(message.starts_with(expected), "{message}");
        assert!(message.contains("--basis-memory"), "{message}");
        assert!(line(&ended)["error"]["bytes"].is_u64(), "{ended:?}");
    }
}

#[test]
fn a_run_that_a_second_signal_ends_says_so() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (case, output) = (scratch.path().join("case"), scratch.path().join("out"));
    let mut init = Command::new(env!("CARGO_BIN_EXE_cobre"));
    assert!(
        finish(init.args(["init", "large"]).arg(&case))
            .status
            .success()
    );
    let mut command = run(&["-n2", "--forward-passes=1000", "--output"]);
    let command = command.arg(&output).arg(&case);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("it starts");
    let lock = output.join(".lock");
    wait_until("it trains", Duration::from_secs(120), || lock.exists());
    let interrupt = || {
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
    };
    assert!(interrupt().expect("kill starts").success());
    std::thread::sleep(Duration::from_secs(2));
    assert!(interrupt().expect("kill starts").success());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(5), "{ended:?}");
    let error = &line(&ended)["error"];
    assert_eq!(
        (&error["kind"], &error["signal"]),
        (&"stopped".into(), &2.into()),
        "{error}"
    );
}

#[test]
fn results_longer_than_a_pipe_arrive_whole() {
    let scratch = tempfile::tempdir().expect("a directory");
    let text = std::fs::read_to_string(example()).expect("it is there");
    let mut problem: Value = serde_json::from_str(&text).expect("it is JSON");
    let scenarios = problem["validation_scenarios"]
        .as_array()
        .expect("it has some")
        .clone();
    let many = scenarios.iter().cycle().take(12_000).cloned().collect();
    problem["validation_scenarios"] = Value::Array(many);
    let path = scratch.path().join("many.sof.json");
    std::fs::write(&path, problem.to_string()).expect("it is written");
    let found = ["-n=1", "-n=3"].map(|ranks| {
        let ended = finish(run(&[ranks]).arg("--iterations=2").arg(&path));
        assert_eq!(ended.status.code(), Some(0), "{:?}", ended.status);
        assert!(ended.stdout.len() > 1 << 16, "{}", ended.stdout.len());
        line(&ended)["validation"].take()
    });
    assert!(found[0] == found[1]);
}

#[test]
fn a_rank_that_is_killed_is_told_of_once() {
    for backend in ["shm", "tcp"] {
        for (victim, signal) in [(0, "KILL"), (2, "KILL"), (1, "ABRT")] {
            let scratch = tempfile::tempdir().expect("a directory");
            let mut command = run(&["-n=3", "--backend", backend, "--iterations=1000000"]);
            command.arg(example()).arg("--output").arg(scratch.path());
            let child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts");
            let started = scratch.path().join("training");
            wait_until("training", Duration::from_secs(120), || {
                started.is_dir() && ranks_of(child.id()).len() == 3
            });
            std::thread::sleep(Duration::from_millis(300));
            let pid = ranks_of(child.id())[victim].to_string();
            let sent = Command::new("kill").args(["-s", signal, &pid]).status();
            assert!(sent.expect("kill starts").success());
            let ended = child.wait_with_output().expect("it ends");
            assert_eq!(ended.status.code(), Some(4), "{ended:?}");
            let error = line(&ended)["error"].take();
            assert_eq!(error["rank"], victim, "{error}");
            let message = error["message"].to_string();
            let who = format!("rank {victim}");
            assert!(
                message.contains(&who) && message.contains(signal),
                "{message}"
            );
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            let lines = told.lines().filter(|line| line.contains("was killed by"));
            assert_eq!(lines.count(), 1, "{told}");
        }
    }
}

/// Runs until the results cannot be written any more.
fn until_full(output: &Path, ranks: &[&str], limit: &str) -> Output {
    let mut words = vec![
        "--iterations=100000".to_owned(),
        "--checkpoint=iterations:1".to_owned(),
    ];
    words.extend(ranks.iter().map(|word| (*word).to_owned()));
    let script = format!(
        "{limit} exec '{}' run --bound=0 --quiet --json {} '{}' --output '{}'",
        env!("CARGO_BIN_EXE_cobre"),
        words.join(" "),
        example().display(),
        output.display()
    );
    finish(Command::new("bash").args(["-c", &script]))
}

#[test]
fn shared_memory_that_a_limit_on_files_does_not_let_grow_is_told() {
    let scratch = tempfile::tempdir().expect("a directory");
    for limit in [1, 4000] {
        let script = format!("ulimit -f {limit};");
        let ended = until_full(scratch.path(), &["-n=2", "--backend=shm"], &script);
        let message = failed(&ended, 2, "memory");
        let expected = format!("limit on the size of files of {} bytes", limit * 1024);
        assert!(message.contains("the segment /cobre-"), "{message}");
        assert!(message.contains(&expected), "{message}");
        assert!(line(&ended)["error"]["bytes"].is_u64(), "{ended:?}");
    }
}

/// The library of `faults.c`, which lets one call of a process fail.
fn faults(scratch: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults.c");
    let library = scratch.join("faults.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
    let made = compile.arg(&library).arg(source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    library
}

#[test]
fn a_rank_that_panics_or_gets_no_memory_is_told_of_once() {
    let scratch = tempfile::tempdir().expect("a directory");
    let library = faults(scratch.path());
    let fails = |fault: &str, call: &str, words: &[&str], rank: Option<&str>| {
        let mut command = run(&["--threads=1", "--iterations=1000000", "--solver=highs"]);
        command.args(words).arg(example());
        command.envs([("TEST_FAULT", fault), ("TEST_FAULT_CALL", call)]);
        command.env("LD_PRELOAD", &library);
        let ended = finish(command.envs(rank.map(|rank| ("TEST_FAULT_RANK", rank))));
        let (code, kind) = match fault {
            "clock" => (4, "rank"),
            _ => (2, "memory"),
        };
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        let error = line(&ended)["error"].take();
        assert_eq!(error["kind"], kind, "{ended:?}");
        let message = error["message"].to_string();
        let expected = ["panicked", "out of memory"][usize::from(code == 2)];
        assert!(message.contains(expected), "{message}");
    };
    for backend in ["shm", "tcp"] {
        let words = ["-n=2", "--backend", backend];
        // Before the ranks have met, and while they train.
        fails("clock", "1", &words, Some("0"));
        fails("clock", "1", &words, Some("1"));
        for rank in ["0", "1"] {
            fails("clock", "300", &words, Some(rank));
            fails("malloc", "5000", &words, Some(rank));
            fails("new", "3000", &words, Some(rank));
        }
    }
    // The one process, and the one that starts the others.
    for (fault, call) in [("clock", "300"), ("malloc", "3000"), ("new", "3000")] {
        fails(fault, call, &[], None);
    }
    fails("malloc", "3000", &["-n=2"], None);
}

#[test]
fn words_of_libraries_are_no_results() {
    let scratch = tempfile::tempdir().expect("a directory");
    let library = faults(scratch.path());
    for backend in ["shm", "tcp"] {
        let mut command = run(&["-n=2", "--backend", backend, "--iterations=2"]);
        command.arg(example()).env("LD_PRELOAD", &library);
        let ended = finish(command.env("TEST_FAULT", "words"));
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert_eq!(line(&ended)["iterations"], 2, "{ended:?}");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(told.matches("words of a library").count(), 2, "{told}");
    }
}

#[test]
fn of_a_launched_job_the_first_rank_has_the_line() {
    let program = env!("CARGO_BIN_EXE_cobre");
    let launched = |wrong: &[(&str, &str)]| {
        let mut launch = Command::new(program);
        launch.args(["launch", "-n", "2", "--backend", "shm", "--", program]);
        launch.args(["run", "--bound=0", "--quiet", "--json"]);
        finish(launch.arg(example()).envs(wrong.iter().copied()))
    };
    let said = |ended: &Output| -> Value {
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(text.lines().count(), 1, "{ended:?}");
        let text = text.strip_prefix("[0] ").expect("the line of rank 0");
        serde_json::from_str(text).expect("a line of JSON")
    };
    let broken = launched(&[("COBRE_SHM_BUFFER_BYTES", "few")]);
    assert_eq!(broken.status.code(), Some(4), "{broken:?}");
    assert_eq!(said(&broken)["error"]["value"], "few");
    // Each rank tells a reader of what it met.
    let told = String::from_utf8_lossy(&broken.stderr).into_owned();
    for rank in ["[0] cobre run: ", "[1] cobre run: "] {
        assert!(told.contains(rank), "{told}");
    }
    let sound = launched(&[]);
    assert!(sound.status.success(), "{sound:?}");
    assert!(said(&sound)["bound"].is_number());
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_signal() {
    let scratch = tempfile::tempdir().expect("a directory");
    for (number, ranks) in [&["-n=1"][..], &["-n=2", "--backend=tcp"]]
        .into_iter()
        .enumerate()
    {
        let output = scratch.path().join(number.to_string());
        let ended = until_full(&output, ranks, "ulimit -f 32;");
        let message = failed(&ended, 2, "io");
        assert!(message.contains("File too large"), "{message}");
        let left = outputs::files(&output);
        let half = left.keys().filter(|name| name.contains(".part")).count();
        assert_eq!(half, 0, "nothing half-written");
        assert!(
            left.keys().any(|name| name.contains(".state")),
            "earlier checkpoints are there"
        );
    }
    // Programs that are launched are as their users know them.
    let mut launch = Command::new(env!("CARGO_BIN_EXE_cobre"));
    launch.args([
        "launch",
        "-n",
        "1",
        "--",
        "grep",
        "SigIgn",
        "/proc/self/status",
    ]);
    let ended = finish(&mut launch);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mask = said.split_whitespace().last().expect("a number");
    let mask = u64::from_str_radix(mask, 16).expect("a number");
    assert_eq!(mask & (1 << 24), 0, "SIGXFSZ is ignored: {said}");
}

#[test]
fn a_full_or_read_only_disk_is_an_error_of_its_own() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mount = |options: &str| {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "cobre-test"])
            .arg(scratch.path())
            .status();
        mounted.is_ok_and(|status| status.success())
    };
    for (options, words) in [("size=128k", "No space left"), ("ro", "Read-only")] {
        if !mount(options) {
            assert!(std::env::var_os("CI").is_none(), "skipped in CI: no mount");
            println!("skipped: a small file system cannot be mounted here");
            return;
        }
        let ends: Vec<Output> = RANKS
            .iter()
            .enumerate()
            .map(|(number, ranks)| until_full(&scratch.path().join(number.to_string()), ranks, ""))
            .collect();
        let unmounted = Command::new("umount").arg(scratch.path()).status();
        assert!(unmounted.expect("umount starts").success());
        for ended in ends {
            let message = failed(&ended, 2, "io");
            assert!(message.contains(words), "{message}");
        }
    }
}
