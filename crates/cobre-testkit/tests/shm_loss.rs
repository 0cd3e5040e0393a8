//! A rank of a shared-memory job that goes away: every survivor gets the same record, none hangs,
//! and nothing is left. Real processes, no launcher.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cobre_comm::env::{COMM_BACKEND, JOB, SHM_NAME, SHM_RANK, SHM_SIZE, fresh_shm_name};

const RANKS: usize = 4;
/// The rank that goes.
const VICTIM: usize = 2;
/// No survivor may take longer to return; how fast it is is for the benchmark to say.
const LIMIT: Duration = Duration::from_secs(20);

fn start(name: &str, rank: usize, calls: &str, how: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_victim"));
    for variable in JOB {
        command.env_remove(variable);
    }
    command
        .args([calls, how, &VICTIM.to_string()])
        .env(COMM_BACKEND, "shm")
        .env(SHM_NAME, name)
        .env(SHM_RANK, rank.to_string())
        .env(SHM_SIZE, RANKS.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .spawn()
        .expect("the victim program is built with the tests")
}

/// Runs a job whose victim goes `how` after some `calls`; what each survivor printed.
fn survivors(calls: &str, how: &str) -> Vec<String> {
    let name = fresh_shm_name();
    let children: Vec<Child> = (0..RANKS)
        .map(|rank| start(&name, rank, calls, how))
        .collect();
    let victim = children[VICTIM].id();
    let start = Instant::now();
    let outputs: Vec<Output> = children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    assert!(
        start.elapsed() < LIMIT,
        "{calls} {how}: {:?}",
        start.elapsed()
    );
    assert!(
        !std::path::Path::new("/dev/shm")
            .join(name.trim_start_matches('/'))
            .exists()
    );
    let texts = outputs
        .iter()
        .enumerate()
        .filter(|(rank, _)| *rank != VICTIM);
    texts
        .map(|(rank, output)| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let expected = format!("rank {VICTIM} (pid {victim} ");
            assert!(
                text.contains(&expected),
                "{calls} {how}: rank {rank} said {text:?}"
            );
            text
        })
        .collect()
}

/// Every survivor prints the record of its first failing call and that of the one after.
fn all_learn(how: &str, word: &str) {
    for calls in [
        "barrier",
        "allreduce",
        "large-allreduce",
        "allgatherv",
        "broadcast",
        "fence",
    ] {
        let texts = survivors(calls, how);
        assert!(
            texts.iter().all(|text| *text == texts[0]),
            "{calls} {how}: {texts:?}"
        );
        assert!(texts[0].contains(word), "{calls} {how}: {}", texts[0]);
    }
}

#[test]
fn a_killed_rank_is_known_to_all() {
    all_learn("kill", "is gone");
}

#[test]
fn a_rank_that_exits_is_known_to_all() {
    all_learn("exit", "is gone");
}

#[test]
fn a_rank_that_panics_is_known_to_all() {
    all_learn("panic", "panicked");
}

#[test]
fn a_rank_that_leaves_early_is_known_to_all() {
    all_learn("leave", "left while others still needed it");
}

#[test]
fn a_stopped_rank_is_no_lost_rank() {
    let name = fresh_shm_name();
    let children: Vec<Child> = (0..RANKS)
        .map(|rank| start(&name, rank, "barrier", "stop"))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("all well"),
            "{text}"
        );
    }
}
