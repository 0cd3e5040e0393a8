//! The layout of a results directory: names of files, and the tables with the names, units and meanings of their
//! columns.
//!
//! Each table is a module: `TABLE` is its path below the directory without the ending, a constant names each
//! column, `schema()` has them all, and a `Row` has a field for each. Tables whose columns depend on the problem have a
//! function that makes their schema.

#[macro_use]
mod declare;
mod cost_kinds;
mod energy;
mod equipment;
mod policy;
mod simulation;
mod training;
mod water;

pub use self::cost_kinds::{CostKind, costs};
pub use self::energy::{buses, lines, sources, thermals};
pub use self::equipment::{
    batteries, battery_blocks, commitments, constraints, contracts, hydro_units, pumping,
};
pub use self::policy::cuts;
pub use self::simulation::{controls, duals, paths, stages, states, validation};
pub use self::training::{convergence, timings};
pub use self::water::{hydro_blocks, hydros, production};

use crate::schema::{Column, Kind};

/// The version of the layout, in `run.json`.
pub const FORMAT: u32 = 1;
/// Facts of the run; written last, so that all other files are there if it is.
pub const RUN: &str = "run.json";
/// The meaning of every column of every table.
pub const DICTIONARY: &str = "dictionary.csv";
/// The page that `cobre report` writes unless told otherwise.
pub const REPORT: &str = "report.html";
/// The element of a page's head by which it is known to be a report; the version follows.
pub const REPORT_MARK: &str = "<meta name=\"generator\" content=\"cobre ";
/// The directory of checkpoints.
pub const CHECKPOINT: &str = "checkpoint";
/// The directory of the tables of training.
pub const TRAINING: &str = "training";
/// The directory of the policy.
pub const POLICY: &str = "policy";
/// The directory of the tables of simulated paths.
pub const SIMULATION: &str = "simulation";
/// The directories that tables are in.
pub const DIRECTORIES: [&str; 3] = [TRAINING, POLICY, SIMULATION];
/// The problem, states and nodes of a policy, in its directory.
pub const MANIFEST: &str = "manifest.json";
/// The files of a policy, in its directory.
pub const POLICY_FILES: [&str; 2] = [MANIFEST, "cuts.parquet"];

const PARQUET: &str = ".parquet";

/// The Parquet file of a table.
pub fn parquet(table: &str) -> String {
    format!("{table}{PARQUET}")
}

/// The CSV file of a table.
pub fn csv(table: &str) -> String {
    format!("{table}.csv")
}

/// The table of a Parquet file; none if the file is something else.
pub fn table_in(file: &str) -> Option<&str> {
    file.strip_suffix(PARQUET)
}

/// The path of a file of the policy below the results directory.
pub fn in_policy(file: &str) -> String {
    format!("{POLICY}/{file}")
}

/// The column with the number of a plant, bus or line, given the column with its name.
pub fn id_column(name: &str) -> String {
    format!("{name}_id")
}

/// Number of the simulated path, from 1; a column of every table of simulated paths.
pub const SCENARIO: &str = "scenario";
/// Number of the stage in the case; a column of every table of simulated paths but those of whole paths.
pub const STAGE: &str = "stage";
/// First day of the stage; a column of every table that has stages.
pub const START_DATE: &str = "start_date";
/// Number of the block in its stage; a column of every table that has blocks.
pub const BLOCK: &str = "block";
/// Length of the block; a column of every table that has blocks.
pub const HOURS: &str = "hours";

/// The columns that say which stage of which path a row is about.
pub fn stage_columns() -> [Column; 3] {
    [
        Column::new(SCENARIO, Kind::Integer, declare::SCENARIO_MEANING),
        Column::new(STAGE, Kind::Integer, declare::STAGE_MEANING),
        Column::new(START_DATE, Kind::Text, declare::START_DATE_MEANING),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_tables_share_have_the_same_names_everywhere() {
        for name in [thermals::SCENARIO, hydros::SCENARIO, costs::SCENARIO] {
            assert_eq!(name, SCENARIO);
        }
        assert_eq!(stages::STAGE, STAGE);
        assert_eq!((lines::BLOCK, lines::HOURS), (BLOCK, HOURS));
        assert_eq!(id_column(buses::BUS), buses::BUS_ID);
        assert_eq!(id_column(hydros::HYDRO), hydros::HYDRO_ID);
    }

    #[test]
    fn a_row_has_its_values_in_the_order_of_the_columns() {
        let schema = paths::schema();
        let mut rows = crate::Rows::new(&schema);
        let row = paths::Row {
            value: 2.5,
            label: "1953",
            scenario: 7,
        };
        rows.push(&row.cells());
        assert_eq!(rows.cell(0, 0), crate::Cell::Integer(7));
        assert_eq!(rows.cell(0, 1), crate::Cell::Number(2.5));
    }

    #[test]
    fn the_files_of_a_policy_are_its_manifest_and_its_table() {
        let [manifest, table] = POLICY_FILES.map(in_policy);
        assert_eq!(manifest, "policy/manifest.json");
        assert_eq!(table_in(&table), Some(cuts::TABLE));
    }
}
