//! Placement of ranks on processors: the options, and the masks that they give.

use std::num::NonZeroUsize;

use cobre_launch::{Bind, LaunchError, Topology, processor_list};

use crate::exit;

/// The processors of ranks, as an option of `cobre run` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// As many cores per rank as it has threads.
    CorePerThread,
    Bound(Bind),
}

impl Placement {
    /// Reads the option.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "cores" {
            return Ok(Self::CorePerThread);
        }
        text.parse()
            .map(Self::Bound)
            .map_err(|_| "none, core, cores, cores:K, socket or numa is expected".to_owned())
    }

    /// The binding of ranks with so many threads.
    pub(crate) fn bind(self, threads: NonZeroUsize) -> Bind {
        match self {
            Self::CorePerThread => Bind::Cores(threads),
            Self::Bound(bind) => bind,
        }
    }
}

/// Reads the option of `cobre launch`.
pub(crate) fn bind(text: &str) -> Result<Bind, String> {
    text.parse()
}

/// Prints the processors of each rank, in the name of a command.
pub(crate) fn report(
    name: &str,
    bind: Bind,
    ranks: usize,
    backend: Option<&str>,
) -> Result<(), LaunchError> {
    if backend == Some("mpi") {
        exit::note(name, "the launcher of MPI places the ranks");
        return Ok(());
    }
    let topology = Topology::of_machine();
    let everywhere = processor_list(&cobre_comm::cpus::allowed());
    for (rank, mask) in bind.masks(ranks, &topology)?.iter().enumerate() {
        let nodes = processor_list(&topology.nodes_of(mask));
        let place = if mask.is_empty() {
            format!("any of processors {everywhere}")
        } else {
            format!("processors {} (NUMA node {nodes})", processor_list(mask))
        };
        exit::note(name, &format!("rank {rank}: {place}"));
    }
    Ok(())
}
