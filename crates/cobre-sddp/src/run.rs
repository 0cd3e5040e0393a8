//! A run: train, simulate, validate, write.

use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

use crate::agreement::agree;
use crate::basis_memory;
use crate::checkpoint::{self, Cadence, Checkpoints, Provenance};
use crate::error::SddpError;
use crate::events::Observer;
use crate::fingerprint::Fingerprint;
use crate::lp::LpStatistics;
use crate::output::{
    About, Directory, Facts, PathTables, PlainTables, RowGroup, VALIDATION, host, note,
};
use crate::path::TrialPoints;
use crate::policy::{CutPool, InitialState, Manifest, Policy, Selection};
use crate::problem::Problem;
use crate::rank_work::{NodeSolvers, RankWork, TrainingState};
use crate::ranks::{Backend, ByteBlocks, Ranks, split};
use crate::simulation::Sampling;
use crate::solver::Solver;
use crate::team::with_team;
use crate::training::{
    Estimate, Progress, StopReason, StopRule, Stopping, Trainer, TrainingResults,
};

/// The largest number of threads of a rank.
pub const MAX_THREADS: usize = 1024;
/// The largest number of forward passes of an iteration.
pub const MAX_PASSES: usize = 100_000;
/// The most paths of a simulation that make sense to ask for.
pub const MAX_PATHS: usize = 10_000_000;

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Forward passes per iteration, at least 1.
    pub passes: usize,
    /// The cut selection.
    pub selection: Selection,
    /// The stopping rules.
    pub stopping: Stopping,
    /// Threads of this rank, at least 1; ranks may differ.
    pub threads: usize,
    /// Paths to simulate after training.
    pub simulate: usize,
    /// The source of those paths.
    pub sampling: Sampling,
    /// The solver of nodes.
    pub solver: Solver,
    /// The most bytes of the bases that all units of all ranks remember. Results depend on it.
    pub basis_memory: u64,
    /// The cadence of checkpoints.
    pub checkpoints: Cadence,
    /// True to resume from the newest checkpoint, if there is one.
    pub resume: bool,
    /// The directory of results; `None` to write none.
    pub output: Option<PathBuf>,
    /// True to write tables as CSV as well.
    pub csv: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            passes: 1,
            selection: Selection::ALL,
            stopping: Stopping::asked(None, Vec::new(), false),
            threads: 1,
            simulate: 0,
            sampling: Sampling::Fresh,
            solver: Solver::default(),
            basis_memory: basis_memory::DEFAULT,
            checkpoints: Cadence::default(),
            resume: false,
            output: None,
            csv: false,
        }
    }
}

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
    /// Bytes of cuts and openings that ranks share.
    pub shared_bytes: usize,
    /// The time of its parts.
    pub seconds: Seconds,
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
    pub policy: Option<&'a Policy>,
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
    let found = run_on(ranks, problem, settings, start, observer);
    // Errors that the other ranks do not know of.
    if let Err(
        error @ (SddpError::Solver { .. }
        | SddpError::Io { .. }
        | SddpError::Checkpoint(_)
        | SddpError::Foreign(_)
        | SddpError::Misfit(_)),
    ) = &found
    {
        ranks.abort(&error.reason());
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
        policy: start.policy.map(Policy::sha256),
    };
    agree(ranks, &provenance, settings)?;
    if let Some(policy) = start.policy {
        policy.fits(&problem).map_err(SddpError::Misfit)?;
    }
    let values = std::mem::take(&mut problem.values);
    let values = ranks.share_table(values.len(), |shared| shared.copy_from_slice(&values))?;
    let failures = settings
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    let mut pool = CutPool::new(&problem, settings.passes, settings.selection);
    if let Some(policy) = start.policy {
        pool.give(ranks, &problem, policy)?;
    }
    let shared = TrainingState {
        problem: &problem,
        values,
        pool,
        trials: TrialPoints::default(),
        failures: &failures,
        tables: settings
            .output
            .as_ref()
            .map(|_| PathTables::new(&problem, start.about.tables, settings.csv)),
    };
    let work = RankWork::new(shared, ranks, settings);
    let basis_bytes = basis_memory::per_basis(&problem, &work.units, settings);
    with_team(
        settings.threads,
        || NodeSolvers::new(&problem, settings.solver, basis_bytes),
        |task, unit, solvers| work.run_unit(task, unit, solvers),
        |team| {
            let trainer = Trainer {
                work: &work,
                team,
                ranks,
            };
            run_job(trainer, &provenance, settings, &start.about, observer)
        },
    )
}

/// Trains, writes, simulates, validates and writes again.
fn run_job<C: Backend>(
    mut job: Trainer<'_, '_, '_, C>,
    provenance: &Provenance,
    settings: &Settings,
    about: &About<'_>,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let problem = job.work.read().problem;
    let directory = directory(&job, settings)?;
    let mut checkpoints = Checkpoints::new(directory.as_ref(), provenance, settings)?;
    let progress = if settings.resume {
        resume(&mut checkpoints, &job, observer)?
    } else {
        Progress::default()
    };
    let start = Instant::now();
    let trained = job.train(&settings.stopping, progress, &mut checkpoints, observer)?;
    let seconds = Seconds {
        train: start.elapsed().as_secs_f64(),
        ..Seconds::default()
    };
    let start = Instant::now();
    let mut results = results_of_training(&job, trained, settings, seconds);
    // Training first: its results stay if something below fails.
    if let (Some(directory), Some(policy)) = (&directory, &results.policy) {
        directory.write_training(&results.trained)?;
        directory.write_policy(policy)?;
    }
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

/// The results before any path is simulated; the first rank's have the policy.
fn results_of_training<C: Backend>(
    job: &Trainer<'_, '_, '_, C>,
    trained: TrainingResults,
    settings: &Settings,
    seconds: Seconds,
) -> Results {
    let shared = job.work.read();
    let (problem, pool) = (shared.problem, &shared.pool);
    let mut results = Results {
        policy_sha256: pool.sha256(problem),
        policy: None,
        lp: LpStatistics::default(),
        shared_bytes: pool.bytes() + size_of_val(shared.values.read()),
        interrupted: trained.reason == StopReason::Interrupted,
        trained,
        simulated: None,
        values: Vec::new(),
        validation: Vec::new(),
        seconds,
    };
    results.policy = job.ranks.is_first().then(|| Policy {
        manifest: manifest(problem, &results, settings, pool.used()),
        cuts: pool.stored(problem),
    });
    results
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
        forward_passes: settings.passes,
        iterations: results.trained.iterations.len(),
        bound: results.trained.bound,
        states: states.collect(),
        nodes: problem.nodes.iter().map(|node| node.name.clone()).collect(),
        cuts,
        sha256: results.policy_sha256.clone(),
    }
}

/// Simulates and validates, unless interrupted.
fn simulate_policy<C: Backend>(
    job: &mut Trainer<'_, '_, '_, C>,
    directory: Option<&Directory>,
    settings: &Settings,
    observer: &mut dyn Observer,
    results: &mut Results,
) -> Result<(), SddpError> {
    if settings.simulate > 0 {
        let mut files = Vec::new();
        if let (Some(directory), Some(tables)) = (directory, &job.work.read().tables) {
            files = directory.simulation(tables)?;
        }
        let sink = &mut |row_groups: Vec<RowGroup>| {
            let mut files = files.iter_mut().zip(row_groups);
            files.try_for_each(|(file, row_group)| file.splice(row_group))
        };
        let values = job.simulate(settings.simulate, settings.sampling, observer, sink)?;
        let Some(values) = values else {
            results.interrupted = true;
            return Ok(());
        };
        results.simulated = Some(Estimate::of(&values));
        results.values = values;
        if let Some(directory) = directory {
            files.into_iter().try_for_each(|file| directory.put(file))?;
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

/// Restores the progress of the newest checkpoint.
fn resume<C: Backend>(
    checkpoints: &mut Checkpoints,
    job: &Trainer<'_, '_, '_, C>,
    observer: &mut dyn Observer,
) -> Result<Progress, SddpError> {
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
) -> Result<Option<Directory>, SddpError> {
    let Some(path) = settings.output.as_ref().filter(|_| job.ranks.is_first()) else {
        return Ok(None);
    };
    checkpoint::check(path)?;
    let shared = job.work.read();
    let simulated = shared.tables.as_ref().filter(|_| settings.simulate > 0);
    let simulated = simulated.map_or(&[][..], |tables| &tables.tables);
    let mut names: Vec<&str> = simulated.iter().map(|table| &*table.name).collect();
    names.extend((!shared.problem.validation.is_empty()).then_some(VALIDATION));
    Directory::create(path, settings.csv, &names).map(Some)
}

/// The host and the threads of each rank, on the first rank. Collective.
fn machines<C: Backend>(
    ranks: &Ranks<'_, C>,
    settings: &Settings,
) -> Result<(Vec<String>, Vec<usize>), SddpError> {
    let mut own = ByteBlocks::default();
    own.push(&(host(), settings.threads));
    let (lengths, mut all) = (ranks.gather_lengths(ranks.size(), &own)?, Vec::new());
    ranks.gather_to_first(&lengths, &own, &mut |piece: &[u8]| {
        all.extend_from_slice(piece);
        Ok::<(), SddpError>(())
    })?;
    let read = |machine| postcard::from_bytes::<(String, usize)>(machine).unwrap_or_default();
    Ok(split(&lengths, &all).map(read).unzip())
}
