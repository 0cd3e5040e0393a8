//! Limits that were not kept, at a penalty.

use cobre_results::ResultsError;
use cobre_results::layout::{
    CostKind, batteries, constraints, hydro_blocks, hydro_units, hydros, pumping,
};
use cobre_results::statistics::mean;

use crate::chart::{Section, Series, SeriesMark, TextTable, View, rounded};
use crate::grid::Grid;
use crate::palette;
use crate::sections::ribbon::over_stages;
use crate::simulation::SimulationData;

/// Where violations are written.
const TABLES: [&str; 6] = [
    hydros::TABLE,
    hydro_blocks::TABLE,
    hydro_units::TABLE,
    pumping::TABLE,
    batteries::TABLE,
    constraints::TABLE,
];
/// Violations up to this are the solver's tolerance.
const TOLERANCE: f64 = 1e-6;

struct ViolationKind {
    name: String,
    unit: &'static str,
    grid: Grid,
}

/// The share of scenarios in which limits are not kept, by kind and stage.
pub(super) fn section(simulation: &SimulationData) -> Result<Section, ResultsError> {
    let mut section = Section::new("violations", "Violations");
    let (kinds, looked) = kinds(simulation)?;
    if kinds.is_empty() {
        let text = if looked == 0 {
            "The case has no limits that may be violated at a penalty."
        } else {
            "No scenario violates a limit that may be violated at a penalty."
        };
        section.text.push(text.to_owned());
        return Ok(section);
    }
    let share = |values: &[f64]| {
        mean(
            values
                .iter()
                .map(|value| if value.abs() > TOLERANCE { 100.0 } else { 0.0 }),
        )
    };
    let lines = kinds.iter().enumerate().map(|(number, kind)| {
        let shares = kind.grid.stages().map(share).collect();
        Series::new(&kind.name, SeriesMark::Line, palette::nth(number), shares)
    });
    let views = vec![View::scaled("", "share of scenarios", "%", lines.collect())];
    let title = "Scenarios that violate a limit";
    let about = "The share of scenarios in which some plant, station, battery or constraint does not keep a limit in a stage, by kind of limit. \
                 Violations are allowed at a penalty, which is part of the costs.";
    section.panels.push(over_stages(
        simulation,
        "violations",
        title,
        about,
        "",
        views,
    ));
    section.tables.push(table(simulation, &kinds));
    Ok(section)
}

/// The kinds that occur, and how many there might be.
fn kinds(simulation: &SimulationData) -> Result<(Vec<ViolationKind>, usize), ResultsError> {
    let (mut kinds, mut looked) = (Vec::new(), 0);
    for table_name in TABLES {
        let Some(table) = simulation.table(table_name)? else {
            continue;
        };
        let columns = table.columns().iter();
        for column in columns.filter(|column| column.contains("violation")) {
            looked += 1;
            let grid = simulation.column(&table, column)?;
            if grid.largest() > TOLERANCE {
                let (mut name, unit) = unit(column);
                if table_name == "hydro_units" {
                    name = format!("{name} of groups of units");
                }
                kinds.push(ViolationKind { name, unit, grid });
            }
        }
    }
    Ok((kinds, looked))
}

/// The name of a column without its unit, and the unit.
fn unit(column: &str) -> (String, &'static str) {
    let units = [
        ("_hm3", "hm³"),
        ("_m3s", "m³/s"),
        ("_mwh", "MWh"),
        ("_mw", "MW"),
    ];
    let found = units.into_iter().find_map(|(end, unit)| {
        column
            .strip_suffix(end)
            .map(|name| (CostKind::words(name), unit))
    });
    found.unwrap_or_else(|| (CostKind::words(column), ""))
}

fn table(simulation: &SimulationData, kinds: &[ViolationKind]) -> TextTable {
    let row = |kind: &ViolationKind| {
        let violates = |scenario: &usize| {
            let values = kind.grid.scenario(*scenario);
            values.iter().any(|value| value.abs() > TOLERANCE)
        };
        let count = (0..simulation.scenarios()).filter(violates).count();
        let worst = kind.grid.stages().enumerate().max_by(|left, right| {
            let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
            largest(left.1).total_cmp(&largest(right.1))
        });
        vec![
            kind.name.clone(),
            format!("{count} of {}", simulation.scenarios()),
            format!("{} {}", rounded(kind.grid.largest()), kind.unit),
            worst.map_or_else(String::new, |(stage, _)| simulation.stages[stage].told()),
        ]
    };
    let head = [
        "limit",
        "scenarios",
        "largest mean of a stage, all together",
        "in stage",
    ];
    TextTable {
        caption: "Violations by kind of limit".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: kinds.iter().map(row).collect(),
    }
}
