//! `cobre compare`: whether two runs have the same results, and what differs if not.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use cobre_results::layout::{self, CostKind, DICTIONARY, MANIFEST, timings};
use cobre_results::statistics::mean;
use cobre_results::{Results, ResultsError, Table, Values};
use serde_json::Value;

use crate::exit::{self, say};
use crate::summary::{by_kind, told};
use crate::terminal_table::{TerminalTable, number, title};

const NAME: &str = "cobre compare";

/// Says whether two runs have the same results, bit for bit, and what differs if not: files, bounds, costs,
/// settings. Times are not compared. Exits with 0 if they are the same and with 1 if not.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory of one run
    #[arg(value_name = "OUTPUT")]
    one: PathBuf,

    /// The directory of the other
    #[arg(value_name = "OUTPUT")]
    other: PathBuf,
}

/// Compares and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let both = Results::open(&args.one).and_then(|one| Ok([one, Results::open(&args.other)?]));
    match both.and_then(|both| compare(&both)) {
        Ok(true) => exit::DONE,
        Ok(false) => exit::DIFFERENT,
        Err(error) => exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    }
}

/// Says what differs; whether nothing does.
fn compare(both: &[Results; 2]) -> Result<bool, ResultsError> {
    let [one, other] = both;
    say!("one    {}", one.path.display());
    say!("other  {}", other.path.display());
    let files = files(both);
    let mut different = Vec::new();
    for file in &files {
        if !same_bytes(both, file)? {
            different.push(file);
        }
    }
    if different.is_empty() {
        say!("the same bits in {} files", files.len());
        facts(both, false);
        return Ok(true);
    }
    title("files that differ", false);
    let mut table = TerminalTable::new(["file", "columns", "most of all", "by"]);
    for file in different.iter().copied() {
        let [columns, worst, apart] = difference(both, file)?;
        table.row([file.clone(), columns, worst, apart]);
    }
    table.print();
    let count = files.len() - different.len();
    say!("  {count} others have the same bits");
    values(both);
    costs(both)?;
    facts(both, true);
    Ok(false)
}

/// The files that are a matter of the case and its settings alone.
fn files(both: &[Results; 2]) -> BTreeSet<String> {
    let tables = both.iter().flat_map(|results| &results.tables);
    let tables = tables.filter(|table| *table != timings::TABLE);
    let tables = tables.map(|table| layout::parquet(table));
    let others = [DICTIONARY.to_owned(), layout::in_policy(MANIFEST)];
    tables.chain(others).collect()
}

/// True if a file has the same bytes in both runs.
fn same_bytes([one, other]: &[Results; 2], name: &str) -> Result<bool, ResultsError> {
    let [Some(mut here), Some(mut there)] = [one.file(name)?, other.file(name)?] else {
        return Ok(false);
    };
    let read = |file: &mut File, of: &Results, buffer: &mut Vec<u8>| {
        buffer.clear();
        let part = file.take(1 << 20).read_to_end(buffer);
        part.map_err(ResultsError::io("read", &of.path.join(name)))
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        let count = read(&mut here, one, &mut left)?;
        read(&mut there, other, &mut right)?;
        if left != right {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// The differences of a file: the number of columns, the one that differs most, and by how much of it.
fn difference(both: &[Results; 2], file: &str) -> Result<[String; 3], ResultsError> {
    let plainly = |what: &str| Ok([what.to_owned(), String::new(), String::new()]);
    let Some(name) = layout::table_in(file) else {
        return plainly("text");
    };
    let [one, other] = both;
    match [one.table(name)?, other.table(name)?] {
        [Some(_), None] => plainly("only one"),
        [None, _] => plainly("only other"),
        [Some(one), Some(other)] => of_tables(&one, &other),
    }
}

fn of_tables(one: &Table, other: &Table) -> Result<[String; 3], ResultsError> {
    let rows = |table: &Table| (0..table.groups()).map(|group| table.rows(group)).sum();
    let (here, there): (usize, usize) = (rows(one), rows(other));
    if one.columns() != other.columns() {
        return Ok(["others".to_owned(), String::new(), String::new()]);
    }
    if here != there || one.groups() != other.groups() {
        return Ok([
            "all".to_owned(),
            format!("{here} and {there} rows"),
            String::new(),
        ]);
    }
    let mut columns = 0;
    let mut worst: (f64, &str) = (0.0, "");
    for column in one.columns() {
        let mut largest = None;
        for group in 0..one.groups() {
            let pair = [one.values(group, column)?, other.values(group, column)?];
            if let Some(apart) = distance(&pair) {
                largest = Some(apart.max(largest.unwrap_or(0.0)));
            }
        }
        if let Some(apart) = largest {
            columns += 1;
            if apart >= worst.0 {
                worst = (apart, column);
            }
        }
    }
    let (apart, column) = worst;
    Ok([columns.to_string(), column.to_owned(), number(apart)])
}

/// The relative difference of values; none if they are the same bits, infinite for words and for values
/// that only one has.
fn distance(pair: &[Values; 2]) -> Option<f64> {
    match pair {
        [Values::Numbers(here), Values::Numbers(there)] => {
            let pairs = here.iter().copied().zip(there.iter().copied());
            let other = pairs.filter(|(here, there)| here.to_bits() != there.to_bits());
            other.map(apart).reduce(f64::max)
        }
        [Values::Integers(here), Values::Integers(there)] => {
            let other = here.iter().zip(there).filter(|(here, there)| here != there);
            let other = other.map(|(here, there)| apart((*here as f64, *there as f64)));
            other.reduce(f64::max)
        }
        [here, there] => (here != there).then_some(f64::INFINITY),
    }
}

/// The difference of two numbers, relative to the larger one.
fn apart((here, there): (f64, f64)) -> f64 {
    let larger = here.abs().max(there.abs()).max(f64::MIN_POSITIVE);
    let share = (here - there).abs() / larger;
    if share.is_nan() { f64::INFINITY } else { share }
}

/// Bounds and estimates, side by side.
fn values(both: &[Results; 2]) {
    title("value", false);
    let mut table = TerminalTable::new(["", "one", "other", "difference"]);
    for (what, place) in [
        ("bound", "/bound"),
        ("simulated mean", "/estimate/mean"),
        ("± 95 %", "/estimate/half_width_95"),
        ("scenarios", "/estimate/paths"),
        ("iterations", "/iterations"),
    ] {
        let pair = both.each_ref().map(|results| {
            let found = results.run.pointer(place).and_then(Value::as_f64);
            found.unwrap_or(f64::NAN)
        });
        let whole = matches!(what, "scenarios" | "iterations");
        let said = |value: f64| match value {
            value if whole && !value.is_nan() => format!("{value}"),
            value => exact(value),
        };
        table.row([what.to_owned(), said(pair[0]), said(pair[1]), change(pair)]);
    }
    table.print();
}

/// A number with seven digits; nothing if there is none.
fn exact(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    format!("{value:.6e}")
}

/// The excess of the second number over the first, relative to it.
fn change([one, other]: [f64; 2]) -> String {
    if one == other || (one.is_nan() && other.is_nan()) {
        return "none".to_owned();
    }
    let share = 100.0 * (other - one) / one.abs();
    if share.is_finite() {
        format!("{share:+.4} %")
    } else {
        number(other - one)
    }
}

/// Mean costs by kind, side by side.
fn costs(both: &[Results; 2]) -> Result<(), ResultsError> {
    let pair = [by_kind(&both[0])?, by_kind(&both[1])?];
    let mut kinds: Vec<&String> = Vec::new();
    for (kind, _) in pair.iter().flatten().flatten() {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        return Ok(());
    }
    title("mean costs of a scenario, $ (discounted)", false);
    let mut table = TerminalTable::new(["kind", "one", "other", "difference"]);
    for kind in kinds {
        let pair = pair.each_ref().map(|costs| {
            // Without a simulation there is no cost, not even one of zero.
            costs.as_ref().map_or(f64::NAN, |costs| {
                let found = costs.iter().find(|(name, _)| name == kind);
                found.map_or(0.0, |(_, costs)| mean(costs.iter().copied()))
            })
        });
        let [one, other] = pair.map(exact);
        table.row([CostKind::words(kind), one, other, change(pair)]);
    }
    table.print();
    Ok(())
}

/// Settings and facts that are not the same.
fn facts(both: &[Results; 2], settings: bool) {
    let mut places = vec!["/backend", "/ranks", "/threads", "/hosts", "/cobre"];
    if settings {
        places.extend([
            "/case",
            "/kind",
            "/stop_reason",
            "/settings/seed",
            "/settings/forward_passes",
            "/settings/cut_selection",
            "/settings/risk",
            "/settings/solver",
            "/settings/stop",
            "/settings/stop_when_all",
            "/settings/simulate",
            "/settings/sampling",
            "/problem_sha256",
            "/warm_start_sha256",
        ]);
    }
    let mut table = TerminalTable::new(["", "one", "other"]);
    let mut any = false;
    for place in places {
        let [one, other] = both.each_ref().map(|results| told(&results.run, place));
        if one != other {
            any = true;
            let name = place.rsplit('/').next().unwrap_or(place);
            // A few digits of a fingerprint tell it from others.
            let (name, digits) = name
                .strip_suffix("_sha256")
                .map_or((name, usize::MAX), |name| (name, 12));
            let [one, other] = [one, other].map(|text| text.chars().take(digits).collect());
            table.row([name.replace('_', " "), one, other]);
        }
    }
    if any {
        let what = if settings {
            "settings and facts that differ"
        } else {
            "made differently"
        };
        title(what, false);
        table.print();
    } else if settings {
        title("no setting and no fact of the runs differs", false);
    }
}
