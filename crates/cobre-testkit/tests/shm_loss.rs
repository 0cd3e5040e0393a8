//! A rank of a shared-memory job that goes away: every survivor gets the same record, none hangs,
//! and nothing is left. Real processes, no launcher.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use cobre_comm::env::{
    COMM_BACKEND, JOB, SHM_NAME, SHM_RANK, SHM_SIZE, STALL_SECS, fresh_shm_name,
};

const RANKS: usize = 4;
/// The rank that goes.
const VICTIM: usize = 2;
/// No survivor may take longer to return; how fast it is is for the benchmark to say.
const LIMIT: Duration = Duration::from_secs(60);

fn start(name: &str, rank: usize, calls: &str, how: &str) -> Child {
    let command = &mut command(name, (rank, RANKS), calls, how, VICTIM);
    command
        .spawn()
        .expect("the victim program is built with the tests")
}

/// The command that starts one rank of a job whose `victim` goes.
fn command(
    name: &str,
    (rank, size): (usize, usize),
    calls: &str,
    how: &str,
    victim: usize,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_victim"));
    for variable in JOB {
        command.env_remove(variable);
    }
    command
        .args([calls, how, &victim.to_string()])
        .env(COMM_BACKEND, "shm")
        .env(SHM_NAME, name)
        .env(SHM_RANK, rank.to_string())
        .env(SHM_SIZE, size.to_string())
        .env(STALL_SECS, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a job whose victim goes `how` after some `calls`; what each rank did.
fn run(calls: &str, how: &str) -> Vec<Output> {
    let name = fresh_shm_name();
    let start_all = (0..RANKS).map(|rank| start(&name, rank, calls, how));
    let children: Vec<Child> = start_all.collect();
    let start = Instant::now();
    let outputs = children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap());
    let outputs = outputs.collect();
    let taken = start.elapsed();
    assert!(taken < LIMIT, "{calls} {how}: {taken:?}");
    let left = std::path::Path::new("/dev/shm").join(name.trim_start_matches('/'));
    assert!(!left.exists());
    outputs
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every survivor prints the record of its first failing call and that of the one after, which
/// says `word`; and the victim ends as it would have.
fn all_learn(how: &str, word: &str, end: impl Fn(ExitStatus) -> bool) {
    for calls in [
        "barrier",
        "allreduce",
        "large-allreduce",
        "allgatherv",
        "gatherv",
        "broadcast",
        "fence",
        "split",
    ] {
        let outputs = run(calls, how);
        let victim = outputs[VICTIM].status;
        assert!(end(victim), "{calls} {how}: the victim ended with {victim}");
        let survivors = (0..RANKS).filter(|&rank| rank != VICTIM);
        let texts: Vec<String> = survivors.map(|rank| text(&outputs[rank].stdout)).collect();
        assert!(
            texts.iter().all(|text| *text == texts[0]),
            "{calls} {how}: {texts:?}"
        );
        let records: Vec<&str> = texts[0].lines().skip(1).collect();
        assert_eq!(records.len(), 2, "{calls} {how}: {}", texts[0]);
        for record in records {
            let said = record.contains(word) && record.contains("; its last collective was ");
            let named = record.starts_with(&format!("rank {VICTIM} (pid "));
            assert!(said && named, "{calls} {how}: {record}");
        }
    }
}

#[test]
fn a_killed_rank_is_known_to_all() {
    all_learn("kill", "is gone", |end| end.signal() == Some(9));
}

#[test]
fn a_fatal_signal_is_known_to_all_and_still_fatal() {
    all_learn("segv", "was killed by signal 11", |end| {
        end.signal() == Some(11)
    });
}

#[test]
fn a_fault_of_its_own_is_known_to_all_and_still_fatal() {
    for how in ["fault", "fault-in-thread"] {
        all_learn(how, "was killed by signal 11", |end| {
            end.signal() == Some(11)
        });
    }
}

#[test]
fn a_stack_that_overflows_is_known_to_all_and_still_fatal() {
    // The language's own handler takes the fault, says so, and aborts. Where a library below MPI has
    // taken the signal before, there is no such handler, and the fault itself is fatal.
    let taken = cobre_comm::available_backends().contains(&"mpi");
    all_learn("overflow", "was killed by signal 11", |end| {
        end.signal() == Some(6) || taken && end.signal() == Some(11)
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_trap_is_known_to_all_and_still_fatal() {
    all_learn("trap", "was killed by signal 5", |end| {
        end.signal() == Some(5)
    });
}

#[test]
fn a_panic_that_was_caught_before_a_kill_is_not_called_the_cause() {
    all_learn(
        "caught-kill",
        "is gone; it had panicked: not the end (",
        |end| end.signal() == Some(9),
    );
}

#[test]
fn a_rank_that_exits_is_known_to_all() {
    all_learn("exit3", "is gone", |end| end.code() == Some(3));
}

#[test]
fn a_rank_that_panics_is_known_to_all_with_its_words() {
    all_learn("panic", "panicked: as asked (", |end| {
        end.code() == Some(101)
    });
}

#[test]
fn a_panic_that_cannot_unwind_is_known_to_all_with_its_words() {
    all_learn("double-panic", "panicked: the first of two (", |end| {
        end.signal() == Some(6)
    });
}

#[test]
fn a_rank_that_gives_up_is_known_to_all() {
    all_learn("abort", "aborted: no more of this", |end| end.success());
}

#[test]
fn a_rank_that_leaves_early_is_known_to_all() {
    all_learn("leave", "left while others still needed it", |end| {
        end.success()
    });
}

/// A job whose victim does not go after all; what the ranks said on standard error. The first whose
/// process runs makes a report, and on a busy machine any may look as if it did not.
fn nobody_goes(how: &str) -> String {
    let outputs = run("barrier", how);
    for output in &outputs {
        let said = text(&output.stdout);
        assert!(
            output.status.success() && said.contains("all well"),
            "{said}"
        );
    }
    outputs.iter().map(|output| text(&output.stderr)).collect()
}

#[test]
fn a_panic_that_is_caught_is_no_loss() {
    nobody_goes("caught");
}

#[test]
fn a_stopped_rank_is_reported_and_not_lost() {
    let report = nobody_goes("stop");
    let stopped = format!("not arrived: rank {VICTIM} (pid ");
    assert!(report.contains(&stopped), "{report}");
    assert!(report.contains("its process was last seen "), "{report}");
}

#[test]
fn a_rank_that_computes_for_long_is_reported_and_not_lost() {
    let report = nobody_goes("compute");
    for expected in [
        "cobre: ranks have waited for ",
        "cobre:   arrived in barrier (call 51): 0, 1, 3",
        "cobre:   not arrived: rank 2 (pid ",
        "; its last collective was barrier (call 50); its process ",
    ] {
        assert!(report.contains(expected), "{report}");
    }
}

/// Nobody reads rank 0's standard error, and it is full when a stall is due: a death is noticed all the
/// same.
#[test]
fn a_report_that_nobody_reads_keeps_nobody_from_noticing() {
    let name = fresh_shm_name();
    let (unread, mut full) = std::io::pipe().unwrap();
    full.write_all(&vec![b'.'; 1 << 16]).unwrap();
    let start = |rank, stderr| {
        let mut command = command(&name, (rank, 2), "barrier", "compute-kill", 1);
        command.stderr(stderr).spawn().unwrap()
    };
    let mut observer = start(0, Stdio::from(full));
    let victim = start(1, Stdio::null());
    let lines = BufReader::new(observer.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines.take(3).map(Result::unwrap).collect();
    drop(unread);
    observer.wait().unwrap();
    victim.wait_with_output().unwrap();
    assert!(said[2].starts_with("rank 1 (pid "), "{said:?}");
}

/// The first rank whose process runs makes the report.
#[test]
fn a_stopped_rank_0_is_reported_by_another() {
    let name = fresh_shm_name();
    let children = [0, 1, 2].map(|rank| {
        let mut command = command(&name, (rank, 3), "barrier", "stop", 0);
        command.spawn().unwrap()
    });
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let report = text(&outputs[1].stderr) + &text(&outputs[2].stderr);
    assert!(report.contains("not arrived: rank 0 (pid "), "{report}");
}

/// Whoever started rank 0 has closed its standard error.
#[test]
fn a_report_that_cannot_be_written_ends_nothing() {
    let name = fresh_shm_name();
    let mut children: Vec<Child> = (0..RANKS)
        .map(|rank| start(&name, rank, "barrier", "compute"))
        .collect();
    drop(children[0].stderr.take());
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert!(said.contains("all well"), "{said} {}", output.status);
    }
}
