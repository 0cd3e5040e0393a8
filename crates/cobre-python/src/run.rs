//! Training, as the only process or as one rank of a job.

use std::path::PathBuf;

use cobre_comm::{BackendKind, create_communicator};
use cobre_sddp::events::{Iteration, Observer};
use cobre_sddp::run::{Results, Settings, Solver};
use cobre_sddp::simulation::Sampling;
use cobre_sddp::training::{Rule, Stopping};
use pyo3::prelude::*;

use crate::errors;
use crate::source::{Given, parse};

/// How a problem is to be solved, as `cobre.train` hands it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    seed: u64,
    iterations: Option<usize>,
    forward_passes: usize,
    cut_selection: String,
    stop: Vec<String>,
    stop_when_all: bool,
    threads: usize,
    simulate: usize,
    solver: Option<String>,
    output: Option<PathBuf>,
}

impl Request {
    fn settings(self) -> PyResult<Settings> {
        let rules: PyResult<Vec<Rule>> = self.stop.iter().map(|rule| parse("stop", rule)).collect();
        Ok(Settings {
            seed: self.seed,
            passes: self.forward_passes,
            selection: parse("cut_selection", &self.cut_selection)?,
            stopping: Stopping::asked(self.iterations, rules?, self.stop_when_all),
            threads: self.threads,
            simulate: self.simulate,
            sampling: Sampling::Fresh,
            solver: match &self.solver {
                Some(name) => parse("solver", name)?,
                None => Solver::default(),
            },
            output: self.output,
        })
    }
}

/// An iteration, for a progress callback and for the table of convergence.
#[derive(IntoPyObject)]
pub(crate) struct Step {
    iteration: usize,
    bound: f64,
    estimate: f64,
    half_width_95: Option<f64>,
    paths: usize,
    gap: f64,
    cuts: usize,
    lp_solves: u64,
    retries: u64,
    seconds: f64,
    forward_seconds: f64,
    backward_seconds: f64,
    communication_seconds: f64,
}

impl From<&Iteration> for Step {
    fn from(iteration: &Iteration) -> Self {
        Self {
            iteration: iteration.number,
            bound: iteration.bound,
            estimate: iteration.estimate.mean,
            half_width_95: iteration.estimate.half_width_95,
            paths: iteration.estimate.paths,
            gap: iteration.gap,
            cuts: iteration.cuts,
            lp_solves: iteration.lp_solves,
            retries: iteration.retries,
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

/// What `cobre.TrainingResult` is made from.
#[derive(IntoPyObject)]
pub(crate) struct Found {
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
    steps: Vec<Step>,
}

impl Found {
    fn new(sense: &'static str, results: Results) -> Self {
        let (estimate, source) = match results.simulated {
            Some(estimate) => (estimate, "simulation"),
            None => (results.trained.estimate, "training"),
        };
        Self {
            sense,
            bound: results.trained.bound(),
            estimate: Estimate {
                mean: estimate.mean,
                half_width_95: estimate.half_width_95,
                paths: estimate.paths,
                source,
            },
            stop_reason: results.trained.reason.to_string(),
            lp_solves: results.lp_solves,
            validation: results.validation,
            policy_sha256: results.policy_sha256,
            train_seconds: results.seconds.train,
            simulate_seconds: results.seconds.simulate,
            write_seconds: results.seconds.write,
            steps: results.trained.iterations.iter().map(Step::from).collect(),
        }
    }
}

/// Tells Python of every iteration, and ends the run when Python raises.
struct Teller {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Observer for Teller {
    fn iteration(&mut self, iteration: &Iteration) {
        if let (Some(callback), None) = (&self.callback, &self.raised) {
            let told = Python::attach(|py| callback.call1(py, (Step::from(iteration),)).map(drop));
            self.raised = told.err();
        }
    }

    fn interrupted(&mut self) -> bool {
        if self.raised.is_none() {
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        self.raised.is_some()
    }
}

/// Trains in this process: alone, or as the rank that the environment makes it. A callback that
/// raises, or a signal whose handler does, ends the run after the iteration and is raised then.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    given: Given,
    request: Request,
    alone: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found> {
    let settings = request.settings()?;
    let problem = given.load(py)?;
    let sense = problem.sense.name();
    let mut teller = Teller {
        callback: progress,
        raised: None,
    };
    let results = py.detach(|| {
        let kind = if alone {
            Ok(BackendKind::Local)
        } else {
            BackendKind::from_env()
        };
        let comm = kind
            .and_then(create_communicator)
            .map_err(|error| errors::of_backend(&error))?;
        cobre_sddp::run::run(&comm, problem, &settings, &mut teller)
            .map_err(|error| errors::of_run(&error))
    });
    match teller.raised {
        Some(raised) => Err(raised),
        None => results.map(|results| Found::new(sense, results)),
    }
}
