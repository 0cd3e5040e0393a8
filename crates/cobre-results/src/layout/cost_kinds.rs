//! The table of costs, by kind.

/// A kind of cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostKind {
    /// Generation of thermal plants.
    Thermal,
    /// Energy taken from sources.
    Source,
    /// Energy sent over lines.
    Exchange,
    /// Load that is not served.
    Deficit,
    /// Energy that nobody takes.
    Excess,
    /// Water spilled.
    Spillage,
    /// Storage below its minimum.
    MinStorage,
    /// Turbined flow below its minimum.
    MinTurbined,
    /// Hydro generation below its minimum.
    MinGeneration,
    /// Outflow below its minimum.
    MinOutflow,
    /// Outflow above its maximum.
    MaxOutflow,
    /// Water added to inflows below zero.
    InflowAdded,
    /// Inflows below zero lifted to zero.
    InflowTruncation,
    /// Flow through turbines of plants with hyperplanes.
    Turbined,
    /// Water diverted.
    Diversion,
    /// Evaporation that differs from that of the lake's area.
    Evaporation,
    /// Withdrawal that differs from what is asked for.
    Withdrawal,
    /// Storage below the target of a filling.
    Filling,
    /// Hyperplanes below zero, where generation is zero.
    Production,
    /// Generation of later stages that thermal plants are committed to in this one, discounted to it.
    Commitment,
    /// Energy of contracts.
    Contract,
    /// Wear of batteries by discharging.
    BatteryWear,
    /// Levels of batteries below their minimum.
    MinLevel,
    /// Pumped flow below its minimum.
    MinPumping,
    /// Spilled and diverted flow beyond its limits.
    FlowLimit,
    /// Violations of generic constraints.
    Constraint,
}

impl CostKind {
    /// All kinds, in the order of their columns.
    pub const ALL: [Self; 26] = [
        Self::Thermal,
        Self::Source,
        Self::Exchange,
        Self::Deficit,
        Self::Excess,
        Self::Spillage,
        Self::MinStorage,
        Self::MinTurbined,
        Self::MinGeneration,
        Self::MinOutflow,
        Self::MaxOutflow,
        Self::InflowAdded,
        Self::InflowTruncation,
        Self::Turbined,
        Self::Diversion,
        Self::Evaporation,
        Self::Withdrawal,
        Self::Filling,
        Self::Production,
        Self::Commitment,
        Self::Contract,
        Self::BatteryWear,
        Self::MinLevel,
        Self::MinPumping,
        Self::FlowLimit,
        Self::Constraint,
    ];

    /// The column of the kind, and its meaning.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Thermal => ("thermal_cost", "generation of thermal plants"),
            Self::Source => (
                "source_cost",
                "energy taken from sources, which is credited the curtailment cost: not above zero",
            ),
            Self::Exchange => ("exchange_cost", "energy sent over lines"),
            Self::Deficit => ("deficit_cost", "load that is not served"),
            Self::Excess => ("excess_cost", "energy that nobody takes"),
            Self::Spillage => ("spillage_cost", "water spilled"),
            Self::MinStorage => ("min_storage_violation_cost", "storage below its minimum"),
            Self::MinTurbined => (
                "min_turbined_violation_cost",
                "turbined flow below its minimum",
            ),
            Self::MinGeneration => (
                "min_generation_violation_cost",
                "hydro generation below its minimum",
            ),
            Self::MinOutflow => ("min_outflow_violation_cost", "outflow below its minimum"),
            Self::MaxOutflow => ("max_outflow_violation_cost", "outflow above its maximum"),
            Self::InflowAdded => (
                "inflow_added_cost",
                "water added to inflows below zero (method penalty)",
            ),
            Self::InflowTruncation => (
                "inflow_truncation_cost",
                "inflows below zero lifted to zero (method truncation, inflows that depend on the past): nobody pays it, and \
                 no sum contains it",
            ),
            Self::Turbined => (
                "turbined_cost",
                "flow through turbines of plants with hyperplanes",
            ),
            Self::Diversion => ("diversion_cost", "water diverted"),
            Self::Evaporation => (
                "evaporation_violation_cost",
                "evaporation that differs from that of the lake's area",
            ),
            Self::Withdrawal => (
                "withdrawal_violation_cost",
                "withdrawal that differs from what is asked for",
            ),
            Self::Filling => (
                "filling_violation_cost",
                "storage below the target of a filling",
            ),
            Self::Production => (
                "production_violation_cost",
                "hyperplanes below zero, where generation is zero",
            ),
            Self::Commitment => (
                "commitment_cost",
                "generation of later stages that thermal plants are committed to in this one, discounted to it",
            ),
            Self::Contract => (
                "contract_cost",
                "energy of contracts; below zero where revenue is larger",
            ),
            Self::BatteryWear => (
                "battery_degradation_cost",
                "wear of batteries by discharging",
            ),
            Self::MinLevel => (
                "min_level_violation_cost",
                "levels of batteries below their minimum",
            ),
            Self::MinPumping => (
                "min_pumping_violation_cost",
                "pumped flow below its minimum",
            ),
            Self::FlowLimit => (
                "flow_limit_violation_cost",
                "spilled and diverted flow beyond its limits",
            ),
            Self::Constraint => (
                "constraint_violation_cost",
                "violations of generic constraints",
            ),
        }
    }

    /// The words for the kind whose column has this name.
    pub fn words(column: &str) -> String {
        let kind = column.strip_suffix("_cost").unwrap_or(column);
        kind.replace('_', " ")
    }
}

/// The cost of each stage of a path, by kind.
pub mod costs {
    use super::CostKind;
    use crate::layout::stage_columns;
    pub use crate::layout::{SCENARIO, STAGE, START_DATE};
    use crate::rows::Cell;
    use crate::schema::{Column, Kind, TableSchema};

    /// The path of the table below the results directory, without the ending.
    pub const TABLE: &str = "simulation/costs";
    /// The weight of the stage in the value of the path.
    pub const DISCOUNT: &str = "discount";
    /// The sum of all kinds.
    pub const STAGE_COST: &str = "stage_cost";
    /// The cost of all that follows.
    pub const FUTURE_COST: &str = "future_cost";

    /// The price of truncation: a column like those of kinds, and no cost that anybody pays.
    pub const UNPAID: &str = "inflow_truncation_cost";

    /// True if a column is a kind of cost that is part of [`STAGE_COST`].
    pub fn is_kind(column: &str) -> bool {
        let others = [
            SCENARIO,
            STAGE,
            START_DATE,
            DISCOUNT,
            STAGE_COST,
            FUTURE_COST,
            UNPAID,
        ];
        !others.contains(&column)
    }

    /// The columns of the table.
    pub fn schema() -> TableSchema {
        let mut columns = stage_columns().to_vec();
        columns.push(Column::new(
            DISCOUNT,
            Kind::Number,
            "what one $ of this stage counts in the value of the path",
        ));
        columns.extend(CostKind::ALL.map(|kind| {
            let (name, meaning) = kind.column();
            Column::number(name, "$", meaning)
        }));
        columns.extend([
            Column::number(
                STAGE_COST,
                "$",
                "cost of the stage: all of the above together but inflow_truncation_cost",
            ),
            Column::number(
                FUTURE_COST,
                "$",
                "cost of all that follows, as the policy sees it, in money of this stage; with what truncation will cost",
            ),
        ]);
        TableSchema::new(TABLE, columns)
    }

    /// A row of the table.
    #[derive(Debug, Clone, Copy)]
    pub struct Row<'a> {
        /// The value of [`SCENARIO`].
        pub scenario: usize,
        /// The value of [`STAGE`].
        pub stage: i64,
        /// The value of [`START_DATE`].
        pub start_date: &'a str,
        /// The value of [`DISCOUNT`].
        pub discount: f64,
        /// The cost of each kind, as [`CostKind::ALL`] has them.
        pub kinds: [f64; CostKind::ALL.len()],
        /// The value of [`STAGE_COST`].
        pub stage_cost: f64,
        /// The value of [`FUTURE_COST`].
        pub future_cost: f64,
    }

    impl<'a> Row<'a> {
        /// The values in the order of the columns.
        pub fn cells(&self) -> Vec<Cell<'a>> {
            let mut cells = vec![
                self.scenario.into(),
                self.stage.into(),
                self.start_date.into(),
                self.discount.into(),
            ];
            cells.extend(self.kinds.map(Cell::Number));
            cells.extend([self.stage_cost, self.future_cost].map(Cell::Number));
            cells
        }
    }
}
