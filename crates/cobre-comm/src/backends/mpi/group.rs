//! A communicator of MPI with its nodes, and what was made on it.
//!
//! Windows and communicators of MPI are freed by all ranks together, while regions and splits are
//! dropped by each rank when it likes. So a group keeps what is made on it until all ranks have
//! dropped it, which they find out when the next one is made, and frees it on all ranks in the
//! order in which it was made.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ferrompi::Communicator as Comm;

use super::calls::{self, Calls};
use super::sys::Window;
use crate::arguments::RegionParts;

/// Most regions and splits at a time; the MPI layer has room for a few more.
pub(super) const MOST_CHILDREN: usize = 240;
/// Words with a bit for each child.
pub(super) const WORDS: usize = MOST_CHILDREN.div_ceil(64);

/// Fields are dropped in this order, on all ranks of the group at the same point.
pub(super) struct Group {
    children: Mutex<Vec<Child>>,
    /// On each node's leader, where there are several nodes: the leaders.
    pub(super) leaders: Option<Calls>,
    /// The ranks of this node; `None` if that is all of them.
    node: Option<Calls>,
    /// The node of each rank, by its leader's number among the leaders.
    nodes: Vec<usize>,
    pub(super) all: Calls,
}

/// Something that all ranks of a group made together.
pub(super) enum Child {
    Window(Arc<Window>),
    Split(Arc<Group>),
}

impl Child {
    /// True if nobody in this process uses it any more.
    fn is_idle(&mut self) -> bool {
        match self {
            Self::Window(window) => Arc::get_mut(window).is_some(),
            Self::Split(group) => Arc::get_mut(group).is_some(),
        }
    }

    /// Windows and communicators that it stands for.
    fn weight(&self) -> usize {
        match self {
            Self::Window(_) => 1,
            Self::Split(group) => 1 + group.weight(),
        }
    }
}

impl Group {
    /// Finds the nodes of `comm`. Collective.
    pub(super) fn new(comm: Comm) -> ferrompi::Result<Self> {
        let node = comm.split_shared()?;
        let crowded = calls::is_crowded(&comm, &node)?;
        let mut group = Self {
            children: Mutex::default(),
            leaders: None,
            node: None,
            nodes: Vec::new(),
            all: Calls::new(comm, crowded)?,
        };
        let comm = &group.all.comm;
        // All ranks see the same: a node of all ranks is everybody's only node.
        if node.size() < comm.size() {
            let leads = (node.rank() == 0).then_some(0);
            let leaders = comm.split(leads, comm.rank())?;
            let mut number = [leaders.as_ref().map_or(0, |leaders| leaders.rank() as u64)];
            node.broadcast(&mut number, 0)?;
            let mut nodes = vec![0; comm.size() as usize];
            comm.allgather(&number, &mut nodes)?;
            group.nodes = nodes.iter().map(|&number| number as usize).collect();
            group.leaders = leaders
                .map(|leaders| Calls::new(leaders, crowded))
                .transpose()?;
            group.node = Some(Calls::new(node, crowded)?);
        }
        Ok(group)
    }

    /// The ranks of this node.
    pub(super) fn node(&self) -> &Calls {
        self.node.as_ref().unwrap_or(&self.all)
    }

    pub(super) fn several_nodes(&self) -> bool {
        self.node.is_some()
    }

    /// The blocks that leaders gather, one per node and round, to have all `parts` on every node.
    pub(super) fn rounds<T>(&self, parts: &RegionParts) -> Vec<Vec<Range<usize>>> {
        if self.several_nodes() {
            rounds(&self.nodes, |rank| {
                let part = parts.range(rank);
                part.start * size_of::<T>()..part.end * size_of::<T>()
            })
        } else {
            Vec::new()
        }
    }

    /// Keeps what was just made until all ranks have dropped it.
    pub(super) fn keep(&self, child: Child) {
        self.locked().push(child);
    }

    /// A bit for each child that this process does not use any more.
    pub(super) fn idle(&self) -> [u64; WORDS] {
        let mut bits = [0; WORDS];
        for (number, child) in self.locked().iter_mut().enumerate() {
            bits[number / 64] |= u64::from(child.is_idle()) << (number % 64);
        }
        bits
    }

    /// Frees the children whose bit is set. Collective: all ranks pass the same bits.
    pub(super) fn free(&self, bits: [u64; WORDS]) {
        let mut number = 0;
        let mut idle = |_: &mut Child| {
            let freed = bits[number / 64] >> (number % 64) & 1 == 1;
            number += 1;
            freed
        };
        let freed: Vec<Child> = self.locked().extract_if(.., &mut idle).collect();
        // Without the lock: it waits for other ranks.
        drop(freed);
    }

    /// Windows and communicators that exist because of this group, but for its own.
    pub(super) fn weight(&self) -> usize {
        self.locked().iter().map(Child::weight).sum()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One round if the parts of each node lie side by side; else one part of each node per round.
fn rounds(nodes: &[usize], bytes: impl Fn(usize) -> Range<usize>) -> Vec<Vec<Range<usize>>> {
    let count = nodes.iter().max().map_or(0, |last| last + 1);
    let members = |node: usize| (0..nodes.len()).filter(move |&rank| nodes[rank] == node);
    let side_by_side = nodes.is_sorted();
    let longest = (0..count).map(|node| members(node).count()).max();
    let whole = |node| {
        let start = members(node).map(|rank| bytes(rank).start).min();
        let end = members(node).map(|rank| bytes(rank).end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    };
    if side_by_side {
        return vec![(0..count).map(whole).collect()];
    }
    let round = |number| {
        let part = |node| members(node).nth(number).map_or(0..0, &bytes);
        (0..count).map(part).collect()
    };
    (0..longest.unwrap_or(0)).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_lie_side_by_side_are_gathered_in_one_round() {
        let found = rounds(&[0, 0, 1, 1], |rank| rank * 10..rank * 10 + 10);
        assert_eq!(found, [[0..20, 20..40]]);
    }

    #[test]
    fn ranks_dealt_out_in_turn_are_gathered_one_by_one() {
        let found = rounds(&[0, 1, 0, 1, 0], |rank| rank * 10..rank * 10 + 10);
        assert_eq!(found, [[0..10, 10..20], [20..30, 30..40], [40..50, 0..0]]);
    }

    #[test]
    fn every_part_is_gathered_exactly_once() {
        for nodes in [vec![0, 0, 0], vec![0, 1, 1, 0], vec![1, 0, 2, 2, 1, 0, 0]] {
            let mut seen = vec![0; nodes.len()];
            for block in rounds(&nodes, |rank| rank..rank + 1).concat() {
                block.for_each(|place| seen[place] += 1);
            }
            assert_eq!(seen, vec![1; nodes.len()], "{nodes:?}");
        }
    }
}
