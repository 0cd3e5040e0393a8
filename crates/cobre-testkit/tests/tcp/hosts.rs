//! Several hosts: links that break, in one direction or in both, and hosts that are gone, end in one
//! record on every survivor.

use std::io::{BufRead, BufReader};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use cobre_comm::env::{STALL_SECS, TCP_BIND, TCP_COORDINATOR, TCP_TOPOLOGY};

use cobre_testkit::hosts::{HOSTS_IN_A_ROW, HOSTS_INTERLEAVED};

use crate::network::{HOSTS, Network, ip};
use crate::sockets::{self, errors, finish, skip, start, text};

/// From the break to the last survivor's return; a host that is gone is known after two seconds of
/// silence, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts a rank on each host and waits until they have met.
fn started(network: &Network, calls: &str) -> Vec<Child> {
    let rank = |rank| {
        let mut command = network.rank(rank, rank, HOSTS);
        command.args([env!("CARGO_BIN_EXE_victim"), calls, "outside", "9"]);
        start(command.env(STALL_SECS, "1"))
    };
    let mut ranks: Vec<Child> = (0..HOSTS).map(rank).collect();
    wait_until_met(&mut ranks);
    ranks
}

fn wait_until_met(ranks: &mut [Child]) {
    for child in ranks {
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(4, child.stdout.as_mut().unwrap());
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "met\n");
    }
}

/// Runs `calls`, breaks something, and gives what the ranks that can still reach rank 0 say.
fn records(
    calls: &str,
    gone: usize,
    break_it: impl Fn(&Network, &mut [Child]) -> bool,
) -> Vec<String> {
    let Some(network) = Network::new() else {
        return Vec::new();
    };
    let mut ranks = started(&network, calls);
    std::thread::sleep(Duration::from_millis(300));
    assert!(break_it(&network, &mut ranks));
    let begin = Instant::now();
    let outputs: Vec<Output> = finish(ranks);
    let (taken, told) = (begin.elapsed(), errors(&outputs));
    assert!(taken < LIMIT, "{calls}: {taken:?} {told:?}");
    let survivors = (0..HOSTS).filter(|rank| *rank != gone);
    let said: Vec<String> = survivors.map(|rank| text(&outputs[rank].stdout)).collect();
    let context = format!("{calls}: {said:?} {told:?}");
    assert!(said.iter().all(|text| *text == said[0]), "{context}");
    let expected = format!("rank {gone} (pid ");
    assert!(
        said[0].contains(&expected) && said[0].contains("is gone"),
        "{context}"
    );
    said
}

#[test]
fn a_host_that_gets_nothing_any_more_is_known_to_all() {
    for calls in ["allreduce", "allgatherv"] {
        records(calls, 2, |network, _| {
            ip(&format!(
                "-n {} route add blackhole 10.77.2.2/32",
                network.router()
            ))
        });
    }
}

#[test]
fn a_host_from_which_nothing_comes_any_more_is_known_to_all() {
    for calls in ["barrier", "allgatherv"] {
        records(calls, 2, |network, _| {
            ip(&format!(
                "-n {} rule add from 10.77.2.2 blackhole",
                network.router()
            ))
        });
    }
}

#[test]
fn a_host_whose_link_is_down_is_known_to_all() {
    for rank in [1, 3] {
        records("allgatherv", rank, |network, _| {
            let (host, link) = (network.host(rank), format!("up{rank}"));
            ip(&format!("-n {host} link set {link} down"))
        });
    }
}

#[test]
fn a_rank_0_whose_link_is_down_is_named_by_all() {
    records("allgatherv", 0, |network, _| {
        ip(&format!("-n {} link set up0 down", network.host(0)))
    });
}

#[test]
fn a_killed_rank_of_another_host_is_known_to_all() {
    for gone in [0, 3] {
        records("allgatherv", gone, |_, ranks| ranks[gone].kill().is_ok());
    }
}

/// Host 1 is slow to pass the last broadcast on, rank 0 has finished meanwhile, and then host 1 is
/// gone: those who still wait for its data must learn that.
#[test]
fn a_host_that_is_lost_after_rank_0_has_finished_is_known_to_who_needs_it() {
    let Some(network) = Network::new() else {
        return;
    };
    let ranks = started(&network, "last-broadcast");
    let router = network.router();
    let rule = "rule add from 10.77.1.2 to 10.77.2.2 blackhole";
    assert!(ip(&format!("-n {router} {rule}")));
    std::thread::sleep(Duration::from_secs(5));
    assert!(ip(&format!("-n {} link set up1 down", network.host(1))));
    let begin = Instant::now();
    let outputs: Vec<Output> = finish(ranks);
    let (taken, told) = (begin.elapsed(), errors(&outputs));
    assert!(taken < LIMIT, "{taken:?} {told:?}");
    let said: Vec<String> = outputs.iter().map(|output| text(&output.stdout)).collect();
    assert!(said[0].contains("all well"), "{said:?} {told:?}");
    assert_eq!(said[2], said[3], "{told:?}");
    let named = said[2].contains("rank 1 (pid ") && said[2].contains("is gone");
    assert!(named, "{said:?} {told:?}");
}

/// Link-local addresses mean nothing without the interface.
#[test]
fn ranks_meet_by_link_local_addresses() {
    let Some(network) = Network::new() else {
        return;
    };
    let (one, two) = (network.host(0), network.host(1));
    let made = [
        format!("link add ll0 netns {one} type veth peer name ll1 netns {two}"),
        format!("-n {one} link set ll0 up"),
        format!("-n {two} link set ll1 up"),
        format!("-n {one} addr add fe80::77:1/64 dev ll0 nodad"),
        format!("-n {two} addr add fe80::77:2/64 dev ll1 nodad"),
    ];
    if !made.iter().all(|command| ip(command)) {
        skip("this machine has no IPv6");
        return;
    }
    let ranks: Vec<Child> = (0..3)
        .map(|rank| {
            let mut command = network.rank(usize::from(rank > 0), rank, 3);
            command
                .args([env!("CARGO_BIN_EXE_rank"), "sequence/large-and-small"])
                .args(["--calls", "20"])
                .env(TCP_COORDINATOR, "fe80::77:1%ll1")
                .env(TCP_BIND, "::")
                .env(TCP_TOPOLOGY, "ring");
            start(&mut command)
        })
        .collect();
    sockets::all_well(&finish(ranks));
}

#[test]
fn ranks_share_memory_inside_hosts_and_sockets_between_them() {
    let Some(network) = Network::new() else {
        return;
    };
    for arrangement in [HOSTS_IN_A_ROW, HOSTS_INTERLEAVED] {
        for contract in ["sequence/large-and-small", "region/one-copy-per-node"] {
            let program = [env!("CARGO_BIN_EXE_rank"), contract, "--calls", "20"];
            sockets::all_well(&finish(network.two_by_two(arrangement, &program, &[])));
        }
    }
}

/// Long sums go from host to host where ranks are numbered in a row, and by the leaders' shares where they are not: either way
/// in rank order.
#[test]
fn two_to_four_hosts_of_two_to_four_ranks_reduce_in_rank_order() {
    let Some(network) = Network::new() else {
        return;
    };
    for (hosts, per_host) in [(2, 4), (3, 2), (4, 4)] {
        for is_in_a_row in [true, false] {
            for contract in ["allreduce/rank-order", "program"] {
                let program = [env!("CARGO_BIN_EXE_rank"), contract, "--calls", "20"];
                let ranks = network.ranks_on(hosts, per_host, is_in_a_row, &program);
                sockets::all_well(&finish(ranks));
            }
        }
    }
}

/// The link of the host with ranks 1 and 3 goes down: the others name one of them, those two name rank 0.
#[test]
fn a_host_of_two_ranks_that_is_cut_off_is_known_to_all() {
    let Some(network) = Network::new() else {
        return;
    };
    let program = [env!("CARGO_BIN_EXE_victim"), "allgatherv", "outside", "9"];
    let mut ranks = network.two_by_two(HOSTS_INTERLEAVED, &program, &[]);
    wait_until_met(&mut ranks);
    assert!(ip(&format!("-n {} link set up1 down", network.host(1))));
    let outputs: Vec<Output> = finish(ranks);
    let said: Vec<String> = outputs.iter().map(|output| text(&output.stdout)).collect();
    let context = format!("{said:?} {:?}", errors(&outputs));
    assert!(said[0] == said[2] && said[1] == said[3], "{context}");
    let lost = |text: &str, rank: usize| text.contains(&format!("rank {rank} (pid "));
    assert!(lost(&said[0], 1) || lost(&said[0], 3), "{context}");
    assert!(lost(&said[1], 0), "{context}");
}

/// The router drops what goes between the others: only rank 0 can be reached.
#[test]
fn ranks_that_cannot_reach_each_other_go_through_rank_0() {
    let Some(network) = Network::new() else {
        return;
    };
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        let router = network.router();
        let rule = format!("rule add from 10.77.{from}.2 to 10.77.{to}.2 blackhole");
        assert!(ip(&format!("-n {router} {rule}")));
    }
    let ranks: Vec<Child> = (0..HOSTS)
        .map(|rank| {
            let mut command = network.rank(rank, rank, HOSTS);
            command
                .args([env!("CARGO_BIN_EXE_rank"), "sequence/large-and-small"])
                .args(["--calls", "20"]);
            start(&mut command)
        })
        .collect();
    sockets::all_well(&finish(ranks));
}
