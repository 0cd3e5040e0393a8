//! `cobre fit`: what is fitted to the data of a case: production functions and inflow models.

mod inflow;

use std::path::PathBuf;

use cobre_case::{CaseError, InflowFits, ProductionFit};
use cobre_comm::{ClassifiedError, Fields};
use serde_json::{Value, json};

use crate::exit::{self, say};
use crate::terminal_table::{TerminalTable, plural};

/// In front of every message.
const NAME: &str = "cobre fit";

/// Shows what is fitted to the data of a case: hyperplanes of production functions, and inflow models of a history
///
/// Hyperplanes are shown with their largest and mean distance from the exact function without spillage, on a grid four
/// times as fine as that of the fit. Inflow models are shown with the autocorrelation that is left in their residuals,
/// whether these are normal, and whether the model is stationary; --output writes them as tables of a case, with a
/// page of diagnostics. The exit code is 0 if the case can be read, 1 if it is wrong, and 2 if it cannot be read at all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The case
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Prints every plane as well
    #[arg(long)]
    planes: bool,

    /// Writes the estimated inflow tables and a page about them into a new directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Prints one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// Fits and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let fitted = cobre_case::fits(&args.path)
        .and_then(|fits| Ok((fits, cobre_case::inflow_fits(&args.path)?)));
    let (fits, inflows) = match fitted {
        Ok(fitted) => fitted,
        Err(error) => return refuse(args, &error),
    };
    let written = match inflow::write(args, inflows.as_ref()) {
        Ok(written) => written,
        Err((kind, told)) => {
            if args.json {
                exit::say_json(&exit::error_json(kind, &told, Fields::default()));
                return exit::of(kind);
            }
            return exit::fail(exit::of(kind), NAME, &told);
        }
    };
    if args.json {
        exit::say_json(&report(args, &fits, inflows.as_ref(), &written));
    } else {
        tell(args, &fits);
        inflow::tell(args, inflows.as_ref(), &written);
    }
    exit::DONE
}

fn refuse(args: &Args, error: &CaseError) -> u8 {
    let (code, told) = (exit::of(error.kind()), exit::told(error));
    if args.json {
        exit::say_json(&exit::error_json(error.kind(), &told, error.fields()));
        return code;
    }
    exit::fail(code, NAME, &told)
}

fn tell(args: &Args, fits: &[ProductionFit]) {
    let path = args.path.display();
    if fits.is_empty() {
        say!("{path}: no plant has fitted hyperplanes (fpha_config.source \"computed\")");
        return;
    }
    say!(
        "{path}: {}",
        plural(fits.len(), "fitted production function")
    );
    let headings = [
        "plant",
        "stages",
        "planes",
        "scale",
        "largest error",
        "mean error",
    ];
    let mut table = TerminalTable::new(headings);
    for fit in fits {
        let percent = |error: f64| {
            let share = 100.0 * error / fit.max_generation_mw.max(f64::MIN_POSITIVE);
            format!("{error:.3} MW ({share:.2} %)")
        };
        let (first, last) = fit.stages;
        table.row([
            fit.hydro.clone(),
            format!("{first} to {last}"),
            fit.planes.len().to_string(),
            format!("{:.6}", fit.scale),
            percent(fit.largest_error_mw),
            percent(fit.mean_error_mw),
        ]);
    }
    table.print();
    if !args.planes {
        return;
    }
    let headings = ["plane", "MW", "MW/hm³", "MW/(m³/s)", "MW/(m³/s) spilled"];
    let mut table = TerminalTable::new(headings);
    for fit in fits {
        for (number, plane) in fit.planes.iter().enumerate() {
            table.row([
                format!("{} {}", fit.hydro, number + 1),
                format!("{:.6}", plane.gamma_0),
                format!("{:.6}", plane.gamma_v),
                format!("{:.6}", plane.gamma_q),
                format!("{:.6}", plane.gamma_s),
            ]);
        }
    }
    table.print();
}

/// The line of JSON.
fn report(
    args: &Args,
    fits: &[ProductionFit],
    inflows: Option<&InflowFits>,
    written: &[PathBuf],
) -> Value {
    let fits = fits.iter().map(|fit| {
        let planes = fit.planes.iter().map(|plane| {
            json!({
                "gamma_0": plane.gamma_0, "gamma_v": plane.gamma_v,
                "gamma_q": plane.gamma_q, "gamma_s": plane.gamma_s,
            })
        });
        json!({
            "hydro_id": fit.hydro_id,
            "hydro": fit.hydro,
            "stages": [fit.stages.0, fit.stages.1],
            "storages_hm3": [fit.storages_hm3.0, fit.storages_hm3.1],
            "max_turbined_m3s": fit.max_turbined_m3s,
            "max_generation_mw": fit.max_generation_mw,
            "scale": fit.scale,
            "largest_error_mw": fit.largest_error_mw,
            "mean_error_mw": fit.mean_error_mw,
            "planes": planes.collect::<Vec<_>>(),
        })
    });
    let written = written.iter().map(|path| path.display().to_string());
    json!({
        "path": args.path.display().to_string(),
        "fits": fits.collect::<Vec<_>>(),
        "inflow_models": inflow::report(inflows),
        "written": written.collect::<Vec<_>>(),
    })
}
