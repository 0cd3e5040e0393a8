//! Energy: sources, contracts, lines, and the balance of every bus in every block.

use cobre_sddp::ColumnId;

use super::{BusLayout, Program};
use crate::hydrothermal::files::equipment::ContractKind;

/// Adds everything but water to the program of a stage.
pub(super) fn add(program: &mut Program<'_>) {
    let system = program.system;
    // By bus and block.
    let blocks = program.stage.hours.len();
    let mut supply: Vec<Vec<Vec<(ColumnId, f64)>>> =
        vec![vec![Vec::new(); blocks]; system.buses.len()];
    for (plant, layout) in system.hydros.iter().zip(&program.layout.hydros) {
        for block in 0..blocks {
            if plant.units.is_empty() {
                supply[plant.bus][block].push(layout.generation(block));
            }
            for (group, unit) in plant.units.iter().zip(&layout.units) {
                supply[group.bus][block].push(unit.generation(block));
            }
        }
    }
    let mut give = |bus: usize, columns: &[ColumnId], factor: f64| {
        for (block, column) in columns.iter().enumerate() {
            supply[bus][block].push((*column, factor));
        }
    };
    for (plant, layout) in system.thermals.iter().zip(&program.layout.thermals) {
        give(plant.bus, &layout.generation, 1.0);
    }
    for (station, layout) in system.pumping.iter().zip(&program.layout.pumping) {
        give(station.bus, &layout.flow, -station.consumption);
    }
    for (battery, layout) in system.batteries.iter().zip(&program.layout.batteries) {
        give(battery.bus, &layout.charge, -1.0);
        give(battery.bus, &layout.discharge, 1.0);
    }
    let number = program.number;
    for source in &system.sources {
        let share = source.availability[number].mean;
        let cost = source.curtailment_cost[number];
        let columns = program.by_block_of("source", &source.label, |block, hours| {
            let most = source.available(number, block, share);
            let least = if source.may_curtail { 0.0 } else { most };
            (-cost * hours, least, most)
        });
        give(source.bus, &columns, 1.0);
        program.layout.sources.push(columns);
    }
    for contract in &system.contracts {
        let terms = &contract.terms[number];
        let (what, factor) = match contract.kind {
            ContractKind::Import => ("import", 1.0),
            ContractKind::Export => ("export", -1.0),
        };
        let columns = program.by_block_of(what, &contract.label, |block, hours| {
            let terms = &terms[block];
            (terms.price * hours, terms.min, terms.max)
        });
        give(contract.bus, &columns, factor);
        program.layout.contracts.push(columns);
    }
    for line in &system.lines {
        let ways = [
            ("direct", line.from, line.to),
            ("reverse", line.to, line.from),
        ];
        let mut sent = Vec::new();
        for (way, (what, from, to)) in ways.into_iter().enumerate() {
            let capacity = &line.capacity[number];
            let columns = program.by_block_of(what, &line.label, |block, hours| {
                (line.cost[number] * hours, 0.0, capacity[block][way])
            });
            give(from, &columns, -1.0);
            give(to, &columns, line.arrives);
            sent.push(columns);
        }
        let reverse = sent.pop().unwrap_or_default();
        let direct = sent.pop().unwrap_or_default();
        program.layout.lines.push([direct, reverse]);
    }
    for (place, bus) in system.buses.iter().enumerate() {
        let mut layout = BusLayout::default();
        for (number, (depth, cost)) in bus.deficit.iter().enumerate() {
            let what = format!("deficit{}", number + 1);
            let short = program.by_block(&what, &bus.label, *cost, 0.0, *depth);
            give(place, &short, 1.0);
            layout.deficit.push(short);
        }
        let excess = program.by_block(
            "excess",
            &bus.label,
            bus.excess_cost[number],
            0.0,
            f64::INFINITY,
        );
        give(place, &excess, -1.0);
        layout.excess = excess;
        program.layout.buses.push(layout);
    }
    for (place, (bus, supply)) in system.buses.iter().zip(&supply).enumerate() {
        let load = bus.load[program.number].mean;
        let rows = program.blocks().map(|(block, _, name)| {
            let load = load * bus.factors[program.number][block];
            let name = format!("energy.{}.{name}", bus.label);
            program.lp.row(name, load, load, &supply[block])
        });
        program.layout.buses[place].energy = rows.collect();
    }
}
