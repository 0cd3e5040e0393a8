//! SimulatedHydro plants: by stage, and by block.

use cobre_sddp::{Column, ColumnId, Rows, Table, stage_columns};

use super::costs::Cost;
use super::{Scene, block_columns, bus_column, thing_columns};
use crate::hydrothermal::model::HydroLayout;

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
        Column::number(
            "evaporation_m3s",
            "m³/s",
            "water that evaporates; below zero if more rain falls on the lake",
        ),
        Column::number(
            "evaporation_below_violation_m3s",
            "m³/s",
            "what evaporation lacks to that of the lake's area",
        ),
        Column::number(
            "evaporation_above_violation_m3s",
            "m³/s",
            "what evaporation is above that of the lake's area",
        ),
        Column::number(
            "withdrawal_m3s",
            "m³/s",
            "water taken out for other uses; below zero if water is returned",
        ),
        Column::number(
            "withdrawal_below_violation_m3s",
            "m³/s",
            "what withdrawal lacks to what is asked for",
        ),
        Column::number(
            "withdrawal_above_violation_m3s",
            "m³/s",
            "what withdrawal is above what is asked for",
        ),
        Column::number(
            "filling_violation_hm3",
            "hm³",
            "what storage lacks to the target of filling",
        ),
        Column::number(
            "arriving_below_hm3",
            "hm³",
            "water turbined and spilled here, now or before, that reaches the plant below during the stage",
        ),
        Column::number(
            "under_way_hm3",
            "hm³",
            "water turbined and spilled here that reaches the plant below after the stage",
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
        let evaporation = evaporation(scene, layout);
        let (wanted, slacks) = layout.withdrawal.unzip();
        let (wanted, slacks) = (
            wanted.unwrap_or(0.0),
            slacks.as_ref().map_or(&[][..], |own| own),
        );
        let withdrawal = [0, 1].map(|place| scene.beyond(Cost::Withdrawal, slacks, place));
        let filling = scene.beyond(Cost::Filling, layout.filling_below.as_slice(), 0);
        let sum = |terms: &[(ColumnId, f64)]| -> f64 {
            let values = terms
                .iter()
                .map(|(column, factor)| factor * visited.value(*column));
            0.0 + values.sum::<f64>()
        };
        let arriving = match &layout.arriving {
            Some(terms) => sum(terms),
            None => released(scene, layout),
        };
        let under_way: f64 = layout.under_way.iter().map(|own| visited.value(*own)).sum();
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
            evaporation[0].into(),
            evaporation[1].into(),
            evaporation[2].into(),
            (wanted - withdrawal[0] + withdrawal[1]).into(),
            withdrawal[0].into(),
            withdrawal[1].into(),
            filling.into(),
            arriving.into(),
            under_way.into(),
        ]);
    }
}

/// Evaporation of a stage, and how much it is too little and too much, m³/s: the mean over periods by their hours.
fn evaporation(scene: &mut Scene<'_>, layout: &HydroLayout) -> [f64; 3] {
    let (visited, stage) = (scene.visited, scene.stage);
    let count = layout.evaporation.len();
    let mut means = [0.0; 3];
    for period in 0..count {
        let share = if count == 1 {
            1.0
        } else {
            stage.hours[period] / stage.hours.iter().sum::<f64>()
        };
        means[0] += share * visited.value(layout.evaporation[period]);
        let slacks = [&layout.evaporation_below, &layout.evaporation_above];
        for (mean, columns) in means[1..].iter_mut().zip(slacks) {
            *mean += share * scene.beyond(Cost::Evaporation, columns, period);
        }
    }
    means
}

/// Water turbined and spilled in a stage, hm³.
fn released(scene: &Scene<'_>, layout: &HydroLayout) -> f64 {
    let (visited, stage) = (scene.visited, scene.stage);
    let hours = stage.hours.iter();
    let flows = layout.turbined.iter().zip(&layout.spilled);
    let volumes = hours.zip(flows).map(|(hours, (turbined, spilled))| {
        hours * 3600.0 / 1e6 * (visited.value(*turbined) + visited.value(*spilled))
    });
    0.0 + volumes.sum::<f64>()
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
        Column::number(
            "spilled_m3s",
            "m³/s",
            "flow past the turbines; all flow while the plant is not there",
        ),
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
        Column::number(
            "diverted_m3s",
            "m³/s",
            "flow through the diversion; outflow limits count it as well",
        ),
        Column::number(
            "storage_hm3",
            "hm³",
            "water stored after the block if blocks are chronological, else after the stage",
        ),
        Column::number(
            "production_violation_mw",
            "MW",
            "how far the lowest hyperplane is below zero, where generation is zero: as in a flood",
        ),
    ]);
    Table::new("simulation/hydro_blocks", columns)
}

pub(super) fn fill_blocks(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
            let turbined = scene.beyond(Cost::Turbined, &layout.turbined, block);
            let levels = layout.levels.get(block).or(layout.levels.last());
            let level = levels.map_or(0.0, |column| visited.value(*column));
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
                scene
                    .beyond(Cost::Diversion, &layout.diverted, block)
                    .into(),
                level.into(),
                scene
                    .beyond(Cost::Production, &layout.production_above, block)
                    .into(),
            ]);
        }
    }
}
