//! Training and simulation, as the only process or as one rank of a job.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use cobre_case::Case;
use cobre_comm::{CommBackend, LocalBackend};
use cobre_sddp::{
    About, Iteration, Observer, Overrides, Results, SddpError, Settings, Start, Stopping,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::communicator::Communicator;
use crate::errors;
use crate::job::first_rank;
use crate::policy::PolicyFields;
use crate::source::{Given, parse};

/// Paths that a policy is tried on if neither the caller nor the case says how many.
const PATHS: usize = 1000;

/// Settings of a run, as `cobre.train` hands them over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "keyword arguments")]
pub(crate) struct Request {
    seed: Option<u64>,
    iterations: Option<usize>,
    forward_passes: Option<NonZeroUsize>,
    cut_selection: Option<String>,
    stop: Vec<String>,
    stop_when_all: bool,
    threads: NonZeroUsize,
    simulate: Option<usize>,
    upper_bound: Option<usize>,
    upper_bound_states: Option<NonZeroUsize>,
    simulate_stages: Option<NonZeroUsize>,
    path_stages: Option<NonZeroUsize>,
    solver: Option<String>,
    /// In MiB.
    basis_memory: Option<u64>,
    checkpoint: String,
    resume: bool,
    output: Option<PathBuf>,
    csv: bool,
    /// True to keep the tables of simulated paths where there is no output.
    tables: bool,
}

impl Request {
    /// The settings of the caller, else of the case, else the defaults.
    fn settings(self, case: Overrides, risk_neutral: bool) -> PyResult<Settings> {
        let stop = self.stop.iter().map(|rule| parse("stop", rule));
        let settings = Settings::default().with(case).with(Overrides {
            seed: self.seed,
            simulate_seed: self.seed.map(|_| None),
            passes: self.forward_passes,
            selection: parsed("cut_selection", self.cut_selection.as_deref())?,
            stopping: Stopping::asked(
                self.iterations,
                stop.collect::<PyResult<_>>()?,
                self.stop_when_all,
            ),
            threads: Some(self.threads),
            simulate: self.simulate,
            path_stages: self.path_stages,
            simulate_stages: self.simulate_stages.map(Some),
            sampling: None,
            solver: parsed("solver", self.solver.as_deref())?,
            basis_memory: self.basis_memory.map(|mebibytes| mebibytes << 20),
            upper_bound: self.upper_bound,
            upper_bound_states: self.upper_bound_states,
            checkpoints: Some(parse("checkpoint", &self.checkpoint)?),
            resume: Some(self.resume),
            output: Some(self.output),
            csv: Some(self.csv),
        });
        let checked = settings.check(risk_neutral);
        checked.map_err(|error| errors::of(&error))?;
        Ok(settings)
    }
}

fn parsed<T: FromStr<Err = String>>(name: &str, text: Option<&str>) -> PyResult<Option<T>> {
    text.map(|text| parse(name, text)).transpose()
}

/// An iteration, for a progress callback and for the tables of training, by the names of their columns.
#[derive(IntoPyObject)]
pub(crate) struct IterationFields {
    iteration: usize,
    bound: f64,
    estimate_mean: f64,
    estimate_half_width_95: Option<f64>,
    estimate_paths: usize,
    gap: Option<f64>,
    cuts: usize,
    cuts_added: usize,
    lp_solves: u64,
    upper_bound: Option<f64>,
    seconds: f64,
    forward_seconds: f64,
    backward_seconds: f64,
    communication_seconds: f64,
    highs_solves: u64,
    refactored: u64,
    cold_starts: u64,
    fallbacks: u64,
    retries: u64,
}

impl From<&Iteration> for IterationFields {
    fn from(iteration: &Iteration) -> Self {
        let (estimate, lp, time) = (iteration.estimate, iteration.lp, iteration.time);
        Self {
            iteration: iteration.number,
            bound: iteration.bound,
            estimate_mean: estimate.mean,
            estimate_half_width_95: estimate.half_width_95,
            estimate_paths: estimate.paths,
            gap: iteration.gap,
            cuts: iteration.cuts,
            cuts_added: iteration.cuts_added,
            lp_solves: lp.solves,
            upper_bound: iteration.upper_bound,
            seconds: time.total,
            forward_seconds: time.forward,
            backward_seconds: time.backward,
            communication_seconds: time.communication,
            highs_solves: lp.highs,
            refactored: lp.refactored,
            cold_starts: lp.cold_starts,
            fallbacks: lp.fallbacks,
            retries: lp.retries,
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
pub(crate) struct TrainingFields<'py> {
    sense: &'static str,
    bound: f64,
    upper_bound: Option<f64>,
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
    /// The value of each simulated path.
    values: Bound<'py, PyArray1<f64>>,
    tables: Vec<(String, Bound<'py, PyBytes>)>,
    /// On the first rank.
    policy: Option<PolicyFields<'py>>,
}

impl<'py> TrainingFields<'py> {
    fn new(
        py: Python<'py>,
        sense: &'static str,
        results: Results,
        events: RunEvents,
    ) -> PyResult<Self> {
        let (estimate, source) = match results.simulated {
            Some(estimate) => (estimate, "simulation"),
            None => (results.trained.estimate, "training"),
        };
        Ok(Self {
            sense,
            bound: results.trained.bound,
            upper_bound: results.trained.upper_bound,
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
            resumed_from: events.resumed_from,
            warnings: events.warnings,
            values: results.values.into_pyarray(py),
            tables: bytes_of(py, events.tables),
            policy: results
                .policy
                .map(|policy| PolicyFields::new(py, policy))
                .transpose()?,
        })
    }
}

/// The fields of a `cobre.SimulationResult`.
#[derive(IntoPyObject)]
pub(crate) struct SimulationFields<'py> {
    sense: &'static str,
    estimate: Option<Estimate>,
    values: Bound<'py, PyArray1<f64>>,
    validation: Vec<f64>,
    lp_solves: u64,
    seconds: f64,
    warnings: Vec<String>,
    tables: Vec<(String, Bound<'py, PyBytes>)>,
}

fn bytes_of(py: Python<'_>, tables: Vec<(String, Vec<u8>)>) -> Vec<(String, Bound<'_, PyBytes>)> {
    let bytes = |(name, whole): (String, Vec<u8>)| (name, PyBytes::new(py, &whole));
    tables.into_iter().map(bytes).collect()
}

/// Events of a run that its result reports.
struct RunEvents {
    resumed_from: Option<usize>,
    warnings: Vec<String>,
    /// Tables of simulated paths: the bytes of Parquet, by name.
    tables: Vec<(String, Vec<u8>)>,
}

/// Tells Python how far a run is, and ends it when Python raises.
struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
    keeps_tables: bool,
    events: RunEvents,
}

impl ProgressReporter {
    fn tell(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) {
        if let (Some(callback), None) = (&self.callback, &self.raised) {
            self.raised = Python::attach(|py| call(py, callback).err());
        }
    }
}

impl Observer for ProgressReporter {
    fn iteration(&mut self, iteration: &Iteration) {
        self.tell(|py, callback| callback.call1(py, (IterationFields::from(iteration),)));
    }

    fn simulated(&mut self, done: usize, all: usize) {
        self.tell(|py, callback| callback.call1(py, (Simulated { done, all },)));
    }

    fn resumed(&mut self, iterations: usize) {
        self.events.resumed_from = Some(iterations);
    }

    fn warning(&mut self, text: &str) {
        self.events.warnings.push(text.to_owned());
    }

    fn keeps_tables(&self) -> bool {
        self.keeps_tables
    }

    fn table(&mut self, name: &str, parquet: Vec<u8>) {
        self.events.tables.push((name.to_owned(), parquet));
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

/// Loads the problem and runs `job` on it: alone, or with the ranks of `comm`. What a callback or a signal's handler
/// raised comes before what the job says. Ranks learn of each other's errors without leaving the job.
fn connected<T: Send>(
    py: Python<'_>,
    comm: Option<&Communicator>,
    (given, request): (Given, Request),
    progress: Option<Py<PyAny>>,
    job: impl FnOnce(&CommBackend, Loaded, &mut ProgressReporter) -> Result<T, SddpError> + Send,
) -> PyResult<(T, RunEvents)> {
    let comm = match comm {
        Some(comm) => comm.backend_of_run(),
        None => Arc::new(CommBackend::Local(LocalBackend)),
    };
    let keeps_tables = request.tables && request.output.is_none();
    let loaded = agreed(py, &comm, Loaded::new(py, given, request), NOT_LOADED)?;
    let warnings = loaded.case.warnings.iter();
    let mut reporter = ProgressReporter {
        callback: progress,
        raised: None,
        keeps_tables,
        events: RunEvents {
            resumed_from: None,
            warnings: warnings.map(ToString::to_string).collect(),
            tables: Vec::new(),
        },
    };
    let result = py.detach(|| job(&comm, loaded, &mut reporter));
    match (result, reporter.raised) {
        (Err(_), Some(raised)) => Err(raised),
        // Whoever can be told of this error knows it.
        (Err(error), None) => Err(errors::of(&error)),
        (Ok(found), raised) => {
            let own = raised.map_or(Ok((found, reporter.events)), Err);
            agreed(py, &comm, own, ENDED)
        }
    }
}

/// What other ranks are told of a rank that cannot begin, after its name.
const NOT_LOADED: &str =
    "cannot load the problem, or was given settings that make no sense: see its message";
/// What other ranks are told of a rank that has ended the run.
const ENDED: &str = "has ended the run: it was interrupted, or its progress callback raised";

/// The result of this rank, if every rank has one. Collective.
fn agreed<T>(py: Python<'_>, comm: &CommBackend, own: PyResult<T>, failed: &str) -> PyResult<T> {
    let has_failed = own.is_err();
    let first = py.detach(|| first_rank(comm, has_failed));
    let found = own?;
    match first.map_err(|error| errors::of(&error))? {
        Some(rank) => Err(errors::of_rank(rank, failed)),
        None => Ok(found),
    }
}

/// A problem with the settings to solve it.
struct Loaded {
    name: String,
    case: Case,
    settings: Settings,
}

impl Loaded {
    fn new(py: Python<'_>, given: Given, request: Request) -> PyResult<Self> {
        let name = given.name();
        given.check_output(request.output.as_deref())?;
        let case = given.load(py)?;
        let settings = request.settings(case.settings.clone(), case.problem.is_risk_neutral())?;
        Ok(Self {
            name,
            case,
            settings,
        })
    }
}

/// Finds what is wrong with a problem or with how it is to be solved.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, given: Given, request: Request) -> PyResult<()> {
    given.check_output(request.output.as_deref())?;
    let case = given.check(py)?;
    request.settings(case.settings, case.risk_neutral)?;
    Ok(())
}

/// Trains in this process: alone, or with the ranks of `comm`; from nothing, or from the cuts
/// of a policy. A callback that raises, or a signal whose handler does, ends the run after the iteration
/// and is raised then.
#[pyfunction]
pub(crate) fn train<'py>(
    py: Python<'py>,
    given: Given,
    request: Request,
    policy: Option<PolicyFields<'py>>,
    comm: Option<&Communicator>,
    progress: Option<Py<PyAny>>,
) -> PyResult<TrainingFields<'py>> {
    let policy = policy.map(PolicyFields::policy).transpose()?;
    let asked = (given, request);
    let ((sense, results), events) =
        connected(py, comm, asked, progress, |comm, loaded, reporter| {
            let case = loaded.case;
            let sense = case.problem.sense.name();
            let start = Start {
                about: About::new(&*case.tables, &loaded.name, case.kind, comm.name()),
                policy: policy.as_ref().map(Into::into),
            };
            let found =
                cobre_sddp::run_from(comm, case.problem, &loaded.settings, &start, reporter);
            Ok((sense, found?))
        })?;
    TrainingFields::new(py, sense, results, events)
}

/// Tries a policy in this process, as [`train`] trains one.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    given: Given,
    request: Request,
    policy: PolicyFields<'py>,
    comm: Option<&Communicator>,
    progress: Option<Py<PyAny>>,
) -> PyResult<SimulationFields<'py>> {
    let policy = policy.policy()?;
    let asked = (given, request);
    let ((sense, tried), events) =
        connected(py, comm, asked, progress, |comm, loaded, reporter| {
            let (case, mut settings) = (loaded.case, loaded.settings);
            let sense = case.problem.sense.name();
            if settings.simulate == 0 {
                settings.simulate = PATHS;
            }
            let start = Start {
                about: About::new(&*case.tables, &loaded.name, case.kind, comm.name()),
                policy: Some((&policy).into()),
            };
            let found = cobre_sddp::simulate(comm, case.problem, &settings, &start, reporter);
            Ok((sense, found?))
        })?;
    let estimate = tried.simulated;
    Ok(SimulationFields {
        sense,
        estimate: estimate.map(|estimate| Estimate::new(estimate, "simulation")),
        values: tried.values.into_pyarray(py),
        validation: tried.validation,
        lp_solves: tried.lp.solves,
        seconds: tried.seconds.simulate,
        warnings: events.warnings,
        tables: bytes_of(py, events.tables),
    })
}
