//! Paths through the policy graph, simulated stage by stage with the policy.

use bytemuck::{Pod, Zeroable};

use cobre_results::Rows;

use crate::lp::{Detail, LpFailure, NodeSolution, Visit};
use crate::noise::{Noise, Purpose, choose};
use crate::output::{PathTables, Visited};
use crate::problem::{Edge, PathPoint, Problem, discount};
use crate::rank_work::{NodeSolvers, TrainingState};
use crate::ranks::Backend;
use crate::solver::WarmStart;

/// A stage of a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TrialStage {
    node: u64,
    /// The discounted cost, without what nobody pays.
    cost: f64,
}

/// The node of a stage that a pass does not have.
const NOWHERE: u64 = u64::MAX;

impl TrialStage {
    const NONE: Self = Self {
        node: NOWHERE,
        cost: 0.0,
    };
}

/// A trial point: the node visited, or the root, and the state that it leaves.
pub(crate) struct TrialPoint {
    pub(crate) node: Option<usize>,
    pub(crate) state: Vec<f64>,
}

/// The trial points of the forward passes of an iteration. Each pass has room for as many stages as the longest can
/// have, or has.
#[derive(Debug, Default)]
pub(crate) struct TrialPoints {
    pub(crate) stages: Vec<TrialStage>,
    /// The outgoing states of the stages.
    pub(crate) states: Vec<f64>,
    /// Stages that a pass has room for.
    pub(crate) room: usize,
}

impl TrialPoints {
    /// Forgets all passes.
    fn clear(&mut self) {
        self.stages.clear();
        self.states.clear();
    }

    /// Adds a pass, with this room.
    pub(crate) fn push(&mut self, pass: &Self, room: usize) {
        let states = pass.states.len() / pass.stages.len().max(1);
        let more = room - pass.stages.len();
        self.stages.extend_from_slice(&pass.stages);
        let nothing = std::iter::repeat_n(TrialStage::NONE, more);
        self.stages.extend(nothing);
        self.states.extend_from_slice(&pass.states);
        self.states.extend(std::iter::repeat_n(0.0, more * states));
    }

    /// The state that was left last, of so many numbers.
    fn last(&self, width: usize) -> &[f64] {
        &self.states[self.states.len() - width..]
    }

    /// The node and the outgoing state of each stage of a pass.
    pub(crate) fn of_pass(&self, pass: usize) -> impl Iterator<Item = (usize, &[f64])> {
        (0..self.room).map_while(move |place| self.visit(pass, place))
    }

    /// The node and the outgoing state of the stage of a pass at a place, from 0.
    pub(crate) fn visit(&self, pass: usize, place: usize) -> Option<(usize, &[f64])> {
        let width = self.states.len() / self.stages.len().max(1);
        let at = (place < self.room).then_some(pass * self.room + place)?;
        let node = self.stages[at].node;
        (node != NOWHERE).then(|| (node as usize, &self.states[at * width..][..width]))
    }

    /// The stages of the longest pass.
    pub(crate) fn longest(&self) -> usize {
        let in_use = |stages: &[TrialStage]| stages.iter().filter(|at| at.node != NOWHERE).count();
        let passes = self.stages.chunks(self.room.max(1));
        passes.map(in_use).max().unwrap_or(0)
    }

    /// The cost of each pass.
    pub(crate) fn costs(&self) -> Vec<f64> {
        let passes = self.stages.chunks(self.room);
        // Stages that are not in use cost nothing.
        let cost = |stages: &[TrialStage]| stages.iter().fold(0.0, |sum, stage| sum + stage.cost);
        passes.map(cost).collect()
    }
}

/// The end of paths through a cyclic graph; others end at a leaf, and their costs are discounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathEnd {
    /// By chance, as probabilities that sum to less than 1 say, and after so many stages in any case. Costs are not
    /// discounted, as paths end instead.
    Sampled(usize),
    /// After so many stages, whose costs are discounted.
    Fixed(usize),
}

impl PathEnd {
    /// The place of a draw among edges whose probabilities it is to be compared with; `None` if the path ends after
    /// so many stages. A path never ends before its first stage.
    fn step(self, stages: usize, edges: &[Edge], draw: f64) -> Option<f64> {
        match self {
            Self::Sampled(most) | Self::Fixed(most) if stages >= most => None,
            Self::Sampled(_) if stages > 0 => {
                let goes_on = discount(edges);
                (draw < goes_on).then(|| draw / goes_on)
            }
            Self::Sampled(_) | Self::Fixed(_) => Some(draw),
        }
    }
}

/// The part of a solution's cost that a path pays at `node`: the terminal value after the last one, too.
fn paid(problem: &Problem, node: usize, answer: &NodeSolution) -> f64 {
    if problem.has_successors(node) {
        answer.cost
    } else {
        answer.cost + answer.future
    }
}

/// The factor of costs after edges: 1 where paths end by chance instead.
fn discount_by(end: Option<PathEnd>, edges: &[Edge]) -> f64 {
    match end {
        Some(PathEnd::Sampled(_)) => 1.0,
        Some(PathEnd::Fixed(_)) | None => discount(edges),
    }
}

/// Records the decisions on a simulated path.
pub(crate) struct PathRecorder<'a> {
    pub(crate) tables: &'a PathTables<'a>,
    pub(crate) rows: &'a mut [Rows],
    /// From 1.
    pub(crate) scenario: usize,
    /// The name of the path; empty if it has none.
    pub(crate) label: String,
    /// The first day of the stage before; empty before the first stage.
    pub(crate) start_date: String,
}

impl PathRecorder<'_> {
    /// Records a stage, with the first day that it has.
    fn stage(&mut self, visited: Visited<'_>) {
        let tables = self.tables;
        self.start_date = tables.start_date(visited.problem, visited.node, &self.start_date);
        let start_date = &self.start_date;
        let visited = Visited {
            start_date,
            ..visited
        };
        tables.stage(&visited, self.rows);
    }

    /// Ends a path of this cost.
    fn end(&mut self, problem: &Problem, cost: f64) {
        let name = (self.scenario, self.label.as_str());
        PathTables::path(problem, name, cost, self.rows);
    }
}

/// The draws of paths: by seed, purpose and number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathDraws {
    pub(crate) seed: u64,
    pub(crate) purpose: Purpose,
    /// Forward passes per iteration.
    pub(crate) passes: usize,
}

impl PathDraws {
    /// The number of the path of a pass.
    pub(crate) fn path(&self, (iteration, pass): (usize, usize)) -> usize {
        iteration * self.passes + pass
    }
}

/// A step of a path: a node, and one of its openings or values in the place of one.
pub(crate) struct PathStep {
    pub(crate) node: usize,
    pub(crate) opening: usize,
    pub(crate) given: Option<Vec<f64>>,
}

impl PathStep {
    /// Its values, out of those of all openings.
    fn values<'v>(&'v self, problem: &Problem, values: &'v [f64]) -> &'v [f64] {
        let own = || problem.opening(values, self.node, self.opening);
        self.given.as_deref().unwrap_or_else(own)
    }

    /// The opening, unless it has values of its own.
    fn drawn(&self, problem: &Problem) -> Option<usize> {
        let openings = problem.nodes[self.node].probabilities.len();
        (self.given.is_none() && self.opening < openings).then_some(self.opening)
    }
}

/// Simulates paths one after the other, each warm-started from the bases of the one before.
pub(crate) struct PathSimulator {
    /// The end of sampled paths in a cyclic graph.
    end: Option<PathEnd>,
    /// By node.
    pub(crate) warm_starts: Vec<WarmStart>,
    /// The last path.
    pub(crate) trial: TrialPoints,
    /// The costs of all paths.
    pub(crate) costs: Vec<f64>,
}

impl PathSimulator {
    pub(crate) fn new(problem: &Problem, end: Option<PathEnd>) -> Self {
        Self {
            end: end.filter(|_| problem.graph.is_cyclic()),
            warm_starts: problem.nodes.iter().map(|_| WarmStart::default()).collect(),
            trial: TrialPoints::default(),
            costs: Vec::new(),
        }
    }

    /// Discounts the costs of paths, whose ends their steps say.
    pub(crate) fn discounts(&mut self) {
        self.end = None;
    }

    /// Simulates a sampled path.
    pub(crate) fn sample<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        draws: PathDraws,
        (iteration, scenario): (usize, usize),
        recorder: Option<&mut PathRecorder<'_>>,
    ) -> Result<(), Box<LpFailure>> {
        let mut depth = 0;
        let end = self.end;
        let PathDraws { seed, purpose, .. } = draws;
        let (noise, source) = (Noise::new(seed, purpose), shared.problem.paths.of(purpose));
        let next = |before: Option<usize>| {
            let edges = before.map_or(&shared.problem.graph.root[..], |node| {
                shared.problem.graph.successors(node)
            });
            if edges.is_empty() {
                return None;
            }
            let [mut where_to, what] = noise.draw(iteration, scenario, depth);
            if let Some(end) = end {
                where_to = end.step(depth, edges, where_to)?;
            }
            let node = edges[choose(edges.iter().map(|edge| edge.probability), where_to)].node;
            let probabilities = &shared.problem.nodes[node].probabilities;
            let opening = choose(probabilities.iter().copied(), what);
            let given = source.map(|source| {
                let at = PathPoint {
                    seed,
                    purpose,
                    path: draws.path((iteration, scenario)),
                    stage: depth,
                    node,
                    opening,
                };
                shared.problem.values_at(source, &at)
            });
            depth += 1;
            Some(PathStep {
                node,
                opening,
                given,
            })
        };
        self.simulate(shared, solvers, next, recorder)
    }

    /// Simulates a path; `next` gives each step after the node before.
    pub(crate) fn simulate<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        mut next: impl FnMut(Option<usize>) -> Option<PathStep>,
        mut recorder: Option<&mut PathRecorder<'_>>,
    ) -> Result<(), Box<LpFailure>> {
        let problem = shared.problem;
        let detail = recorder.as_ref().map_or(Detail::State, |_| Detail::Full);
        let trial = &mut self.trial;
        trial.clear();
        let (mut first, mut before, mut state) = (None, None, problem.initial_state());
        let (mut weight, mut cost) = (discount(&problem.graph.root), 0.0);
        while let Some(step) = next(before) {
            let node = step.node;
            let visit = Visit {
                incoming: &state,
                openings: step.opening..step.opening + 1,
                detail,
            };
            let first = *first.get_or_insert(node);
            let values = step.values(problem, shared.values.read());
            let fictitious = problem.fictitious_cost(values, node, &state);
            let keep = &mut |_: usize, answer: &NodeSolution| {
                let record = TrialStage {
                    node: node as u64,
                    cost: weight * (paid(problem, node, answer) - fictitious),
                };
                cost += record.cost;
                trial.stages.push(record);
                trial.states.extend_from_slice(&answer.outgoing);
                if let Some(recorder) = &mut recorder {
                    recorder.stage(Visited {
                        problem,
                        scenario: recorder.scenario,
                        stage: problem.stage_number(first, node, trial.stages.len()),
                        start_date: "",
                        node,
                        opening: step.drawn(problem),
                        discount: weight,
                        incoming: &state,
                        answer,
                        fictitious,
                        parts: problem.nodes[node].places.split(values),
                    });
                }
            };
            let (given, warm_start) = (step.given.as_deref(), &mut self.warm_starts[node]);
            solvers.solve_given(shared, (node, given), &visit, warm_start, keep)?;
            state.copy_from_slice(trial.last(problem.states.len()));
            before = Some(node);
            weight *= discount_by(self.end, problem.graph.successors(node));
        }
        if let Some(recorder) = recorder {
            recorder.end(problem, cost);
        }
        self.costs.push(cost);
        Ok(())
    }
}
