//! `cobre run` from the outside: the same bits on every backend, and an exit code for every end.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outputs::{DIFFERENT, files, finish, json};
use processes::{command, ranks_of, wait_until, with_argument};
use serde_json::Value;

/// Backend, ranks, threads: every way to run that must give the same bits. Backends that are not
/// part of the build are left out, and said to be.
const MATRIX: [(&str, usize, usize); 14] = [
    ("local", 1, 1),
    ("local", 1, 2),
    ("local", 1, 4),
    ("shm", 2, 1),
    ("shm", 3, 1),
    ("shm", 4, 1),
    ("shm", 2, 2),
    ("shm", 3, 2),
    ("tcp", 2, 1),
    ("tcp", 4, 1),
    ("tcp", 2, 2),
    ("mpi", 2, 1),
    ("mpi", 4, 1),
    ("mpi", 2, 2),
];

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json")
}

fn cobre(arguments: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_cobre"));
    command.arg("run").args(arguments);
    command
}

/// The results of a run, on any backend.
fn result_of(
    backend: &str,
    ranks: usize,
    threads: usize,
    (risk, solver): (&str, &str),
) -> (Value, BTreeMap<String, Vec<u8>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = cobre(&[
        "--bound",
        "0",
        "--iterations",
        "12",
        "--forward-passes",
        "5",
    ]);
    command
        .arg(example())
        .args(["--risk", risk, "--simulate", "150", "--seed", "3", "--json"])
        .args(["--solver", solver]);
    command.args([
        "--quiet",
        "--checkpoint=none",
        "--cut-selection",
        "lml1",
        "--threads",
        &threads.to_string(),
    ]);
    command.arg("--output").arg(directory.path());
    if backend != "local" {
        command.args(["--backend", backend, "-n", &ranks.to_string()]);
    }
    let output = finish(&mut command);
    let place = format!("{backend} {ranks} × {threads}: {output:?}");
    assert_eq!(output.status.code(), Some(0), "{place}");
    assert!(output.stderr.is_empty(), "{place}");
    let mut line = json(&output);
    let seconds = line.as_object_mut().and_then(|line| line.remove("seconds"));
    assert!(seconds.is_some(), "{place}");
    let mut files = files(directory.path());
    for name in DIFFERENT {
        assert!(files.remove(name).is_some(), "{name} of {place}");
    }
    assert!(files.len() >= 6, "{:?}", files.keys());
    (line, files)
}

#[test]
fn every_backend_rank_and_thread_count_gives_the_same_bits() {
    let built = cobre_comm::available_backends();
    let kinds = [
        ("expectation", "auto"),
        ("cvar:0.5,0.3", "auto"),
        ("expectation", "kernel"),
        ("cvar:0.5,0.3", "highs"),
    ];
    for risk in kinds {
        let (expected, expected_files) = result_of("local", 1, 1, risk);
        for (backend, ranks, threads) in MATRIX {
            if !built.contains(&backend) {
                println!("skipped: {backend} is not part of this build");
                continue;
            }
            let (found, found_files) = result_of(backend, ranks, threads, risk);
            assert_eq!(found, expected, "{backend} {ranks} × {threads}, {risk:?}");
            for (name, bytes) in &expected_files {
                let same = found_files.get(name) == Some(bytes);
                assert!(
                    same,
                    "{name} differs on {backend} {ranks} × {threads}, {risk:?}"
                );
            }
            assert_eq!(found_files.len(), expected_files.len());
        }
    }
}

#[test]
fn the_json_line_has_what_scripts_read() {
    let output = finish(cobre(&["--bound", "0", "--iterations", "3", "--json"]).arg(example()));
    let line = json(&output);
    assert_eq!(line["sense"], "min");
    assert_eq!(line["iterations"], 3);
    assert_eq!(line["stop_reason"], "iteration_limit");
    assert_eq!(line["estimate"]["source"], "training");
    assert_eq!(line["estimate"]["paths"], 3);
    assert!(line["bound"].is_number() && line["lp_solves"].is_u64());
    assert_eq!(line["policy_sha256"].as_str().map(str::len), Some(64));
    for part in ["load", "train", "simulate", "write", "total"] {
        assert!(line["seconds"][part].is_number(), "{part}");
    }
    assert_eq!(line["validation"].as_array().map(Vec::len), Some(2));
}

#[test]
fn wrong_usage_is_refused_with_what_to_do() {
    let cases: [(&[&str], &str); 5] = [
        (&["-n", "2", "--backend", "local"], "leave out -n"),
        (&["--backend", "shm"], "add -n"),
        (&["--backend", "pigeon"], "local, shm, tcp, mpi"),
        (&["--risk", "cvar:2,1"], "from 0 to 1"),
        (&["--iterations", "0"], "positive"),
    ];
    for (arguments, help) in cases {
        let output = finish(cobre(arguments).arg(example()).args(["--bound", "0"]));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {text}");
        assert!(text.contains(help), "{arguments:?}: {text}");
    }
}

#[test]
fn a_rank_of_a_job_starts_no_ranks() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args([
        "launch",
        "-n",
        "2",
        "--",
        env!("CARGO_BIN_EXE_cobre"),
        "run",
        "-n",
        "2",
        "--bound",
        "0",
    ]);
    let output = finish(command.arg(example()));
    assert_eq!(output.status.code(), Some(64), "{output:?}");
}

#[test]
fn only_rank_0_speaks_for_a_job_it_joins() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args([
        "launch",
        "-n",
        "3",
        "--",
        env!("CARGO_BIN_EXE_cobre"),
        "run",
        "--bound",
        "0",
    ]);
    let output = finish(
        command
            .arg(example())
            .args(["--iterations", "2", "--json", "--quiet"]),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("[0] {"), "{text}");
}

#[test]
fn ranks_that_were_asked_different_things_say_so() {
    let script = |differing: &str| {
        let (program, example) = (env!("CARGO_BIN_EXE_cobre"), example());
        let example = example.display();
        format!("{program} run --bound 0 --quiet --json --iterations 2 {differing} {example}")
    };
    for (differing, what) in [
        ("--seed $COBRE_LAUNCH_RANK", "settings"),
        (
            "--risk cvar:0.$((COBRE_LAUNCH_RANK / 2 + 1)),0.5",
            "problem",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
        command.args(["launch", "-n", "3", "--", "sh", "-c", &script(differing)]);
        let output = finish(&mut command);
        let rank = if what == "settings" { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = format!("rank {rank} has another {what} than rank 0");
        assert!(said.contains(&expected), "{output:?}");
        assert!(said.contains("\"kind\":\"input\""), "{said}");
    }
}

/// A problem that cannot be solved: more demand than supply, and no shortage allowed.
fn infeasible(directory: &Path) -> PathBuf {
    let text = std::fs::read_to_string(example()).expect("the example is there");
    let any = r#""name": "shortage"}, "set": {"type": "GreaterThan", "lower": 0.0}"#;
    let none = r#""name": "shortage"}, "set": {"type": "EqualTo", "value": 0.0}"#;
    let changed = text
        .replace(any, none)
        .replace("\"lower\": 75.0", "\"lower\": 200.0");
    assert_ne!(changed.len(), text.len());
    let text = changed;
    let path = directory.join("short.sof.json");
    std::fs::write(&path, text).expect("it can be written");
    path
}

#[test]
fn every_failure_has_its_code_and_its_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let broken = directory.path().join("broken.sof.json");
    std::fs::write(&broken, "{\"version\": {\"major\": 1}}").expect("it can be written");
    let missing = directory.path().join("missing.sof.json");
    let unsolvable = infeasible(directory.path());
    let blocked = directory.path().join("file");
    std::fs::write(&blocked, "").expect("it can be written");
    let cases = [
        (&broken, directory.path().join("a"), 1, "input"),
        (&missing, directory.path().join("b"), 2, "io"),
        (&example(), blocked.join("c"), 2, "io"),
        (&unsolvable, directory.path().join("d"), 3, "solver"),
    ];
    for ranks in ["1", "2"] {
        for (path, results, code, kind) in &cases {
            let mut command = cobre(&["--bound", "0", "--json", "--quiet", "-n", ranks]);
            let command = command.args(["--iterations", "9"]);
            let output = finish(command.arg(path).arg("--output").arg(results));
            assert_eq!(
                output.status.code(),
                Some(*code),
                "{kind} with {ranks} ranks: {output:?}"
            );
            assert_eq!(json(&output)["error"]["kind"], *kind, "{output:?}");
            assert!(!output.stderr.is_empty());
        }
    }
    let message = |ranks: &str| {
        let mut command = cobre(&["--bound", "0", "--quiet", "-n", ranks]);
        let output = finish(
            command
                .arg(&unsolvable)
                .arg("--output")
                .arg(directory.path()),
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for ranks in ["1", "2"] {
        let text = message(ranks);
        for part in [
            "iteration 1",
            "scenario 1",
            "opening",
            "demand needs at least 200",
            ".lp",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// A run that would not end for a long time, with a seed that tells its processes from others.
fn endless(ranks: &str, seed: u64, output: &Path) -> Command {
    let mut command = cobre(&[
        "--bound",
        "0",
        "--iterations",
        "1000000",
        "--quiet",
        "--json",
    ]);
    command
        .arg(example())
        .args(["-n", ranks, &format!("--seed={seed}")])
        .arg("--output")
        .arg(output);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// The processes of the job with this seed: the launcher and the ranks, and guard and supervisor while they start.
fn of_job(seed: u64) -> Vec<i32> {
    with_argument(&format!("--seed={seed}"))
}

fn signal(pid: i32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.expect("kill can be started").success());
}

#[test]
fn a_signal_ends_the_run_with_its_results_saved() {
    for ranks in ["1", "2"] {
        let directory = tempfile::tempdir().expect("a directory");
        let seed = 1_000_000 + u64::from(std::process::id()) * 10 + ranks.len() as u64;
        let child = endless(ranks, seed, directory.path())
            .spawn()
            .expect("it starts");
        let started = directory.path().join("training");
        wait_until("training", Duration::from_secs(60), || started.is_dir());
        std::thread::sleep(Duration::from_millis(300));
        signal(child.id().cast_signed(), "-INT");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert_eq!(json(&output)["stop_reason"], "interrupted");
        let saved = directory.path().join("policy/manifest.json");
        assert!(saved.is_file(), "{output:?}");
    }
}

#[test]
fn a_killed_rank_ends_the_run_with_code_4() {
    let directory = tempfile::tempdir().expect("a directory");
    let seed = 2_000_000 + u64::from(std::process::id());
    let child = endless("3", seed, directory.path())
        .spawn()
        .expect("it starts");
    let started = directory.path().join("training");
    wait_until("training", Duration::from_secs(60), || started.is_dir());
    std::thread::sleep(Duration::from_millis(300));
    let last = ranks_of(child.id()).pop().expect("ranks run");
    signal(last.cast_signed(), "-KILL");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(
        json(&output)["error"]["kind"],
        "communication",
        "{output:?}"
    );
    wait_until("all processes end", Duration::from_secs(60), || {
        of_job(seed).is_empty()
    });
}
