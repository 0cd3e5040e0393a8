//! Ranks that share memory inside hosts and sockets between them: whoever goes, a leader or another rank, on one host or
//! on two at once, every survivor gets the same record.

use std::process::{Child, Command};

use cobre_comm::env::TCP_SHARED_MEMORY;
use cobre_testkit::hosts::{HOSTS_IN_A_ROW, HOSTS_INTERLEAVED, ONE_HOST};

use crate::loss::{
    DEADLINE, RANKS, all_learn, all_learn_in, nobody_is_lost, running, the_deadline_is_told,
};
use crate::port::free_port;
use crate::sockets::{self, all_well, errors, finish, skip, text};

/// Leads the odd ranks.
const LEADER: usize = 1;

#[test]
fn a_killed_leader_is_known_to_all() {
    all_learn(HOSTS_INTERLEAVED, "kill", "is gone", LEADER);
}

#[test]
fn a_killed_rank_0_that_leads_a_host_is_known_to_all() {
    all_learn(HOSTS_INTERLEAVED, "kill", "is gone", 0);
}

#[test]
fn a_killed_rank_that_does_not_lead_is_known_to_all() {
    all_learn(HOSTS_IN_A_ROW, "kill", "is gone", 3);
}

/// Where the ranks of a host follow one another, leaders hand long vectors on.
#[test]
fn a_killed_leader_of_ranks_in_a_row_is_known_to_all() {
    for leader in [0, 2] {
        let calls = ["large-allreduce", "allgatherv"];
        all_learn_in(&calls, HOSTS_IN_A_ROW, "kill", "is gone", leader);
    }
}

#[test]
fn a_killed_rank_of_the_only_host_is_known_to_all() {
    let calls = ["allreduce", "allgatherv", "fence", "node"];
    all_learn_in(&calls, ONE_HOST, "kill", "is gone", 2);
}

#[test]
fn a_leader_that_ends_in_another_way_is_known_to_all() {
    let calls = ["allreduce", "gatherv", "fence"];
    let ends = [
        ("exit3", "is gone"),
        ("panic", "panicked"),
        ("abort", "aborted: no more of this"),
        ("leave", "left while others still needed it"),
    ];
    for (how, word) in ends {
        all_learn_in(&calls, HOSTS_INTERLEAVED, how, word, LEADER);
    }
}

#[test]
fn a_rank_0_that_leaves_its_host_early_is_known_to_all() {
    let word = "left while others still needed it";
    all_learn_in(
        &["barrier", "allgatherv"],
        HOSTS_INTERLEAVED,
        "leave",
        word,
        0,
    );
}

/// Survivors print one record, whichever of the two it names.
#[test]
fn two_deaths_on_two_hosts_at_once_are_one_record() {
    for calls in ["allreduce", "allgatherv", "fence"] {
        let mut children = running(HOSTS_INTERLEAVED, calls, None);
        children[2].kill().unwrap();
        children[3].kill().unwrap();
        let outputs = finish(children);
        let said: Vec<String> = outputs.iter().map(|output| text(&output.stdout)).collect();
        let context = format!("{calls}: {said:?} {:?}", errors(&outputs));
        assert_eq!(said[0], said[1], "{context}");
        let named = said[0].contains("rank 2 (pid ") || said[0].contains("rank 3 (pid ");
        assert!(named && said[0].contains("is gone"), "{context}");
    }
}

#[test]
fn a_stopped_rank_of_a_host_is_reported_and_not_lost() {
    nobody_is_lost(HOSTS_INTERLEAVED, "barrier", "stop", "stopped?");
}

#[test]
fn a_deadline_ends_the_waits_inside_hosts() {
    for way in [ONE_HOST, HOSTS_INTERLEAVED] {
        the_deadline_is_told(way, |_| DEADLINE);
    }
}

/// A rank that sees another `/dev/shm` than the others of its machine, as in a container.
fn job_with_one_elsewhere(sharing: &str) -> Option<Vec<Child>> {
    let there = [
        "-m",
        "sh",
        "-c",
        "mount -t tmpfs none /dev/shm && exec \"$0\" \"$@\"",
    ];
    let probe = Command::new("unshare").args(there).arg("true").status();
    if !probe.is_ok_and(|status| status.success()) {
        skip("mount namespaces are not permitted here");
        return None;
    }
    let (port, rank) = (free_port(), env!("CARGO_BIN_EXE_rank"));
    let start = |number: usize| {
        let elsewhere = number == 1;
        let program = if elsewhere { "unshare" } else { rank };
        let mut command = sockets::rank(program, port, number, RANKS);
        if elsewhere {
            command.args(there).arg(rank);
        }
        let contract = ["sequence/large-and-small", "--calls", "20"];
        sockets::start(command.args(contract).env(TCP_SHARED_MEMORY, sharing))
    };
    Some((0..RANKS).map(start).collect())
}

#[test]
fn a_rank_that_sees_other_shared_memory_uses_sockets() {
    if let Some(children) = job_with_one_elsewhere("auto") {
        all_well(&finish(children));
    }
}

#[test]
fn a_rank_that_must_share_memory_and_cannot_says_so() {
    if let Some(children) = job_with_one_elsewhere("on") {
        let outputs = finish(children);
        let told = &errors(&outputs)[1];
        let expected = "cannot share memory with the other ranks of its machine";
        assert!(told.contains(expected), "{told}");
    }
}
