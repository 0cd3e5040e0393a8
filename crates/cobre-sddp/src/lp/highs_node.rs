//! A node solved by HiGHS.
//!
//! The linear program is loaded once; solves change bounds (and costs and coefficients where
//! openings do). Cuts become rows when a solution violates them, so a node with a thousand cuts is
//! solved with the few that are tight at a trial point. HiGHS computes scaling factors at its first
//! run and keeps them, which would make solutions depend on when a thread first met a node: scaling
//! is off.

use std::ffi::{CStr, CString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use cobre_files::WholeFile;

use super::columnwise::columnwise;
use super::highs::{ColumnwiseLp, Highs, HighsRefusal, HighsSolution, ModelStatus, number};
use super::highs_basis::is_tight;
use super::highs_options::{
    LEAST_TOLERANCE, PricingOptions, RETRY_STEPS, SMALL_COEFFICIENT, dual_tolerance, set_options,
    set_retry_step,
};
use super::{
    Detail, HighsBasis, LpFailure, LpFailureKind, LpStatistics, NodeSolution, NodeView, Visit,
    duals, explain,
};
use crate::fingerprint::Fingerprint;
use crate::policy::Cuts;

/// The violation of a cut, relative to the cost to go, that slopes treated as zero may cause.
const LOST_SLOPES: f64 = 1e-6;
/// The mark of files that HiGHS wrote.
const LP_FILE_MARK: &[u8] = b"File written by HiGHS";

/// The violation of a cut, relative to the cost to go, above which it becomes a row.
const VIOLATION: f64 = 1e-8;
/// The same, and the tolerances of HiGHS, where solutions are compared.
const TIGHT_VIOLATION: f64 = 1e-10;
const TIGHT: f64 = 1e-9;
const DUAL_TOLERANCE: &CStr = c"dual_feasibility_tolerance";
/// The difference of primal and dual objective, relative to it, above which a solution is none.
const LARGEST_GAP: f64 = 1e-3;

/// The most violated cuts that become rows at a time.
const MAX_CUTS_AT_ONCE: usize = 8;

/// The source of the bounds of a column.
#[derive(Debug, Clone, Copy)]
enum BoundSource {
    /// The incoming state of this number.
    State(usize),
    /// The values of the opening, at this index.
    Opening(usize),
}

/// A node solved by HiGHS.
#[derive(Debug)]
pub(crate) struct HighsNode {
    highs: Highs,
    pricing: PricingOptions,
    /// The linear program in HiGHS, cuts included.
    lp: ColumnwiseLp,
    template_rows: usize,
    /// The column of the cost to go.
    future: Option<usize>,
    /// The cuts among the rows, by slot, in the order of the rows.
    loaded: Vec<u32>,
    /// The violation above which a cut becomes a row.
    violation: f64,
    /// The dual feasibility tolerance.
    dual_tolerance: f64,
    /// The columns whose bounds change, and the sources of their bounds.
    column_set: Vec<i32>,
    sources: Vec<BoundSource>,
    row_set: Vec<i32>,
    cost_set: Vec<i32>,
    /// True if some opening makes a coefficient appear or vanish.
    entries_vanish: bool,
    statistics: LpStatistics,
    solution: HighsSolution,
    /// The outgoing state of the last solution.
    state: Vec<f64>,
    statuses: (Vec<i32>, Vec<i32>),
    bounds: (Vec<f64>, Vec<f64>),
    answer: NodeSolution,
}

impl HighsNode {
    /// A solver of this node, without any cuts yet.
    ///
    /// # Errors
    /// When HiGHS refuses the linear program.
    pub(crate) fn load(view: &NodeView<'_>) -> Result<Self, Box<LpFailure>> {
        Self::create(view).map_err(|refused| refusal(view, refused))
    }

    /// Solves the openings of a visit in turn, from the basis of the last visit.
    ///
    /// # Errors
    /// For the first opening that could not be solved.
    pub(crate) fn solve(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        memory: &mut HighsBasis,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        let refused = |refused| refusal(view, refused);
        let rows = memory.first_rows(&view.cuts);
        self.set_rows(&view.cuts, &rows).map_err(refused)?;
        self.start_from(memory).map_err(refused)?;
        // Cuts that were tight for some opening, in the order in which they first were.
        let mut working: Vec<u32> = Vec::new();
        let (incoming, first) = (visit.incoming, visit.openings.start);
        for opening in visit.openings.clone() {
            self.statistics.solves += 1;
            self.statistics.highs += 1;
            let constant = self
                .put_in_place(view, incoming, opening)
                .map_err(refused)?;
            self.run_until_it_adds_up(view, (incoming, opening), constant)?;
            let (columns, rows) = &mut self.statuses;
            self.highs.basis(columns, rows);
            if opening == first {
                memory.keep(columns, rows, &self.loaded);
            }
            for (slot, status) in self.loaded.iter().zip(&rows[self.template_rows..]) {
                if is_tight(*status) && !working.contains(slot) {
                    working.push(*slot);
                }
            }
            if visit.detail == Detail::Full {
                let duals = &self.solution.row_duals[..self.template_rows];
                self.answer.duals.clear();
                self.answer.duals.extend_from_slice(duals);
                self.clamp_columns();
            }
            each(opening, &self.answer);
        }
        memory.end_visit(working, &view.cuts);
        Ok(())
    }

    /// Solves with the cuts that it takes, and reads the answer. Where primal and dual objective differ, it is solved
    /// from a cold start, and then with the tightest dual tolerance.
    fn run_until_it_adds_up(
        &mut self,
        view: &NodeView<'_>,
        (incoming, opening): (&[f64], usize),
        constant: f64,
    ) -> Result<(), Box<LpFailure>> {
        let refused = |refused| refusal(view, refused);
        self.run_with_cuts(view, (incoming, opening), constant)?;
        for tight in [false, true] {
            if self.adds_up() {
                return Ok(());
            }
            self.statistics.retries += 1;
            self.set_rows(&view.cuts, &[]).map_err(refused)?;
            self.highs.clear_solver().map_err(refused)?;
            let tolerance = if tight {
                LEAST_TOLERANCE
            } else {
                self.dual_tolerance
            };
            self.highs
                .set_number(DUAL_TOLERANCE, tolerance)
                .map_err(refused)?;
            let solved = self.run_with_cuts(view, (incoming, opening), constant);
            self.highs
                .set_number(DUAL_TOLERANCE, self.dual_tolerance)
                .map_err(refused)?;
            solved?;
        }
        let NodeSolution {
            cost,
            future,
            bound,
            ..
        } = self.answer;
        let (primal, dual) = (cost + future, bound);
        if (primal - dual).abs() <= LARGEST_GAP * (1.0 + dual.abs()) {
            return Ok(());
        }
        let words = format!("the primal objective is {primal:?} and the dual one {dual:?}");
        let cause = "numbers of the problem differ too much in size";
        let why = (LpFailureKind::NotSolved(words), cause.to_owned());
        Err(Box::new(self.failure(view, incoming, opening, why)))
    }

    /// Solves, adds the cuts that the solution violates until it violates none, and reads the answer.
    fn run_with_cuts(
        &mut self,
        view: &NodeView<'_>,
        (incoming, opening): (&[f64], usize),
        constant: f64,
    ) -> Result<(), Box<LpFailure>> {
        let refused = |refused| refusal(view, refused);
        loop {
            self.run(view, incoming, opening)?;
            let violated = self.most_violated(&view.cuts).map_err(refused)?;
            if violated.is_empty() {
                break;
            }
            self.add_rows(&view.cuts, &violated).map_err(refused)?;
        }
        self.read_answer(view, constant);
        Ok(())
    }

    pub(crate) fn statistics(&self) -> LpStatistics {
        self.statistics
    }

    /// As [`load`](Self::load), with tight tolerances.
    pub(crate) fn load_tight(view: &NodeView<'_>) -> Result<Self, Box<LpFailure>> {
        let tight = || {
            let mut node = Self::create(view)?;
            node.violation = TIGHT_VIOLATION;
            let highs = &mut node.highs;
            highs.set_number(c"primal_feasibility_tolerance", TIGHT)?;
            highs.set_number(DUAL_TOLERANCE, TIGHT)?;
            node.dual_tolerance = TIGHT;
            Ok(node)
        };
        tight().map_err(|refused| refusal(view, refused))
    }

    fn create(view: &NodeView<'_>) -> Result<Self, HighsRefusal> {
        let problem = view.problem;
        let (node, template) = (&problem.nodes[view.node], problem.template(view.node));
        let mut lp = columnwise(template);
        let has_future = problem.has_future(view.node);
        let future = has_future.then_some(lp.costs.len());
        if has_future {
            lp.costs.push(1.0);
            lp.lower.push(node.future_bound);
            lp.upper.push(f64::INFINITY);
            lp.start.push(number(lp.index.len()));
        }
        let mut highs = Highs::new()?;
        set_options(&mut highs)?;
        let pricing = PricingOptions::of(template);
        pricing.set(&mut highs)?;
        let dual_tolerance = dual_tolerance(template);
        highs.set_number(DUAL_TOLERANCE, dual_tolerance)?;
        highs.pass(&lp)?;
        let bounded = bound_sources(view);
        let numbers = |list: &[usize]| list.iter().map(|&at| number(at)).collect();
        // Coefficients that openings change are stored before those of any cut, on every thread.
        for &(column, row) in &node.places.coefficients {
            highs.set_coefficient(row, column, 1.0)?;
        }
        Ok(Self {
            highs,
            pricing,
            template_rows: template.rows.len(),
            future,
            loaded: Vec::new(),
            violation: VIOLATION,
            dual_tolerance,
            column_set: bounded.iter().map(|(column, _)| number(*column)).collect(),
            sources: bounded.iter().map(|(_, source)| *source).collect(),
            row_set: numbers(&node.places.rows),
            cost_set: numbers(&node.places.costs),
            entries_vanish: coefficients_vanish(view) || node.value_rows > node.probabilities.len(),
            lp,
            statistics: LpStatistics::default(),
            solution: HighsSolution::default(),
            state: Vec::new(),
            statuses: (Vec::new(), Vec::new()),
            bounds: (Vec::new(), Vec::new()),
            answer: NodeSolution::default(),
        })
    }

    /// Sets the rows after the template's to these cuts, in this order.
    fn set_rows(&mut self, cuts: &Cuts<'_>, slots: &[u32]) -> Result<(), HighsRefusal> {
        let mut wanted = slots.iter().peekable();
        let mut gone = Vec::new();
        let mut kept = Vec::with_capacity(slots.len());
        for (at, slot) in self.loaded.iter().enumerate() {
            if wanted.next_if(|next| *next == slot).is_some() {
                kept.push(*slot);
            } else {
                gone.push(number(self.template_rows + at));
            }
        }
        self.highs.delete_rows(&gone)?;
        let rows = self.template_rows + kept.len();
        let intercepts = kept.iter().map(|&slot| cuts.intercept(slot));
        self.lp.row_lower.truncate(self.template_rows);
        self.lp.row_lower.extend(intercepts);
        self.lp.row_upper.truncate(rows);
        self.loaded = kept;
        self.add_rows(cuts, &slots[self.loaded.len()..])
    }

    /// Reads the solution; returns the cuts that it violates most, of those that are not rows.
    ///
    /// # Errors
    /// When it violates one that is a row because HiGHS takes its slopes for zero.
    fn most_violated(&mut self, cuts: &Cuts<'_>) -> Result<Vec<u32>, HighsRefusal> {
        self.highs.solution(&mut self.solution);
        let Some(future) = self.future else {
            return Ok(Vec::new());
        };
        let future = self.solution.columns[future];
        let state = &mut self.state;
        state.clear();
        state.extend(cuts.outgoing().map(|column| self.solution.columns[column]));
        let tolerance = self.violation * (1.0 + future.abs());
        let mut violated: Vec<(f64, u32)> = cuts
            .slots()
            .iter()
            .map(|&slot| (cuts.value(slot, state) - future, slot))
            .filter(|(violation, _)| *violation > tolerance)
            .collect();
        let most_lost = LOST_SLOPES * (1.0 + future.abs());
        for (violation, slot) in &violated {
            let is_row = *violation > most_lost && self.loaded.contains(slot);
            if is_row && is_lost(cuts.gradient(*slot), state, *violation) {
                return Err(HighsRefusal(
                    "take a cut with slopes of 1e-12 or less: choose larger units of states, or smaller ones of costs",
                ));
            }
        }
        violated.retain(|(_, slot)| !self.loaded.contains(slot));
        violated.sort_by(|left, right| right.0.total_cmp(&left.0));
        violated.truncate(MAX_CUTS_AT_ONCE);
        Ok(violated.into_iter().map(|(_, slot)| slot).collect())
    }

    /// True if the primal and the dual objective agree, and the dual values of cuts add up to the
    /// cost coefficient of the cost to go: an error there weighs as much as the cost to go is
    /// large. From the basis of another solve HiGHS can miss either; from a cold start that was not
    /// seen.
    fn adds_up(&self) -> bool {
        let (answer, solution) = (&self.answer, &self.solution);
        let gap = answer.cost + answer.future - answer.bound;
        let future = self.future.map_or(0.0, |future| {
            let cuts = solution.row_duals[self.template_rows..].iter();
            cuts.sum::<f64>() + solution.column_duals[future] - self.lp.costs[future]
        });
        gap.abs() <= self.violation * (1.0 + answer.bound.abs()) && future.abs() <= self.violation
    }

    /// Adds the row `cost to go − gradient · outgoing state ≥ intercept` of each of these cuts.
    fn add_rows(&mut self, cuts: &Cuts<'_>, slots: &[u32]) -> Result<(), HighsRefusal> {
        let Some(future) = self.future else {
            return Ok(());
        };
        let (mut lower, mut start) = (Vec::new(), Vec::new());
        let (mut index, mut value) = (Vec::new(), Vec::new());
        for &slot in slots {
            start.push(number(index.len()));
            lower.push(cuts.intercept(slot));
            for (column, slope) in cuts.outgoing().zip(cuts.gradient(slot)) {
                if slope.abs() > SMALL_COEFFICIENT {
                    index.push(number(column));
                    value.push(-slope);
                }
            }
            index.push(number(future));
            value.push(1.0);
        }
        self.highs.add_rows(&lower, &start, &index, &value)?;
        self.lp.row_lower.extend_from_slice(&lower);
        self.lp
            .row_upper
            .resize(self.lp.row_lower.len(), f64::INFINITY);
        self.loaded.extend_from_slice(slots);
        Ok(())
    }

    /// Clears the solver, and sets the warm-start basis if there is one.
    fn start_from(&mut self, memory: &HighsBasis) -> Result<(), HighsRefusal> {
        self.highs.clear_solver()?;
        let own = self.lp.row_lower.len() - self.loaded.len();
        if memory.is_empty() || !memory.fits(self.lp.costs.len(), own) {
            return Ok(());
        }
        let (columns, rows) = &mut self.statuses;
        memory.restore(columns, rows, &self.loaded);
        self.highs.set_basis(columns, rows)
    }

    /// Sets the incoming state and the values of an opening; returns the constant of the objective.
    fn put_in_place(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        opening: usize,
    ) -> Result<f64, HighsRefusal> {
        let values = view.opening(opening);
        let places = &view.problem.nodes[view.node].places;
        let parts = places.split(values);
        let (lower, upper) = &mut self.bounds;
        lower.clear();
        upper.clear();
        for (source, &column) in self.sources.iter().zip(&self.column_set) {
            let bounds = match *source {
                BoundSource::State(number) => (incoming[number], incoming[number]),
                BoundSource::Opening(place) => {
                    (parts.column_lower[place], parts.column_upper[place])
                }
            };
            lower.push(bounds.0);
            upper.push(bounds.1);
            (
                self.lp.lower[column as usize],
                self.lp.upper[column as usize],
            ) = bounds;
        }
        self.highs
            .set_column_bounds(&self.column_set, lower, upper)?;
        for (place, &row) in places.rows.iter().enumerate() {
            self.lp.row_lower[row] = parts.row_lower[place];
            self.lp.row_upper[row] = parts.row_upper[place];
        }
        self.highs
            .set_row_bounds(&self.row_set, parts.row_lower, parts.row_upper)?;
        for (place, &column) in places.costs.iter().enumerate() {
            self.lp.costs[column] = parts.costs[place];
        }
        self.highs.set_costs(&self.cost_set, parts.costs)?;
        if self.entries_vanish {
            // HiGHS appends a coefficient that appears: removing all of them first makes their
            // order the same whatever was there before.
            for &(column, row) in &places.coefficients {
                self.highs.set_coefficient(row, column, 0.0)?;
            }
        }
        for (&(column, row), &value) in places.coefficients.iter().zip(parts.coefficients) {
            self.highs.set_coefficient(row, column, value)?;
        }
        Ok(parts.constant)
    }

    /// Solves the linear program, with the retry ladder if need be.
    fn run(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        opening: usize,
    ) -> Result<(), Box<LpFailure>> {
        let mut status = self.highs.run();
        if status == ModelStatus::Optimal {
            return Ok(());
        }
        let refused = |refused| refusal(view, refused);
        PricingOptions::DEFAULT
            .set(&mut self.highs)
            .map_err(refused)?;
        // All steps, whatever the status on the way: on badly scaled linear programs it may be
        // wrong.
        for step in RETRY_STEPS {
            self.statistics.retries += 1;
            self.highs.clear_solver().map_err(refused)?;
            set_retry_step(&mut self.highs, step, true).map_err(refused)?;
            status = self.highs.run();
            set_retry_step(&mut self.highs, step, false).map_err(refused)?;
            if status == ModelStatus::Optimal {
                break;
            }
        }
        self.pricing.set(&mut self.highs).map_err(refused)?;
        if status == ModelStatus::Optimal {
            return Ok(());
        }
        let why = explain::explain(view, incoming, opening, status);
        Err(Box::new(self.failure(view, incoming, opening, why)))
    }

    fn read_answer(&mut self, view: &NodeView<'_>, constant: f64) {
        let template = view.problem.template(view.node);
        let (lp, solution, answer) = (&self.lp, &self.solution, &mut self.answer);
        answer.bound = constant
            + duals::value(
                &solution.row_duals,
                &lp.row_lower,
                &lp.row_upper,
                &solution.rows,
            )
            + duals::value(
                &solution.column_duals,
                &lp.lower,
                &lp.upper,
                &solution.columns,
            );
        answer.columns.clear();
        answer
            .columns
            .extend_from_slice(&solution.columns[..template.columns.len()]);
        let costs = answer.columns.iter().zip(&lp.costs);
        answer.cost = costs.fold(constant, |sum, (value, cost)| sum + value * cost);
        answer.future = self.future.map_or(0.0, |column| solution.columns[column]);
        answer.gradient.clear();
        answer.outgoing.clear();
        for state in &template.states {
            answer.gradient.push(solution.column_duals[state.incoming]);
            let value = solution.columns[state.outgoing];
            // A value within the tolerance of a bound counts as on it.
            let value = value
                .max(lp.lower[state.outgoing])
                .min(lp.upper[state.outgoing]);
            answer.outgoing.push(value);
        }
    }

    /// Clamps decisions to their bounds, which they may miss by the tolerance.
    fn clamp_columns(&mut self) {
        let bounds = self.lp.lower.iter().zip(&self.lp.upper);
        for (value, (lower, upper)) in self.answer.columns.iter_mut().zip(bounds) {
            *value = value.max(*lower).min(*upper);
        }
    }

    /// Explains the failure of a solve to the modeller.
    fn failure(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        opening: usize,
        (kind, explanation): (LpFailureKind, String),
    ) -> LpFailure {
        let problem = view.problem;
        let name = &problem.nodes[view.node].name;
        // Other scenarios may fail at this node too, at other states: each has its file.
        let state = &Fingerprint::of(&incoming).to_string()[..8];
        let file = view.failures.join(format!(
            "failed-node-{}-opening-{}-state-{state}.lp",
            plain(name),
            opening + 1
        ));
        let values = problem.states.iter().zip(incoming);
        LpFailure {
            kind,
            node: name.clone(),
            opening: view.given.is_none().then_some(opening + 1),
            incoming: values
                .map(|(state, value)| (state.name.clone(), *value))
                .collect(),
            explanation,
            file: self.write(view, file),
        }
    }

    /// Writes the linear program to a file.
    fn write(&mut self, view: &NodeView<'_>, file: PathBuf) -> Option<PathBuf> {
        let template = view.problem.template(view.node);
        for (number, column) in template.columns.iter().enumerate() {
            let name = format!("{}#{number}", plain(&column.name));
            self.highs.name_column(number, &CString::new(name).ok()?);
        }
        if let Some(future) = self.future {
            self.highs.name_column(future, c"cost_to_go");
        }
        for number in 0..self.highs.rows() {
            let name = match template.rows.get(number) {
                Some(row) => format!("{}#{number}", plain(&row.name)),
                None => format!("cut#{}", self.loaded[number - self.template_rows]),
            };
            self.highs.name_row(number, &CString::new(name).ok()?);
        }
        std::fs::create_dir_all(view.failures).ok()?;
        let is_own = |head: &[u8]| {
            head.windows(LP_FILE_MARK.len())
                .any(|part| part == LP_FILE_MARK)
        };
        if file.is_symlink() || cobre_files::replaceable(&file, is_own).is_err() {
            return None;
        }
        let mut whole = WholeFile::create(&file).ok()?;
        whole.write(&self.text()?).ok()?;
        whole.finish().ok().map(|()| file)
    }

    /// The linear program as HiGHS writes it. HiGHS follows links and truncates what it finds: it writes in a directory
    /// that nobody else can write to.
    fn text(&mut self) -> Option<Vec<u8>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("cobre-lp-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&directory).ok()?;
        let file = directory.join("failed.lp");
        let written = CString::new(file.as_os_str().as_encoded_bytes())
            .ok()
            .and_then(|path| self.highs.write(&path).ok())
            .and_then(|()| cobre_files::read(&file, u64::MAX).ok());
        // Nothing else is in it.
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_dir(&directory);
        written
    }
}

/// The columns whose bounds change, in ascending order, with the sources of their bounds.
fn bound_sources(view: &NodeView<'_>) -> Vec<(usize, BoundSource)> {
    let states = view.problem.template(view.node).states.iter().enumerate();
    let states = states.map(|(number, state)| (state.incoming, BoundSource::State(number)));
    let places = &view.problem.nodes[view.node].places;
    let columns = places.columns.iter().enumerate();
    let columns = columns.map(|(place, &column)| (column, BoundSource::Opening(place)));
    let mut sources: Vec<(usize, BoundSource)> = states.chain(columns).collect();
    sources.sort_unstable_by_key(|(column, _)| *column);
    sources
}

/// True if some opening makes a coefficient vanish.
fn coefficients_vanish(view: &NodeView<'_>) -> bool {
    let node = &view.problem.nodes[view.node];
    (0..node.probabilities.len()).any(|opening| {
        let values = view.problem.opening(view.values, view.node, opening);
        let mut coefficients = node.places.split(values).coefficients.iter();
        coefficients.any(|value| value.abs() <= SMALL_COEFFICIENT)
    })
}

/// Replaces the characters of a name that a file name must not have: all but letters, digits,
/// underscores and points.
fn plain(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    name.chars()
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect()
}

/// The failure of a call that HiGHS refused.
fn refusal(view: &NodeView<'_>, HighsRefusal(what): HighsRefusal) -> Box<LpFailure> {
    Box::new(LpFailure {
        kind: LpFailureKind::NotSolved(format!("the solver refused to {what}")),
        node: view.problem.nodes[view.node].name.clone(),
        opening: None,
        incoming: Vec::new(),
        explanation: String::new(),
        file: None,
    })
}

/// True if the slopes that HiGHS takes for zero explain the violation of a cut that is a row. Other violations of a row are
/// its inaccuracy, which `adds_up` finds.
fn is_lost(gradient: &[f64], state: &[f64], violation: f64) -> bool {
    let terms = gradient.iter().zip(state);
    let terms = terms.filter(|(slope, _)| slope.abs() <= SMALL_COEFFICIENT);
    let lost: f64 = terms.map(|(slope, value)| (slope * value).abs()).sum();
    lost > 0.5 * violation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_blamed_on_the_slopes_that_explain_it_alone() {
        // As on 160 plants: a tiny slope of a plant next to large ones, and a violation that is not its own.
        let gradient = [-3.0e4, 1e-13, -7.5];
        assert!(!is_lost(&gradient, &[2e3, 1e3, 40.0], 25.0));
        assert!(is_lost(&gradient, &[2e3, 2e14, 40.0], 25.0));
    }
}
