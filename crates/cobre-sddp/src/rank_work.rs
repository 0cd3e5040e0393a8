//! The work of a rank: the state that its threads share, and their work units.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cobre_results::RowGroup;

use crate::error::SddpError;
use crate::lp::{LpFailure, LpStatistics, NodeSolution, NodeView, Visit};
use crate::noise::{Noise, Purpose};
use crate::output::PathTables;
use crate::path::{PathSimulator, TrialPoint, TrialPoints};
use crate::policy::CutPool;
use crate::problem::Problem;
use crate::ranks::{Backend, Ranks, SharedTable};
use crate::settings::Settings;
use crate::solver::{NodeSolver, Solver, WarmStart};
use crate::team::lock;
use crate::training::backward::{BackwardUnit, UnitKey, units};

/// The state of training that threads share. It changes between tasks only.
pub(crate) struct TrainingState<'p, C: Backend> {
    pub(crate) problem: &'p Problem,
    /// The values of all openings.
    pub(crate) values: SharedTable<C>,
    pub(crate) pool: CutPool<C>,
    /// The trial points of this iteration's forward passes.
    pub(crate) trials: TrialPoints,
    /// The directory that linear programs are written to if they cannot be solved.
    pub(crate) failures: &'p Path,
    /// The tables of simulated paths, if results are written.
    pub(crate) tables: Option<PathTables<'p>>,
}

impl<C: Backend> TrainingState<'_, C> {
    /// The trial point of `pass` at `level`: the node visited and its outgoing state. Above all
    /// levels that is the root, with the initial state.
    pub(crate) fn trial(&self, pass: usize, level: usize) -> Option<TrialPoint> {
        let graph = &self.problem.graph;
        if level == graph.depth() {
            return Some(TrialPoint {
                node: None,
                state: self.problem.initial_state(),
            });
        }
        let mut stages = self.trials.of_pass(self.problem, pass);
        let (node, outgoing) = stages.find(|(node, _)| graph.level(*node) == level)?;
        Some(TrialPoint {
            node: Some(node),
            state: outgoing.to_vec(),
        })
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

/// The solvers of one thread, one per node that it has met.
pub(crate) struct NodeSolvers {
    solver: Solver,
    basis_bytes: usize,
    nodes: Vec<Option<NodeSolver>>,
    statistics: LpStatistics,
}

impl NodeSolvers {
    pub(crate) fn new(problem: &Problem, solver: Solver, basis_bytes: usize) -> Self {
        Self {
            solver,
            basis_bytes,
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
            empty => empty.insert(NodeSolver::load(&view, self.solver, self.basis_bytes)?),
        };
        let before = solver.statistics();
        let result = solver.solve(&view, visit, warm_start, each);
        self.statistics += solver.statistics() - before;
        result
    }
}

/// A task for all threads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// The forward passes of an iteration; a unit is a pass.
    Forward { iteration: usize },
    /// The successors of a level at this iteration's trial points; a unit is a pass, a successor
    /// and a block of its openings.
    Backward { iteration: usize, level: usize },
    /// Simulated paths; a unit is [`PATHS_PER_UNIT`] of them.
    Simulate { purpose: Purpose },
    /// The modeller's own scenarios; a unit is one of them.
    Validate,
}

/// Consecutive simulated paths of a unit, each warm-started from the bases of the one before.
pub(crate) const PATHS_PER_UNIT: usize = 32;

/// A unit of simulation: its paths and their results.
pub(crate) struct SimulationUnit {
    pub(crate) paths: Range<usize>,
    pub(crate) simulator: PathSimulator,
    /// The encoded rows of its paths, table by table.
    pub(crate) row_groups: io::Result<Vec<RowGroup>>,
}

/// All work units of this rank.
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
    pub(crate) units: Vec<Vec<UnitKey>>,
    pub(crate) simulation: RwLock<Vec<Mutex<SimulationUnit>>>,
    totals: Mutex<Totals>,
}

/// The totals of all threads, and the first failure.
#[derive(Default)]
struct Totals {
    statistics: LpStatistics,
    /// The lowest unit that failed, with its error.
    failed: Option<(usize, SddpError)>,
}

impl<'p, C: Backend> RankWork<'p, C> {
    /// The work units of this rank.
    pub(crate) fn new(
        shared: TrainingState<'p, C>,
        ranks: &Ranks<'_, C>,
        settings: &Settings,
    ) -> Self {
        let (problem, passes) = (shared.problem, settings.passes.get());
        let units = (0..=problem.graph.depth()).map(|level| match level {
            // Nothing follows a leaf.
            0 => Vec::new(),
            level => units(problem, settings.solver, level, passes),
        });
        let units: Vec<Vec<UnitKey>> = units.collect();
        let own = |units: &Vec<UnitKey>| {
            let own = units[ranks.share(units.len())].iter();
            own.cloned().map(BackwardUnit::new).collect()
        };
        let own_passes = ranks.share(passes);
        let simulator = |_| Mutex::new(PathSimulator::new(problem));
        Self {
            shared: RwLock::new(shared),
            seed: settings.seed,
            passes,
            first_pass: own_passes.start,
            forward: own_passes.map(simulator).collect(),
            backward: units.iter().map(own).collect(),
            units,
            simulation: RwLock::new(Vec::new()),
            totals: Mutex::new(Totals::default()),
        }
    }

    /// The shared state, for reading.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, TrainingState<'p, C>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared state, for changes between tasks.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, TrainingState<'p, C>> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of units of a task on this rank.
    pub(crate) fn count_units(&self, task: Task) -> usize {
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

    /// Runs one unit of a task.
    pub(crate) fn run_unit(&self, task: Task, unit: usize, solvers: &mut NodeSolvers) {
        let shared = self.read();
        let before = solvers.statistics;
        let (result, scenario) = match task {
            Task::Forward { iteration } => {
                let mut simulator = lock(&self.forward[unit]);
                simulator.costs.clear();
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

    /// The first failure of the last task, if any.
    pub(crate) fn failed(&self) -> Result<(), SddpError> {
        lock(&self.totals)
            .failed
            .take()
            .map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Adds the statistics of an earlier run.
    pub(crate) fn add_statistics(&self, statistics: LpStatistics) {
        lock(&self.totals).statistics += statistics;
    }

    /// The statistics of this rank so far.
    pub(crate) fn statistics(&self) -> LpStatistics {
        lock(&self.totals).statistics
    }
}

/// The task in words, for errors.
pub(crate) fn during(task: Task, scenario: usize) -> String {
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
