//! Pumping stations, contracts, batteries, commitments and groups of units.

use cobre_results::Rows;
use cobre_results::layout::{
    CostKind, batteries, battery_blocks, commitments, contracts, hydro_units, pumping,
};

use super::PathStage;
use crate::hydrothermal::files::equipment::ContractKind;

pub(super) fn fill_pumping(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (station, layout) in path_stage.results.pumping.iter().zip(&stage.layout.pumping) {
            let flow = visited.value(layout.flow[block]);
            let row = pumping::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                station_id: station.entity.id,
                station: &station.entity.name,
                bus_id: station.entity.bus,
                flow_m3s: flow,
                power_mw: station.consumption * flow,
                min_pumping_violation_m3s: path_stage.beyond(
                    CostKind::MinPumping,
                    &layout.below,
                    block,
                ),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_contracts(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (contract, columns) in path_stage
            .results
            .contracts
            .iter()
            .zip(&stage.layout.contracts)
        {
            let power = visited.value(columns[block]);
            let [import, export] = match contract.kind {
                ContractKind::Import => [power, 0.0],
                ContractKind::Export => [0.0, power],
            };
            let row = contracts::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                contract_id: contract.entity.id,
                contract: &contract.entity.name,
                bus_id: contract.entity.bus,
                import_mw: import,
                export_mw: export,
                cost: path_stage.cost(CostKind::Contract, columns[block]),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_batteries(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (battery, layout) in path_stage
        .results
        .batteries
        .iter()
        .zip(&stage.layout.batteries)
    {
        let [before, after] = layout.level.map(|column| visited.value(column));
        let mut flows = 0.0;
        for (block, &hours) in stage.hours.iter().enumerate() {
            flows += hours
                * (battery.charge_efficiency * visited.value(layout.charge[block])
                    - visited.value(layout.discharge[block]) / battery.discharge_efficiency);
        }
        let dual = layout.balance.last().map_or(0.0, |row| visited.dual(*row));
        let row = batteries::Row {
            scenario: visited.scenario,
            stage: visited.stage,
            start_date: visited.start_date,
            battery_id: battery.entity.id,
            battery: &battery.entity.name,
            level_initial_mwh: before,
            level_mwh: after,
            self_discharge_mwh: before + flows - after,
            energy_value_per_mwh: 0.0 - dual,
            min_level_violation_mwh: path_stage.beyond(
                CostKind::MinLevel,
                layout.below.as_slice(),
                0,
            ),
        };
        rows.push(&row.cells());
    }
}

pub(super) fn fill_battery_blocks(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (battery, layout) in path_stage
            .results
            .batteries
            .iter()
            .zip(&stage.layout.batteries)
        {
            let discharge = layout.discharge[block];
            let row = battery_blocks::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                battery_id: battery.entity.id,
                battery: &battery.entity.name,
                bus_id: battery.entity.bus,
                charge_mw: visited.value(layout.charge[block]),
                discharge_mw: visited.value(discharge),
                cost: path_stage.cost(CostKind::BatteryWear, discharge),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_commitments(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (plant, layout) in path_stage
        .results
        .thermals
        .iter()
        .zip(&stage.layout.thermals)
    {
        let decided = layout.commitment.iter().flat_map(|layout| &layout.decided);
        for decision in decided {
            let mut cost = 0.0;
            for &column in &decision.paid {
                cost += path_stage.cost(CostKind::Commitment, column);
            }
            let row = commitments::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                thermal_id: plant.id,
                thermal: &plant.name,
                delivery_stage: path_stage.results.stages[decision.stage].id,
                committed_mw: visited.value(decision.power),
                cost,
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_units(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in path_stage.results.hydros.iter().zip(&stage.layout.hydros) {
            for (group, unit) in plant.units.iter().zip(&layout.units) {
                let turbined = visited.value(unit.turbined[block]);
                let (column, factor) = unit.generation(block);
                let generation = 0.0 + factor * visited.value(column);
                let row = hydro_units::Row {
                    scenario: visited.scenario,
                    stage: visited.stage,
                    start_date: visited.start_date,
                    block: stage.blocks[block],
                    hours,
                    hydro_id: plant.entity.id,
                    hydro: &plant.entity.name,
                    unit_group_id: group.id,
                    unit_group: &group.name,
                    bus_id: group.bus,
                    turbined_m3s: turbined,
                    generation_mw: generation,
                    min_turbined_violation_m3s: path_stage.beyond(
                        CostKind::MinTurbined,
                        &unit.turbined_below,
                        block,
                    ),
                    min_generation_violation_mw: path_stage.beyond(
                        CostKind::MinGeneration,
                        &unit.generation_below,
                        block,
                    ),
                };
                rows.push(&row.cells());
            }
        }
    }
}
