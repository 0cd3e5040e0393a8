//! Thermal plants: generation by block, at a cost by segment, in the stage or committed before.

use cobre_sddp::ColumnId;

use super::layout::ThermalLayout;
use super::{Program, commitments};
use crate::hydrothermal::system::Thermal;

/// Adds thermal plants to the program of a stage; balances of energy have terms of them.
pub(super) fn add(program: &mut Program<'_>) {
    for plant in &program.system.thermals {
        let layout = add_plant(program, plant);
        program.layout.thermals.push(layout);
    }
}

fn add_plant(program: &mut Program<'_>, plant: &Thermal) -> ThermalLayout {
    let limits = &plant.limits[program.number];
    let committed = plant.commitment.is_some();
    let generation = program.by_block_of("thermal", &plant.label, |block, hours| {
        let limits = &limits[block];
        let segments = plant.segments(limits);
        // Committed energy is paid already, and that of several segments by each of them.
        let cost = if committed || segments.len() > 1 {
            0.0
        } else {
            segments[0].1
        };
        (cost * hours, limits.min, limits.max)
    });
    let mut layout = ThermalLayout {
        paid: generation.iter().map(|&column| vec![column]).collect(),
        generation,
        commitment: None,
    };
    if let Some(commitment) = &plant.commitment {
        let of_plant = commitments::add(program, plant, commitment, &layout.generation);
        layout.commitment = Some(of_plant);
        return layout;
    }
    for (block, hours, name) in program.blocks() {
        let segments = plant.segments(&limits[block]);
        if segments.len() > 1 {
            let parts = segment_columns(program, plant, &segments, hours, name);
            let mut terms: Vec<(ColumnId, f64)> = vec![(layout.generation[block], 1.0)];
            terms.extend(parts.iter().map(|&part| (part, -1.0)));
            let name = format!("segments.{}.{name}", plant.label);
            program.lp.row(name, 0.0, 0.0, &terms);
            layout.paid[block] = parts;
        }
    }
    layout
}

fn segment_columns(
    program: &mut Program<'_>,
    plant: &Thermal,
    segments: &[(f64, f64)],
    hours: f64,
    block: &str,
) -> Vec<ColumnId> {
    let numbered = segments.iter().enumerate();
    numbered
        .map(|(number, (size, cost))| {
            let name = format!("thermal_segment{}.{}.{block}", number + 1, plant.label);
            program.lp.column(name, cost * hours, 0.0, *size)
        })
        .collect()
}
