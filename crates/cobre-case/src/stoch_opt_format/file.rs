//! The contents of a file, as written.

use serde::Deserialize;
use serde_json::Value;

use super::entries::Entries;

#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) version: Version,
    pub(super) root: Root,
    pub(super) nodes: Entries<Value>,
    pub(super) subproblems: Entries<Value>,
    #[serde(default)]
    pub(super) validation_scenarios: Vec<Scenario>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Version {
    pub(super) major: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Root {
    pub(super) state_variables: Entries<f64>,
    pub(super) successors: Entries<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) subproblem: String,
    #[serde(default)]
    pub(super) realizations: Vec<Realization>,
    #[serde(default)]
    pub(super) successors: Entries<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Realization {
    pub(super) probability: f64,
    pub(super) support: Entries<f64>,
}

/// A scenario with its steps, or the steps alone.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Scenario {
    Named {
        scenario: Vec<ScenarioStep>,
        #[serde(default)]
        name: String,
    },
    Steps(Vec<ScenarioStep>),
}

impl Scenario {
    pub(super) fn steps(&self) -> &[ScenarioStep] {
        match self {
            Self::Named { scenario, .. } => scenario,
            Self::Steps(steps) => steps,
        }
    }

    /// Its name; may be empty.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Named { name, .. } => name,
            Self::Steps(_) => "",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioStep {
    pub(super) node: String,
    #[serde(default)]
    pub(super) support: Entries<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Subproblem {
    pub(super) state_variables: Entries<StateVariable>,
    #[serde(default)]
    pub(super) random_variables: Vec<String>,
    #[serde(rename = "subproblem")]
    pub(super) model: Model,
}

#[derive(Debug, Deserialize)]
pub(super) struct StateVariable {
    #[serde(rename = "in")]
    pub(super) incoming: String,
    #[serde(rename = "out")]
    pub(super) outgoing: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Model {
    pub(super) variables: Vec<Variable>,
    pub(super) objective: Objective,
    pub(super) constraints: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Objective {
    pub(super) sense: String,
    pub(super) function: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Constraint {
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) function: Function,
    pub(super) set: Set,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Function {
    Variable {
        name: String,
    },
    #[serde(rename = "ScalarAffineFunction")]
    Affine {
        terms: Vec<Term>,
        constant: f64,
    },
    #[serde(rename = "ScalarQuadraticFunction")]
    Quadratic {
        affine_terms: Vec<Term>,
        quadratic_terms: Vec<Product>,
        constant: f64,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Term {
    pub(super) variable: String,
    pub(super) coefficient: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Product {
    pub(super) variable_1: String,
    pub(super) variable_2: String,
    pub(super) coefficient: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Set {
    LessThan { upper: f64 },
    GreaterThan { lower: f64 },
    EqualTo { value: f64 },
    Interval { lower: f64, upper: f64 },
}

impl Set {
    /// Its lower and upper end.
    pub(super) fn bounds(self) -> (f64, f64) {
        match self {
            Self::LessThan { upper } => (f64::NEG_INFINITY, upper),
            Self::GreaterThan { lower } => (lower, f64::INFINITY),
            Self::EqualTo { value } => (value, value),
            Self::Interval { lower, upper } => (lower, upper),
        }
    }
}
