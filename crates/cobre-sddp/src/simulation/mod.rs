//! Trying the trained policy on paths.

use std::sync::Mutex;

use crate::error::SddpError;
use crate::events::Observer;
use crate::lp::LpFailure;
use crate::noise::{Noise, Purpose};
use crate::output::{PathTables, Piece};
use crate::path::{PathRecorder, PathSimulator, Paths};
use crate::rank_work::{NodeSolvers, PATHS_PER_UNIT, SimulationUnit, Task, TrainingState};
use crate::ranks::{Backend, ByteBlocks};
use crate::team::lock;
use crate::training::Trainer;

/// Units of one batch: what is gathered and handed on at a time.
const UNITS_PER_BATCH: usize = 64;

/// Which paths the policy is tried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// The paths of the forward passes that training took, iteration by iteration.
    InSample,
    /// Paths that training has not seen, from the same openings.
    Fresh,
}

impl Sampling {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InSample => "in_sample",
            Self::Fresh => "fresh",
        }
    }
}

/// Takes what is written of simulated paths, on the first rank: unit by unit, table by table.
pub(crate) type Sink<'s> = dyn FnMut(Vec<Piece>) -> Result<(), SddpError> + 's;

impl<C: Backend> Trainer<'_, '_, '_, C> {
    /// Walks `count` sampled paths by the policy; every rank gets their values, and `sink` every
    /// path that is written, in order. `None` if someone asked it to end before. Collective.
    pub(crate) fn simulate(
        &mut self,
        count: usize,
        sampling: Sampling,
        observer: &mut dyn Observer,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Vec<f64>>, SddpError> {
        let purpose = match sampling {
            Sampling::InSample => Purpose::Training,
            Sampling::Fresh => Purpose::Simulation,
        };
        let mut costs = Vec::new();
        let problem = self.work.read().problem;
        let sign = problem.sense.sign();
        let take = &mut |paths: &Paths| {
            costs.extend((0..paths.count()).map(|path| sign * paths.cost(problem, path)));
            observer.simulated(costs.len(), count);
            observer.interrupted()
        };
        let task = Task::Simulate { purpose };
        let done = self.in_batches(count, PATHS_PER_UNIT, task, take, sink)?;
        Ok(done.then_some(costs))
    }

    /// Walks the modeller's validation scenarios; every rank gets the paths. Collective.
    pub(crate) fn validate(&mut self) -> Result<Paths, SddpError> {
        let count = self.work.read().problem.validation.len();
        let mut all = Paths::new(self.work.read().problem);
        let take = &mut |paths: &Paths| {
            all.records.extend_from_slice(&paths.records);
            false
        };
        self.in_batches(count, 1, Task::Validate, take, &mut |_| Ok(()))?;
        Ok(all)
    }

    /// Walks paths and hands them to `take`, which says whether this rank is asked to end; whether all
    /// were walked.
    fn in_batches(
        &mut self,
        count: usize,
        per_unit: usize,
        task: Task,
        take: &mut dyn FnMut(&Paths) -> bool,
        sink: &mut Sink<'_>,
    ) -> Result<bool, SddpError> {
        let problem = self.work.read().problem;
        let mut paths = Paths::new(problem);
        let mut first = 0;
        while first < count {
            let batch = (count - first).min(UNITS_PER_BATCH * per_unit);
            let units = batch.div_ceil(per_unit);
            let of_unit = |unit: usize| {
                let start = first + unit * per_unit;
                start..(start + per_unit).min(first + batch)
            };
            let own = self.ranks.share(units).map(|unit| {
                Mutex::new(SimulationUnit {
                    paths: of_unit(unit),
                    simulator: PathSimulator::new(problem),
                    pieces: Ok(Vec::new()),
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
                mine.extend_from_slice(&lock(unit).simulator.record);
            }
            let width = paths.width();
            self.ranks.gather(
                units,
                |unit| width * of_unit(unit).len(),
                &mine,
                &mut paths.records,
            )?;
            self.hand_on(units, sink)?;
            let asked = take(&paths);
            first += batch;
            if first < count && self.any(asked)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the first rank what this batch of units has to write, in order.
    fn hand_on(&self, units: usize, sink: &mut Sink<'_>) -> Result<(), SddpError> {
        let shared = self.work.read();
        if shared.tables.is_none() {
            return Ok(());
        }
        let failed = |error: String| {
            let place = shared.failures.join("simulation");
            SddpError::io("write", &place)(std::io::Error::other(error))
        };
        let mut mine = ByteBlocks::default();
        for unit in self.work.simulations().iter() {
            let pieces = std::mem::replace(&mut lock(unit).pieces, Ok(Vec::new()));
            mine.push(&pieces.map_err(|error| failed(error.to_string()))?);
        }
        let all = self.ranks.gather_bytes(units, &mine)?;
        if !self.ranks.is_first() {
            return Ok(());
        }
        for bytes in all.iter() {
            let pieces = postcard::from_bytes(bytes);
            sink(pieces.map_err(|error| failed(error.to_string()))?)?;
        }
        Ok(())
    }
}

impl SimulationUnit {
    /// Walks its sampled paths; says also at which one it failed.
    pub(crate) fn run<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        noise: Noise,
        passes: usize,
    ) -> (Result<(), Box<LpFailure>>, usize) {
        let tables = shared.tables.as_ref();
        let mut rows = tables.map(PathTables::rows).unwrap_or_default();
        for path in self.paths.clone() {
            let at = (path / passes, path % passes);
            let mut recorder = tables.map(|tables| PathRecorder {
                tables,
                rows: &mut rows,
                scenario: path + 1,
            });
            let walked = self
                .simulator
                .sample(shared, solvers, noise, at, recorder.as_mut());
            if walked.is_err() {
                return (walked, path);
            }
        }
        self.pieces = tables.map_or(Ok(Vec::new()), |tables| tables.pieces(&rows));
        // What helped to solve its stages is of no use to others, and there are many units in a batch.
        self.simulator.warm_start = Vec::new();
        (Ok(()), self.paths.end)
    }

    /// Walks its validation scenario.
    pub(crate) fn validate<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
    ) -> (Result<(), Box<LpFailure>>, usize) {
        let scenario = self.paths.start;
        let mut steps = shared.problem.validation[scenario].iter();
        let next = |_| steps.next().map(|step| (step.node, step.opening));
        (self.simulator.walk(shared, solvers, next, None), scenario)
    }
}
