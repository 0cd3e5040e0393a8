//! Travel time: releases reach the plant below later, and water under way is state.

use cobre_sddp::{ColumnId, Draft};

use super::Program;
use super::water::UNLIMITED;
use crate::hydrothermal::system::{Hydro, System};

/// Adds the state variables: volumes under way by the period of their arrival.
pub(super) fn states(system: &System, draft: &mut Draft) {
    for plant in &system.hydros {
        let under_way = plant.travel.iter().flat_map(|travel| &travel.under_way);
        for (place, volume) in under_way.enumerate() {
            draft.state(state_name(plant, place), *volume);
        }
    }
}

/// The volume that arrives in the n-th period after this stage, from 1.
fn state_name(plant: &Hydro, place: usize) -> String {
    format!("under_way{}.{}", place + 1, plant.label)
}

/// Adds the way of a plant's releases, if it takes time; says whether it does.
///
/// In period p of the stage arrives what was under way to it, and the shares of this stage's releases that are that
/// fast. The rest is under way after the stage.
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro) -> bool {
    let (Some(travel), Some(below)) = (&plant.travel, plant.downstream) else {
        return false;
    };
    let (count, periods) = (travel.under_way.len(), program.stage.periods());
    let column = |program: &mut Program<'_>, name: String| {
        program.lp.column(name, 0.0, -UNLIMITED, UNLIMITED)
    };
    let before: Vec<ColumnId> = (0..count)
        .map(|number| column(program, format!("{}.before", state_name(plant, number))))
        .collect();
    // By period of arrival, counted from the first of the stage.
    let mut arrivals: Vec<Vec<(ColumnId, f64)>> = vec![Vec::new(); periods + count];
    for (number, before) in before.iter().enumerate() {
        arrivals[number].push((*before, 1.0));
    }
    for (period, shares) in travel.shares[program.number].iter().enumerate() {
        for block in program.stage.blocks_of(period) {
            let layout = &program.layout.hydros[place];
            let volume = program.stage.volume(block);
            for column in [layout.turbined[block], layout.spilled[block]] {
                for (arrival, share) in shares {
                    arrivals[*arrival].push((column, share * volume));
                }
            }
        }
    }
    let later = arrivals.split_off(periods);
    program.layout.hydros[place].arriving = Some(arrivals.concat());
    for (period, terms) in arrivals.into_iter().enumerate() {
        for (column, volume) in terms {
            program.add_volume(below, period, column, -volume);
        }
    }
    let mut after = Vec::new();
    for (number, mut terms) in later.into_iter().enumerate() {
        let name = state_name(plant, number);
        let own = column(program, name.clone());
        terms.push((own, -1.0));
        program.lp.row(format!("travel.{name}"), 0.0, 0.0, &terms);
        program.lp.state(name, before[number], own);
        after.push(own);
    }
    program.layout.hydros[place].under_way = after;
    true
}
