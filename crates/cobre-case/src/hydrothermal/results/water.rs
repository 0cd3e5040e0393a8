//! Hydro plants: by stage, and by block.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, hydro_blocks, hydros};

use cobre_sddp::ColumnId;

use super::PathStage;
use crate::hydrothermal::model::HydroLayout;

pub(super) fn fill_hydros(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (plant, layout) in path_stage.results.hydros.iter().zip(&stage.layout.hydros) {
        let [before, after] = layout.storage.map_or([0.0; 2], |[before, after]| {
            [before, after].map(|column| visited.value(column))
        });
        let drawn = layout.drawn.map_or(0.0, |row| visited.least(row));
        let inflow = layout
            .inflow
            .map_or(drawn / stage.volume, |column| visited.value(column));
        if let Some(column) = layout.truncated {
            path_stage.cost(CostKind::InflowTruncation, column);
        }
        let lifted = path_stage.beyond(CostKind::InflowAdded, layout.lifted.as_slice(), 0);
        let added = path_stage.beyond(CostKind::InflowAdded, layout.added.as_slice(), 0) + lifted;
        let below = path_stage.beyond(CostKind::MinStorage, layout.storage_below.as_slice(), 0);
        let evaporation = evaporation(path_stage, layout);
        let (wanted, slacks) = layout.withdrawal.unzip();
        let (wanted, slacks) = (
            wanted.unwrap_or(0.0),
            slacks.as_ref().map_or(&[][..], |own| own),
        );
        let withdrawal = [0, 1].map(|place| path_stage.beyond(CostKind::Withdrawal, slacks, place));
        let filling = path_stage.beyond(CostKind::Filling, layout.filling_below.as_slice(), 0);
        let sum = |terms: &[(ColumnId, f64)]| -> f64 {
            let values = terms
                .iter()
                .map(|(column, factor)| factor * visited.value(*column));
            0.0 + values.sum::<f64>()
        };
        let arriving = match &layout.arriving {
            Some(terms) => sum(terms),
            None => released(path_stage, layout),
        };
        let under_way: f64 = layout.under_way.iter().map(|own| visited.value(*own)).sum();
        let dual = layout.water.first().map_or(0.0, |&row| visited.dual(row));
        let row = hydros::Row {
            scenario: visited.scenario,
            stage: visited.stage,
            start_date: visited.start_date,
            hydro_id: plant.entity.id,
            hydro: &plant.entity.name,
            storage_initial_hm3: before,
            storage_hm3: after,
            storage_max_hm3: plant.capacity[path_stage.results.nodes[visited.node]],
            inflow_m3s: inflow - lifted,
            inflow_added_m3s: added,
            water_value_per_hm3: 0.0 - dual,
            min_storage_violation_hm3: below,
            evaporation_m3s: evaporation[0],
            evaporation_below_violation_m3s: evaporation[1],
            evaporation_above_violation_m3s: evaporation[2],
            withdrawal_m3s: wanted - withdrawal[0] + withdrawal[1],
            withdrawal_below_violation_m3s: withdrawal[0],
            withdrawal_above_violation_m3s: withdrawal[1],
            filling_violation_hm3: filling,
            arriving_below_hm3: arriving,
            under_way_hm3: under_way,
        };
        rows.push(&row.cells());
    }
}

/// Evaporation of a stage, and how much it is too little and too much, m³/s: the mean over periods by their hours.
fn evaporation(path_stage: &mut PathStage<'_>, layout: &HydroLayout) -> [f64; 3] {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
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
            *mean += share * path_stage.beyond(CostKind::Evaporation, columns, period);
        }
    }
    means
}

/// Water turbined and spilled in a stage, hm³.
fn released(path_stage: &PathStage<'_>, layout: &HydroLayout) -> f64 {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    let hours = stage.hours.iter();
    let flows = layout.turbined.iter().zip(&layout.spilled);
    let volumes = hours.zip(flows).map(|(hours, (turbined, spilled))| {
        hours * 3600.0 / 1e6 * (visited.value(*turbined) + visited.value(*spilled))
    });
    0.0 + volumes.sum::<f64>()
}

pub(super) fn fill_blocks(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in path_stage.results.hydros.iter().zip(&stage.layout.hydros) {
            let limits = [
                &layout.spilled_below,
                &layout.spilled_above,
                &layout.diverted_below,
            ];
            let limits = limits.map(|own| path_stage.beyond(CostKind::FlowLimit, own, block));
            let missed = [
                (CostKind::MinTurbined, &layout.turbined_below),
                (CostKind::MinGeneration, &layout.generation_below),
                (CostKind::MinOutflow, &layout.outflow_below),
                (CostKind::MaxOutflow, &layout.outflow_above),
            ];
            let missed = missed.map(|(kind, own)| path_stage.beyond(kind, own, block));
            let turbined = path_stage.beyond(CostKind::Turbined, &layout.turbined, block);
            let levels = layout.levels.get(block).or(layout.levels.last());
            let level = levels.map_or(0.0, |column| visited.value(*column));
            let spilled = path_stage.beyond(CostKind::Spillage, &layout.spilled, block);
            let (column, factor) = layout.generation(block);
            let generation = 0.0 + factor * visited.value(column);
            let row = hydro_blocks::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                hydro_id: plant.entity.id,
                hydro: &plant.entity.name,
                bus_id: plant.entity.bus,
                turbined_m3s: turbined,
                spilled_m3s: spilled,
                outflow_m3s: turbined + spilled,
                generation_mw: generation,
                min_turbined_violation_m3s: missed[0],
                min_generation_violation_mw: missed[1],
                min_outflow_violation_m3s: missed[2],
                max_outflow_violation_m3s: missed[3],
                diverted_m3s: path_stage.beyond(CostKind::Diversion, &layout.diverted, block),
                storage_hm3: level,
                production_violation_mw: path_stage.beyond(
                    CostKind::Production,
                    &layout.production_above,
                    block,
                ),
                min_spillage_violation_m3s: limits[0],
                max_spillage_violation_m3s: limits[1],
                min_diversion_violation_m3s: limits[2],
            };
            rows.push(&row.cells());
        }
    }
}
