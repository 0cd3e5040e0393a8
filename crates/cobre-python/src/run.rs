//! Training and simulation, as the only process or as one rank of a job.

use std::path::PathBuf;

use cobre_case::{CaseSettings, Finding, Overrides};
use cobre_comm::{
    BackendError, BackendKind, BackendSelection, CommBackend, Environment, create_communicator,
};
use cobre_sddp::{
    About, DEFAULT_BASIS_MEMORY, Iteration, MAX_PASSES, MAX_PATHS, MAX_THREADS, Observer, Problem,
    Results, Sampling, SddpError, Settings, Solver, Start, StopRule,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;
use crate::policy::Bare;
use crate::source::{Given, parse};

/// Paths that a policy is tried on if neither the caller nor the case says how many.
const PATHS: usize = 1000;

/// Settings of a run, as `cobre.train` hands them over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    seed: Option<u64>,
    iterations: Option<usize>,
    forward_passes: Option<usize>,
    cut_selection: Option<String>,
    stop: Vec<String>,
    stop_when_all: bool,
    threads: usize,
    simulate: Option<usize>,
    solver: Option<String>,
    checkpoint: String,
    resume: bool,
    output: Option<PathBuf>,
    csv: bool,
}

impl Request {
    /// The settings of the caller, else of the case, else the defaults.
    fn settings(self, problem: &Problem, case: Option<&CaseSettings>) -> PyResult<Settings> {
        let rules: PyResult<Vec<StopRule>> =
            self.stop.iter().map(|rule| parse("stop", rule)).collect();
        let selection = self.cut_selection;
        let overrides = Overrides {
            iterations: self.iterations,
            stop: rules?,
            stop_when_all: self.stop_when_all,
            forward_passes: self.forward_passes,
            seed: self.seed,
            selection: selection
                .map(|rule| parse("cut_selection", &rule))
                .transpose()?,
            simulate: self.simulate,
        };
        let found = overrides.over(case);
        at_most("threads", self.threads, MAX_THREADS)?;
        at_most("forward_passes", found.forward_passes, MAX_PASSES)?;
        at_most("simulate", found.simulate, MAX_PATHS)?;
        let statistical = |rule: &StopRule| matches!(rule, StopRule::Statistical { .. });
        if !problem.is_risk_neutral() && found.stopping.rules.iter().any(statistical) {
            return Err(errors::invalid(&[
                "stop=\"statistical\" compares the bound with a mean, and under a risk measure it is none on the mean".to_owned(),
            ]));
        }
        Ok(Settings {
            seed: found.seed,
            passes: found.forward_passes,
            selection: found.selection,
            stopping: found.stopping,
            threads: self.threads,
            simulate: found.simulate,
            sampling: Sampling::Fresh,
            solver: match &self.solver {
                Some(name) => parse("solver", name)?,
                None => Solver::default(),
            },
            basis_memory: DEFAULT_BASIS_MEMORY,
            checkpoints: parse("checkpoint", &self.checkpoint)?,
            resume: self.resume,
            output: self.output,
            csv: self.csv,
        })
    }
}

fn at_most(name: &str, number: usize, most: usize) -> PyResult<()> {
    if number <= most {
        return Ok(());
    }
    let finding = format!("{name}={number}: a whole number of at most {most} is expected");
    Err(errors::invalid(&[finding]))
}

/// An iteration, for a progress callback and for the table of convergence.
#[derive(IntoPyObject)]
pub(crate) struct IterationFields {
    iteration: usize,
    bound: f64,
    estimate: f64,
    half_width_95: Option<f64>,
    paths: usize,
    gap: Option<f64>,
    cuts: usize,
    lp_solves: u64,
    retries: u64,
    seconds: f64,
    forward_seconds: f64,
    backward_seconds: f64,
    communication_seconds: f64,
}

impl From<&Iteration> for IterationFields {
    fn from(iteration: &Iteration) -> Self {
        Self {
            iteration: iteration.number,
            bound: iteration.bound,
            estimate: iteration.estimate.mean,
            half_width_95: iteration.estimate.half_width_95,
            paths: iteration.estimate.paths,
            gap: iteration.gap,
            cuts: iteration.cuts,
            lp_solves: iteration.lp.solves,
            retries: iteration.lp.retries,
            seconds: iteration.time.total,
            forward_seconds: iteration.time.forward,
            backward_seconds: iteration.time.backward,
            communication_seconds: iteration.time.communication,
        }
    }
}

#[derive(IntoPyObject)]
struct Estimate {
    mean: f64,
    half_width_95: Option<f64>,
    paths: usize,
    source: &'static str,
}

impl Estimate {
    fn new(estimate: cobre_sddp::Estimate, source: &'static str) -> Self {
        Self {
            mean: estimate.mean,
            half_width_95: estimate.half_width_95,
            paths: estimate.paths,
            source,
        }
    }
}

/// The fields of a `cobre.TrainingResult`.
#[derive(IntoPyObject)]
pub(crate) struct Found<'py> {
    sense: &'static str,
    bound: f64,
    estimate: Estimate,
    stop_reason: String,
    lp_solves: u64,
    validation: Vec<f64>,
    policy_sha256: String,
    train_seconds: f64,
    simulate_seconds: f64,
    write_seconds: f64,
    steps: Vec<IterationFields>,
    /// Iterations of an earlier run that this one went on from.
    resumed_from: Option<usize>,
    warnings: Vec<String>,
    /// On the first rank.
    policy: Option<Bare<'py>>,
}

impl<'py> Found<'py> {
    fn new(py: Python<'py>, sense: &'static str, results: Results, told: Told) -> PyResult<Self> {
        let (estimate, source) = match results.simulated {
            Some(estimate) => (estimate, "simulation"),
            None => (results.trained.estimate, "training"),
        };
        Ok(Self {
            sense,
            bound: results.trained.bound,
            estimate: Estimate::new(estimate, source),
            stop_reason: results.trained.reason.to_string(),
            lp_solves: results.lp.solves,
            validation: results.validation,
            policy_sha256: results.policy_sha256,
            train_seconds: results.seconds.train,
            simulate_seconds: results.seconds.simulate,
            write_seconds: results.seconds.write,
            steps: results
                .trained
                .iterations
                .iter()
                .map(IterationFields::from)
                .collect(),
            resumed_from: told.resumed_from,
            warnings: told.warnings,
            policy: results
                .policy
                .map(|policy| Bare::new(py, policy))
                .transpose()?,
        })
    }
}

/// The fields of a `cobre.SimulationResult`.
#[derive(IntoPyObject)]
pub(crate) struct Tried<'py> {
    sense: &'static str,
    estimate: Option<Estimate>,
    values: Bound<'py, PyArray1<f64>>,
    validation: Vec<f64>,
    lp_solves: u64,
    seconds: f64,
    warnings: Vec<String>,
}

/// Events of a run that its result reports.
struct Told {
    resumed_from: Option<usize>,
    warnings: Vec<String>,
}

/// Tells Python how far a run is, and ends it when Python raises.
struct Teller {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
    told: Told,
}

impl Teller {
    fn tell(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) {
        if let (Some(callback), None) = (&self.callback, &self.raised) {
            self.raised = Python::attach(|py| call(py, callback).err());
        }
    }
}

impl Observer for Teller {
    fn iteration(&mut self, iteration: &Iteration) {
        self.tell(|py, callback| callback.call1(py, (IterationFields::from(iteration),)));
    }

    fn simulated(&mut self, done: usize, all: usize) {
        self.tell(|py, callback| callback.call1(py, (Simulated { done, all },)));
    }

    fn resumed(&mut self, iterations: usize) {
        self.told.resumed_from = Some(iterations);
    }

    fn warning(&mut self, text: &str) {
        self.told.warnings.push(text.to_owned());
    }

    fn interrupted(&mut self) -> bool {
        if self.raised.is_none() {
            self.raised = Python::attach(|py| py.check_signals().err());
        }
        self.raised.is_some()
    }
}

/// Simulated paths, for a progress callback.
#[derive(IntoPyObject)]
struct Simulated {
    done: usize,
    all: usize,
}

/// Connects and runs `job`: alone, or as the rank that the environment makes this process if there is
/// someone to tell that it has `joined`. What a callback or a signal's handler raised comes before what
/// the job says.
fn connected<T: Send>(
    py: Python<'_>,
    joined: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    warnings: &[Finding],
    job: impl FnOnce(&CommBackend, &mut Teller) -> Result<T, SddpError> + Send,
) -> PyResult<(T, Told)> {
    let mut teller = Teller {
        callback: progress,
        raised: None,
        told: Told {
            resumed_from: None,
            warnings: warnings.iter().map(ToString::to_string).collect(),
        },
    };
    let result = py.detach(|| {
        let kind = match &joined {
            Some(_) => BackendKind::from_env(),
            None => Ok(BackendKind::Local),
        };
        let comm = kind
            .and_then(create_communicator)
            .map_err(|error| errors::of_backend(&error))?;
        if let Some(joined) = joined {
            teller.raised = Python::attach(|py| joined.call0(py).err());
        }
        job(&comm, &mut teller).map_err(|error| errors::of_run(&error))
    });
    match teller.raised {
        Some(raised) => Err(raised),
        None => Ok((result?, teller.told)),
    }
}

/// Finds what is wrong with a problem or with how it is to be solved.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, given: Given, request: Request) -> PyResult<()> {
    let case = given.load(py)?;
    request.settings(&case.problem, case.settings.as_ref())?;
    Ok(())
}

/// Refuses to be one of several ranks of an MPI launcher: each would train by itself, over the results
/// of the others.
#[pyfunction]
pub(crate) fn check_launcher() -> PyResult<()> {
    let asked = BackendKind::from_env();
    if !matches!(asked, Ok(BackendKind::Auto)) {
        return Ok(());
    }
    match BackendSelection::new(BackendKind::Auto, &Environment::process()) {
        Err(
            error @ BackendError::BackendNotAvailable {
                requested: "mpi", ..
            },
        ) => Err(errors::of_backend(&error)),
        _ => Ok(()),
    }
}

/// Trains in this process: alone, or with the ranks that it has `joined`; from nothing, or from the cuts
/// of a policy. A callback that raises, or a signal whose handler does, ends the run after the iteration
/// and is raised then.
#[pyfunction]
pub(crate) fn train<'py>(
    py: Python<'py>,
    given: Given,
    request: Request,
    policy: Option<Bare<'py>>,
    joined: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found<'py>> {
    let name = given.name();
    let case = given.load(py)?;
    let settings = request.settings(&case.problem, case.settings.as_ref())?;
    let sense = case.problem.sense.name();
    let policy = policy.map(Bare::policy).transpose()?;
    let warnings = &case.warnings;
    let (results, told) = connected(py, joined, progress, warnings, |comm, teller| {
        let start = Start {
            about: About::new(&*case.tables, &name, case.kind, comm.name()),
            policy: policy.as_ref(),
        };
        cobre_sddp::run_from(comm, case.problem, &settings, &start, teller)
    })?;
    Found::new(py, sense, results, told)
}

/// Tries a policy in this process, as [`train`] trains one.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    given: Given,
    request: Request,
    policy: Bare<'py>,
    joined: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Tried<'py>> {
    let name = given.name();
    let case = given.load(py)?;
    let mut settings = request.settings(&case.problem, case.settings.as_ref())?;
    let sense = case.problem.sense.name();
    if settings.simulate == 0 {
        settings.simulate = PATHS;
    }
    let policy = policy.policy()?;
    let warnings = &case.warnings;
    let (tried, told) = connected(py, joined, progress, warnings, |comm, teller| {
        let start = Start {
            about: About::new(&*case.tables, &name, case.kind, comm.name()),
            policy: Some(&policy),
        };
        cobre_sddp::simulate(comm, case.problem, &settings, &start, teller)
    })?;
    let estimate = tried.simulated;
    Ok(Tried {
        sense,
        estimate: estimate.map(|estimate| Estimate::new(estimate, "simulation")),
        values: tried.values.into_pyarray(py),
        validation: tried.validation,
        lp_solves: tried.lp.solves,
        seconds: tried.seconds.simulate,
        warnings: told.warnings,
    })
}
