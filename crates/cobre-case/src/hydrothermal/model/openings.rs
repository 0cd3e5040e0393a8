//! Openings of a stage, put into its linear program.

use cobre_sddp::{Change, Draft, NodeId};

use super::Program;
use super::inflow::shortfall;
use crate::hydrothermal::files::config::NonNegativity;
use crate::hydrothermal::sampling::{Kinds, OpeningSampler};

/// The changes of each opening of a stage; none if nothing is uncertain.
pub(super) struct Openings(Vec<Vec<Change>>);

impl Openings {
    /// Draws the openings of a stage.
    pub(super) fn new(program: &Program<'_>, sampling: &OpeningSampler) -> Self {
        if !is_uncertain(program) {
            return Self(Vec::new());
        }
        let drawn = sampling.draw(program.system, program.number);
        Self(drawn.iter().map(|drawn| changes(program, drawn)).collect())
    }

    /// Gives them to a node.
    pub(super) fn add(self, node: NodeId, draft: &mut Draft) {
        let probability = 1.0 / self.0.len() as f64;
        for changes in self.0 {
            draft.opening(node, probability, changes);
        }
    }
}

fn is_uncertain(program: &Program<'_>) -> bool {
    let (system, stage) = (program.system, program.number);
    system
        .hydros
        .iter()
        .any(|plant| plant.inflow.stages[stage].deviation > 0.0)
        || system
            .buses
            .iter()
            .any(|bus| bus.load[stage].deviation > 0.0)
        || system
            .sources
            .iter()
            .any(|source| source.availability[stage].deviation > 0.0)
}

/// The changes of an opening, given a standard normal number for each series.
fn changes(program: &Program<'_>, drawn: &[f64]) -> Vec<Change> {
    let (system, stage) = (program.system, program.number);
    let kinds = Kinds::of(system);
    let mut changes = Vec::new();
    for (plant, number) in kinds.inflows.enumerate() {
        inflow(program, plant, drawn[number], &mut changes);
    }
    for (bus, number) in kinds.loads.enumerate() {
        let load = system.buses[bus].load[stage];
        if load.deviation > 0.0 {
            let value = (load.mean + load.deviation * drawn[number]).max(0.0);
            let rows = program.layout.buses[bus]
                .energy
                .iter()
                .zip(&system.buses[bus].factors[stage]);
            changes.extend(rows.map(|(&row, factor)| Change::RowBounds {
                row,
                lower: value * factor,
                upper: value * factor,
            }));
        }
    }
    for (place, number) in kinds.sources.enumerate() {
        let source = &system.sources[place];
        let share = source.availability[stage];
        if share.deviation > 0.0 {
            let share = (share.mean + share.deviation * drawn[number]).clamp(0.0, 1.0);
            sources(program, place, share, &mut changes);
        }
    }
    changes
}

/// The changes of a source that has a share of its capacity.
fn sources(program: &Program<'_>, place: usize, share: f64, changes: &mut Vec<Change>) {
    let source = &program.system.sources[place];
    for (block, &column) in program.layout.sources[place].iter().enumerate() {
        let most = source.available(program.number, block, share);
        let lower = if source.may_curtail { 0.0 } else { most };
        changes.push(Change::ColumnBounds {
            column,
            lower,
            upper: most,
        });
        let curtailed = program.layout.curtailed[place].as_ref();
        changes.extend(curtailed.map(|curtailed| Change::RowBounds {
            row: curtailed.rows[block],
            lower: most,
            upper: most,
        }));
    }
}

fn inflow(program: &Program<'_>, place: usize, drawn: f64, changes: &mut Vec<Change>) {
    let plant = &program.system.hydros[place];
    let model = &plant.inflow.stages[program.number];
    if model.deviation == 0.0 {
        return;
    }
    let layout = &program.layout.hydros[place];
    let Some(row) = layout.drawn else { return };
    let value = model.drawn(drawn);
    let depends = !plant.inflow.past.is_empty();
    let value = match program.system.non_negativity {
        NonNegativity::Truncation if !depends => value.max(0.0),
        NonNegativity::Truncation
        | NonNegativity::None
        | NonNegativity::Penalty
        | NonNegativity::BoundedNoise => value,
    };
    let bound = match layout.inflow {
        Some(_) => value,
        None => program.stage.total_volume() * value,
    };
    changes.push(Change::RowBounds {
        row,
        lower: bound,
        upper: bound,
    });
    if depends {
        return;
    }
    if let Some(column) = layout.added {
        changes.push(Change::ColumnBounds {
            column,
            lower: 0.0,
            upper: shortfall(value),
        });
    }
}
