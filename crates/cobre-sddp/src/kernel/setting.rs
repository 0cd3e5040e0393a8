//! The program of a node with a state, an opening and the cuts of now in it.

use super::basis::Scene;
use super::cut_table::CutTable;
use super::known;
use super::program::Program;
use super::simplex::Trouble;
use super::tolerance;
use crate::lp::NodeView;
use crate::policy::Cuts;

/// A program with a state, an opening and the cuts of now in it.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) program: Program,
    pub(super) cuts: CutTable,
    /// Incoming states, and what the opening puts in place.
    pub(super) parameters: Vec<f64>,
    /// How the known part of the objective changes with incoming states.
    pub(super) known_cost_slopes: Vec<f64>,
    /// Right-hand sides at the incoming states, and with the opening.
    visit_rhs: Vec<f64>,
    rhs: Vec<f64>,
    /// What openings change in right-hand sides: row, parameter, coefficient.
    opening_terms: Vec<(usize, usize, f64)>,
}

impl Setting {
    pub(super) fn new(program: Program) -> Self {
        let mut opening_terms = Vec::new();
        for (row, rhs) in program.rhs.iter().enumerate() {
            let of_opening = rhs.terms.iter().filter(|term| term.0 >= program.states);
            opening_terms.extend(of_opening.map(|&(parameter, factor)| (row, parameter, factor)));
        }
        let mut known_cost_slopes = vec![0.0; program.states];
        for &(parameter, slope) in &program.known_cost.terms {
            if parameter < program.states {
                known_cost_slopes[parameter] = slope;
            }
        }
        Self {
            cuts: CutTable::default(),
            parameters: vec![0.0; program.states + program.parameters.len()],
            known_cost_slopes,
            visit_rhs: vec![0.0; program.rows],
            rhs: vec![0.0; program.rows],
            opening_terms,
            program,
        }
    }

    pub(super) fn scene(&self) -> Scene<'_> {
        Scene {
            program: &self.program,
            cuts: &self.cuts,
            rhs: &self.rhs,
        }
    }

    /// Puts cuts and incoming states in place.
    pub(super) fn start_visit(&mut self, cuts: &Cuts<'_>, incoming: &[f64]) {
        let program = &self.program;
        self.cuts.update(program, cuts);
        self.parameters[..program.states].copy_from_slice(incoming);
        self.cuts.start_visit(program, &self.parameters);
        for (rhs, linear) in self.visit_rhs.iter_mut().zip(&program.rhs) {
            *rhs = linear.at_states(incoming);
        }
    }

    /// Puts an opening in place.
    pub(super) fn start_opening(&mut self, view: &NodeView<'_>, opening: usize) {
        let program = &self.program;
        let values = view.problem.opening(view.values, view.node, opening);
        let parameters = self.parameters[program.states..].iter_mut();
        for (parameter, &at) in parameters.zip(&program.parameters) {
            *parameter = known::parameter(values[at]);
        }
        self.rhs.copy_from_slice(&self.visit_rhs);
        for &(row, parameter, factor) in &self.opening_terms {
            self.rhs[row] += factor * self.parameters[parameter];
        }
        self.cuts.start_opening(program, &self.parameters);
    }

    /// Whether known columns and empty rows are within their bounds.
    pub(super) fn check_guards(&self) -> Result<(), Trouble> {
        for guard in &self.program.guards {
            let value = guard.what.value(&self.parameters);
            let beyond = (guard.lower - value).max(value - guard.upper);
            if beyond > tolerance::primal(value) {
                return Err(Trouble::Stuck);
            }
        }
        Ok(())
    }
}
