//! The part of a wait before a rank sleeps: it looks again, then lets others run. MPI
//! libraries do this by themselves.

use crate::cpus;

/// Looks before a rank lets others run, where every rank has a processor.
const SPINS: u32 = 2000;
/// Looks with a yield between them, where every rank has a processor.
const YIELDS: u32 = 1000;

/// Number of looks before a waiting rank sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spin {
    /// Looks one after the other.
    pub(super) spins: u32,
    /// Looks between which other processes may run.
    pub(super) yields: u32,
}

impl Spin {
    /// Spins when every rank has a processor. When `crowded` it yields at once, `yields` times: a
    /// spinning rank would keep the one it waits for from running.
    pub(super) fn new(crowded: bool, yields: u32) -> Self {
        if crowded {
            Self { spins: 0, yields }
        } else {
            Self {
                spins: SPINS,
                yields: YIELDS,
            }
        }
    }
}

/// Moves each rank to its share of the processors once: left where they were started, one core may
/// hold two ranks that spin for each other.
pub(super) fn spread(rank: usize, size: usize, cpus: &[usize]) {
    if size > 1 && !cpus.is_empty() {
        cpus::visit(cpus[rank % cpus.len()]);
    }
}
