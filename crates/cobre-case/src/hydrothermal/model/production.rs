//! Generation of hydro plants: flow times productivity, or below hyperplanes.

use super::water::UNLIMITED;
use super::{Generation, Program};
use crate::hydrothermal::system::{Hydro, Phase, Production};

/// Adds the generation of a plant; hyperplanes are rows of storage before and after, turbined and spilled flow.
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let planes = match plant.production(number) {
        Production::Constant(productivity) => {
            program.layout.hydros[place].generation = Generation::PerFlow(*productivity);
            return;
        }
        // Without flow there is no generation, whatever the planes say.
        Production::Planes(_) if plant.phases[number] != Phase::Operating => {
            program.layout.hydros[place].generation = Generation::PerFlow(0.0);
            return;
        }
        Production::Planes(planes) => planes,
    };
    let label = &plant.label;
    let limits = &plant.block_limits[number];
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
    program.layout.hydros[place].generation = Generation::Columns(generation);
}
