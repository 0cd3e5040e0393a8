//! Limits of a plant that may be missed at a cost: storage, flows and generation.

use cobre_sddp::ColumnId;

use super::Program;
use super::water::UNLIMITED;
use super::water_worth::{burden, saving};
use crate::hydrothermal::system::{Hydro, HydroLimits, HydroPhase};

/// Adds the limits of a plant in a stage.
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let phase = plant.phases[program.number];
    storage(program, place, plant);
    if phase == HydroPhase::Operating {
        minimums(program, place, plant);
        spillage(program, place, plant);
        diversion(program, place, plant);
    }
    if !phase.passes() {
        outflow(program, place, plant);
    }
}

/// The least storage at the end of the stage, or the target of filling.
fn storage(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let (limits, costs) = (&plant.limits[number], *plant.costs(number));
    let (least, what, slack, cost) = match plant.phases[number] {
        HydroPhase::Absent | HydroPhase::Retired => return,
        HydroPhase::Filling { target } => (target, "filling", "filling_below", costs.filling_below),
        HydroPhase::Operating => (
            limits.min_storage,
            "min_storage",
            "storage_below",
            costs.storage_below,
        ),
    };
    let layout = &mut program.layout.hydros[place];
    let Some([_, after]) = layout.storage.filter(|_| least > 0.0) else {
        return;
    };
    let label = &plant.label;
    let name = format!("{slack}.{label}");
    let below = program.lp.column(name, cost, 0.0, UNLIMITED);
    if what == "filling" {
        layout.filling_below = Some(below);
    } else {
        layout.storage_below = Some(below);
    }
    let name = format!("{what}.{label}");
    let terms = [(after, 1.0), (below, 1.0)];
    program.lp.row(name, least, UNLIMITED, &terms);
}

/// The least of a quantity.
type LeastOf = fn(&HydroLimits) -> f64;

/// The least turbined flow and generation of each block.
fn minimums(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let (limits, costs) = (&plant.block_limits[number], *plant.costs(number));
    let label = &plant.label;
    let kinds: [(&str, LeastOf, f64); 2] = [
        ("turbined", |own| own.min_turbined, costs.turbined_below),
        (
            "generation",
            |own| own.min_generation,
            costs.generation_below,
        ),
    ];
    for (what, least, cost) in kinds {
        if limits.iter().all(|limits| least(limits) == 0.0) {
            continue;
        }
        let below = program.by_block(&format!("{what}_below"), label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let layout = &program.layout.hydros[place];
            let own = if what == "turbined" {
                (layout.turbined[block], 1.0)
            } else {
                layout.generation(block)
            };
            let name = format!("min_{what}.{label}.{name}");
            let least = least(&limits[block]);
            program
                .lp
                .row(name, least, UNLIMITED, &[own, (below[block], 1.0)]);
        }
        let layout = &mut program.layout.hydros[place];
        if what == "turbined" {
            layout.turbined_below = below;
        } else {
            layout.generation_below = below;
        }
    }
}

/// More than 1 m³/s for an hour can save or cost, $/(m³/s·h): at this price a limit of a flow is missed only where it
/// cannot be kept.
fn price(program: &Program<'_>, place: usize, plant: &Hydro) -> f64 {
    let system = program.system;
    let costs = plant.costs(program.number);
    1.1 * (saving(system, place) + burden(system, place) + costs.spillage + costs.diversion)
}

/// The least and the most spilled flow of each block.
fn spillage(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let limits = &plant.block_limits[program.number];
    let has_least = limits.iter().any(|limits| limits.min_spillage > 0.0);
    let has_most = limits.iter().any(|limits| limits.max_spillage.is_finite());
    if !has_least && !has_most {
        return;
    }
    let price = price(program, place, plant);
    let label = &plant.label;
    let mut beyond = |asked: bool, what: &str| {
        let columns = asked.then(|| program.by_block(what, label, price, 0.0, UNLIMITED));
        columns.unwrap_or_default()
    };
    let below = beyond(has_least, "spilled_below");
    let above = beyond(has_most, "spilled_above");
    for (block, _, name) in program.blocks() {
        let mut terms = vec![(program.layout.hydros[place].spilled[block], 1.0)];
        terms.extend(below.get(block).map(|below| (*below, 1.0)));
        terms.extend(above.get(block).map(|above| (*above, -1.0)));
        let name = format!("spilled_limits.{label}.{name}");
        let limits = &limits[block];
        program
            .lp
            .row(name, limits.min_spillage, limits.max_spillage, &terms);
    }
    let layout = &mut program.layout.hydros[place];
    (layout.spilled_below, layout.spilled_above) = (below, above);
}

/// The least diverted flow of each block.
fn diversion(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let limits = &plant.block_limits[program.number];
    let least = limits.iter().any(|limits| limits.min_diversion > 0.0);
    if !least || program.layout.hydros[place].diverted.is_empty() {
        return;
    }
    let price = price(program, place, plant);
    let label = &plant.label;
    let below = program.by_block("diverted_below", label, price, 0.0, UNLIMITED);
    for (block, _, name) in program.blocks() {
        let diverted = program.layout.hydros[place].diverted[block];
        let name = format!("min_diverted.{label}.{name}");
        let least = limits[block].min_diversion;
        let terms = [(diverted, 1.0), (below[block], 1.0)];
        program.lp.row(name, least, UNLIMITED, &terms);
    }
    program.layout.hydros[place].diverted_below = below;
}

/// The least and the most outflow of each block: turbined, spilled and diverted.
fn outflow(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let (limits, costs) = (&plant.block_limits[number], *plant.costs(number));
    let has_least = limits.iter().any(|limits| limits.min_outflow > 0.0);
    let has_most = limits.iter().any(|limits| limits.max_outflow.is_finite());
    if !has_least && !has_most {
        return;
    }
    let label = &plant.label;
    let mut beyond = |asked: bool, what: &str, cost: f64| {
        let columns = asked.then(|| program.by_block(what, label, cost, 0.0, UNLIMITED));
        columns.unwrap_or_default()
    };
    let below = beyond(has_least, "outflow_below", costs.outflow_below);
    let above = beyond(has_most, "outflow_above", costs.outflow_above);
    for (block, _, name) in program.blocks() {
        let layout = &program.layout.hydros[place];
        let mut terms: Vec<(ColumnId, f64)> =
            vec![(layout.turbined[block], 1.0), (layout.spilled[block], 1.0)];
        terms.extend(layout.diverted.get(block).map(|diverted| (*diverted, 1.0)));
        terms.extend(below.get(block).map(|below| (*below, 1.0)));
        terms.extend(above.get(block).map(|above| (*above, -1.0)));
        let name = format!("outflow.{label}.{name}");
        let limits = &limits[block];
        program
            .lp
            .row(name, limits.min_outflow, limits.max_outflow, &terms);
    }
    let layout = &mut program.layout.hydros[place];
    (layout.outflow_below, layout.outflow_above) = (below, above);
}
