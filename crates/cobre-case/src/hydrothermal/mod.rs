//! Hydrothermal cases: a directory of JSON and Parquet.
//!
//! [`files`] says what may be written, [`system`] what it means, [`sampling`] what is uncertain, and
//! [`model`] makes linear programs of it. Each adds what is wrong to one list. [`results`] says what their
//! solutions mean.

mod date;
mod estimation;
mod files;
mod fits;
mod hydraulic_warnings;
mod inflow_fits;
mod inflow_sign;
mod inflow_variance;
mod json;
mod keyed;
mod model;
mod number;
mod paths;
mod release18;
mod results;
mod sampling;
mod settings;
mod size;
mod system;
mod table;
mod terminal;
mod warnings;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use cobre_sddp::{Overrides, Problem, Risk};

use self::files::Files;
use self::model::StageProblems;
use self::paths::{PathPlan, PathPlans};
use self::results::SimulationTables;
use self::sampling::OpeningSampler;
use self::system::System;
use crate::finding::{Finding, Findings, Place};
use crate::{Case, Checked, Options};

pub use self::estimation::InflowDiagnostics;
pub(crate) use self::fits::read as read_fits;
pub use self::fits::{FittedPlane, ProductionFit};
pub(crate) use self::inflow_fits::read as read_inflow_fits;
pub use self::inflow_fits::{InflowFit, InflowFits, SeasonModel};
pub(crate) use self::release18::migrate;
pub use self::release18::{Migrated, Release};
pub use self::results::simulation_tables;

/// Days from 1970-01-01 to the first of a month, from 0.
pub(crate) fn days_to_month(year: i32, month: usize) -> i32 {
    let first = date::Date::of(year.into(), i64::try_from(month + 1).unwrap_or(1), 1);
    i32::try_from(first.0).unwrap_or(i32::MAX)
}

/// True if a directory looks like a case.
///
/// # Errors
/// When the system does not let it be looked into.
pub(crate) fn is_case(path: &Path) -> std::io::Result<bool> {
    let mut refused = None;
    for (file, needed, _) in files::json_files() {
        match path.join(file).try_exists() {
            Ok(true) if needed => return Ok(true),
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(false), Err)
}

/// True if there is anything at a path: a directory or a link to nothing is not what was meant, but it is
/// there.
fn is_there(path: &Path) -> bool {
    let absent = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    !path.symlink_metadata().is_err_and(absent)
}

/// A case whose files are read and checked.
struct Resolved {
    files: Files,
    system: System,
    settings: Overrides,
    sampling: OpeningSampler,
    paths: PathPlans,
    findings: Findings,
}

impl Resolved {
    fn read(path: &Path, options: &Options, overrides: Option<&str>) -> Result<Self, Vec<Finding>> {
        let (files, mut system, mut findings) = resolve_system(path, overrides)?;
        system.terminal = terminal::resolve(path, &files, &system, options, &mut findings);
        let mut settings = settings::resolve(
            &files.config,
            files.stages.policy_graph.r#type,
            &mut findings,
        );
        inflow_sign::refuse(&system, options, &mut findings);
        let sampling = OpeningSampler::resolve(&files, &system, &mut findings);
        let paths = if findings.any_wrong() {
            PathPlans::default()
        } else {
            paths::resolve(&files, &system, options, &mut findings)
        };
        if findings.any_wrong() {
            return Err(findings.sorted());
        }
        if files.config.training.selection.is_some() {
            let count = paths.training.as_ref().and_then(PathPlan::count);
            settings.passes = count.and_then(NonZeroUsize::new);
        }
        if settings.simulate > Some(0) && files.config.simulates_all() {
            settings.simulate = paths.simulation.as_ref().and_then(PathPlan::count);
        }
        let plan = paths
            .simulation
            .as_ref()
            .filter(|_| options.scenarios.is_some());
        if let Some(count) = plan.and_then(PathPlan::count) {
            settings.simulate = Some(count);
        }
        Ok(Self {
            files,
            system,
            settings,
            sampling,
            paths,
            findings,
        })
    }
}

/// The settings of the case in a directory and its attitude to risk, or everything that is wrong with its files.
pub(crate) fn check(
    path: &Path,
    options: &Options,
    overrides: Option<&str>,
) -> Result<Checked, Vec<Finding>> {
    let case = Resolved::read(path, options, overrides)?;
    let risk = |stage: &system::Stage| options.risk.unwrap_or(stage.risk);
    Ok(Checked {
        risk_neutral: case
            .system
            .stages
            .iter()
            .map(risk)
            .all(Risk::is_expectation),
        settings: case.settings,
    })
}

/// The files of the case in a directory and what they mean, with the findings so far; everything that is wrong if they
/// cannot be read or are too large.
fn resolve_system(
    path: &Path,
    overrides: Option<&str>,
) -> Result<(Files, System, Findings), Vec<Finding>> {
    let mut findings = Findings::default();
    let Some(files) = Files::read(path, overrides, &mut findings) else {
        return Err(findings.sorted());
    };
    if !size::check(&files, &mut findings) {
        return Err(findings.sorted());
    }
    let system = System::resolve(&files, &mut findings);
    Ok((files, system, findings))
}

/// The case in a directory, with everything that looks wrong, or everything that is wrong.
pub(crate) fn read(
    path: &Path,
    options: &Options,
    overrides: Option<&str>,
) -> Result<Case, Vec<Finding>> {
    let Resolved {
        files,
        system,
        settings,
        sampling,
        paths,
        mut findings,
    } = Resolved::read(path, options, overrides)?;
    let mut lowest = inflow_sign::lowest(&system, &sampling);
    warnings::find(&files, &system, &lowest, &mut findings);
    paths.lower(&mut lowest);
    match model::build(&system, &sampling, &lowest, &paths, options) {
        Ok(StageProblems {
            mut problem,
            layouts,
            series,
        }) => {
            put_terminal(&files, &system, &mut problem, &mut findings)?;
            warnings::scale(&problem, &mut findings);
            problem.paths = paths::sources(paths, &system, series, sampling);
            Ok(Case {
                kind: "hydrothermal",
                problem,
                tables: Arc::new(SimulationTables::new(&files, &system, layouts)),
                settings,
                warnings: findings.sorted(),
            })
        }
        Err(problems) => {
            for problem in problems {
                findings.wrong(&Place::file("."), problem);
            }
            Err(findings.sorted())
        }
    }
}

/// Puts the terminal value of a case after its last stage.
fn put_terminal(
    files: &Files,
    system: &System,
    problem: &mut Problem,
    findings: &mut Findings,
) -> Result<(), Vec<Finding>> {
    let is_table = !files.terminal_water_values.is_empty();
    let Err(problems) = terminal::put(&system.terminal, is_table, problem) else {
        return Ok(());
    };
    let at = Place::file(files::config::FILE).key("policy.boundary");
    for problem in problems {
        findings.wrong(&at, problem);
    }
    Err(std::mem::take(findings).sorted())
}

/// The JSON Schemas of the files of a case: the file's path below the case, and the schema.
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    let files = files::json_files().into_iter();
    let titled = files.map(|(file, _, mut schema)| {
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = file.into();
        (file, schema)
    });
    titled.collect()
}

/// A table of the format: its path below a case, and its columns: name, what it holds, whether it may
/// be left out, and what it means.
pub type TableDescription = (
    &'static str,
    Vec<(&'static str, &'static str, bool, &'static str)>,
);

/// The tables of a case.
pub fn tables() -> Vec<TableDescription> {
    let tables = files::tables().into_iter();
    let described = tables.map(|(file, columns)| {
        let columns = columns.into_iter();
        let columns =
            columns.map(|(name, holds, optional, means)| (name, holds.name(), optional, means));
        (file, columns.collect())
    });
    described.collect()
}
