//! `constraints/generic_constraint*`: linear constraints that a planner writes.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Id, Number, Positive};
use crate::hydrothermal::table::table;

pub(crate) const FILE: &str = "constraints/generic_constraints.json";

object! {
    /// The generic constraints.
    GenericConstraints {
        /// All constraints.
        constraints: Vec<GenericConstraint>,
    }
}

object! {
    /// A generic constraint: a linear expression and its bounds, which generic_constraint_bounds.parquet has.
    GenericConstraint {
        /// Its number, unique among constraints.
        id: Id,
        /// Its name.
        name: String,
        /// A note that nothing reads.
        description: Option<String>,
        /// The left-hand side, as in `2 * hydro_turbined(3) - thermal_generation(1, 0)`.
        expression: String,
        /// The relation to `bound`; may be left out where rows have bound_lower and bound_upper instead.
        sense: Option<ConstraintSense>,
        /// The slack; none, and a hard constraint, if left out.
        slack: Option<Slack>,
    }
}

choice! {
    /// The relation between the left-hand side and the bound.
    ConstraintSense {
        /// At least the bound.
        AtLeast = ">=",
        /// At most the bound.
        AtMost = "<=",
        /// The bound.
        Equal = "==",
    }
}

object! {
    /// The slack of a constraint.
    Slack {
        /// True if the constraint may be violated.
        enabled: bool,
        /// Cost of a violation per hour, in $ per unit of the left-hand side and hour.
        penalty: Option<Positive>,
    }
}

table! {
    /// Bounds of generic constraints: a constraint holds in stages that have a row.
    GenericBounds in "constraints/generic_constraint_bounds.parquet", rows |sizes| sizes.by_block(sizes.constraints), {
        /// The constraint.
        constraint_id: Id,
        /// The stage.
        stage_id: Id,
        /// The block; every block if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
        /// The right-hand side, for constraints with a sense.
        bound: Option<Number>,
        /// The least, for constraints without a sense; none if empty.
        bound_lower: Option<Number>,
        /// The most, for constraints without a sense; none if empty.
        bound_upper: Option<Number>,
    }
}
