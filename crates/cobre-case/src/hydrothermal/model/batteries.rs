//! Batteries: energy stored at a bus.

use cobre_sddp::{ColumnId, Draft};

use super::Program;
use super::layout::BatteryLayout;
use crate::hydrothermal::system::{Battery, System};

const UNLIMITED: f64 = f64::INFINITY;
/// A part of a level that is as good as nothing.
const NOTHING: f64 = 1e-9;

/// Adds the state variables: levels.
pub(super) fn states(system: &System, draft: &mut Draft) {
    for battery in &system.batteries {
        draft.state(format!("level.{}", battery.label), battery.initial_level);
    }
}

/// Adds the batteries to the program of a stage; balances of energy have terms of them.
pub(super) fn add(program: &mut Program<'_>) {
    for battery in &program.system.batteries {
        let layout = add_battery(program, battery);
        program.layout.batteries.push(layout);
    }
}

fn add_battery(program: &mut Program<'_>, battery: &Battery) -> BatteryLayout {
    let label = &battery.label;
    let limits = &battery.limits[program.number];
    let charge = program.by_block_of("charge", label, |block, _| (0.0, 0.0, limits[block][0]));
    let discharge = program.by_block_of("discharge", label, |block, hours| {
        (battery.degradation_cost * hours, 0.0, limits[block][1])
    });
    let lp = &mut program.lp;
    let before = lp.column(format!("level_before.{label}"), 0.0, -UNLIMITED, UNLIMITED);
    let after = lp.column(format!("level.{label}"), 0.0, 0.0, battery.capacity);
    lp.state(format!("level.{label}"), before, after);
    let mut levels: Vec<ColumnId> = (1..program.stage.periods())
        .map(|period| {
            let name = program.period_name("level", label, period - 1);
            program.lp.column(name, 0.0, 0.0, battery.capacity)
        })
        .collect();
    levels.push(after);
    let mut layout = BatteryLayout {
        levels,
        charge,
        discharge,
        level: [before, after],
        balance: Vec::new(),
        below: None,
    };
    layout.balance = balances(program, battery, &layout);
    if battery.is_there[program.number] && battery.min_level > 0.0 {
        let cost = battery.level_below_cost;
        let below = program
            .lp
            .column(format!("level_below.{label}"), cost, 0.0, UNLIMITED);
        let terms = [(after, 1.0), (below, 1.0)];
        let name = format!("min_level.{label}");
        program.lp.row(name, battery.min_level, UNLIMITED, &terms);
        layout.below = Some(below);
    }
    layout
}

/// In every period: level after − what is left of the level before − Σ τ · (charge efficiency · charge − discharge /
/// discharge efficiency) = 0.
fn balances(
    program: &mut Program<'_>,
    battery: &Battery,
    layout: &BatteryLayout,
) -> Vec<cobre_sddp::RowId> {
    let mut rows = Vec::new();
    let mut before = layout.level[0];
    for (period, &after) in layout.levels.iter().enumerate() {
        let blocks = program.blocks();
        let blocks = blocks.filter(|(block, _, _)| program.stage.period_of(*block) == period);
        let blocks: Vec<(usize, f64)> = blocks.map(|(block, hours, _)| (block, hours)).collect();
        let hours: f64 = blocks.iter().map(|(_, hours)| hours).sum();
        // A battery that is not there keeps its level.
        let retained = if battery.is_there[program.number] {
            battery.retained(hours)
        } else {
            1.0
        };
        let mut terms = vec![(after, 1.0)];
        if retained > NOTHING {
            terms.push((before, -retained));
        }
        for (block, hours) in blocks {
            terms.extend(flows(battery, layout, block, hours));
        }
        let name = program.period_name("energy_stored", &battery.label, period);
        rows.push(program.lp.row(name, 0.0, 0.0, &terms));
        before = after;
    }
    rows
}

/// The terms of what a block takes from the store.
fn flows(
    battery: &Battery,
    layout: &BatteryLayout,
    block: usize,
    hours: f64,
) -> [(ColumnId, f64); 2] {
    [
        (layout.charge[block], -hours * battery.charge_efficiency),
        (
            layout.discharge[block],
            hours / battery.discharge_efficiency,
        ),
    ]
}
