//! The options of HiGHS: for warm-started solves, and for each step of the retry ladder.

use std::ffi::CStr;

use super::highs::{Highs, HighsRefusal, number};
use crate::problem::{LARGEST_OF_CUT, Template};

/// Coefficients at or below this are treated as zero: the least that HiGHS lets one set. Those of a problem are larger
/// ([`SMALLEST`](crate::problem::SMALLEST)); slopes of cuts may be smaller.
pub(super) const SMALL_COEFFICIENT: f64 = 1e-12;
/// Coefficients at or above this are refused: more than a cut has.
const LARGE_COEFFICIENT: f64 = 10.0 * LARGEST_OF_CUT;
/// The default tolerance of HiGHS, and the least that it accepts.
const TOLERANCE: f64 = 1e-7;
pub(super) const LEAST_TOLERANCE: f64 = 1e-10;
/// The most rows for which Dantzig pricing without cost perturbation is the fastest.
const FEW_ROWS: usize = 100;

/// The iteration limit of the interior point method, which does not end on some linear programs.
const MAX_INTERIOR_POINT_ITERATIONS: i32 = 300;

/// The retries after a run that is not optimal, in order.
pub(super) const RETRY_STEPS: [RetryStep; 5] = [
    RetryStep::Cold,
    RetryStep::Presolve,
    RetryStep::Scaling,
    RetryStep::Primal,
    RetryStep::InteriorPoint,
];

/// A step of the retry ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RetryStep {
    Cold,
    Presolve,
    Scaling,
    Primal,
    InteriorPoint,
}

/// Options of the simplex method for short solves. Without cost perturbation it may cycle, so its
/// iterations are limited.
#[derive(Debug, Clone, Copy)]
pub(super) struct PricingOptions {
    /// The pricing strategy of HiGHS: 0 is Dantzig, 1 devex, −1 its own choice.
    pricing: i32,
    perturbation: f64,
    iteration_limit: i32,
}

impl PricingOptions {
    /// The defaults of HiGHS, with an iteration limit.
    pub(super) const DEFAULT: Self = Self {
        pricing: -1,
        perturbation: 1.0,
        iteration_limit: 1_000_000,
    };

    pub(super) fn of(template: &Template) -> Self {
        let (rows, columns) = (template.rows.len(), template.columns.len());
        let few = rows <= FEW_ROWS;
        Self {
            pricing: i32::from(!few),
            perturbation: if few { 0.0 } else { 1.0 },
            iteration_limit: number(1000 + 2 * (rows + columns)),
        }
    }

    pub(super) fn set(self, highs: &mut Highs) -> Result<(), HighsRefusal> {
        highs.set_integer(c"simplex_dual_edge_weight_strategy", self.pricing)?;
        highs.set_number(
            c"dual_simplex_cost_perturbation_multiplier",
            self.perturbation,
        )?;
        highs.set_integer(c"simplex_iteration_limit", self.iteration_limit)
    }
}

/// Sets the options of warm-started solves: dual simplex, one thread, no presolve.
pub(super) fn set_options(highs: &mut Highs) -> Result<(), HighsRefusal> {
    highs.set_text(c"solver", c"simplex")?;
    highs.set_text(c"presolve", c"off")?;
    highs.set_text(c"parallel", c"off")?;
    highs.set_integer(c"threads", 1)?;
    highs.set_integer(c"simplex_strategy", 1)?;
    highs.set_integer(c"simplex_scale_strategy", 0)?;
    highs.set_integer(c"ipm_iteration_limit", MAX_INTERIOR_POINT_ITERATIONS)?;
    highs.set_number(c"large_matrix_value", LARGE_COEFFICIENT)?;
    highs.set_number(c"small_matrix_value", SMALL_COEFFICIENT)
}

/// The dual feasibility tolerance: the default of HiGHS, or less where all costs are small, as a
/// reduced cost off by more than the costs would put the dual objective above the optimum.
pub(super) fn dual_tolerance(template: &Template) -> f64 {
    let costs = template.columns.iter().map(|column| column.cost.abs());
    let largest = costs.fold(0.0, f64::max);
    if largest == 0.0 {
        return TOLERANCE;
    }
    (TOLERANCE * largest).clamp(LEAST_TOLERANCE, TOLERANCE)
}

/// Turns the option of a retry step on or off.
pub(super) fn set_retry_step(
    highs: &mut Highs,
    step: RetryStep,
    on: bool,
) -> Result<(), HighsRefusal> {
    let text =
        |on_value: &'static CStr, off_value: &'static CStr| if on { on_value } else { off_value };
    match step {
        RetryStep::Cold => Ok(()),
        RetryStep::Presolve => highs.set_text(c"presolve", text(c"on", c"off")),
        RetryStep::Scaling => highs.set_integer(c"simplex_scale_strategy", if on { 2 } else { 0 }),
        RetryStep::Primal => highs.set_integer(c"simplex_strategy", if on { 4 } else { 1 }),
        RetryStep::InteriorPoint => highs.set_text(c"solver", text(c"ipm", c"simplex")),
    }
}
