//! The tables of training: what iterations found, and how long they took.

use super::table::{Column, Kind, Rows, Table};
use crate::training::TrainingResults;

/// The names of the tables.
pub(super) const NAMES: [&str; 2] = ["training/convergence", "training/timings"];

/// The tables, with their rows. The second one differs from run to run.
pub(super) fn tables(trained: &TrainingResults) -> [(Table, Rows); 2] {
    let [convergence, timings] = columns();
    let convergence = Table::new(NAMES[0], convergence);
    let timings = Table::new(NAMES[1], timings);
    let mut found = Rows::new(&convergence);
    let mut took = Rows::new(&timings);
    for iteration in &trained.iterations {
        let (estimate, time, lp) = (iteration.estimate, iteration.time, iteration.lp);
        found.push(&[
            iteration.number.into(),
            iteration.bound.into(),
            estimate.mean.into(),
            estimate.half_width_95.into(),
            estimate.paths.into(),
            iteration.gap.into(),
            iteration.cuts.into(),
            iteration.cuts_added.into(),
            (lp.solves as usize).into(),
        ]);
        took.push(&[
            iteration.number.into(),
            time.total.into(),
            time.forward.into(),
            time.backward.into(),
            time.communication.into(),
            (lp.highs as usize).into(),
            (lp.refactored as usize).into(),
            (lp.cold_starts as usize).into(),
            (lp.fallbacks as usize).into(),
            (lp.retries as usize).into(),
        ]);
    }
    [(convergence, found), (timings, took)]
}

/// The columns of the tables.
pub(super) fn columns() -> [Vec<Column>; 2] {
    [convergence(), timings()]
}

fn iteration() -> Column {
    Column::new(
        "iteration",
        Kind::Integer,
        "number of the iteration, from 1",
    )
}

fn convergence() -> Vec<Column> {
    let (integer, number, maybe) = (Kind::Integer, Kind::Number, Kind::Maybe);
    vec![
        iteration(),
        Column::new(
            "bound",
            number,
            "bound on the optimal value: from below for a cost, from above for a revenue",
        ),
        Column::new(
            "estimate_mean",
            number,
            "mean value of the policy on the forward passes of this iteration",
        ),
        Column::new(
            "estimate_half_width_95",
            maybe,
            "half the width of the 95 % confidence interval of that mean; missing with one pass",
        ),
        Column::new("estimate_paths", integer, "forward passes it is from"),
        Column::new(
            "gap",
            maybe,
            "distance of the mean from the bound, relative to the bound; missing under a risk measure",
        ),
        Column::new("cuts", integer, "cuts in use after this iteration"),
        Column::new("cuts_added", integer, "cuts that this iteration has added"),
        Column::new(
            "lp_solves",
            integer,
            "linear programs solved so far, by all ranks",
        ),
    ]
}

fn timings() -> Vec<Column> {
    let integer = Kind::Integer;
    vec![
        iteration(),
        Column::number("seconds", "s", "time since training began"),
        Column::number("forward_seconds", "s", "part of it in forward passes"),
        Column::number(
            "backward_seconds",
            "s",
            "part of it in backward passes, the bound included",
        ),
        Column::number(
            "communication_seconds",
            "s",
            "part of it in collectives, waiting for other ranks included",
        ),
        Column::new(
            "highs_solves",
            integer,
            "linear programs so far that HiGHS answered",
        ),
        Column::new(
            "refactored",
            integer,
            "how often the kernel computed an inverse anew because something was off",
        ),
        Column::new(
            "cold_starts",
            integer,
            "how often the kernel started from nothing because that did not help",
        ),
        Column::new(
            "fallbacks",
            integer,
            "linear programs that the kernel gave up and HiGHS answered",
        ),
        Column::new(
            "retries",
            integer,
            "how often HiGHS had to try in another way",
        ),
    ]
}
