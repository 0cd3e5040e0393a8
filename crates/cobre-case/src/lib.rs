//! Readers of problem files into problems that `cobre-sddp` can solve: hydrothermal cases and
//! StochOptFormat files.
//!
//! - [`load`] reads a case directory or a StochOptFormat file into a [`Case`]: the problem, the tables of its
//!   simulations, its settings and warnings. A [`CaseError`] has everything that is wrong, each [`Finding`] with its file
//!   and place.
//! - [`template`] has complete cases to start from, as `cobre init` writes them.
//!
//! A case is written, loaded and trained:
//!
//! ```
//! use cobre_case::template::Template;
//! use cobre_case::{Options, load};
//! use cobre_comm::LocalBackend;
//! use cobre_sddp::{Settings, StopRule, Stopping, run};
//!
//! let directory = tempfile::tempdir()?;
//! let template = Template::find("one-reservoir").expect("cobre init has it");
//! template.files().write(directory.path())?;
//!
//! let case = load(directory.path(), &Options::default())?;
//! assert_eq!(case.kind, "hydrothermal");
//! let stopping = Stopping::any(vec![StopRule::Iterations(5)]);
//! let settings = Settings { stopping, ..Settings::default() };
//! let results = run(&LocalBackend, case.problem, &settings, &mut ())?;
//! assert!(results.trained.bound > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boundary;
mod duplicate_keys;
mod error;
mod finding;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod hydrothermal;
mod output_place;
pub mod sample;
mod stoch_opt_format;
pub mod template;

pub use boundary::Boundary;
pub use error::CaseError;
pub use finding::{Finding, Severity};
pub use hydrothermal::{
    FittedPlane, InflowDiagnostics, InflowFit, InflowFits, Migrated, ProductionFit, Release,
    SeasonModel, TableDescription, schemas, simulation_tables, tables,
};
pub use output_place::output_inside;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cobre_sddp::{Overrides, PlainTables, Problem, Risk, Tables};

/// Options of the command line that change the problem of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// A bound that the cost to go is never below (or the revenue to go above).
    pub bound: Option<f64>,
    /// The risk measure, in place of that of the files; files without one mean
    /// the expectation.
    pub risk: Option<Risk>,
    /// The scenarios that are simulated, in place of the paths of the files.
    pub scenarios: Option<Scenarios>,
}

/// Scenarios that a policy is simulated on.
#[derive(Debug, Clone, PartialEq)]
pub enum Scenarios {
    /// Files: of a hydrothermal case, tables in the form of its `external_*_scenarios.parquet`; of a StochOptFormat file,
    /// one in the form of its validation scenarios.
    Files(Vec<PathBuf>),
    /// Past years of the inflow history of a hydrothermal case; all complete ones if empty.
    Years(Vec<i32>),
    /// The inflows of a hydrothermal case, m³/s, by path, stage and hydro plant, with the names of paths.
    Inflows {
        /// The names of paths; numbers where there are none.
        labels: Vec<String>,
        /// The inflows.
        values: Vec<Vec<Vec<f64>>>,
    },
}

/// A problem that a user has brought, with all that its files say.
#[derive(Debug, Clone)]
pub struct Case {
    /// The kind of the case, in one word.
    pub kind: &'static str,
    /// The problem.
    pub problem: Problem,
    /// The tables of simulated paths.
    pub tables: Arc<dyn Tables>,
    /// The settings of training and simulation that it asks for.
    pub settings: Overrides,
    /// Warnings.
    pub warnings: Vec<Finding>,
}

/// Reads what is at `path`: a directory is a hydrothermal case, and the name of a file says what
/// kind it is.
///
/// # Errors
/// Files that cannot be read, and everything that is wrong with those that can.
pub fn load(path: &Path, options: &Options) -> Result<Case, CaseError> {
    load_with(path, options, None)
}

/// [`load`], with `overrides` over the case's `config.json`: a JSON object of the same form, whose
/// values take the place of those in the file.
///
/// # Errors
/// As [`load`], and overrides for what has no `config.json`.
pub fn load_with(
    path: &Path,
    options: &Options,
    overrides: Option<&str>,
) -> Result<Case, CaseError> {
    if path.is_dir() {
        let case = directory(path, || hydrothermal::read(path, options, overrides));
        return case.map(|mut case| {
            name_tables(path, &mut case.warnings);
            case
        });
    }
    if overrides.is_some() {
        return Err(CaseError::NoConfig {
            path: path.to_owned(),
        });
    }
    let unreadable = |source| CaseError::Unreadable {
        path: path.to_owned(),
        source,
    };
    std::fs::metadata(path).map_err(unreadable)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(".sof.json") {
        return Err(CaseError::UnknownKind {
            path: path.to_owned(),
        });
    }
    let text = cobre_files::read(path, cobre_files::MOST_TEXT_BYTES).map_err(unreadable)?;
    let problem = stoch_opt_format::read(&text, options).map_err(|errors| CaseError::Invalid {
        path: path.to_owned(),
        errors,
    })?;
    let given = problem.given.len();
    Ok(Case {
        kind: "stoch_opt_format",
        tables: Arc::new(PlainTables::new(&problem)),
        problem,
        settings: Overrides {
            simulate: (given > 0).then_some(given),
            ..Overrides::default()
        },
        warnings: Vec::new(),
    })
}

/// [`load`], with a terminal value of the caller in the place of that of the files.
///
/// # Errors
/// As [`load`], and a terminal value that cannot be read or does not fit.
pub fn load_bounded(
    path: &Path,
    options: &Options,
    boundary: Option<&Boundary>,
) -> Result<Case, CaseError> {
    let Some(boundary) = boundary else {
        return load(path, options);
    };
    if path.is_dir() {
        return load_with(path, options, Some(&boundary.overrides()));
    }
    let mut case = load(path, options)?;
    let applied = boundary.apply(&mut case.problem);
    applied.map_err(|errors| CaseError::Invalid {
        path: path.to_owned(),
        errors,
    })?;
    Ok(case)
}

/// The part of a [`Case`] that the start of ranks depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The settings of training and simulation that it asks for.
    pub settings: Overrides,
    /// True if its problem has no risk measure but the expectation.
    pub risk_neutral: bool,
}

/// Finds what [`load_with`] finds wrong in the files of a case, without building the linear programs of its problem.
///
/// # Errors
/// As [`load_with`].
pub fn check(
    path: &Path,
    options: &Options,
    overrides: Option<&str>,
) -> Result<Checked, CaseError> {
    if path.is_dir() {
        return directory(path, || hydrothermal::check(path, options, overrides));
    }
    load_with(path, options, overrides).map(|case| Checked {
        settings: case.settings,
        risk_neutral: case.problem.is_risk_neutral(),
    })
}

/// Reads the directory of a case.
fn directory<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Vec<Finding>>,
) -> Result<T, CaseError> {
    let path = path.to_owned();
    match hydrothermal::is_case(&path) {
        Ok(true) => read().map_err(|mut findings| {
            name_tables(&path, &mut findings);
            CaseError::Case { path, findings }
        }),
        Ok(false) => Err(CaseError::NotACase { path }),
        Err(source) => Err(CaseError::Unreadable { path, source }),
    }
}

/// Gives the findings of tables the names of the files that are there: of CSV files, where a case has no Parquet file.
fn name_tables(case: &Path, findings: &mut [Finding]) {
    for finding in findings {
        let Some(name) = finding.file.strip_suffix(".parquet") else {
            continue;
        };
        let csv = format!("{name}.csv");
        if !case.join(&finding.file).exists() && case.join(&csv).exists() {
            finding.file = csv;
        }
    }
}

/// The fitted production functions of the hydrothermal case in a directory.
///
/// # Errors
/// Paths that are no such case, and everything that is wrong with one.
pub fn fits(path: &Path) -> Result<Vec<ProductionFit>, CaseError> {
    hydrothermal_case(path, hydrothermal::read_fits)
}

/// The inflow models that are estimated from the history of the hydrothermal case in a directory; none if nothing is.
///
/// # Errors
/// As [`fits`].
pub fn inflow_fits(path: &Path) -> Result<Option<InflowFits>, CaseError> {
    hydrothermal_case(path, hydrothermal::read_inflow_fits)
}

/// Reads the directory of a hydrothermal case.
fn hydrothermal_case<T>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<T, Vec<Finding>>,
) -> Result<T, CaseError> {
    let unreadable = |source| CaseError::Unreadable {
        path: path.to_owned(),
        source,
    };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(CaseError::NotACase {
            path: path.to_owned(),
        });
    }
    directory(path, || read(path))
}

/// The hydrothermal case in a directory, in the form of the other release of the format: 0.5 as 0.18, and back.
///
/// # Errors
/// Paths that are no such case, and everything that is wrong with one.
pub fn migrate(path: &Path) -> Result<Migrated, CaseError> {
    directory(path, || hydrothermal::migrate(path))
}

/// The name of the schema of a file, given by its path below a case.
pub fn schema_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.replace(".json", ".schema.json")
}

/// The problem at `path`; see [`load`].
///
/// # Errors
/// As [`load`].
pub fn read(path: &Path, options: &Options) -> Result<Problem, CaseError> {
    load(path, options).map(|case| case.problem)
}
