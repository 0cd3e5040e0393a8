//! Trying the trained policy on paths.

use std::sync::Mutex;

use crate::engine::{Field, PATHS_PER_UNIT, Simulation, Solvers, Task};
use crate::error::SddpError;
use crate::events::Observer;
use crate::lp::{Failure, Kernel};
use crate::noise::{Noise, Purpose};
use crate::path::{Paths, Walker};
use crate::ranks::Backend;
use crate::team::lock;
use crate::training::{Estimate, Trainer};

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

/// Takes the simulated paths, batch by batch: the first path's number, and the paths.
pub(crate) type Sink<'s> = dyn FnMut(usize, &Paths) -> Result<(), SddpError> + 's;

impl<C: Backend, K: Kernel> Trainer<'_, '_, '_, C, K> {
    /// Walks `count` sampled paths by the policy; every rank gets the estimate, and `sink` every
    /// path in order. `None` if someone asked it to end before. Collective.
    pub(crate) fn simulate(
        &mut self,
        count: usize,
        sampling: Sampling,
        observer: &mut dyn Observer,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Estimate>, SddpError> {
        let purpose = match sampling {
            Sampling::InSample => Purpose::Training,
            Sampling::Fresh => Purpose::Simulation,
        };
        let mut costs = Vec::new();
        let problem = self.engine.read().problem;
        let sign = problem.sense.sign();
        let take = &mut |first: usize, paths: &Paths| {
            costs.extend((0..paths.count()).map(|path| sign * paths.cost(problem, path)));
            observer.simulated(costs.len(), count);
            sink(first, paths)?;
            Ok(observer.interrupted())
        };
        let done = self.in_batches(count, PATHS_PER_UNIT, Task::Simulate { purpose }, take)?;
        Ok(done.then(|| Estimate::of(&costs)))
    }

    /// Walks the modeller's validation scenarios; every rank gets the paths. Collective.
    pub(crate) fn validate(&mut self) -> Result<Paths, SddpError> {
        let count = self.engine.read().problem.validation.len();
        let mut all = Paths::new(self.engine.read().problem);
        self.in_batches(count, 1, Task::Validate, &mut |_, paths| {
            all.records.extend_from_slice(&paths.records);
            Ok(false)
        })?;
        Ok(all)
    }

    /// Walks paths and hands them to `take`, which says whether this rank is asked to end; whether all
    /// were walked.
    fn in_batches(
        &mut self,
        count: usize,
        per_unit: usize,
        task: Task,
        take: &mut dyn FnMut(usize, &Paths) -> Result<bool, SddpError>,
    ) -> Result<bool, SddpError> {
        let problem = self.engine.read().problem;
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
                Mutex::new(Simulation {
                    paths: of_unit(unit),
                    walker: Walker::new(problem),
                })
            });
            *self
                .engine
                .simulation
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = own.collect();
            self.run(task)?;
            let mut mine = Vec::new();
            for unit in self.engine.simulations().iter() {
                mine.extend_from_slice(&lock(unit).walker.record);
            }
            let width = paths.width();
            self.ranks.gather(
                units,
                |unit| width * of_unit(unit).len(),
                &mine,
                &mut paths.records,
            )?;
            let asked = take(first, &paths)?;
            first += batch;
            if first < count && self.any(asked)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<K: Kernel> Simulation<K> {
    /// Walks its sampled paths; says also at which one it failed.
    pub(crate) fn run<C: Backend>(
        &mut self,
        field: &Field<'_, C>,
        solvers: &mut Solvers<K>,
        noise: Noise,
        passes: usize,
    ) -> (Result<(), Box<Failure>>, usize) {
        for path in self.paths.clone() {
            let (iteration, scenario) = (path / passes, path % passes);
            let walked = self
                .walker
                .sample(field, solvers, noise, iteration, scenario);
            if walked.is_err() {
                return (walked, path);
            }
        }
        (Ok(()), self.paths.end)
    }

    /// Walks its validation scenario.
    pub(crate) fn validate<C: Backend>(
        &mut self,
        field: &Field<'_, C>,
        solvers: &mut Solvers<K>,
    ) -> (Result<(), Box<Failure>>, usize) {
        let scenario = self.paths.start;
        let mut steps = field.problem.validation[scenario].iter();
        let next = |_| steps.next().map(|step| (step.node, step.opening));
        (self.walker.walk(field, solvers, next), scenario)
    }
}
