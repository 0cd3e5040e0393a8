//! Training: forward, exchange, backward, exchange, bound, stop.

pub(crate) mod backward;
mod estimate;
mod progress;
mod stopping;

pub use estimate::Estimate;
pub(crate) use progress::Progress;
pub use stopping::{StopReason, StopRule, Stopping};

use std::time::Instant;

use bytemuck::{Pod, Zeroable};

use self::backward::{CostToGo, combine};
use crate::checkpoint::Checkpoints;
use crate::error::SddpError;
use crate::events::{Iteration, Observer, TimeSplit};
use crate::lp::{LpFailure, LpFailureKind, LpStatistics};
use crate::path::TrialPoints;
use crate::policy::NewCut;
use crate::problem::{Problem, Sense, check_cut};
use crate::rank_work::{NodeSolvers, RankWork, Task, during};
use crate::ranks::{Backend, Ranks};
use crate::team::{Team, lock};

/// The results of training, in the modeller's sense.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingResults {
    /// One entry per iteration.
    pub iterations: Vec<Iteration>,
    /// The reason why it ended.
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
                progress.bounds.push(self.bound(0)?);
            }
            return Ok(trained(progress, reason, sense));
        }
        loop {
            let iteration = progress.iterations.len();
            let before = (Instant::now(), self.ranks.spent());
            let passes = self.forward(iteration)?;
            let between = Instant::now();
            let added = self.backward(iteration)?;
            progress.bounds.push(self.bound(iteration)?);
            time.forward += (between - before.0).as_secs_f64();
            time.backward += between.elapsed().as_secs_f64();
            time.communication += self.ranks.spent().as_secs_f64() - before.1.as_secs_f64();
            time.total = before_start + start.elapsed().as_secs_f64();
            let costs = passes.iter().map(|cost| sign * cost);
            progress.costs.extend(costs);
            let statistics = self.exchange(iteration, time, observer.interrupted())?;
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

    /// Runs a task with all threads.
    pub(crate) fn run(&mut self, task: Task) -> Result<(), SddpError> {
        self.team.run(task, self.work.count_units(task));
        self.work.failed()
    }

    /// Simulates the forward passes; returns the cost of each, in order.
    fn forward(&mut self, iteration: usize) -> Result<Vec<f64>, SddpError> {
        self.run(Task::Forward { iteration })?;
        let mut mine = TrialPoints::default();
        for simulator in &self.work.forward {
            let trial = &lock(simulator).trial;
            mine.stages.extend_from_slice(&trial.stages);
            mine.states.extend_from_slice(&trial.states);
        }
        let mut shared = self.work.write();
        let problem = shared.problem;
        let TrialPoints { stages, states } = &mut shared.trials;
        self.ranks.gather_pair(
            self.work.passes,
            TrialPoints::widths(problem),
            (&mine.stages, &mine.states),
            (stages, states),
        )?;
        Ok(shared.trials.costs(problem))
    }

    /// Adds cuts from the last level up to the first; returns their number.
    fn backward(&mut self, iteration: usize) -> Result<usize, SddpError> {
        let mut added = 0;
        for level in 1..self.work.units.len() - 1 {
            self.run(Task::Backward { iteration, level })?;
            let costs = combine(self.work, self.ranks, &self.work.units[level], level)?;
            let cuts = costs.into_iter().flatten().filter_map(CostToGo::cut);
            let cuts: Vec<NewCut> = cuts.collect();
            added += cuts.len();
            let mut shared = self.work.write();
            let problem = shared.problem;
            // All ranks have the same cuts, and come to the same end.
            for cut in &cuts {
                check(problem, cut).map_err(|failure| SddpError::Solver {
                    during: during(Task::Backward { iteration, level }, cut.pass),
                    failure,
                })?;
            }
            shared.pool.insert(problem, level, iteration, &cuts);
        }
        self.work.write().pool.publish(self.ranks)?;
        Ok(added)
    }

    /// The value of the first stage's problem, without what nobody pays: a bound on the optimal value, in the
    /// modeller's sense.
    fn bound(&mut self, iteration: usize) -> Result<f64, SddpError> {
        let level = self.work.units.len() - 1;
        self.run(Task::Backward { iteration, level })?;
        let costs = combine(self.work, self.ranks, &self.work.units[level], level)?;
        let cost = costs[0].as_ref().map_or(f64::NAN, |cost| cost.value);
        let problem = self.work.read().problem;
        Ok(problem.sense.sign() * (cost - problem.fictitious.mean))
    }

    /// Exchanges the statistics of an iteration; the time is that of rank 0, which alone sends it.
    ///
    /// # Errors
    /// When the cuts of ranks differ; all of them find that.
    fn exchange(
        &self,
        iteration: usize,
        time: TimeSplit,
        interrupted: bool,
    ) -> Result<IterationStatistics, SddpError> {
        let mine = RankStatistics {
            lp: self.work.statistics(),
            interrupted: interrupted.into(),
            cuts: self.work.read().pool.hash(),
        };
        let (ranks, each) = (self.ranks, size_of::<RankStatistics>());
        let mut bytes = bytemuck::bytes_of(&mine).to_vec();
        if ranks.is_first() {
            bytes.extend_from_slice(bytemuck::bytes_of(&time));
        }
        let width = |rank: usize| each + if rank == 0 { size_of::<TimeSplit>() } else { 0 };
        let mut all = Vec::new();
        ranks.gather(ranks.size(), width, &bytes, &mut all)?;
        let time = all.splice(each..width(0), []).collect::<Vec<u8>>();
        let all = all.chunks_exact(each).map(bytemuck::pod_read_unaligned);
        let all: Vec<RankStatistics> = all.collect();
        if let Some(rank) = all.iter().position(|rank| rank.cuts != all[0].cuts) {
            let iteration = iteration + 1;
            return Err(SddpError::Divergence { rank, iteration });
        }
        Ok(IterationStatistics {
            lp: all.iter().map(|rank| rank.lp).sum(),
            time: bytemuck::pod_read_unaligned(&time),
            interrupted: all.iter().any(|rank| rank.interrupted > 0),
        })
    }

    /// The statistics of all ranks so far. Collective.
    pub(crate) fn statistics(&self) -> Result<LpStatistics, SddpError> {
        let all = self.ranks.gather_one(self.work.statistics())?;
        Ok(all.into_iter().sum())
    }

    fn report(
        &self,
        progress: &Progress,
        statistics: &IterationStatistics,
        added: usize,
    ) -> Iteration {
        let Progress { bounds, costs, .. } = progress;
        let problem = self.work.read().problem;
        let (is_neutral, sense) = (problem.is_risk_neutral(), problem.sense);
        let bound = bounds[bounds.len() - 1];
        let estimate = Estimate::of(&costs[costs.len() - self.work.passes..]);
        Iteration {
            number: bounds.len(),
            bound,
            estimate,
            gap: is_neutral.then(|| gap(sense, bound, estimate.mean)),
            lp: statistics.lp,
            cuts: self.work.read().pool.used(),
            cuts_added: added,
            time: statistics.time,
        }
    }
}

/// The statistics of an iteration.
struct IterationStatistics {
    lp: LpStatistics,
    time: TimeSplit,
    /// True if any rank was interrupted.
    interrupted: bool,
}

/// The statistics of a rank.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RankStatistics {
    lp: LpStatistics,
    interrupted: u64,
    /// The hash of its cuts.
    cuts: u64,
}

/// The distance of an estimate from the bound, relative to the bound: above zero if it is on the side where values
/// are, a cost above its bound and a revenue below. Sampling can put it on the other side.
pub fn gap(sense: Sense, bound: f64, mean: f64) -> f64 {
    sense.sign() * (mean - bound) / bound.abs().max(1e-9)
}

/// The results of training when it ends.
fn trained(progress: Progress, reason: StopReason, sense: Sense) -> TrainingResults {
    TrainingResults {
        bound: progress.bound(sense),
        estimate: progress.estimate(0),
        iterations: progress.iterations,
        reason,
    }
}
/// Refuses a cut with numbers that solvers do not take.
fn check(problem: &Problem, cut: &NewCut) -> Result<(), Box<LpFailure>> {
    let names = problem.states.iter().map(|state| state.name.as_str());
    let slopes = names.zip(cut.gradient.iter().copied());
    let Some(found) = check_cut(cut.intercept, slopes) else {
        return Ok(());
    };
    let point = problem.states.iter().zip(&cut.point);
    Err(Box::new(LpFailure {
        kind: LpFailureKind::NotSolved(found),
        node: problem.nodes[cut.node].name.clone(),
        opening: None,
        incoming: point
            .map(|(state, value)| (state.name.clone(), *value))
            .collect(),
        explanation: String::new(),
        file: None,
    }))
}
