//! The tables of simulated paths that problems of every kind have.

table! {
    /// The value of each simulated path.
    paths<'a> in "simulation/paths" {
        SCENARIO scenario: usize, "", crate::layout::declare::SCENARIO_MEANING;
        VALUE value: f64, "", "value of the path: the sum of discount × stage_value over its stages";
        LABEL label: &'a str, "", "year or name of the path; empty if it was drawn";
    }
}

stage_table! {
    /// The node, the opening and the value of each stage of a path.
    stages<'a> in "simulation/stages" {
        NODE node: &'a str, "", "node of the policy graph";
        OPENING opening: usize, "", "opening that happened, from 1; 0 if the path has values of its own";
        DISCOUNT discount: f64, "", "what one unit of value of this stage counts in the value of the path";
        STAGE_VALUE stage_value: f64, "", "value of the stage";
        FUTURE_VALUE future_value: f64, "",
            "value of all that follows, as the policy sees it, in money of this stage";
    }
}

table! {
    /// The values of the policy on the modeller's own scenarios.
    validation in "simulation/validation" {
        SCENARIO scenario: usize, "", "number of the modeller's scenario, from 1";
        VALUE value: f64, "", "value of the policy on it";
    }
}

/// The states that each stage of a path leaves, a column each.
pub mod states {
    use crate::layout::{SCENARIO, STAGE, START_DATE, stage_columns};
    use crate::schema::{Column, Kind, TableSchema};

    /// The path of the table below the results directory, without the ending.
    pub const TABLE: &str = "simulation/states";

    /// The columns of a problem with these states.
    pub fn schema<'a>(states: impl IntoIterator<Item = &'a str>) -> TableSchema {
        let mut columns = stage_columns().to_vec();
        columns.extend(states.into_iter().map(|state| {
            let name = match state {
                // Columns of the table have these names already.
                SCENARIO | STAGE | START_DATE => format!("state:{state}"),
                name => name.to_owned(),
            };
            let meaning = format!("state {state} that the stage leaves");
            Column::new(name, Kind::Number, meaning)
        }));
        TableSchema::new(TABLE, columns)
    }
}

/// The decisions of each stage of a path, a column for each name; of problems that have no tables of their own.
pub mod controls {
    /// The path of the table below the results directory, without the ending.
    pub const TABLE: &str = "simulation/controls";
    /// The meaning of a column, before its name.
    pub const MEANING: &str = "decision";
}

/// The dual values of each stage of a path, a column for each row; of problems that have no tables of their own.
pub mod duals {
    /// The path of the table below the results directory, without the ending.
    pub const TABLE: &str = "simulation/duals";
    /// The meaning of a column, before its name.
    pub const MEANING: &str =
        "how the value of the stage and of all that follows changes with the right-hand side of";
}
