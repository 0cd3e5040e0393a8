//! The linear program of a node at a state and an opening, with the present cuts.

use std::sync::Arc;

use super::affine::DERIVED;
use super::basis::StageInput;
use super::cut_table::{CutHeights, CutTable};
use super::presolve;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;
use super::tolerance;
use crate::lp::NodeView;
use crate::policy::Cuts;

/// The linear program of a node at a state and an opening, with the present cuts.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) lp: Arc<ReducedLp>,
    /// Incoming states, and the values of the opening.
    pub(super) parameters: Vec<f64>,
    /// The gradient of the fixed part of the objective by incoming state.
    pub(super) fixed_cost_gradient: Vec<f64>,
    /// Right-hand sides at the incoming states, and with the opening.
    visit_rhs: Vec<f64>,
    opening_rhs: Vec<f64>,
    /// The same as the references of hyperplane groups transform them.
    rhs: Vec<f64>,
    is_transformed: bool,
    shifts: Vec<f64>,
    /// The terms of openings in right-hand sides: row, parameter, coefficient.
    opening_terms: Vec<(usize, usize, f64)>,
}

impl Instance {
    pub(super) fn new(lp: Arc<ReducedLp>) -> Self {
        let mut opening_terms = Vec::new();
        for (row, rhs) in lp.rhs.iter().enumerate() {
            let of_opening = rhs.terms.iter().filter(|term| term.0 >= lp.states);
            opening_terms.extend(of_opening.map(|&(parameter, factor)| (row, parameter, factor)));
        }
        let mut fixed_cost_gradient = vec![0.0; lp.states];
        for &(parameter, slope) in &lp.fixed_cost.terms {
            if parameter < lp.states {
                fixed_cost_gradient[parameter] = slope;
            }
        }
        Self {
            parameters: vec![0.0; lp.parameter_count()],
            fixed_cost_gradient,
            visit_rhs: vec![0.0; lp.rows],
            opening_rhs: vec![0.0; lp.rows],
            rhs: vec![0.0; lp.rows],
            is_transformed: true,
            shifts: Vec::new(),
            opening_terms,
            lp,
        }
    }

    /// The input of a solve with the cuts that the visit has started with.
    pub(super) fn input<'a>(
        &'a self,
        cuts: &'a Cuts<'_>,
        heights: &'a CutHeights,
    ) -> StageInput<'a> {
        let cuts = cuts.blocks();
        StageInput {
            lp: &self.lp,
            cuts: CutTable { cuts, heights },
            rhs: &self.rhs,
        }
    }

    /// Sets the cuts and the incoming states.
    pub(super) fn start_visit(
        &mut self,
        cuts: &Cuts<'_>,
        heights: &mut CutHeights,
        incoming: &[f64],
    ) {
        let lp = &self.lp;
        self.parameters[..lp.states].copy_from_slice(incoming);
        let parameters = &self.parameters;
        heights.start_visit(lp, cuts.blocks(), parameters);
        for (rhs, affine) in self.visit_rhs.iter_mut().zip(&lp.rhs) {
            *rhs = affine.at_states(incoming);
        }
    }

    /// Sets the opening.
    pub(super) fn start_opening(
        &mut self,
        view: &NodeView<'_>,
        heights: &mut CutHeights,
        opening: usize,
    ) {
        let lp = &self.lp;
        let values = view.opening(opening);
        let parameters = self.parameters[lp.states..].iter_mut();
        for (parameter, &at) in parameters.zip(&lp.parameters) {
            *parameter = presolve::parameter(values[at]);
        }
        let first = lp.first_derived();
        for (number, part) in lp.derived.iter().enumerate() {
            let value = part.sign * part.of.value(&self.parameters);
            self.parameters[first + number] = value.max(0.0);
        }
        self.opening_rhs.copy_from_slice(&self.visit_rhs);
        for &(row, parameter, factor) in &self.opening_terms {
            self.opening_rhs[row] += factor * self.parameters[parameter];
        }
        let cuts = view.cuts.blocks();
        heights.start_opening(lp, cuts, &self.parameters);
        self.rhs.copy_from_slice(&self.opening_rhs);
        self.is_transformed = !self.has_references();
    }

    /// True if there are hyperplane groups, which have references.
    pub(super) fn has_references(&self) -> bool {
        !self.lp.hyperplanes.groups.is_empty()
    }

    /// Transforms right-hand sides by the present references, unless they are.
    pub(super) fn transform_rhs(&mut self) {
        if !self.is_transformed {
            self.rhs.copy_from_slice(&self.opening_rhs);
            let hyperplanes = &self.lp.hyperplanes;
            hyperplanes.transform_rhs(&self.opening_rhs, &mut self.rhs, &mut self.shifts);
            self.is_transformed = true;
        }
    }

    /// Makes these hyperplanes the references of their groups.
    pub(super) fn refer(&mut self, references: &[u8]) {
        // A comparison of no bytes at no address is slow on some processors.
        if self.has_references() && self.lp.hyperplanes.references() != references {
            Arc::make_mut(&mut self.lp).refer(references);
            self.is_transformed = false;
        }
        self.transform_rhs();
    }

    /// Makes the first hyperplane of each group its reference.
    pub(super) fn refer_to_first(&mut self) {
        let count = self.lp.hyperplanes.groups.len();
        if count > 0 {
            self.refer(&vec![0; count]);
        }
    }

    /// The value of a derived parameter.
    pub(super) fn derived(&self, number: usize) -> f64 {
        self.parameters[self.lp.first_derived() + number - DERIVED]
    }

    /// Writes the gradient of the objective by incoming state, from its slopes by parameter.
    pub(super) fn gradient(&self, slopes: &[f64], into: &mut Vec<f64>) {
        into.clear();
        if self.lp.derived.is_empty() {
            let slopes = slopes.iter().zip(&self.fixed_cost_gradient);
            into.extend(slopes.map(|(one, other)| one + other));
            return;
        }
        into.extend_from_slice(slopes);
        for &(parameter, slope) in &self.lp.fixed_cost.terms {
            into[parameter] += slope;
        }
        let first = self.lp.first_derived();
        for (number, part) in self.lp.derived.iter().enumerate().rev() {
            if self.parameters[first + number] > 0.0 {
                let slope = part.sign * into[first + number];
                for &(parameter, factor) in &part.of.terms {
                    into[parameter] += slope * factor;
                }
            }
        }
        into.truncate(self.lp.states);
    }

    /// Checks that no truncated column is worth more than its price, for these slopes by parameter.
    pub(super) fn prices_hold(&self, slopes: &[f64]) -> bool {
        let first = self.lp.first_derived();
        self.lp.lifts.iter().all(|lift| {
            let parameter = first + lift.derived - DERIVED;
            let worth = lift.factor * (slopes[parameter] + lift.fixed_cost);
            lift.cost + worth >= -tolerance::DUAL * lift.cost
        })
    }

    /// Checks the bounds of columns that presolve removed, and empty rows.
    pub(super) fn check_feasibility(&self) -> Result<(), SolveError> {
        for check in &self.lp.feasibility_checks {
            let value = check.value.value(&self.parameters);
            let beyond = (check.lower - value).max(value - check.upper);
            if beyond > tolerance::primal(value) {
                return Err(SolveError::Infeasible);
            }
        }
        Ok(())
    }
}
