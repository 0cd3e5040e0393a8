//! Training: forward, exchange, backward, exchange, bound, stop.

pub(crate) mod backward;
mod estimate;
mod progress;
mod stopping;

pub use estimate::Estimate;
pub(crate) use progress::Progress;
pub use stopping::{StopReason, StopRule, Stopping};

use std::time::Instant;

use self::backward::{UnitKey, combine};
use crate::checkpoint::Checkpoints;
use crate::error::SddpError;
use crate::events::{Iteration, Observer, TimeSplit};
use crate::lp::LpStatistics;
use crate::policy::NewCut;
use crate::problem::Sense;
use crate::rank_work::{NodeSolvers, RankWork, Task};
use crate::ranks::{Backend, Ranks};
use crate::team::{Team, lock};

/// What training found, in the modeller's sense.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingResults {
    /// One entry per iteration.
    pub iterations: Vec<Iteration>,
    /// Why it ended.
    pub reason: StopReason,
    /// The best bound on the optimal value.
    pub bound: f64,
    /// The policy's value on the latest forward passes.
    pub estimate: Estimate,
}

/// One rank's part in training.
pub(crate) struct Trainer<'a, 't, 'p, C: Backend> {
    pub(crate) work: &'a RankWork<'p, C>,
    pub(crate) team: &'a mut Team<'t, Task, NodeSolvers>,
    pub(crate) ranks: &'a Ranks<'a, C>,
    /// By level, all units of all ranks.
    pub(crate) units: &'a [Vec<UnitKey>],
}

impl<C: Backend> Trainer<'_, '_, '_, C> {
    /// Trains until a rule says stop. Collective.
    pub(crate) fn train(
        &mut self,
        stopping: &Stopping,
        mut progress: Progress,
        checkpoints: &mut Checkpoints,
        observer: &mut dyn Observer,
    ) -> Result<TrainingResults, SddpError> {
        let start = Instant::now();
        let sense = self.work.read().problem.sense;
        let sign = sense.sign();
        let mut time = progress.time();
        let before_start = time.total;
        if let Some(reason) = stopping.reason(&progress) {
            if progress.bounds.is_empty() {
                progress.bounds.push(sign * self.bound(0)?);
            }
            return Ok(trained(progress, reason, sense));
        }
        loop {
            let iteration = progress.iterations.len();
            let before = (Instant::now(), self.ranks.spent());
            let passes = self.forward(iteration)?;
            let between = Instant::now();
            let added = self.backward(iteration)?;
            progress.bounds.push(sign * self.bound(iteration)?);
            time.forward += (between - before.0).as_secs_f64();
            time.backward += between.elapsed().as_secs_f64();
            time.communication += self.ranks.spent().as_secs_f64() - before.1.as_secs_f64();
            time.total = before_start + start.elapsed().as_secs_f64();
            let costs = passes.iter().map(|cost| sign * cost);
            progress.costs.extend(costs);
            let statistics = self.agree(time, observer.interrupted())?;
            let report = self.report(&progress, &statistics, added);
            observer.iteration(&report);
            progress.iterations.push(report);
            let interrupted = statistics.interrupted.then_some(StopReason::Interrupted);
            let reason = interrupted.or_else(|| stopping.reason(&progress));
            if reason.is_some() || checkpoints.is_due(iteration + 1, statistics.time.total) {
                checkpoints.keep(self.work, self.ranks, &progress)?;
            }
            if let Some(reason) = reason {
                return Ok(trained(progress, reason, sense));
            }
        }
    }

    /// Lets all threads do a task.
    pub(crate) fn run(&mut self, task: Task) -> Result<(), SddpError> {
        self.team.run(task, self.work.units(task));
        self.work.failed()
    }

    /// Walks the forward passes; returns the cost of each, in order.
    fn forward(&mut self, iteration: usize) -> Result<Vec<f64>, SddpError> {
        self.run(Task::Forward { iteration })?;
        let mut mine = Vec::new();
        for simulator in &self.work.forward {
            mine.extend_from_slice(&lock(simulator).record);
        }
        let mut shared = self.work.write();
        let width = shared.trials.width();
        self.ranks.gather(
            self.work.passes,
            |_| width,
            &mine,
            &mut shared.trials.records,
        )?;
        let paths = 0..self.work.passes;
        Ok(paths
            .map(|path| shared.trials.cost(shared.problem, path))
            .collect())
    }

    /// Makes new cuts from the last level up to the first; returns how many.
    fn backward(&mut self, iteration: usize) -> Result<usize, SddpError> {
        let mut added = 0;
        for level in 1..self.units.len() - 1 {
            self.run(Task::Backward { iteration, level })?;
            let values = combine(self.work, self.ranks, &self.units[level], level)?;
            let cuts: Vec<NewCut> = values.into_iter().flatten().map(moved_to_zero).collect();
            added += cuts.len();
            let mut shared = self.work.write();
            let problem = shared.problem;
            shared
                .pool
                .insert(self.ranks, problem, level, iteration, &cuts)?;
        }
        Ok(added)
    }

    /// The value of the first stage's problem: a bound on the optimal cost.
    fn bound(&mut self, iteration: usize) -> Result<f64, SddpError> {
        let level = self.units.len() - 1;
        self.run(Task::Backward { iteration, level })?;
        let values = combine(self.work, self.ranks, &self.units[level], level)?;
        Ok(values[0].as_ref().map_or(f64::NAN, |value| value.intercept))
    }

    /// Tells all ranks what each has counted; rank 0's clock is everybody's.
    fn agree(&self, time: TimeSplit, interrupted: bool) -> Result<IterationStatistics, SddpError> {
        let mine = [
            f64::from(u8::from(interrupted)),
            time.total,
            time.forward,
            time.backward,
            time.communication,
        ];
        let counts = self.work.statistics().numbers();
        let all = self.ranks.gather_one(&[&counts[..], &mine].concat())?;
        let own = |rank: &[f64]| rank[counts.len()..].to_vec();
        let first = own(&all[0]);
        Ok(IterationStatistics {
            counts: sum(&all),
            interrupted: all.iter().any(|rank| own(rank)[0] > 0.0),
            time: TimeSplit {
                total: first[1],
                forward: first[2],
                backward: first[3],
                communication: first[4],
            },
        })
    }

    /// Whether any rank says so. Collective.
    pub(crate) fn any(&self, here: bool) -> Result<bool, SddpError> {
        let all = self.ranks.gather_one(&[f64::from(u8::from(here))])?;
        Ok(all.iter().any(|rank| rank[0] > 0.0))
    }

    /// What all ranks have solved so far. Collective.
    pub(crate) fn counts(&self) -> Result<LpStatistics, SddpError> {
        let all = self.ranks.gather_one(&self.work.statistics().numbers())?;
        Ok(sum(&all))
    }

    fn report(
        &self,
        progress: &Progress,
        statistics: &IterationStatistics,
        added: usize,
    ) -> Iteration {
        let Progress { bounds, costs, .. } = progress;
        let is_neutral = self.work.read().problem.is_risk_neutral();
        let bound = bounds[bounds.len() - 1];
        let estimate = Estimate::of(&costs[costs.len() - self.work.passes..]);
        Iteration {
            number: bounds.len(),
            bound,
            estimate,
            gap: is_neutral.then(|| gap(bound, estimate.mean)),
            lp: statistics.counts,
            cuts: self.work.read().pool.used(),
            cuts_added: added,
            time: statistics.time,
        }
    }
}

/// What ranks have told each other.
struct IterationStatistics {
    counts: LpStatistics,
    interrupted: bool,
    time: TimeSplit,
}

/// The sum of what ranks have counted, which stands first in what they tell.
fn sum(all: &[Vec<f64>]) -> LpStatistics {
    let mut counts = LpStatistics::default();
    for rank in all {
        counts += LpStatistics::from_numbers(std::array::from_fn(|place| rank[place]));
    }
    counts
}

/// How far an estimate is from the bound, relative to the bound.
pub fn gap(bound: f64, mean: f64) -> f64 {
    (mean - bound).abs() / bound.abs().max(1e-9)
}

/// What training found when it ended.
fn trained(progress: Progress, reason: StopReason, sense: Sense) -> TrainingResults {
    TrainingResults {
        bound: progress.bound(sense),
        estimate: progress.estimate(0),
        iterations: progress.iterations,
        reason,
    }
}

/// The value at the trial point becomes the value at state zero.
fn moved_to_zero(mut cut: NewCut) -> NewCut {
    let terms = cut.gradient.iter().zip(&cut.point);
    cut.intercept -= terms.map(|(slope, value)| slope * value).sum::<f64>();
    cut
}
