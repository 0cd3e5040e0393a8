//! `cobre bench sddp --against-highs`: a solver and HiGHS on the same problems, by processor time.

use std::num::NonZeroUsize;

use cobre_comm::CommBackend;
use cobre_sddp::{Iteration, Observer, SddpError, Settings, Solver, run as run_job};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::systems::BenchProblem;
use crate::exit::{self, say};

/// The iterations whose rates are compared.
const MARKS: [usize; 3] = [5, 20, 50];

/// The state of the run after an iteration.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    solves: u64,
    pivots: u64,
    processor: f64,
    seconds: f64,
}

/// Processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// The state after each iteration, the start before all.
struct Marks(Vec<Mark>);

impl Observer for Marks {
    fn iteration(&mut self, iteration: &Iteration) {
        self.0.push(Mark {
            solves: iteration.lp.solves,
            pivots: iteration.lp.pivots,
            processor: processor(),
            seconds: iteration.time.total,
        });
    }
}

/// The rates of one iteration.
struct Rate {
    per_processor_second: f64,
    per_second: f64,
    pivots: f64,
}

impl Marks {
    /// The rates of an iteration, from 1.
    fn rate(&self, iteration: usize) -> Option<Rate> {
        let (before, after) = (self.0.get(iteration - 1)?, self.0.get(iteration)?);
        let solves = (after.solves - before.solves) as f64;
        Some(Rate {
            per_processor_second: solves / (after.processor - before.processor),
            per_second: solves / (after.seconds - before.seconds),
            pivots: (after.pivots - before.pivots) as f64 / solves,
        })
    }
}

fn train(
    comm: &CommBackend,
    problem: &BenchProblem,
    settings: &Settings,
) -> Result<Marks, SddpError> {
    let start = Mark {
        processor: processor(),
        ..Mark::default()
    };
    let mut marks = Marks(vec![start]);
    run_job(comm, problem.problem.clone(), settings, &mut marks)?;
    Ok(marks)
}

/// Trains on each problem with the solver of the settings and with HiGHS, and prints the rates of both.
pub(super) fn compare(
    comm: &CommBackend,
    problems: &[BenchProblem],
    settings: impl Fn(NonZeroUsize) -> Settings,
    as_json: bool,
) -> Result<(), SddpError> {
    if !as_json {
        say!(
            "{:<14} {:>9} {:>10} {:>10} {:>7} {:>10} {:>10} {:>10}",
            "problem",
            "iteration",
            "LP/cpu s",
            "HiGHS",
            "ratio",
            "pivots/LP",
            "LP/s",
            "HiGHS"
        );
    }
    for problem in problems {
        let own = settings(problem.passes);
        let highs = Settings {
            solver: Solver::Highs,
            ..own.clone()
        };
        let own = train(comm, problem, &own)?;
        let highs = train(comm, problem, &highs)?;
        for mark in MARKS {
            if let (Some(own), Some(highs)) = (own.rate(mark), highs.rate(mark)) {
                print(&problem.name, mark, &own, &highs, as_json);
            }
        }
    }
    Ok(())
}

fn print(name: &str, iteration: usize, own: &Rate, highs: &Rate, as_json: bool) {
    let ratio = own.per_processor_second / highs.per_processor_second;
    if as_json {
        exit::say_json(&json!({
            "problem": name,
            "iteration": iteration,
            "lp_per_processor_second": own.per_processor_second,
            "highs_lp_per_processor_second": highs.per_processor_second,
            "ratio": ratio,
            "pivots_per_lp": own.pivots,
            "lp_per_second": own.per_second,
            "highs_lp_per_second": highs.per_second,
        }));
    } else {
        say!(
            "{name:<14} {iteration:>9} {:>10.0} {:>10.0} {ratio:>7.2} {:>10.1} {:>10.0} {:>10.0}",
            own.per_processor_second,
            highs.per_processor_second,
            own.pivots,
            own.per_second,
            highs.per_second
        );
    }
}
