//! `constraints/generic_*`: linear constraints that a planner writes, their bounds and their parameters.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::keyed::Keyed;
use crate::hydrothermal::number::{Id, Number, Positive};
use crate::hydrothermal::table::table;

pub(crate) const FILE: &str = "constraints/generic_constraints.json";
pub(crate) const PARAMETERS: &str = "constraints/generic_parameters.json";

object! {
    /// The generic constraints.
    GenericConstraints {
        /// All constraints.
        constraints: Vec<GenericConstraint>,
        /// Expressions that others refer to as `@name`.
        expressions: Option<Vec<NamedExpression>>,
    }
}

object! {
    /// An expression with a name.
    NamedExpression {
        /// Its name, unique among expressions and parameters.
        name: String,
        /// A note that nothing reads.
        description: Option<String>,
        /// The expression, without a relation.
        expression: String,
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
        /// The left-hand side, as in `2 * hydro_turbined(3) - thermal_generation(1, 0)`, or a relation, as in `hydro_outflow(3) >= 0.5 * @target`.
        expression: String,
        /// The relation to `bound`; left out where the expression has one, or where rows have bound_lower and bound_upper instead.
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
        /// The least, for constraints without a sense; none if empty. Added to what a relation says.
        bound_lower: Option<Number>,
        /// The most, for constraints without a sense; none if empty. Added to what a relation says.
        bound_upper: Option<Number>,
    }
}

object! {
    /// Numbers that expressions of generic constraints refer to as `@name`.
    GenericParameters {
        /// All parameters.
        scalar_parameters: Vec<ScalarParameter>,
    }
}

choice! {
    /// The kind of a parameter.
    ParameterKind {
        /// One number.
        Constant = "constant",
        /// A number for each stage.
        PerStage = "per_stage",
        /// A number for each season of stages.
        Seasonal = "seasonal",
        /// A number for each block of each stage.
        PerStageBlock = "per_stage_block",
        /// A number that the system has.
        Computed = "computed",
    }
}

object! {
    /// A parameter.
    ScalarParameter {
        /// Its number, unique among parameters.
        id: Id,
        /// Its name, unique among parameters and expressions.
        name: String,
        /// Its kind.
        kind: ParameterKind,
        /// For constant: the number.
        value: Option<Number>,
        /// For per_stage and seasonal: pairs of stage or season, and number.
        values: Option<Vec<Keyed<1>>>,
        /// For per_stage_block: triples of stage, block and number.
        block_values: Option<Vec<Keyed<2>>>,
        /// For computed: the quantity.
        computed_spec: Option<ComputedParameter>,
    }
}

object! {
    /// A quantity of a hydro plant.
    ComputedParameter {
        /// The quantity.
        tag: ComputedTag,
        /// The plant.
        hydro_id: Id,
    }
}

choice! {
    /// Quantities of hydro plants.
    ComputedTag {
        /// Energy of water, MW/(m³/s).
        EquivalentProductivity = "equivalent_productivity",
        /// That of the plant and of all below it.
        AccumulatedProductivity = "accumulated_productivity",
        /// The reference storage, hm³.
        ReferenceVolume = "reference_volume",
        /// The reference flow, m³/s.
        ReferenceTurbine = "reference_turbine",
        /// The least storage, hm³.
        MinStorage = "min_storage",
        /// The most storage, hm³.
        MaxStorage = "max_storage",
        /// Energy of water and head, MW/(m³/s)/m.
        SpecificProductivity = "specific_productivity",
        /// Energy of water with the mean head of the storage range, MW/(m³/s).
        IntegratedEquivalentProductivity = "integrated_equivalent_productivity",
        /// That of the plant and of all below it.
        IntegratedAccumulatedProductivity = "integrated_accumulated_productivity",
        /// That times the storage range, MW/(m³/s) · hm³.
        MaxStoredEnergy = "max_stored_energy",
    }
}
