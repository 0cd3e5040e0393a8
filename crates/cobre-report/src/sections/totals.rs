//! The distribution of the scenarios' total costs.

use crate::chart::{Panel, Positions, Section, Series, SeriesMark, View, rounded, scale};
use crate::input::ReportInput;
use crate::palette;
use crate::simulation::SimulationData;
use crate::statistics::histogram;

/// The most bars of a distribution.
const BINS: usize = 60;

/// The distribution of the totals of all scenarios.
pub(super) fn section(input: &ReportInput, simulation: &SimulationData) -> Section {
    let word = input.value_word();
    let (id, title) = if word == "cost" {
        ("cost", "Costs")
    } else {
        ("value", "Values")
    };
    let mut section = Section::new(id, title);
    let totals = &simulation.totals;
    let (low, high) = (
        totals.iter().copied().fold(f64::INFINITY, f64::min),
        totals.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    // Below that, what differs is rounding.
    if high - low <= 1e-9 * low.abs().max(high.abs()) {
        let count = totals.len();
        let (name, factor) = scale(high.abs(), input.value_unit());
        let value = rounded(high / factor);
        let text = format!("{value} {name}{}", input.value_unit());
        let text = text.trim_end();
        section.text.push(match count {
            1 => format!("The one simulated scenario has a total {word} of {text}."),
            _ => format!("All {count} scenarios have the same total {word}, {text}."),
        });
        return section;
    }
    let (counts, first, width) = histogram(totals, BINS);
    let (name, factor) = scale(low.abs().max(high.abs()), input.value_unit());
    let middle = |bin: usize| (first + width * (bin as f64 + 0.5)) / factor;
    let shares = counts.iter();
    let shares = shares.map(|count| *count as f64 * 100.0 / totals.len() as f64);
    let bars = Series::new(
        "scenarios",
        SeriesMark::Bar,
        palette::BLUE,
        shares.collect(),
    );
    let unit = format!("{name}{}", input.value_unit());
    let unit = if unit.is_empty() {
        unit
    } else {
        format!(" ({unit})")
    };
    section.panels.push(Panel {
        id: format!("{word}-distribution"),
        title: format!("Distribution of the total {word}"),
        about: format!(
            "The share of the {} simulated scenarios whose discounted total falls into each bar.",
            totals.len()
        ),
        pick: String::new(),
        x: format!("total {word} of a scenario{unit}"),
        at: Positions::Numbers((0..counts.len()).map(middle).collect()),
        views: vec![View::scaled("", "share of scenarios", "%", vec![bars])],
    });
    section
}
