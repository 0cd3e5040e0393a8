//! Bounds on what water is worth.

use crate::hydrothermal::system::{Hydro, HydroCosts, HydroLimits, System};

/// More than one m³/s of inflow in a stage can be worth, $: what it saves or spares in this stage, and
/// what it does to later inflows, each at its own price. At this price none is bought that need not be.
pub(super) fn price(system: &System, place: usize, number: usize) -> f64 {
    let plant = &system.hydros[place];
    let worth = 1.1 * (saving(system, place) + burden(system, place));
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

/// The most along the ways that water of a plant can take, each plant with its own worth.
fn along(system: &System, start: usize, worth: impl Fn(&Hydro) -> f64) -> f64 {
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
        known[place] = Some(worth(plant) + best);
        open.pop();
    }
    known[start].unwrap_or(0.0)
}

/// The most that 1 m³/s for an hour can save in a plant and below it, $/(m³/s·h).
pub(crate) fn saving(system: &System, place: usize) -> f64 {
    let segments = system.buses.iter().flat_map(|bus| &bus.deficit);
    let energy = segments.map(|(_, cost)| *cost).fold(0.0, f64::max);
    let hm3 = 3600.0 / 1e6;
    along(system, place, |plant| {
        let asked =
            |least: fn(&HydroLimits) -> f64| plant.limits.iter().any(|limits| least(limits) > 0.0);
        let largest = |pick: fn(&HydroCosts) -> f64| {
            let costs = (0..system.stages.len()).map(|stage| pick(plant.costs(stage)));
            costs.fold(0.0, f64::max)
        };
        let functions = &plant.production.stages;
        let per_flow = functions
            .iter()
            .map(|own| own.per_flow())
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
fn burden(system: &System, place: usize) -> f64 {
    along(system, place, |plant| {
        let limited = |limits: &HydroLimits| limits.max_outflow.is_finite();
        let above = plant.limits.iter().any(limited);
        let costs = (0..system.stages.len()).map(|stage| {
            let costs = plant.costs(stage);
            let above = if above { costs.outflow_above } else { 0.0 };
            costs.spillage + costs.turbined + costs.evaporation_above + above
        });
        costs.fold(0.0, f64::max)
    })
}
