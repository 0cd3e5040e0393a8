//! A job and what happens to it, drawn from a seed.

use std::time::Duration;

use super::network::{NO_ROOM, Properties};
use super::random::SeededRandom;
use crate::env::TcpTopology;

/// Elements above which a collective goes directly from rank to rank.
const LARGE: usize = 64 * 1024 / 8;
/// Steps within which most jobs are over, over sockets and by hosts: faults come before.
const STEPS: usize = 1500;
const HOST_STEPS: usize = 4000;
/// Steps that the choice of a topology takes besides, where more than two hosts make it.
const CHOICE_STEPS: usize = 2500;
/// A partition of this length ends no job.
const SHORT: u64 = 1000;

/// A collective of the program that all ranks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedCall {
    Barrier,
    Allreduce(usize),
    Broadcast {
        root: usize,
        length: usize,
    },
    Allgatherv(usize),
    Gatherv {
        root: usize,
        length: usize,
    },
    /// A partitioned region and one that leaders write: made, written, read.
    Region(usize),
    LeaderRegion(usize),
    /// A communicator of each host, and a sum in it.
    Split,
}

/// Something that a rank does by itself in place of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Another call than the others make.
    OtherCall,
    Abort,
    Panic,
    Leave,
}

/// A fault of a process, a host or the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobFault {
    Kill(usize),
    /// The kernel's mark of a dead rank; it follows a kill.
    Mark(usize),
    /// The host of this rank.
    LoseHost(usize),
    Stop(usize, Duration),
    /// From the host of the first to that of the second, and back if the third is true; for ever if there is no time.
    Block(usize, usize, bool, Option<Duration>),
    Unblock(usize, usize),
    /// Any one connection breaks at both ends.
    Break(usize),
}

/// The instant of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    Step(u64),
    Time(Duration),
}

/// A job.
#[derive(Debug, Clone)]
pub(super) struct JobPlan {
    pub(super) seed: u64,
    pub(super) size: usize,
    /// The host of each rank.
    pub(super) hosts: Vec<usize>,
    /// True if ranks of one host share memory, and one that cannot map it.
    pub(super) shares_memory: bool,
    pub(super) unmapped: Option<usize>,
    pub(super) topology: TcpTopology,
    /// True if ranks learn from queues of events which sockets have news.
    pub(super) has_event_queues: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) properties: Properties,
    pub(super) calls: Vec<PlannedCall>,
    /// Pauses for computing: before which call, on which rank, for how long.
    pub(super) pauses: Vec<(usize, usize, Duration)>,
    /// Before which call, which rank, and what.
    pub(super) act: Option<(usize, usize, Act)>,
    pub(super) faults: Vec<(Trigger, JobFault)>,
}

/// Most ranks of a job by hosts, and of one in eight such jobs; most hosts, and most ranks of one.
const MOST_RANKS: usize = 8;
const MANY_RANKS: usize = 16;
const MOST_HOSTS: usize = 4;
const MOST_HERE: usize = 4;

/// The host of each rank: numbered in a row, in turn, or anyhow.
fn draw_hosts(random: &mut SeededRandom) -> Vec<usize> {
    let mut places: Vec<(usize, usize)> = Vec::new();
    for host in 0..=random.below(MOST_HOSTS) {
        places.extend((0..=random.below(MOST_HERE)).map(|place| (host, place)));
    }
    let has_many = random.once_in(8);
    places.truncate(if has_many { MANY_RANKS } else { MOST_RANKS });
    if places.len() == 1 {
        places.push((random.below(2), 1));
    }
    match random.below(3) {
        0 => {}
        1 => places.sort_unstable_by_key(|(host, place)| (*place, *host)),
        _ => (1..places.len()).for_each(|at| places.swap(at, random.below(at + 1))),
    }
    places.into_iter().map(|(host, _)| host).collect()
}

impl JobPlan {
    /// A job in which every rank is a host.
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let size = 2 + random.below(4);
        Self::draw(seed, &mut random, (0..size).collect(), false)
    }

    /// A job of hosts whose ranks share memory.
    pub(super) fn by_hosts(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed ^ (1 << 63));
        let hosts = draw_hosts(&mut random);
        Self::draw(seed, &mut random, hosts, true)
    }

    fn draw(seed: u64, random: &mut SeededRandom, hosts: Vec<usize>, shares_memory: bool) -> Self {
        let size = hosts.len();
        let is_large = random.once_in(3);
        let kinds = if shares_memory { 9 } else { 6 };
        let calls: Vec<PlannedCall> = (0..=random.below(8))
            .map(|_| call(random, size, is_large, kinds))
            .collect();
        let properties = Properties {
            delay: random.pick(&[50, 500, 5_000, 60_000].map(Duration::from_micros)),
            send_room: random.pick(&[3_000, 20_000, 512 * 1024]),
            receive_room: random.pick(&[2_000, 20_000, 512 * 1024]),
            is_choppy: random.once_in(2),
        };
        let mut topologies = [TcpTopology::Auto, TcpTopology::Auto, TcpTopology::Star];
        if shares_memory && random.once_in(4) {
            topologies.fill(TcpTopology::Ring);
        }
        let pauses = (0..random.below(3)).map(|_| {
            let call = random.below(calls.len());
            (call, random.below(size), random.millis(1, 8_000))
        });
        let mut plan = Self {
            seed,
            size,
            hosts,
            shares_memory,
            unmapped: None,
            pauses: pauses.collect(),
            topology: random.pick(&topologies),
            has_event_queues: seed % 2 == 1,
            timeout: None,
            properties,
            act: None,
            faults: Vec::new(),
            calls,
        };
        if shares_memory {
            plan.draw_faults_of_hosts(random);
        } else {
            plan.draw_faults(random);
        }
        plan
    }

    /// The time that the data of all calls may take one after the other, where buffers are small and delays are long.
    pub(super) fn transfer_time(&self) -> Duration {
        let elements = self.calls.iter().map(|call| match *call {
            PlannedCall::Barrier | PlannedCall::Split => 0,
            PlannedCall::Allreduce(length)
            | PlannedCall::Broadcast { length, .. }
            | PlannedCall::Allgatherv(length)
            | PlannedCall::Gatherv { length, .. }
            | PlannedCall::Region(length)
            | PlannedCall::LeaderRegion(length) => length + self.size,
        });
        let bytes = 8 * self.size * elements.sum::<usize>();
        let room = self.properties.send_room.min(self.properties.receive_room);
        (self.properties.delay + NO_ROOM) * 2 * (bytes / room) as u32
    }

    fn draw_faults(&mut self, random: &mut SeededRandom) {
        match random.below(20) {
            0 | 1 => {}
            2..5 => self.add_act(random),
            5..17 => self.add_fault(random),
            17 | 18 => {
                self.add_fault(random);
                self.add_fault(random);
            }
            _ => self.add_deadline(random),
        }
    }

    /// As [`draw_faults`](Self::draw_faults), with two deaths at once and ranks that cannot map memory.
    fn draw_faults_of_hosts(&mut self, random: &mut SeededRandom) {
        match random.below(20) {
            0 | 1 => {}
            2..5 => self.add_act(random),
            5..13 => self.add_fault(random),
            13..16 => self.add_deaths(random),
            16 => {
                self.add_fault(random);
                self.add_fault(random);
            }
            17 | 18 => {
                self.unmapped = Some(random.below(self.size));
                self.add_fault(random);
            }
            _ => self.add_deadline(random),
        }
    }

    /// Deaths at one instant: of a rank, every other time one that leads its host, and of another rank or a whole host.
    fn add_deaths(&mut self, random: &mut SeededRandom) {
        let at = self.trigger(random);
        let mut first = random.below(self.size);
        if random.once_in(2) {
            first = self.leader(first);
        }
        let others = self.others(first, random.once_in(3));
        self.faults.push((at, JobFault::Kill(first)));
        if others.is_empty() {
            return;
        }
        let second = random.pick(&others);
        self.faults.push(match random.below(4) {
            0 => (at, JobFault::LoseHost(second)),
            1 => (at, JobFault::Kill(self.leader(second))),
            _ => (at, JobFault::Kill(second)),
        });
    }

    /// The rank that leads the host of `rank`.
    fn leader(&self, rank: usize) -> usize {
        let mut ranks = 0..self.size;
        let leader = ranks.find(|&other| self.hosts[other] == self.hosts[rank]);
        leader.unwrap_or(rank)
    }

    fn add_act(&mut self, random: &mut SeededRandom) {
        let act = [Act::OtherCall, Act::Abort, Act::Panic, Act::Leave];
        let call = random.below(self.calls.len());
        self.act = Some((call, random.below(self.size), random.pick(&act)));
    }

    fn add_deadline(&mut self, random: &mut SeededRandom) {
        let trigger = self.trigger(random);
        self.timeout = Some(random.millis(4_000, 10_000));
        let stop = JobFault::Stop(random.below(self.size), Duration::from_secs(60));
        self.faults.push((trigger, stop));
    }

    /// The ranks of the same host, or of others, beginning after `rank`.
    fn others(&self, rank: usize, of_same_host: bool) -> Vec<usize> {
        let others = (1..self.size).map(|step| (rank + step) % self.size);
        let host = |rank: usize| self.hosts[rank];
        let fits = |other: &usize| (host(*other) == host(rank)) == of_same_host;
        others.filter(fits).collect()
    }

    fn trigger(&self, random: &mut SeededRandom) -> Trigger {
        let steps = if self.shares_memory {
            HOST_STEPS
        } else {
            STEPS
        };
        let chooses = self.topology == TcpTopology::Auto && self.hosts.iter().any(|&it| it > 1);
        let steps = if chooses { steps + CHOICE_STEPS } else { steps };
        if random.once_in(4) {
            Trigger::Time(random.millis(0, 3_000))
        } else {
            Trigger::Step(random.below(steps) as u64)
        }
    }

    fn add_fault(&mut self, random: &mut SeededRandom) {
        let rank = random.below(self.size);
        let others = self.others(rank, false);
        let choice = random.below(others.len());
        let other = others.get(choice).copied();
        let fault = match (random.below(12), other) {
            (0..3, _) | (6..10, None) => JobFault::Kill(rank),
            (3, _) => JobFault::LoseHost(rank),
            (4, _) => JobFault::Stop(rank, random.millis(10, 3_000)),
            (5, _) => JobFault::Stop(rank, random.millis(3_000, 100_000)),
            (kind @ 6..8, Some(other)) => {
                let time = random.millis(1, SHORT);
                JobFault::Block(rank, other, kind == 6, Some(time))
            }
            (kind @ 8..10, Some(other)) => JobFault::Block(rank, other, kind == 9, None),
            _ => JobFault::Break(random.below(1000)),
        };
        let trigger = self.trigger(random);
        self.faults.push((trigger, fault));
    }
}

fn call(random: &mut SeededRandom, size: usize, is_large: bool, kinds: usize) -> PlannedCall {
    let length = if is_large && random.once_in(2) {
        LARGE / 4 + random.below(3 * LARGE)
    } else {
        random.pick(&[0, 1, 2, 100])
    };
    let root = random.below(size);
    match random.below(kinds) {
        0 => PlannedCall::Barrier,
        1 => PlannedCall::Broadcast { root, length },
        2 => PlannedCall::Allgatherv(length),
        3 => PlannedCall::Gatherv { root, length },
        6 => PlannedCall::Region(length),
        7 => PlannedCall::LeaderRegion(length),
        8 => PlannedCall::Split,
        _ => PlannedCall::Allreduce(length.max(1)),
    }
}
