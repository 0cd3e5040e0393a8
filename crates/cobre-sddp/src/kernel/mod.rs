//! A solver made for nodes: a dense dual simplex that starts from the best of the bases its work
//! unit remembers, and takes in inequalities and cuts when they are violated.
//!
//! Read from the idea to the arithmetic: [`Dictionary`] (where a solve starts), `simplex` (how it
//! goes on), `ratio`, `basis` (what it works on), `inverse`; and from the model down: `known` (what
//! is known before a solve), `program` (what is left), `curve`, `cut_table`; and back up: `worth`.

mod basis;
mod checked;
mod curve;
mod cut_table;
mod dictionary;
mod inverse;
mod known;
mod linear;
mod program;
mod ratio;
mod rules;
mod setting;
mod simplex;
mod sparse;
mod tolerance;
mod worth;

pub use checked::Checked;
pub use dictionary::Dictionary;
pub use rules::{Always, Auto, Rules};

use std::marker::PhantomData;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::basis::Basis;
use self::program::{Origin, Program};
use self::setting::Setting;
use self::simplex::Trouble;
use crate::lp::{Answer, Counts, Failure, HighsNode, Kernel, NodeView, Want};

/// What a work unit keeps from one solve to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    dictionary: Dictionary,
    /// Of nodes that HiGHS solves.
    basis: crate::lp::Basis,
}

/// A solver of one node: the kernel's own, or HiGHS where the rules say so.
#[derive(Debug)]
pub struct StageKernel<R> {
    node: Node,
    counts: Counts,
    rules: PhantomData<R>,
}

#[derive(Debug)]
enum Node {
    Own(Box<Own>),
    Highs(Box<HighsNode>),
}

impl<R: Rules> Kernel for StageKernel<R> {
    type Memory = Memory;

    const NAME: &'static str = R::NAME;
    const OPENINGS_PER_BLOCK: usize = 25;

    fn load(view: &NodeView<'_>) -> Result<Self, Box<Failure>> {
        let node = match Program::new::<R>(view) {
            Ok(program) => Node::Own(Box::new(Own::new(program))),
            Err(_) => Node::Highs(Box::new(HighsNode::load(view)?)),
        };
        Ok(Self {
            node,
            counts: Counts::default(),
            rules: PhantomData,
        })
    }

    fn solve(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        openings: Range<usize>,
        want: Want,
        memory: &mut Memory,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>> {
        let own = match &mut self.node {
            Node::Own(own) => own,
            Node::Highs(highs) => {
                return highs.solve(view, incoming, openings, want, &mut memory.basis, each);
            }
        };
        let dictionary = &mut memory.dictionary;
        own.start_visit(view, incoming, dictionary);
        let count = openings.len();
        for opening in openings {
            self.counts.solves += 1;
            own.setting.start_opening(view, opening);
            let known = dictionary.len();
            match own.climb::<R>(dictionary, &mut self.counts) {
                Ok(entry) => {
                    self.counts.remembered += u64::from(entry < known);
                    own.read_answer(dictionary, entry, want);
                    each(opening, &own.answer);
                }
                Err(_) => own.fall_back(view, incoming, opening, want, each)?,
            }
        }
        dictionary.end_visit(count);
        Ok(())
    }

    fn counts(&self) -> Counts {
        match &self.node {
            Node::Own(own) => {
                let highs = own.fallback.as_ref().map(HighsNode::counts);
                let highs = highs.unwrap_or_default();
                Counts {
                    highs: highs.solves,
                    fallbacks: highs.solves,
                    retries: highs.retries,
                    pivots: own.basis.pivots,
                    refactored: self.counts.refactored + own.basis.refactored,
                    ..self.counts
                }
            }
            Node::Highs(highs) => highs.counts(),
        }
    }
}

/// A node that the kernel solves itself.
#[derive(Debug)]
struct Own {
    setting: Setting,
    basis: Basis,
    /// The entry of the dictionary that `basis` is a copy of.
    present: Option<usize>,
    answer: Answer,
    values: Vec<f64>,
    fallback: Option<HighsNode>,
}

impl Own {
    fn new(program: Program) -> Self {
        Self {
            basis: Basis::new(&program),
            setting: Setting::new(program),
            present: None,
            answer: Answer::default(),
            values: Vec::new(),
            fallback: None,
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
    fn climb<R: Rules>(
        &mut self,
        dictionary: &mut Dictionary,
        counts: &mut Counts,
    ) -> Result<usize, Trouble> {
        self.setting.check_guards()?;
        let started = self.start(dictionary);
        let mut result = started.and_then(|()| self.finish::<R>(dictionary));
        if result.is_err() {
            counts.refactored += 1;
            let again = self.basis.refactor(self.setting.scene());
            let again = again.map_err(Trouble::from);
            result = again.and_then(|()| self.finish::<R>(dictionary));
        }
        if result.is_err() {
            counts.cold_starts += 1;
            self.basis.start_cold(&self.setting.program);
            result = self.finish::<R>(dictionary);
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
    fn finish<R: Rules>(&mut self, dictionary: &mut Dictionary) -> Result<usize, Trouble> {
        let (setting, basis) = (&self.setting, &mut self.basis);
        let scene = setting.scene();
        let (before, pivots) = (self.present.take(), basis.solve::<R>(scene)?);
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
        incoming: &[f64],
        opening: usize,
        want: Want,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>> {
        self.present = None;
        let highs = match &mut self.fallback {
            Some(highs) => highs,
            empty => empty.insert(HighsNode::load(view)?),
        };
        let basis = &mut crate::lp::Basis::default();
        highs.solve(view, incoming, opening..opening + 1, want, basis, each)
    }
}

#[cfg(test)]
mod tests;
