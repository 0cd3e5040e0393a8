//! SimulatedHydro plants: by stage, and by block.

use cobre_sddp::{Column, Rows, Table, stage_columns};

use super::costs::Cost;
use super::{Scene, block_columns, bus_column, thing_columns};

/// The table of plants by stage.
pub(super) fn hydros() -> Table {
    let mut columns = stage_columns().to_vec();
    columns.extend(thing_columns("hydro_id", "hydro", "hydro plant"));
    columns.extend([
        Column::number("storage_initial_hm3", "hm³", "water stored before the stage"),
        Column::number("storage_hm3", "hm³", "water stored after the stage"),
        Column::number(
            "inflow_m3s",
            "m³/s",
            "natural inflow, after what config.json wants done about inflows below zero by truncation",
        ),
        Column::number(
            "inflow_added_m3s",
            "m³/s",
            "water added to an inflow below zero, at a cost (method penalty)",
        ),
        Column::number(
            "water_value_per_hm3",
            "$/hm³",
            "what one more hm³ of water in this stage saves now and later, in money of this stage",
        ),
        Column::number(
            "min_storage_violation_hm3",
            "hm³",
            "what storage lacks to its minimum",
        ),
    ]);
    Table::new("simulation/hydros", columns)
}

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
            scene.cost(Cost::InflowTruncation, column);
        }
        let added = scene.beyond(Cost::InflowAdded, layout.added.as_slice(), 0);
        let below = scene.beyond(Cost::MinStorage, layout.storage_below.as_slice(), 0);
        let dual = layout.water.first().map_or(0.0, |&row| visited.dual(row));
        rows.push(&[
            visited.scenario.into(),
            visited.stage.into(),
            plant.thing.id.into(),
            plant.thing.name.as_str().into(),
            before.into(),
            after.into(),
            inflow.into(),
            added.into(),
            (0.0 - dual).into(),
            below.into(),
        ]);
    }
}

/// The table of plants by block.
pub(super) fn blocks() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("hydro_id", "hydro", "hydro plant"));
    columns.extend([
        bus_column(
            "bus_id",
            "number of the bus it feeds; the first one if its groups of units feed several",
        ),
        Column::number("turbined_m3s", "m³/s", "flow through the turbines"),
        Column::number("spilled_m3s", "m³/s", "flow past the turbines"),
        Column::number("outflow_m3s", "m³/s", "turbined and spilled flow together"),
        Column::number("generation_mw", "MW", "power generated"),
        Column::number(
            "min_turbined_violation_m3s",
            "m³/s",
            "what turbined flow lacks to its minimum",
        ),
        Column::number(
            "min_generation_violation_mw",
            "MW",
            "what generation lacks to its minimum",
        ),
        Column::number(
            "min_outflow_violation_m3s",
            "m³/s",
            "what outflow lacks to its minimum",
        ),
        Column::number(
            "max_outflow_violation_m3s",
            "m³/s",
            "what outflow is above its maximum",
        ),
    ]);
    Table::new("simulation/hydro_blocks", columns)
}

pub(super) fn fill_blocks(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
            let turbined = visited.value(layout.turbined[block]);
            let spilled = scene.beyond(Cost::Spillage, &layout.spilled, block);
            let (column, factor) = layout.generation(block);
            let generation = 0.0 + factor * visited.value(column);
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                plant.thing.id.into(),
                plant.thing.name.as_str().into(),
                plant.thing.bus.into(),
                turbined.into(),
                spilled.into(),
                (turbined + spilled).into(),
                generation.into(),
                scene
                    .beyond(Cost::MinTurbined, &layout.turbined_below, block)
                    .into(),
                scene
                    .beyond(Cost::MinGeneration, &layout.generation_below, block)
                    .into(),
                scene
                    .beyond(Cost::MinOutflow, &layout.outflow_below, block)
                    .into(),
                scene
                    .beyond(Cost::MaxOutflow, &layout.outflow_above, block)
                    .into(),
            ]);
        }
    }
}
