//! What the threads of a rank work on together.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use parquet::errors::ParquetError;

use crate::error::SddpError;
use crate::lp::{LpFailure, LpStatistics, NodeSolution, NodeView, Visit};
use crate::noise::{Noise, Purpose};
use crate::output::{PathTables, Piece};
use crate::path::{PathSimulator, Paths};
use crate::policy::CutPool;
use crate::problem::Problem;
use crate::ranks::{Backend, SharedTable};
use crate::solver::{NodeSolver, Solver, WarmStart};
use crate::team::lock;
use crate::training::backward::BackwardUnit;

/// What all threads read while they work, and what changes only between tasks.
pub(crate) struct TrainingState<'p, C: Backend> {
    pub(crate) problem: &'p Problem,
    /// The values of all openings.
    pub(crate) values: SharedTable<C>,
    pub(crate) pool: CutPool<C>,
    /// The paths of this iteration's forward passes.
    pub(crate) trials: Paths,
    /// Where linear programs that cannot be solved are written.
    pub(crate) failures: &'p Path,
    /// What is written of simulated paths, if anything is.
    pub(crate) tables: Option<PathTables<'p>>,
}

impl<C: Backend> TrainingState<'_, C> {
    /// The node that `pass` has visited at `level`, and the state it left. At the level above all
    /// nodes that is the root, with the initial state.
    pub(crate) fn trial(&self, pass: usize, level: usize) -> Option<(Option<usize>, Vec<f64>)> {
        let graph = &self.problem.graph;
        if level == graph.depth() {
            return Some((None, self.problem.initial_state()));
        }
        let mut stages = self.trials.stages(pass);
        let stage = stages.find(|stage| graph.level(stage.node) == level)?;
        Some((Some(stage.node), stage.outgoing.to_vec()))
    }

    fn view(&self, node: usize) -> NodeView<'_> {
        NodeView {
            problem: self.problem,
            values: self.values.read(),
            node,
            cuts: self.pool.cuts(self.problem, node),
            failures: self.failures,
        }
    }
}

/// The solvers of one thread, one per node once it has met that node.
pub(crate) struct NodeSolvers {
    solver: Solver,
    nodes: Vec<Option<NodeSolver>>,
    statistics: LpStatistics,
}

impl NodeSolvers {
    pub(crate) fn new(problem: &Problem, solver: Solver) -> Self {
        Self {
            solver,
            nodes: problem.nodes.iter().map(|_| None).collect(),
            statistics: LpStatistics::default(),
        }
    }

    /// Solves a node; see [`NodeSolver::solve`].
    pub(crate) fn solve<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        node: usize,
        visit: &Visit<'_>,
        warm_start: &mut WarmStart,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        let view = shared.view(node);
        let solver = match &mut self.nodes[node] {
            Some(solver) => solver,
            empty => empty.insert(NodeSolver::load(&view, self.solver)?),
        };
        let before = solver.statistics();
        let solved = solver.solve(&view, visit, warm_start, each);
        self.statistics += solver.statistics() - before;
        solved
    }
}

/// Something for all threads to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// The forward passes of an iteration; a unit is a pass.
    Forward { iteration: usize },
    /// The successors of a level at this iteration's trial points; a unit is a pass, a successor
    /// and a block of its openings.
    Backward { iteration: usize, level: usize },
    /// Paths to evaluate the policy on; a unit is [`PATHS_PER_UNIT`] of them.
    Simulate { purpose: Purpose },
    /// The modeller's own scenarios; a unit is one of them.
    Validate,
}

/// Consecutive simulated paths that one unit walks, each starting from the bases of the one before.
pub(crate) const PATHS_PER_UNIT: usize = 32;

/// A unit of simulation: its paths, and where they are put.
pub(crate) struct SimulationUnit {
    pub(crate) paths: Range<usize>,
    pub(crate) simulator: PathSimulator,
    /// What is written of them, table by table.
    pub(crate) pieces: Result<Vec<Piece>, ParquetError>,
}

/// All units of this rank.
pub(crate) struct RankWork<'p, C: Backend> {
    pub(crate) shared: RwLock<TrainingState<'p, C>>,
    pub(crate) seed: u64,
    pub(crate) passes: usize,
    /// The first forward pass of this rank.
    pub(crate) first_pass: usize,
    pub(crate) forward: Vec<Mutex<PathSimulator>>,
    /// By level.
    pub(crate) backward: Vec<Vec<Mutex<BackwardUnit>>>,
    /// By level, the units of all ranks.
    pub(crate) unit_counts: Vec<usize>,
    pub(crate) simulation: RwLock<Vec<Mutex<SimulationUnit>>>,
    totals: Mutex<Totals>,
}

/// What threads have counted, and the first thing that went wrong.
#[derive(Default)]
struct Totals {
    statistics: LpStatistics,
    /// The lowest unit that failed, and how.
    failed: Option<(usize, SddpError)>,
}

impl<'p, C: Backend> RankWork<'p, C> {
    pub(crate) fn new(
        shared: TrainingState<'p, C>,
        seed: u64,
        passes: usize,
        own_passes: Range<usize>,
        backward: Vec<Vec<Mutex<BackwardUnit>>>,
        unit_counts: Vec<usize>,
    ) -> Self {
        let problem = shared.problem;
        Self {
            shared: RwLock::new(shared),
            seed,
            passes,
            first_pass: own_passes.start,
            forward: own_passes
                .map(|_| Mutex::new(PathSimulator::new(problem)))
                .collect(),
            backward,
            unit_counts,
            simulation: RwLock::new(Vec::new()),
            totals: Mutex::new(Totals::default()),
        }
    }

    /// The field, to be read.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, TrainingState<'p, C>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The field, to be changed between tasks.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, TrainingState<'p, C>> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many units a task has on this rank.
    pub(crate) fn units(&self, task: Task) -> usize {
        match task {
            Task::Forward { .. } => self.forward.len(),
            Task::Backward { level, .. } => self.backward[level].len(),
            Task::Simulate { .. } | Task::Validate => self.simulations().len(),
        }
    }

    pub(crate) fn simulations(&self) -> RwLockReadGuard<'_, Vec<Mutex<SimulationUnit>>> {
        self.simulation
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one unit of a task.
    pub(crate) fn run_unit(&self, task: Task, unit: usize, solvers: &mut NodeSolvers) {
        let shared = self.read();
        let before = solvers.statistics;
        let (result, scenario) = match task {
            Task::Forward { iteration } => {
                let mut simulator = lock(&self.forward[unit]);
                simulator.record.clear();
                let pass = self.first_pass + unit;
                let noise = Noise::new(self.seed, Purpose::Training);
                (
                    simulator.sample(&shared, solvers, noise, (iteration, pass), None),
                    pass,
                )
            }
            Task::Backward { level, .. } => {
                let mut unit = lock(&self.backward[level][unit]);
                (unit.solve(&shared, solvers, level), unit.key.pass)
            }
            Task::Simulate { purpose } => {
                let simulations = self.simulations();
                let mut simulation = lock(&simulations[unit]);
                simulation.run(
                    &shared,
                    solvers,
                    Noise::new(self.seed, purpose),
                    self.passes,
                )
            }
            Task::Validate => {
                let simulations = self.simulations();
                let mut simulation = lock(&simulations[unit]);
                simulation.validate(&shared, solvers)
            }
        };
        let mut totals = lock(&self.totals);
        totals.statistics += solvers.statistics - before;
        if let Err(failure) = result
            && totals
                .failed
                .as_ref()
                .is_none_or(|(first, _)| unit < *first)
        {
            let during = during(task, scenario);
            totals.failed = Some((unit, SddpError::Solver { during, failure }));
        }
    }

    /// What went wrong in the last task, if anything did.
    pub(crate) fn failed(&self) -> Result<(), SddpError> {
        lock(&self.totals)
            .failed
            .take()
            .map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Adds what an earlier run has solved.
    pub(crate) fn add_statistics(&self, statistics: LpStatistics) {
        lock(&self.totals).statistics += statistics;
    }

    /// What this rank has solved so far.
    pub(crate) fn statistics(&self) -> LpStatistics {
        lock(&self.totals).statistics
    }
}

fn during(task: Task, scenario: usize) -> String {
    let scenario = scenario + 1;
    match task {
        Task::Forward { iteration } => {
            format!(
                "iteration {}, forward pass, scenario {scenario}",
                iteration + 1
            )
        }
        Task::Backward { iteration, .. } => {
            format!(
                "iteration {}, backward pass, scenario {scenario}",
                iteration + 1
            )
        }
        Task::Simulate { .. } => format!("simulation, scenario {scenario}"),
        Task::Validate => format!("validation scenario {scenario}"),
    }
}
