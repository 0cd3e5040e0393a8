//! `cobre report`: the results of a run as a page and as pictures.

use std::path::PathBuf;

use cobre_report::Report;
use cobre_results::{ResultsError, layout};

use crate::exit::{self, say};

/// In front of every message.
const NAME: &str = "cobre report";

/// Writes the results of a run as one HTML page that needs no network.
///
/// It has convergence, costs, storage, generation, exchange, marginal costs, water values, deficit risk, violations
/// and the facts of the run. With --png the charts are also written as pictures, for work in a terminal.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory that `cobre run --output` has written
    #[arg(value_name = "OUTPUT")]
    directory: PathBuf,
    /// The page [default: OUTPUT/report.html]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write each chart as a PNG file into this directory; it is made if need be
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
    /// Show this scenario in every chart, by its label (a year, a name) or its number; may be repeated
    #[arg(long, value_name = "LABEL")]
    scenario: Vec<String>,
}

/// Writes the report and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    match write(args) {
        Ok(()) => exit::DONE,
        Err(error) => exit::fail(exit::of_results(&error), NAME, &exit::told(&error)),
    }
}

fn write(args: &Args) -> Result<(), ResultsError> {
    let report = Report::read_with(&args.directory, &args.scenario)?;
    let beside = || args.directory.join(layout::REPORT);
    let place = args.output.clone().unwrap_or_else(beside);
    let pictures = report.write(&place, args.png.as_deref())?;
    say!("report    {}", place.display());
    if let Some(directory) = &args.png {
        say!("pictures  {} in {}", pictures.len(), directory.display());
    }
    Ok(())
}
