//! Paths through the graph: what a forward pass decides, stage by stage.

use crate::lp::{Detail, LpFailure, NodeSolution, Visit};
use crate::noise::{Noise, choose};
use crate::output::{PathTables, Rows, Visited};
use crate::problem::Problem;
use crate::rank_work::{NodeSolvers, TrainingState};
use crate::ranks::Backend;
use crate::solver::WarmStart;

/// Numbers of a stage before the outgoing state: node, opening, cost, cost to go.
const HEAD: usize = 4;
/// Stands for a node where a path has ended already.
const NO_NODE: f64 = -1.0;

/// One stage of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathStage<'a> {
    /// The node visited.
    pub node: usize,
    /// The opening that happened there.
    pub opening: usize,
    /// The cost of the stage.
    pub cost: f64,
    /// The cost to go, as the policy sees it.
    pub future: f64,
    /// The state left.
    pub outgoing: &'a [f64],
}

/// Paths of one length of record each, so that they can travel between ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paths {
    pub(crate) records: Vec<f64>,
    states: usize,
    depth: usize,
}

impl Paths {
    /// No paths yet.
    pub(crate) fn new(problem: &Problem) -> Self {
        Self {
            records: Vec::new(),
            states: problem.states.len(),
            depth: problem.graph.depth(),
        }
    }

    /// Numbers per path.
    pub(crate) fn width(&self) -> usize {
        self.depth * self.stride()
    }

    fn stride(&self) -> usize {
        HEAD + self.states
    }

    /// Number of paths.
    pub fn count(&self) -> usize {
        self.records.len() / self.width()
    }

    /// The stages of a path, first to last.
    pub fn stages(&self, path: usize) -> impl Iterator<Item = PathStage<'_>> {
        let record = &self.records[path * self.width()..][..self.width()];
        let stages = record.chunks(self.stride());
        stages
            .take_while(|stage| stage[0] != NO_NODE)
            .map(|stage| PathStage {
                node: stage[0] as usize,
                opening: stage[1] as usize,
                cost: stage[2],
                future: stage[3],
                outgoing: &stage[HEAD..],
            })
    }

    /// The cost of a path, each stage discounted by what the steps before it were likely to happen
    /// at all.
    pub fn cost(&self, problem: &Problem, path: usize) -> f64 {
        let mut weight = discount(&problem.graph.root);
        let mut sum = 0.0;
        for stage in self.stages(path) {
            sum += weight * stage.cost;
            weight *= discount(problem.graph.successors(stage.node));
        }
        sum
    }
}

/// What the probabilities of the steps from one place sum to.
fn discount(edges: &[crate::problem::Edge]) -> f64 {
    let sum: f64 = edges.iter().map(|edge| edge.probability).sum();
    // Thirds and the like do not sum to 1 exactly, and mean no discount.
    if (sum - 1.0).abs() < 1e-6 { 1.0 } else { sum }
}

/// Writes down what is decided on a simulated path.
pub(crate) struct PathRecorder<'a> {
    pub(crate) tables: &'a PathTables<'a>,
    pub(crate) rows: &'a mut [Rows],
    /// From 1.
    pub(crate) scenario: usize,
}

/// One who walks paths: what was remembered at each node, and the path walked last.
pub(crate) struct PathSimulator {
    pub(crate) warm_start: Vec<WarmStart>,
    pub(crate) record: Vec<f64>,
}

impl PathSimulator {
    pub(crate) fn new(problem: &Problem) -> Self {
        Self {
            warm_start: problem.nodes.iter().map(|_| WarmStart::default()).collect(),
            record: Vec::new(),
        }
    }

    /// Walks a sampled path by the policy; appends it to the record.
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
        self.walk(shared, solvers, next, recorder)
    }

    /// Walks a path by the policy; `next` names each stage's node and opening after the node
    /// before. Appends the path to the record.
    pub(crate) fn walk<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        mut next: impl FnMut(Option<usize>) -> Option<(usize, usize)>,
        mut recorder: Option<&mut PathRecorder<'_>>,
    ) -> Result<(), Box<LpFailure>> {
        let problem = shared.problem;
        let mut state = problem.initial_state();
        let end = self.record.len() + Paths::new(problem).width();
        let mut before = None;
        let want = if recorder.is_some() {
            Detail::Full
        } else {
            Detail::State
        };
        let (mut depth, mut weight, mut cost) = (0, discount(&problem.graph.root), 0.0);
        while let Some((node, opening)) = next(before) {
            let record = &mut self.record;
            let state_left = &mut state.clone();
            let visit = Visit {
                incoming: &state,
                openings: opening..opening + 1,
                want,
            };
            depth += 1;
            solvers.solve(
                shared,
                node,
                &visit,
                &mut self.warm_start[node],
                &mut |_, answer: &NodeSolution| {
                    record.extend([node as f64, opening as f64, answer.cost, answer.future]);
                    record.extend_from_slice(&answer.outgoing);
                    state_left.clone_from(&answer.outgoing);
                    cost += weight * answer.cost;
                    if let Some(recorder) = &mut recorder {
                        let values = problem.opening(shared.values.read(), node, opening);
                        let visited = Visited {
                            problem,
                            scenario: recorder.scenario,
                            stage: depth,
                            node,
                            opening,
                            discount: weight,
                            incoming: &state,
                            answer,
                            parts: problem.nodes[node].places.split(values),
                        };
                        recorder.tables.stage(&visited, recorder.rows);
                    }
                },
            )?;
            state.clone_from(state_left);
            before = Some(node);
            weight *= discount(problem.graph.successors(node));
        }
        if let Some(recorder) = recorder {
            PathTables::path(problem, recorder.scenario, cost, recorder.rows);
        }
        self.record.resize(end, NO_NODE);
        Ok(())
    }
}
