//! The cuts of a terminal value, as solvers read them.

use super::cuts::{Cuts, RecordLayout, record_width};
use crate::problem::{Node, StateColumns};

/// The records of a node's terminal value: those of one iteration at one level, a pass for each cut.
#[derive(Debug)]
pub(super) struct TerminalRecords {
    cuts: usize,
    records: Vec<f64>,
}

impl TerminalRecords {
    pub(super) fn of(node: &Node) -> Self {
        let mut records = Vec::new();
        for cut in &node.terminal {
            records.push(cut.intercept);
            records.extend_from_slice(&cut.gradient);
            // No trial point made it.
            records.resize(records.len() + cut.gradient.len(), 0.0);
        }
        Self {
            cuts: node.terminal.len(),
            records,
        }
    }

    /// The cuts of these slots, which are their numbers.
    pub(super) fn view<'a>(&'a self, slots: &'a [u32], states: &'a [StateColumns]) -> Cuts<'a> {
        let layout = RecordLayout {
            passes: self.cuts.max(1),
            width: record_width(states.len()),
            levels: 1,
            given: 0,
        };
        Cuts::new(
            slots,
            (layout, 1),
            (vec![(0, &self.records[..])], &[0]),
            states,
        )
    }
}
