//! `cobre validate`: everything that is wrong with a case, or looks wrong, at once.

use std::path::PathBuf;

use cobre_case::{Case, CaseError, Finding, Options, Severity};
use cobre_comm::{ClassifiedError, memory};
use cobre_sddp::{MemoryEstimate, Settings};
use serde_json::{Value, json};

use crate::exit::{self, say};
use crate::terminal_table::plural;

/// In front of every message.
const NAME: &str = "cobre validate";

/// Checks a case without solving it: every error at once, and what looks suspicious.
///
/// PATH is what `cobre run` takes. Nothing is written. The exit code is 0 if the case can be run, 1
/// if not, and 2 if it cannot be read at all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The case
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Prints one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// Checks and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    // A file that needs a bound to be run needs none to be checked.
    let options = Options {
        bound: (!args.path.is_dir()).then_some(0.0),
        ..Options::default()
    };
    let mut loaded = cobre_case::load(&args.path, &options);
    if let Ok(case) = &mut loaded {
        case.warnings.extend(memory_warning(case));
    }
    if args.json {
        exit::say_json(&report(args, &loaded));
    }
    match loaded {
        Ok(case) => {
            if !args.json {
                tell(args, &case);
            }
            exit::DONE
        }
        Err(error) => {
            if !args.json {
                refuse(args, &error);
            }
            exit::of(error.kind())
        }
    }
}

/// The warning about memory that training takes on this machine.
fn memory_warning(case: &Case) -> Option<Finding> {
    let settings = Settings::default().with(case.settings.clone());
    let estimate = MemoryEstimate::of(&case.problem, &settings);
    let message = estimate.warning(memory::available() as u64, 1)?;
    Some(Finding {
        severity: Severity::Warning,
        file: "config.json".to_owned(),
        place: "training.forward_passes".to_owned(),
        message,
    })
}

fn tell(args: &Args, case: &Case) {
    for warning in &case.warnings {
        say!("warning: {warning}");
    }
    let size = case.problem.summary();
    say!(
        "{}: sound; {}; {}, {}, {}, at most {} × {} per stage",
        args.path.display(),
        plural(case.warnings.len(), "warning"),
        plural(size.stages, "stage"),
        plural(size.states, "state"),
        plural(size.openings, "opening"),
        plural(size.rows, "row"),
        plural(size.columns, "column")
    );
}

fn refuse(args: &Args, error: &CaseError) {
    let CaseError::Case { findings, .. } = error else {
        exit::fail(exit::of(error.kind()), NAME, &exit::told(error));
        return;
    };
    for finding in findings {
        say!("{}: {finding}", severity(finding));
    }
    let errors = error.errors().len();
    say!(
        "{}: {}, {}",
        args.path.display(),
        plural(errors, "error"),
        plural(findings.len() - errors, "warning")
    );
}

fn severity(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The line of JSON.
fn report(args: &Args, loaded: &Result<Case, CaseError>) -> Value {
    let list = |findings: &[Finding], wanted: Severity| -> Vec<Value> {
        let wanted = findings.iter().filter(|finding| finding.severity == wanted);
        wanted
            .map(|finding| json!({"file": finding.file, "place": finding.place, "message": finding.message}))
            .collect()
    };
    let (errors, warnings) = match loaded {
        Ok(case) => (Vec::new(), list(&case.warnings, Severity::Warning)),
        Err(CaseError::Case { findings, .. }) => (
            list(findings, Severity::Error),
            list(findings, Severity::Warning),
        ),
        Err(error) => {
            let file = args.path.display().to_string();
            let mut messages = error.errors();
            if messages.is_empty() {
                messages.push(exit::told(error));
            }
            let errors = messages.iter();
            let errors =
                errors.map(|message| json!({"file": file, "place": "", "message": message}));
            (errors.collect(), Vec::new())
        }
    };
    json!({
        "path": args.path.display().to_string(),
        "valid": loaded.is_ok(),
        "errors": errors,
        "warnings": warnings,
    })
}
