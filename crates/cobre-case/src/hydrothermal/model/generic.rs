//! Generic constraints: rows that a planner has written.

use cobre_sddp::ColumnId;

use super::Program;
use super::layout::ConstraintLayout;
use crate::hydrothermal::system::{ActiveBound, ConstraintTerm, PlannerConstraint, Variable};

/// Adds the constraints that hold in a stage, after everything that they may be about.
pub(super) fn add(program: &mut Program<'_>) {
    available(program);
    for (place, constraint) in program.system.constraints.iter().enumerate() {
        for bound in &constraint.bounds[program.number] {
            let layout = add_row(program, place, constraint, bound);
            program.layout.constraints.push(layout);
        }
    }
}

fn add_row(
    program: &mut Program<'_>,
    place: usize,
    constraint: &PlannerConstraint,
    bound: &ActiveBound,
) -> ConstraintLayout {
    let (hours, label) = match bound.block {
        Some(block) => {
            let name = &program.stage.block_labels[block];
            (
                program.stage.hours[block],
                format!("{}.{name}", constraint.label),
            )
        }
        None => (program.stage.total_hours(), constraint.label.clone()),
    };
    let mut terms: Vec<(ColumnId, f64)> = Vec::new();
    for term in &constraint.terms {
        let block = term.block.or(bound.block).unwrap_or(0);
        let of_term = columns(program, term, block);
        terms.extend(
            of_term
                .iter()
                .map(|(column, factor)| (*column, term.factor * factor)),
        );
    }
    let known: f64 = constraint
        .terms
        .iter()
        .map(|term| known(program, term))
        .sum();
    let (lower, upper) = (bound.lower - known, bound.upper - known);
    let written = terms.clone();
    let mut slack = |what: &str, asked: bool, sign: f64| {
        let cost = constraint.penalty.filter(|_| asked)? * hours;
        let name = format!("constraint_{what}.{label}");
        let column = program.lp.column(name, cost, 0.0, f64::INFINITY);
        terms.push((column, sign));
        Some(column)
    };
    let below = slack("below", bound.lower.is_finite(), 1.0);
    let above = slack("above", bound.upper.is_finite(), -1.0);
    let name = format!("constraint.{label}");
    let row = program.lp.row(name, lower, upper, &terms);
    ConstraintLayout {
        constraint: place,
        block: bound.block,
        hours,
        bounds: [bound.lower, bound.upper],
        known,
        terms: written,
        row,
        below,
        above,
    }
}

/// The part of a term that does not depend on decisions.
fn known(program: &Program<'_>, term: &ConstraintTerm) -> f64 {
    let withdrawal = &program.layout.hydros;
    let withdrawal = withdrawal
        .get(term.thing)
        .and_then(|plant| plant.withdrawal.as_ref());
    match (term.variable, withdrawal) {
        (Variable::HydroWithdrawal, Some((asked, _))) => term.factor * asked,
        _ => 0.0,
    }
}

/// The columns of a term in a block, with their factors.
fn columns(program: &Program<'_>, term: &ConstraintTerm, block: usize) -> Vec<(ColumnId, f64)> {
    let (system, layout, thing) = (program.system, &program.layout, term.thing);
    let hydro = |thing: usize| &layout.hydros[thing];
    match term.variable {
        // A plant that never stores has none.
        Variable::HydroStorage => {
            let storage = hydro(thing).storage.iter();
            storage.map(|[_, after]| (*after, 1.0)).collect()
        }
        Variable::HydroTurbined => vec![(hydro(thing).turbined[block], 1.0)],
        Variable::HydroSpillage => vec![(hydro(thing).spilled[block], 1.0)],
        Variable::HydroOutflow => vec![
            (hydro(thing).turbined[block], 1.0),
            (hydro(thing).spilled[block], 1.0),
        ],
        Variable::HydroGeneration => vec![hydro(thing).generation(block)],
        Variable::HydroDiversion => {
            let diverted = hydro(thing).diverted.get(block);
            diverted.map(|column| (*column, 1.0)).into_iter().collect()
        }
        // The mean of the stage.
        Variable::HydroEvaporation => {
            let periods = hydro(thing).evaporation.iter().enumerate();
            let whole = program.stage.total_volume();
            let share = |period: usize| program.stage.period_volume(period) / whole;
            periods
                .map(|(period, column)| (*column, share(period)))
                .collect()
        }
        // What is asked for is known; what is taken less or more is not.
        Variable::HydroWithdrawal => {
            let slacks = hydro(thing).withdrawal.iter();
            slacks
                .flat_map(|(_, [below, above])| [(*below, -1.0), (*above, 1.0)])
                .collect()
        }
        Variable::ThermalGeneration => vec![(layout.thermals[thing].generation[block], 1.0)],
        Variable::LineDirect => vec![(layout.lines[thing][0][block], 1.0)],
        Variable::LineReverse => vec![(layout.lines[thing][1][block], 1.0)],
        Variable::LineExchange => {
            let [direct, reverse] = &layout.lines[thing];
            vec![(direct[block], 1.0), (reverse[block], -1.0)]
        }
        Variable::BusDeficit => {
            let segments = layout.buses[thing].deficit.iter();
            segments.map(|segment| (segment[block], 1.0)).collect()
        }
        Variable::BusExcess => vec![(layout.buses[thing].excess[block], 1.0)],
        Variable::PumpingFlow => vec![(layout.pumping[thing].flow[block], 1.0)],
        Variable::PumpingPower => {
            let consumption = system.pumping[thing].consumption;
            vec![(layout.pumping[thing].flow[block], consumption)]
        }
        Variable::ContractImport | Variable::ContractExport => {
            vec![(layout.contracts[thing][block], 1.0)]
        }
        Variable::SourceGeneration => vec![(layout.sources[thing][block], 1.0)],
        Variable::SourceCurtailment => layout.curtailed[thing]
            .iter()
            .map(|curtailed| (curtailed.columns[block], 1.0))
            .collect(),
        Variable::BatteryLevel => vec![(layout.batteries[thing].level[1], 1.0)],
        Variable::BatteryCharge => vec![(layout.batteries[thing].charge[block], 1.0)],
        Variable::BatteryDischarge => vec![(layout.batteries[thing].discharge[block], 1.0)],
    }
}

/// Adds what sources could have given and did not, where a constraint of the stage asks for it: generation + curtailed
/// = available.
fn available(program: &mut Program<'_>) {
    let system = program.system;
    let mut asked = vec![false; system.sources.len()];
    for constraint in &system.constraints {
        if !constraint.bounds[program.number].is_empty() {
            let terms = constraint.terms.iter();
            for term in terms.filter(|term| term.variable == Variable::SourceCurtailment) {
                asked[term.thing] = true;
            }
        }
    }
    for (place, source) in system.sources.iter().enumerate() {
        let curtailed = asked[place].then(|| {
            let columns = program.by_block("curtailed", &source.label, 0.0, 0.0, f64::INFINITY);
            let share = source.availability[program.number].mean;
            let rows = program.blocks().map(|(block, _, name)| {
                let available = source.available(program.number, block, share);
                let name = format!("available.{}.{name}", source.label);
                let generation = program.layout.sources[place][block];
                let terms = [(generation, 1.0), (columns[block], 1.0)];
                program.lp.row(name, available, available, &terms)
            });
            let rows = rows.collect();
            super::layout::CurtailedLayout { columns, rows }
        });
        program.layout.curtailed.push(curtailed);
    }
}
