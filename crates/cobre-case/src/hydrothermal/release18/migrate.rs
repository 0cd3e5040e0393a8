//! A case in the form of the other release.

use std::path::Path;

use super::newer::{self, JsonFiles};
use super::newer_tables::{self, Observation};
use super::{COLUMNS, older, own};
use crate::Options;
use crate::finding::{Finding, Findings, Place};
use crate::hydrothermal::files::scenarios::ArCoefficients;
use crate::hydrothermal::files::{self, Files};
use crate::hydrothermal::json::Json;
use crate::hydrothermal::system::System;
use crate::hydrothermal::{Resolved, table};
use crate::template::{CaseFiles, TemplateColumn};

/// A release of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// 0.5.
    Older,
    /// 0.18.
    Newer,
}

impl Release {
    /// Its number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Older => "0.5",
            Self::Newer => "0.18",
        }
    }
}

/// A case in the form of another release.
#[derive(Debug)]
pub struct Migrated {
    /// The release of the case.
    pub from: Release,
    /// The release of its files now.
    pub to: Release,
    /// Its files.
    pub files: CaseFiles,
    /// The data that the release has no place for.
    pub lost: Vec<String>,
}

const BOUNDS: &str = "constraints/generic_constraint_bounds.parquet";
const COEFFICIENTS: &str = "scenarios/inflow_ar_coefficients.parquet";
const HISTORY: &str = "scenarios/inflow_history.parquet";
const LINE_BOUNDS: &str = "constraints/line_bounds.parquet";
const HYDRO_OVERRIDES: &str = "constraints/penalty_overrides_hydro.parquet";

/// The column of residual ratios, which 0.18 derives from the coefficients.
const RESIDUAL: &str = "residual_std_ratio";

/// Rewrites a sound case in the form of the other release.
pub(crate) fn migrate(case: &Path) -> Result<Migrated, Vec<Finding>> {
    super::super::read(case, &Options::default(), None)?;
    let Resolved {
        mut files, system, ..
    } = Resolved::read(case, &Options::default(), None)?;
    let mut findings = Findings::default();
    let mut jsons = json_files(case);
    let from = release(&jsons);
    let (mut lost, mut written) = (Vec::new(), CaseFiles::default());
    let senses = senses(&jsons);
    let (mut to, mut observations) = (Release::Older, Vec::new());
    match from {
        Release::Older => {
            own::find(&jsons, &files, &mut lost);
            newer::translate(&mut jsons, &newer_tables::turbined_costs(&system));
            observations = newer_tables::past_inflows(&files, &system, &mut lost);
            to = Release::Newer;
        }
        Release::Newer => {
            for (file, json) in &mut jsons {
                older::translate(case, file, json);
            }
        }
    }
    for (file, mut json) in jsons {
        json.take("$schema");
        written.insert(&file, json.pretty());
    }
    let mut rewriter = Rewriter {
        to,
        senses: &senses,
        files: &mut files,
        system: &system,
        observations: &observations,
        lost: &mut lost,
    };
    for (file, _) in files::tables() {
        match rewriter.table(case, file) {
            Ok(None) => {}
            Ok(Some(columns)) => {
                let columns = columns
                    .iter()
                    .map(|(name, column)| (name.as_str(), column.clone()));
                written.table(file, &columns.collect::<Vec<_>>());
            }
            Err(error) => findings.wrong(&Place::file(file), error),
        }
    }
    if findings.any_wrong() {
        return Err(findings.sorted());
    }
    Ok(Migrated {
        from,
        to,
        files: written,
        lost,
    })
}

/// The JSON files of a case.
fn json_files(case: &Path) -> JsonFiles {
    let mut found = JsonFiles::new();
    for (file, _, _) in files::json_files() {
        if let Ok(text) = cobre_files::read(&case.join(file), cobre_files::MOST_TEXT_BYTES)
            && let Ok(json) = serde_json::from_slice::<Json>(&text)
        {
            found.insert(file.to_owned(), json);
        }
    }
    found
}

/// The release that a case has the form of: keys that only one has.
fn release(files: &JsonFiles) -> Release {
    let config = files.get("config.json");
    let training = config.and_then(|config| config.get("training"));
    let selection = training.and_then(|training| training.get("selection"));
    let sampled = selection.is_some_and(|own| own.text("method") == Some("sampled"));
    let openings = files.get("stages.json").is_some_and(older::counts_openings);
    if sampled || openings {
        Release::Newer
    } else {
        Release::Older
    }
}

/// The senses of generic constraints, by number.
fn senses(files: &JsonFiles) -> Vec<(i64, String)> {
    let file = files.get("constraints/generic_constraints.json");
    let constraints = file.map_or(&[][..], |file| file.all("constraints"));
    let senses = constraints.iter().filter_map(|constraint| {
        let id = constraint.number("id")? as i64;
        Some((id, constraint.text("sense")?.to_owned()))
    });
    senses.collect()
}

/// The columns of a table.
pub(super) type Columns = Vec<(String, TemplateColumn)>;

/// Rewrites tables.
struct Rewriter<'r> {
    to: Release,
    senses: &'r [(i64, String)],
    files: &'r mut Files,
    system: &'r System,
    /// Rows of the history that are past inflows.
    observations: &'r [Observation],
    lost: &'r mut Vec<String>,
}

impl Rewriter<'_> {
    /// The columns of a table of the case in the other form; none if there is no such table.
    fn table(&mut self, case: &Path, file: &str) -> Result<Option<Columns>, String> {
        let mut columns = table::all_columns(case, file)?.unwrap_or_default();
        for (_, newer, older) in COLUMNS.iter().filter(|(of, _, _)| *of == file) {
            let (from, to) = match self.to {
                Release::Newer => (older, newer),
                Release::Older => (newer, older),
            };
            let column = columns.iter_mut().find(|(name, _)| name == from);
            if let Some((name, _)) = column {
                (*to).clone_into(name);
            }
        }
        match (file, self.to) {
            (HISTORY, Release::Newer) => {
                Self::ends(&mut columns);
                if !self.observations.is_empty() {
                    newer_tables::with_observations(&mut columns, self.observations);
                }
            }
            (LINE_BOUNDS, Release::Newer) => {
                columns = newer_tables::line_bounds(self.files, self.system).unwrap_or(columns);
            }
            (HYDRO_OVERRIDES, Release::Newer) => {
                newer_tables::turbined_overrides(self.system, &mut columns);
            }
            (COEFFICIENTS, Release::Older) => Self::residuals(case, &mut columns),
            (HISTORY, Release::Older) => columns.retain(|(name, _)| name != "end_date"),
            (BOUNDS, Release::Newer) => self.bounds(&mut columns),
            (COEFFICIENTS, Release::Newer) => {
                newer_tables::check_residuals(self.files, self.lost);
                columns.retain(|(name, _)| name != RESIDUAL);
            }
            _ => {}
        }
        Ok(Some(columns).filter(|columns| !columns.is_empty()))
    }

    /// Adds the residual ratios that 0.18 derives from the coefficients.
    fn residuals(case: &Path, columns: &mut Columns) {
        let name = RESIDUAL;
        let mut findings = Findings::default();
        if !columns.is_empty()
            && columns.iter().all(|(known, _)| known != name)
            && let Some(files) = Files::read(case, None, &mut findings)
        {
            let ratios = files.ar_coefficients.iter().map(ArCoefficients::residual);
            columns.push((name.to_owned(), TemplateColumn::Numbers(ratios.collect())));
        }
    }

    /// Adds the day after the month of each observation.
    fn ends(columns: &mut Columns) {
        let starts = columns.iter().find(|(name, _)| name == "start_date");
        let Some((_, TemplateColumn::Days(days))) = starts else {
            return;
        };
        let ends = days.iter().map(|day| table::month_end(*day)).collect();
        columns.push(("end_date".to_owned(), TemplateColumn::Days(ends)));
    }

    /// Makes bounds of constraints with a sense lower and upper ones.
    fn bounds(&self, columns: &mut Columns) {
        let of = |columns: &Columns, wanted: &str| {
            let found = columns.iter().find(|(name, _)| name == wanted);
            found.map(|(_, column)| column.numbers())
        };
        let (Some(ids), Some(bounds)) = (of(columns, "constraint_id"), of(columns, "bound")) else {
            return;
        };
        let side = |senses: [&str; 2], own: Option<Vec<Option<f64>>>| {
            let own = own.unwrap_or_else(|| vec![None; ids.len()]);
            let rows = ids.iter().zip(&bounds).zip(own);
            let rows = rows.map(|((id, bound), own)| {
                let id = id.unwrap_or(-1.0) as i64;
                let sense = self.senses.iter().find(|(of, _)| *of == id);
                match sense {
                    Some((_, sense)) if senses.contains(&sense.as_str()) => *bound,
                    Some(_) => None,
                    None => own,
                }
            });
            TemplateColumn::Maybe(rows.collect())
        };
        let lower = side([">=", "=="], of(columns, "bound_lower"));
        let upper = side(["<=", "=="], of(columns, "bound_upper"));
        columns
            .retain(|(name, _)| !["bound", "bound_lower", "bound_upper"].contains(&name.as_str()));
        columns.push(("bound_lower".to_owned(), lower));
        columns.push(("bound_upper".to_owned(), upper));
    }
}
