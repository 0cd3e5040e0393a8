//! Thermal plants, sources, buses and lines, by block.

use cobre_sddp::{Column, Rows, Table};

use super::costs::Cost;
use super::{Scene, block_columns, bus_column, thing_columns};

const COST: &str = "what it adds to the cost of the stage";

/// The table of thermal plants.
pub(super) fn thermals() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("thermal_id", "thermal", "thermal plant"));
    columns.extend([
        bus_column("bus_id", "number of the bus it feeds"),
        Column::number("generation_mw", "MW", "power generated"),
        Column::number("cost", "$", COST),
    ]);
    Table::new("simulation/thermals", columns)
}

pub(super) fn fill_thermals(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.thermals.iter().zip(&stage.layout.thermals) {
            let mut cost = 0.0;
            for &column in &layout.paid[block] {
                cost += scene.cost(Cost::Thermal, column);
            }
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                plant.id.into(),
                plant.name.as_str().into(),
                plant.bus.into(),
                visited.value(layout.generation[block]).into(),
                cost.into(),
            ]);
        }
    }
}

/// The table of non-controllable sources.
pub(super) fn sources() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns(
        "source_id",
        "source",
        "non-controllable source",
    ));
    columns.extend([
        bus_column("bus_id", "number of the bus it feeds"),
        Column::number("available_mw", "MW", "power that could be had"),
        Column::number("generation_mw", "MW", "power taken"),
        Column::number("curtailed_mw", "MW", "power that could be had and was not taken"),
        Column::number(
            "cost",
            "$",
            "what it adds to the cost of the stage: energy taken is credited the curtailment cost, so it is not above zero",
        ),
    ]);
    Table::new("simulation/sources", columns)
}

pub(super) fn fill_sources(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (source, columns) in scene.results.sources.iter().zip(&stage.layout.sources) {
            let column = columns[block];
            let (available, taken) = (visited.upper(column), visited.value(column));
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                source.id.into(),
                source.name.as_str().into(),
                source.bus.into(),
                available.into(),
                taken.into(),
                (available - taken).max(0.0).into(),
                scene.cost(Cost::Source, column).into(),
            ]);
        }
    }
}

/// The table of buses.
pub(super) fn buses() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("bus_id", "bus", "bus"));
    columns.extend([
        Column::number("load_mw", "MW", "load"),
        Column::number("deficit_mw", "MW", "load that is not served"),
        Column::number("excess_mw", "MW", "power that nobody takes"),
        Column::number(
            "marginal_cost_per_mwh",
            "$/MWh",
            "what one more MWh of load costs now and later, in money of this stage",
        ),
        Column::number(
            "deficit_cost",
            "$",
            "what the deficit adds to the cost of the stage",
        ),
        Column::number(
            "excess_cost",
            "$",
            "what the excess adds to the cost of the stage",
        ),
    ]);
    Table::new("simulation/buses", columns)
}

pub(super) fn fill_buses(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (bus, layout) in scene.results.buses.iter().zip(&stage.layout.buses) {
            let (mut short, mut short_cost) = (0.0, 0.0);
            for segment in &layout.deficit {
                short += visited.value(segment[block]);
                short_cost += scene.cost(Cost::Deficit, segment[block]);
            }
            let (balance, excess) = (layout.energy[block], layout.excess[block]);
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                bus.id.into(),
                bus.name.as_str().into(),
                visited.least(balance).into(),
                short.into(),
                visited.value(excess).into(),
                (0.0 + visited.dual(balance) / hours).into(),
                short_cost.into(),
                scene.cost(Cost::Excess, excess).into(),
            ]);
        }
    }
}

/// The table of lines.
pub(super) fn lines() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("line_id", "line", "line"));
    columns.extend([
        bus_column("from_bus_id", "number of the bus at its beginning"),
        bus_column("to_bus_id", "number of the bus at its end"),
        Column::number(
            "direct_mw",
            "MW",
            "power sent from its beginning to its end",
        ),
        Column::number(
            "reverse_mw",
            "MW",
            "power sent from its end to its beginning",
        ),
        Column::number("losses_mw", "MW", "power sent that does not arrive"),
        Column::number("cost", "$", COST),
    ]);
    Table::new("simulation/lines", columns)
}

pub(super) fn fill_lines(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (line, ways) in scene.results.lines.iter().zip(&stage.layout.lines) {
            let [direct, reverse] = [&ways[0], &ways[1]].map(|way| visited.value(way[block]));
            let cost = scene.cost(Cost::Exchange, ways[0][block])
                + scene.cost(Cost::Exchange, ways[1][block]);
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                line.thing.id.into(),
                line.thing.name.as_str().into(),
                line.thing.bus.into(),
                line.to.into(),
                direct.into(),
                reverse.into(),
                ((direct + reverse) * (1.0 - line.arrives)).into(),
                cost.into(),
            ]);
        }
    }
}
