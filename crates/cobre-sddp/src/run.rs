//! The whole job: train, simulate, validate, write.

use std::path::PathBuf;
use std::time::Instant;

use crate::engine::{Engine, Field, Solvers};
use crate::error::SddpError;
use crate::events::Observer;
use crate::kernel::{Always, Auto, Checked, StageKernel};
use crate::lp::{Counts, HighsNode, Kernel};
use crate::output::{Directory, SimulationFiles};
use crate::path::Paths;
use crate::policy::{CutPool, Selection};
use crate::problem::Problem;
use crate::ranks::{Backend, Ranks};
use crate::simulation::Sampling;
use crate::team::with_team;
use crate::training::backward::{Unit, UnitKey, units};
use crate::training::{Estimate, Stopping, Trained, Trainer};

/// Which solver answers for nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// The kernel on nodes where it is the faster one, HiGHS on the others.
    #[default]
    Auto,
    /// The kernel on every node that it can solve.
    Kernel,
    /// HiGHS.
    Highs,
    /// The kernel, with HiGHS beside it: a run ends at the first answer that differs.
    Check,
}

impl std::str::FromStr for Solver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Kernel, Self::Highs, Self::Check];
        let found = all.into_iter().find(|solver| solver.name() == text);
        found.ok_or_else(|| format!("one of {} is expected", all.map(Self::name).join(", ")))
    }
}

impl Solver {
    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => <StageKernel<Auto>>::NAME,
            Self::Kernel => <StageKernel<Always>>::NAME,
            Self::Highs => HighsNode::NAME,
            Self::Check => <Checked<Always>>::NAME,
        }
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
    /// Linear programs solved by all ranks, in training and simulation.
    pub lp: Counts,
    /// Bytes of cuts and openings that ranks share.
    pub shared_bytes: usize,
    /// Where the time went.
    pub seconds: Seconds,
}

/// Trains, simulates, validates and writes. Collective: ranks agree on the problem and on all
/// settings but threads.
///
/// # Errors
/// A linear program that cannot be solved, ranks that cannot go on together, and files that cannot
/// be written; the other ranks learn of it at once.
pub fn run<C: Backend>(
    comm: &C,
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
    let ranks = Ranks::new(comm);
    let result = match settings.solver {
        Solver::Auto => run_with::<C, StageKernel<Auto>>(&ranks, problem, settings, observer),
        Solver::Kernel => run_with::<C, StageKernel<Always>>(&ranks, problem, settings, observer),
        Solver::Check => run_with::<C, Checked<Always>>(&ranks, problem, settings, observer),
        Solver::Highs => run_with::<C, HighsNode>(&ranks, problem, settings, observer),
    };
    if let Err(error @ (SddpError::Solver { .. } | SddpError::Io { .. })) = &result {
        ranks.abort(&error.reason());
    }
    result
}

/// [`run`] with a solver of this type.
pub(crate) fn run_with<C: Backend, K: Kernel>(
    ranks: &Ranks<'_, C>,
    mut problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Results, SddpError> {
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
                units::<K>(&problem, level, settings.passes)
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
        pool: CutPool::new(&problem, settings.passes, settings.selection),
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
            let trainer = Trainer {
                engine: &engine,
                team,
                ranks,
                units: &all_units,
            };
            whole_job(trainer, settings, observer)
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
    let mut simulated = None;
    if settings.simulate > 0 {
        let mut files = directory
            .as_ref()
            .map(|directory| directory.simulation(problem))
            .transpose()?;
        let sink = &mut |first: usize, paths: &Paths| {
            files
                .as_mut()
                .map_or(Ok(()), |files| files.append(problem, first, paths))
        };
        simulated = Some(job.simulate(settings.simulate, settings.sampling, observer, sink)?);
        files.map_or(Ok(()), SimulationFiles::finish)?;
    }
    let validated = job.validate()?;
    seconds.simulate = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let sign = problem.sense.sign();
    let validation = (0..validated.count()).map(|path| sign * validated.cost(problem, path));
    let counts = job.counts()?;
    let field = job.engine.read();
    let mut results = Results {
        policy_sha256: field.pool.sha256(problem),
        lp: counts,
        shared_bytes: field.pool.bytes() + size_of_val(field.values.read()),
        trained,
        simulated,
        validation: validation.collect(),
        seconds,
    };
    if let Some(directory) = directory {
        directory.write_training(&results.trained)?;
        directory.write_policy(problem, &field.pool, &results, settings)?;
        if validated.count() > 0 {
            directory.write_validation(problem, &validated)?;
        }
        directory.write_run(&results, job.ranks.size(), settings)?;
    }
    results.seconds.write = start.elapsed().as_secs_f64();
    Ok(results)
}

/// Where the first rank writes; no other rank writes anything.
fn directory<C: Backend, K: Kernel>(
    job: &Trainer<'_, '_, '_, C, K>,
    settings: &Settings,
) -> Result<Option<Directory>, SddpError> {
    let path = settings.output.as_ref().filter(|_| job.ranks.is_first());
    path.map(|path| Directory::create(path)).transpose()
}
