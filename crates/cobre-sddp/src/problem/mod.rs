//! Multistage stochastic linear programs: what is solved, in a form that is known to make sense.
//!
//! A [`Draft`] collects columns, rows, nodes and openings; [`Draft::build`] checks all of it and
//! gives a [`Problem`], or every error at once.

mod draft;
mod error;
mod fictitious;
mod graph;
mod limits;
mod paths;
mod places;
mod sizes;
mod summary;
mod template;
mod terminal;

pub use draft::{Change, Draft, GivenStep, NodeId, Step, TemplateId};
pub use error::{ProblemError, ProblemErrors};
pub use fictitious::Fictitious;
pub(crate) use fictitious::Lift;
pub(crate) use graph::discount;
pub use graph::{Edge, Graph};
pub use limits::{LARGEST, LARGEST_COEFFICIENT, MOST_OPENING_NUMBERS, SMALLEST, sum_of};
pub(crate) use limits::{LARGEST_OF_CUT, check_cut};
pub use paths::{GivenPath, PathPoint, PathSource, PathSources};
pub use places::{Parts, Places};
pub use summary::{Magnitudes, Summary};
pub use template::{ColumnId, LpColumn, LpRow, RowId, StateColumns, Template};
pub use terminal::{TerminalCut, TerminalValue};

use serde::Serialize;

use crate::risk::Risk;

/// The sense of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Sense {
    /// The objective is a cost.
    Minimize,
    /// The objective is a revenue.
    Maximize,
}

impl Sense {
    /// The factor that turns the modeller's objective into a cost, and back.
    pub fn sign(self) -> f64 {
        match self {
            Self::Minimize => 1.0,
            Self::Maximize => -1.0,
        }
    }

    /// `min` or `max`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimize => "min",
            Self::Maximize => "max",
        }
    }
}

/// A quantity that one stage hands to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// The modeller's name.
    pub name: String,
    /// Its value before the first stage.
    pub initial: f64,
}

/// A node of the policy graph: one linear program and the openings it may face.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// The modeller's name.
    pub name: String,
    /// Its linear program, by number.
    pub template: usize,
    /// The probability of each opening; they sum to 1.
    pub probabilities: Vec<f64>,
    /// The numbers that openings change, in the order of their values.
    pub places: Places,
    /// The start of this node's values in [`Problem::values`]: those of its openings, and then
    /// those of the steps of given paths at this node and of its ranges, [`Places::width`] numbers each.
    pub values_start: usize,
    /// The number of its openings, steps and ranges.
    #[serde(skip)]
    pub value_rows: usize,
    /// A bound that the cost to go after this node is never below.
    pub future_bound: f64,
    /// The risk measure of what follows.
    pub risk: Risk,
    /// The terminal value: cuts on the cost after the node, where nothing follows it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terminal: Vec<TerminalCut>,
    /// The number that the modeller gives its stage; none if the modeller numbers none.
    #[serde(skip)]
    pub stage: Option<i64>,
    /// The first day of its stage, as YYYY-MM-DD; empty if there is none.
    #[serde(skip)]
    pub start_date: String,
}

/// One step of a [`Problem::validation`] scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ValidationStep {
    /// The node visited.
    pub node: usize,
    /// Its values, by number: at least the count of the node's openings, unless the path names an opening.
    pub opening: usize,
}

/// A multistage stochastic linear program that makes sense, always to be minimised inside; what is
/// shown to people is multiplied by [`Sense::sign`].
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// The modeller's sense.
    pub sense: Sense,
    /// The state variables, in the order every template names them.
    pub states: Vec<State>,
    /// The linear programs that nodes use.
    pub templates: Vec<Template>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The policy graph.
    pub graph: Graph,
    /// The risk measure at the root, and after nodes that have none of their own.
    pub risk: Risk,
    /// The numbers that openings put in place of the templates' own.
    pub values: Vec<f64>,
    /// Paths that the modeller wants evaluated.
    pub validation: Vec<Vec<ValidationStep>>,
    /// Paths that are simulated in the place of sampled ones.
    #[serde(skip)]
    pub given: Vec<GivenPath>,
    /// The sources of other paths.
    pub paths: PathSources,
    /// The mean of the cost that nobody pays.
    #[serde(skip)]
    pub fictitious: Fictitious,
    /// By template, the columns whose cost that is.
    #[serde(skip)]
    pub(crate) lifts: Vec<Vec<Lift>>,
}

impl Problem {
    /// The linear program of `node`.
    pub fn template(&self, node: usize) -> &Template {
        &self.templates[self.nodes[node].template]
    }

    /// The number of the stage of `node`, which is the `place`-th of a path from `first`, from 1. Where a path can visit a
    /// stage again, stages are numbered along the path.
    pub(crate) fn stage_number(&self, first: usize, node: usize, place: usize) -> i64 {
        let place = (place as u64).cast_signed();
        if self.graph.is_cyclic() {
            return self.nodes[first].stage.unwrap_or(1) + place - 1;
        }
        self.nodes[node].stage.unwrap_or(place)
    }

    /// True if a cost to go follows `node`: that of its successors, or a terminal value.
    pub fn has_future(&self, node: usize) -> bool {
        self.has_successors(node) || !self.nodes[node].terminal.is_empty()
    }

    /// The values of one opening of `node`, out of all `values`.
    pub fn opening<'v>(&self, values: &'v [f64], node: usize, opening: usize) -> &'v [f64] {
        let node = &self.nodes[node];
        let width = node.places.width();
        &values[node.values_start + opening * width..][..width]
    }

    /// True if the bound is one on the mean cost: every risk measure is the expectation.
    pub fn is_risk_neutral(&self) -> bool {
        let measures = self.nodes.iter().map(|node| node.risk);
        measures.chain([self.risk]).all(Risk::is_expectation)
    }

    /// The measure of risk, or that there are several.
    pub fn risk_name(&self) -> String {
        let with_future = (0..self.nodes.len()).filter(|&node| self.has_successors(node));
        let mut others = with_future.map(|node| self.nodes[node].risk);
        if others.all(|risk| risk == self.risk) {
            self.risk.to_string()
        } else {
            "by node".to_owned()
        }
    }

    /// The state before the first stage.
    pub fn initial_state(&self) -> Vec<f64> {
        self.states.iter().map(|state| state.initial).collect()
    }
}
