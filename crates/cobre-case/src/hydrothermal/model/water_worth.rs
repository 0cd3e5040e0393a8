//! Bounds on what water is worth.

use super::inflow::lag_name;
use crate::hydrothermal::system::{
    HydroCosts, HydroLimits, Production, Stage, System, ThingVariable, Variable,
};
use crate::hydrothermal::terminal::steepest;

/// More than one m³/s of inflow in each stage can be worth, $: what it saves or spares in the stage, and
/// what it does to later inflows, each at its own price. At this price none is bought that need not be.
pub(super) fn prices(system: &System, place: usize) -> Vec<f64> {
    let plant = &system.hydros[place];
    let worth = 1.1 * (saving(system, place) + burden(system, place));
    let stages = &plant.inflow.stages;
    let mut prices = vec![0.0; stages.len()];
    let terminal = &system.terminal;
    let after = |place| 1.1 * steepest(terminal, &lag_name(plant, place));
    // Of each past inflow that is handed to the next stage, or to what comes after the end.
    let mut felt: Vec<f64> = (0..plant.inflow.past.len()).map(after).collect();
    for (stage, model) in stages.iter().enumerate().rev() {
        let by_carried = || model.carried.iter().zip(&felt);
        let later: f64 = by_carried()
            .map(|(carried, worth)| carried.own.abs() * worth)
            .sum();
        prices[stage] = worth * system.stages[stage].total_hours() + later;
        let mut before = vec![0.0; felt.len()];
        for (carried, worth) in by_carried() {
            for (place, factor) in &carried.past {
                before[*place] += factor.abs() * worth;
            }
        }
        for (worth, factor) in before.iter_mut().zip(&model.coefficients) {
            *worth += factor.abs() * prices[stage];
        }
        felt = before;
    }
    prices
}

/// The places that water of a plant can get to, its own included, and whether a pump is on the way.
fn reached(system: &System, start: usize) -> (Vec<bool>, bool) {
    let mut reached = vec![false; system.hydros.len()];
    let (mut ahead, mut lifted) = (vec![start], false);
    while let Some(place) = ahead.pop() {
        if !std::mem::replace(&mut reached[place], true) {
            let plant = &system.hydros[place];
            ahead.extend([plant.downstream, plant.diverts_to].into_iter().flatten());
            let pumps = system.pumping.iter();
            for station in pumps.filter(|station| station.source == place) {
                ahead.push(station.destination);
                lifted = true;
            }
        }
    }
    (reached, lifted)
}

/// The most along the ways that water of a plant can take, each plant with its own worth.
fn along(system: &System, start: usize, own: impl Fn(usize) -> f64) -> f64 {
    let worth = |place: usize| own(place) + by_constraints(system, place);
    let (reached, lifted) = reached(system, start);
    if lifted {
        // Pumps let water flow in circles: all plants that it gets to count.
        let places = (0..reached.len()).filter(|place| reached[*place]);
        return places.map(worth).sum();
    }
    // Water flows in no circle, so a plant is done once those below it are.
    let mut known: Vec<Option<f64>> = vec![None; system.hydros.len()];
    let mut open = vec![start];
    while let Some(&place) = open.last() {
        let plant = &system.hydros[place];
        let below = [plant.downstream, plant.diverts_to].into_iter().flatten();
        let unknown: Vec<usize> = below
            .clone()
            .filter(|below| known[*below].is_none())
            .collect();
        if !unknown.is_empty() {
            open.extend(unknown);
            continue;
        }
        let best = below.filter_map(|below| known[below]).fold(0.0, f64::max);
        known[place] = Some(worth(place) + best);
        open.pop();
    }
    known[start].unwrap_or(0.0)
}

/// The most that 1 m³/s for an hour in a plant can do to the slacks of generic constraints, $/(m³/s·h).
fn by_constraints(system: &System, place: usize) -> f64 {
    let hours: f64 = system.stages.iter().map(Stage::total_hours).sum();
    let plant = &system.hydros[place];
    let per_flow = plant.production.stages.iter().map(Production::per_flow);
    let per_flow = per_flow.fold(0.0, f64::max);
    by_terms(system, |of| {
        if of.thing != place {
            return 0.0;
        }
        match of.variable {
            // Water that stays counts in every stage.
            variable if variable.is_storage() => 3600.0 / 1e6 * hours,
            Variable::HydroGeneration => per_flow,
            Variable::HydroTurbined
            | Variable::HydroSpillage
            | Variable::HydroOutflow
            | Variable::HydroDiversion
            | Variable::HydroEvaporation
            | Variable::HydroWithdrawal => 1.0,
            _ => 0.0,
        }
    })
}

/// The most that a change for an hour can do to the slacks of generic constraints, $, given what it does to a variable
/// in its own unit.
pub(super) fn by_terms(system: &System, effect: impl Fn(&ThingVariable) -> f64) -> f64 {
    let mut sum = 0.0;
    for constraint in &system.constraints {
        let penalty = constraint.penalty.unwrap_or(0.0);
        for term in &constraint.terms {
            let factor = term.factor.largest(&system.parameters) * rows(system, &term.of);
            sum += penalty * factor * effect(&term.of);
        }
    }
    sum
}

/// The hours of all rows that a variable can be in, for each of its own: that of a named block is in those of the others.
fn rows(system: &System, of: &ThingVariable) -> f64 {
    let named = system.stages.iter().filter_map(|stage| {
        let own = stage.hours.get(of.block?)?;
        Some(stage.total_hours() / own)
    });
    named.fold(1.0, f64::max)
}

/// The most that a MWh can be worth, $: the dearest deficit with what it does to generic constraints, or the best price
/// of an export.
pub(super) fn dearest_energy(system: &System) -> f64 {
    let buses = system.buses.iter().enumerate();
    let deficits = buses.map(|(place, bus)| {
        let dearest = bus.deficit.iter().map(|(_, cost)| *cost);
        let is_own = |of: &ThingVariable| of.variable == Variable::BusDeficit && of.thing == place;
        dearest.fold(0.0, f64::max) + by_terms(system, |of| f64::from(is_own(of)))
    });
    let deficit = deficits.fold(0.0, f64::max);
    let contracts = system.contracts.iter();
    let terms = contracts.flat_map(|contract| contract.terms.iter().flatten());
    terms.map(|terms| -terms.price).fold(deficit, f64::max)
}

/// More than a MWh of a hydro plant with hyperplanes can be worth in a stage, $: at this price none is made that the
/// planes do not allow, but where they are below zero.
pub(super) fn beyond_planes(system: &System, place: usize, stage: usize) -> f64 {
    let below = system.hydros[place].costs(stage).generation_below;
    let is_own = |of: &ThingVariable| of.variable == Variable::HydroGeneration && of.thing == place;
    let constraints = by_terms(system, |of| f64::from(is_own(of)));
    1.1 * (dearest_energy(system) + below + constraints)
}

/// The most that 1 m³/s for an hour can save in a plant and below it, $/(m³/s·h).
pub(crate) fn saving(system: &System, place: usize) -> f64 {
    let energy = dearest_energy(system);
    let hm3 = 3600.0 / 1e6;
    along(system, place, |place| {
        let plant = &system.hydros[place];
        let asked = |least: fn(&HydroLimits) -> f64| plant.any_limit(|own| least(own) > 0.0);
        let largest = |pick: fn(&HydroCosts) -> f64| {
            let costs = (0..system.stages.len()).map(|stage| pick(plant.costs(stage)));
            costs.fold(0.0, f64::max)
        };
        let functions = &plant.production.stages;
        let per_flow = functions
            .iter()
            .map(Production::per_flow)
            .fold(0.0, f64::max);
        let mut sum = energy * per_flow;
        // Water that stays raises the head in every stage.
        let head = functions.iter().zip(&system.stages);
        let head: f64 = head
            .map(|(own, stage)| own.per_storage() * stage.total_hours())
            .sum();
        sum += energy * head * hm3;
        if asked(|limits| limits.min_turbined) {
            sum += largest(|costs| costs.turbined_below);
        }
        if asked(|limits| limits.min_outflow) {
            sum += largest(|costs| costs.outflow_below);
        }
        if asked(|limits| limits.min_generation) {
            sum += largest(|costs| costs.generation_below) * per_flow;
        }
        if plant.limits.iter().any(|limits| limits.withdrawal != 0.0) {
            sum += largest(|costs| costs.withdrawal_below);
        }
        if plant.evaporation.is_some() {
            sum += largest(|costs| costs.evaporation_below);
        }
        // Water that stays is worth something after the end.
        let stored = format!("storage.{}", plant.label);
        sum += hm3 * steepest(&system.terminal, &stored);
        // Water that stays counts at the end of every stage.
        let stages = system.stages.len() as f64;
        if asked(|limits| limits.min_storage) {
            sum += largest(|costs| costs.storage_below) * hm3 * stages;
            sum += largest(|costs| costs.filling_below) * hm3 * stages;
        }
        sum
    })
}

/// The most that 1 m³/s too much for an hour can cost in a plant and below it, $/(m³/s·h).
pub(super) fn burden(system: &System, place: usize) -> f64 {
    along(system, place, |place| {
        let plant = &system.hydros[place];
        let limited = |limits: &HydroLimits| limits.max_outflow.is_finite();
        let above = plant.any_limit(limited);
        let costs = (0..system.stages.len()).map(|stage| {
            let costs = plant.costs(stage);
            let mut sum = costs.spillage + costs.turbined_constant;
            if above {
                sum += costs.outflow_above;
            }
            if plant.evaporation.is_some() {
                sum += costs.evaporation_above;
            }
            // Spilled water lowers generation, or misses what cannot be lowered.
            let planes = plant.production(stage).planes();
            let slopes = planes.iter().map(|plane| -plane.spilled);
            let slope = slopes.fold(0.0, f64::max);
            if slope > 0.0 {
                sum += slope * beyond_planes(system, place, stage);
            }
            sum + if planes.is_empty() {
                0.0
            } else {
                costs.turbined
            }
        });
        costs.fold(0.0, f64::max)
    })
}
