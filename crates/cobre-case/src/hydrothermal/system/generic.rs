//! Generic constraints: what their expressions mean, and the stages in which they hold.

use super::System;
use super::bounds::apply;
use super::index::Index;
use super::named_expressions::{FlatExpression, Names};
use super::parameters::{self, Parameter};
use super::variables::{self, ThingVariable, Variable};
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::generic::{
    ConstraintSense, FILE, GenericBounds, GenericConstraint,
};
use crate::hydrothermal::table::Row;

const UNLIMITED: f64 = f64::INFINITY;

/// A generic constraint.
#[derive(Debug)]
pub(crate) struct PlannerConstraint {
    pub(crate) label: String,
    pub(crate) terms: Vec<ConstraintTerm>,
    /// $ per unit and hour of a violation; none if it is hard.
    pub(crate) penalty: Option<f64>,
    /// By stage; empty where it does not hold.
    pub(crate) bounds: Vec<Vec<ActiveBound>>,
}

/// A factor: a number, times a parameter if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor {
    pub(crate) number: f64,
    /// The place of the parameter.
    pub(crate) parameter: Option<usize>,
}

impl Factor {
    /// Its value in a block.
    pub(crate) fn at(self, parameters: &[Parameter], stage: usize, block: usize) -> f64 {
        let parameter = self.parameter.map(|place| &parameters[place]);
        self.number * parameter.map_or(1.0, |parameter| parameter.at(stage, block))
    }

    /// Its largest absolute value.
    pub(crate) fn largest(self, parameters: &[Parameter]) -> f64 {
        let parameter = self.parameter.map(|place| &parameters[place]);
        self.number.abs() * parameter.map_or(1.0, Parameter::largest)
    }

    fn is_by_block(self, parameters: &[Parameter]) -> bool {
        self.parameter
            .is_some_and(|place| parameters[place].by_block)
    }
}

/// A term of a constraint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintTerm {
    pub(crate) factor: Factor,
    pub(crate) of: ThingVariable,
}

/// A row of a constraint in a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ActiveBound {
    /// Its block; none for the whole stage.
    pub(crate) block: Option<usize>,
    /// The least and the most of its terms.
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    /// The number of its expression beside the terms.
    pub(crate) constant: f64,
}

/// The constraints, and the parameters that they refer to.
pub(super) fn resolve(
    files: &Files,
    system: &System,
    findings: &mut Findings,
) -> (Vec<PlannerConstraint>, Vec<Parameter>) {
    let (parameters, names) = parameters::resolve(files, system, findings);
    let file = files.constraints.as_ref();
    let expressions = file.and_then(|file| file.expressions.as_deref());
    let at = Place::file(FILE).key("expressions");
    let names = Names::new(expressions.unwrap_or_default(), names, &at, findings);
    let list = Place::file(FILE).key("constraints");
    let constraints = file.iter().flat_map(|file| &file.constraints);
    let things = constraints
        .clone()
        .map(|constraint| (constraint.id, constraint.name.as_str()));
    let index = Index::new("generic constraint", things, &list, findings);
    let none = super::bounds::everywhere(&system.stages, None);
    let mut rows: Vec<Vec<Vec<Option<GenericBounds>>>> = vec![none; index.len()];
    apply(
        &files.generic_bounds,
        (&index, &system.indices.stages),
        |row: &GenericBounds| (row.constraint_id, row.stage_id, row.block_id),
        |value, row| *value = Some(*row),
        &mut rows,
        findings,
    );
    let mut found = Vec::new();
    for (place, (constraint, rows)) in constraints.zip(rows).enumerate() {
        let mut resolver = Resolver {
            constraint,
            files,
            system,
            parameters: &parameters,
            at: list.index(place),
            findings,
        };
        found.push(resolver.constraint(&names, &rows, index.labels[place].clone()));
    }
    (found, parameters)
}

/// Finds what one constraint means.
struct Resolver<'f, 'r> {
    constraint: &'f GenericConstraint,
    files: &'f Files,
    system: &'r System,
    parameters: &'r [Parameter],
    at: Place,
    findings: &'r mut Findings,
}

impl<'f> Resolver<'f, '_> {
    fn constraint(
        &mut self,
        names: &Names<'f>,
        rows: &[Vec<Option<GenericBounds>>],
        label: String,
    ) -> PlannerConstraint {
        let at = self.at.key("expression");
        let flat = names.flat(&self.constraint.expression);
        let flat = flat.unwrap_or_else(|problem| {
            self.findings.wrong(&at, problem);
            FlatExpression::default()
        });
        if flat.sense.is_some() && self.constraint.sense.is_some() {
            let message = "the expression has a relation; remove the key";
            self.findings.wrong(&self.at.key("sense"), message);
        }
        let (mut terms, mut constants) = (Vec::new(), Vec::new());
        for term in &flat.terms {
            let factor = Factor {
                number: term.factor,
                parameter: term.parameter,
            };
            let Some(written) = &term.variable else {
                constants.push(factor);
                continue;
            };
            let things = (self.files, self.system);
            let of = variables::find(written, things, &at, self.findings);
            if let Some(of) = of {
                self.check_block(&of, &variables::shown(written), rows);
                terms.push(ConstraintTerm { factor, of });
            }
        }
        self.check_parameters(&flat, rows);
        let penalty = self.penalty();
        let factors = terms.iter().map(|term| term.factor);
        let mut factors = factors.chain(constants.iter().copied());
        let by_block = terms
            .iter()
            .any(|term| term.of.block.is_none() && term.of.variable.is_of_block())
            || factors.any(|factor| factor.is_by_block(self.parameters));
        let bounds = rows.iter().enumerate().map(|(stage, rows)| {
            let rows = rows.iter().enumerate();
            let rows = rows.map(|(block, row)| {
                let constants = constants.iter();
                let constants = constants.map(|own| own.at(self.parameters, stage, block));
                self.active(row.as_ref()?, flat.sense, constants.sum(), block)
            });
            collapsed(rows.collect(), by_block)
        });
        PlannerConstraint {
            label,
            bounds: bounds.collect(),
            terms,
            penalty,
        }
    }

    /// The cost of a violation; none if it is hard.
    fn penalty(&mut self) -> Option<f64> {
        let slack = self.constraint.slack.as_ref();
        let slack = slack.filter(|slack| slack.enabled)?;
        if slack.penalty.is_none() {
            let message = "the key is missing; an enabled slack has a cost";
            self.findings.wrong(&self.at.key("slack.penalty"), message);
        }
        slack.penalty.map(|cost| cost.0)
    }

    /// The limits of the terms of a block, as a row of the bounds and a relation have them; says if there are none.
    fn active(
        &mut self,
        row: &GenericBounds,
        relation: Option<ConstraintSense>,
        constant: f64,
        block: usize,
    ) -> Option<ActiveBound> {
        let at = Place::file(GenericBounds::FILE).rows(format!(
            "generic constraint {}, stage {}",
            row.constraint_id, row.stage_id
        ));
        let given = [row.bound_lower, row.bound_upper].map(|bound| bound.map(|bound| bound.0));
        let pair = match (relation, self.constraint.sense, row.bound) {
            (Some(relation), _, None) => Ok(related(relation, given, -constant)),
            (Some(_), _, Some(_)) => {
                Err("the expression has a relation: give bound_lower or bound_upper, not bound")
            }
            (None, Some(sense), Some(bound)) if given == [None, None] => {
                Ok(related(sense, [None, None], bound.0 - constant))
            }
            (None, Some(_), _) => Err("the constraint has a sense: give bound, and nothing else"),
            (None, None, None) if given != [None, None] => Ok((
                given[0].map_or(-UNLIMITED, |least| least - constant),
                given[1].map_or(UNLIMITED, |most| most - constant),
            )),
            (None, None, _) => {
                Err("the constraint has no sense: give bound_lower or bound_upper, not bound")
            }
        };
        let (lower, upper) = match pair {
            Ok(pair) => pair,
            Err(problem) => {
                self.findings.wrong(&at, problem);
                return None;
            }
        };
        if lower > upper {
            let message = format!("the least, {lower}, is above the most, {upper}");
            self.findings.wrong(&at, message);
            return None;
        }
        Some(ActiveBound {
            block: Some(block),
            lower,
            upper,
            constant: if relation.is_some() { 0.0 } else { constant },
        })
    }

    /// Says if the block of a variable is not there in a stage in which the constraint holds.
    fn check_block(
        &mut self,
        of: &ThingVariable,
        shown: &str,
        rows: &[Vec<Option<GenericBounds>>],
    ) {
        let Some(block) = of.block else { return };
        let stages = self.system.stages.iter().zip(rows);
        for (stage, _) in stages.filter(|(_, rows)| rows.iter().any(Option::is_some)) {
            let last = stage.hours.len() - 1;
            let known = match of.variable {
                Variable::HydroStorageInitial
                | Variable::HydroUsefulInitial
                | Variable::HydroEvaporation => block == 0,
                Variable::HydroStorageFinal | Variable::HydroUsefulFinal => block == last,
                _ => true,
            };
            let problem = if block > last {
                format!("has no block {block}")
            } else if !known && !stage.chronological {
                "has parallel blocks: storage and evaporation are those of the stage".to_owned()
            } else {
                continue;
            };
            let id = stage.id;
            let message = format!("{shown}: stage {id}, in which the constraint holds, {problem}");
            self.findings.wrong(&self.at.key("expression"), message);
            return;
        }
    }

    /// Says which parameters have no value in a block in which the constraint holds.
    fn check_parameters(&mut self, flat: &FlatExpression<'_>, rows: &[Vec<Option<GenericBounds>>]) {
        for place in flat.terms.iter().filter_map(|term| term.parameter) {
            let lacking = rows.iter().enumerate().find_map(|(stage, rows)| {
                let values = self.parameters[place].values[stage].iter().zip(rows);
                let lacks = |(value, row): (&Option<f64>, &Option<GenericBounds>)| {
                    row.is_some() && value.is_none()
                };
                let block = values.clone().position(lacks)?;
                Some((self.system.stages[stage].id, block))
            });
            if let Some((stage, block)) = lacking {
                let file = self.files.parameters.iter();
                let mut names = file.flat_map(|file| &file.scalar_parameters);
                let name = names.nth(place).map_or("", |own| own.name.as_str());
                let message = format!(
                    "@{name} has no value in stage {stage}, block {block}, in which the constraint holds"
                );
                self.findings.wrong(&self.at.key("expression"), message);
            }
        }
    }
}

/// The limits of terms that have a relation to a number, beside limits that are given: those of the same side add up.
fn related(sense: ConstraintSense, given: [Option<f64>; 2], number: f64) -> (f64, f64) {
    let [least, most] = given;
    let lower = match sense {
        ConstraintSense::AtMost => least.unwrap_or(-UNLIMITED),
        _ => least.unwrap_or(0.0) + number,
    };
    let upper = match sense {
        ConstraintSense::AtLeast => most.unwrap_or(UNLIMITED),
        _ => most.unwrap_or(0.0) + number,
    };
    (lower, upper)
}

/// The rows of a stage, given what its blocks ask for. A left-hand side that is the same in all blocks needs one row
/// for all of them if they ask for the same.
fn collapsed(rows: Vec<Option<ActiveBound>>, by_block: bool) -> Vec<ActiveBound> {
    let limits = |row: &Option<ActiveBound>| row.map(|row| (row.lower, row.upper, row.constant));
    if let Some(Some(first)) = rows.first().copied()
        && !by_block
        && rows.iter().all(|other| limits(other) == limits(&rows[0]))
    {
        let whole = ActiveBound {
            block: None,
            ..first
        };
        return vec![whole];
    }
    rows.into_iter().flatten().collect()
}
