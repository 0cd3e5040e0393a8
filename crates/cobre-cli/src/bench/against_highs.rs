//! `cobre bench sddp --against-highs`: a solver and HiGHS on the same problems, by processor time.

use std::num::NonZeroUsize;

use cobre_comm::CommBackend;
use cobre_sddp::{Iteration, Observer, SddpError, Sense, Settings, Solver, run as run_job};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::systems::BenchProblem;
use crate::exit::{self, say};

/// The iterations whose rates are compared.
const MARKS: [usize; 3] = [5, 20, 50];

/// The columns of rates.
const RATES: &[&str] = &[
    "iteration",
    "LP/cpu s",
    "HiGHS",
    "ratio",
    "pivots/LP",
    "LP/s",
    "HiGHS",
];
/// The columns of times to a bound.
const TIMES: &[&str] = &[
    "bound",
    "iteration",
    "HiGHS",
    "cpu s",
    "HiGHS",
    "ratio",
    "seconds",
    "HiGHS",
];

/// The state of the run after an iteration.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    solves: u64,
    pivots: u64,
    processor: f64,
    seconds: f64,
    bound: f64,
}

/// Processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// The state after each iteration, the start before all; ends a run that needs no more of them.
struct Marks<'a> {
    states: Vec<Mark>,
    sense: Sense,
    to_bounds: &'a [f64],
}

impl Observer for Marks<'_> {
    fn iteration(&mut self, iteration: &Iteration) {
        self.states.push(Mark {
            solves: iteration.lp.solves,
            pivots: iteration.lp.pivots,
            processor: processor(),
            seconds: iteration.time.total,
            bound: iteration.bound,
        });
    }

    fn interrupted(&mut self) -> bool {
        let mut bounds = self.to_bounds.iter();
        !self.to_bounds.is_empty() && bounds.all(|&bound| self.reached(bound).is_some())
    }
}

/// The rates of one iteration.
struct Rate {
    per_processor_second: f64,
    per_second: f64,
    pivots: f64,
}

/// The first iteration whose bound has reached a value, and the time since the start.
struct Reached {
    iteration: usize,
    processor: f64,
    seconds: f64,
}

impl Reached {
    /// The median times of these rounds, all of the same iteration.
    fn median(rounds: &[Self]) -> Self {
        Self {
            iteration: rounds[0].iteration,
            processor: median(rounds.iter().map(|it| it.processor)),
            seconds: median(rounds.iter().map(|it| it.seconds)),
        }
    }

    fn json(&self) -> Value {
        json!({
            "iteration": self.iteration,
            "processor_seconds": self.processor,
            "seconds": self.seconds,
        })
    }
}

impl Marks<'_> {
    /// The rates of an iteration, from 1.
    fn rate(&self, iteration: usize) -> Option<Rate> {
        let (before, after) = (self.states.get(iteration - 1)?, self.states.get(iteration)?);
        let solves = (after.solves - before.solves) as f64;
        Some(Rate {
            per_processor_second: solves / (after.processor - before.processor),
            per_second: solves / (after.seconds - before.seconds),
            pivots: (after.pivots - before.pivots) as f64 / solves,
        })
    }

    /// When the bound reached this value: from below for a cost, from above for a revenue.
    fn reached(&self, value: f64) -> Option<Reached> {
        let sign = self.sense.sign();
        let has_reached = |mark: &Mark| sign * mark.bound >= sign * value;
        let iteration = 1 + self.states[1..].iter().position(has_reached)?;
        let (start, mark) = (self.states[0], self.states[iteration]);
        Some(Reached {
            iteration,
            processor: mark.processor - start.processor,
            seconds: mark.seconds,
        })
    }
}

/// What to compare on each problem.
pub(super) struct Comparison<'a> {
    /// Runs with each solver, in turn; figures are medians.
    pub(super) rounds: NonZeroUsize,
    /// Compares the time until the bound reaches each of these values, instead of rates.
    pub(super) to_bounds: &'a [f64],
    pub(super) as_json: bool,
}

impl Comparison<'_> {
    /// Trains on each problem with the solver of the settings and with HiGHS, and prints the figures of both.
    pub(super) fn run(
        &self,
        comm: &CommBackend,
        problems: &[BenchProblem],
        settings: impl Fn(NonZeroUsize) -> Settings,
    ) -> Result<(), SddpError> {
        if !self.as_json {
            let rates = self.to_bounds.is_empty();
            say!("{}", row("problem", if rates { RATES } else { TIMES }));
        }
        for problem in problems {
            let own = settings(problem.passes);
            let highs = Settings {
                solver: Solver::Highs,
                ..own.clone()
            };
            let mut rounds = Vec::new();
            for _ in 0..self.rounds.get() {
                let own = self.train(comm, problem, &own)?;
                rounds.push([own, self.train(comm, problem, &highs)?]);
            }
            if self.to_bounds.is_empty() {
                self.print_rates(&problem.name, &rounds);
            } else {
                self.print_times(&problem.name, &rounds);
            }
        }
        Ok(())
    }

    fn train(
        &self,
        comm: &CommBackend,
        problem: &BenchProblem,
        settings: &Settings,
    ) -> Result<Marks<'_>, SddpError> {
        let start = Mark {
            processor: processor(),
            ..Mark::default()
        };
        let mut marks = Marks {
            states: vec![start],
            sense: problem.problem.sense,
            to_bounds: self.to_bounds,
        };
        run_job(comm, problem.problem.clone(), settings, &mut marks)?;
        Ok(marks)
    }

    fn print_rates(&self, name: &str, rounds: &[[Marks<'_>; 2]]) {
        for iteration in MARKS {
            let rates = |run: usize| rounds.iter().map(move |it| it[run].rate(iteration));
            let (Some(own), Some(highs)) = (rates(0).collect(), rates(1).collect()) else {
                continue;
            };
            let (own, highs): (Vec<Rate>, Vec<Rate>) = (own, highs);
            let by = |rates: &[Rate], figure: fn(&Rate) -> f64| median(rates.iter().map(figure));
            let processor = |rate: &Rate| rate.per_processor_second;
            let pairs = own.iter().zip(&highs);
            let ratio = median(pairs.map(|(own, highs)| processor(own) / processor(highs)));
            if self.as_json {
                exit::say_json(&json!({
                    "problem": name,
                    "iteration": iteration,
                    "lp_per_processor_second": by(&own, processor),
                    "highs_lp_per_processor_second": by(&highs, processor),
                    "ratio": ratio,
                    "pivots_per_lp": by(&own, |rate| rate.pivots),
                    "lp_per_second": by(&own, |rate| rate.per_second),
                    "highs_lp_per_second": by(&highs, |rate| rate.per_second),
                }));
                continue;
            }
            let cells = [
                iteration.to_string(),
                format!("{:.0}", by(&own, processor)),
                format!("{:.0}", by(&highs, processor)),
                format!("{ratio:.2}"),
                format!("{:.1}", by(&own, |rate| rate.pivots)),
                format!("{:.0}", by(&own, |rate| rate.per_second)),
                format!("{:.0}", by(&highs, |rate| rate.per_second)),
            ];
            say!("{}", row(name, &cells));
        }
    }

    fn print_times(&self, name: &str, rounds: &[[Marks<'_>; 2]]) {
        for &bound in self.to_bounds {
            let [own, highs] = [0, 1].map(|run| {
                let reached = rounds.iter().map(|it| it[run].reached(bound));
                reached.collect::<Option<Vec<Reached>>>()
            });
            let ratio = own.as_ref().zip(highs.as_ref()).map(|(own, highs)| {
                let pairs = own.iter().zip(highs);
                median(pairs.map(|(own, highs)| highs.processor / own.processor))
            });
            let (own, highs) = (own.as_deref(), highs.as_deref());
            let (own, highs) = (own.map(Reached::median), highs.map(Reached::median));
            if self.as_json {
                exit::say_json(&json!({
                    "problem": name,
                    "bound": bound,
                    "ratio": ratio,
                    "own": own.as_ref().map(Reached::json),
                    "highs": highs.as_ref().map(Reached::json),
                }));
                continue;
            }
            let cell = |run: &Option<Reached>, figure: fn(&Reached) -> String| {
                run.as_ref().map_or("-".to_owned(), figure)
            };
            let iteration = |run: &Reached| run.iteration.to_string();
            let processor = |run: &Reached| format!("{:.3}", run.processor);
            let seconds = |run: &Reached| format!("{:.3}", run.seconds);
            let cells = [
                format!("{bound:.3e}"),
                cell(&own, iteration),
                cell(&highs, iteration),
                cell(&own, processor),
                cell(&highs, processor),
                ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
                cell(&own, seconds),
                cell(&highs, seconds),
            ];
            say!("{}", row(name, &cells));
        }
    }
}

fn row(name: &str, cells: &[impl AsRef<str>]) -> String {
    let widen = |row: String, cell: &_| row + &format!(" {:>10}", AsRef::<str>::as_ref(cell));
    cells.iter().fold(format!("{name:<14}"), widen)
}

/// The middle of these figures; of an even number the mean of the two in the middle.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((figures.len() - 1) / 2, figures.len() / 2);
    0.5 * (figures[low] + figures[high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bound_that_reaches_a_value_counts_from_the_start() {
        let mark = |processor: f64, bound: f64| Mark {
            processor,
            seconds: 0.5 * processor,
            bound,
            ..Mark::default()
        };
        let mut marks = Marks {
            states: vec![mark(2.0, 0.0), mark(3.0, -9.0), mark(5.0, -2.0)],
            sense: Sense::Minimize,
            to_bounds: &[-5.0, -1.0],
        };
        let reached = marks.reached(-5.0).expect("the second is above");
        let found = (reached.iteration, reached.processor, reached.seconds);
        assert_eq!(found, (2, 3.0, 2.5));
        assert!(marks.reached(-1.0).is_none() && !marks.interrupted());
        marks.states.push(mark(9.0, -0.5));
        assert!(marks.interrupted(), "all values are reached");
        marks.sense = Sense::Maximize;
        assert_eq!(marks.reached(-5.0).map(|it| it.iteration), Some(1));
        marks.to_bounds = &[];
        assert!(!marks.interrupted(), "rates are of all iterations");
    }

    #[test]
    fn medians_are_those_of_any_number_of_rounds() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
        assert_eq!(median([4.0].into_iter()), 4.0);
    }
}
