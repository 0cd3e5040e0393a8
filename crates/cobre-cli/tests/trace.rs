//! `cobre run --trace` from the outside: a timeline of all ranks, readable however the run ends.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use processes::{command, ranks_of, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing takes longer unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn cobre(trace: &Path, iterations: usize) -> Command {
    let problem =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json");
    let mut command = command(env!("CARGO_BIN_EXE_cobre"));
    command.arg("run").arg(problem);
    command.args([
        "-n2",
        "--bound=0",
        "--quiet",
        "--threads=1",
        "--simulate=10",
    ]);
    command.arg(format!("--iterations={iterations}"));
    command.arg("--trace").arg(trace);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The events of a trace, if it is JSON.
fn events(path: &Path) -> Option<Vec<Value>> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

fn part(trace: &Path, rank: usize) -> PathBuf {
    format!("{}.rank-{rank}", trace.display()).into()
}

/// Names of spans with the rank that has them.
fn names(events: &[Value]) -> BTreeSet<(u64, String)> {
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let name = |event: &Value| event["name"].as_str().unwrap().to_owned();
    spans
        .map(|event| (event["pid"].as_u64().unwrap(), name(event)))
        .collect()
}

#[test]
fn every_rank_has_its_work_and_its_waiting_on_one_timeline() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("trace.json");
    assert!(cobre(&trace, 4).status().unwrap().success());
    let all = events(&trace).expect("JSON");
    let names = names(&all);
    for rank in [0, 1] {
        for name in ["forward", "backward", "simulation", "allgatherv"] {
            assert!(
                names.contains(&(rank, name.to_owned())),
                "{rank} {name}: {names:?}"
            );
        }
    }
    let forward = |event: &&Value| event["name"] == "forward" && event["pid"] == 1;
    let iterations: Vec<u64> = all
        .iter()
        .filter(forward)
        .map(|event| event["args"]["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(iterations, [1, 2, 3, 4]);
    // Waiting is part of the pass it happens in.
    let passes: Vec<(f64, f64)> = all.iter().filter(forward).map(bounds).collect();
    let waits = all.iter().filter(|event| {
        event["cat"] == "waiting" && event["pid"] == 1 && event["args"]["iteration"] == 1
    });
    let inside = waits.map(bounds).filter(|(start, end)| {
        passes
            .iter()
            .any(|pass| pass.0 <= *start && *end <= pass.1 + 1.0)
    });
    assert!(inside.count() > 0);
    assert!(!part(&trace, 0).exists() && !part(&trace, 1).exists());
    // The next run begins a trace of its own.
    assert!(cobre(&trace, 1).status().unwrap().success());
    let next = events(&trace).expect("JSON");
    assert_eq!(next.iter().filter(forward).count(), 1);
}

/// The beginning and the end of a span.
fn bounds(event: &Value) -> (f64, f64) {
    let (start, length) = (
        event["ts"].as_f64().unwrap(),
        event["dur"].as_f64().unwrap(),
    );
    (start, start + length)
}

/// A long run, once its ranks have written some spans.
fn begun(trace: &Path) -> Child {
    let run = cobre(trace, 1_000_000)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for rank in [0, 1] {
        let many = || events(&part(trace, rank)).is_some_and(|events| events.len() > 50);
        wait_until("the trace grows", LIMIT, many);
    }
    run
}

#[test]
fn the_trace_of_a_run_that_is_killed_can_be_read() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("trace.json");
    let mut run = begun(&trace);
    let ranks = ranks_of(run.id());
    assert_eq!(ranks.len(), 2);
    run.kill().unwrap();
    run.wait().unwrap();
    for rank in ranks {
        let gone = || !Path::new(&format!("/proc/{rank}/environ")).exists();
        let dead =
            || std::fs::read(format!("/proc/{rank}/environ")).map_or(true, |text| text.is_empty());
        wait_until("the ranks are gone", LIMIT, || gone() || dead());
    }
    for rank in [0, 1] {
        let events = events(&part(&trace, rank)).expect("JSON");
        assert!(events.len() > 50);
    }
}

#[test]
fn the_trace_of_a_run_that_is_interrupted_is_whole() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("trace.json");
    let mut run = begun(&trace);
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(5));
    let names = names(&events(&trace).expect("JSON"));
    assert!(names.contains(&(1, "backward".to_owned())), "{names:?}");
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("notes");
    std::fs::write(&trace, "mine").unwrap();
    let output = cobre(&trace, 1).output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert_eq!(std::fs::read(&trace).unwrap(), b"mine");
}

#[test]
fn a_pipe_in_place_of_a_trace_is_refused_and_nobody_waits() {
    let place = TempDir::new().unwrap();
    let trace = place.path().join("pipe");
    let made = Command::new("mkfifo").arg(&trace).status().unwrap();
    assert!(made.success());
    let output = Command::new("timeout")
        .args([
            "--signal=KILL",
            "60",
            env!("CARGO_BIN_EXE_cobre"),
            "run",
            "nothing",
            "--trace",
        ])
        .arg(&trace)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("it is a pipe"), "{said}");
}
