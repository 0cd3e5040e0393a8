//! Hydro plants whose groups of units feed several buses.

use super::Program;
use super::layout::UnitLayout;
use crate::hydrothermal::system::{Hydro, UnitGroup};

const UNLIMITED: f64 = f64::INFINITY;

/// Adds the groups of units of all plants: their flows add up to that of the plant.
pub(super) fn add(program: &mut Program<'_>) {
    for (place, plant) in program.system.hydros.iter().enumerate() {
        let groups = plant.units.iter();
        let layouts: Vec<UnitLayout> = groups
            .map(|group| add_group(program, plant, group))
            .collect();
        if !layouts.is_empty() {
            for (block, _, name) in program.blocks() {
                let mut terms = vec![(program.layout.hydros[place].turbined[block], 1.0)];
                terms.extend(layouts.iter().map(|unit| (unit.turbined[block], -1.0)));
                let name = format!("units.{}.{name}", plant.label);
                program.lp.row(name, 0.0, 0.0, &terms);
            }
        }
        program.layout.hydros[place].units = layouts;
    }
}

fn add_group(program: &mut Program<'_>, plant: &Hydro, group: &UnitGroup) -> UnitLayout {
    let limits = &group.limits[program.number];
    let costs = plant.costs[program.number];
    let turbined = program.by_block_of("unit_turbined", &group.label, |block, _| {
        let limits = &limits[block];
        let most = limits
            .max_turbined
            .min(limits.max_generation / plant.productivity);
        (0.0, 0.0, most)
    });
    let mut layout = UnitLayout {
        turbined,
        ..UnitLayout::default()
    };
    if limits.iter().any(|limits| limits.min_turbined > 0.0) {
        let cost = costs.turbined_below;
        let below = program.by_block("unit_turbined_below", &group.label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [(layout.turbined[block], 1.0), (below[block], 1.0)];
            let name = format!("min_unit_turbined.{}.{name}", group.label);
            let least = limits[block].min_turbined;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        layout.turbined_below = below;
    }
    if limits.iter().any(|limits| limits.min_generation > 0.0) {
        let cost = costs.generation_below;
        let below = program.by_block("unit_generation_below", &group.label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [
                (layout.turbined[block], plant.productivity),
                (below[block], 1.0),
            ];
            let name = format!("min_unit_generation.{}.{name}", group.label);
            let least = limits[block].min_generation;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        layout.generation_below = below;
    }
    layout
}
