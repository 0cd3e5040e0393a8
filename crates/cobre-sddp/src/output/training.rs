//! The rows of the tables of training: what iterations found, and how long they took.

use cobre_results::layout::{convergence, timings};
use cobre_results::{Rows, TableSchema};

use crate::training::TrainingResults;

/// The tables, with their rows. The second one differs from run to run.
pub(super) fn tables(trained: &TrainingResults) -> [(TableSchema, Rows); 2] {
    let (found, took) = (convergence::schema(), timings::schema());
    let (mut found_rows, mut took_rows) = (Rows::new(&found), Rows::new(&took));
    for iteration in &trained.iterations {
        let (estimate, time, lp) = (iteration.estimate, iteration.time, iteration.lp);
        let row = convergence::Row {
            iteration: iteration.number,
            bound: iteration.bound,
            estimate_mean: estimate.mean,
            estimate_half_width_95: estimate.half_width_95,
            estimate_paths: estimate.paths,
            gap: iteration.gap,
            cuts: iteration.cuts,
            cuts_added: iteration.cuts_added,
            lp_solves: lp.solves as usize,
            upper_bound: iteration.upper_bound,
        };
        found_rows.push(&row.cells());
        let row = timings::Row {
            iteration: iteration.number,
            seconds: time.total,
            forward_seconds: time.forward,
            backward_seconds: time.backward,
            communication_seconds: time.communication,
            highs_solves: lp.highs as usize,
            refactored: lp.refactored as usize,
            cold_starts: lp.cold_starts as usize,
            fallbacks: lp.fallbacks as usize,
            retries: lp.retries as usize,
        };
        took_rows.push(&row.cells());
    }
    [(found, found_rows), (took, took_rows)]
}
