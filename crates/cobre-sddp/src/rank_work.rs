//! The work of a rank: the state that its threads share, and their work units.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use cobre_results::RowGroup;

use crate::error::SddpError;
use crate::events::Observer;
use crate::kernel::{PresolvedNodes, Workspace};
use crate::lp::{LpFailure, LpStatistics, NodeSolution, NodeView, Visit};
use crate::noise::Purpose;
use crate::output::PathTables;
use crate::path::{PathDraws, PathEnd, PathSimulator, TrialPoint, TrialPoints};
use crate::policy::CutPool;
use crate::problem::Problem;
use crate::ranks::{Backend, Ranks, SharedTable};
use crate::settings::Settings;
use crate::solver::{NodeSolver, Solver, WarmStart};
use crate::team::lock;
use crate::training::backward::{BackwardStep, BackwardUnit, UnitKey, units};
use crate::unit_times::UnitTimes;
use crate::upper_bound::InnerLevel;

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
    /// The trial point of `pass` at a step of the backward pass: the node visited and its outgoing state. At the
    /// root that is the initial state.
    pub(crate) fn trial(&self, pass: usize, step: BackwardStep) -> Option<TrialPoint> {
        let graph = &self.problem.graph;
        let visited = match step {
            BackwardStep::Level(level) => {
                let mut stages = self.trials.of_pass(pass);
                stages.find(|(node, _)| graph.level(*node) == level)
            }
            BackwardStep::Visit(place) => self.trials.visit(pass, place),
            BackwardStep::Root => {
                return Some(TrialPoint {
                    node: None,
                    state: self.problem.initial_state(),
                });
            }
        };
        let (node, outgoing) = visited?;
        Some(TrialPoint {
            node: Some(node),
            state: outgoing.to_vec(),
        })
    }

    pub(crate) fn view(&self, node: usize) -> NodeView<'_> {
        NodeView {
            problem: self.problem,
            values: self.values.read(),
            node,
            cuts: self.pool.cuts(self.problem, node),
            failures: self.failures,
            given: None,
        }
    }
}

/// The solvers of one thread, one per node that it has met.
pub(crate) struct NodeSolvers {
    solver: Solver,
    basis_bytes: usize,
    presolved: Arc<PresolvedNodes>,
    workspace: Workspace,
    nodes: Vec<Option<NodeSolver>>,
    statistics: LpStatistics,
}

impl NodeSolvers {
    /// No solvers yet; threads share what presolve makes of nodes.
    pub(crate) fn new(
        problem: &Problem,
        presolved: &Arc<PresolvedNodes>,
        solver: Solver,
        basis_bytes: usize,
    ) -> Self {
        Self {
            solver,
            basis_bytes,
            presolved: Arc::clone(presolved),
            workspace: Workspace::default(),
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
        self.solve_given(shared, (node, None), visit, warm_start, each)
    }

    /// As [`solve`](Self::solve), with values in the place of those of openings.
    pub(crate) fn solve_given<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        (node, given): (usize, Option<&[f64]>),
        visit: &Visit<'_>,
        warm_start: &mut WarmStart,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        let view = NodeView {
            given,
            ..shared.view(node)
        };
        let solver = match &mut self.nodes[node] {
            Some(solver) => solver,
            empty => {
                let (presolved, bytes) = (&self.presolved, self.basis_bytes);
                empty.insert(NodeSolver::load(&view, presolved, self.solver, bytes)?)
            }
        };
        let before = solver.statistics();
        let result = solver.solve(&mut self.workspace, &view, visit, warm_start, each);
        self.statistics += solver.statistics() - before;
        result
    }
}

/// A task for all threads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// The forward passes of an iteration; a unit is a pass.
    Forward { iteration: usize },
    /// The successors of this iteration's trial points at a step; a unit is a pass, a successor and a block of its
    /// openings.
    Backward {
        iteration: usize,
        step: BackwardStep,
    },
    /// Simulated paths; a unit is [`PATHS_PER_UNIT`] of them.
    Simulate { purpose: Purpose },
    /// The modeller's own scenarios; a unit is one of them.
    Validate,
    /// A level of the upper bound; a unit is some points of a successor.
    UpperBound,
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
    /// The seed of simulated paths.
    simulate_seed: u64,
    pub(crate) passes: usize,
    /// The first forward pass of this rank.
    pub(crate) first_pass: usize,
    pub(crate) forward: Vec<Mutex<PathSimulator>>,
    /// By level.
    pub(crate) backward: Vec<Vec<Mutex<BackwardUnit>>>,
    /// By level, the units of all ranks.
    pub(crate) units: Vec<Vec<UnitKey>>,
    /// The levels whose units forward passes share warm starts with.
    shared_levels: Vec<SharedLevel>,
    pub(crate) simulation: RwLock<Vec<Mutex<SimulationUnit>>>,
    inner: RwLock<InnerLevel>,
    /// The end of simulated paths.
    simulated_end: PathEnd,
    totals: Mutex<Totals>,
}

/// A level with one unit per pass, whose node has a successor's linear program in both passes: the rank that has a pass
/// has that unit, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SharedLevel {
    level: usize,
    node: usize,
}

/// The levels whose units forward passes share warm starts with: those with one unit per pass, one for each node. The
/// problem alone decides it; `units` are those of all ranks, by level.
pub(crate) fn shared_levels(units: &[Vec<UnitKey>], passes: usize) -> Vec<SharedLevel> {
    let mut shared: Vec<SharedLevel> = Vec::new();
    // The last level is the root's, whose unit is there once.
    for (level, units) in units.iter().enumerate().take(units.len() - 1) {
        let is_whole = units.len() == passes && units.iter().all(|unit| unit.node == units[0].node);
        if is_whole && !shared.iter().any(|other| other.node == units[0].node) {
            let node = units[0].node;
            shared.push(SharedLevel { level, node });
        }
    }
    shared
}

/// The totals of all threads, and the first failure.
#[derive(Default)]
struct Totals {
    statistics: LpStatistics,
    /// The lowest unit that failed, with its error.
    failed: Option<(usize, SddpError)>,
    /// Of the last iteration.
    times: UnitTimes,
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
        let backward: Vec<Vec<Mutex<BackwardUnit>>> = units.iter().map(own).collect();
        let lengths = backward.iter().map(Vec::len);
        let times = UnitTimes::new(problem, (own_passes.len(), passes), lengths, &units);
        let end = PathEnd::Sampled(settings.path_stages.get());
        let simulator = |_| Mutex::new(PathSimulator::new(problem, Some(end)));
        let fixed = settings.simulate_stages;
        Self {
            shared: RwLock::new(shared),
            seed: settings.seed,
            simulate_seed: settings.simulate_seed.unwrap_or(settings.seed),
            passes,
            first_pass: own_passes.start,
            forward: own_passes.map(simulator).collect(),
            backward,
            shared_levels: shared_levels(&units, passes),
            units,
            simulation: RwLock::new(Vec::new()),
            simulated_end: fixed.map_or(end, |stages| PathEnd::Fixed(stages.get())),
            inner: RwLock::default(),
            totals: Mutex::new(Totals {
                times,
                ..Totals::default()
            }),
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

    /// A simulator of the paths of a task.
    pub(crate) fn simulator(&self, task: Task) -> PathSimulator {
        let end = match task {
            Task::Forward { .. } | Task::Backward { .. } | Task::Simulate { .. } => {
                Some(self.simulated_end)
            }
            // The modeller says where these end; an upper bound follows no paths.
            Task::Validate | Task::UpperBound => None,
        };
        PathSimulator::new(self.read().problem, end)
    }

    /// The list of units of a step: that of its level.
    pub(crate) fn list(&self, step: BackwardStep) -> usize {
        match step {
            BackwardStep::Level(level) => level,
            BackwardStep::Visit(_) => 1,
            BackwardStep::Root => self.units.len() - 1,
        }
    }

    /// The draws of paths of a purpose.
    fn draws(&self, purpose: Purpose) -> PathDraws {
        let seed = match purpose {
            Purpose::Simulation => self.simulate_seed,
            _ => self.seed,
        };
        PathDraws {
            seed,
            purpose,
            passes: self.passes,
        }
    }

    /// The number of units of a task on this rank.
    pub(crate) fn count_units(&self, task: Task) -> usize {
        match task {
            Task::Forward { .. } => self.forward.len(),
            Task::Backward { step, .. } => self.backward[self.list(step)].len(),
            Task::Simulate { .. } | Task::Validate => self.simulations().len(),
            Task::UpperBound => self.inner().count_units(),
        }
    }

    pub(crate) fn simulations(&self) -> RwLockReadGuard<'_, Vec<Mutex<SimulationUnit>>> {
        self.simulation
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> RwLockReadGuard<'_, InnerLevel> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The level of the upper bound, for changes between tasks.
    pub(crate) fn inner_mut(&self) -> RwLockWriteGuard<'_, InnerLevel> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one unit of a task.
    pub(crate) fn run_unit(&self, task: Task, unit: usize, solvers: &mut NodeSolvers) {
        let shared = self.read();
        let (start, before) = (Instant::now(), solvers.statistics);
        let (result, scenario) = match task {
            Task::Forward { iteration } => {
                let mut simulator = lock(&self.forward[unit]);
                simulator.costs.clear();
                let pass = self.first_pass + unit;
                let draws = self.draws(Purpose::Training);
                self.swap_warm_starts(&mut simulator, unit);
                let result = simulator.sample(&shared, solvers, draws, (iteration, pass), None);
                self.swap_warm_starts(&mut simulator, unit);
                (result, pass)
            }
            Task::Backward { step, .. } => {
                let mut unit = lock(&self.backward[self.list(step)][unit]);
                (unit.solve(&shared, solvers, step), unit.key.pass)
            }
            Task::Simulate { purpose } => {
                let simulations = self.simulations();
                let mut simulation = lock(&simulations[unit]);
                simulation.run(&shared, solvers, self.draws(purpose))
            }
            Task::Validate => {
                let simulations = self.simulations();
                let mut simulation = lock(&simulations[unit]);
                simulation.validate(&shared, solvers)
            }
            Task::UpperBound => {
                let solved = self.inner().solve(&shared, unit);
                solvers.statistics.solves += solved;
                solvers.statistics.highs += solved;
                (Ok(()), 0)
            }
        };
        let mut totals = lock(&self.totals);
        totals.statistics += solvers.statistics - before;
        let seconds = start.elapsed().as_secs_f64();
        match task {
            Task::Forward { .. } => totals.times.forward[unit] = seconds,
            Task::Backward { step, .. } => totals.times.backward[self.list(step)][unit] = seconds,
            Task::Simulate { .. } | Task::Validate | Task::UpperBound => {}
        }
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

    /// Swaps the warm starts of a forward pass with those of its units in the backward pass.
    fn swap_warm_starts(&self, simulator: &mut PathSimulator, pass: usize) {
        for shared in &self.shared_levels {
            let own = &mut simulator.warm_starts[shared.node];
            std::mem::swap(
                own,
                &mut lock(&self.backward[shared.level][pass]).warm_start,
            );
        }
    }

    /// The first failure of the last task, if any.
    pub(crate) fn failed(&self) -> Result<(), SddpError> {
        lock(&self.totals)
            .failed
            .take()
            .map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Passes on the times of the last iteration's units.
    pub(crate) fn report_times(&self, observer: &mut dyn Observer) {
        observer.unit_times(&lock(&self.totals).times);
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
        Task::UpperBound => "upper bound".to_owned(),
    }
}
