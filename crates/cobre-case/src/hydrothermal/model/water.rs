//! Water: flows of plants, their reservoirs, and the balance of each in every period.
//!
//! A period is a stage whose blocks are parallel, or a block of a stage whose blocks are chronological.

use cobre_sddp::{ColumnId, Draft};

use super::inflow::{self, lag_name};
use super::{HydroLayout, Program, evaporation, limits, production, travel};
use crate::hydrothermal::system::{Hydro, HydroPhase, Production, System};

pub(super) const UNLIMITED: f64 = f64::INFINITY;

/// Adds the state variables: storage, inflows of stages before, and water under way.
pub(super) fn states(system: &System, draft: &mut Draft) {
    for plant in system.hydros.iter().filter(|plant| plant.stores()) {
        draft.state(format!("storage.{}", plant.label), plant.initial_storage);
    }
    for plant in &system.hydros {
        for (place, past) in plant.inflow.past.iter().enumerate() {
            draft.state(lag_name(plant, place), *past);
        }
    }
    travel::states(system, draft);
}

/// Adds the plants to the program of a stage, all but their balances: whatever else moves water can join those by
/// [`Program::move_water`] until [`balance`] closes them.
pub(super) fn add(program: &mut Program<'_>) {
    let plants = &program.system.hydros;
    for (place, plant) in plants.iter().enumerate() {
        flows(program, plant);
        storage(program, place, plant);
    }
    for (place, plant) in plants.iter().enumerate() {
        own_water(program, place, plant);
        production::add(program, place, plant);
        evaporation::add(program, place, plant);
        withdrawal(program, place, plant);
        limits::add(program, place, plant);
    }
}

/// The flows of a plant by block.
fn flows(program: &mut Program<'_>, plant: &Hydro) {
    let number = program.number;
    let (limits, costs) = (&plant.block_limits[number], *plant.costs(number));
    let phase = plant.phases[number];
    let works = phase == HydroPhase::Operating;
    let turbined = program.by_block_of("turbined", &plant.label, |block, hours| {
        let limits = &limits[block];
        match plant.production(number) {
            _ if !works => (0.0, 0.0, 0.0),
            // Generation is turbined flow times productivity, so its limit is one of flow.
            Production::Constant(productivity) => {
                let most = limits.max_generation / productivity;
                let cost = costs.turbined_constant * hours;
                (cost, 0.0, limits.max_turbined.min(most))
            }
            Production::Planes(_) => (costs.turbined * hours, 0.0, limits.max_turbined),
        }
    });
    // All water flows past a plant that is not there, whichever way.
    let (least, cost) = if phase.passes() {
        (-UNLIMITED, 0.0)
    } else {
        (0.0, costs.spillage)
    };
    let spilled = program.by_block("spilled", &plant.label, cost, least, UNLIMITED);
    let diverted = if plant.diverts_to.is_some() {
        program.by_block_of("diverted", &plant.label, |block, hours| {
            let most = if works {
                limits[block].max_diversion
            } else {
                0.0
            };
            (costs.diversion * hours, 0.0, most)
        })
    } else {
        Vec::new()
    };
    program.layout.hydros.push(HydroLayout {
        turbined,
        spilled,
        diverted,
        ..HydroLayout::default()
    });
}

/// The storage of a plant before the stage and after each period.
fn storage(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    if !plant.stores() {
        return;
    }
    let (label, number) = (&plant.label, program.number);
    let most = match plant.phases[number] {
        // What is there stays, whatever the limits of the plant to come.
        HydroPhase::Absent => UNLIMITED,
        HydroPhase::Retired => 0.0,
        HydroPhase::Filling { .. } | HydroPhase::Operating => plant.limits[number].max_storage,
    };
    let name = format!("storage_before.{label}");
    let before = program.lp.column(name, 0.0, -UNLIMITED, UNLIMITED);
    let last = program.stage.periods() - 1;
    let inner = if plant.phases[number] == HydroPhase::Absent {
        0
    } else {
        last
    };
    let mut levels: Vec<ColumnId> = (0..inner)
        .map(|period| {
            let name = program.period_name("storage", label, period);
            program.lp.column(name, 0.0, 0.0, most)
        })
        .collect();
    let after = program
        .lp
        .column(format!("storage.{label}"), 0.0, 0.0, most);
    levels.resize(last + 1, after);
    program.lp.state(format!("storage.{label}"), before, after);
    let layout = &mut program.layout.hydros[place];
    (layout.storage, layout.levels) = (Some([before, after]), levels);
    if plant.phases[number] == HydroPhase::Absent {
        let name = format!("unchanged.{label}");
        program
            .lp
            .row(name, 0.0, 0.0, &[(after, 1.0), (before, -1.0)]);
        return;
    }
    for period in 0..=last {
        let [before, after] = program.storages(place, period).unwrap_or([before, after]);
        program.add_volume(place, period, after, 1.0);
        program.add_volume(place, period, before, -1.0);
    }
}

/// Releases of a plant: they leave it, and reach the plants below.
fn own_water(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let layout = &program.layout.hydros[place];
    let released = [layout.turbined.clone(), layout.spilled.clone()];
    let diverted = layout.diverted.clone();
    let travels = travel::add(program, place, plant);
    for (block, _, _) in program.blocks() {
        for columns in &released {
            program.move_water(Some(place), None, block, columns[block]);
            if !travels {
                program.move_water(None, plant.downstream, block, columns[block]);
            }
        }
        if let Some(column) = diverted.get(block) {
            program.move_water(Some(place), plant.diverts_to, block, *column);
        }
    }
}

/// Water taken out for other uses, or returned: the amount stands in the balance, and what differs from it here.
fn withdrawal(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let wanted = plant.limits[program.number].withdrawal;
    if wanted == 0.0 {
        return;
    }
    let costs = *plant.costs(program.number);
    let hours = program.stage.total_hours();
    // Withdrawal does not become return, nor return withdrawal.
    let (most_below, most_above) = if wanted > 0.0 {
        (wanted, UNLIMITED)
    } else {
        (UNLIMITED, -wanted)
    };
    let label = &plant.label;
    let mut slack = |what: &str, cost: f64, most: f64| {
        let name = format!("{what}.{label}");
        program.lp.column(name, cost * hours, 0.0, most)
    };
    let below = slack("withdrawal_below", costs.withdrawal_below, most_below);
    let above = slack("withdrawal_above", costs.withdrawal_above, most_above);
    for period in 0..program.stage.periods() {
        let volume = program.stage.period_volume(period);
        program.add_volume(place, period, below, -volume);
        program.add_volume(place, period, above, volume);
    }
    program.layout.hydros[place].withdrawal = Some((wanted, [below, above]));
}

/// Closes the balances of all plants, given what inflows are never below:
///
/// storage after − storage before + ζ · (what leaves − what comes) = ζ · (inflow − withdrawal)
pub(super) fn balance(program: &mut Program<'_>, lowest: &[Vec<f64>]) {
    for (place, plant) in program.system.hydros.iter().enumerate() {
        let inflow = inflow::add(program, place, plant, lowest[place][program.number]);
        let withdrawal = plant.limits[program.number].withdrawal;
        for period in 0..program.stage.periods() {
            let volume = program.stage.period_volume(period);
            let known = volume * (inflow - withdrawal);
            let name = program.period_name("water", &plant.label, period);
            let terms = std::mem::take(&mut program.water[place][period]);
            let row = program.lp.row(name, known, known, &terms);
            program.layout.hydros[place].water.push(row);
        }
        let layout = &mut program.layout.hydros[place];
        if layout.drawn.is_none() {
            layout.drawn = layout.water.first().copied();
        }
    }
}
