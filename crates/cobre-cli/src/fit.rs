//! `cobre fit`: fitted production functions of a case against the exact ones.

use std::path::PathBuf;

use cobre_case::{CaseError, ProductionFit};
use serde_json::{Value, json};

use crate::exit::{self, say};
use crate::terminal_table::{TerminalTable, plural};

/// In front of every message.
const NAME: &str = "cobre fit";

/// Shows the hyperplanes that are fitted to the geometry of hydro plants, and how far they are from the exact
/// production function.
///
/// Errors are largest and mean distances without spillage, on a grid four times as fine as that of the fit. Nothing
/// is written. The exit code is 0 if the case can be read, 1 if it is wrong, and 2 if it cannot be read at all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The case
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Prints every plane as well
    #[arg(long)]
    planes: bool,

    /// Prints one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// Fits and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    match cobre_case::fits(&args.path) {
        Ok(fits) => {
            if args.json {
                exit::say_json(&report(args, &fits));
            } else {
                tell(args, &fits);
            }
            exit::DONE
        }
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &CaseError) -> u8 {
    let code = exit::of_case(error);
    exit::fail(code, NAME, &exit::told(error))
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
fn report(args: &Args, fits: &[ProductionFit]) -> Value {
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
    json!({"path": args.path.display().to_string(), "fits": fits.collect::<Vec<_>>()})
}
