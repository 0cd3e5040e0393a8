//! The cuts in use at one node in blocks of lanes, as solvers look them up.

use super::cuts::Cuts;

/// Cuts per block.
pub(crate) const LANES: usize = 8;
/// The intercept that fills up a block.
pub(crate) const NO_CUT: f64 = -1e300;
const NONE: u32 = u32::MAX;
/// A table is made anew once more than this part of its places has no cut.
const MOST_HOLES: usize = 4;

/// Numbers per block of cuts on so many states: intercepts, and then slopes state by state.
pub(super) fn block_width(states: usize) -> usize {
    (1 + states) * LANES
}

/// Consecutive blocks of a node in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRange {
    pub(super) segment: usize,
    /// The place of the first number.
    pub(super) start: usize,
    pub(super) blocks: usize,
}

/// The cuts in use at a node, in their order, each with a place that it keeps. A cut that is dropped leaves a hole, so
/// blocks never change once all their places are taken.
#[derive(Debug, Default)]
pub(super) struct NodeTable {
    /// By place, the slot of its cut.
    slots: Vec<u32>,
    /// By slot, its place.
    places: Vec<u32>,
    /// Places whose cut is dropped.
    holes: Vec<u32>,
    /// The blocks that are published, in order, and their number.
    parts: Vec<BlockRange>,
    published: usize,
    /// The blocks after those; the last may be partial.
    latest: Vec<f64>,
    /// The largest magnitude of intercepts, and of the slopes of each state, of the cuts in use.
    largest: Vec<f64>,
    /// The number of times that places have changed.
    generation: u64,
}

impl NodeTable {
    /// Changes the table to the cuts in use: those that were before and still are, in their order, and then others.
    pub(super) fn update(&mut self, cuts: &Cuts<'_>) {
        let used = cuts.slots();
        let kept = self.keep(used);
        if self.holes.len() * MOST_HOLES > self.slots.len() {
            self.clear();
            self.append(cuts, used);
            return;
        }
        self.append(cuts, &used[kept..]);
    }

    /// Marks the cuts that are not in use any more as dropped; returns the number of those that are.
    fn keep(&mut self, used: &[u32]) -> usize {
        let mut kept = 0;
        let before = self.holes.len();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if *slot == NONE {
                continue;
            }
            if used.get(kept) == Some(slot) {
                kept += 1;
            } else {
                self.places[*slot as usize] = NONE;
                *slot = NONE;
                self.holes.push(place as u32);
            }
        }
        if self.holes.len() > before {
            self.largest.clear();
        }
        kept
    }

    fn clear(&mut self) {
        let generation = self.generation + 1;
        *self = Self {
            generation,
            ..Self::default()
        };
    }

    /// Appends cuts, and finds the largest magnitudes.
    fn append(&mut self, cuts: &Cuts<'_>, slots: &[u32]) {
        let width = block_width(cuts.states());
        for &slot in slots {
            let place = self.place_of_new(slot);
            let lane = place % LANES;
            if lane == 0 {
                self.latest.resize(self.latest.len() + width, 0.0);
                let start = self.latest.len() - width;
                self.latest[start..][..LANES].fill(NO_CUT);
            }
            let start = self.latest.len() - width;
            write(cuts, slot, lane, &mut self.latest[start..]);
        }
        let new = if self.largest.is_empty() {
            cuts.slots()
        } else {
            slots
        };
        self.find_largest(cuts, new);
    }

    /// The place of a cut that comes in.
    fn place_of_new(&mut self, slot: u32) -> usize {
        let (place, needed) = (self.slots.len(), slot as usize + 1);
        self.slots.push(slot);
        if self.places.len() < needed {
            self.places.resize(needed, NONE);
        }
        self.places[slot as usize] = place as u32;
        place
    }

    fn find_largest(&mut self, cuts: &Cuts<'_>, slots: &[u32]) {
        self.largest.resize(1 + cuts.states(), 0.0);
        for &slot in slots {
            for (most, number) in self.largest.iter_mut().zip(cuts.numbers(slot)) {
                *most = most.max(number.abs());
            }
        }
    }

    /// An empty table takes these cuts; their whole blocks are published as `part`.
    pub(super) fn give(&mut self, cuts: &Cuts<'_>, part: BlockRange) {
        let (whole, rest) = cuts.slots().split_at(part.blocks * LANES);
        for &slot in whole {
            self.place_of_new(slot);
        }
        self.parts = vec![part];
        self.published = part.blocks;
        self.append(cuts, rest);
    }

    /// Whole blocks that are not published.
    pub(super) fn unpublished(&self) -> usize {
        self.slots.len() / LANES - self.published
    }

    /// Blocks that are published.
    pub(super) fn published(&self) -> usize {
        self.published
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes whole blocks as published: those after the published ones, or all from the first if `segment` replaces all
    /// others.
    pub(super) fn publish(&mut self, part: BlockRange, width: usize, replaces: bool) {
        let new = if replaces {
            self.parts.clear();
            part.blocks - self.published
        } else {
            part.blocks
        };
        self.parts.push(part);
        self.published += new;
        self.latest.drain(..new * width);
        self.latest.shrink_to(2 * self.latest.len());
    }

    /// All blocks, the last of which may be partial.
    pub(super) fn blocks<'a>(
        &'a self,
        width: usize,
        segments: &[&'a [f64]],
    ) -> impl Iterator<Item = &'a [f64]> {
        let published = self.parts.iter().flat_map(move |part| {
            let numbers = &segments[part.segment][part.start..];
            numbers[..part.blocks * width].chunks_exact(width)
        });
        published.chain(self.latest.chunks_exact(width))
    }

    /// The table as solvers read it.
    pub(super) fn view<'a>(&'a self, width: usize, segments: &[&'a [f64]]) -> CutBlocks<'a> {
        let mut blocks = Vec::with_capacity(self.slots.len().div_ceil(LANES));
        blocks.extend(self.blocks(width, segments));
        CutBlocks {
            blocks,
            slots: &self.slots,
            places: &self.places,
            holes: &self.holes,
            largest: &self.largest,
        }
    }
}

/// Writes a cut to a lane of a block.
pub(super) fn write(cuts: &Cuts<'_>, slot: u32, lane: usize, block: &mut [f64]) {
    let numbers = cuts.numbers(slot);
    for (place, number) in block[lane..].iter_mut().step_by(LANES).zip(numbers) {
        *place = *number;
    }
}

/// The table of a node: blocks of [`LANES`] cuts, each with the intercepts and then the slopes state by state.
#[derive(Debug, Clone, Default)]
pub(crate) struct CutBlocks<'a> {
    pub(crate) blocks: Vec<&'a [f64]>,
    slots: &'a [u32],
    places: &'a [u32],
    /// Places whose cut is not in use.
    pub(crate) holes: &'a [u32],
    /// The largest magnitude of intercepts, and of the slopes of each state; empty if there are no cuts.
    pub(crate) largest: &'a [f64],
}

impl CutBlocks<'_> {
    /// The place of a cut, if it is in use.
    pub(crate) fn place(&self, slot: u32) -> Option<usize> {
        let place = self.places.get(slot as usize).copied();
        let place = place.filter(|&place| place != NONE);
        place.map(|place| place as usize)
    }

    /// The slot of the cut at a place.
    pub(crate) fn slot(&self, place: usize) -> u32 {
        self.slots[place]
    }

    /// The slope of the cut at a place for a state.
    #[inline]
    pub(crate) fn slope(&self, place: usize, state: usize) -> f64 {
        self.blocks[place / LANES][(1 + state) * LANES + place % LANES]
    }

    pub(crate) fn intercept(&self, place: usize) -> f64 {
        self.blocks[place / LANES][place % LANES]
    }
}

#[cfg(test)]
mod tests {
    use super::super::cuts::RecordLayout;
    use super::*;
    use crate::problem::StateColumns;

    const STATES: [StateColumns; 2] = [StateColumns {
        incoming: 0,
        outgoing: 0,
    }; 2];

    /// Records of 200 cuts of two states; the intercept is the slot.
    fn records() -> Vec<f64> {
        let record = |slot: u32| [f64::from(slot), -f64::from(slot), 0.5, 7.0, 7.0];
        (0..200).flat_map(record).collect()
    }

    fn cuts<'a>(records: &'a [f64], used: &'a [u32]) -> Cuts<'a> {
        let layout = RecordLayout {
            passes: 200,
            width: 5,
            levels: 1,
            given: 0,
        };
        Cuts::new(used, (layout, 1), (vec![(0, records)], &[0]), &STATES)
    }

    /// Asserts that a table has these cuts and no others, in their order.
    #[track_caller]
    fn assert_has(table: &NodeTable, segments: &[&[f64]], used: &[u32]) {
        let view = table.view(block_width(2), segments);
        let places: Vec<usize> = used
            .iter()
            .map(|&slot| view.place(slot).expect("in use"))
            .collect();
        assert!(places.is_sorted_by(|one, other| one < other), "{places:?}");
        for (&slot, &place) in used.iter().zip(&places) {
            assert_eq!(view.slot(place), slot);
            assert_eq!(view.intercept(place), f64::from(slot));
            assert_eq!(view.slope(place, 0), -f64::from(slot));
            assert_eq!(view.slope(place, 1), 0.5);
        }
        let lanes = view.blocks.iter().flat_map(|block| &block[..LANES]);
        let lanes = lanes.enumerate().filter(|(_, height)| **height != NO_CUT);
        let others = lanes.filter(|(place, _)| !places.contains(place));
        let others: Vec<u32> = others.map(|(place, _)| place as u32).collect();
        let mut holes = view.holes.to_vec();
        holes.sort_unstable();
        assert_eq!(others, holes);
        let most = used.iter().copied().max().map_or(0.0, f64::from);
        assert_eq!(view.largest[..2], [most, most]);
    }

    #[test]
    fn dropped_cuts_leave_holes_until_they_are_many() {
        let records = records();
        let mut table = NodeTable::default();
        let mut used: Vec<u32> = (0..100).collect();
        table.update(&cuts(&records, &used));
        assert_has(&table, &[], &used);
        // The highest is dropped, one comes back later than others, and new ones come in.
        used.retain(|slot| !matches!(slot, 3 | 50 | 99));
        table.update(&cuts(&records, &used));
        assert_has(&table, &[], &used);
        used.extend([120, 50, 121]);
        table.update(&cuts(&records, &used));
        assert_has(&table, &[], &used);
        assert_eq!((table.generation(), table.holes.len()), (0, 3));
        used.retain(|slot| slot % 2 == 1);
        table.update(&cuts(&records, &used));
        assert_has(&table, &[], &used);
        assert_eq!((table.generation(), table.holes.len()), (1, 0));
    }

    #[test]
    fn published_blocks_are_read_in_place() {
        let records = records();
        let width = block_width(2);
        let mut table = NodeTable::default();
        let mut used: Vec<u32> = (0..21).collect();
        table.update(&cuts(&records, &used));
        assert_eq!((table.unpublished(), table.published()), (2, 0));
        let first: Vec<f64> = table
            .blocks(width, &[])
            .take(2)
            .flatten()
            .copied()
            .collect();
        // Cuts come in between a draft and its publication.
        used.extend(21..40);
        table.update(&cuts(&records, &used));
        let part = |segment, blocks| BlockRange {
            segment,
            start: 0,
            blocks,
        };
        table.publish(part(0, 2), width, false);
        assert_has(&table, &[&first], &used);
        assert_eq!(table.latest.len(), 3 * width);
        let all: Vec<f64> = table
            .blocks(width, &[&first])
            .take(4)
            .flatten()
            .copied()
            .collect();
        used.retain(|&slot| slot != 7);
        table.update(&cuts(&records, &used));
        table.publish(part(0, 4), width, true);
        assert_has(&table, &[&all], &used);
        assert_eq!((table.published(), table.latest.len()), (4, width));
    }
}
