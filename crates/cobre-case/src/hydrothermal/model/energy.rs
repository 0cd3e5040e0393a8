//! Energy: sources, contracts, lines, and the balance of every bus in every block.

use cobre_sddp::ColumnId;

use super::{BusLayout, Program};
use crate::hydrothermal::files::equipment::ContractKind;

/// The terms of energy balances so far, MW that reach a bus, by bus and block.
struct BusSupply(Vec<Vec<Vec<(ColumnId, f64)>>>);

impl BusSupply {
    /// Gives a bus a multiple of the columns of each block.
    fn give(&mut self, bus: usize, columns: &[ColumnId], factor: f64) {
        for (terms, column) in self.0[bus].iter_mut().zip(columns) {
            terms.push((*column, factor));
        }
    }

    /// Gives a bus the term of each block.
    fn give_terms(&mut self, bus: usize, term: impl Fn(usize) -> (ColumnId, f64)) {
        for (block, terms) in self.0[bus].iter_mut().enumerate() {
            terms.push(term(block));
        }
    }
}

/// Adds sources, contracts, lines and buses to the program of a stage, and closes the balances of energy.
pub(super) fn add(program: &mut Program<'_>) {
    let system = program.system;
    let blocks = program.stage.hours.len();
    let mut supply = BusSupply(vec![vec![Vec::new(); blocks]; system.buses.len()]);
    plants(program, &mut supply);
    sources(program, &mut supply);
    contracts(program, &mut supply);
    lines(program, &mut supply);
    buses(program, &mut supply);
    for (place, (bus, terms)) in system.buses.iter().zip(&supply.0).enumerate() {
        let load = bus.load[program.number].mean;
        let rows = program.blocks().map(|(block, _, name)| {
            let load = load * bus.factors[program.number][block];
            let name = format!("energy.{}.{name}", bus.label);
            program.lp.row(name, load, load, &terms[block])
        });
        program.layout.buses[place].energy = rows.collect();
    }
}

/// The parts that are in the program already: plants, pumping stations and batteries.
fn plants(program: &Program<'_>, supply: &mut BusSupply) {
    let system = program.system;
    for (plant, layout) in system.hydros.iter().zip(&program.layout.hydros) {
        if plant.units.is_empty() {
            supply.give_terms(plant.bus, |block| layout.generation(block));
        }
        for (group, unit) in plant.units.iter().zip(&layout.units) {
            supply.give_terms(group.bus, |block| unit.generation(block));
        }
    }
    for (plant, layout) in system.thermals.iter().zip(&program.layout.thermals) {
        supply.give(plant.bus, &layout.generation, 1.0);
    }
    for (station, layout) in system.pumping.iter().zip(&program.layout.pumping) {
        supply.give(station.bus, &layout.flow, -station.consumption);
    }
    for (battery, layout) in system.batteries.iter().zip(&program.layout.batteries) {
        supply.give(battery.bus, &layout.charge, -1.0);
        supply.give(battery.bus, &layout.discharge, 1.0);
    }
}

fn sources(program: &mut Program<'_>, supply: &mut BusSupply) {
    let number = program.number;
    for source in &program.system.sources {
        let share = source.availability[number].mean;
        let cost = source.curtailment_cost[number];
        let columns = program.by_block_of("source", &source.label, |block, hours| {
            let most = source.available(number, block, share);
            let least = if source.may_curtail { 0.0 } else { most };
            (-cost * hours, least, most)
        });
        supply.give(source.bus, &columns, 1.0);
        program.layout.sources.push(columns);
    }
}

fn contracts(program: &mut Program<'_>, supply: &mut BusSupply) {
    for contract in &program.system.contracts {
        let terms = &contract.terms[program.number];
        let (what, factor) = match contract.kind {
            ContractKind::Import => ("import", 1.0),
            ContractKind::Export => ("export", -1.0),
        };
        let columns = program.by_block_of(what, &contract.label, |block, hours| {
            let terms = &terms[block];
            (terms.price * hours, terms.min, terms.max)
        });
        supply.give(contract.bus, &columns, factor);
        program.layout.contracts.push(columns);
    }
}

fn lines(program: &mut Program<'_>, supply: &mut BusSupply) {
    let number = program.number;
    for line in &program.system.lines {
        let ways = [
            (0, "direct", line.from, line.to),
            (1, "reverse", line.to, line.from),
        ];
        let sent = ways.map(|(way, what, from, to)| {
            let capacity = &line.capacity[number];
            let columns = program.by_block_of(what, &line.label, |block, hours| {
                (line.cost[number] * hours, 0.0, capacity[block][way])
            });
            supply.give(from, &columns, -1.0);
            supply.give(to, &columns, line.arrives);
            columns
        });
        program.layout.lines.push(sent);
    }
}

/// Load that is not served and energy that nobody takes.
fn buses(program: &mut Program<'_>, supply: &mut BusSupply) {
    for (place, bus) in program.system.buses.iter().enumerate() {
        let mut layout = BusLayout::default();
        for (number, (depth, cost)) in bus.deficit.iter().enumerate() {
            let what = format!("deficit{}", number + 1);
            let short = program.by_block(&what, &bus.label, *cost, 0.0, *depth);
            supply.give(place, &short, 1.0);
            layout.deficit.push(short);
        }
        let cost = bus.excess_cost[program.number];
        let excess = program.by_block("excess", &bus.label, cost, 0.0, f64::INFINITY);
        supply.give(place, &excess, -1.0);
        layout.excess = excess;
        program.layout.buses.push(layout);
    }
}
