//! Generic constraints: what their expressions mean, and the stages in which they hold.

use super::System;
use super::bounds::apply;
use super::expression::{WrittenTerm, parse};
use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::ContractKind;
use crate::hydrothermal::files::generic::{
    ConstraintSense, FILE, GenericBounds, GenericConstraint,
};
use crate::hydrothermal::table::Row;

/// A generic constraint.
#[derive(Debug)]
pub(crate) struct PlannerConstraint {
    pub(crate) label: String,
    pub(crate) terms: Vec<ConstraintTerm>,
    /// The constant of its expression beside them; bounds are those of the terms alone.
    pub(crate) constant: f64,
    /// $ per unit and hour of a violation; none if it is hard.
    pub(crate) penalty: Option<f64>,
    /// By stage; empty where it does not hold.
    pub(crate) bounds: Vec<Vec<ActiveBound>>,
}

/// A term of a constraint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintTerm {
    pub(crate) factor: f64,
    pub(crate) variable: Variable,
    /// The place of the plant, line or other thing.
    pub(crate) thing: usize,
    /// The block it is about; that of the row if none.
    pub(crate) block: Option<usize>,
}

/// A row of a constraint in a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ActiveBound {
    /// Its block; none for the whole stage.
    pub(crate) block: Option<usize>,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

/// Declares the variables of expressions: what they are called, and what kind of thing has them.
macro_rules! variables {
    ($( $variable:ident = $name:literal of $things:ident $(, $whole:ident)?; )+) => {
        /// A variable of an expression.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Variable { $( $variable, )+ }

        impl Variable {
            const ALL: &'static [(&'static str, Self)] = &[ $( ($name, Self::$variable), )+ ];

            /// The things that have it.
            fn things(self, system: &System) -> &Index {
                match self { $( Self::$variable => &system.indices.$things, )+ }
            }

            /// True if it has one value in a stage, not one in each block.
            pub(crate) fn is_of_stage(self) -> bool {
                match self { $( Self::$variable => [$( stringify!($whole) )?].contains(&"stage"), )+ }
            }
        }
    };
}

variables! {
    HydroStorage = "hydro_storage" of hydros, stage;
    HydroEvaporation = "hydro_evaporation" of hydros, stage;
    HydroWithdrawal = "hydro_withdrawal" of hydros, stage;
    HydroTurbined = "hydro_turbined" of hydros;
    HydroSpillage = "hydro_spillage" of hydros;
    HydroDiversion = "hydro_diversion" of hydros;
    HydroOutflow = "hydro_outflow" of hydros;
    HydroGeneration = "hydro_generation" of hydros;
    ThermalGeneration = "thermal_generation" of thermals;
    LineDirect = "line_direct" of lines;
    LineReverse = "line_reverse" of lines;
    LineExchange = "line_exchange" of lines;
    BusDeficit = "bus_deficit" of buses;
    BusExcess = "bus_excess" of buses;
    PumpingFlow = "pumping_flow" of pumping;
    PumpingPower = "pumping_power" of pumping;
    ContractImport = "contract_import" of contracts;
    ContractExport = "contract_export" of contracts;
    SourceGeneration = "non_controllable_generation" of sources;
    SourceCurtailment = "non_controllable_curtailment" of sources;
    BatteryLevel = "battery_level" of batteries, stage;
    BatteryCharge = "battery_charge" of batteries;
    BatteryDischarge = "battery_discharge" of batteries;
}

pub(super) fn resolve(
    files: &Files,
    system: &System,
    findings: &mut Findings,
) -> Vec<PlannerConstraint> {
    let list = Place::file(FILE).key("constraints");
    let constraints = files.constraints.iter().flat_map(|file| &file.constraints);
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
        let at = list.index(place);
        let (terms, constant) = terms(constraint, system, &at.key("expression"), findings);
        let slack = constraint.slack.as_ref().filter(|slack| slack.enabled);
        if let Some(slack) = slack
            && slack.penalty.is_none()
        {
            let message = "the key is missing; an enabled slack has a cost";
            findings.wrong(&at.key("slack.penalty"), message);
        }
        let by_block = terms
            .iter()
            .any(|term| term.block.is_none() && !term.variable.is_of_stage());
        let bounds = rows.iter().map(|rows| {
            let limits = rows
                .iter()
                .map(|row| row.and_then(|row| limits(constraint, &row, constant, findings)));
            active(&limits.collect::<Vec<_>>(), by_block)
        });
        let bounds: Vec<_> = bounds.collect();
        check_blocks(constraint, &bounds, system, &at.key("expression"), findings);
        found.push(PlannerConstraint {
            label: index.labels[place].clone(),
            terms,
            constant,
            penalty: slack.and_then(|slack| slack.penalty).map(|cost| cost.0),
            bounds,
        });
    }
    found
}

/// The rows of a stage, given what its blocks ask for. A left-hand side that is the same in all blocks needs one row
/// for all of them if they ask for the same.
fn active(limits: &[Option<(f64, f64)>], by_block: bool) -> Vec<ActiveBound> {
    if let Some(Some((lower, upper))) = limits.first().copied()
        && !by_block
        && limits.iter().all(|other| *other == limits[0])
    {
        return vec![ActiveBound {
            block: None,
            lower,
            upper,
        }];
    }
    let rows = limits.iter().enumerate();
    rows.filter_map(|(block, limits)| {
        let (lower, upper) = (*limits)?;
        Some(ActiveBound {
            block: Some(block),
            lower,
            upper,
        })
    })
    .collect()
}

/// The limits of the terms of a constraint, as a row of its bounds has them; says if the row has none.
fn limits(
    constraint: &GenericConstraint,
    row: &GenericBounds,
    constant: f64,
    findings: &mut Findings,
) -> Option<(f64, f64)> {
    let at = Place::file(GenericBounds::FILE).rows(format!(
        "generic constraint {}, stage {}",
        row.constraint_id, row.stage_id
    ));
    let without = f64::INFINITY;
    let pair = match (constraint.sense, row.bound) {
        (Some(sense), Some(bound)) if row.bound_lower.is_none() && row.bound_upper.is_none() => {
            let bound = bound.0;
            match sense {
                ConstraintSense::AtLeast => (bound, without),
                ConstraintSense::AtMost => (-without, bound),
                ConstraintSense::Equal => (bound, bound),
            }
        }
        (None, None) if row.bound_lower.is_some() || row.bound_upper.is_some() => (
            row.bound_lower.map_or(-without, |bound| bound.0),
            row.bound_upper.map_or(without, |bound| bound.0),
        ),
        (Some(_), _) => {
            findings.wrong(
                &at,
                "the constraint has a sense: give bound, and nothing else",
            );
            return None;
        }
        (None, _) => {
            let message = "the constraint has no sense: give bound_lower or bound_upper, not bound";
            findings.wrong(&at, message);
            return None;
        }
    };
    if pair.0 > pair.1 {
        let message = format!("bound_lower, {}, is above bound_upper, {}", pair.0, pair.1);
        findings.wrong(&at, message);
        return None;
    }
    Some((pair.0 - constant, pair.1 - constant))
}

/// The terms of a constraint and its constant; says what its expression names that is not there.
fn terms(
    constraint: &GenericConstraint,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> (Vec<ConstraintTerm>, f64) {
    let expression = match parse(&constraint.expression) {
        Ok(expression) => expression,
        Err(problem) => {
            findings.wrong(at, problem);
            return (Vec::new(), 0.0);
        }
    };
    let terms = expression.terms.iter();
    let found = terms.filter_map(|written| term(written, system, at, findings));
    (found.collect(), expression.constant)
}

fn term(
    written: &WrittenTerm<'_>,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> Option<ConstraintTerm> {
    let known = Variable::ALL.iter();
    let Some(&(name, variable)) = known.clone().find(|(name, _)| *name == written.name) else {
        let names: Vec<&str> = known.map(|(name, _)| *name).collect();
        let message = format!(
            "there is no variable {}; there are {}",
            written.name,
            names.join(", ")
        );
        findings.wrong(at, message);
        return None;
    };
    let thing = variable.things(system).find(written.id, at, findings)?;
    if variable.is_of_stage() && written.block.is_some() {
        findings.wrong(
            at,
            format!("{name} is one value of a stage: leave the block out"),
        );
        return None;
    }
    let asked = match variable {
        Variable::ContractImport => Some(ContractKind::Import),
        Variable::ContractExport => Some(ContractKind::Export),
        _ => None,
    };
    if asked.is_some_and(|asked| system.contracts[thing].kind != asked) {
        let id = written.id;
        findings.wrong(
            at,
            format!("{name}({id}): contract {id} is of the other type"),
        );
        return None;
    }
    Some(ConstraintTerm {
        factor: written.factor,
        variable,
        thing,
        // One that is below zero is in no stage, which is said where the constraint holds.
        block: written
            .block
            .map(|id| usize::try_from(id).unwrap_or(usize::MAX)),
    })
}

/// Says which blocks of expressions are not there in a stage in which the constraint holds.
fn check_blocks(
    constraint: &GenericConstraint,
    bounds: &[Vec<ActiveBound>],
    system: &System,
    at: &Place,
    findings: &mut Findings,
) {
    let Ok(expression) = parse(&constraint.expression) else {
        return;
    };
    for term in &expression.terms {
        let Some(block) = term.block else { continue };
        let stages = system.stages.iter().zip(bounds);
        let mut active = stages.filter(|(_, bounds)| !bounds.is_empty());
        let lacks = |stage: &super::Stage| {
            usize::try_from(block).map_or(true, |block| block >= stage.hours.len())
        };
        if let Some((stage, _)) = active.find(|(stage, _)| lacks(stage)) {
            let message = format!(
                "{}({}, {block}): stage {}, in which the constraint holds, has no block {block}",
                term.name, term.id, stage.id
            );
            findings.wrong(at, message);
        }
    }
}
