//! The numbers of all cuts: the latest in memory of this rank, older ones once per node.
//!
//! Every rank computes every cut, so new ones need no exchange. They are published in segments, shared regions
//! that grow with the number of cuts, in the background of training: one collective per iteration at most.

use cobre_comm::CommError;

use super::cuts::{RecordLayout, record_width};
use super::pool::NewCut;
use super::stored::StoredCut;
use crate::problem::Problem;
use crate::ranks::{Backend, DraftTable, Ranks, SharedTable};

/// The least bytes of a segment.
pub(super) const LEAST_BYTES: usize = 1 << 16;
/// Unpublished cuts are a segment once they are this part of the published ones: the number of segments is
/// logarithmic in the number of cuts.
pub(super) const PART: usize = 4;

/// The numbers of all cuts, iteration by iteration.
pub(super) struct CutRecords<C: Backend> {
    layout: RecordLayout,
    segments: Vec<SharedTable<C>>,
    /// The first iteration of each segment, and of the unpublished records.
    starts: Vec<usize>,
    /// By iteration, its segment; unpublished ones come after all.
    places: Vec<u8>,
    /// A segment that is written and not yet published: a copy of the first unpublished records.
    draft: Option<(usize, DraftTable<C>)>,
    /// The records that are not published.
    unpublished: Vec<f64>,
}

impl<C: Backend> CutRecords<C> {
    /// No records, of so many passes per iteration. In a cyclic graph an iteration has as many cuts as its paths have
    /// visits, and every cut stands for an iteration of its own, of one pass and one level.
    pub(super) fn new(problem: &Problem, passes: usize) -> Self {
        let cyclic = problem.graph.is_cyclic();
        Self {
            layout: RecordLayout {
                passes: if cyclic { 1 } else { passes },
                width: record_width(problem.states.len()),
                // Nothing follows the leaves, at level 0.
                levels: problem.graph.depth().saturating_sub(1),
                given: 0,
            },
            segments: Vec::new(),
            starts: vec![0],
            places: Vec::new(),
            draft: None,
            unpublished: Vec::new(),
        }
    }

    pub(super) fn layout(&self) -> RecordLayout {
        self.layout
    }

    /// Iterations that have room.
    pub(super) fn iterations(&self) -> usize {
        self.places.len()
    }

    /// The records of each segment, and the segment of each iteration.
    pub(super) fn segments(&self) -> (Vec<(usize, &[f64])>, &[u8]) {
        let published = self.segments.iter().map(SharedTable::read);
        let all = published.chain([&self.unpublished[..]]);
        let starts = self.starts.iter().copied();
        (starts.zip(all).collect(), &self.places)
    }

    /// Bytes of all records.
    pub(super) fn bytes(&self) -> usize {
        let (layout, given) = (self.layout, self.layout.given);
        let trained = (self.iterations() - given) * layout.iteration();
        (given * layout.of(0).iteration() + trained) * size_of::<f64>()
    }

    /// Makes room for the slots of an iteration that is not published.
    pub(super) fn reserve(&mut self, iteration: usize) {
        let start = self.starts[self.segments.len()];
        let end = (iteration + 1 - start) * self.layout.iteration();
        if self.unpublished.len() < end {
            self.unpublished.resize(end, 0.0);
            self.places.resize(iteration + 1, self.segments.len() as u8);
        }
    }

    /// Writes a cut to a slot of an iteration that is not published, at a level.
    pub(super) fn write(&mut self, level: usize, slot: u32, cut: &NewCut) {
        let (slot, passes) = (slot as usize, self.layout.passes);
        let (iteration, pass) = (slot / passes, slot % passes);
        self.reserve(iteration);
        let start = self.starts[self.segments.len()];
        let at = self.layout.place(iteration - start, level, pass);
        let record = &mut self.unpublished[at..at + self.layout.width];
        record[0] = cut.intercept;
        record[1..=cut.gradient.len()].copy_from_slice(&cut.gradient);
        record[1 + cut.gradient.len()..].copy_from_slice(&cut.point);
    }

    /// The records of the first `slots` slots of empty records, of the cuts that the leader of each node of the machine
    /// has: `fill` gives each by its level, its slot and its numbers. They have no trial points. Two collectives.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(super) fn give(
        &mut self,
        ranks: &Ranks<'_, C>,
        slots: usize,
        fill: impl FnOnce(&mut dyn FnMut(usize, u32, &StoredCut)),
    ) -> Result<(), CommError> {
        let iterations = slots.div_ceil(self.layout.passes);
        self.layout.given = iterations;
        let layout = self.layout.of(0);
        let table = ranks.share_table(iterations * layout.iteration(), |shared| {
            fill(&mut |level, slot, cut| {
                let (slot, passes) = (slot as usize, layout.passes);
                let place = layout.place(slot / passes, level, slot % passes);
                let record = &mut shared[place..place + layout.width];
                record[0] = cut.intercept;
                record[1..].copy_from_slice(&cut.gradient);
            });
        })?;
        self.segments.push(table);
        self.starts.push(iterations);
        self.places = vec![0; iterations];
        Ok(())
    }

    /// Takes the next step of publication, if one is due: at most one collective, and whether there was one. Between iterations; ranks
    /// agree on all records.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(super) fn publish(&mut self, ranks: &Ranks<'_, C>) -> Result<bool, CommError> {
        let published = self.starts[self.segments.len()];
        if let Some((iterations, draft)) = self.draft.take() {
            self.segments.push(ranks.publish(draft)?);
            let end = published + iterations;
            self.starts.push(end);
            self.places[end..].fill(self.segments.len() as u8);
            self.unpublished
                .drain(..iterations * self.layout.iteration());
            self.unpublished.shrink_to(2 * self.unpublished.len());
            return Ok(true);
        }
        let least =
            (published * self.layout.iteration() / PART).max(LEAST_BYTES / size_of::<f64>());
        if self.unpublished.len() >= least && self.segments.len() < usize::from(u8::MAX) {
            let records = &self.unpublished;
            let draft =
                ranks.draft_table(records.len(), |shared| shared.copy_from_slice(records))?;
            self.draft = Some((self.iterations() - published, draft));
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use cobre_comm::LocalBackend;

    use super::*;

    #[test]
    fn a_million_iterations_take_few_segments() {
        let layout = RecordLayout {
            passes: 1,
            width: 3,
            levels: 1,
            given: 0,
        };
        let mut records = CutRecords::<LocalBackend> {
            layout,
            segments: Vec::new(),
            starts: vec![0],
            places: Vec::new(),
            draft: None,
            unpublished: Vec::new(),
        };
        let ranks = Ranks::new(&LocalBackend);
        for iteration in 0..1_000_000_u32 {
            let cut = NewCut {
                pass: 0,
                visit: 0,
                node: 0,
                intercept: f64::from(iteration),
                gradient: vec![1.0],
                point: vec![-1.0],
            };
            records.write(1, iteration, &cut);
            records.publish(&ranks).expect("one rank");
        }
        let count = records.segments.len();
        assert!((20..40).contains(&count), "{count}");
        let (segments, places) = records.segments();
        for iteration in (0..1_000_000).step_by(997).chain([999_999]) {
            let (start, numbers) = segments[usize::from(places[iteration])];
            let at = layout.place(iteration - start, 1, 0);
            assert_eq!(numbers[at..at + 3], [iteration as f64, 1.0, -1.0]);
        }
    }
}
