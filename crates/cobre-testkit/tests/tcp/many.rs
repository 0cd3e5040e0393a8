//! More ranks than sockets that are tried one by one: each learns from the kernel which have news.

use cobre_comm::env::TCP_TOPOLOGY;

use crate::loss::all_learn_of;
use crate::port::free_port;
use crate::sockets::{self, all_well, run};

const MANY: usize = 20;

#[test]
fn many_ranks_keep_the_contract() {
    for topology in ["star", "auto"] {
        let port = free_port();
        let ranks = (0..MANY).map(|rank| {
            let mut command = sockets::rank(env!("CARGO_BIN_EXE_rank"), port, rank, MANY);
            command
                .args(["sequence/mixed", "--calls", "30"])
                .env(TCP_TOPOLOGY, topology);
            command
        });
        all_well(&run(ranks));
    }
}

#[test]
fn a_killed_rank_of_many_is_known_to_all() {
    for (topology, who) in [("star", 7), ("auto", 0)] {
        all_learn_of(MANY, &["allreduce"], topology, "kill", "is gone", who);
    }
}
