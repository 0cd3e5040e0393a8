//! Generation of hydro plants: flow times productivity, or below hyperplanes.

use cobre_sddp::ColumnId;

use super::water::UNLIMITED;
use super::water_worth::beyond_planes;
use super::{Generation, Program};
use crate::hydrothermal::system::{Hydro, HydroPhase, Production};

/// Adds the generation of a plant; hyperplanes are rows of storage before and after, turbined and spilled flow.
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let planes = match plant.production(number) {
        Production::Constant(productivity) => {
            program.layout.hydros[place].generation = Generation::PerFlow(*productivity);
            return;
        }
        // Without flow there is no generation, whatever the planes say.
        Production::Planes(_) if plant.phases[number] != HydroPhase::Operating => {
            program.layout.hydros[place].generation = Generation::PerFlow(0.0);
            return;
        }
        Production::Planes(planes) => planes,
    };
    let label = &plant.label;
    let limits = &plant.block_limits[number];
    let slack = slack(program, place, plant);
    let generation = program.by_block_of("generation", label, |block, _| {
        (0.0, 0.0, limits[block].max_generation)
    });
    for (block, _, name) in program.blocks() {
        let period = program.stage.period_of(block);
        let storages = program.storages(place, period);
        for (plane_number, plane) in planes.iter().enumerate() {
            let layout = &program.layout.hydros[place];
            let mut terms = vec![
                (generation[block], 1.0),
                (layout.turbined[block], -plane.turbined),
            ];
            terms.extend(slack.get(block).map(|column| (*column, -1.0)));
            if plane.spilled != 0.0 {
                terms.push((layout.spilled[block], -plane.spilled));
            }
            if plane.storage != 0.0 {
                let half = -plane.storage / 2.0;
                terms.extend(storages.into_iter().flatten().map(|column| (column, half)));
            }
            let name = format!("production{}.{label}.{name}", plane_number + 1);
            program.lp.row(name, -UNLIMITED, plane.constant, &terms);
        }
    }
    let layout = &mut program.layout.hydros[place];
    layout.generation = Generation::Columns(generation);
    layout.production_above = slack;
}

/// Generation above the planes, by block, where a plane can be below zero: a flood lowers it without end, and
/// generation is not below zero. At its price it is used for nothing else.
fn slack(program: &mut Program<'_>, place: usize, plant: &Hydro) -> Vec<ColumnId> {
    let number = program.number;
    let planes = plant.production(number).planes().iter();
    let mut below_zero = planes.filter(|plane| plane.spilled < 0.0 || plane.constant < 0.0);
    if below_zero.next().is_none() {
        return Vec::new();
    }
    let price = beyond_planes(program.system, place, number);
    program.by_block("production_above", &plant.label, price, 0.0, UNLIMITED)
}
