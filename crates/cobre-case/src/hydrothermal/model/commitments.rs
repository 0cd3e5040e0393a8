//! Thermal plants that are committed stages ahead: what is committed for the stages that follow is state.

use cobre_sddp::{ColumnId, Draft};

use super::Program;
use super::layout::{CommitmentLayout, CommittedStage};
use crate::hydrothermal::system::{Commitment, System, Thermal, mean_limits};

const UNLIMITED: f64 = f64::INFINITY;

/// Adds the state variables: the mean power that each of the next stages is committed to.
pub(super) fn states(system: &System, draft: &mut Draft) {
    for plant in &system.thermals {
        let Some(commitment) = &plant.commitment else {
            continue;
        };
        for slot in 0..commitment.slots {
            let value = commitment.past.get(slot).copied().unwrap_or(0.0);
            draft.state(name(plant, slot), value);
        }
    }
}

/// The name of what is committed for the stage that is `slot` stages after the next one.
fn name(plant: &Thermal, slot: usize) -> String {
    format!("committed{}.{}", slot + 1, plant.label)
}

/// Adds the commitments of a plant to the program of a stage, given its generation by block.
pub(super) fn add(
    program: &mut Program<'_>,
    plant: &Thermal,
    commitment: &Commitment,
    generation: &[ColumnId],
) -> CommitmentLayout {
    let mut layout = CommitmentLayout::default();
    let before: Vec<ColumnId> = (0..commitment.slots)
        .map(|slot| {
            let name = format!("{}.before", name(plant, slot));
            program.lp.column(name, 0.0, -UNLIMITED, UNLIMITED)
        })
        .collect();
    // The generation of this stage is what it was committed to.
    let hours = program.stage.total_hours();
    let mut terms: Vec<(ColumnId, f64)> = vec![(before[0], -1.0)];
    for (block, of_block, _) in program.blocks() {
        terms.push((generation[block], of_block / hours));
    }
    let row = format!("commitment.{}", plant.label);
    program.lp.row(row, 0.0, 0.0, &terms);
    for (slot, &incoming) in before.iter().enumerate() {
        let stage = program.number + 1 + slot;
        let name = name(plant, slot);
        let decided = commitment.decided_in.get(stage);
        let outgoing = match decided {
            Some(Some(decided)) if *decided == program.number => {
                decide(program, plant, stage, &name, &mut layout)
            }
            // It was decided before, and moves up.
            Some(decided) if decided.is_none_or(|decided| decided < program.number) => {
                let column = program.lp.column(name.clone(), 0.0, -UNLIMITED, UNLIMITED);
                let terms = [(column, 1.0), (before[slot + 1], -1.0)];
                program.lp.row(format!("shift.{name}"), 0.0, 0.0, &terms);
                column
            }
            // It is decided later, or after the study.
            _ => program.lp.column(name.clone(), 0.0, 0.0, 0.0),
        };
        program.lp.state(name, incoming, outgoing);
    }
    layout
}

/// Commits the plant for a later stage: pays for it now, at the price of that stage discounted to this one.
fn decide(
    program: &mut Program<'_>,
    plant: &Thermal,
    stage: usize,
    name: &str,
    layout: &mut CommitmentLayout,
) -> ColumnId {
    let stages = &program.system.stages;
    let [least, most] = mean_limits(plant, stages, stage);
    let between = &stages[program.number..stage];
    let discount: f64 = between.iter().map(|stage| stage.discount).product();
    let hours = stages[stage].total_hours() * discount;
    let segments = plant.segments(&plant.limits[stage][0]);
    let cost = if segments.len() == 1 {
        segments[0].1 * hours
    } else {
        0.0
    };
    let column = program.lp.column(name, cost, least, most);
    let mut paid = vec![column];
    if segments.len() > 1 {
        let mut terms = vec![(column, 1.0)];
        for (number, (size, cost)) in segments.into_iter().enumerate() {
            let name = format!("{name}.segment{}", number + 1);
            let part = program.lp.column(name, cost * hours, 0.0, size);
            terms.push((part, -1.0));
            paid.push(part);
        }
        let name = format!("segments.{name}");
        program.lp.row(name, 0.0, 0.0, &terms);
    }
    layout.decided.push(CommittedStage {
        stage,
        power: column,
        paid,
    });
    column
}
