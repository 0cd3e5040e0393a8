//! Output of a run for people: header, a line per iteration, progress on a terminal, a summary.

use std::path::Path;

use cobre_case::Finding;
use cobre_launch::Interrupt;
use cobre_sddp::{
    Estimate, Iteration, Magnitudes, Observer, Problem, Results, Sense, Settings, Span, StopRule,
    gap,
};

use super::progress::{Part, RunProgress};
use super::trace::TraceFile;
use super::{Args, NAME};
use crate::amount::Scale;
use crate::exit::{self, say};
use crate::terminal_table::{plural, wrapped};

/// The choices of a run about its output.
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct OutputChoices {
    /// True on the first rank.
    pub(super) first: bool,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// True if the command that has started this rank has the terminal.
    pub(super) spoken_for: bool,
    /// True if nothing is trained.
    pub(super) only_simulates: bool,
    /// The unit of costs.
    pub(super) unit: &'static str,
}

/// Shows a run on standard output, on the rank that speaks, and listens for signals on all ranks.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they do not depend on each other"
)]
pub(super) struct Show {
    /// True on the first rank, unless it is to be quiet.
    first: bool,
    talks: bool,
    verbose: bool,
    unit: &'static str,
    interrupt: Option<Interrupt>,
    progress: RunProgress,
    /// The limit of iterations; 0 if there is none.
    limit: usize,
    risk_neutral: bool,
    /// True if lines have the bound from the other side.
    has_upper_bound: bool,
    /// True if nothing is trained.
    only_simulates: bool,
    trace: Option<TraceFile>,
}

impl Show {
    pub(super) fn new(
        told: &OutputChoices,
        interrupt: Option<Interrupt>,
        settings: &Settings,
        risk_neutral: bool,
    ) -> Self {
        let talks = told.first && !told.quiet;
        let limit = settings.stopping.rules.iter().find_map(|rule| match rule {
            StopRule::Iterations(limit) => Some(*limit),
            _ => None,
        });
        Self {
            first: told.first,
            talks,
            verbose: told.verbose,
            unit: told.unit,
            interrupt,
            progress: RunProgress::new(talks, told.spoken_for),
            limit: limit.unwrap_or(0),
            risk_neutral,
            has_upper_bound: settings.upper_bound > 0,
            only_simulates: told.only_simulates,
            trace: None,
        }
    }

    /// Writes the timeline of this rank to a trace.
    pub(super) fn traced(mut self, trace: Option<TraceFile>) -> Self {
        self.trace = trace;
        self
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        self.progress.clear();
    }

    fn line(&self, text: &str) {
        if self.talks {
            self.progress.suspend(|| say!("{text}"));
        }
    }

    /// A fact of the summary.
    fn fact(&self, name: &str, text: &str) {
        for line in wrapped(&format!("{name:<12}"), 12, text) {
            self.line(&line);
        }
    }

    /// A fact that a user may copy: it stays on one line.
    fn copied(&self, name: &str, text: &str) {
        self.line(&format!("{name:<12} {text}"));
    }

    /// The problem's size, and the range of its numbers if asked for.
    pub(super) fn header(&self, path: &Path, problem: &Problem, backend: &str, ranks: usize) {
        let size = problem.summary();
        let sizes = format!(
            "{}imise, {}, {}, {}, {}",
            problem.sense.name(),
            plural(size.nodes, "node"),
            plural(size.stages, "stage"),
            plural(size.states, "state"),
            plural(size.openings, "opening"),
        );
        for line in wrapped(&format!("{}:", path.display()), 1, &sizes) {
            self.line(&line);
        }
        self.line(&format!(
            "{}; {} on {backend}",
            problem.risk_name(),
            plural(ranks, "rank")
        ));
        if self.verbose {
            self.line(&format!(
                "at most {} × {} per node",
                plural(size.rows, "row"),
                plural(size.columns, "column"),
            ));
            self.line(&format!(
                "numbers: matrix {}, costs {}, bounds {}",
                range(size.matrix),
                range(size.costs),
                range(size.bounds),
            ));
        }
        if self.only_simulates {
            return;
        }
        let upper = other_side(problem.sense);
        let headings = [
            "iteration",
            "bound",
            upper,
            "estimate",
            "gap",
            "cuts",
            "seconds",
        ];
        self.row(headings.map(str::to_owned));
    }

    /// A line of the table of iterations.
    fn row(&self, [iteration, bound, upper, estimate, gap, cuts, seconds]: [String; 7]) {
        // 80 columns at most.
        self.line(&if self.has_upper_bound {
            format!("{iteration:>9} {bound:>13} {upper:>13} {estimate:>15} {gap:>10} {cuts:>6} {seconds:>8}")
        } else {
            format!("{iteration:>9} {bound:>13} {estimate:>20} {gap:>10} {cuts:>7} {seconds:>9}")
        });
    }

    /// Prints the warnings about the case.
    pub(super) fn warnings(&self, warnings: &[Finding]) {
        for warning in warnings {
            self.line(&format!("warning: {warning}"));
        }
    }

    /// Prints what was found, where it is and what to do next.
    pub(super) fn summary(&mut self, sense: Sense, results: &Results, args: &Args) {
        self.clear();
        if let Some(part) = results.interrupted_in() {
            self.fact(
                "interrupted",
                &format!("in the {part}, which is not complete"),
            );
        }
        self.worth(sense, results);
        for (number, value) in results.validation.iter().enumerate() {
            self.fact("validation", &format!("scenario {}: {value}", number + 1));
        }
        match &args.warm_start {
            Some(given) if self.only_simulates => {
                let text = format!("nothing: the policy is that of {}", given.display());
                self.fact("trained", &text);
            }
            _ => self.stopped(results),
        }
        let lp = results.lp;
        if self.verbose || lp.fallbacks > 0 || lp.retries > 0 {
            self.counters(results);
        }
        self.copied("policy", &results.policy_sha256);
        self.next(results, args);
    }

    /// The rule that ended training, after how many iterations.
    fn stopped(&self, results: &Results) {
        let trained = &results.trained;
        let reason = trained.reason.to_string().replace('_', " ");
        let seconds = trained
            .iterations
            .last()
            .map_or(0.0, |last| last.time.total);
        self.fact(
            "stopped",
            &format!(
                "{reason} after {}, {seconds:.1} s",
                plural(trained.iterations.len(), "iteration")
            ),
        );
    }

    /// The bound, the estimate and the gap.
    fn worth(&self, sense: Sense, results: &Results) {
        let (bound, trained) = (results.trained.bound, &results.trained);
        let (side, none) = match sense {
            Sense::Minimize => ("lower bound", "no policy costs less on average"),
            Sense::Maximize => ("upper bound", "no policy earns more on average"),
        };
        let meaning = if results.contradiction {
            "not valid, as the estimate contradicts it"
        } else if self.risk_neutral {
            none
        } else {
            "of the risk-adjusted value, not of the mean"
        };
        let scale = Scale::of(bound);
        let told = scale.bound(bound, results.bound_half_width_95(), self.unit);
        self.fact(side, &format!("{told}: {meaning}"));
        self.upper_bound(sense, results);
        let (told, source) = match results.simulated {
            Some(simulated) => (simulated, "simulated scenario"),
            None => (trained.estimate, "latest forward path"),
        };
        let fixed = results.simulated.and(results.simulated_stages);
        let stages = fixed.map(|stages| format!(" of {stages} stages"));
        let stages = stages.unwrap_or_default();
        let scale = Scale::of(told.mean);
        let value = match told.half_width_95 {
            Some(half) => scale.told_within(told.mean, half, self.unit),
            None => scale.told(told.mean, self.unit),
        };
        self.fact(
            "estimate",
            &format!("{value}: mean of {}{stages}", plural(told.paths, source)),
        );
        if self.risk_neutral && fixed.is_none() {
            let gap = 100.0 * gap(sense, bound, told.mean);
            self.fact("gap", &format!("{gap:.3} %"));
        }
    }

    /// The bound from the other side, and the exact gap.
    fn upper_bound(&self, sense: Sense, results: &Results) {
        if !self.has_upper_bound || results.trained.iterations.is_empty() {
            return;
        }
        let bound = results.trained.bound;
        let text = match results.trained.upper_bound {
            Some(upper) => {
                let gap = 100.0 * gap(sense, bound, upper);
                let told = Scale::of(upper).told(upper, self.unit);
                format!("{told}: the optimal value is between the bounds, {gap:.3} % apart")
            }
            None => "none: the visited states do not bound it".to_owned(),
        };
        self.fact(other_side(sense), &text);
    }

    /// What solvers and ranks were busy with.
    fn counters(&self, results: &Results) {
        let lp = results.lp;
        let time = results.trained.iterations.last();
        let time = time.map(|last| last.time).unwrap_or_default();
        let share = |part: f64| 100.0 * part / time.total.max(1e-9);
        self.fact(
            "LP solves",
            &format!("{}, {} by HiGHS", lp.solves, lp.highs),
        );
        self.fact(
            "kernel",
            &format!(
                "refactored {}, started anew {}, gave up {}",
                lp.refactored, lp.cold_starts, lp.fallbacks
            ),
        );
        self.fact("HiGHS", &format!("tried again {}", lp.retries));
        self.fact(
            "time",
            &format!(
                "forward {:.1} %, backward {:.1} %; in both, communication {:.1} %",
                share(time.forward),
                share(time.backward),
                share(time.communication)
            ),
        );
    }

    /// Where the results are, and what can be done with them.
    fn next(&self, results: &Results, args: &Args) {
        let Some(output) = &args.output else {
            self.fact("results", "not kept: add --output DIR to keep them");
            return;
        };
        let output = output.display();
        self.copied("results", &output.to_string());
        if results.simulated.is_none() && !results.interrupted {
            self.fact("next", "add --simulate N to see what the policy does, or");
            self.copied("", &format!("cobre summary {output}"));
            return;
        }
        self.copied("next", &format!("cobre summary {output}"));
        self.copied("", &format!("cobre report {output}"));
    }
}

impl Observer for Show {
    fn keeps_policy(&self) -> bool {
        false
    }

    fn iteration(&mut self, iteration: &Iteration) {
        let upper = iteration.upper_bound;
        self.row([
            iteration.number.to_string(),
            format!("{:.6e}", iteration.bound),
            upper.map_or_else(String::new, |upper| format!("{upper:.6e}")),
            estimate(iteration.estimate),
            percent(iteration.gap),
            iteration.cuts.to_string(),
            format!("{:.2}", iteration.time.total),
        ]);
        let limit = self
            .limit
            .max(if self.limit > 0 { iteration.number } else { 0 });
        self.progress.at(Part::Training, iteration.number, limit);
    }

    fn wants_spans(&self) -> bool {
        self.trace.is_some()
    }

    fn spans(&mut self, spans: &[Span]) {
        if let Some(trace) = &mut self.trace
            && let Err(error) = trace.write(spans)
        {
            // The run is worth more than its trace.
            self.trace = None;
            let problem = format!("--trace: {error}; the trace ends here");
            self.progress.suspend(|| exit::note(NAME, &problem));
        }
    }

    fn simulated(&mut self, done: usize, all: usize) {
        self.progress.at(Part::Simulation, done, all);
    }

    fn resumed(&mut self, iterations: usize) {
        self.line(&format!("resumed after iteration {iterations}"));
        self.progress.at(Part::Training, iterations, self.limit);
    }

    fn warning(&mut self, text: &str) {
        if self.first {
            self.progress.suspend(|| exit::note(NAME, text));
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupt.as_mut().is_some_and(Interrupt::requested)
    }
}

/// The side of the bound that --upper-bound computes.
fn other_side(sense: Sense) -> &'static str {
    match sense {
        Sense::Minimize => "upper bound",
        Sense::Maximize => "lower bound",
    }
}

fn estimate(estimate: Estimate) -> String {
    match estimate.half_width_95 {
        Some(half) => format!("{:.4e} ± {half:.0e}", estimate.mean),
        None => format!("{:.4e}", estimate.mean),
    }
}

fn percent(gap: Option<f64>) -> String {
    gap.map_or_else(String::new, |gap| format!("{:.3} %", 100.0 * gap))
}

fn range(range: Magnitudes) -> String {
    if range.largest == 0.0 {
        return "none".to_owned();
    }
    format!("{:.0e} to {:.0e}", range.smallest, range.largest)
}
