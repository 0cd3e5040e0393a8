//! Release 0.18 of the format: its keys and columns, read as those of 0.5, and cases rewritten in either form.
//!
//! A case of 0.18 is read as the same model: [`translate`] puts the keys of each file in the places that 0.5 has for
//! them, before the file is read. Keys that 0.5 has no place for stay, and are refused by name.

mod edit;
mod migrate;
mod newer;
mod newer_tables;
mod older;
mod own;

pub(crate) use self::migrate::migrate;
pub use self::migrate::{Migrated, Release};
pub(crate) use self::older::translate;

/// Columns of tables by file: their name in 0.18, and in 0.5.
const COLUMNS: &[(&str, &str, &str)] = &[
    (
        "constraints/pumping_bounds.parquet",
        "pumping_station_id",
        "station_id",
    ),
    (
        "constraints/penalty_overrides_ncs.parquet",
        "ncs_id",
        "source_id",
    ),
    (
        "scenarios/external_ncs_scenarios.parquet",
        "availability_factor",
        "value",
    ),
    ("scenarios/inflow_history.parquet", "start_date", "date"),
];

/// Columns of 0.18 that say nothing else than the others.
const IMPLIED: &[(&str, &str)] = &[("scenarios/inflow_history.parquet", "end_date")];

/// The name that a column of a file has in 0.5.
pub(crate) fn column_name<'n>(file: &str, name: &'n str) -> &'n str {
    let mut known = COLUMNS
        .iter()
        .filter(|(of, newer, _)| *of == file && *newer == name);
    known.next().map_or(name, |(_, _, older)| older)
}

/// True if a column of a file is implied by others.
pub(crate) fn is_implied(file: &str, name: &str) -> bool {
    IMPLIED.contains(&(file, name))
}

/// The files with lists of entities, and the key of the list.
const ENTITIES: &[(&str, &str)] = &[
    ("system/buses.json", "buses"),
    ("system/lines.json", "lines"),
    ("system/thermals.json", "thermals"),
    ("system/hydros.json", "hydros"),
    (
        "system/non_controllable_sources.json",
        "non_controllable_sources",
    ),
    ("system/pumping_stations.json", "pumping_stations"),
    ("system/energy_contracts.json", "contracts"),
    ("system/batteries.json", "batteries"),
];

/// The limits that a plant of 0.5 has in `generation`, and one of 0.18 in its groups of units.
const LIMITS: [&str; 4] = [
    "min_turbined_m3s",
    "max_turbined_m3s",
    "min_generation_mw",
    "max_generation_mw",
];
