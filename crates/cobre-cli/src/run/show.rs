//! Output of a run for people: header, a line per iteration, a bar on a terminal, a summary.

use std::io::IsTerminal;
use std::path::Path;

use cobre_case::Finding;
use cobre_launch::Interrupt;
use cobre_sddp::{
    Estimate, Iteration, Magnitudes, Observer, Problem, Results, Sense, Settings, StopRule, gap,
};
use indicatif::{ProgressBar, ProgressStyle};

use super::NAME;
use crate::exit::{self, say};
use crate::terminal_table::plural;

/// Shows a run on standard output, on the rank that speaks, and listens for signals on all ranks.
pub(super) struct Show {
    /// True on the first rank, unless it is to be quiet.
    first: bool,
    talks: bool,
    interrupt: Option<Interrupt>,
    bar: ProgressBar,
    risk_neutral: bool,
}

impl Show {
    pub(super) fn new(
        first: bool,
        quiet: bool,
        interrupt: Option<Interrupt>,
        settings: &Settings,
        risk_neutral: bool,
    ) -> Self {
        let talks = first && !quiet;
        let limit = settings.stopping.rules.iter().find_map(|rule| match rule {
            StopRule::Iterations(limit) => Some(*limit as u64),
            _ => None,
        });
        let bar = if talks && std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} iterations, {eta} left");
            let bar = ProgressBar::new(limit.unwrap_or(0));
            style.map_or(bar.clone(), |style| bar.with_style(style))
        } else {
            ProgressBar::hidden()
        };
        Self {
            first,
            talks,
            interrupt,
            bar,
            risk_neutral,
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.talks {
            self.bar.suspend(|| say!("{text}"));
        }
    }

    /// The problem's size and the range of its numbers.
    pub(super) fn header(&self, path: &Path, problem: &Problem, backend: &str, ranks: usize) {
        let size = problem.summary();
        self.line(&format!(
            "{}: {}imise, {}, {}, {}, {}, at most {} × {} per node",
            path.display(),
            problem.sense.name(),
            plural(size.nodes, "node"),
            plural(size.stages, "stage"),
            plural(size.states, "state"),
            plural(size.openings, "opening"),
            plural(size.rows, "row"),
            plural(size.columns, "column"),
        ));
        self.line(&format!(
            "numbers: matrix {}, costs {}, bounds {}; {}",
            range(size.matrix),
            range(size.costs),
            range(size.bounds),
            problem.risk_name()
        ));
        self.line(&format!("{} on {backend}", plural(ranks, "rank")));
        self.line(&format!(
            "{:>9} {:>16} {:>28} {:>9} {:>10} {:>7} {:>9}",
            "iteration", "bound", "estimate (paths)", "gap", "LPs", "cuts", "seconds"
        ));
    }

    /// Prints the warnings about the case.
    pub(super) fn warnings(&self, warnings: &[Finding]) {
        for warning in warnings {
            self.line(&format!("warning: {warning}"));
        }
    }

    /// Prints the results.
    pub(super) fn summary(&mut self, sense: Sense, results: &Results) {
        self.clear();
        let trained = &results.trained;
        let bound = trained.bound;
        let side = match sense {
            Sense::Minimize => "lower",
            Sense::Maximize => "upper",
        };
        self.line(&format!("{side} bound  {bound}"));
        let (told, source) = match results.simulated {
            Some(simulated) => (simulated, "simulated"),
            None => (trained.estimate, "latest forward"),
        };
        self.line(&format!("estimate     {} ({source} paths)", estimate(told)));
        if self.risk_neutral {
            let gap = 100.0 * gap(sense, bound, told.mean);
            self.line(&format!("gap          {gap:.4} %"));
        }
        for (number, value) in results.validation.iter().enumerate() {
            self.line(&format!("validation   scenario {}: {value}", number + 1));
        }
        self.line(&format!(
            "stopped      {} after {} iterations",
            trained.reason,
            trained.iterations.len()
        ));
        if let Some(last) = trained.iterations.last() {
            let time = last.time;
            let share = |part: f64| 100.0 * part / time.total.max(1e-9);
            self.line(&format!(
                "LP solves    {} ({:.0} per second)",
                last.lp.solves,
                last.lp.solves as f64 / time.total.max(1e-9),
            ));
            self.line(&format!(
                "solver       HiGHS solved {}; the kernel refactored {}, started anew {}, gave up {}; HiGHS tried again {}",
                last.lp.highs,
                last.lp.refactored,
                last.lp.cold_starts,
                last.lp.fallbacks,
                last.lp.retries
            ));
            self.line(&format!(
                "time         {:.3} s: forward {:.1} %, backward {:.1} %; {:.1} % of all in communication",
                time.total,
                share(time.forward),
                share(time.backward),
                share(time.communication)
            ));
        }
        self.line(&format!("policy       {}", results.policy_sha256));
    }
}

impl Observer for Show {
    fn iteration(&mut self, iteration: &Iteration) {
        self.line(&format!(
            "{:>9} {:>16.8e} {:>28} {:>9} {:>10} {:>7} {:>9.3}",
            iteration.number,
            iteration.bound,
            estimate(iteration.estimate),
            percent(iteration.gap),
            iteration.lp.solves,
            iteration.cuts,
            iteration.time.total
        ));
        self.bar.set_position(iteration.number as u64);
    }

    fn resumed(&mut self, iterations: usize) {
        self.line(&format!("resumed after iteration {iterations}"));
    }

    fn warning(&mut self, text: &str) {
        if self.first {
            self.bar.suspend(|| exit::note(NAME, text));
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupt.as_mut().is_some_and(Interrupt::requested)
    }
}

fn estimate(estimate: Estimate) -> String {
    match estimate.half_width_95 {
        Some(half) => format!("{:.5e} ± {:.1e} ({})", estimate.mean, half, estimate.paths),
        None => format!("{:.5e} ({})", estimate.mean, estimate.paths),
    }
}

fn percent(gap: Option<f64>) -> String {
    gap.map_or_else(String::new, |gap| format!("{:.3}%", 100.0 * gap))
}

fn range(range: Magnitudes) -> String {
    if range.largest == 0.0 {
        return "none".to_owned();
    }
    format!("{:.0e} to {:.0e}", range.smallest, range.largest)
}
