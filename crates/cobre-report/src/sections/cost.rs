//! The components of the costs.

use cobre_results::ResultsError;
use cobre_results::layout::{CostKind, costs};
use cobre_results::statistics::mean;

use crate::chart::{Panel, Positions, Section, Series, SeriesMark, TextTable, View, scale};
use crate::grid::Grid;
use crate::palette;
use crate::sections::ribbon::over_stages;
use crate::simulation::SimulationData;
use crate::statistics::Quantiles;

/// Number of kinds with a colour of their own; the rest share one.
const COLOURED_KINDS: usize = 6;

struct CostComponent {
    name: String,
    /// Discounted.
    grid: Grid,
    /// Over all stages of a scenario.
    totals: Quantiles,
}

/// Adds the kinds of cost: in all, and stage by stage.
pub(super) fn add(simulation: &SimulationData, section: &mut Section) -> Result<(), ResultsError> {
    let kinds = kinds(simulation)?;
    if kinds.is_empty() {
        section
            .text
            .push("No scenario has a cost of any kind.".to_owned());
        return Ok(());
    }
    section.panels.push(breakdown(&kinds));
    section.panels.push(by_stage(simulation, kinds.as_slice()));
    section.tables.push(table(&kinds));
    Ok(())
}

/// The kinds that cost anything, the dearest first.
fn kinds(simulation: &SimulationData) -> Result<Vec<CostComponent>, ResultsError> {
    let table = simulation.required(costs::TABLE)?;
    let columns = table.columns().iter();
    let columns = columns.filter(|name| costs::is_kind(name));
    let mut kinds = Vec::new();
    for column in columns {
        let mut grid = simulation.grid();
        let mut totals = vec![0.0; simulation.scenarios()];
        for group in 0..table.groups() {
            let places = simulation.places(&table, group)?;
            let discounts = table.numbers(group, costs::DISCOUNT)?;
            let values = table.numbers(group, column)?;
            for (row, (stage, scenario)) in places.into_iter().enumerate() {
                let value = values[row] * discounts[row];
                grid.add(stage, scenario, value);
                totals[scenario] += value;
            }
        }
        if totals.iter().any(|total| *total != 0.0) {
            kinds.push(CostComponent {
                name: CostKind::words(column),
                grid,
                totals: Quantiles::of(totals.into_iter()),
            });
        }
    }
    kinds.sort_by(|left, right| right.totals.mean.total_cmp(&left.totals.mean));
    Ok(kinds)
}

/// The unit for kinds side by side: small enough that the small ones are seen beside the large.
fn small(kinds: &[CostComponent]) -> (String, f64) {
    let largest = kinds.iter().map(|kind| kind.totals.percentiles[6].abs());
    scale(largest.fold(0.0, f64::max) / 50.0, "$")
}

fn breakdown(kinds: &[CostComponent]) -> Panel {
    let means = kinds.iter().map(|kind| kind.totals.mean).collect();
    let bars = Series::new("mean", SeriesMark::Bar, palette::VERMILION, means);
    Panel {
        id: "cost-breakdown".to_owned(),
        title: "Cost by kind".to_owned(),
        about: "The discounted cost of all stages, by what it is paid for: mean of all scenarios."
            .to_owned(),
        pick: String::new(),
        x: "kind of cost".to_owned(),
        at: Positions::Names(kinds.iter().map(|kind| kind.name.clone()).collect()),
        views: vec![View::told_in(small(kinds), "", "cost", "$", vec![bars])],
    }
}

fn by_stage(simulation: &SimulationData, kinds: &[CostComponent]) -> Panel {
    let means = |kind: &CostComponent| -> Vec<f64> {
        let stages = kind.grid.stages();
        stages.map(|values| mean(values.iter().copied())).collect()
    };
    let (apart, rest) = kinds.split_at(kinds.len().min(COLOURED_KINDS));
    let colors = [
        palette::VERMILION,
        palette::PURPLE,
        palette::BLUE,
        palette::GREEN,
        palette::ORANGE,
        palette::SKY,
    ];
    let mut series: Vec<Series> = apart
        .iter()
        .zip(colors)
        .map(|(kind, color)| Series::new(&kind.name, SeriesMark::Bar, color, means(kind)))
        .collect();
    if let Some((first, others)) = rest.split_first() {
        let mut sums = means(first);
        for kind in others {
            for (sum, value) in sums.iter_mut().zip(means(kind)) {
                *sum += value;
            }
        }
        series.push(Series::new(
            "other kinds",
            SeriesMark::Bar,
            palette::INK,
            sums,
        ));
    }
    let views = vec![View::scaled("", "cost", "$", series)];
    let about = "The discounted cost of each stage, by kind: mean of all scenarios.";
    over_stages(
        simulation,
        "cost-stages",
        "Cost of each stage",
        about,
        "",
        views,
    )
}

fn table(kinds: &[CostComponent]) -> TextTable {
    let all: f64 = kinds.iter().map(|kind| kind.totals.mean).sum();
    let (word, factor) = small(kinds);
    let row = |kind: &CostComponent| {
        let [_, five, _, median, _, high, _] = kind.totals.percentiles;
        // Adding zero leaves no zero with a sign.
        let cell = |value: f64| format!("{:.2}", (value / factor * 100.0).round() / 100.0 + 0.0);
        vec![
            kind.name.clone(),
            cell(kind.totals.mean),
            format!(
                "{:.1} %",
                (kind.totals.mean * 1000.0 / all).round() / 10.0 + 0.0
            ),
            cell(five),
            cell(median),
            cell(high),
        ]
    };
    let head = ["kind", "mean", "share", "P5", "median", "P95"];
    TextTable {
        caption: format!("Discounted cost of all stages by kind, in {word}$"),
        head: head.map(str::to_owned).to_vec(),
        rows: kinds.iter().map(row).collect(),
    }
}
