//! The whole job: train, simulate, validate, write.

use std::path::PathBuf;
use std::time::Instant;

use crate::agreement::agree;
use crate::engine::{Engine, Field, Solvers};
use crate::error::SddpError;
use crate::events::Observer;
use crate::lp::{HighsNode, Kernel};
use crate::output::{Directory, SimulationFiles};
use crate::path::Paths;
use crate::policy::{CutPool, InitialState, Manifest, Policy, Selection};
use crate::problem::Problem;
use crate::ranks::{Backend, Ranks};
use crate::simulation::Sampling;
use crate::team::with_team;
use crate::training::backward::{Unit, UnitKey, units};
use crate::training::{Estimate, Stopping, Trained, Trainer};

/// Which solver answers for nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// HiGHS.
    #[default]
    Highs,
}

impl std::str::FromStr for Solver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == HighsNode::NAME {
            return Ok(Self::Highs);
        }
        Err(format!("{} is expected", HighsNode::NAME))
    }
}

/// How a problem is solved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where all chance comes from.
    pub seed: u64,
    /// Forward passes per iteration, at least 1.
    pub passes: usize,
    /// Which cuts are used.
    pub selection: Selection,
    /// When training ends.
    pub stopping: Stopping,
    /// Threads of this rank, at least 1; ranks may differ.
    pub threads: usize,
    /// Paths to simulate after training.
    pub simulate: usize,
    /// Which paths those are.
    pub sampling: Sampling,
    /// Which solver to use.
    pub solver: Solver,
    /// Where results are written; `None` for nowhere.
    pub output: Option<PathBuf>,
}

/// Seconds that the parts of a run took, by this rank's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seconds {
    /// Training.
    pub train: f64,
    /// Simulation and validation.
    pub simulate: f64,
    /// Writing results.
    pub write: f64,
}

/// What a run found, the same on every rank except for [`Seconds`].
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Training.
    pub trained: Trained,
    /// The policy's value on simulated paths, if any were asked for.
    pub simulated: Option<Estimate>,
    /// The value of each of the modeller's validation scenarios.
    pub validation: Vec<f64>,
    /// The fingerprint of the policy.
    pub policy_sha256: String,
    /// The policy, on the first rank.
    pub policy: Option<Policy>,
    /// Linear programs solved by all ranks, in training and simulation.
    pub lp_solves: u64,
    /// Bytes of cuts and openings that ranks share.
    pub shared_bytes: usize,
    /// Where the time went.
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
    let ranks = Ranks::new(comm);
    agree(&ranks, &problem, settings)?;
    let result = match settings.solver {
        Solver::Highs => run_with::<C, HighsNode, _>(&ranks, problem, settings, None, |job| {
            whole_job(job, settings, observer)
        }),
    };
    or_abort(&ranks, result)
}

/// What a policy is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// Its value on the simulated paths; `None` if there were none.
    pub estimate: Option<Estimate>,
    /// The value of each simulated path.
    pub values: Vec<f64>,
    /// The value of each of the modeller's validation scenarios.
    pub validation: Vec<f64>,
    /// Linear programs solved by all ranks.
    pub lp_solves: u64,
    /// Seconds it took, by this rank's clock.
    pub seconds: f64,
}

/// Tries a policy on as many paths as the settings say, which are the paths that [`run`] tries the
/// policy on that it has trained with the same seed and passes. Collective, as [`run`].
///
/// # Errors
/// As for [`run`], and a policy that does not fit the problem.
pub fn simulate<C: Backend>(
    comm: &C,
    problem: Problem,
    policy: &Policy,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Simulated, SddpError> {
    let ranks = Ranks::new(comm);
    policy.fits(&problem).map_err(SddpError::Misfit)?;
    agree(&ranks, &problem, settings)?;
    let policy = Some(policy);
    let result = match settings.solver {
        Solver::Highs => {
            run_with::<C, HighsNode, _>(&ranks, problem, settings, policy, |mut job| {
                let directory = directory(&job, settings)?;
                try_policy(&mut job, directory.as_ref(), settings, observer)
            })
        }
    };
    or_abort(&ranks, result)
}

/// Tells the other ranks of an error that they cannot know of.
fn or_abort<C: Backend, T>(
    ranks: &Ranks<'_, C>,
    result: Result<T, SddpError>,
) -> Result<T, SddpError> {
    if let Err(error @ (SddpError::Solver { .. } | SddpError::Io { .. })) = &result {
        ranks.abort(&error.reason());
    }
    result
}

/// Sets everything up for `job`, with the cuts of `policy` or without any.
fn run_with<C: Backend, K: Kernel, T>(
    ranks: &Ranks<'_, C>,
    mut problem: Problem,
    settings: &Settings,
    policy: Option<&Policy>,
    job: impl FnOnce(Trainer<'_, '_, '_, C, K>) -> Result<T, SddpError>,
) -> Result<T, SddpError> {
    let values = std::mem::take(&mut problem.values);
    let values = ranks.share_table(values.len(), |shared| shared.copy_from_slice(&values))?;
    let failures = settings
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    let all_units: Vec<Vec<UnitKey>> = (0..=problem.graph.depth())
        .map(|level| {
            if level == 0 {
                Vec::new()
            } else {
                units(&problem, level, settings.passes)
            }
        })
        .collect();
    let own = |units: &Vec<UnitKey>| {
        let share = ranks.share(units.len());
        units[share].iter().cloned().map(Unit::<K>::new).collect()
    };
    let backward = all_units.iter().map(own).collect();
    let field = Field {
        problem: &problem,
        values,
        pool: match policy {
            Some(policy) => CutPool::of(ranks, &problem, policy)?,
            None => CutPool::new(&problem, settings.passes, settings.selection),
        },
        trials: Paths::new(&problem),
        failures: &failures,
    };
    let own_passes = ranks.share(settings.passes);
    let engine = Engine::new(field, settings.seed, settings.passes, own_passes, backward);
    with_team(
        settings.threads,
        || Solvers::<K>::new(&problem),
        |task, unit, solvers| engine.work(task, unit, solvers),
        |team| {
            job(Trainer {
                engine: &engine,
                team,
                ranks,
                units: &all_units,
            })
        },
    )
}

fn whole_job<C: Backend, K: Kernel>(
    mut job: Trainer<'_, '_, '_, C, K>,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let problem = job.engine.read().problem;
    let directory = directory(&job, settings)?;
    let mut seconds = Seconds::default();
    let start = Instant::now();
    let trained = job.train(&settings.stopping, observer)?;
    seconds.train = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let tried = try_policy(&mut job, directory.as_ref(), settings, observer)?;
    seconds.simulate = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let field = job.engine.read();
    let mut results = Results {
        policy_sha256: field.pool.sha256(problem),
        policy: None,
        lp_solves: tried.lp_solves,
        shared_bytes: field.pool.bytes() + size_of_val(field.values.read()),
        trained,
        simulated: tried.estimate,
        validation: tried.validation,
        seconds,
    };
    if job.ranks.is_first() {
        results.policy = Some(Policy {
            manifest: manifest(problem, &results, settings, field.pool.used()),
            cuts: field.pool.stored(problem),
        });
    }
    if let (Some(directory), Some(policy)) = (directory, &results.policy) {
        directory.write_training(&results.trained)?;
        directory.write_policy(policy)?;
        directory.write_run(&results, job.ranks.size(), settings)?;
    }
    results.seconds.write = start.elapsed().as_secs_f64();
    Ok(results)
}

fn manifest(problem: &Problem, results: &Results, settings: &Settings, cuts: usize) -> Manifest {
    let states = problem.states.iter().map(|state| InitialState {
        name: state.name.clone(),
        initial: state.initial,
    });
    Manifest {
        format: Manifest::FORMAT,
        sense: problem.sense.name().to_owned(),
        risk: problem.risk.to_string(),
        seed: settings.seed,
        forward_passes: settings.passes,
        iterations: results.trained.iterations.len(),
        bound: results.trained.bound(),
        states: states.collect(),
        nodes: problem.nodes.iter().map(|node| node.name.clone()).collect(),
        cuts,
        sha256: results.policy_sha256.clone(),
    }
}

/// Walks the simulated paths and the validation scenarios, and writes them.
fn try_policy<C: Backend, K: Kernel>(
    job: &mut Trainer<'_, '_, '_, C, K>,
    directory: Option<&Directory>,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Simulated, SddpError> {
    let start = Instant::now();
    let problem = job.engine.read().problem;
    let sign = problem.sense.sign();
    let (mut estimate, mut values) = (None, Vec::new());
    if settings.simulate > 0 {
        let mut files = directory
            .map(|directory| directory.simulation(problem))
            .transpose()?;
        let sink = &mut |first: usize, paths: &Paths| {
            values.extend((0..paths.count()).map(|path| sign * paths.cost(problem, path)));
            files
                .as_mut()
                .map_or(Ok(()), |files| files.append(problem, first, paths))
        };
        estimate = Some(job.simulate(settings.simulate, settings.sampling, observer, sink)?);
        files.map_or(Ok(()), SimulationFiles::finish)?;
    }
    let validated = job.validate()?;
    if let Some(directory) = directory.filter(|_| validated.count() > 0) {
        directory.write_validation(problem, &validated)?;
    }
    let validation = (0..validated.count()).map(|path| sign * validated.cost(problem, path));
    Ok(Simulated {
        estimate,
        values,
        validation: validation.collect(),
        lp_solves: job.solves()?,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Where the first rank writes; no other rank writes anything.
fn directory<C: Backend, K: Kernel>(
    job: &Trainer<'_, '_, '_, C, K>,
    settings: &Settings,
) -> Result<Option<Directory>, SddpError> {
    let path = settings.output.as_ref().filter(|_| job.ranks.is_first());
    path.map(|path| Directory::create(path)).transpose()
}
