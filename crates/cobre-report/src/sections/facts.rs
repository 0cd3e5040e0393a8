//! The run: problem, machine and outcome; and the figures at the head of the page.

use cobre_results::ResultsError;
use cobre_results::layout::convergence;
use cobre_results::statistics::mean;
use serde_json::Value;

use crate::chart::{Section, TextTable, scale};
use crate::input::ReportInput;
use crate::statistics::half_width;

/// The facts that come first, by their names; the others follow by the alphabet.
const FIRST: [&str; 12] = [
    "case",
    "kind",
    "cobre",
    "finished",
    "backend",
    "ranks",
    "threads",
    "hosts",
    "seed",
    "iterations",
    "stop reason",
    "bound",
];

/// Everything that `run.json` says.
pub(super) fn section(input: &ReportInput) -> Section {
    let mut section = Section::new("run", "The run");
    let mut rows = Vec::new();
    flatten("", &input.results.run, &mut rows);
    let place = |row: &Vec<String>| {
        let known = FIRST.iter().position(|name| *name == row[0]);
        known.unwrap_or(FIRST.len())
    };
    rows.sort_by_key(place);
    let head = ["fact", "value"];
    section.tables.push(TextTable {
        caption: "What run.json says".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    });
    section
}

/// Adds a row for each value inside, called by the keys that lead to it.
fn flatten(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let told = match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('_', " ");
                let name = if name.is_empty() {
                    key
                } else {
                    format!("{name}: {key}")
                };
                flatten(&name, value, rows);
            }
            return;
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, value) in (1..).zip(items) {
                flatten(&format!("{name} {number}"), value, rows);
            }
            return;
        }
        Value::Array(items) => listed(items),
        other => plain(other),
    };
    rows.push(vec![name.to_owned(), told]);
}

/// A list in which what stands there several times in a row is told once.
fn listed(items: &[Value]) -> String {
    let runs = items.chunk_by(|left, right| left == right);
    let told = runs.map(|run| match run.len() {
        1 => plain(&run[0]),
        count => format!("{} ({count} times)", plain(&run[0])),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number as one tells it to others.
fn short(value: f64) -> String {
    let digits = if value.abs() < 100.0 { 3 } else { 1 };
    format!("{value:.digits$}")
}

/// The bound: its side, and what it is of.
fn bound_name(input: &ReportInput) -> String {
    let side = if input.maximised { "upper" } else { "lower" };
    let of = if input.neutral { "" } else { ", risk-adjusted" };
    format!("{side} bound{of}")
}

/// The gap of a mean to the bound, relative to the bound as `cobre run` has it.
fn gap(maximised: bool, bound: f64, mean: f64) -> (String, String) {
    let (what, beyond) = if maximised {
        ("mean below bound", bound - mean)
    } else {
        ("mean above bound", mean - bound)
    };
    let gap = (beyond * 1e4 / bound.abs()).round() / 100.0;
    // Adding zero leaves no zero with a sign.
    (what.to_owned(), format!("{:.2} %", gap + 0.0))
}

/// The figures at the head of the page: what they are, and what they say.
pub(crate) fn headline(input: &ReportInput) -> Result<Vec<(String, String)>, ResultsError> {
    let table = &input.convergence;
    let unit = input.value_unit();
    let told = |value: f64| {
        let (word, factor) = scale(value.abs(), unit);
        let text = format!("{} {word}{unit}", short(value / factor));
        text.trim_end().to_owned()
    };
    let mut figures = Vec::new();
    let iterations = table.all_numbers(convergence::BOUND)?.len();
    // The best of all iterations, also of those of the run that trained the policy.
    let run = &input.results.run;
    let bound = run["bound"].as_f64();
    if let Some(bound) = bound {
        let half = run["bound_half_width_95"].as_f64();
        // Where the digits do not show it, it is left out.
        let half = half.filter(|half| *half > 1e-4 * bound.abs());
        let half = half.map(|half| format!("\u{a0}±\u{a0}{}", told(half)));
        figures.push((bound_name(input), told(bound) + &half.unwrap_or_default()));
    }
    if let Some(simulation) = &input.simulation {
        let level = mean(simulation.totals.iter().copied());
        let half = half_width(&simulation.totals);
        let word = input.value_word();
        let (name, factor) = scale(level.abs(), unit);
        let level_told = short(level / factor);
        let digits = level_told.split_once('.').map_or(0, |(_, part)| part.len());
        let half = format!("{:.digits$}", half / factor);
        // Scenarios that are all the same have no width but that of rounding.
        let (what, half) = if half.contains(|digit: char| matches!(digit, '1'..='9')) {
            (", mean and 95 %", format!("\u{a0}±\u{a0}{half}"))
        } else {
            ("", String::new())
        };
        let text = format!("{level_told}{half} {name}{unit}");
        let part = input
            .path_stages
            .map(|stages| format!(" of {stages} stages"));
        let part = part.unwrap_or_default();
        let name = format!("simulated {word}{part}{what}");
        figures.push((name, text.trim_end().to_owned()));
        if let Some(bound) =
            bound.filter(|bound| input.neutral && input.path_stages.is_none() && *bound != 0.0)
        {
            figures.push(gap(input.maximised, bound, level));
        }
        figures.push(("scenarios".to_owned(), simulation.scenarios().to_string()));
        figures.push(("stages".to_owned(), simulation.stages.len().to_string()));
    }
    if iterations > 0 {
        figures.push(("iterations".to_owned(), iterations.to_string()));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fact_is_a_row() {
        let mut rows = Vec::new();
        let run = json!({"hosts": ["a", "a", "b"], "lp": {"solves": 3, "share": 0.123_456_78}, "fine": true});
        flatten("", &run, &mut rows);
        let rows: Vec<String> = rows.iter().map(|row| row.join("=")).collect();
        assert_eq!(
            rows,
            [
                "fine=yes",
                "hosts=a (2 times), b",
                "lp: share=0.12345678",
                "lp: solves=3"
            ]
        );
    }
}
