//! A run: train, simulate, validate, write.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use cobre_comm::{host_name, memory};
use cobre_results::layout::validation;
use cobre_results::{MemoryTable, RowGroup, TableFile, note};

use crate::agreement::agree;
use crate::basis_memory;
use crate::checkpoint::{self, Cadence, Checkpoints, Provenance};
use crate::error::{ClassifiedError, SddpError};
use crate::events::Observer;
use crate::fingerprint::Fingerprint;
use crate::kernel::PresolvedNodes;
use crate::lp::LpStatistics;
use crate::memory_estimate::MemoryEstimate;
use crate::noise::Purpose;
use crate::output::{About, Facts, PathTables, PlainTables, RunOutput};
use crate::path::TrialPoints;
use crate::policy::{CutPool, GivenPolicy, InitialState, Manifest, Policy};
use crate::problem::{Fictitious, Problem};
use crate::rank_work::{NodeSolvers, RankWork, TrainingState};
use crate::ranks::{Backend, ByteBlocks, Ranks, split};
use crate::settings::Settings;
use crate::simulation::Sampling;
use crate::spans::SpanKind;
use crate::team::with_team;
use crate::training::{
    Estimate, Progress, StopReason, StopRule, Stopping, Trainer, TrainingResults,
};
use crate::upper_bound::UpperBound;

/// The seconds of the parts of a run, by this rank's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seconds {
    /// Training.
    pub train: f64,
    /// Simulation and validation.
    pub simulate: f64,
    /// Writing results.
    pub write: f64,
}

/// The results of a run, the same on every rank except for [`Seconds`].
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Training.
    pub trained: TrainingResults,
    /// The policy's value on simulated paths, if any were asked for.
    pub simulated: Option<Estimate>,
    /// The stages of those paths, if paths of a cyclic graph were simulated for so many: the value of what follows is
    /// not theirs.
    pub simulated_stages: Option<usize>,
    /// Its value on each of them.
    pub values: Vec<f64>,
    /// The value of each of the modeller's validation scenarios.
    pub validation: Vec<f64>,
    /// The fingerprint of the policy.
    pub policy_sha256: String,
    /// The policy, on the first rank.
    pub policy: Option<Policy>,
    /// True if the run was interrupted.
    pub interrupted: bool,
    /// Linear programs solved by all ranks, in training and simulation.
    pub lp: LpStatistics,
    /// The cost that nobody pays and that no figure contains.
    pub fictitious: Fictitious,
    /// Bytes of cuts and openings that ranks share.
    pub shared_bytes: usize,
    /// The time of its parts.
    pub seconds: Seconds,
}

/// The warning about a bound on the wrong side of the estimate.
const CONTRADICTION: &str = "the bound is on the wrong side of the estimate by more than sampling explains: is the cost to \
     go never below the bound that was given (--bound, bound=; for a revenue: above)?";

impl Results {
    /// Warns of a bound that contradicts the estimate.
    fn warn(&self, problem: &Problem, settings: &Settings, observer: &mut dyn Observer) {
        // Paths that are cut short lack a part of the cost.
        if settings.cut_short(&problem.graph).is_none() && self.contradicts(problem) {
            observer.warning(CONTRADICTION);
        }
    }

    /// True if the bound contradicts the estimate by more than sampling error.
    fn contradicts(&self, problem: &Problem) -> bool {
        let simulated = self.simulated.filter(|_| self.simulated_stages.is_none());
        let estimate = simulated.unwrap_or(self.trained.estimate);
        let Some(half) = estimate.half_width_95.filter(|_| problem.is_risk_neutral()) else {
            return false;
        };
        let bound = self.trained.bound;
        // Twice the interval: one in ten thousand.
        let margin = 2.0 * (half + 1.96 * self.fictitious.standard_error) + 1e-6 * bound.abs();
        problem.sense.sign() * (bound - estimate.mean) > margin
    }

    /// Writes training and the policy, which the first rank keeps if the observer wants it. It is the one that training
    /// began with, to the bit, if nothing was added to it.
    fn keep_policy<C: Backend>(
        &mut self,
        job: &Trainer<'_, '_, '_, C>,
        directory: Option<&RunOutput>,
        start: &Start<'_>,
        settings: &Settings,
        observer: &dyn Observer,
    ) -> Result<(), SddpError> {
        let is_given = self.trained.iterations.is_empty();
        let given = start.policy.filter(|_| is_given);
        if let Some(given) = given {
            self.policy_sha256 = given.sha256();
        }
        if !job.ranks.is_first() || (directory.is_none() && !observer.keeps_policy()) {
            return Ok(());
        }
        // The first rank leads its node.
        let whole = given.map(GivenPolicy::whole).transpose()?.flatten();
        let policy = whole.unwrap_or_else(|| {
            let shared = job.work.read();
            let (problem, pool) = (shared.problem, &shared.pool);
            Cow::Owned(Policy {
                manifest: manifest(problem, self, settings, pool.used()),
                cuts: pool.stored(problem),
            })
        });
        if let Some(directory) = directory {
            directory.write_training(&self.trained)?;
            directory.write_policy(&policy)?;
        }
        self.policy = observer.keeps_policy().then(|| policy.into_owned());
        Ok(())
    }

    /// The part of the run that was interrupted.
    pub fn interrupted_in(&self) -> Option<&'static str> {
        self.interrupted
            .then_some(if self.trained.reason == StopReason::Interrupted {
                "training"
            } else {
                "simulation"
            })
    }
}

/// Trains, simulates, validates and writes. Collective: ranks agree on the problem and on all
/// settings but threads.
///
/// # Errors
/// Ranks that were asked different things, a linear program that cannot be solved, ranks that cannot go on together, and files that cannot
/// be written; the other ranks learn of it at once.
pub fn run<C: Backend>(
    comm: &C,
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let tables = PlainTables::new(&problem);
    run_from(comm, problem, settings, &Start::plain(&tables), observer)
}

/// The start of a run: its tables and its warm start.
pub struct Start<'a> {
    /// The tables and facts of the case.
    pub about: About<'a>,
    /// The policy of a warm start. Its cuts stay in use, whatever cut selection does.
    pub policy: Option<GivenPolicy<'a>>,
}

impl<'a> Start<'a> {
    /// No warm start, and plain tables.
    pub fn plain(tables: &'a PlainTables) -> Self {
        Self {
            about: About {
                tables,
                facts: serde_json::Map::new(),
            },
            policy: None,
        }
    }
}

/// As [`run`], with tables of the caller and a warm start.
///
/// # Errors
/// As for [`run`], and a policy that does not fit the problem.
pub fn run_from<C: Backend>(
    comm: &C,
    problem: Problem,
    settings: &Settings,
    start: &Start<'_>,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let ranks = &Ranks::new(comm);
    ranks.spans.keep(observer.wants_spans());
    let found = run_on(ranks, problem, settings, start, observer);
    ranks.report_spans(observer);
    // Errors that the other ranks do not know of.
    if let Err(
        error @ (SddpError::Solver { .. }
        | SddpError::Io { .. }
        | SddpError::Setting { .. }
        | SddpError::OutOfMemory { .. }
        | SddpError::Checkpoint(_)
        | SddpError::Foreign(_)
        | SddpError::Misfit(_)),
    ) = &found
    {
        ranks.abort(error.kind(), &error.to_string());
        if let (SddpError::Solver { failure, .. }, Some(output)) = (error, &settings.output)
            && let Some(file) = &failure.file
        {
            // That the next run does not know the file is better than another error.
            let _ = note(output, file);
        }
    }
    found
}

/// Simulates a policy on the paths that [`run`] simulates after training with the same seed and
/// passes. Nothing is trained: the results have no iterations, and the bound is that of the policy.
/// Collective, as [`run`].
///
/// # Errors
/// As for [`run_from`].
pub fn simulate<C: Backend>(
    comm: &C,
    problem: Problem,
    settings: &Settings,
    start: &Start<'_>,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(0)]),
        upper_bound: 0,
        checkpoints: Cadence::Never,
        resume: false,
        ..settings.clone()
    };
    run_from(comm, problem, &settings, start, observer)
}

/// [`run_from`], without telling other ranks of errors.
fn run_on<C: Backend>(
    ranks: &Ranks<'_, C>,
    mut problem: Problem,
    settings: &Settings,
    start: &Start<'_>,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    // Before the values of openings move to shared memory.
    let provenance = Provenance {
        problem: Fingerprint::of(&problem),
        policy: start.policy.map(GivenPolicy::sha256),
    };
    agree(ranks, &provenance, settings)?;
    settings.check(problem.is_risk_neutral())?;
    settings.check_graph(&problem.graph)?;
    if let Some(warning) = settings.cut_short(&problem.graph) {
        observer.warning(&warning);
    }
    check_memory(ranks, &problem, settings, observer)?;
    if let Some(policy) = start.policy {
        policy.fits(&problem, ranks.is_leader())?;
    }
    let values = std::mem::take(&mut problem.values);
    let values = ranks.share_table(values.len(), |shared| shared.copy_from_slice(&values))?;
    let failures = settings
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    let pool = pool(ranks, &problem, settings, start)?;
    let shared = TrainingState {
        problem: &problem,
        values,
        pool,
        trials: TrialPoints::default(),
        failures: &failures,
        tables: (settings.output.is_some() || observer.keeps_tables())
            .then(|| PathTables::new(&problem, start.about.tables, settings.csv)),
    };
    let work = RankWork::new(shared, ranks, settings);
    let basis_bytes = basis_memory::per_basis(&problem, &work.units, settings);
    let presolved = &Arc::new(PresolvedNodes::new(problem.nodes.len()));
    with_team(
        settings.threads.get(),
        || NodeSolvers::new(&problem, presolved, settings.solver, basis_bytes),
        |task, unit, solvers| work.run_unit(task, unit, solvers),
        |team| {
            let trainer = Trainer {
                work: &work,
                team,
                ranks,
            };
            run_job(trainer, &provenance, settings, start, observer)
        },
    )
}

/// The pool of cuts that training begins with. Collective.
fn pool<C: Backend>(
    ranks: &Ranks<'_, C>,
    problem: &Problem,
    settings: &Settings,
    start: &Start<'_>,
) -> Result<CutPool<C>, SddpError> {
    let mut pool = CutPool::new(problem, settings.passes.get(), settings.selection);
    if let Some(policy) = start.policy {
        pool.give(ranks, problem, policy)?;
    }
    Ok(pool)
}

/// Refuses training that the memory of this machine does not hold, and warns where it may not. Collective.
fn check_memory<C: Backend>(
    ranks: &Ranks<'_, C>,
    problem: &Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<(), SddpError> {
    let estimate = MemoryEstimate::of(problem, settings);
    // The same on all ranks: so is the number of collectives.
    let hosts = if estimate.is_small() {
        1
    } else {
        hosts(ranks)?
    };
    let warning = estimate.check(memory::available() as u64, hosts as u64)?;
    if let Some(warning) = warning.filter(|_| ranks.is_first()) {
        observer.warning(&warning);
    }
    Ok(())
}

/// The number of hosts that ranks run on. Collective.
fn hosts<C: Backend>(ranks: &Ranks<'_, C>) -> Result<usize, SddpError> {
    let mut hasher = DefaultHasher::new();
    host_name().hash(&mut hasher);
    let mut hosts = ranks.gather_one(hasher.finish())?;
    hosts.sort_unstable();
    hosts.dedup();
    Ok(hosts.len())
}

/// Trains, writes, simulates, validates and writes again.
fn run_job<C: Backend>(
    mut job: Trainer<'_, '_, '_, C>,
    provenance: &Provenance,
    settings: &Settings,
    start_from: &Start<'_>,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let about = &start_from.about;
    let problem = job.work.read().problem;
    let directory = directory(&job, settings)?;
    let mut checkpoints = Checkpoints::new(directory.as_ref(), provenance, settings)?;
    let progress = resume(&mut checkpoints, &job, settings, observer)?;
    let start = Instant::now();
    let trained = train(&mut job, progress, settings, &mut checkpoints, observer)?;
    let seconds = Seconds {
        train: start.elapsed().as_secs_f64(),
        ..Seconds::default()
    };
    let start = Instant::now();
    let mut results = results_of_training(&job, trained, settings, seconds);
    // Training first: its results stay if something below fails.
    results.keep_policy(&job, directory.as_ref(), start_from, settings, observer)?;
    results.seconds.write = start.elapsed().as_secs_f64();
    if !results.interrupted {
        let start = Instant::now();
        simulate_policy(
            &mut job,
            directory.as_ref(),
            settings,
            observer,
            &mut results,
        )?;
        results.seconds.simulate = start.elapsed().as_secs_f64();
    }
    results.warn(problem, settings, observer);
    results.lp = job.statistics()?;
    let (hosts, threads) = machines(job.ranks, settings)?;
    // The last checkpoint was written in the meantime.
    checkpoints.settle()?;
    if let Some(directory) = &directory {
        directory.finish(&Facts {
            about,
            results: &results,
            settings,
            risk: problem.risk_name(),
            kinds: kinds(problem, settings),
            provenance,
            hosts,
            threads,
        })?;
    }
    if !results.interrupted {
        checkpoints.finish()?;
    }
    Ok(results)
}

/// Trains as the settings say.
fn train<C: Backend>(
    job: &mut Trainer<'_, '_, '_, C>,
    progress: Progress,
    settings: &Settings,
    checkpoints: &mut Checkpoints,
    observer: &mut dyn Observer,
) -> Result<TrainingResults, SddpError> {
    let mut upper = UpperBound::new(settings.upper_bound, settings.upper_bound_states.get());
    job.train(
        &settings.stopping,
        progress,
        &mut upper,
        checkpoints,
        observer,
    )
}

/// The results before any path is simulated, without the policy.
fn results_of_training<C: Backend>(
    job: &Trainer<'_, '_, '_, C>,
    trained: TrainingResults,
    settings: &Settings,
    seconds: Seconds,
) -> Results {
    let shared = job.work.read();
    let (problem, pool) = (shared.problem, &shared.pool);
    Results {
        policy_sha256: pool.sha256(problem),
        policy: None,
        lp: LpStatistics::default(),
        fictitious: problem.fictitious,
        shared_bytes: pool.bytes() + size_of_val(shared.values.read()),
        interrupted: trained.reason == StopReason::Interrupted,
        trained,
        simulated: None,
        simulated_stages: settings.simulate_stages.map(NonZeroUsize::get),
        values: Vec::new(),
        validation: Vec::new(),
        seconds,
    }
}

fn manifest(problem: &Problem, results: &Results, settings: &Settings, cuts: usize) -> Manifest {
    let states = problem.states.iter().map(|state| InitialState {
        name: state.name.clone(),
        initial: state.initial,
    });
    Manifest {
        format: Manifest::FORMAT,
        sense: problem.sense.name().to_owned(),
        risk: problem.risk_name(),
        seed: settings.seed,
        forward_passes: settings.passes.get(),
        iterations: results.trained.iterations.len(),
        bound: results.trained.bound,
        states: states.collect(),
        nodes: problem.nodes.iter().map(|node| node.name.clone()).collect(),
        start_dates: start_dates(problem),
        cuts,
        sha256: results.policy_sha256.clone(),
    }
}

/// The first day of each node's stage; none if some stage has no date.
fn start_dates(problem: &Problem) -> Vec<String> {
    let dates = problem.nodes.iter().map(|node| node.start_date.clone());
    let dates: Vec<String> = dates.collect();
    if dates.iter().any(String::is_empty) {
        return Vec::new();
    }
    dates
}

/// Simulates and validates, unless interrupted.
fn simulate_policy<C: Backend>(
    job: &mut Trainer<'_, '_, '_, C>,
    directory: Option<&RunOutput>,
    settings: &Settings,
    observer: &mut dyn Observer,
    results: &mut Results,
) -> Result<(), SddpError> {
    if settings.simulate > 0 {
        let mut files = path_files(job, directory)?;
        let sink = &mut |row_groups: Vec<RowGroup>| {
            let mut files = files.iter_mut().zip(row_groups);
            files.try_for_each(|(file, row_group)| file.splice(row_group))
        };
        let problem = job.work.read().problem;
        let count = match settings.sampling {
            Sampling::Fresh => problem.simulated_paths(settings.simulate),
            Sampling::InSample => settings.simulate,
        };
        let start = Instant::now();
        job.ranks.spans.iteration(0);
        let values = job.simulate(count, settings.sampling, observer, sink)?;
        job.ranks.spans.note(SpanKind::Simulation, start);
        let Some(values) = values else {
            results.interrupted = true;
            return Ok(());
        };
        results.simulated = Some(Estimate::of(&values));
        results.values = values;
        for file in files {
            file.finish(directory, observer)?;
        }
    }
    results.validation = job.validate()?;
    match directory {
        Some(directory) if !results.validation.is_empty() => {
            directory.write_validation(&results.validation)
        }
        _ => Ok(()),
    }
}

/// A table of simulated paths in the making.
enum PathTable {
    File(Box<TableFile>),
    Memory(Box<MemoryTable>),
}

impl PathTable {
    fn splice(&mut self, row_group: RowGroup) -> Result<(), SddpError> {
        match self {
            Self::File(file) => Ok(file.splice(row_group)?),
            Self::Memory(table) => Ok(table.splice(row_group)?),
        }
    }

    /// Puts the files in their places, or tells the observer of the table.
    fn finish(
        self,
        directory: Option<&RunOutput>,
        observer: &mut dyn Observer,
    ) -> Result<(), SddpError> {
        match self {
            Self::File(file) => directory.map_or(Ok(()), |directory| directory.put(*file)),
            Self::Memory(table) => {
                let (name, whole) = table.finish()?;
                observer.table(&name, whole);
                Ok(())
            }
        }
    }
}

/// The tables that simulated paths go to, on the first rank: files if there is a directory.
fn path_files<C: Backend>(
    job: &Trainer<'_, '_, '_, C>,
    directory: Option<&RunOutput>,
) -> Result<Vec<PathTable>, SddpError> {
    let shared = job.work.read();
    let tables = shared.tables.as_ref().filter(|_| job.ranks.is_first());
    let Some(tables) = tables else {
        return Ok(Vec::new());
    };
    if let Some(directory) = directory {
        let files = directory.simulation(tables)?;
        return Ok(files
            .into_iter()
            .map(|file| PathTable::File(Box::new(file)))
            .collect());
    }
    let tables = tables.tables.iter().map(MemoryTable::new);
    let tables = tables.map(|table| Ok(PathTable::Memory(Box::new(table?))));
    tables.collect()
}

/// Restores the progress of the newest checkpoint, if that is asked for.
fn resume<C: Backend>(
    checkpoints: &mut Checkpoints,
    job: &Trainer<'_, '_, '_, C>,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Progress, SddpError> {
    if !settings.resume {
        return Ok(Progress::default());
    }
    let warn = &mut |text: &str| observer.warning(text);
    let restored = checkpoints.restore(job.work, job.ranks, warn)?;
    match &restored {
        Some(progress) => observer.resumed(progress.iterations.len()),
        None => observer
            .warning("there is no checkpoint to resume from: this starts from the beginning"),
    }
    Ok(restored.unwrap_or_default())
}

/// The directory of results, on the first rank; no other rank writes.
fn directory<C: Backend>(
    job: &Trainer<'_, '_, '_, C>,
    settings: &Settings,
) -> Result<Option<RunOutput>, SddpError> {
    let Some(path) = settings.output.as_ref().filter(|_| job.ranks.is_first()) else {
        return Ok(None);
    };
    checkpoint::check(path)?;
    let shared = job.work.read();
    let simulated = shared.tables.as_ref().filter(|_| settings.simulate > 0);
    let simulated = simulated.map_or(&[][..], |tables| &tables.tables);
    let mut names: Vec<&str> = simulated.iter().map(|table| &*table.name).collect();
    names.extend((!shared.problem.validation.is_empty()).then_some(validation::TABLE));
    RunOutput::create(path, settings.csv, &names).map(Some)
}

/// The kinds of the paths of training and simulation, where they are not drawn from openings.
fn kinds(problem: &Problem, settings: &Settings) -> [Option<String>; 2] {
    let simulation = match settings.sampling {
        Sampling::InSample => Purpose::Training,
        Sampling::Fresh => Purpose::Simulation,
    };
    let kind = |purpose| problem.path_kind(purpose).map(str::to_owned);
    [Purpose::Training, simulation].map(kind)
}

/// The host and the threads of each rank, on the first rank. Collective.
fn machines<C: Backend>(
    ranks: &Ranks<'_, C>,
    settings: &Settings,
) -> Result<(Vec<String>, Vec<usize>), SddpError> {
    let mut own = ByteBlocks::default();
    own.push(&(host_name(), settings.threads.get()));
    let (lengths, mut all) = (ranks.gather_lengths(ranks.size(), &own)?, Vec::new());
    ranks.gather_to_first(&lengths, &own, &mut |piece: &[u8]| {
        all.extend_from_slice(piece);
        Ok::<(), SddpError>(())
    })?;
    let read = |machine| postcard::from_bytes::<(String, usize)>(machine).unwrap_or_default();
    Ok(split(&lengths, &all).map(read).unzip())
}
