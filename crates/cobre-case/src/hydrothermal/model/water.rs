//! Water: reservoirs, flows, inflows and what was there before.

use cobre_sddp::{ColumnId, Draft};

use super::{HydroLayout, Program};
use crate::hydrothermal::files::config::NonNegativity;
use crate::hydrothermal::system::{Hydro, HydroLimits, InflowModel, System};

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
pub(super) fn add(program: &mut Program<'_>, lowest: &[Vec<f64>]) {
    let plants = &program.system.hydros;
    for plant in plants {
        let limits = &plant.limits[program.number];
        // Generation is turbined flow times productivity, so its limit is one of flow.
        let most = limits
            .max_turbined
            .min(limits.max_generation / plant.productivity);
        let turbined = program.by_block("turbined", &plant.label, 0.0, 0.0, most);
        let cost = plant.costs.spillage;
        let spilled = program.by_block("spilled", &plant.label, cost, 0.0, UNLIMITED);
        program.layout.hydros.push(HydroLayout {
            turbined,
            spilled,
            ..HydroLayout::default()
        });
    }
    for (place, plant) in plants.iter().enumerate() {
        balance(program, place, plant, lowest[place][program.number]);
        minimums(program, place, plant, &plant.limits[program.number]);
    }
}

/// storage after − storage before + Σ ζ · (turbined + spilled − what comes from above) = ζ · inflow
fn balance(program: &mut Program<'_>, place: usize, plant: &Hydro, lowest: f64) {
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
                plant.costs.storage_below,
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
    let volume = program.stage.total_volume();
    let model = &plant.inflow.stages[program.number];
    let name = format!("water.{label}");
    let hours = program.stage.total_hours();
    let adds = match program.system.non_negativity {
        NonNegativity::None | NonNegativity::Truncation => false,
        NonNegativity::Penalty => true,
        NonNegativity::BoundedNoise => lowest < 0.0,
    };
    if adds {
        let cost = plant.costs.added_water * hours;
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
        let cost = prices(system, plant)[stage];
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
    if let Some(lifted) = program.layout.hydros[number].truncated {
        lp.fictitious(lifted, row);
    }
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

/// More than one m³/s of inflow in each stage can be worth, $: what it saves or spares in the stage, and
/// what it does to later inflows, each at its own price. At this price none is bought that need not be.
pub(super) fn prices(system: &System, plant: &Hydro) -> Vec<f64> {
    let worth = 1.1 * (saving(system, plant) + burden(system, plant));
    let stages = &plant.inflow.stages;
    let mut prices = vec![0.0; stages.len()];
    for stage in (0..stages.len()).rev() {
        let later = stages[stage + 1..].iter().zip(&prices[stage + 1..]);
        let felt = later.take(plant.inflow.past.len()).enumerate();
        let felt = felt.map(|(place, (model, price))| {
            let factor = model.coefficients.get(place);
            factor.map_or(0.0, |factor| factor.abs() * price)
        });
        prices[stage] = worth * system.stages[stage].total_hours() + felt.sum::<f64>();
    }
    prices
}

/// A plant and those that its water flows to.
fn course<'s>(system: &'s System, plant: &'s Hydro) -> impl Iterator<Item = &'s Hydro> {
    let below = |plant: &&Hydro| plant.downstream.map(|below| &system.hydros[below]);
    std::iter::successors(Some(plant), below)
}

/// The most that 1 m³/s for an hour can save in a plant and below it, $/(m³/s·h).
pub(crate) fn saving(system: &System, plant: &Hydro) -> f64 {
    let segments = system.buses.iter().flat_map(|bus| &bus.deficit);
    let energy = segments.map(|(_, cost)| *cost).fold(0.0, f64::max);
    let mut sum = 0.0;
    for plant in course(system, plant) {
        let costs = &plant.costs;
        let asked =
            |least: fn(&HydroLimits) -> f64| plant.limits.iter().any(|limits| least(limits) > 0.0);
        sum += energy * plant.productivity;
        if asked(|limits| limits.min_turbined) {
            sum += costs.turbined_below;
        }
        if asked(|limits| limits.min_outflow) {
            sum += costs.outflow_below;
        }
        if asked(|limits| limits.min_generation) {
            sum += costs.generation_below * plant.productivity;
        }
        if asked(|limits| limits.min_storage) {
            // Water that stays counts at the end of every stage.
            sum += costs.storage_below * 3600.0 / 1e6 * system.stages.len() as f64;
        }
    }
    sum
}

/// The most that 1 m³/s too much for an hour can cost in a plant and below it, $/(m³/s·h).
fn burden(system: &System, plant: &Hydro) -> f64 {
    let costs = course(system, plant).map(|plant| {
        let limited = |limits: &HydroLimits| limits.max_outflow.is_finite();
        let above = plant.limits.iter().any(limited);
        plant.costs.spillage
            + if above {
                plant.costs.outflow_above
            } else {
                0.0
            }
    });
    costs.sum()
}

/// The least and the most of flows and generation, with what it costs to miss them.
fn minimums(program: &mut Program<'_>, place: usize, plant: &Hydro, limits: &HydroLimits) {
    let (label, costs) = (&plant.label, plant.costs);
    let layout = &program.layout.hydros[place];
    let (turbined, spilled) = (layout.turbined.clone(), layout.spilled.clone());
    for (what, least, factor, cost) in [
        ("turbined", limits.min_turbined, 1.0, costs.turbined_below),
        (
            "generation",
            limits.min_generation,
            plant.productivity,
            costs.generation_below,
        ),
    ] {
        if least == 0.0 {
            continue;
        }
        let below = program.by_block(&format!("{what}_below"), label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [(turbined[block], factor), (below[block], 1.0)];
            let name = format!("min_{what}.{label}.{name}");
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        let layout = &mut program.layout.hydros[place];
        if what == "turbined" {
            layout.turbined_below = below;
        } else {
            layout.generation_below = below;
        }
    }
    let has_most = limits.max_outflow.is_finite();
    if limits.min_outflow == 0.0 && !has_most {
        return;
    }
    let mut beyond = |asked: bool, what: &str, cost: f64| {
        let columns = asked.then(|| program.by_block(what, label, cost, 0.0, UNLIMITED));
        columns.unwrap_or_default()
    };
    let below = beyond(
        limits.min_outflow > 0.0,
        "outflow_below",
        costs.outflow_below,
    );
    let above = beyond(has_most, "outflow_above", costs.outflow_above);
    for (block, _, name) in program.blocks() {
        let mut terms = vec![(turbined[block], 1.0), (spilled[block], 1.0)];
        terms.extend(below.get(block).map(|below| (*below, 1.0)));
        terms.extend(above.get(block).map(|above| (*above, -1.0)));
        let name = format!("outflow.{label}.{name}");
        program
            .lp
            .row(name, limits.min_outflow, limits.max_outflow, &terms);
    }
    let layout = &mut program.layout.hydros[place];
    (layout.outflow_below, layout.outflow_above) = (below, above);
}
