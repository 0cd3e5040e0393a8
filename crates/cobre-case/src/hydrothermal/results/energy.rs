//! Thermal plants, sources, buses and lines, by block.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, buses, lines, sources, thermals};

use super::Scene;

pub(super) fn fill_thermals(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.thermals.iter().zip(&stage.layout.thermals) {
            let mut cost = 0.0;
            for &column in &layout.paid[block] {
                cost += scene.cost(CostKind::Thermal, column);
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

pub(super) fn fill_sources(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (source, columns) in scene.results.sources.iter().zip(&stage.layout.sources) {
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
                cost: scene.cost(CostKind::Source, column),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_buses(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (bus, layout) in scene.results.buses.iter().zip(&stage.layout.buses) {
            let (mut short, mut short_cost) = (0.0, 0.0);
            for segment in &layout.deficit {
                short += visited.value(segment[block]);
                short_cost += scene.cost(CostKind::Deficit, segment[block]);
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
                excess_cost: scene.cost(CostKind::Excess, excess),
            };
            rows.push(&row.cells());
        }
    }
}

pub(super) fn fill_lines(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (line, ways) in scene.results.lines.iter().zip(&stage.layout.lines) {
            let [direct, reverse] = [&ways[0], &ways[1]].map(|way| visited.value(way[block]));
            let cost = scene.cost(CostKind::Exchange, ways[0][block])
                + scene.cost(CostKind::Exchange, ways[1][block]);
            let row = lines::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                line_id: line.thing.id,
                line: &line.thing.name,
                from_bus_id: line.thing.bus,
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
