//! The tables that solvers look cuts up in: once per node of the machine, apart from the latest blocks.
//!
//! Every rank computes every cut and appends it to its own latest blocks. Whole blocks are published in segments,
//! shared regions that grow with the number of cuts: the leader of a node fills one after an iteration, and ranks read it
//! once a fence after another iteration has succeeded. A partial block stays in memory of each rank.

use cobre_comm::CommError;

use super::cuts::Cuts;
use super::node_table::{BlockRange, CutBlocks, LANES, NodeTable, block_width, write};
use super::records::{LEAST_BYTES, PART};
use crate::ranks::{Backend, DraftTable, Ranks, SharedTable};

/// The tables of all nodes.
pub(super) struct CutTables<C: Backend> {
    /// Numbers per block.
    width: usize,
    nodes: Vec<NodeTable>,
    segments: Vec<SharedTable<C>>,
    draft: Option<DraftSegment<C>>,
}

/// A segment that is written and not yet published.
struct DraftSegment<C: Backend> {
    table: DraftTable<C>,
    /// Node, generation of its table, and blocks.
    parts: Vec<(usize, u64, BlockRange)>,
    /// True if it has the blocks of all segments.
    replaces: bool,
}

impl<C: Backend> CutTables<C> {
    /// Empty tables of so many nodes.
    pub(super) fn new(nodes: usize, states: usize) -> Self {
        Self {
            width: block_width(states),
            nodes: (0..nodes).map(|_| NodeTable::default()).collect(),
            segments: Vec::new(),
            draft: None,
        }
    }

    /// The table of a node, taken out to be changed.
    pub(super) fn take(&mut self, node: usize) -> NodeTable {
        std::mem::take(&mut self.nodes[node])
    }

    /// Puts a table back that was taken out.
    pub(super) fn put(&mut self, node: usize, table: NodeTable) {
        self.nodes[node] = table;
    }

    fn segments(&self) -> Vec<&[f64]> {
        self.segments.iter().map(SharedTable::read).collect()
    }

    /// The table of a node, as solvers read it.
    pub(super) fn view(&self, node: usize) -> CutBlocks<'_> {
        self.nodes[node].view(self.width, &self.segments())
    }

    /// Empty tables take the cuts of `cuts(node)`; the leader of each node of the machine writes their whole blocks. Two
    /// collectives.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(super) fn give<'c>(
        &mut self,
        ranks: &Ranks<'_, C>,
        cuts: impl Fn(usize) -> Cuts<'c>,
    ) -> Result<(), CommError> {
        let width = self.width;
        let mut start = 0;
        let parts = (0..self.nodes.len()).map(|node| {
            let blocks = cuts(node).slots().len() / LANES;
            start += blocks * width;
            BlockRange {
                segment: 0,
                start: start - blocks * width,
                blocks,
            }
        });
        let parts: Vec<BlockRange> = parts.collect();
        let table = ranks.share_table(start, |shared| {
            for (node, part) in parts.iter().enumerate() {
                let cuts = cuts(node);
                let blocks = shared[part.start..].chunks_exact_mut(width);
                for (slots, block) in cuts.slots().chunks_exact(LANES).zip(blocks) {
                    for (lane, &slot) in slots.iter().enumerate() {
                        write(&cuts, slot, lane, block);
                    }
                }
            }
        })?;
        self.segments = vec![table];
        for ((number, node), part) in self.nodes.iter_mut().enumerate().zip(parts) {
            node.give(&cuts(number), part);
        }
        Ok(())
    }

    /// Takes the next step of publication, if one is due: at most one collective. Between iterations; ranks agree on all
    /// cuts.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(super) fn publish(&mut self, ranks: &Ranks<'_, C>) -> Result<(), CommError> {
        if let Some(draft) = self.draft.take() {
            self.finish(draft, ranks)
        } else {
            self.write_draft(ranks)
        }
    }

    /// Publishes a draft. A table whose places have changed since then does not take its part.
    fn finish(&mut self, draft: DraftSegment<C>, ranks: &Ranks<'_, C>) -> Result<(), CommError> {
        let table = ranks.publish(draft.table)?;
        if draft.replaces {
            self.segments.clear();
        }
        self.segments.push(table);
        for (node, generation, part) in draft.parts {
            let node = &mut self.nodes[node];
            if node.generation() == generation {
                node.publish(part, self.width, draft.replaces);
            }
        }
        Ok(())
    }

    /// Writes the whole blocks that are not published to a segment if they are enough for one. If half of all segments is
    /// of no use any more, the new one replaces them.
    fn write_draft(&mut self, ranks: &Ranks<'_, C>) -> Result<(), CommError> {
        let width = self.width;
        let sum = |blocks: fn(&NodeTable) -> usize| -> usize {
            self.nodes.iter().map(|node| blocks(node) * width).sum()
        };
        let (new, live) = (sum(NodeTable::unpublished), sum(NodeTable::published));
        if new < (live / PART).max(LEAST_BYTES / size_of::<f64>()) {
            return Ok(());
        }
        let all = self.segments();
        let replaces = all.iter().map(|segment| segment.len()).sum::<usize>() > 2 * live;
        let (mut parts, mut length) = (Vec::new(), 0);
        for (number, node) in self.nodes.iter().enumerate() {
            let first = if replaces { 0 } else { node.published() };
            let blocks = node.published() + node.unpublished() - first;
            if blocks > 0 {
                let part = BlockRange {
                    segment: if replaces { 0 } else { all.len() },
                    start: length,
                    blocks,
                };
                parts.push((number, node.generation(), part));
                length += blocks * width;
            }
        }
        let table = ranks.draft_table(length, |shared| {
            for (node, _, part) in &parts {
                let node = &self.nodes[*node];
                let first = if replaces { 0 } else { node.published() };
                let into = shared[part.start..][..part.blocks * width].chunks_exact_mut(width);
                for (into, block) in into.zip(node.blocks(width, &all).skip(first)) {
                    into.copy_from_slice(block);
                }
            }
        })?;
        drop(all);
        self.draft = Some(DraftSegment {
            table,
            parts,
            replaces,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cobre_comm::LocalBackend;

    use super::super::cuts::RecordLayout;
    use super::*;
    use crate::problem::StateColumns;

    #[test]
    fn tables_that_lose_cuts_take_few_segments() {
        const CUTS: u32 = 20_000;
        let states = [StateColumns {
            incoming: 0,
            outgoing: 0,
        }];
        let records: Vec<f64> = (0..CUTS)
            .flat_map(|slot| [f64::from(slot), 1.0, 0.0])
            .collect();
        let layout = RecordLayout {
            passes: CUTS as usize,
            width: 3,
            levels: 1,
            given: 0,
        };
        let ranks = Ranks::new(&LocalBackend);
        let mut tables = CutTables::<LocalBackend>::new(2, 1);
        let mut used: [Vec<u32>; 2] = Default::default();
        let (mut most, mut replaced) = (0, 0);
        for slot in 0..CUTS {
            let node = slot as usize % 2;
            used[node].push(slot);
            // One node loses its older half now and then.
            if node == 1 && slot % 2_001 == 0 {
                let half = used[1].len() / 2;
                used[1].drain(..half);
            }
            let slots = (vec![(0, &records[..])], &[0][..]);
            let cuts = Cuts::new(&used[node], (layout, 1), slots, &states);
            let mut table = tables.take(node);
            table.update(&cuts);
            tables.put(node, table);
            let before = tables.segments.len();
            tables.publish(&ranks).expect("one rank");
            most = most.max(tables.segments.len());
            replaced += usize::from(tables.segments.len() < before);
        }
        assert!(most < 20, "{most} segments");
        assert!(replaced > 0, "segments are replaced");
        for (node, used) in used.iter().enumerate() {
            let view = tables.view(node);
            let found = used.iter().map(|&slot| view.place(slot).expect("in use"));
            let found = found.map(|place| view.intercept(place));
            assert!(found.eq(used.iter().map(|&slot| f64::from(slot))));
        }
    }
}
