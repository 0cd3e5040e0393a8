//! Hydro plants whose groups of units feed several buses.

use super::layout::UnitLayout;
use super::{Generation, Program};
use crate::hydrothermal::system::{Hydro, HydroPhase, Production, UnitGroup};

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
                let row = format!("units.{}.{name}", plant.label);
                program.lp.row(row, 0.0, 0.0, &terms);
                // Generation below hyperplanes is shared out as well.
                if let Generation::Columns(columns) = &program.layout.hydros[place].generation {
                    let mut terms = vec![(columns[block], 1.0)];
                    let shares = layouts.iter().map(|unit| unit.generation(block));
                    terms.extend(shares.map(|(column, factor)| (column, -factor)));
                    let row = format!("units_generation.{}.{name}", plant.label);
                    program.lp.row(row, 0.0, 0.0, &terms);
                }
            }
        }
        program.layout.hydros[place].units = layouts;
    }
}

fn add_group(program: &mut Program<'_>, plant: &Hydro, group: &UnitGroup) -> UnitLayout {
    let number = program.number;
    let limits = &group.limits[number];
    let works = plant.phases[number] == HydroPhase::Operating;
    let label = &group.label;
    let turbined = program.by_block_of("unit_turbined", label, |block, _| {
        let limits = &limits[block];
        match plant.production(number) {
            _ if !works => (0.0, 0.0, 0.0),
            Production::Constant(productivity) => {
                let most = limits.max_generation / productivity;
                (0.0, 0.0, limits.max_turbined.min(most))
            }
            Production::Planes(_) => (0.0, 0.0, limits.max_turbined),
        }
    });
    let generation = match plant.production(number) {
        Production::Constant(productivity) => Generation::PerFlow(*productivity),
        Production::Planes(_) if !works => Generation::PerFlow(0.0),
        Production::Planes(_) => {
            let columns = program.by_block_of("unit_generation", label, |block, _| {
                (0.0, 0.0, limits[block].max_generation)
            });
            Generation::Columns(columns)
        }
    };
    let mut layout = UnitLayout {
        turbined,
        generation,
        ..UnitLayout::default()
    };
    if works {
        minimums(program, plant, group, &mut layout);
    }
    layout
}

/// The least turbined flow and generation of a group in each block.
fn minimums(program: &mut Program<'_>, plant: &Hydro, group: &UnitGroup, layout: &mut UnitLayout) {
    let limits = &group.limits[program.number];
    let costs = *plant.costs(program.number);
    let label = &group.label;
    if limits.iter().any(|limits| limits.min_turbined > 0.0) {
        let cost = costs.turbined_below;
        let below = program.by_block("unit_turbined_below", label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [(layout.turbined[block], 1.0), (below[block], 1.0)];
            let name = format!("min_unit_turbined.{label}.{name}");
            let least = limits[block].min_turbined;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        layout.turbined_below = below;
    }
    if limits.iter().any(|limits| limits.min_generation > 0.0) {
        let cost = costs.generation_below;
        let below = program.by_block("unit_generation_below", label, cost, 0.0, UNLIMITED);
        for (block, _, name) in program.blocks() {
            let terms = [layout.generation(block), (below[block], 1.0)];
            let name = format!("min_unit_generation.{label}.{name}");
            let least = limits[block].min_generation;
            program.lp.row(name, least, UNLIMITED, &terms);
        }
        layout.generation_below = below;
    }
}
