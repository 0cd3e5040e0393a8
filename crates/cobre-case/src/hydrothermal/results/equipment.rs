//! Pumping stations, contracts, batteries, commitments and groups of units.

use cobre_sddp::{Column, Kind, Rows, Table, stage_columns};

use super::costs::Cost;
use super::{Scene, block_columns, bus_column, thing_columns};
use crate::hydrothermal::files::equipment::ContractKind;

const COST: &str = "what it adds to the cost of the stage";

/// The table of pumping stations.
pub(super) fn pumping() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("station_id", "station", "pumping station"));
    columns.extend([
        bus_column("bus_id", "number of the bus that its energy comes from"),
        Column::number("flow_m3s", "m³/s", "water lifted"),
        Column::number("power_mw", "MW", "power taken from the bus"),
        Column::number(
            "min_pumping_violation_m3s",
            "m³/s",
            "what the flow lacks to its minimum",
        ),
    ]);
    Table::new("simulation/pumping", columns)
}

pub(super) fn fill_pumping(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (station, layout) in scene.results.pumping.iter().zip(&stage.layout.pumping) {
            let flow = visited.value(layout.flow[block]);
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                station.thing.id.into(),
                station.thing.name.as_str().into(),
                station.thing.bus.into(),
                flow.into(),
                (station.consumption * flow).into(),
                scene.beyond(Cost::MinPumping, &layout.below, block).into(),
            ]);
        }
    }
}

/// The table of contracts.
pub(super) fn contracts() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("contract_id", "contract", "contract"));
    columns.extend([
        bus_column("bus_id", "number of its bus"),
        Column::number("import_mw", "MW", "power that comes to the bus"),
        Column::number("export_mw", "MW", "power that leaves the bus"),
        Column::number(
            "cost",
            "$",
            "what it adds to the cost of the stage; revenue is below zero",
        ),
    ]);
    Table::new("simulation/contracts", columns)
}

pub(super) fn fill_contracts(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (contract, columns) in scene.results.contracts.iter().zip(&stage.layout.contracts) {
            let power = visited.value(columns[block]);
            let [import, export] = match contract.kind {
                ContractKind::Import => [power, 0.0],
                ContractKind::Export => [0.0, power],
            };
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                contract.thing.id.into(),
                contract.thing.name.as_str().into(),
                contract.thing.bus.into(),
                import.into(),
                export.into(),
                scene.cost(Cost::Contract, columns[block]).into(),
            ]);
        }
    }
}

/// The table of batteries by stage.
pub(super) fn batteries() -> Table {
    let mut columns = stage_columns().to_vec();
    columns.extend(thing_columns("battery_id", "battery", "battery"));
    columns.extend([
        Column::number("level_initial_mwh", "MWh", "energy stored before the stage"),
        Column::number("level_mwh", "MWh", "energy stored after the stage"),
        Column::number(
            "self_discharge_mwh",
            "MWh",
            "stored energy that is lost by itself during the stage",
        ),
        Column::number(
            "energy_value_per_mwh",
            "$/MWh",
            "what one more MWh in store at the end of the stage saves, in money of this stage",
        ),
        Column::number(
            "min_level_violation_mwh",
            "MWh",
            "what the level lacks to its minimum",
        ),
    ]);
    Table::new("simulation/batteries", columns)
}

pub(super) fn fill_batteries(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (battery, layout) in scene.results.batteries.iter().zip(&stage.layout.batteries) {
        let [before, after] = layout.level.map(|column| visited.value(column));
        let mut flows = 0.0;
        for (block, &hours) in stage.hours.iter().enumerate() {
            flows += hours
                * (battery.charge_efficiency * visited.value(layout.charge[block])
                    - visited.value(layout.discharge[block]) / battery.discharge_efficiency);
        }
        let dual = layout.balance.last().map_or(0.0, |row| visited.dual(*row));
        rows.push(&[
            visited.scenario.into(),
            visited.stage.into(),
            battery.thing.id.into(),
            battery.thing.name.as_str().into(),
            before.into(),
            after.into(),
            (before + flows - after).into(),
            (0.0 - dual).into(),
            scene
                .beyond(Cost::MinLevel, layout.below.as_slice(), 0)
                .into(),
        ]);
    }
}

/// The table of batteries by block.
pub(super) fn battery_blocks() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("battery_id", "battery", "battery"));
    columns.extend([
        bus_column("bus_id", "number of its bus"),
        Column::number("charge_mw", "MW", "power taken from the bus"),
        Column::number("discharge_mw", "MW", "power given to the bus"),
        Column::number("cost", "$", "wear: what it adds to the cost of the stage"),
    ]);
    Table::new("simulation/battery_blocks", columns)
}

pub(super) fn fill_battery_blocks(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (battery, layout) in scene.results.batteries.iter().zip(&stage.layout.batteries) {
            let discharge = layout.discharge[block];
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                battery.thing.id.into(),
                battery.thing.name.as_str().into(),
                battery.thing.bus.into(),
                visited.value(layout.charge[block]).into(),
                visited.value(discharge).into(),
                scene.cost(Cost::BatteryWear, discharge).into(),
            ]);
        }
    }
}

/// The table of commitments.
pub(super) fn commitments() -> Table {
    let mut columns = stage_columns().to_vec();
    columns.extend(thing_columns("thermal_id", "thermal", "thermal plant"));
    columns.extend([
        Column::new(
            "delivery_stage",
            Kind::Integer,
            "number of the stage that generation is committed for, from 1",
        ),
        Column::number("committed_mw", "MW", "mean power of that stage"),
        Column::number("cost", "$", COST),
    ]);
    Table::new("simulation/commitments", columns)
}

pub(super) fn fill_commitments(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (plant, layout) in scene.results.thermals.iter().zip(&stage.layout.thermals) {
        let decided = layout.commitment.iter().flat_map(|layout| &layout.decided);
        for decision in decided {
            let mut cost = 0.0;
            for &column in &decision.paid {
                cost += scene.cost(Cost::Commitment, column);
            }
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                plant.id.into(),
                plant.name.as_str().into(),
                (decision.stage + 1).into(),
                visited.value(decision.power).into(),
                cost.into(),
            ]);
        }
    }
}

/// The table of groups of units.
pub(super) fn units() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("hydro_id", "hydro", "hydro plant"));
    columns.extend(thing_columns(
        "unit_group_id",
        "unit_group",
        "group of units",
    ));
    columns.extend([
        bus_column("bus_id", "number of the bus it feeds"),
        Column::number("turbined_m3s", "m³/s", "flow through its turbines"),
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
    ]);
    Table::new("simulation/hydro_units", columns)
}

pub(super) fn fill_units(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
            for (group, unit) in plant.units.iter().zip(&layout.units) {
                let turbined = visited.value(unit.turbined[block]);
                let (column, factor) = unit.generation(block);
                let generation = 0.0 + factor * visited.value(column);
                rows.push(&[
                    visited.scenario.into(),
                    visited.stage.into(),
                    (block + 1).into(),
                    hours.into(),
                    plant.thing.id.into(),
                    plant.thing.name.as_str().into(),
                    group.id.into(),
                    group.name.as_str().into(),
                    group.bus.into(),
                    turbined.into(),
                    generation.into(),
                    scene
                        .beyond(Cost::MinTurbined, &unit.turbined_below, block)
                        .into(),
                    scene
                        .beyond(Cost::MinGeneration, &unit.generation_below, block)
                        .into(),
                ]);
            }
        }
    }
}
