//! The deterministic upper bound: an inner approximation of the cost to go over visited states.
//!
//! The cost to go after a node is convex. A convex combination of states is worth at most the combination of bounds on
//! their costs, and moving a state along a direction costs at most its slope ([`slopes`]). So backwards, from the last
//! level, every node gets upper bounds at the states that it was left in ([`states`]), found by solving its successors
//! with the inner approximation of their own cost to go ([`inner`]), in a graph with cycles again and again ([`cycles`]); the
//! measure of risk combines them. The value at
//! the root is a bound from above on the optimal value under any risk measure, whatever the cuts are.

mod cycles;
mod inner;
mod level;
mod reach;
mod slopes;
mod states;

pub(crate) use level::InnerLevel;

use std::time::Instant;

use self::cycles::approximations;
use self::inner::InnerProblem;
use self::level::{InnerPoint, LevelPlan};
use self::slopes::Slopes;
use crate::error::SddpError;
use crate::events::Observer;
use crate::rank_work::Task;
use crate::ranks::Backend;
use crate::training::Trainer;

/// The most visited states of a node that an upper bound is computed with, if not set.
pub const DEFAULT_STATES: usize = 100;
/// The difference to the bound, relative to it, that the tolerances of solvers explain.
const TOLERANCE: f64 = 1e-6;

/// The part of an upper bound that does not change while training goes on.
#[derive(Debug)]
struct Fixed {
    /// By node, the slopes of its cost to go.
    slopes: Vec<Slopes>,
    /// By node, states that hold its outgoing states together.
    anchors: Vec<Vec<Vec<f64>>>,
}

/// The outcome of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Evaluation {
    /// The bound; none if the visited states do not bound the value.
    Done(Option<f64>),
    /// A rank was asked to end.
    Interrupted,
}

impl Evaluation {
    /// The bound, if there is one.
    pub(crate) fn bound(self) -> Option<f64> {
        match self {
            Self::Done(bound) => bound,
            Self::Interrupted => None,
        }
    }
}

/// The units of a batch: between batches ranks hear of interrupts.
#[derive(Debug, Clone, Copy, Default)]
struct BatchSize {
    /// As many as all ranks have threads.
    least: usize,
    units: usize,
}

/// Evaluates upper bounds on the way.
#[derive(Debug, Default)]
pub(crate) struct UpperBound {
    fixed: Option<Fixed>,
    batches: BatchSize,
    /// The iterations after which it is computed: every so many; 0 for none.
    every: usize,
    states: usize,
}

impl UpperBound {
    pub(crate) fn new(every: usize, states: usize) -> Self {
        Self {
            fixed: None,
            batches: BatchSize::default(),
            every,
            states,
        }
    }

    /// True if it is computed after this many iterations.
    pub(crate) fn is_due(&self, iterations: usize) -> bool {
        self.every > 0 && iterations.is_multiple_of(self.every)
    }

    /// True if it is computed at all.
    pub(crate) fn is_asked(&self) -> bool {
        self.every > 0
    }
}

impl<C: Backend> Trainer<'_, '_, '_, C> {
    /// An upper bound on the optimal value, in the modeller's sense (for a revenue: a lower one). Collective; the same
    /// bits on any ranks and threads.
    pub(crate) fn upper_bound(
        &mut self,
        upper: &mut UpperBound,
        bound: f64,
        observer: &mut dyn Observer,
    ) -> Result<Evaluation, SddpError> {
        let problem = self.work.read().problem;
        if upper.fixed.is_none() {
            upper.fixed = Some(self.fixed());
            upper.batches = self.first_batch()?;
        }
        let batches = &mut upper.batches;
        let fixed = upper.fixed.as_ref().expect("it was just made");
        let inner = if problem.graph.is_cyclic() {
            self.approximate_cycles(fixed, upper.states, batches, observer)?
        } else {
            self.approximate_levels(fixed, upper.states, batches, observer)?
        };
        let Some(inner) = inner else {
            return Ok(Evaluation::Interrupted);
        };
        let root = InnerPoint {
            parent: None,
            state: problem.initial_state(),
        };
        let Some((values, _)) = self.values_at(vec![root], inner, batches, observer)? else {
            return Ok(Evaluation::Interrupted);
        };
        let value = values[0].1 - problem.fictitious.mean;
        Ok(Evaluation::Done(value.is_finite().then(|| {
            let (sign, cost) = (problem.sense.sign(), problem.sense.sign() * bound);
            let within = value < cost && cost - value <= TOLERANCE * (1.0 + cost.abs());
            sign * if within { cost } else { value }
        })))
    }

    /// The inner approximations of the nodes of a graph without cycles, backwards from its ends, from at most `most` visited
    /// states of each. None if a rank was asked to end.
    fn approximate_levels(
        &mut self,
        fixed: &Fixed,
        most: usize,
        batches: &mut BatchSize,
        observer: &mut dyn Observer,
    ) -> Result<Option<Vec<Option<InnerProblem>>>, SddpError> {
        let problem = self.work.read().problem;
        let mut inner: Vec<Option<InnerProblem>> = problem.nodes.iter().map(|_| None).collect();
        for level in 1..problem.graph.depth() {
            let points = self.points(fixed, level, most);
            let Some((mut values, back)) = self.values_at(points, inner, batches, observer)? else {
                return Ok(None);
            };
            inner = back;
            values.retain(|(_, value)| value.is_finite());
            let own = approximations(problem, fixed, &values).into_iter();
            for (inner, own) in inner.iter_mut().zip(own) {
                *inner = own.or(inner.take());
            }
        }
        Ok(Some(inner))
    }

    /// A batch of as many units as all ranks have threads. Collective.
    fn first_batch(&self) -> Result<BatchSize, SddpError> {
        let threads = self.ranks.gather_one(self.team.threads() as u64)?;
        let least = threads.iter().sum::<u64>() as usize;
        Ok(BatchSize {
            least,
            units: least,
        })
    }

    /// The states of the nodes of a level: visited ones, at most so many of a node, and anchors.
    fn points(&self, fixed: &Fixed, level: usize, most: usize) -> Vec<InnerPoint> {
        let shared = self.work.read();
        let problem = shared.problem;
        let parents = (0..problem.nodes.len()).filter(|&node| problem.graph.level(node) == level);
        let points = parents.flat_map(|node| {
            let visited = shared.pool.trial_points(problem, node, most);
            let anchors = fixed.anchors[node].iter().cloned();
            let all: Vec<Vec<f64>> = visited.chain(anchors).collect();
            all.into_iter().map(move |state| InnerPoint {
                parent: Some(node),
                state,
            })
        });
        points.collect()
    }

    /// The slopes and the anchors of all nodes.
    fn fixed(&self) -> Fixed {
        let shared = self.work.read();
        let problem = shared.problem;
        let cyclic = problem.graph.is_cyclic();
        let (mut slopes, reach) = if cyclic {
            (slopes::of_cycles(&shared), reach::of_cycles(&shared))
        } else {
            (slopes::of_nodes(&shared), reach::of_nodes(&shared))
        };
        let anchors = |slopes: &[Slopes]| -> Vec<Vec<Vec<f64>>> {
            let of_nodes = slopes.iter().zip(&reach);
            of_nodes
                .map(|(slopes, reach)| states::anchors(slopes, reach))
                .collect()
        };
        let mut found = anchors(&slopes);
        let mut open = (0..problem.nodes.len()).filter(|&node| found[node].is_empty());
        if cyclic && open.any(|node| problem.has_successors(node) && !slopes[node].are_finite()) {
            slopes::of_endless_ranges(&shared, &mut slopes);
            found = anchors(&slopes);
        }
        Fixed {
            anchors: found,
            slopes,
        }
    }

    /// The upper bound at each point, by the inner approximations of the nodes that follow; hands those back. None if a
    /// rank was asked to end.
    #[expect(clippy::type_complexity, reason = "two lists")]
    fn values_at(
        &mut self,
        points: Vec<InnerPoint>,
        inner: Vec<Option<InnerProblem>>,
        batches: &mut BatchSize,
        observer: &mut dyn Observer,
    ) -> Result<Option<(Vec<(InnerPoint, f64)>, Vec<Option<InnerProblem>>)>, SddpError> {
        let problem = self.work.read().problem;
        let plan = LevelPlan::new(problem, &points);
        *self.work.inner_mut() = InnerLevel::new(points, inner);
        let (mut all, mut first) = (Vec::new(), 0);
        let mut goes_on = true;
        while goes_on && first < plan.units.len() {
            let start = Instant::now();
            let count = batches.units.min(plan.units.len() - first);
            let own = self.ranks.share(count);
            let own = &plan.units[first + own.start..first + own.end];
            self.work.inner_mut().set_units(own);
            self.run(Task::UpperBound)?;
            let mine = self.work.inner_mut().values();
            let mut values = Vec::new();
            let width = |unit: usize| plan.width(problem, first + unit);
            self.ranks.gather(count, width, &mine, &mut values)?;
            all.extend(values);
            first += count;
            // Values do not depend on their batch.
            let by_time = self.by_time(observer.interrupted(), start, count)?;
            goes_on = by_time.is_some();
            let units = by_time.unwrap_or(0).min(2 * batches.units);
            batches.units = units.max(batches.least);
        }
        let (points, inner) = std::mem::take(&mut *self.work.inner_mut()).take();
        if !goes_on {
            return Ok(None);
        }
        let values = plan.combine(problem, &points, &all);
        Ok(Some((points.into_iter().zip(values).collect(), inner)))
    }
}
