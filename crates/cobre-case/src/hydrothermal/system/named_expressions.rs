//! Expressions with every name in them replaced by what it stands for.

use std::collections::HashMap;

use super::expression::{Operand, Relation, WrittenTerm, WrittenVariable, parse};
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::generic::{ConstraintSense, NamedExpression};

/// The most terms of an expression.
const MOST_TERMS: usize = 100_000;
/// The most expressions that refer to each other in a row.
const DEEPEST: usize = 200;

/// An expression, or a relation with everything on its left-hand side.
#[derive(Debug, Default)]
pub(super) struct FlatExpression<'t> {
    pub(super) terms: Vec<FlatTerm<'t>>,
    pub(super) sense: Option<ConstraintSense>,
}

/// A term that refers to no other expression: factor, place of a parameter, and variable; a number without the last.
#[derive(Debug, Clone)]
pub(super) struct FlatTerm<'t> {
    pub(super) factor: f64,
    pub(super) parameter: Option<usize>,
    pub(super) variable: Option<WrittenVariable<'t>>,
}

/// Named expressions and parameters, by name.
pub(super) struct Names<'t> {
    expressions: HashMap<&'t str, Vec<WrittenTerm<'t>>>,
    parameters: HashMap<&'t str, usize>,
}

impl<'t> Names<'t> {
    /// The names of a file's expressions and of parameters; says which are there twice or mean nothing.
    pub(super) fn new(
        file: &'t [NamedExpression],
        parameters: HashMap<&'t str, usize>,
        list: &Place,
        findings: &mut Findings,
    ) -> Self {
        let mut expressions = HashMap::new();
        for (place, named) in file.iter().enumerate() {
            let at = list.index(place);
            let name = named.name.as_str();
            if parameters.contains_key(name) {
                let message = format!("a parameter is called {name} as well: @{name} means one");
                findings.wrong(&at.key("name"), message);
            }
            let terms = match parse(&named.expression) {
                Ok(Relation { left, right: None }) => left,
                Ok(_) => {
                    let message = "an expression with a name has no relation";
                    findings.wrong(&at.key("expression"), message);
                    continue;
                }
                Err(problem) => {
                    findings.wrong(&at.key("expression"), problem);
                    continue;
                }
            };
            if expressions.insert(name, terms).is_some() {
                let message = format!("an expression is called {name} already");
                findings.wrong(&at.key("name"), message);
            }
        }
        let names = Self {
            expressions,
            parameters,
        };
        for (place, named) in file.iter().enumerate() {
            if let Some(terms) = names.expressions.get(named.name.as_str()) {
                let mut open = vec![named.name.as_str()];
                if let Err(problem) = names.expand(terms, 1.0, &mut open, &mut Vec::new()) {
                    findings.wrong(&list.index(place).key("expression"), problem);
                }
            }
        }
        names
    }

    /// The terms of a text, or what is wrong with it.
    pub(super) fn flat(&self, text: &'t str) -> Result<FlatExpression<'t>, String> {
        let Relation { left, right } = parse(text)?;
        let mut terms = Vec::new();
        self.expand(&left, 1.0, &mut Vec::new(), &mut terms)?;
        let mut sense = None;
        if let Some((own, right)) = right {
            self.expand(&right, -1.0, &mut Vec::new(), &mut terms)?;
            sense = Some(own);
        }
        if terms.iter().all(|term| term.variable.is_none()) {
            return Err("the expression has no variable".to_owned());
        }
        Ok(FlatExpression { terms, sense })
    }

    fn expand(
        &self,
        written: &[WrittenTerm<'t>],
        times: f64,
        open: &mut Vec<&'t str>,
        found: &mut Vec<FlatTerm<'t>>,
    ) -> Result<(), String> {
        for term in written {
            let factor = term.factor * times;
            let (parameter, variable) = match &term.operand {
                Operand::Number => (None, None),
                Operand::Variable {
                    parameter,
                    variable,
                } => {
                    let parameter = parameter.map(|name| self.parameter(name)).transpose()?;
                    (parameter, Some(variable.clone()))
                }
                Operand::Named(name) => {
                    if let Some(inner) = self.expressions.get(name) {
                        Self::enter(name, open)?;
                        self.expand(inner, factor, open, found)?;
                        open.pop();
                        continue;
                    }
                    (Some(self.parameter(name)?), None)
                }
            };
            found.push(FlatTerm {
                factor,
                parameter,
                variable,
            });
            if found.len() > MOST_TERMS {
                return Err(format!("the expression has more than {MOST_TERMS} terms"));
            }
        }
        Ok(())
    }

    /// Notes that an expression is being expanded; refuses one that is already.
    fn enter(name: &'t str, open: &mut Vec<&'t str>) -> Result<(), String> {
        if let Some(first) = open.iter().position(|other| *other == name) {
            let circle = open[first..].join(" → ");
            return Err(format!(
                "expressions refer to each other: {circle} → {name}"
            ));
        }
        if open.len() == DEEPEST {
            return Err(format!(
                "more than {DEEPEST} expressions refer to each other in a row"
            ));
        }
        open.push(name);
        Ok(())
    }

    fn parameter(&self, name: &str) -> Result<usize, String> {
        self.parameters.get(name).copied().ok_or_else(|| {
            let names = self.parameters.keys().chain(self.expressions.keys());
            let mut names: Vec<&str> = names.copied().collect();
            names.sort_unstable();
            if self.expressions.contains_key(name) {
                return format!("@{name} is an expression: only a parameter multiplies a variable");
            }
            match names.as_slice() {
                [] => format!("there is no @{name}: neither parameters nor expressions are given"),
                names => format!("there is no @{name}; there are {}", names.join(", ")),
            }
        })
    }
}
