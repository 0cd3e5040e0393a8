//! Simulation of the trained policy.

use std::sync::Mutex;
use std::time::Instant;

use bytemuck::{Pod, Zeroable};
use serde::Serialize;

use cobre_results::RowGroup;

use crate::error::SddpError;
use crate::events::Observer;
use crate::lp::LpFailure;
use crate::noise::Purpose;
use crate::output::PathTables;
use crate::path::{PathDraws, PathRecorder, PathStep};
use crate::problem::ValidationStep;
use crate::rank_work::{NodeSolvers, PATHS_PER_UNIT, SimulationUnit, Task, TrainingState};
use crate::ranks::{Backend, ByteBlocks};
use crate::team::lock;
use crate::training::Trainer;

/// The most units of a batch per rank.
const MOST_UNITS: usize = 64;
/// The seconds that a batch should take: between batches ranks hear of interrupts.
const BATCH_SECONDS: f64 = 0.25;
/// The bytes of encoded rows that a batch is about, on all ranks together, unless threads would lack work.
const BATCH_BYTES: u64 = 64 << 20;

/// The source of the paths of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Sampling {
    /// The paths of the forward passes that training took, iteration by iteration.
    InSample,
    /// Paths that training has not seen, from the same openings.
    Fresh,
}

impl Sampling {
    /// The name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InSample => "in_sample",
            Self::Fresh => "fresh",
        }
    }
}

/// Takes the encoded rows of simulated paths, on the first rank: unit by unit, table by table.
pub(crate) type Sink<'s> = dyn FnMut(Vec<RowGroup>) -> Result<(), SddpError> + 's;

impl<C: Backend> Trainer<'_, '_, '_, C> {
    /// Simulates `count` sampled paths; every rank gets their values, and `sink` the encoded rows
    /// of every path, in order. `None` if interrupted. Collective.
    pub(crate) fn simulate(
        &mut self,
        count: usize,
        sampling: Sampling,
        observer: &mut dyn Observer,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Vec<f64>>, SddpError> {
        let mut values = Vec::new();
        let take = &mut |batch: &[f64]| {
            values.extend_from_slice(batch);
            observer.simulated(values.len(), count);
            observer.interrupted()
        };
        let task = match sampling {
            Sampling::InSample => Task::Simulate {
                purpose: Purpose::Training,
            },
            Sampling::Fresh => Task::Simulate {
                purpose: Purpose::Simulation,
            },
        };
        let done = self.in_batches(count, PATHS_PER_UNIT, task, take, sink)?;
        Ok(done.then_some(values))
    }

    /// Simulates the validation scenarios; every rank gets their values. Collective.
    pub(crate) fn validate(&mut self) -> Result<Vec<f64>, SddpError> {
        let count = self.work.read().problem.validation.len();
        let mut values = Vec::new();
        let take = &mut |batch: &[f64]| {
            values.extend_from_slice(batch);
            false
        };
        self.in_batches(count, 1, Task::Validate, take, &mut |_| Ok(()))?;
        Ok(values)
    }

    /// Simulates paths and passes their values to `take`, which returns true to interrupt; returns whether
    /// all were simulated.
    fn in_batches(
        &mut self,
        count: usize,
        per_unit: usize,
        task: Task,
        take: &mut dyn FnMut(&[f64]) -> bool,
        sink: &mut Sink<'_>,
    ) -> Result<bool, SddpError> {
        let sign = self.work.read().problem.sense.sign();
        let (mut values, mut first) = (Vec::new(), 0);
        // Paths do not depend on their batch.
        let threads = self.ranks.gather_one(self.team.threads() as u64)?;
        let largest = MOST_UNITS * self.ranks.size();
        let least = (threads.iter().sum::<u64>() as usize).min(largest);
        let mut most = least;
        while first < count {
            let start = Instant::now();
            let batch = (count - first).min(most * per_unit);
            let units = batch.div_ceil(per_unit);
            let of_unit = |unit: usize| {
                let start = first + unit * per_unit;
                start..(start + per_unit).min(first + batch)
            };
            let own = self.ranks.share(units).map(|unit| {
                Mutex::new(SimulationUnit {
                    paths: of_unit(unit),
                    simulator: self.work.simulator(task),
                    row_groups: Ok(Vec::new()),
                })
            });
            *self
                .work
                .simulation
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = own.collect();
            self.run(task)?;
            let mut mine = Vec::new();
            for unit in self.work.simulations().iter() {
                mine.extend(lock(unit).simulator.costs.iter().map(|cost| sign * cost));
            }
            let width = |unit: usize| of_unit(unit).len();
            self.ranks.gather(units, width, &mine, &mut values)?;
            let bytes = self.hand_on(units, sink)?;
            let fitting = BATCH_BYTES * units as u64 / bytes.max(1);
            let by_bytes = usize::try_from(fitting).unwrap_or(usize::MAX).max(least);
            let asked = take(&values);
            first += batch;
            if first < count {
                let Some(by_time) = self.by_time(asked, start, most)? else {
                    return Ok(false);
                };
                most = by_time.clamp(least, 2 * most).min(by_bytes).min(largest);
            }
        }
        Ok(true)
    }

    /// The units of a batch that takes as long as it should, given those of the last one; none if a rank was asked to
    /// end. Collective.
    pub(crate) fn by_time(
        &self,
        asked: bool,
        start: Instant,
        units: usize,
    ) -> Result<Option<usize>, SddpError> {
        let all = self.ranks.gather_one(Batch {
            asked: asked.into(),
            seconds: start.elapsed().as_secs_f64(),
        })?;
        // Of the first rank, as all must take the same.
        let by_time = units as f64 * BATCH_SECONDS / all[0].seconds.max(1e-9);
        Ok(all
            .iter()
            .all(|rank| rank.asked == 0)
            .then_some(by_time as usize))
    }

    /// Passes the encoded rows of a batch to the first rank, in order; returns the bytes of all of them.
    fn hand_on(&self, units: usize, sink: &mut Sink<'_>) -> Result<u64, SddpError> {
        let shared = self.work.read();
        if shared.tables.is_none() {
            return Ok(0);
        }
        let failed = |error: String| {
            let place = shared.failures.join("simulation");
            SddpError::io("write", &place)(std::io::Error::other(error))
        };
        let mut mine = ByteBlocks::default();
        for unit in self.work.simulations().iter() {
            let row_groups = std::mem::replace(&mut lock(unit).row_groups, Ok(Vec::new()));
            mine.push(&row_groups.map_err(|error| failed(error.to_string()))?);
        }
        let lengths = self.ranks.gather_lengths(units, &mine)?;
        let (mut unit, mut left) = (Vec::new(), lengths.iter());
        let mut length = left.next();
        let take = &mut |mut piece: &[u8]| -> Result<(), SddpError> {
            while let Some(&all) = length {
                let missing = (all as usize - unit.len()).min(piece.len());
                let (own, rest) = piece.split_at(missing);
                unit.extend_from_slice(own);
                piece = rest;
                if unit.len() < all as usize {
                    break;
                }
                let row_groups = postcard::from_bytes(&unit);
                sink(row_groups.map_err(|error| failed(error.to_string()))?)?;
                unit.clear();
                length = left.next();
            }
            Ok(())
        };
        self.ranks.gather_to_first(&lengths, &mine, take)?;
        Ok(lengths.iter().sum())
    }
}

/// A batch of a rank: whether it was asked to end, and the time it took.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Batch {
    asked: u64,
    seconds: f64,
}

impl SimulationUnit {
    /// Simulates its sampled paths; returns also the path that failed.
    pub(crate) fn run<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        draws: PathDraws,
    ) -> (Result<(), Box<LpFailure>>, usize) {
        let tables = shared.tables.as_ref();
        let mut rows = tables.map(PathTables::rows).unwrap_or_default();
        for path in self.paths.clone() {
            let at = (path / draws.passes, path % draws.passes);
            let mut recorder = tables.map(|tables| PathRecorder {
                tables,
                rows: &mut rows,
                scenario: path + 1,
                start_date: String::new(),
                label: shared.problem.path_label(draws.seed, draws.purpose, path),
            });
            let given = shared.problem.given.get(path);
            let given = given.filter(|_| draws.purpose == Purpose::Simulation);
            let (simulator, recorder) = (&mut self.simulator, recorder.as_mut());
            let walked = match given {
                Some(given) => {
                    simulator.discounts();
                    simulator.simulate(shared, solvers, replay(&given.steps), recorder)
                }
                None => simulator.sample(shared, solvers, draws, at, recorder),
            };
            if walked.is_err() {
                return (walked, path);
            }
        }
        self.row_groups = tables.map_or(Ok(Vec::new()), |tables| tables.row_groups(&rows));
        // The warm starts of a unit are of no use to others, and a batch has many units.
        self.simulator.warm_starts = Vec::new();
        (Ok(()), self.paths.end)
    }

    /// Simulates its validation scenario.
    pub(crate) fn validate<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
    ) -> (Result<(), Box<LpFailure>>, usize) {
        let scenario = self.paths.start;
        let next = replay(&shared.problem.validation[scenario]);
        (
            self.simulator.simulate(shared, solvers, next, None),
            scenario,
        )
    }
}

/// The steps of a path that is known.
fn replay(steps: &[ValidationStep]) -> impl FnMut(Option<usize>) -> Option<PathStep> {
    let mut steps = steps.iter();
    move |_| {
        steps.next().map(|step| PathStep {
            node: step.node,
            opening: step.opening,
            given: None,
        })
    }
}
