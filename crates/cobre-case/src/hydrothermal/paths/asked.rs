//! The plan of scenarios that options ask for: files, past years, or values.

use std::path::{Path, PathBuf};

use super::given::GivenRow;
use super::resolve::{ScenarioFile, inflow_rows, inflows, load_rows, loads, source_rows, sources};
use super::{GivenScenarios, PathPlan, SeriesPlan, history};
use crate::Scenarios;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::config::HistoricalYears;
use crate::hydrothermal::files::scenarios::{ExternalInflow, ExternalLoad, ExternalSources};
use crate::hydrothermal::system::System;
use crate::hydrothermal::table;

/// The plan of scenarios that options give.
pub(super) fn plan(
    files: &Files,
    system: &System,
    scenarios: &Scenarios,
    findings: &mut Findings,
) -> Option<PathPlan> {
    let mut plan = PathPlan::in_sample(system);
    match scenarios {
        Scenarios::Files(paths) => of_files(files, system, paths, &mut plan, findings),
        Scenarios::Years(years) => {
            let years = (!years.is_empty()).then(|| HistoricalYears::List(years.clone()));
            let at = Place::file("--years");
            let found = history::years(system, years.as_ref(), &at, findings)?;
            plan.inflows = SeriesPlan::Given(found);
        }
        Scenarios::Inflows { labels, values } => {
            let found = of_values(system, labels, values, findings)?;
            plan.inflows = SeriesPlan::Given(found);
        }
    }
    Some(plan)
}

/// Rows of scenarios from files, by kind.
#[derive(Default)]
struct FileRows {
    inflows: Vec<GivenRow>,
    loads: Vec<GivenRow>,
    sources: Vec<GivenRow>,
}

fn of_files(
    files: &Files,
    system: &System,
    paths: &[PathBuf],
    plan: &mut PathPlan,
    findings: &mut Findings,
) {
    let mut rows = FileRows::default();
    for path in paths {
        rows.read(files, path, findings);
    }
    if findings.any_wrong() {
        return;
    }
    let at = Place::file("--scenarios");
    let given =
        |found: Option<GivenScenarios>| found.map_or(SeriesPlan::InSample, SeriesPlan::Given);
    if !rows.inflows.is_empty() {
        plan.inflows = given(inflows(&rows.inflows, system, &at, findings));
    }
    if !rows.loads.is_empty() {
        plan.loads = given(loads(&rows.loads, system, &at, findings));
    }
    if !rows.sources.is_empty() {
        plan.sources = given(sources(&rows.sources, system, &at, findings));
    }
    plan.pair(&at, findings);
}

impl FileRows {
    /// Reads a file; its columns say of what kind its scenarios are.
    fn read(&mut self, files: &Files, path: &Path, findings: &mut Findings) {
        let shown = path.display().to_string();
        let file = ScenarioFile {
            at: Place::file(&shown),
            name: path
                .file_stem()
                .map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        };
        let columns = match table::column_names(path) {
            Ok(columns) => columns,
            Err(error) => {
                findings.wrong(&file.at, error);
                return;
            }
        };
        let has = |name: &str| columns.iter().any(|column| column == name);
        let sizes = &files.sizes;
        if has("hydro_id") {
            let rows = table::read_file::<ExternalInflow>(path, &shown, sizes, findings);
            self.inflows
                .extend(inflow_rows(&rows.unwrap_or_default(), &file));
        } else if has("bus_id") {
            let rows = table::read_file::<ExternalLoad>(path, &shown, sizes, findings);
            self.loads
                .extend(load_rows(&rows.unwrap_or_default(), &file));
        } else if has("ncs_id") {
            let rows = table::read_file::<ExternalSources>(path, &shown, sizes, findings);
            self.sources
                .extend(source_rows(&rows.unwrap_or_default(), &file));
        } else {
            let message =
                "it has no column hydro_id, bus_id or ncs_id, which says whose values they are";
            findings.wrong(&file.at, message);
        }
    }
}

/// The scenarios of inflows by scenario, stage and plant.
fn of_values(
    system: &System,
    labels: &[String],
    values: &[Vec<Vec<f64>>],
    findings: &mut Findings,
) -> Option<GivenScenarios> {
    let at = Place::file("paths");
    let (stages, plants) = (system.stages.len(), system.hydros.len());
    let fits = |path: &Vec<Vec<f64>>| {
        path.len() == stages && path.iter().all(|stage| stage.len() == plants)
    };
    if values.is_empty() || !values.iter().all(fits) {
        let message =
            format!("inflows of paths × {stages} stages × {plants} hydro plants are expected");
        findings.wrong(&at, message);
        return None;
    }
    let (stage_ids, plant_ids) = (
        system.indices.stages.numbers(),
        system.indices.hydros.numbers(),
    );
    let mut rows = Vec::new();
    for (scenario, path) in values.iter().enumerate() {
        let name = labels.get(scenario).cloned().unwrap_or_default();
        let name = if name.is_empty() {
            (scenario + 1).to_string()
        } else {
            name
        };
        for (stage, of_stage) in path.iter().enumerate() {
            for (plant, &value) in of_stage.iter().enumerate() {
                if !value.is_finite() || value.abs() > cobre_sddp::LARGEST {
                    let message = format!(
                        "path {}, stage {}, plant {}: {value} is no inflow",
                        scenario + 1,
                        stage + 1,
                        plant + 1
                    );
                    findings.wrong(&at, message);
                    return None;
                }
                rows.push(GivenRow {
                    scenario: name.clone(),
                    stage: stage_ids[stage],
                    thing: plant_ids[plant],
                    value,
                    at: at.clone(),
                });
            }
        }
    }
    inflows(&rows, system, &at, findings)
}
