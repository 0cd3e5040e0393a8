//! A rank of a job over sockets that goes away, or only seems to: every survivor gets the same
//! record, none hangs, and who is merely slow is not lost.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use crate::port::free_port;
use crate::sockets::{self, errors, finish, start, text, wait_for};
use cobre_comm::env::{STALL_SECS, TCP_TIMEOUT_SECS, TCP_TOPOLOGY};
use cobre_testkit::hosts::HOSTS;

pub const RANKS: usize = 4;
/// The rank that goes.
const VICTIM: usize = 2;
/// No survivor may take longer to return; how fast it is is for the benchmark to say.
const LIMIT: Duration = Duration::from_secs(60);
/// The deadline of collectives in seconds, where a test is about it. Ranks meet within it too, on a busy machine.
pub const DEADLINE: &str = "3";

/// The setting that makes data go this way: a topology, or an arrangement of ranks on hosts.
fn setting(way: &str) -> (&'static str, &str) {
    let variable = if way.contains("host") {
        HOSTS
    } else {
        TCP_TOPOLOGY
    };
    (variable, way)
}

fn member(port: u16, rank: usize, way: &str, calls: &str, how: &str, who: usize) -> Command {
    member_of(RANKS, port, rank, way, calls, how, who)
}

fn member_of(
    size: usize,
    port: u16,
    rank: usize,
    way: &str,
    calls: &str,
    how: &str,
    who: usize,
) -> Command {
    let mut command = sockets::rank(env!("CARGO_BIN_EXE_victim"), port, rank, size);
    command
        .args([calls, how, &who.to_string()])
        .envs([setting(way)])
        .env(STALL_SECS, "1");
    command
}

/// Runs a job in which `who` goes `how` after some `calls`; what each rank did.
fn run(size: usize, topology: &str, calls: &str, how: &str, who: usize) -> (u32, Vec<Output>) {
    let port = free_port();
    let members = (0..size).map(|rank| member_of(size, port, rank, topology, calls, how, who));
    let children: Vec<Child> = members.map(|mut member| start(&mut member)).collect();
    let victim = children[who].id();
    let begin = Instant::now();
    let outputs = finish(children);
    let taken = begin.elapsed();
    assert!(taken < LIMIT, "{topology} {calls} {how}: {taken:?}");
    (victim, outputs)
}

const CALLS: [&str; 7] = [
    "barrier",
    "allreduce",
    "large-allreduce",
    "allgatherv",
    "gatherv",
    "broadcast",
    "fence",
];

/// Every survivor prints the record of its first failing call and that of the one after, which
/// says `word`.
pub fn all_learn(topology: &str, how: &str, word: &str, who: usize) {
    all_learn_in(&CALLS, topology, how, word, who);
}

/// As [`all_learn`], in these calls.
pub fn all_learn_in(calls: &[&str], topology: &str, how: &str, word: &str, who: usize) {
    all_learn_of(RANKS, calls, topology, how, word, who);
}

/// As [`all_learn_in`], with so many ranks.
pub fn all_learn_of(
    size: usize,
    calls: &[&str],
    topology: &str,
    how: &str,
    word: &str,
    who: usize,
) {
    for calls in calls {
        let (pid, outputs) = run(size, topology, calls, how, who);
        let survivors = (0..size).filter(|rank| *rank != who);
        let records: Vec<String> = survivors.map(|rank| text(&outputs[rank].stdout)).collect();
        let context = format!(
            "{topology} {calls} {how}: {records:?} {:?}",
            errors(&outputs)
        );
        assert!(records.iter().all(|text| *text == records[0]), "{context}");
        let lines: Vec<&str> = records[0].lines().filter(|line| *line != "met").collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{context}");
        let named = lines[0].contains(&format!("rank {who} (pid {pid} on "));
        assert!(named && lines[0].contains(word), "{context}");
    }
}

#[test]
fn a_killed_rank_is_known_to_all() {
    all_learn("auto", "kill", "is gone", VICTIM);
}

#[test]
fn a_killed_rank_of_a_star_is_known_to_all() {
    all_learn("star", "kill", "is gone", VICTIM);
}

#[test]
fn a_killed_rank_0_is_known_to_all() {
    all_learn("auto", "kill", "is gone", 0);
}

#[test]
fn a_rank_that_exits_is_known_to_all() {
    all_learn("auto", "exit3", "is gone", VICTIM);
}

#[test]
fn a_rank_that_panics_is_known_to_all() {
    all_learn("auto", "panic", "panicked", VICTIM);
}

#[test]
fn a_rank_that_gives_up_is_known_to_all() {
    all_learn("ring", "abort", "aborted: no more of this", VICTIM);
}

#[test]
fn a_rank_that_leaves_early_is_known_to_all() {
    all_learn("auto", "leave", "left while others still needed it", VICTIM);
}

#[test]
fn a_rank_0_that_leaves_early_is_known_to_all() {
    all_learn("ring", "leave", "left while others still needed it", 0);
}

/// The child keeps what it inherited for fifteen seconds.
#[test]
fn a_killed_rank_whose_child_lives_on_is_known_to_all() {
    for calls in ["barrier", "allgatherv"] {
        let (pid, outputs) = run(RANKS, "auto", calls, "fork-kill", VICTIM);
        let told = errors(&outputs);
        let stamp = |rank: usize, word: &str| -> u64 {
            let line = told[rank].lines().find_map(|line| line.strip_prefix(word));
            line.and_then(|line| line.trim().parse().ok())
                .unwrap_or_else(|| panic!("{told:?}"))
        };
        let going = Duration::from_nanos(stamp(VICTIM, "going "));
        for rank in (0..RANKS).filter(|rank| *rank != VICTIM) {
            let said = text(&outputs[rank].stdout);
            let named = said.contains(&format!("rank {VICTIM} (pid {pid} on "));
            assert!(named && said.contains("is gone"), "{said}");
            let after = Duration::from_nanos(stamp(rank, "noticed ")).saturating_sub(going);
            assert!(after < Duration::from_secs(12), "{calls}: {after:?}");
        }
    }
}

fn signal(name: &str, child: &Child) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "kill {name}");
}

/// Stops a process, and waits until all its threads have stopped: on a busy machine they go on for a
/// while.
fn stop(child: &Child) {
    signal("-STOP", child);
    let tasks = format!("/proc/{}/task", child.id());
    let is_stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().map(str::trim_start);
        state.is_some_and(|state| state.starts_with('T'))
    };
    wait_for("the stop", || {
        let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
        tasks.all(is_stopped)
    });
}

/// Starts a job that calls on until something happens, and waits until its ranks have met.
pub fn running(way: &str, calls: &str, timeout: Option<&str>) -> Vec<Child> {
    let port = free_port();
    let mut children: Vec<Child> = (0..RANKS)
        .map(|rank| {
            let mut command = member(port, rank, way, calls, "outside", VICTIM);
            command.env_remove(TCP_TIMEOUT_SECS);
            command.envs(timeout.map(|timeout| (TCP_TIMEOUT_SECS, timeout)));
            start(&mut command)
        })
        .collect();
    for child in &mut children {
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(4, child.stdout.as_mut().unwrap());
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "met\n");
    }
    children
}

/// Nobody but rank 0 can give the verdict, so the others wait for it, however long that takes.
#[test]
fn a_loss_while_rank_0_is_stopped_is_told_alike_when_it_goes_on() {
    let mut children = running("auto", "allgatherv", None);
    stop(&children[0]);
    children[VICTIM].kill().unwrap();
    std::thread::sleep(Duration::from_secs(12));
    signal("-CONT", &children[0]);
    let outputs = finish(children);
    let survivors = (0..RANKS).filter(|rank| *rank != VICTIM);
    let records: Vec<String> = survivors.map(|rank| text(&outputs[rank].stdout)).collect();
    let context = format!("{records:?} {:?}", errors(&outputs));
    assert!(records.iter().all(|text| *text == records[0]), "{context}");
    let named = records[0].contains(&format!("rank {VICTIM} (pid "));
    assert!(named && records[0].contains("is gone"), "{context}");
    let told = errors(&outputs);
    assert!(
        told[1].contains("rank 0 (pid ") && told[1].contains("stopped?"),
        "{context}"
    );
}

#[test]
fn a_deadline_that_passes_while_rank_0_is_stopped_is_told_alike_by_all() {
    let children = running("auto", "allreduce", Some(DEADLINE));
    stop(&children[0]);
    std::thread::sleep(Duration::from_secs(9));
    signal("-CONT", &children[0]);
    let outputs = finish(children);
    let records: Vec<String> = outputs.iter().map(|output| text(&output.stdout)).collect();
    let context = format!("{records:?} {:?}", errors(&outputs));
    assert!(records.iter().all(|text| *text == records[0]), "{context}");
    assert!(
        records[0].contains(&format!("no answer within {DEADLINE} s from rank 0")),
        "{context}"
    );
}

/// Each rank has a deadline of so many seconds; all but the victim, which stops, tell [`DEADLINE`].
pub fn the_deadline_is_told(way: &str, seconds_of: impl Fn(usize) -> &'static str) {
    let port = free_port();
    let children: Vec<Child> = (0..RANKS)
        .map(|rank| {
            let mut command = member(port, rank, way, "allreduce", "long-stop", VICTIM);
            start(command.env(TCP_TIMEOUT_SECS, seconds_of(rank)))
        })
        .collect();
    let outputs = finish(children);
    for rank in (0..RANKS).filter(|rank| *rank != VICTIM) {
        let said = text(&outputs[rank].stdout);
        let expected = format!("no answer within {DEADLINE} s from rank {VICTIM}");
        assert!(said.contains(&expected), "rank {rank}: {said}");
    }
}

#[test]
fn a_deadline_that_only_one_rank_has_is_told_by_its_length() {
    the_deadline_is_told("auto", |rank| if rank == 1 { DEADLINE } else { "50" });
}

/// All ranks print that all is well, and rank 0 says on the way who keeps whom waiting.
pub fn nobody_is_lost(way: &str, calls: &str, how: &str, word: &str) {
    let (_, outputs) = run(RANKS, way, calls, how, VICTIM);
    let texts = errors(&outputs);
    for (rank, output) in outputs.iter().enumerate() {
        let said = text(&output.stdout);
        assert!(said.contains("all well"), "rank {rank}: {said} {texts:?}");
    }
    let reported = texts[0].contains(&format!("rank {VICTIM} (pid ")) && texts[0].contains(word);
    assert!(reported, "{}", texts[0]);
}

#[test]
fn a_stopped_rank_is_reported_and_not_lost() {
    nobody_is_lost("auto", "barrier", "stop", "stopped?");
}

#[test]
fn a_rank_that_computes_while_blocks_wait_for_it_is_not_lost() {
    nobody_is_lost("auto", "allgatherv", "compute", "it answers");
}

#[test]
fn a_deadline_that_the_user_set_ends_a_wait_for_a_stopped_rank() {
    the_deadline_is_told("auto", |_| DEADLINE);
}

/// At any instant of a large collective, by a signal from outside.
#[test]
fn ranks_killed_at_random_instants_are_named_before_a_timeout_of_the_network() {
    let mut times = Vec::new();
    for round in 0..12u64 {
        let who = (round % RANKS as u64) as usize;
        let calls = ["allgatherv", "large-allreduce", "broadcast"][(round % 3) as usize];
        let topology = ["auto", "star"][(round / 3 % 2) as usize];
        let port = free_port();
        let mut children: Vec<Child> = (0..RANKS)
            .map(|rank| start(&mut member(port, rank, topology, calls, "outside", who)))
            .collect();
        let mut lines = String::new();
        let stdout = children[who].stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut lines).unwrap();
        std::thread::sleep(Duration::from_micros(round * 1777 % 9000));
        let killed = std::time::SystemTime::now();
        children[who].kill().unwrap();
        let outputs = finish(children);
        let killed = killed.duration_since(std::time::UNIX_EPOCH).unwrap();
        for rank in (0..RANKS).filter(|rank| *rank != who) {
            let said = text(&outputs[rank].stdout);
            let context = format!("round {round}, rank {rank}: {said}");
            assert!(said.contains(&format!("rank {who} (pid")), "{context}");
            let noticed = text(&outputs[rank].stderr);
            let noticed = noticed
                .lines()
                .find_map(|line| line.strip_prefix("noticed "));
            let noticed: u64 = noticed.unwrap().trim().parse().unwrap();
            let after = Duration::from_nanos(noticed).saturating_sub(killed);
            times.push(after);
        }
    }
    // The machine may be busy for a moment; a timeout of the network takes two seconds every time.
    times.sort_unstable();
    let median = times[times.len() / 2];
    assert!(median < Duration::from_millis(1900), "{times:?}");
}
