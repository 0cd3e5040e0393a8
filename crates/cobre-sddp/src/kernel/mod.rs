//! A solver made for nodes: a dense dual simplex that starts from the best of the bases its work
//! unit remembers, and takes in inequalities and cuts when they are violated.
//!
//! Read from the idea to the arithmetic: [`Dictionary`] (where a solve starts), `simplex` (how it
//! goes on), `ratio`, `basis` (what it works on), `inverse`; and from the model down: `known` (what
//! is known before a solve), `program` (what is left), `curve`, `cut_table`; and back up: `worth`.

mod basis;
mod curve;
mod cut_table;
mod dictionary;
#[cfg(test)]
mod fault;
mod inverse;
mod known;
mod linear;
mod program;
mod ratio;
mod setting;
mod simplex;
mod sparse;
mod tolerance;
mod worth;

pub(crate) use dictionary::Dictionary;
#[cfg(test)]
pub(crate) use fault::Fault;

use self::basis::Basis;
use self::program::{Origin, Program};
use self::setting::Setting;
use self::simplex::Trouble;
use crate::lp::{Answer, Counts, Failure, HighsNode, NodeView, Visit, Want};

/// The largest nodes that the kernel takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    /// Equality rows: the least size of a basis.
    equalities: usize,
    /// Rows, which a basis has room for.
    rows: usize,
}

impl SizeLimits {
    /// Nodes on which the kernel is faster than HiGHS.
    pub(crate) const FASTER_THAN_HIGHS: Self = Self {
        equalities: 150,
        rows: 600,
    };
    /// Nodes for which a dense inverse is sound.
    pub(crate) const DENSE_INVERSE: Self = Self {
        equalities: 400,
        rows: 2000,
    };
}

/// A node that the kernel solves.
#[derive(Debug)]
pub(crate) struct KernelNode {
    setting: Setting,
    basis: Basis,
    /// The entry of the dictionary that `basis` is a copy of.
    present: Option<usize>,
    answer: Answer,
    values: Vec<f64>,
    fallback: Option<HighsNode>,
    counts: Counts,
}

impl KernelNode {
    /// A solver of this node, without any cuts yet; `None` if it is not one for the kernel: openings change
    /// costs or coefficients, or it is larger than the limits.
    pub(crate) fn new(view: &NodeView<'_>, limits: SizeLimits) -> Option<Self> {
        let program = Program::new(view, limits)?;
        Some(Self {
            basis: Basis::new(&program),
            setting: Setting::new(program),
            present: None,
            answer: Answer::default(),
            values: Vec::new(),
            fallback: None,
            counts: Counts::default(),
        })
    }

    /// Solves the openings of a visit in turn; HiGHS solves those that the kernel gives up.
    ///
    /// # Errors
    /// For the first opening that HiGHS could not solve either.
    pub(crate) fn solve(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        dictionary: &mut Dictionary,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>> {
        self.start_visit(view, visit.incoming, dictionary);
        for opening in visit.openings.clone() {
            self.counts.solves += 1;
            self.setting.start_opening(view, opening);
            let known = dictionary.len();
            match self.climb(dictionary) {
                Ok(entry) => {
                    self.counts.remembered += u64::from(entry < known);
                    self.read_answer(dictionary, entry, visit.want);
                    each(opening, &self.answer);
                }
                Err(_) => self.fall_back(view, visit, opening, each)?,
            }
        }
        dictionary.end_visit(visit.openings.len());
        Ok(())
    }

    pub(crate) fn counts(&self) -> Counts {
        let highs = self.fallback.as_ref().map(HighsNode::counts);
        let highs = highs.unwrap_or_default();
        Counts {
            highs: highs.solves,
            fallbacks: highs.solves,
            retries: highs.retries,
            pivots: self.basis.pivots,
            refactored: self.counts.refactored + self.basis.refactored,
            ..self.counts
        }
    }

    fn start_visit(&mut self, view: &NodeView<'_>, incoming: &[f64], dictionary: &mut Dictionary) {
        let setting = &mut self.setting;
        setting.start_visit(&view.cuts, incoming);
        dictionary.start_visit(&setting.program, &setting.cuts, &setting.parameters);
        self.present = None;
    }

    /// Solves what is in place: from the best basis remembered, then with a new inverse, then from
    /// nothing. Returns the entry of the optimal basis.
    fn climb(&mut self, dictionary: &mut Dictionary) -> Result<usize, Trouble> {
        self.setting.check_guards()?;
        let started = self.start(dictionary);
        let mut result = started.and_then(|()| self.finish(dictionary));
        if result.is_err() {
            self.counts.refactored += 1;
            let again = self.basis.refactor(self.setting.scene());
            let again = again.map_err(Trouble::from);
            result = again.and_then(|()| self.finish(dictionary));
        }
        if result.is_err() {
            self.counts.cold_starts += 1;
            self.basis.start_cold(&self.setting.program);
            result = self.finish(dictionary);
        }
        result
    }

    /// Puts the best basis remembered in place, or one to start from nothing with.
    #[inline]
    fn start(&mut self, dictionary: &mut Dictionary) -> Result<(), Trouble> {
        let setting = &self.setting;
        let best = dictionary.best(&setting.program, &setting.parameters);
        let Some(best) = best else {
            self.basis.start_cold(&setting.program);
            return Ok(());
        };
        if self.present != Some(best) {
            self.present = None;
            let parameters = &setting.parameters;
            dictionary.load(best, setting.scene(), &mut self.basis, parameters)?;
            self.present = Some(best);
        }
        Ok(())
    }

    /// Solves from the basis in place, and checks the answer.
    #[inline]
    fn finish(&mut self, dictionary: &mut Dictionary) -> Result<usize, Trouble> {
        let (setting, basis) = (&self.setting, &mut self.basis);
        let scene = setting.scene();
        let (before, pivots) = (self.present.take(), basis.solve(scene)?);
        let kept = before.filter(|_| pivots == 0);
        let entry = match kept {
            Some(entry) => entry,
            None => dictionary.add(scene, basis, &setting.parameters)?,
        };
        let (dual, _) = dictionary.value(entry, &setting.program, &setting.parameters);
        let primal = basis.value();
        // A value that is no number is worse than any tolerance.
        let close = (primal - dual).abs() <= tolerance::GAP * (1.0 + primal.abs());
        if !close {
            if kept.is_none() {
                dictionary.drop_latest();
            }
            return Err(Trouble::Wrong);
        }
        dictionary.used(entry);
        self.present = Some(entry);
        Ok(entry)
    }

    fn read_answer(&mut self, dictionary: &Dictionary, entry: usize, want: Want) {
        let (setting, answer) = (&self.setting, &mut self.answer);
        let program = &setting.program;
        let (value, slopes) = dictionary.value(entry, program, &setting.parameters);
        let known_cost = program.known_cost.value(&setting.parameters);
        answer.bound = value + known_cost;
        answer.gradient.clear();
        let slopes = slopes.iter().zip(&setting.known_cost_slopes);
        answer
            .gradient
            .extend(slopes.map(|(one, other)| one + other));
        if want == Want::Cut {
            return;
        }
        answer.future = self.basis.future;
        answer.cost = self.basis.value() + known_cost - answer.future;
        answer.outgoing.clear();
        answer.outgoing.resize(program.states, 0.0);
        for (&(state, column), &value) in program.carriers.iter().zip(&self.basis.state) {
            // Within the tolerance of a bound is on it.
            let value = value.max(program.lower[column]).min(program.upper[column]);
            answer.outgoing[state] = value;
        }
        for (state, value) in &program.known_states {
            answer.outgoing[*state] = value.value(&setting.parameters);
        }
        if want == Want::All {
            self.basis.column_values(program, &mut self.values);
            let values = program.origins.iter().map(|origin| match origin {
                Origin::Decided(column) => self.values[*column]
                    .max(program.lower[*column])
                    .min(program.upper[*column]),
                Origin::Known(value) => value.value(&setting.parameters),
            });
            answer.columns.clear();
            answer.columns.extend(values);
            worth::row_duals(setting.scene(), &self.basis, &mut answer.duals);
        }
    }

    /// Lets HiGHS solve an opening, from nothing.
    fn fall_back(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        opening: usize,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>> {
        self.present = None;
        let highs = match &mut self.fallback {
            Some(highs) => highs,
            empty => empty.insert(HighsNode::load(view)?),
        };
        let basis = &mut crate::lp::Basis::default();
        let visit = Visit {
            openings: opening..opening + 1,
            ..visit.clone()
        };
        highs.solve(view, &visit, basis, each)
    }
}
