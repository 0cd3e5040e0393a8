//! Thermal plants, sources, buses and lines, by block.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, buses, lines, sources, thermals};

use super::PathStage;

pub(super) fn fill_thermals(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in path_stage
            .results
            .thermals
            .iter()
            .zip(&stage.layout.thermals)
        {
            let mut cost = 0.0;
            for &column in &layout.paid[block] {
                cost += path_stage.cost(CostKind::Thermal, column);
            }
            let row = thermals::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                thermal_id: plant.id,
                thermal: &plant.name,
                bus_id: plant.bus,
                generation_mw: visited.value(layout.generation[block]),
                cost,
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_sources(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (source, columns) in path_stage.results.sources.iter().zip(&stage.layout.sources) {
            let column = columns[block];
            let (available, taken) = (visited.upper(column), visited.value(column));
            let row = sources::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                source_id: source.id,
                source: &source.name,
                bus_id: source.bus,
                available_mw: available,
                generation_mw: taken,
                curtailed_mw: (available - taken).max(0.0),
                cost: path_stage.cost(CostKind::Source, column),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_buses(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (bus, layout) in path_stage.results.buses.iter().zip(&stage.layout.buses) {
            let (mut short, mut short_cost) = (0.0, 0.0);
            for segment in &layout.deficit {
                short += visited.value(segment[block]);
                short_cost += path_stage.cost(CostKind::Deficit, segment[block]);
            }
            let (balance, excess) = (layout.energy[block], layout.excess[block]);
            let row = buses::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                bus_id: bus.id,
                bus: &bus.name,
                load_mw: visited.least(balance),
                deficit_mw: short,
                excess_mw: visited.value(excess),
                marginal_cost_per_mwh: (0.0 + visited.dual(balance) / hours),
                deficit_cost: short_cost,
                excess_cost: path_stage.cost(CostKind::Excess, excess),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_lines(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (line, ways) in path_stage.results.lines.iter().zip(&stage.layout.lines) {
            let [direct, reverse] = [&ways[0], &ways[1]].map(|way| visited.value(way[block]));
            let cost = path_stage.cost(CostKind::Exchange, ways[0][block])
                + path_stage.cost(CostKind::Exchange, ways[1][block]);
            let row = lines::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                line_id: line.entity.id,
                line: &line.entity.name,
                from_bus_id: line.entity.bus,
                to_bus_id: line.to,
                direct_mw: direct,
                reverse_mw: reverse,
                losses_mw: ((direct + reverse) * (1.0 - line.arrives)),
                cost,
            };
            rows.push(&row.cells());
        }
    }
}
