//! `cobre summary`: the essentials of a run, in the terminal.

mod costs;
mod equipment;
mod system;
mod water;

pub(crate) use self::costs::by_kind;

use std::path::PathBuf;

use cobre_results::layout::{STAGE, convergence, paths, stage_columns, states, timings};
use cobre_results::statistics::{mean, percentile, sorted};
use cobre_results::{Results, ResultsError};
use serde_json::Value;

use crate::amount::Scale;
use crate::exit;
use crate::terminal_table::{TerminalTable, fact, number, plural, title};

const NAME: &str = "cobre summary";

/// Shows the essentials of a run: what it was, how it converged, what the policy costs, and what the system
/// does under it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory that `cobre run --output` has written
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
}

/// Shows and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let shown = Results::open(&args.output).and_then(|results| show(&results));
    match shown {
        Ok(()) => exit::DONE,
        Err(error) => exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    }
}

fn show(results: &Results) -> Result<(), ResultsError> {
    facts(results);
    convergence(results)?;
    if results.table(paths::TABLE)?.is_none() {
        title(
            match results.run["interrupted"].as_str() {
                Some("simulation") => {
                    "the simulation was interrupted: cobre run --resume goes on with it"
                }
                Some(_) => "nothing was simulated, as training was interrupted",
                None => "no scenarios were simulated: cobre run --simulate N does",
            },
            false,
        );
        return Ok(());
    }
    if results.hydrothermal() {
        costs::show(results)?;
        system::storage(results)?;
        equipment::show(results)?;
        system::deficit(results)?;
        system::marginal_costs(results)?;
        water::uses(results)?;
        water::production(results)?;
        water::violations(results)
    } else {
        costs::values(results)?;
        states(results)
    }
}

/// The value of `run.json` at a place, as text.
pub(crate) fn told(run: &Value, place: &str) -> String {
    match run.pointer(place) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => {
            let runs = list.chunk_by(|left, right| left == right);
            let list = runs.map(|run| match run.len() {
                1 => told(&run[0], ""),
                count => format!("{} ({count} times)", told(&run[0], "")),
            });
            list.collect::<Vec<_>>().join(", ")
        }
        Some(Value::Number(found)) if found.is_f64() => number(found.as_f64().unwrap_or(f64::NAN)),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    }
}

fn facts(results: &Results) {
    let said = |place: &str| told(&results.run, place);
    title(&format!("run {}", results.path.display()), true);
    fact("case", &format!("{} ({})", said("/case"), said("/kind")));
    fact(
        "finished",
        &format!("{} by cobre {}", said("/finished"), said("/cobre")),
    );
    let mut hosts: Vec<&str> = results.run["hosts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    hosts.dedup();
    fact(
        "ranks",
        &format!(
            "{} on {}, {}, on {}",
            said("/ranks"),
            said("/backend"),
            threads(&results.run["threads"]),
            hosts.join(", ")
        ),
    );
    if let Some(part) = results.run["interrupted"].as_str() {
        let what = format!("in the {part}, which is not complete; go on with cobre run --resume");
        fact("interrupted", &what);
    }
    fact("training", &training(results));
    if let Some(bound) = results.run["bound"].as_f64() {
        let scale = Scale::of(bound);
        let half = results.run["bound_half_width_95"].as_f64();
        let told = scale.bound(bound, half, unit(results));
        let meaning = if neutral(results) {
            ""
        } else {
            ", risk-adjusted"
        };
        fact("bound", &format!("{told}{meaning}"));
        if let Some(upper) = results.run["upper_bound"].as_f64() {
            let apart = 100.0 * (upper - bound).abs() / bound.abs().max(1e-9);
            fact(
                "other side",
                &format!(
                    "{}, {apart:.3} % from the bound",
                    scale.told(upper, unit(results))
                ),
            );
        }
    }
    fact("simulation", &simulation(results));
    let trouble = ["/lp/fallbacks", "/lp/retries"];
    let trouble = trouble.map(|place| results.run.pointer(place).and_then(Value::as_u64));
    if trouble.into_iter().flatten().any(|count| count > 0) {
        solver(&said);
    }
    fact(
        "settings",
        &format!(
            "seed {}, forward passes {}, cuts {}, {}",
            said("/settings/seed"),
            said("/settings/forward_passes"),
            said("/settings/cut_selection"),
            said("/settings/risk")
        ),
    );
    if !trained_nothing(results) {
        fact("stop", &said("/settings/stop"));
    }
    fact("policy", &said("/policy_sha256"));
}

/// Threads of each rank, once if all have as many.
fn threads(of_ranks: &Value) -> String {
    let list = of_ranks.as_array().map_or(&[][..], Vec::as_slice);
    match list {
        [one] => plural(one.as_u64().unwrap_or(0) as usize, "thread"),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!(
                "{} each",
                plural(first.as_u64().unwrap_or(0) as usize, "thread")
            )
        }
        _ => format!("threads {}", told(of_ranks, "")),
    }
}

/// The unit of costs: StochOptFormat has none.
fn unit(results: &Results) -> &'static str {
    if results.hydrothermal() { "$" } else { "" }
}

/// True if the bound holds for the mean: under a risk measure it does not.
fn neutral(results: &Results) -> bool {
    results.manifest["risk"] == "expectation"
}

/// True if the policy is that of another run.
fn trained_nothing(results: &Results) -> bool {
    results.run["iterations"] == 0 && results.run["warm_start_sha256"].is_string()
}

/// Iterations and time of training, and the rule that ended it.
fn training(results: &Results) -> String {
    if trained_nothing(results) {
        return "none: the policy is that of another run".to_owned();
    }
    let said = |place: &str| told(&results.run, place);
    let iterations = results.run["iterations"].as_u64().unwrap_or(0) as usize;
    format!(
        "{} in {} s, ended by {}",
        plural(iterations, "iteration"),
        trained_for(results).map_or_else(|| said("/seconds/train"), number),
        said("/stop_reason").replace('_', " ")
    )
}

/// The counters of the solvers, where something went wrong.
fn solver(said: &dyn Fn(&str) -> String) {
    fact(
        "solver",
        &format!(
            "{}: {} LPs, {} by HiGHS; the kernel gave up {}, HiGHS tried again {}",
            said("/solver"),
            said("/lp_solves"),
            said("/lp/highs"),
            said("/lp/fallbacks"),
            said("/lp/retries")
        ),
    );
}

/// Seconds of training, those before it was resumed included.
fn trained_for(results: &Results) -> Option<f64> {
    let table = results.needed(timings::TABLE).ok()?;
    table.all_numbers(timings::SECONDS).ok()?.last().copied()
}

/// The cost of the policy on the simulated scenarios, and its gap to the bound.
fn simulation(results: &Results) -> String {
    let found = |place: &str| results.run.pointer(place).and_then(Value::as_f64);
    let Some(mean) = found("/estimate/mean") else {
        return "none".to_owned();
    };
    let scale = Scale::of(mean);
    let value = match found("/estimate/half_width_95") {
        Some(half) => format!("{} (95 %)", scale.told_within(mean, half, unit(results))),
        None => scale.told(mean, unit(results)),
    };
    // Paths of so many stages lack the cost of what follows.
    let stages = results
        .run
        .pointer("/settings/simulate_stages")
        .and_then(Value::as_u64);
    let bound = found("/bound");
    let bound = bound.filter(|bound| neutral(results) && stages.is_none() && *bound != 0.0);
    let gap = bound.map(|bound| {
        let gap = 100.0 * (mean - bound) / bound.abs();
        let side = if gap < 0.0 { "below" } else { "above" };
        format!(", {:.3} % {side} the bound", gap.abs())
    });
    let gap = gap.unwrap_or_default();
    let told = |place: &str| told(&results.run, place);
    let count = found("/estimate/paths").unwrap_or(0.0) as usize;
    let (count, seconds) = (plural(count, "scenario"), told("/seconds/simulate"));
    let stages = stages
        .map(|stages| format!(" of {stages} stages"))
        .unwrap_or_default();
    format!("{value}{gap}; {count}{stages} in {seconds} s")
}

/// About ten iterations, the first and the last among them.
fn convergence(results: &Results) -> Result<(), ResultsError> {
    let table = results.needed(convergence::TABLE)?;
    let column = |name: &str| table.all_numbers(name);
    let (bounds, means) = (
        column(convergence::BOUND)?,
        column(convergence::ESTIMATE_MEAN)?,
    );
    let (halves, gaps) = (
        column(convergence::ESTIMATE_HALF_WIDTH_95)?,
        column(convergence::GAP)?,
    );
    let (iterations, cuts) = (column(convergence::ITERATION)?, column(convergence::CUTS)?);
    if iterations.is_empty() {
        return Ok(());
    }
    title("convergence", false);
    let mut table = TerminalTable::new(["iteration", "bound", "estimate", "± 95 %", "gap", "cuts"]);
    for row in some(bounds.len()) {
        let gap = gaps[row];
        let gap = if gap.is_nan() {
            "-".to_owned()
        } else {
            format!("{:.3} %", 100.0 * gap)
        };
        table.row([
            format!("{}", iterations[row]),
            format!("{:.6e}", bounds[row]),
            format!("{:.4e}", means[row]),
            number(halves[row]),
            gap,
            format!("{}", cuts[row]),
        ]);
    }
    table.print();
    Ok(())
}

/// Some of `count` places: all if they are few, else 1, 2, 5, 10, … of them and the last.
pub(crate) fn some(count: usize) -> Vec<usize> {
    if count <= 12 {
        return (0..count).collect();
    }
    let mut places = vec![0, 1, 4];
    while places[places.len() - 3] * 10 + 9 < count {
        places.push(places[places.len() - 3] * 10 + 9);
    }
    places.push(count - 1);
    places.dedup();
    places
}

/// Mean and percentiles of some values.
pub(crate) fn spread(values: &[f64], told: impl Fn(f64) -> String) -> [String; 3] {
    let sorted = sorted(values.iter().copied());
    [
        mean(values.iter().copied()),
        percentile(&sorted, 5.0),
        percentile(&sorted, 95.0),
    ]
    .map(told)
}

/// The states that the last stage leaves.
fn states(results: &Results) -> Result<(), ResultsError> {
    let Some(table) = results.table(states::TABLE)? else {
        return Ok(());
    };
    let stages = table.all_integers(STAGE)?;
    let last = stages.iter().copied().max().unwrap_or(0);
    title(&format!("states after stage {last}"), false);
    let mut shown = TerminalTable::new(["state", "mean", "p5", "p95"]);
    for name in table.columns().iter().skip(stage_columns().len()) {
        let values = table.all_numbers(name)?;
        let at_end = values
            .iter()
            .zip(&stages)
            .filter(|(_, stage)| **stage == last);
        let at_end: Vec<f64> = at_end.map(|(value, _)| *value).collect();
        let [mean, low, high] = spread(&at_end, number);
        shown.row([name.clone(), mean, low, high]);
    }
    shown.print();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::some;

    #[test]
    fn long_lists_are_shown_by_their_decades_and_their_end() {
        assert_eq!(some(0), [0; 0]);
        assert_eq!(some(3), [0, 1, 2]);
        assert_eq!(some(200), [0, 1, 4, 9, 19, 49, 99, 199]);
    }
}
