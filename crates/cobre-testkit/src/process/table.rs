//! The conformance table: one row per backend. A new backend adds its row and nothing else.

use std::time::Duration;

use cobre_comm::env::{TCP_SHARED_MEMORY, TCP_TOPOLOGY};

use super::Verdict;
use crate::hosts::{HOSTS, HOSTS_IN_A_ROW, HOSTS_INTERLEAVED, HOSTS_UNEVEN, ONE_HOST};

/// The numbers of ranks that the table is about: one, powers of two, and what is neither.
pub const RANKS: [usize; 8] = [1, 2, 3, 4, 5, 7, 8, 16];

/// The way one backend is run.
#[derive(Debug)]
pub struct BackendRow {
    /// Its name, as the launcher knows it.
    pub backend: &'static str,
    /// A setting with which it is run, and what that makes of its name.
    pub setting: Option<(&'static str, &'static str)>,
    /// Another one, which its name does not show.
    pub also: Option<(&'static str, &'static str)>,
    /// The numbers of ranks it runs with.
    pub ranks: RankCounts,
    /// Budget of each contract.
    pub calls: usize,
    /// No job may take longer.
    pub deadline: Duration,
    /// True if builds come without it unless asked for: then its absence is no gap.
    pub opt_in: bool,
    /// Contracts that it does not keep.
    pub excuses: &'static [Excuse],
}

/// Numbers of ranks.
#[derive(Debug)]
pub enum RankCounts {
    /// Each of [`RANKS`].
    All,
    /// These, and why no others.
    Only(&'static [usize], &'static str),
}

/// A contract that a backend does not keep, and why that is right.
#[derive(Debug)]
pub struct Excuse {
    /// Which.
    pub contract: &'static str,
    /// The reason.
    pub reason: &'static str,
}

impl BackendRow {
    /// The prefix of its cells' names.
    pub fn name(&self) -> String {
        match self.setting {
            Some((_, value)) => format!("{}-{value}", self.backend),
            None => self.backend.to_owned(),
        }
    }

    /// The reason why this backend is not run with so many ranks.
    pub fn excuse_from_ranks(&self, ranks: usize) -> Option<&'static str> {
        match self.ranks {
            RankCounts::Only(possible, reason) if !possible.contains(&ranks) => Some(reason),
            RankCounts::Only(..) | RankCounts::All => None,
        }
    }

    /// The verdict on each of its cells if this build does not have it.
    pub fn verdict_if_absent(&self) -> Option<Verdict> {
        let backend = self.backend;
        if cobre_comm::available_backends().contains(&backend) {
            return None;
        }
        let text = format!("{backend} is not in this build; --features {backend} adds it");
        Some(if self.opt_in {
            Verdict::Excused(text)
        } else {
            Verdict::Skipped(text)
        })
    }

    /// The reason why `contract` is not asked of this backend.
    pub fn excuse_from(&self, contract: &str) -> Option<&'static str> {
        let found = self
            .excuses
            .iter()
            .find(|excuse| excuse.contract == contract);
        found.map(|excuse| excuse.reason)
    }
}

/// Sockets, with large messages taking this way.
const fn tcp(topology: &'static str) -> BackendRow {
    BackendRow {
        backend: "tcp",
        setting: Some((TCP_TOPOLOGY, topology)),
        also: Some((TCP_SHARED_MEMORY, "off")),
        ranks: RankCounts::All,
        calls: 500,
        deadline: Duration::from_secs(60),
        opt_in: false,
        excuses: &[],
    }
}

/// Sockets between hosts and memory inside them, with the ranks spread in this way.
const fn tcp_hosts(arrangement: &'static str, ranks: &'static [usize]) -> BackendRow {
    BackendRow {
        setting: Some((HOSTS, arrangement)),
        also: None,
        ranks: RankCounts::Only(ranks, "as many as show every kind of host"),
        ..tcp("auto")
    }
}

/// The table.
pub const BACKENDS: &[BackendRow] = &[
    BackendRow {
        backend: "local",
        setting: None,
        also: None,
        ranks: RankCounts::Only(&[1], "a world of one"),
        calls: 10_000,
        deadline: Duration::from_secs(60),
        opt_in: false,
        excuses: &[Excuse {
            contract: "abort/later-calls",
            reason: "there is no other rank whose call could fail, and later calls go on",
        }],
    },
    BackendRow {
        backend: "shm",
        setting: None,
        also: None,
        ranks: RankCounts::All,
        calls: 2000,
        deadline: Duration::from_secs(60),
        opt_in: false,
        excuses: &[],
    },
    tcp("auto"),
    tcp("star"),
    tcp("ring"),
    tcp_hosts(ONE_HOST, &[3]),
    tcp_hosts(HOSTS_IN_A_ROW, &[4, 5]),
    tcp_hosts(HOSTS_INTERLEAVED, &[7]),
    tcp_hosts(HOSTS_UNEVEN, &[5]),
    BackendRow {
        backend: "mpi",
        setting: None,
        also: None,
        ranks: RankCounts::Only(
            &[1, 2, 3, 4],
            "MPICH spins: more ranks than processors take minutes",
        ),
        calls: 50,
        deadline: Duration::from_secs(120),
        opt_in: true,
        excuses: &ENDS_THE_JOB,
    },
];

/// On mpi a rank that gives up ends the whole job, as MPI prescribes; `mpi_loss` tests that.
const ENDS_THE_JOB: [Excuse; 10] = [
    ends_the_job("abort/later-calls"),
    ends_the_job("abort/barrier"),
    ends_the_job("abort/allreduce"),
    ends_the_job("abort/long-allreduce"),
    ends_the_job("abort/broadcast"),
    ends_the_job("abort/allgatherv"),
    ends_the_job("abort/gatherv"),
    ends_the_job("abort/fence"),
    ends_the_job("abort/create-region"),
    ends_the_job("abort/split-local"),
];

const fn ends_the_job(contract: &'static str) -> Excuse {
    Excuse {
        contract,
        reason: "MPI ends the whole job; see the tests of mpi_loss",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Contract;

    #[test]
    fn every_backend_of_this_build_has_its_row() {
        for name in cobre_comm::available_backends() {
            assert!(BACKENDS.iter().any(|row| row.backend == name), "{name}");
        }
    }

    #[test]
    fn excuses_are_for_contracts_that_exist() {
        for excuse in BACKENDS.iter().flat_map(|row| row.excuses) {
            assert!(Contract::find(excuse.contract).is_some(), "{excuse:?}");
        }
    }
}
