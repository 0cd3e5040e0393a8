//! Water: reservoirs, flows, inflows and what was there before.

use cobre_sddp::{ColumnId, Draft};

use super::{HydroLayout, Program, pumping};
use crate::hydrothermal::files::config::NonNegativity;
use crate::hydrothermal::system::{
    Hydro, HydroCosts, HydroLimits, InflowModel, Stage, System, Variable,
};

const UNLIMITED: f64 = f64::INFINITY;

/// Adds the state variables: storage, and inflows of stages before.
pub(super) fn states(system: &System, draft: &mut Draft) {
    for plant in system.hydros.iter().filter(|plant| plant.stores()) {
        draft.state(format!("storage.{}", plant.label), plant.initial_storage);
    }
    for plant in &system.hydros {
        for (place, past) in plant.inflow.past.iter().enumerate() {
            draft.state(lag_name(plant, place), *past);
        }
    }
}

fn lag_name(plant: &Hydro, place: usize) -> String {
    format!("inflow_lag{}.{}", place + 1, plant.label)
}

/// Adds the plants to the program of a stage.
pub(super) fn add(program: &mut Program<'_>) {
    let plants = &program.system.hydros;
    for plant in plants {
        let limits = &plant.block_limits[program.number];
        let turbined = program.by_block_of("turbined", &plant.label, |block, _| {
            // Generation is turbined flow times productivity, so its limit is one of flow.
            let limits = &limits[block];
            let most = limits
                .max_turbined
                .min(limits.max_generation / plant.productivity);
            (0.0, 0.0, most)
        });
        let cost = plant.costs[program.number].spillage;
        let spilled = program.by_block("spilled", &plant.label, cost, 0.0, UNLIMITED);
        program.layout.hydros.push(HydroLayout {
            turbined,
            spilled,
            ..HydroLayout::default()
        });
    }
    for (place, plant) in plants.iter().enumerate() {
        balance(program, place, plant);
        minimums(program, place, plant);
    }
}

/// storage after − storage before + Σ ζ · (turbined + spilled − what comes from above) = ζ · inflow
fn balance(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let label = &plant.label;
    let limits = &plant.limits[program.number];
    let mut terms: Vec<(ColumnId, f64)> = Vec::new();
    if plant.stores() {
        let lp = &mut program.lp;
        let before = lp.column(
            format!("storage_before.{label}"),
            0.0,
            -UNLIMITED,
            UNLIMITED,
        );
        let after = lp.column(format!("storage.{label}"), 0.0, 0.0, limits.max_storage);
        lp.state(format!("storage.{label}"), before, after);
        terms.extend([(after, 1.0), (before, -1.0)]);
        program.layout.hydros[place].storage = Some([before, after]);
        if limits.min_storage > 0.0 {
            let below = lp.column(
                format!("storage_below.{label}"),
                plant.costs[program.number].storage_below,
                0.0,
                UNLIMITED,
            );
            program.layout.hydros[place].storage_below = Some(below);
            let name = format!("min_storage.{label}");
            lp.row(
                name,
                limits.min_storage,
                UNLIMITED,
                &[(after, 1.0), (below, 1.0)],
            );
        }
    }
    let feeders = program.system.hydros.iter().enumerate();
    let feeders = feeders
        .filter(|(_, other)| other.downstream == Some(place))
        .map(|(other, _)| other);
    let flows = std::iter::once((place, 1.0)).chain(feeders.map(|other| (other, -1.0)));
    for (other, sign) in flows {
        for block in 0..program.stage.hours.len() {
            let volume = sign * program.stage.volume(block);
            terms.extend([
                (program.layout.hydros[other].turbined[block], volume),
                (program.layout.hydros[other].spilled[block], volume),
            ]);
        }
    }
    for (block, column, sign) in pumping::flows(program, place) {
        terms.push((column, sign * program.stage.volume(block)));
    }
    let volume = program.stage.total_volume();
    let model = &plant.inflow.stages[program.number];
    let name = format!("water.{label}");
    let hours = program.stage.total_hours();
    if program.system.non_negativity == NonNegativity::Penalty {
        let cost = plant.costs[program.number].added_water * hours;
        // Where inflows do not depend on the past, openings say how much may be added.
        let most = if plant.inflow.past.is_empty() {
            shortfall(model.constant)
        } else {
            UNLIMITED
        };
        let column = program.lp.column(format!("added.{label}"), cost, 0.0, most);
        terms.push((column, -volume));
        program.layout.hydros[place].added = Some(column);
    }
    let (water, drawn) = if plant.inflow.past.is_empty() {
        let truncated = program.system.non_negativity == NonNegativity::Truncation;
        let least = if truncated { 0.0 } else { -UNLIMITED };
        let inflow = volume * model.constant.max(least);
        let row = program.lp.row(name, inflow, inflow, &terms);
        (row, row)
    } else {
        let (inflow, drawn) = inflow(program, place, plant, model);
        terms.push((inflow, -volume));
        (program.lp.row(name, 0.0, 0.0, &terms), drawn)
    };
    let layout = &mut program.layout.hydros[place];
    (layout.water, layout.drawn) = (Some(water), Some(drawn));
}

/// The amount by which an inflow is below zero.
pub(super) fn shortfall(inflow: f64) -> f64 {
    (-inflow).max(0.0)
}

/// The column of an inflow that depends on the past, and the row that gives it; hands it on.
fn inflow(
    program: &mut Program<'_>,
    number: usize,
    plant: &Hydro,
    model: &InflowModel,
) -> (ColumnId, cobre_sddp::RowId) {
    let label = &plant.label;
    let truncated = program.system.non_negativity == NonNegativity::Truncation;
    let (system, stage) = (program.system, program.number);
    let lp = &mut program.lp;
    let past: Vec<ColumnId> = (0..plant.inflow.past.len())
        .map(|place| {
            let name = format!("{}.before", lag_name(plant, place));
            lp.column(name, 0.0, -UNLIMITED, UNLIMITED)
        })
        .collect();
    let least = if truncated { 0.0 } else { -UNLIMITED };
    let inflow = lp.column(format!("inflow.{label}"), 0.0, least, UNLIMITED);
    program.layout.hydros[number].inflow = Some(inflow);
    let mut terms = vec![(inflow, 1.0)];
    terms.extend(
        past.iter()
            .zip(&model.coefficients)
            .map(|(past, factor)| (*past, -factor)),
    );
    if truncated {
        let cost = price(system, plant, stage);
        let lifted = lp.column(format!("truncated.{label}"), cost, 0.0, UNLIMITED);
        terms.push((lifted, -1.0));
        program.layout.hydros[number].truncated = Some(lifted);
    }
    let row = lp.row(
        format!("inflow_model.{label}"),
        model.constant,
        model.constant,
        &terms,
    );
    let mut handed_on = inflow;
    for (place, own) in past.iter().enumerate() {
        if place > 0 {
            let name = lag_name(plant, place);
            handed_on = lp.column(name.clone(), 0.0, -UNLIMITED, UNLIMITED);
            let newer = past[place - 1];
            lp.row(
                format!("shift.{name}"),
                0.0,
                0.0,
                &[(handed_on, 1.0), (newer, -1.0)],
            );
        }
        lp.state(lag_name(plant, place), *own, handed_on);
    }
    (inflow, row)
}

/// More than one m³/s of inflow in a stage can be worth, $: what it saves or spares in this stage, and
/// what it does to later inflows, each at its own price. At this price none is bought that need not be.
fn price(system: &System, plant: &Hydro, number: usize) -> f64 {
    let worth = 1.1 * (saving(system, plant) + burden(system, plant));
    let stages = &plant.inflow.stages;
    let mut prices = vec![0.0; stages.len()];
    for stage in (number..stages.len()).rev() {
        let later = stages[stage + 1..].iter().zip(&prices[stage + 1..]);
        let felt = later.take(plant.inflow.past.len()).enumerate();
        let felt = felt.map(|(place, (model, price))| {
            let factor = model.coefficients.get(place);
            factor.map_or(0.0, |factor| factor.abs() * price)
        });
        prices[stage] = worth * system.stages[stage].total_hours() + felt.sum::<f64>();
    }
    prices[number]
}

/// A plant and those that its water can get to: below it, and by pumps.
fn course<'s>(system: &'s System, plant: &'s Hydro) -> impl Iterator<Item = (usize, &'s Hydro)> {
    let start = system
        .hydros
        .iter()
        .position(|other| std::ptr::eq(other, plant));
    let mut reached = vec![false; system.hydros.len()];
    let mut ahead: Vec<usize> = start.into_iter().collect();
    while let Some(place) = ahead.pop() {
        if !std::mem::replace(&mut reached[place], true) {
            ahead.extend(system.hydros[place].downstream);
            let pumps = system.pumping.iter();
            let pumps = pumps.filter(|station| station.source == place);
            ahead.extend(pumps.map(|station| station.destination));
        }
    }
    let plants = system.hydros.iter().enumerate();
    plants.filter(move |(place, _)| reached[*place])
}

/// The most that a MWh can be worth, $: the dearest deficit, or the best price of an export.
pub(super) fn dearest_energy(system: &System) -> f64 {
    let segments = system.buses.iter().flat_map(|bus| &bus.deficit);
    let deficit = segments.map(|(_, cost)| *cost).fold(0.0, f64::max);
    let contracts = system.contracts.iter();
    let terms = contracts.flat_map(|contract| contract.terms.iter().flatten());
    terms.map(|terms| -terms.price).fold(deficit, f64::max)
}

/// The dearest of a cost in all stages.
fn dearest(plant: &Hydro, cost: fn(&HydroCosts) -> f64) -> f64 {
    plant.costs.iter().map(cost).fold(0.0, f64::max)
}

/// The most that 1 m³/s for an hour can save in a plant and those that its water can get to, $/(m³/s·h).
pub(crate) fn saving(system: &System, plant: &Hydro) -> f64 {
    let energy = dearest_energy(system);
    let mut sum = 0.0;
    for (place, plant) in course(system, plant) {
        sum += energy * plant.productivity + by_constraints(system, place);
        if plant.any_limit(|limits| limits.min_turbined > 0.0) {
            sum += dearest(plant, |costs| costs.turbined_below);
        }
        if plant.any_limit(|limits| limits.min_outflow > 0.0) {
            sum += dearest(plant, |costs| costs.outflow_below);
        }
        if plant.any_limit(|limits| limits.min_generation > 0.0) {
            sum += dearest(plant, |costs| costs.generation_below) * plant.productivity;
        }
        if plant.any_limit(|limits| limits.min_storage > 0.0) {
            // Water that stays counts at the end of every stage.
            let cost = dearest(plant, |costs| costs.storage_below);
            sum += cost * 3600.0 / 1e6 * system.stages.len() as f64;
        }
    }
    sum
}

/// The most that 1 m³/s too much for an hour can cost in a plant and those that its water can get to, $/(m³/s·h).
pub(super) fn burden(system: &System, plant: &Hydro) -> f64 {
    let costs = course(system, plant).map(|(place, plant)| {
        let above = plant.any_limit(|limits| limits.max_outflow.is_finite());
        let above = f64::from(u8::from(above));
        dearest(plant, |costs| costs.spillage)
            + above * dearest(plant, |costs| costs.outflow_above)
            + by_constraints(system, place)
    });
    costs.sum()
}

/// The most that 1 m³/s for an hour in a plant can do to the slacks of generic constraints, $/(m³/s·h).
fn by_constraints(system: &System, place: usize) -> f64 {
    let hours: f64 = system.stages.iter().map(Stage::total_hours).sum();
    let mut sum = 0.0;
    for constraint in &system.constraints {
        let penalty = constraint.penalty.unwrap_or(0.0);
        let terms = constraint.terms.iter().filter(|term| term.thing == place);
        for term in terms {
            let effect = match term.variable {
                // Water that stays counts in every stage.
                Variable::HydroStorage => 3600.0 / 1e6 * hours,
                Variable::HydroGeneration => system.hydros[place].productivity,
                Variable::HydroTurbined | Variable::HydroSpillage | Variable::HydroOutflow => 1.0,
                _ => 0.0,
            };
            sum += penalty * term.factor.abs() * effect;
        }
    }
    sum
}

/// The least and the most of flows and generation, with what it costs to miss them.
fn minimums(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let (label, costs) = (&plant.label, plant.costs[program.number]);
    let limits = &plant.block_limits[program.number];
    let any = |is_set: fn(&HydroLimits) -> bool| limits.iter().any(is_set);
    let turbined = program.layout.hydros[place].turbined.clone();
    if any(|limits| limits.min_turbined > 0.0) {
        let cost = costs.turbined_below;
        let below = program.by_block("turbined_below", label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [(turbined[block], 1.0), (below[block], 1.0)];
            let name = format!("min_turbined.{label}.{name}");
            let least = limits[block].min_turbined;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        program.layout.hydros[place].turbined_below = below;
    }
    if any(|limits| limits.min_generation > 0.0) {
        let cost = costs.generation_below;
        let below = program.by_block("generation_below", label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [(turbined[block], plant.productivity), (below[block], 1.0)];
            let name = format!("min_generation.{label}.{name}");
            let least = limits[block].min_generation;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        program.layout.hydros[place].generation_below = below;
    }
    outflow(program, place, plant);
}

/// The least and the most outflow of every block.
fn outflow(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let (label, costs) = (&plant.label, plant.costs[program.number]);
    let limits = &plant.block_limits[program.number];
    let has_least = limits.iter().any(|limits| limits.min_outflow > 0.0);
    let has_most = limits.iter().any(|limits| limits.max_outflow.is_finite());
    if !has_least && !has_most {
        return;
    }
    let mut beyond = |asked: bool, what: &str, cost: f64| {
        let columns = asked.then(|| program.by_block(what, label, cost, 0.0, UNLIMITED));
        columns.unwrap_or_default()
    };
    let below = beyond(has_least, "outflow_below", costs.outflow_below);
    let above = beyond(has_most, "outflow_above", costs.outflow_above);
    let layout = &program.layout.hydros[place];
    let (turbined, spilled) = (layout.turbined.clone(), layout.spilled.clone());
    for (block, _, name) in program.blocks() {
        let mut terms = vec![(turbined[block], 1.0), (spilled[block], 1.0)];
        terms.extend(below.get(block).map(|below| (*below, 1.0)));
        terms.extend(above.get(block).map(|above| (*above, -1.0)));
        let name = format!("outflow.{label}.{name}");
        let (least, most) = (limits[block].min_outflow, limits[block].max_outflow);
        program.lp.row(name, least, most, &terms);
    }
    let layout = &mut program.layout.hydros[place];
    (layout.outflow_below, layout.outflow_above) = (below, above);
}
