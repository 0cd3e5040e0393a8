//! Paths through the policy graph, simulated stage by stage with the policy.

use bytemuck::{Pod, Zeroable};

use cobre_results::Rows;

use crate::lp::{Detail, LpFailure, NodeSolution, Visit};
use crate::noise::{Noise, choose};
use crate::output::{PathTables, Visited};
use crate::problem::Problem;
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

/// A trial point: the node visited, or the root, and the state that it leaves.
pub(crate) struct TrialPoint {
    pub(crate) node: Option<usize>,
    pub(crate) state: Vec<f64>,
}

/// The trial points of the forward passes of an iteration. Each pass has room for as many stages as the graph
/// is deep; the last one in use is at a leaf.
#[derive(Debug, Default)]
pub(crate) struct TrialPoints {
    pub(crate) stages: Vec<TrialStage>,
    /// The outgoing states of the stages.
    pub(crate) states: Vec<f64>,
}

impl TrialPoints {
    /// The stages and states of a pass.
    pub(crate) fn widths(problem: &Problem) -> (usize, usize) {
        let depth = problem.graph.depth();
        (depth, depth * problem.states.len())
    }

    /// The node and the outgoing state of each stage of a pass.
    pub(crate) fn of_pass(
        &self,
        problem: &Problem,
        pass: usize,
    ) -> impl Iterator<Item = (usize, &[f64])> {
        let (depth, width) = (problem.graph.depth(), problem.states.len());
        let stages = self.stages[pass * depth..][..depth].iter().enumerate();
        let mut ended = false;
        stages.map_while(move |(stage, record)| {
            let node = record.node as usize;
            let before = std::mem::replace(&mut ended, !problem.has_future(node));
            let at = (pass * depth + stage) * width;
            (!before).then(|| (node, &self.states[at..at + width]))
        })
    }

    /// The cost of each pass.
    pub(crate) fn costs(&self, problem: &Problem) -> Vec<f64> {
        let passes = self.stages.chunks(problem.graph.depth());
        // Stages that are not in use cost nothing.
        let cost = |stages: &[TrialStage]| stages.iter().fold(0.0, |sum, stage| sum + stage.cost);
        passes.map(cost).collect()
    }
}

/// The sum of the probabilities of edges, which discounts what follows.
fn discount(edges: &[crate::problem::Edge]) -> f64 {
    let sum: f64 = edges.iter().map(|edge| edge.probability).sum();
    // Thirds do not sum to 1 exactly, and mean no discount.
    if (sum - 1.0).abs() < 1e-6 { 1.0 } else { sum }
}

/// Records the decisions on a simulated path.
pub(crate) struct PathRecorder<'a> {
    pub(crate) tables: &'a PathTables<'a>,
    pub(crate) rows: &'a mut [Rows],
    /// From 1.
    pub(crate) scenario: usize,
}

/// Simulates paths one after the other, each warm-started from the bases of the one before.
pub(crate) struct PathSimulator {
    /// By node.
    pub(crate) warm_starts: Vec<WarmStart>,
    /// The last path.
    pub(crate) trial: TrialPoints,
    /// The costs of all paths.
    pub(crate) costs: Vec<f64>,
}

impl PathSimulator {
    pub(crate) fn new(problem: &Problem) -> Self {
        Self {
            warm_starts: problem.nodes.iter().map(|_| WarmStart::default()).collect(),
            trial: TrialPoints::default(),
            costs: Vec::new(),
        }
    }

    /// Simulates a sampled path.
    pub(crate) fn sample<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        noise: Noise,
        (iteration, scenario): (usize, usize),
        recorder: Option<&mut PathRecorder<'_>>,
    ) -> Result<(), Box<LpFailure>> {
        let mut depth = 0;
        let next = |before: Option<usize>| {
            let edges = before.map_or(&shared.problem.graph.root[..], |node| {
                shared.problem.graph.successors(node)
            });
            if edges.is_empty() {
                return None;
            }
            let [where_to, what] = noise.draw(iteration, scenario, depth);
            depth += 1;
            let node = edges[choose(edges.iter().map(|edge| edge.probability), where_to)].node;
            let probabilities = &shared.problem.nodes[node].probabilities;
            Some((node, choose(probabilities.iter().copied(), what)))
        };
        self.simulate(shared, solvers, next, recorder)
    }

    /// Simulates a path; `next` gives each stage's node and opening after the node before.
    pub(crate) fn simulate<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        mut next: impl FnMut(Option<usize>) -> Option<(usize, usize)>,
        mut recorder: Option<&mut PathRecorder<'_>>,
    ) -> Result<(), Box<LpFailure>> {
        let problem = shared.problem;
        let detail = recorder.as_ref().map_or(Detail::State, |_| Detail::Full);
        let (trial, widths) = (&mut self.trial, TrialPoints::widths(problem));
        trial.stages.clear();
        trial.states.clear();
        let (mut before, mut state) = (None, problem.initial_state());
        let (mut weight, mut cost) = (discount(&problem.graph.root), 0.0);
        while let Some((node, opening)) = next(before) {
            let visit = Visit {
                incoming: &state,
                openings: opening..opening + 1,
                detail,
            };
            let fictitious = problem.fictitious_cost(shared.values.read(), node, opening, &state);
            let keep = &mut |_: usize, answer: &NodeSolution| {
                let record = TrialStage {
                    node: node as u64,
                    cost: weight * (answer.cost - fictitious),
                };
                cost += record.cost;
                trial.stages.push(record);
                trial.states.extend_from_slice(&answer.outgoing);
                if let Some(recorder) = &mut recorder {
                    let values = problem.opening(shared.values.read(), node, opening);
                    let visited = Visited {
                        problem,
                        scenario: recorder.scenario,
                        stage: problem.nodes[node]
                            .stage
                            .unwrap_or(trial.stages.len() as i64),
                        start_date: &problem.nodes[node].start_date,
                        node,
                        opening,
                        discount: weight,
                        incoming: &state,
                        answer,
                        fictitious,
                        parts: problem.nodes[node].places.split(values),
                    };
                    recorder.tables.stage(&visited, recorder.rows);
                }
            };
            solvers.solve(shared, node, &visit, &mut self.warm_starts[node], keep)?;
            let outgoing = trial.states.len() - state.len();
            state.copy_from_slice(&trial.states[outgoing..]);
            before = Some(node);
            weight *= discount(problem.graph.successors(node));
        }
        if let Some(recorder) = recorder {
            PathTables::path(problem, recorder.scenario, cost, recorder.rows);
        }
        self.costs.push(cost);
        trial.stages.resize(widths.0, TrialStage::zeroed());
        trial.states.resize(widths.1, 0.0);
        Ok(())
    }
}
