//! The files of a case, as they are written: each key once, with what it means.

pub(crate) mod config;
pub(crate) mod constraints;
pub(crate) mod equipment;
pub(crate) mod generic;
pub(crate) mod hydraulics;
pub(crate) mod inflow;
pub(crate) mod initial;
pub(crate) mod penalties;
pub(crate) mod penalty_overrides;
pub(crate) mod production;
pub(crate) mod scenarios;
pub(crate) mod stages;
pub(crate) mod system;
pub(crate) mod terminal;

use std::path::Path;

use serde_json::Value;

use self::config::Config;
use self::constraints::{HydroBounds, LineBounds, ThermalBounds, UnitGroupBounds};
use self::equipment::{
    Batteries, BatteryBounds, ContractBounds, EnergyContracts, ExchangeFactors, PumpingBounds,
    PumpingStations, SourceBounds,
};
use self::generic::{GenericBounds, GenericConstraints, GenericParameters};
use self::inflow::{AnnualComponent, InflowHistory, NoiseOpenings};
use self::initial::InitialConditions;
use self::penalties::Penalties;
use self::penalty_overrides::{BusOverrides, HydroOverrides, LineOverrides, SourceOverrides};
use self::production::{
    EnergyProductivity, Geometry, Hyperplanes, ProductionModels, TailraceCurves,
};
use self::scenarios::{
    ArCoefficients, Correlation, ExternalInflow, ExternalLoad, ExternalSources, InflowRegimes,
    InflowStats, LoadFactors, LoadStats, SourceFactors, SourceStats,
};
use self::stages::Stages;
use self::system::{Buses, Hydros, Lines, Sources, Thermals};
use self::terminal::TerminalWaterValues;
use super::inflow_variance::derive_residuals;
use super::is_there;
use super::json::{Json, Read};
use super::release18;
use super::table::{self, Column, Row, Sizes};
use crate::finding::{Findings, Place};

/// Files of the format that this version refuses, with why.
const REFUSED: &[(&str, &str)] = &[
    (
        "post_study_stages.json",
        "the study ends with its last stage; give it a terminal value",
    ),
    (
        "scenarios/external_scenarios.parquet",
        "openings are drawn, not given",
    ),
];

/// A column: its name, what it holds, whether it may be left out, and what it means.
pub(crate) type ColumnDescription = (&'static str, Column, bool, &'static str);

/// Declares the files of a case: the list from which they are read and described.
macro_rules! files {
    (
        needed { $($needed:ident: $needed_kind:ty = $needed_file:expr, or $stand_in:expr,)* }
        optional { $($optional:ident: $optional_kind:ty = $optional_file:expr,)* }
        sizes $sizes:expr;
        tables { $($table:ident: $row:ty,)* }
    ) => {
        /// Everything in the files of a case.
        #[derive(Debug)]
        pub(crate) struct Files {
            $( pub(crate) $needed: $needed_kind, )*
            $( pub(crate) $optional: Option<$optional_kind>, )*
            $( pub(crate) $table: Vec<$row>, )*
            /// The tables that are there and have no rows.
            pub(crate) empty: Vec<&'static str>,
            /// The sizes of the case, by which tables are limited.
            pub(crate) sizes: Sizes,
        }

        impl Files {
            /// Reads all files of a case, or finds everything that is wrong with them.
            pub(crate) fn read(
                case: &Path,
                overrides: Option<&str>,
                findings: &mut Findings,
            ) -> Option<Self> {
                strangers(case, findings);
                let of = |file| overrides.filter(|_| file == config::FILE);
                $( let $needed = json::<$needed_kind>(case, $needed_file, true, of($needed_file), findings)
                    .or_else(|| stand_in($stand_in)); )*
                $( let $optional = json::<$optional_kind>(case, $optional_file, false, None, findings); )*
                let sizes: Sizes = $sizes;
                $( let $table = table::read::<$row>(case, &sizes, findings); )*
                let mut empty = Vec::new();
                $( if $table.as_ref().is_some_and(Vec::is_empty) { empty.push(<$row>::FILE); } )*
                $( let $table = $table.unwrap_or_default(); )*
                let mut files = Self { $( $needed: $needed?, )* $( $optional, )* $( $table, )* empty, sizes };
                derive_residuals(&mut files);
                Some(files)
            }
        }

        /// The JSON files of the format: path, whether it must be there, and schema.
        pub(crate) fn json_files() -> Vec<(&'static str, bool, Value)> {
            vec![
                $( ($needed_file, true, <$needed_kind>::schema()), )*
                $( ($optional_file, false, <$optional_kind>::schema()), )*
            ]
        }

        /// The tables of the format: path and columns.
        pub(crate) fn tables() -> Vec<(&'static str, Vec<ColumnDescription>)> {
            vec![ $( (<$row>::FILE, <$row>::columns()), )* ]
        }
    };
}

files! {
    needed {
        config: Config = config::FILE, or config::STAND_IN,
        penalties: Penalties = penalties::FILE, or penalties::STAND_IN,
        stages: Stages = stages::FILE, or "",
        initial: InitialConditions = initial::FILE, or "",
        buses: Buses = system::BUSES, or "",
        lines: Lines = system::LINES, or "",
        hydros: Hydros = system::HYDROS, or "",
        thermals: Thermals = system::THERMALS, or "",
    }
    optional {
        sources: Sources = system::SOURCES,
        production_models: ProductionModels = production::PRODUCTION_MODELS,
        load_factors: LoadFactors = scenarios::LOAD_FACTORS,
        source_factors: SourceFactors = scenarios::SOURCE_FACTORS,
        correlation: Correlation = scenarios::CORRELATION,
        pumping: PumpingStations = equipment::PUMPING,
        contracts: EnergyContracts = equipment::CONTRACTS,
        batteries: Batteries = equipment::BATTERIES,
        exchange_factors: ExchangeFactors = equipment::EXCHANGE_FACTORS,
        constraints: GenericConstraints = generic::FILE,
        parameters: GenericParameters = generic::PARAMETERS,
    }
    sizes Sizes {
        stages: stages.as_ref().map(|file| file.stages.len()),
        blocks: stages.as_ref().map(|file| file.stages.iter().map(|stage| stage.blocks.len()).sum()),
        hydros: hydros.as_ref().map(|file| file.hydros.len()),
        buses: buses.as_ref().map(|file| file.buses.len()),
        lines: lines.as_ref().map(|file| file.lines.len()),
        thermals: thermals.as_ref().map(|file| file.thermals.len()),
        sources: Some(sources.as_ref().map_or(0, |file| file.non_controllable_sources.len())),
        pumping: Some(pumping.as_ref().map_or(0, |file| file.pumping_stations.len())),
        contracts: Some(contracts.as_ref().map_or(0, |file| file.contracts.len())),
        batteries: Some(batteries.as_ref().map_or(0, |file| file.batteries.len())),
        constraints: Some(constraints.as_ref().map_or(0, |file| file.constraints.len())),
        openings: stages.as_ref().map(|file| file.stages.iter().map(|stage| stage.num_scenarios.0).sum()),
        unit_groups: hydros.as_ref().map(|file| file.hydros.iter().map(|plant| plant.groups().len()).sum()),
    };
    tables {
        inflow_stats: InflowStats,
        inflow_regimes: InflowRegimes,
        ar_coefficients: ArCoefficients,
        annual_component: AnnualComponent,
        inflow_history: InflowHistory,
        noise_openings: NoiseOpenings,
        load_stats: LoadStats,
        source_stats: SourceStats,
        external_inflows: ExternalInflow,
        external_loads: ExternalLoad,
        external_sources: ExternalSources,
        thermal_bounds: ThermalBounds,
        hydro_bounds: HydroBounds,
        line_bounds: LineBounds,
        unit_group_bounds: UnitGroupBounds,
        pumping_bounds: PumpingBounds,
        contract_bounds: ContractBounds,
        battery_bounds: BatteryBounds,
        source_bounds: SourceBounds,
        generic_bounds: GenericBounds,
        bus_overrides: BusOverrides,
        line_overrides: LineOverrides,
        source_overrides: SourceOverrides,
        hydro_overrides: HydroOverrides,
        hyperplanes: Hyperplanes,
        geometry: Geometry,
        energy_productivity: EnergyProductivity,
        terminal_water_values: TerminalWaterValues,
        tailrace_curves: TailraceCurves,
    }
}

/// A stand-in for a file that is wrong, so that the others can be checked all the same; the case is
/// refused anyway.
fn stand_in<T: Read>(text: &str) -> Option<T> {
    let json = serde_json::from_str::<Json>(text).ok()?;
    T::read(&json, &Place::file(""), &mut Findings::default())
}

fn json<T: Read>(
    case: &Path,
    file: &'static str,
    needed: bool,
    overrides: Option<&str>,
    findings: &mut Findings,
) -> Option<T> {
    let at = Place::file(file);
    let text = match cobre_files::read(&case.join(file), cobre_files::MOST_TEXT_BYTES) {
        Ok(text) => text,
        Err(_) if !is_there(&case.join(file)) => {
            if needed {
                findings.wrong(&at, "the file is missing");
            }
            return None;
        }
        Err(error) => {
            findings.wrong(&at, format!("it cannot be read: {error}"));
            return None;
        }
    };
    let mut json = sound(&text, &at, findings)?;
    release18::translate(case, file, &mut json);
    let Some(overrides) = overrides else {
        return T::read(&json, &at, findings);
    };
    let at = Place::file(format!("{file} with its overrides"));
    let mut overrides = sound(overrides.as_bytes(), &at, findings)?;
    release18::translate(case, file, &mut overrides);
    T::read(&json.overridden_by(overrides), &at, findings)
}

fn sound(text: &[u8], at: &Place, findings: &mut Findings) -> Option<Json> {
    let json = serde_json::from_slice::<Json>(text);
    json.map_err(|error| findings.wrong(at, format!("it is no sound JSON: {error}")))
        .ok()
}

/// Says which files in the directories of the format are refused, or none of its.
fn strangers(case: &Path, findings: &mut Findings) {
    for &(file, why) in REFUSED {
        if case.join(file).exists() {
            findings.wrong(
                &Place::file(file),
                format!("not supported: {why}; remove the file"),
            );
        }
    }
    let known: Vec<&str> = json_files()
        .iter()
        .map(|(file, _, _)| *file)
        .chain(tables().iter().map(|(file, _)| *file))
        .chain(REFUSED.iter().map(|(file, _)| *file))
        .collect();
    let at_home = |name: &str| {
        let home = |known: &&&str| known.rsplit_once('/').is_some_and(|(_, own)| own == name);
        known.iter().find(home)
    };
    for name in listed(case, "") {
        if let Some(home) = at_home(&name) {
            findings.doubtful(&Place::file(&name), unread(home));
        }
        let own = FOLDERS.contains(&name.as_str());
        for inner in listed(case, &name) {
            let path = format!("{name}/{inner}");
            let at = Place::file(&path);
            let is_data = [".json", ".parquet"].iter().any(|end| path.ends_with(end));
            match at_home(&inner) {
                _ if known.contains(&path.as_str()) => {}
                Some(home) if own => findings.wrong(&at, unread(home)),
                Some(home) => findings.doubtful(&at, unread(home)),
                None if own && is_data => {
                    findings.wrong(&at, "no file of the format has this name");
                }
                None => {}
            }
        }
    }
}

/// The directories of the format.
const FOLDERS: [&str; 3] = ["system", "scenarios", "constraints"];

fn unread(home: &str) -> String {
    format!("nothing reads it here; its place is {home}")
}

/// The entries of a folder of a case, by name; none if it is no folder.
fn listed(case: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(case.join(folder)).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
