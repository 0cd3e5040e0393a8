//! Pumping stations: water that is lifted from one plant to another.

use super::Program;
use super::layout::PumpingLayout;
use super::water_worth::{burden, by_terms, dearest_energy, saving};
use crate::hydrothermal::system::{Pumping, System, Variable};

/// Adds the flows of pumping stations to the program of a stage and to the balances of water; those of energy have terms
/// of them.
pub(super) fn add(program: &mut Program<'_>) {
    for (place, station) in program.system.pumping.iter().enumerate() {
        let limits = &station.limits[program.number];
        let flow = program.by_block_of("pumped", &station.label, |block, _| {
            (0.0, 0.0, limits[block][1])
        });
        for (block, &column) in flow.iter().enumerate() {
            let (from, to) = (Some(station.source), Some(station.destination));
            program.move_water(from, to, block, column);
        }
        let mut layout = PumpingLayout {
            flow,
            below: Vec::new(),
        };
        if limits.iter().any(|[least, _]| *least > 0.0) {
            let price = price(program.system, place, station);
            layout.below =
                program.by_block("pumped_below", &station.label, price, 0.0, f64::INFINITY);
            for (block, _, name) in program.blocks() {
                let name = format!("min_pumped.{}.{name}", station.label);
                let terms = [(layout.flow[block], 1.0), (layout.below[block], 1.0)];
                program
                    .lp
                    .row(name, limits[block][0], f64::INFINITY, &terms);
            }
        }
        program.layout.pumping.push(layout);
    }
}

/// More than 1 m³/s that is not pumped for an hour can save, $/(m³/s·h): at this price a minimum is missed only where
/// there is no water for it.
fn price(system: &System, place: usize, station: &Pumping) -> f64 {
    let source = saving(system, station.source);
    let destination = burden(system, station.destination);
    let constraints = by_terms(system, |of| match of.variable {
        Variable::PumpingFlow if of.thing == place => 1.0,
        Variable::PumpingPower if of.thing == place => station.consumption,
        _ => 0.0,
    });
    let energy = dearest_energy(system) * station.consumption;
    1.1 * (energy + source + destination + constraints)
}
