//! Inflows: as they are drawn, or as they follow from those before.

use cobre_sddp::ColumnId;

use super::Program;
use super::water::UNLIMITED;
use super::water_worth::prices;
use crate::hydrothermal::files::config::NonNegativity;
use crate::hydrothermal::system::{CarriedInflow, Hydro, InflowModel};

/// The name of the state of a past inflow.
pub(super) fn lag_name(plant: &Hydro, place: usize) -> String {
    format!("{}.{}", plant.inflow.names[place], plant.label)
}

/// The amount by which an inflow is below zero.
pub(super) fn shortfall(inflow: f64) -> f64 {
    (-inflow).max(0.0)
}

/// Adds the inflow of a plant to its balances; returns the part that is no column, m³/s. That is all of it where
/// the right-hand side of the one balance is the inflow as it is drawn.
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro, lowest: f64) -> f64 {
    let model = &plant.inflow.stages[program.number];
    let depends = !plant.inflow.past.is_empty();
    let periods = program.stage.periods();
    let adds = match program.system.non_negativity {
        NonNegativity::None | NonNegativity::Truncation | NonNegativity::TruncationWithPenalty => {
            false
        }
        NonNegativity::Penalty => true,
        NonNegativity::BoundedNoise => lowest < 0.0,
    };
    if adds {
        let cost = plant.costs(program.number).added_water * program.stage.total_hours();
        // Where inflows do not depend on the past, openings say how much may be added.
        let most = if depends {
            UNLIMITED
        } else {
            shortfall(model.constant)
        };
        let name = format!("added.{}", plant.label);
        let column = program.lp.column(name, cost, 0.0, most);
        flows_in(program, place, column);
        program.layout.hydros[place].added = Some(column);
    }
    let truncated = program.system.non_negativity.truncates();
    let least = if truncated { 0.0 } else { -UNLIMITED };
    if depends {
        let column = follows(program, place, plant, model);
        flows_in(program, place, column);
        return 0.0;
    }
    let drawn = model.constant.max(least);
    if periods == 1 && plant.limits[program.number].withdrawal == 0.0 {
        return drawn;
    }
    let label = &plant.label;
    let name = format!("inflow.{label}");
    let column = program.lp.column(name, 0.0, -UNLIMITED, UNLIMITED);
    let name = format!("inflow_model.{label}");
    let row = program.lp.row(name, drawn, drawn, &[(column, 1.0)]);
    let layout = &mut program.layout.hydros[place];
    (layout.inflow, layout.drawn) = (Some(column), Some(row));
    flows_in(program, place, column);
    0.0
}

/// Puts a flow into the balances of a plant, the same in all periods.
fn flows_in(program: &mut Program<'_>, place: usize, column: ColumnId) {
    for period in 0..program.stage.periods() {
        let volume = program.stage.period_volume(period);
        program.add_volume(place, period, column, -volume);
    }
}

/// The column of an inflow that depends on the past, with the row that gives it; hands it on.
fn follows(
    program: &mut Program<'_>,
    number: usize,
    plant: &Hydro,
    model: &InflowModel,
) -> ColumnId {
    let label = &plant.label;
    let truncated = program.system.non_negativity.truncates();
    let paid = program.system.non_negativity == NonNegativity::TruncationWithPenalty;
    let hours = program.stage.total_hours();
    let (system, stage) = (program.system, program.number);
    let lp = &mut program.lp;
    let past: Vec<ColumnId> = (0..plant.inflow.past.len())
        .map(|place| {
            let name = format!("{}.before", lag_name(plant, place));
            lp.column(name, 0.0, -UNLIMITED, UNLIMITED)
        })
        .collect();
    let least = if truncated { 0.0 } else { -UNLIMITED };
    let inflow = lp.column(format!("inflow.{label}"), 0.0, least, UNLIMITED);
    program.layout.hydros[number].inflow = Some(inflow);
    let mut terms = vec![(inflow, 1.0)];
    terms.extend(
        past.iter()
            .zip(&model.coefficients)
            .map(|(past, factor)| (*past, -factor)),
    );
    if truncated {
        let cost = if paid {
            plant.costs(stage).added_water * hours
        } else {
            prices(system, number)[stage]
        };
        let lifted = lp.column(format!("truncated.{label}"), cost, 0.0, UNLIMITED);
        terms.push((lifted, -1.0));
        let layout = &mut program.layout.hydros[number];
        if paid {
            layout.lifted = Some(lifted);
        } else {
            layout.truncated = Some(lifted);
        }
    }
    let row = lp.row(
        format!("inflow_model.{label}"),
        model.constant,
        model.constant,
        &terms,
    );
    if let Some(lifted) = program.layout.hydros[number].truncated {
        lp.fictitious(lifted, row);
    }
    program.layout.hydros[number].drawn = Some(row);
    hand_on(program, plant, model, &past, inflow);
    inflow
}

/// Hands past inflows on, with that of the stage.
fn hand_on(
    program: &mut Program<'_>,
    plant: &Hydro,
    model: &InflowModel,
    past: &[ColumnId],
    inflow: ColumnId,
) {
    let lp = &mut program.lp;
    // A column can be one state only.
    let mut handed = false;
    for (place, (own, carried)) in past.iter().zip(&model.carried).enumerate() {
        let name = lag_name(plant, place);
        let handed_on = if *carried == CarriedInflow::newest() && !handed {
            handed = true;
            inflow
        } else {
            let column = lp.column(name.clone(), 0.0, -UNLIMITED, UNLIMITED);
            let mut terms = vec![(column, 1.0)];
            let kept = carried.past.iter();
            terms.extend(kept.map(|(place, factor)| (past[*place], -factor)));
            if carried.own != 0.0 {
                terms.push((inflow, -carried.own));
            }
            lp.row(format!("shift.{name}"), 0.0, 0.0, &terms);
            column
        };
        lp.state(name, *own, handed_on);
    }
}
