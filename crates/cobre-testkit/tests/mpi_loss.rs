//! A rank of an MPI job that goes away, under the real mpiexec: no rank hangs, one line says who and
//! why, and nothing is left. And what else only MPI can show: nodes, launchers that do not fit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cobre_comm::env::{COMM_BACKEND, JOB, MPI_CHECK, STALL_SECS};
use cobre_launch::{Launch, Outcome, Output};
use cobre_testkit::process::Surroundings;

const RANKS: usize = 3;
/// The rank that goes.
const VICTIM: usize = 1;
/// No job may take longer; how fast it is is for the benchmark to say.
const LIMIT: Duration = Duration::from_secs(60);

const CALLS: [&str; 5] = [
    "barrier",
    "large-allreduce",
    "allgatherv",
    "gatherv",
    "fence",
];

fn on_open_mpi() -> bool {
    cobre_comm::mpi_library().is_some_and(|library| library.contains("Open MPI"))
}

/// The outcome of a job: the output of its ranks, and its exit code.
struct Ended {
    /// By rank.
    stdout: Vec<String>,
    /// Of all ranks, in their order, and then of mpiexec.
    stderr: String,
    code: u8,
    message: String,
}

/// Lets each rank write to files of its own: what several processes write at the same time, mpiexec tears
/// and joins as it likes.
const TO_FILES: &str = r#"rank="$PMI_RANK$OMPI_COMM_WORLD_RANK"
exec "$0" "$@" > "$TESTKIT_JOB/out-$rank" 2> "$TESTKIT_JOB/err-$rank""#;

/// The files called `name` that each rank has written.
fn written(directory: &Path, name: &str, ranks: usize) -> Vec<String> {
    let path = |rank| directory.join(format!("{name}-{rank}"));
    let text = |rank| std::fs::read(path(rank)).unwrap_or_default();
    let texts = (0..ranks).map(text);
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

/// Runs `ranks` of a program of the kit to the end, which must come in time and leave nothing.
fn run(program: &str, ranks: usize, args: &[&str], env: &[(&str, &str)]) -> Ended {
    let ended = run_for(LIMIT, program, ranks, args, env);
    assert_ne!(ended.code, 124, "{args:?} hung: {}", ended.stderr);
    ended
}

/// Held by the job that runs: ranks of MPICH spin, and those of several jobs would take minutes.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// As [`run`], for so long at most.
fn run_for(
    limit: Duration,
    program: &str,
    ranks: usize,
    args: &[&str],
    env: &[(&str, &str)],
) -> Ended {
    // A test that failed before has left nothing behind that this one could find broken.
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let surroundings = Surroundings::now();
    let scratch = tempfile::Builder::new().prefix("cobre-mpi-").tempdir();
    let scratch = scratch.expect("a temporary directory");
    let marker = scratch.path().display().to_string();
    let mut launch = Launch::new("sh", ranks)
        .backend("mpi")
        .timeout(limit)
        .output(Output::Capture { limit: 1 << 18 })
        .env("TESTKIT_JOB", &marker)
        .args(["-c", TO_FILES, program])
        .args(args);
    if program.ends_with("rank") {
        launch = launch.args(["--scratch", &marker]);
    }
    for (name, value) in env {
        launch = launch.env(*name, *value);
    }
    let outcome: Outcome = launch.run().expect("an MPI launcher");
    let left = surroundings.left_behind(&marker);
    assert!(left.is_empty(), "{args:?} left behind {left:?}");
    let stderr = written(scratch.path(), "err", ranks).concat();
    Ended {
        stdout: written(scratch.path(), "out", ranks),
        stderr: stderr + &String::from_utf8_lossy(&outcome.ranks[0].stderr),
        code: outcome.exit_code(),
        message: outcome.message("job"),
    }
}

fn victim(calls: &str, how: &str, env: &[(&str, &str)]) -> Ended {
    let program = env!("CARGO_BIN_EXE_victim");
    run(program, RANKS, &[calls, how, &VICTIM.to_string()], env)
}

/// The lines that the communication layer printed.
fn lines(ended: &Ended) -> Vec<&str> {
    let own = |line: &&str| line.starts_with("cobre: ");
    ended.stderr.lines().filter(own).collect()
}

/// One line, which names the rank and has `words` in it; and the job has failed.
fn one_line_says(ended: &Ended, words: &[&str], what: &str) {
    let found = lines(ended);
    let [line] = found[..] else {
        panic!(
            "{what}: expected one line, found {found:?} in {}",
            ended.stderr
        );
    };
    let rank = format!("cobre: rank {VICTIM} (pid ");
    let told = line.starts_with(&rank) && words.iter().all(|word| line.contains(word));
    assert!(told, "{what}: {line}");
    assert_ne!(ended.code, 0, "{what}");
}

/// The launcher's first line names the victim and what happened to it; or the victim among others, where all were gone
/// before the launcher could watch them.
fn first_line_says(ended: &Ended, words: &str, what: &str) {
    let first = ended.message.lines().next().unwrap_or_default();
    let rank = format!("rank {VICTIM} (pid ");
    let together = ["0-2", "0, 1", "1, 2"].map(|ranks| format!("one of ranks {ranks} "));
    let named = first.contains(&rank) || together.iter().any(|few| first.contains(few));
    let told = named && first.contains(words);
    assert!(told, "{what}: {}{}", ended.message, ended.stderr);
}

#[test]
fn a_killed_rank_ends_the_job() {
    for calls in CALLS {
        let ended = victim(calls, "kill", &[]);
        first_line_says(&ended, "was killed by signal 9 (SIGKILL)", calls);
        assert_eq!(ended.code, 137, "{calls}");
        let finished = ended.stdout.iter().any(|text| text.contains("all well"));
        assert!(!finished, "{calls}: {:?}", ended.stdout);
    }
}

#[test]
fn a_rank_that_panics_ends_the_job_with_one_line() {
    for calls in CALLS {
        let ended = victim(calls, "panic", &[]);
        let words = ["panicked", "; its last collective was ", "(call "];
        one_line_says(&ended, &words, calls);
    }
}

#[test]
fn a_rank_that_gives_up_ends_the_job_with_one_line() {
    let ended = victim("barrier", "abort", &[]);
    one_line_says(
        &ended,
        &["aborted: no more of this", "barrier (call 50)"],
        "abort",
    );
}

#[test]
fn a_rank_that_exits_ends_the_job_with_one_line() {
    for (calls, how) in CALLS
        .into_iter()
        .zip(["exit0", "exit3"].into_iter().cycle())
    {
        let ended = victim(calls, how, &[]);
        let words = ["exited without dropping its communicator"];
        one_line_says(&ended, &words, calls);
    }
}

#[test]
fn a_rank_that_leaves_early_is_known_to_all() {
    for calls in CALLS {
        let ended = victim(calls, "leave", &[]);
        let context = format!("{calls}: {:?}", ended.stdout);
        let record = format!("rank {VICTIM} (pid ");
        let survivors = (0..RANKS).filter(|rank| *rank != VICTIM);
        let told: Vec<&String> = survivors.map(|rank| &ended.stdout[rank]).collect();
        assert!(told.iter().all(|text| *text == told[0]), "{context}");
        // Each survivor prints its cause and that of its next call.
        let lines_told: Vec<&str> = told[0].lines().filter(|line| *line != "met").collect();
        let said = |line: &&str| {
            line.starts_with(&record) && line.contains("left while others still needed it")
        };
        assert!(
            lines_told.len() == 2 && lines_told.iter().all(said),
            "{context}"
        );
        assert_eq!(lines(&ended).len(), 1, "{calls}: {}", ended.stderr);
    }
}

/// Past every handler, with a code that means success to MPI's launcher.
#[test]
fn a_rank_that_ends_at_once_is_no_success() {
    for calls in ["barrier", "allgatherv"] {
        let ended = victim(calls, "end0", &[]);
        // Which code it was only newer kernels tell.
        first_line_says(&ended, "without leaving the job", calls);
        assert_ne!(ended.code, 0, "{calls}");
    }
}

#[test]
fn a_rank_that_leaves_while_its_node_needs_it_ends_the_job() {
    let ended = victim("node", "leave", &[]);
    let words = [
        "left while others still needed it",
        "barrier (call 51) of their node",
    ];
    one_line_says(&ended, &words, "node");
    first_line_says_left(&ended);
}

fn first_line_says_left(ended: &Ended) {
    let first = ended.message.lines().next().unwrap_or_default();
    let told = first.contains(&format!("rank {VICTIM}: left while others still needed it"));
    assert!(told, "{}", ended.message);
}

/// No rank can know that another thread of the others will not come, so nobody ends the job.
#[test]
fn ranks_that_wait_for_each_other_in_two_communicators_say_where() {
    let (program, rank) = (env!("CARGO_BIN_EXE_victim"), VICTIM.to_string());
    let (limit, stall) = (Duration::from_secs(25), [(STALL_SECS, "1")]);
    let ended = run_for(limit, program, RANKS, &["node", "elsewhere", &rank], &stall);
    assert_eq!(ended.code, 124, "{}", ended.stderr);
    let found = lines(&ended);
    for rank in 0..RANKS {
        let (step, other) = if rank == VICTIM {
            (
                "waits in barrier (call 2) of the job",
                "barrier (call 51) of the node",
            )
        } else {
            (
                "waits in barrier (call 51) of the node",
                "barrier (call 2) of the job",
            )
        };
        let own = format!("cobre: rank {rank} (pid ");
        let told =
            |line: &&str| line.starts_with(&own) && line.contains(step) && line.contains(other);
        assert!(found.iter().any(told), "{found:?}");
    }
}

#[test]
fn a_rank_that_others_wait_for_is_reported_and_not_lost() {
    let ended = victim("barrier", "compute", &[(STALL_SECS, "1")]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let finished = ended.stdout.iter().all(|text| text.contains("all well"));
    assert!(finished, "{:?}", ended.stdout);
    let late = format!("rank {VICTIM} last began barrier (call 50)");
    for rank in (0..RANKS).filter(|rank| *rank != VICTIM) {
        let waits = format!("cobre: rank {rank} (pid ");
        let said = |line: &&str| {
            line.starts_with(&waits)
                && line.contains("waits in barrier (call 51) of the job, for ")
                && line.contains(&late)
        };
        assert!(lines(&ended).iter().any(said), "{}", ended.stderr);
    }
}

#[test]
fn without_the_check_no_death_hangs_either() {
    let off = [(MPI_CHECK, "off")];
    for how in ["kill", "panic", "exit0", "abort"] {
        let ended = victim("allreduce", how, &off);
        assert_ne!(ended.code, 0, "{how}");
    }
}

#[test]
fn without_the_check_the_results_are_the_same() {
    let program = env!("CARGO_BIN_EXE_rank");
    let digest = |check| {
        let args = ["program", "--seed", "7", "--calls", "200"];
        let ended = run(program, 2, &args, &[(MPI_CHECK, check)]);
        assert_eq!(ended.code, 0, "{:?}{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    assert_eq!(digest("on"), digest("off"));
}

#[test]
fn mpi_is_finalised_in_order_whatever_was_dropped_when() {
    let program = env!("CARGO_BIN_EXE_rank");
    let contracts = [
        "region/dropped-in-any-order",
        "split/own-sequence",
        "mismatch/fence",
    ];
    for contract in contracts {
        let ended = run(program, 2, &[contract, "--calls", "100"], &[]);
        let quiet = ended.code == 0 && !ended.stderr.contains("MPI_Finalize skipped");
        assert!(quiet, "{contract}: {}{}", ended.message, ended.stderr);
    }
}

/// Runs a contract on four ranks that MPICH deals out to two nodes which it pretends to have.
fn on_two_nodes(contract: &str, by_block: &str) {
    let program = env!("CARGO_BIN_EXE_rank");
    let nodes = [
        ("MPIR_CVAR_NUM_CLIQUES", "2"),
        ("MPIR_CVAR_CLIQUES_BY_BLOCK", by_block),
    ];
    let ended = run(program, 4, &[contract, "--calls", "100"], &nodes);
    assert_eq!(
        ended.code, 0,
        "{contract}: {:?}{}",
        ended.stdout, ended.stderr
    );
}

#[test]
fn regions_and_splits_span_nodes() {
    if on_open_mpi() {
        // It cannot pretend to have nodes.
        return;
    }
    let contracts = [
        "region/one-copy-per-node",
        "region/partitioned-shapes",
        "region/partitioned-types",
        "region/epochs",
        "region/contents-stay",
        "split/nodes-partition-the-ranks",
        "split/own-sequence",
        "program",
    ];
    for contract in contracts {
        for by_block in ["0", "1"] {
            on_two_nodes(contract, by_block);
        }
    }
}

/// Runs a rank by `command`, which starts it as another library's launcher would.
fn is_refused(mut command: Command) {
    for variable in JOB {
        command.env_remove(variable);
    }
    let output = command
        .env(COMM_BACKEND, "mpi")
        .stdin(Stdio::null())
        .output()
        .expect("a program that was just found");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("do not belong together"), "{text}");
    assert_ne!(output.status.code(), Some(0), "{text}");
}

#[test]
fn the_launcher_of_another_library_is_refused() {
    let rank = env!("CARGO_BIN_EXE_rank");
    let (launcher, options, variables) = if on_open_mpi() {
        ("mpiexec.mpich", &[][..], ["PMI_SIZE", "PMI_RANK"])
    } else {
        let options = &["--allow-run-as-root", "--oversubscribe"][..];
        let variables = ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"];
        ("mpiexec.openmpi", options, variables)
    };
    let installed = Command::new(launcher).arg("--version").output().is_ok();
    let mut command = Command::new(if installed { launcher } else { rank });
    if installed {
        command.args(options).args(["-n", "2", rank]);
    } else {
        // Alone, every library believes what it believes under another's launcher.
        println!("{launcher} is not installed; its variables stand for it");
        command.env(variables[0], "4").env(variables[1], "0");
    }
    command.arg("identity");
    is_refused(command);
}

#[test]
fn ranks_with_different_settings_are_refused() {
    // One rank gets its own value by a shell in between.
    let script = format!(
        "[ \"$PMI_RANK$OMPI_COMM_WORLD_RANK\" = 1 ] && export {MPI_CHECK}=off; exec {} barrier/in-a-row",
        env!("CARGO_BIN_EXE_rank")
    );
    let ended = run("sh", 2, &["-c", &script], &[]);
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains(MPI_CHECK), "{}", ended.stderr);
}
