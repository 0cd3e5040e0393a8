//! Energy: thermal plants, sources, lines, and the balance of every bus in every block.

use cobre_sddp::ColumnId;

use super::{BusLayout, Program};

/// Adds everything but water to the program of a stage.
pub(super) fn add(program: &mut Program<'_>) {
    let system = program.system;
    // By bus and block.
    let blocks = program.stage.hours.len();
    let mut supply: Vec<Vec<Vec<(ColumnId, f64)>>> =
        vec![vec![Vec::new(); blocks]; system.buses.len()];
    for (plant, layout) in system.hydros.iter().zip(&program.layout.hydros) {
        for block in 0..blocks {
            let (column, factor) = layout.generation(block);
            supply[plant.bus][block].push((column, factor));
        }
    }
    let mut give = |bus: usize, columns: &[ColumnId], factor: f64| {
        for (block, column) in columns.iter().enumerate() {
            supply[bus][block].push((*column, factor));
        }
    };
    for plant in &system.thermals {
        let limits = &plant.limits[program.number];
        let columns: Vec<ColumnId> = program
            .blocks()
            .map(|(block, hours, name)| {
                let limits = limits[block];
                let name = format!("thermal.{}.{name}", plant.label);
                program
                    .lp
                    .column(name, limits.cost * hours, limits.min, limits.max)
            })
            .collect();
        give(plant.bus, &columns, 1.0);
        program.layout.thermals.push(columns);
    }
    for source in &system.sources {
        let mean = source.availability[program.number].mean.min(1.0);
        let columns: Vec<ColumnId> = program
            .blocks()
            .map(|(block, hours, name)| {
                let most = source.capacity * mean * source.factors[program.number][block];
                let least = if source.may_curtail { 0.0 } else { most };
                let name = format!("source.{}.{name}", source.label);
                program
                    .lp
                    .column(name, -source.curtailment_cost * hours, least, most)
            })
            .collect();
        give(source.bus, &columns, 1.0);
        program.layout.sources.push(columns);
    }
    for line in &system.lines {
        let (direct, reverse) = line.capacity[program.number];
        let ways = [
            ("direct", line.from, line.to, direct),
            ("reverse", line.to, line.from, reverse),
        ];
        let sent = ways.map(|(what, from, to, most)| {
            let sent = program.by_block(what, &line.label, line.cost, 0.0, most);
            give(from, &sent, -1.0);
            give(to, &sent, line.arrives);
            sent
        });
        program.layout.lines.push(sent);
    }
    for (place, bus) in system.buses.iter().enumerate() {
        let mut layout = BusLayout::default();
        for (number, (depth, cost)) in bus.deficit.iter().enumerate() {
            let what = format!("deficit{}", number + 1);
            let short = program.by_block(&what, &bus.label, *cost, 0.0, *depth);
            give(place, &short, 1.0);
            layout.deficit.push(short);
        }
        let excess = program.by_block("excess", &bus.label, bus.excess_cost, 0.0, f64::INFINITY);
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
