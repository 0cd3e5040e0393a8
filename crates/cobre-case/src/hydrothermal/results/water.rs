//! Hydro plants: by stage, and by block.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, hydro_blocks, hydros};

use super::Scene;

pub(super) fn fill_hydros(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
        let [before, after] = layout.storage.map_or([0.0; 2], |[before, after]| {
            [before, after].map(|column| visited.value(column))
        });
        let drawn = layout.drawn.map_or(0.0, |row| visited.least(row));
        let inflow = layout
            .inflow
            .map_or(drawn / stage.volume, |column| visited.value(column));
        if let Some(column) = layout.truncated {
            scene.cost(CostKind::InflowTruncation, column);
        }
        let added = scene.beyond(CostKind::InflowAdded, layout.added.as_slice(), 0);
        let below = scene.beyond(CostKind::MinStorage, layout.storage_below.as_slice(), 0);
        let dual = layout.water.map_or(0.0, |row| visited.dual(row));
        let row = hydros::Row {
            scenario: visited.scenario,
            stage: visited.stage,
                start_date: visited.start_date,
            hydro_id: plant.thing.id,
            hydro: &plant.thing.name,
            storage_initial_hm3: before,
            storage_hm3: after,
            storage_max_hm3: plant.capacity[visited.node],
            inflow_m3s: inflow,
            inflow_added_m3s: added,
            water_value_per_hm3: 0.0 - dual,
            min_storage_violation_hm3: below,
        };
        rows.push(&row.cells());
    }
}

pub(super) fn fill_blocks(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
            let turbined = visited.value(layout.turbined[block]);
            let spilled = scene.beyond(CostKind::Spillage, &layout.spilled, block);
            let row = hydro_blocks::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                hydro_id: plant.thing.id,
                hydro: &plant.thing.name,
                bus_id: plant.thing.bus,
                turbined_m3s: turbined,
                spilled_m3s: spilled,
                outflow_m3s: turbined + spilled,
                generation_mw: plant.productivity * turbined,
                min_turbined_violation_m3s: scene.beyond(
                    CostKind::MinTurbined,
                    &layout.turbined_below,
                    block,
                ),
                min_generation_violation_mw: scene.beyond(
                    CostKind::MinGeneration,
                    &layout.generation_below,
                    block,
                ),
                min_outflow_violation_m3s: scene.beyond(
                    CostKind::MinOutflow,
                    &layout.outflow_below,
                    block,
                ),
                max_outflow_violation_m3s: scene.beyond(
                    CostKind::MaxOutflow,
                    &layout.outflow_above,
                    block,
                ),
            };
            rows.push(&row.cells());
        }
    }
}
