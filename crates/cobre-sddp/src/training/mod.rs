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

use self::backward::{BackwardStep, combine};
use crate::checkpoint::Checkpoints;
use crate::error::SddpError;
use crate::events::{Iteration, Observer, TimeSplit};
use crate::lp::{LpFailure, LpFailureKind, LpStatistics};
use crate::path::TrialPoints;
use crate::policy::NewCut;
use crate::problem::{Problem, Sense, check_cut};
use crate::rank_work::{NodeSolvers, RankWork, Task, during};
use crate::ranks::{Backend, Ranks};
use crate::simulation::Sampling;
use crate::spans::SpanKind;
use crate::team::{Team, lock};
use crate::upper_bound::{Evaluation, UpperBound};

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
    /// The best bound from the other side, if one was computed.
    pub upper_bound: Option<f64>,
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
        upper: &mut UpperBound,
        checkpoints: &mut Checkpoints,
        observer: &mut dyn Observer,
    ) -> Result<TrainingResults, SddpError> {
        let start = Instant::now();
        let sense = self.work.read().problem.sense;
        let sign = sense.sign();
        let mut time = progress.time();
        let before_start = time.total;
        if let Some(reason) = self.ended(stopping, &mut progress, upper, observer)? {
            return Ok(trained(progress, reason, sense));
        }
        loop {
            let iteration = progress.iterations.len();
            let before = (Instant::now(), self.ranks.spent());
            self.ranks.spans.iteration(iteration + 1);
            let passes = self.forward(iteration)?;
            self.ranks.spans.note(SpanKind::Forward, before.0);
            let between = Instant::now();
            let added = self.backward(iteration)?;
            progress.bounds.push(self.bound(iteration)?);
            self.ranks.spans.note(SpanKind::Backward, between);
            time.forward += (between - before.0).as_secs_f64();
            time.backward += between.elapsed().as_secs_f64();
            time.communication += self.ranks.spent().as_secs_f64() - before.1.as_secs_f64();
            time.total = before_start + start.elapsed().as_secs_f64();
            let costs = passes.iter().map(|cost| sign * cost);
            progress.costs.extend(costs);
            self.ask_policy(&mut progress, stopping)?;
            let mut above = Evaluation::Done(None);
            if upper.is_due(iteration + 1) {
                let before = Instant::now();
                above = self.upper_bound(upper, progress.bounds[iteration], observer)?;
                self.ranks.spans.note(SpanKind::UpperBound, before);
                time.total = before_start + start.elapsed().as_secs_f64();
            }
            let asked = above == Evaluation::Interrupted || observer.interrupted();
            let statistics = self.exchange(iteration, time, asked)?;
            let mut report = self.report(&progress, &statistics, added);
            report.upper_bound = above.bound();
            progress.iterations.push(report);
            let interrupted = statistics.interrupted.then_some(StopReason::Interrupted);
            let reason = interrupted.or_else(|| stopping.reason(&progress));
            let (last, reason) = self.last(&progress, reason, upper, observer)?;
            observer.iteration(&last);
            self.work.report_times(observer);
            if reason.is_some() || checkpoints.is_due(iteration + 1, statistics.time.total) {
                self.keep(checkpoints, &progress)?;
            }
            self.ranks.report_spans(observer);
            if let Some(reason) = reason {
                progress.iterations[iteration] = last;
                return Ok(trained(progress, reason, sense));
            }
        }
    }

    fn keep(&self, checkpoints: &mut Checkpoints, progress: &Progress) -> Result<(), SddpError> {
        let before = Instant::now();
        checkpoints.keep(self.work, self.ranks, progress)?;
        self.ranks.spans.note(SpanKind::Checkpoint, before);
        Ok(())
    }

    /// The reason to end before a further iteration, if there is one.
    fn ended(
        &mut self,
        stopping: &Stopping,
        progress: &mut Progress,
        upper: &mut UpperBound,
        observer: &mut dyn Observer,
    ) -> Result<Option<StopReason>, SddpError> {
        if !self.make_up(progress, upper, observer)? {
            return Ok(Some(StopReason::Interrupted));
        }
        let reason = stopping.reason(progress);
        if reason.is_none() {
            return Ok(None);
        }
        if progress.bounds.is_empty() {
            progress.bounds.push(self.bound(0)?);
            return Ok(reason);
        }
        let (last, reason) = self.last(progress, reason, upper, observer)?;
        progress.iterations.pop();
        progress.iterations.push(last);
        Ok(reason)
    }

    /// Evaluates the upper bound of the last iteration if that was interrupted: a run that goes on has the bits of one
    /// that was never stopped. False if it is interrupted again.
    fn make_up(
        &mut self,
        progress: &mut Progress,
        upper: &mut UpperBound,
        observer: &mut dyn Observer,
    ) -> Result<bool, SddpError> {
        let count = progress.iterations.len();
        let Some(last) = progress.iterations.last_mut() else {
            return Ok(true);
        };
        if !upper.is_due(count) || last.upper_bound.is_some() {
            return Ok(true);
        }
        let found = self.upper_bound(upper, progress.bounds[count - 1], observer)?;
        last.upper_bound = found.bound();
        Ok(found != Evaluation::Interrupted)
    }

    /// The last iteration so far, and the reason to end; after the last of all with an upper bound, if one is asked for.
    /// A checkpoint does not have it: a run that goes on from there has none at this iteration.
    fn last(
        &mut self,
        progress: &Progress,
        mut reason: Option<StopReason>,
        upper: &mut UpperBound,
        observer: &mut dyn Observer,
    ) -> Result<(Iteration, Option<StopReason>), SddpError> {
        let place = progress.iterations.len() - 1;
        let mut last = progress.iterations[place].clone();
        let ends = reason.is_some_and(|reason| reason != StopReason::Interrupted);
        if ends && upper.is_asked() && last.upper_bound.is_none() {
            let found = self.upper_bound(upper, progress.bounds[place], observer)?;
            last.upper_bound = found.bound();
            if found == Evaluation::Interrupted {
                reason = Some(StopReason::Interrupted);
            }
        }
        Ok((last, reason))
    }

    /// Keeps what rules on the policy itself compare: the first stage's decision, and values of simulated paths.
    fn ask_policy(
        &mut self,
        progress: &mut Progress,
        stopping: &Stopping,
    ) -> Result<(), SddpError> {
        let iterations = progress.bounds.len();
        for rule in &stopping.rules {
            match *rule {
                StopRule::FirstStage { .. } => progress.decisions.push(self.decision()?),
                StopRule::Simulation { period, paths, .. } if iterations.is_multiple_of(period) => {
                    let tables = self.work.write().tables.take();
                    let values = self.simulate(paths, Sampling::Fresh, &mut (), &mut |_| Ok(()));
                    self.work.write().tables = tables;
                    progress.keep_simulated(iterations, values?.unwrap_or_default());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The mean outgoing state of the first stage over its openings, from the solves of the bound. Collective.
    fn decision(&self) -> Result<Vec<f64>, SddpError> {
        let level = self.work.units.len() - 1;
        let (problem, units) = (self.work.read().problem, &self.work.units[level]);
        let states = problem.states.len();
        let mut mine = Vec::new();
        for unit in &self.work.backward[level] {
            mine.extend_from_slice(&lock(unit).outgoing);
        }
        let mut all = Vec::new();
        let width = |unit: usize| units[unit].openings.len() * states;
        self.ranks.gather(units.len(), width, &mine, &mut all)?;
        let mut decision = vec![0.0; states];
        let mut rest = all.chunks(states.max(1));
        for unit in units {
            let edges = problem.graph.root.iter();
            let step = edges.filter(|edge| edge.node == unit.node);
            let step: f64 = step.map(|edge| edge.probability).sum();
            for opening in unit.openings.clone() {
                let weight = step * problem.nodes[unit.node].probabilities[opening];
                for (sum, value) in decision.iter_mut().zip(rest.next().unwrap_or_default()) {
                    *sum += weight * value;
                }
            }
        }
        Ok(decision)
    }

    /// Runs a task with all threads.
    pub(crate) fn run(&mut self, task: Task) -> Result<(), SddpError> {
        self.team.run(task, self.work.count_units(task));
        self.work.failed()
    }

    /// Simulates the forward passes; returns the cost of each, in order.
    fn forward(&mut self, iteration: usize) -> Result<Vec<f64>, SddpError> {
        self.run(Task::Forward { iteration })?;
        let own = self.work.forward.iter().map(lock);
        let own: Vec<_> = own.collect();
        let problem = self.work.read().problem;
        let graph = &problem.graph;
        let room = if graph.is_cyclic() {
            let lengths = own.iter().map(|simulator| simulator.trial.stages.len());
            let longest = lengths.max().unwrap_or(0) as u64;
            let longest = self.ranks.gather_one(longest)?;
            longest.into_iter().max().unwrap_or(0) as usize
        } else {
            graph.depth()
        };
        let mut mine = TrialPoints::default();
        for simulator in own {
            mine.push(&simulator.trial, room);
        }
        let mut shared = self.work.write();
        shared.trials.room = room;
        let TrialPoints { stages, states, .. } = &mut shared.trials;
        self.ranks.gather_pair(
            &self.ranks.counts(self.work.passes),
            (room, room * problem.states.len()),
            (&mine.stages, &mine.states),
            (stages, states),
        )?;
        Ok(shared.trials.costs())
    }

    /// Adds cuts from the last level up to the first, or along the paths in reverse; returns their number.
    fn backward(&mut self, iteration: usize) -> Result<usize, SddpError> {
        let mut added = 0;
        for step in self.steps() {
            self.run(Task::Backward { iteration, step })?;
            let costs = combine(self.work, self.ranks, step)?;
            let cuts = costs.into_iter().flatten();
            let mut shared = self.work.write();
            let problem = shared.problem;
            let cuts = cuts.filter_map(|cost| cost.cut(step));
            // A path through a cyclic graph may end at a leaf, after which there is no cost.
            let cuts = cuts.filter(|cut| problem.has_successors(cut.node));
            let cuts: Vec<NewCut> = cuts.collect();
            added += cuts.len();
            // All ranks have the same cuts, and come to the same end.
            for cut in &cuts {
                check(problem, cut).map_err(|failure| SddpError::Solver {
                    during: during(Task::Backward { iteration, step }, cut.pass),
                    failure,
                })?;
            }
            let level = self.work.list(step);
            shared.pool.insert(problem, level, iteration, &cuts);
        }
        self.work.write().pool.publish(self.ranks)?;
        Ok(added)
    }

    /// The steps of a backward pass.
    fn steps(&self) -> Vec<BackwardStep> {
        let shared = self.work.read();
        if shared.problem.graph.is_cyclic() {
            let places = 0..shared.trials.longest();
            return places.rev().map(BackwardStep::Visit).collect();
        }
        let levels = 1..self.work.units.len() - 1;
        levels.map(BackwardStep::Level).collect()
    }

    /// The value of the first stage's problem, without what nobody pays: a bound on the optimal value, in the
    /// modeller's sense.
    fn bound(&mut self, iteration: usize) -> Result<f64, SddpError> {
        let step = BackwardStep::Root;
        self.run(Task::Backward { iteration, step })?;
        let costs = combine(self.work, self.ranks, step)?;
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
            upper_bound: None,
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

/// Bytes of the statistics of a rank.
pub(crate) const COUNTS: usize = size_of::<RankStatistics>();

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
        upper_bound: progress.upper_bound(sense),
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
