//! Generic constraints: rows that a planner has written.

use cobre_sddp::ColumnId;

use super::Program;
use super::layout::ConstraintLayout;
use crate::hydrothermal::system::{ActiveBound, PlannerConstraint, ThingVariable, Variable};

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
    let mut known = 0.0;
    let (parameters, number) = (&program.system.parameters, program.number);
    for term in &constraint.terms {
        let of_row = bound.block.unwrap_or(0);
        let sign = if term.of.reversed { -1.0 } else { 1.0 };
        let times = sign * term.factor.at(parameters, number, of_row);
        let of_term = columns(program, &term.of, term.of.block.unwrap_or(of_row));
        let of_term = of_term.iter();
        terms.extend(of_term.map(|(column, factor)| (*column, times * factor)));
        known += times * known_part(program, &term.of);
    }
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
        constant: bound.constant,
        known,
        terms: written,
        row,
        below,
        above,
    }
}

/// The part of a variable that does not depend on decisions.
fn known_part(program: &Program<'_>, of: &ThingVariable) -> f64 {
    let plant = || &program.system.hydros[of.thing];
    let layout = || &program.layout.hydros[of.thing];
    match of.variable {
        Variable::HydroWithdrawal => layout()
            .withdrawal
            .as_ref()
            .map_or(0.0, |(asked, _)| *asked),
        Variable::HydroUsefulInitial | Variable::HydroUsefulFinal if plant().stores() => {
            -plant().reservoir.0
        }
        _ => 0.0,
    }
}

/// The columns of a variable in a block, with their factors.
fn columns(program: &Program<'_>, of: &ThingVariable, block: usize) -> Vec<(ColumnId, f64)> {
    let (system, layout, thing) = (program.system, &program.layout, of.thing);
    let hydro = |thing: usize| &layout.hydros[thing];
    match of.variable {
        Variable::HydroStorage
        | Variable::HydroStorageInitial
        | Variable::HydroStorageFinal
        | Variable::HydroUsefulInitial
        | Variable::HydroUsefulFinal => storage(program, of),
        Variable::HydroTurbined | Variable::HydroGeneration if of.bus.is_some() => {
            of_bus(program, of, block)
        }
        Variable::AnticipatedDecision => {
            let commitment = layout.thermals[thing].commitment.iter();
            let decided = commitment.flat_map(|commitment| &commitment.decided);
            decided.map(|decided| (decided.power, 1.0)).collect()
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
        Variable::HydroEvaporation => evaporation(program, of),
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

/// The storage of a plant at the beginning or the end of the stage, or of one of its periods; a plant that never stores
/// has none.
fn storage(program: &Program<'_>, of: &ThingVariable) -> Vec<(ColumnId, f64)> {
    let Some([before, after]) = program.layout.hydros[of.thing].storage else {
        return Vec::new();
    };
    let period = of.block.map(|block| program.stage.period_of(block));
    let [first, last] = period
        .and_then(|period| program.storages(of.thing, period))
        .unwrap_or([before, after]);
    let column = match of.variable {
        Variable::HydroStorageInitial | Variable::HydroUsefulInitial => first,
        _ => last,
    };
    vec![(column, 1.0)]
}

/// The evaporation of a period, or the mean of the stage.
fn evaporation(program: &Program<'_>, of: &ThingVariable) -> Vec<(ColumnId, f64)> {
    let periods = program.layout.hydros[of.thing].evaporation.iter();
    if let Some(block) = of.block {
        let period = program.stage.period_of(block);
        return periods
            .skip(period)
            .take(1)
            .map(|own| (*own, 1.0))
            .collect();
    }
    let whole = program.stage.total_volume();
    let share = |period: usize| program.stage.period_volume(period) / whole;
    let periods = periods.enumerate();
    periods
        .map(|(period, column)| (*column, share(period)))
        .collect()
}

/// Flow or generation of the groups of units of a plant that feed a bus; of all of it if it has no groups.
fn of_bus(program: &Program<'_>, of: &ThingVariable, block: usize) -> Vec<(ColumnId, f64)> {
    let layout = &program.layout.hydros[of.thing];
    let groups = layout
        .units
        .iter()
        .zip(&program.system.hydros[of.thing].units);
    let flow = of.variable == Variable::HydroTurbined;
    if layout.units.is_empty() {
        let whole = if flow {
            (layout.turbined[block], 1.0)
        } else {
            layout.generation(block)
        };
        return vec![whole];
    }
    let feeding = groups.filter(|(_, group)| Some(group.bus) == of.bus);
    feeding
        .map(|(unit, _)| {
            if flow {
                (unit.turbined[block], 1.0)
            } else {
                unit.generation(block)
            }
        })
        .collect()
}

/// Adds what sources could have given and did not, where a constraint of the stage asks for it: generation + curtailed
/// = available.
fn available(program: &mut Program<'_>) {
    let system = program.system;
    let mut asked = vec![false; system.sources.len()];
    for constraint in &system.constraints {
        if !constraint.bounds[program.number].is_empty() {
            let terms = constraint.terms.iter();
            for term in terms.filter(|term| term.of.variable == Variable::SourceCurtailment) {
                asked[term.of.thing] = true;
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
