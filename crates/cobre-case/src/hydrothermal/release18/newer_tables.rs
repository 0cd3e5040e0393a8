//! Data of 0.5 that 0.18 has in tables: capacities of lines by block, past inflows, costs of turbined flow by stage.

use super::migrate::Columns;
use crate::finding::Findings;
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::initial::PastInflows;
use crate::hydrothermal::files::scenarios::ArCoefficients;
use crate::hydrothermal::inflow_variance::derive_residuals;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::system::{Production, System, capacities};
use crate::template::TemplateColumn;

/// The difference of numbers that are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// The capacities of all lines by stage and block, where factors of blocks are in them.
pub(super) fn line_bounds(files: &Files, system: &System) -> Option<Columns> {
    let factors = files.exchange_factors.as_ref();
    factors.filter(|file| !file.exchange_factors.is_empty())?;
    let mut findings = Findings::default();
    let stages = &system.indices.stages;
    let (lines, capacity) = capacities(files, &system.stages, stages, &mut findings);
    let mut keys: [Vec<i32>; 3] = Default::default();
    let mut values: [Vec<f64>; 2] = Default::default();
    for (line, by_stage) in lines.numbers().into_iter().zip(&capacity) {
        for (stage, blocks) in stages.numbers().into_iter().zip(by_stage) {
            for (block, both) in (0..).zip(blocks) {
                for (column, key) in keys.iter_mut().zip([line, stage, block]) {
                    column.push(key);
                }
                for (column, value) in values.iter_mut().zip(both) {
                    column.push(*value);
                }
            }
        }
    }
    let [line, stage, block] = keys.map(TemplateColumn::Ids);
    let [direct, reverse] = values.map(TemplateColumn::Numbers);
    Some(named([
        ("line_id", line),
        ("stage_id", stage),
        ("block_id", block),
        ("direct_mw", direct),
        ("reverse_mw", reverse),
    ]))
}

fn named<const N: usize>(columns: [(&str, TemplateColumn); N]) -> Columns {
    let columns = columns.into_iter();
    columns
        .map(|(name, column)| (name.to_owned(), column))
        .collect()
}

/// Observations of a plant: its number, the first day, the day after the last, and the inflow.
pub(super) type Observation = (Id, Date, Date, f64);

/// Past inflows as rows of the history; says which cannot be there.
pub(super) fn past_inflows(
    files: &Files,
    system: &System,
    lost: &mut Vec<String>,
) -> Vec<Observation> {
    let mut found = Vec::new();
    // Without coefficients nothing depends on the past, and a history would be estimated from.
    let read = !files.ar_coefficients.is_empty() || !files.inflow_history.is_empty();
    let given = files.initial.past_inflows.iter().flatten();
    for entry in given.filter(|_| read) {
        if let Err(why) = observations(files, system, entry, &mut found) {
            lost.push(format!(
                "initial_conditions.json: past_inflows of plant {}: 0.18 takes them from scenarios/inflow_history.parquet, {why}",
                entry.hydro_id
            ));
        }
    }
    found
}

fn observations(
    files: &Files,
    system: &System,
    entry: &PastInflows,
    found: &mut Vec<Observation>,
) -> Result<(), &'static str> {
    let plants = system.indices.hydros.numbers();
    let place = plants.iter().position(|id| *id == entry.hydro_id);
    let place = place.unwrap_or(0);
    let estimated = files.inflow_stats.is_empty() || files.ar_coefficients.is_empty();
    for (lag, value) in (1..).zip(&entry.values_m3s) {
        let [start, end] = period(files, system, entry, lag)?;
        let known = system.timeline.as_ref().and_then(|timeline| {
            let period = timeline.before(0, lag)?;
            let (mean, observed) = system.history.inflow(place, &period, timeline)?;
            observed.then_some(mean)
        });
        match known {
            Some(known) if (known - value.0).abs() <= ROUNDING * known.abs() => {}
            Some(_) => return Err("which has other values of these days"),
            None if estimated => {
                return Err("from which the model is estimated: their rows would change it");
            }
            None => found.push((entry.hydro_id, start, end, value.0)),
        }
    }
    Ok(())
}

/// The days of a past inflow.
fn period(
    files: &Files,
    system: &System,
    entry: &PastInflows,
    lag: usize,
) -> Result<[Date; 2], &'static str> {
    if let Some(timeline) = &system.timeline {
        let period = timeline.before(0, lag);
        let period = period.ok_or("and there is no season so far back")?;
        return Ok([period.start, period.end]);
    }
    let before = files.stages.pre_study_stages.iter().flatten();
    let back = i64::try_from(lag).unwrap_or(i64::MAX / 400);
    let mut before = before.filter(|stage| i64::from(stage.id) == -back);
    if let Some(stage) = before.next() {
        return Ok([stage.start_date, stage.end_date]);
    }
    if entry.season_ids.is_some() {
        return Err("which has no season_ids; give pre_study_stages");
    }
    // As long as the first stage, or whole months.
    let first = files.stages.stages.first().ok_or("there is no stage")?;
    let (start, days) = (first.start_date, first.end_date.0 - first.start_date.0);
    let (year, month, day) = start.calendar();
    if day == 1 && (28..=31).contains(&days) {
        let of = |back: i64| {
            let months = 12 * year + month - 1 - back;
            Date::of(months.div_euclid(12), months.rem_euclid(12) + 1, 1)
        };
        return Ok([of(back), of(back - 1)]);
    }
    Ok([
        Date(start.0 - back * days),
        Date(start.0 - (back - 1) * days),
    ])
}

/// A history with further rows.
pub(super) fn with_observations(columns: &mut Columns, more: &[Observation]) {
    let days = |pick: fn(&Observation) -> Date| {
        let days = more.iter().map(pick);
        days.map(|day| i32::try_from(day.0).unwrap_or(i32::MAX))
            .collect::<Vec<i32>>()
    };
    let ids: Vec<i32> = more.iter().map(|row| row.0).collect();
    let rows = named([
        ("hydro_id", TemplateColumn::Ids(ids)),
        ("start_date", TemplateColumn::Days(days(|row| row.1))),
        ("end_date", TemplateColumn::Days(days(|row| row.2))),
        (
            "value_m3s",
            TemplateColumn::Numbers(more.iter().map(|row| row.3).collect()),
        ),
    ]);
    for (name, column) in rows {
        match columns.iter_mut().find(|(own, _)| *own == name) {
            Some((_, own)) => own.extend(&column),
            None => columns.push((name, column)),
        }
    }
}

/// Says which residual ratios are not those that 0.18 derives from the coefficients.
pub(super) fn check_residuals(files: &mut Files, lost: &mut Vec<String>) {
    let given: Vec<f64> = files
        .ar_coefficients
        .iter()
        .map(ArCoefficients::residual)
        .collect();
    for row in &mut files.ar_coefficients {
        row.residual_std_ratio = None;
    }
    derive_residuals(files);
    let rows = files.ar_coefficients.iter().zip(given);
    let mut wrong = rows.filter(|(row, given)| (row.residual() - given).abs() > ROUNDING);
    if let Some((row, given)) = wrong.next() {
        lost.push(format!(
            "scenarios/inflow_ar_coefficients.parquet: residual_std_ratio {given} of plant {}, stage {}: 0.18 derives {:.6} \
             from the coefficients",
            row.hydro_id,
            row.stage_id,
            row.residual()
        ));
    }
}

/// The cost of turbined flow by plant and stage, $/(m³/s·h).
pub(super) fn turbined_costs(system: &System) -> Vec<Vec<f64>> {
    let plants = system.hydros.iter().map(|plant| {
        let stages = plant.costs.iter().zip(&plant.production.stages);
        let stages = stages.map(|(costs, production)| match production {
            Production::Planes(_) => costs.turbined,
            Production::Constant(_) => costs.turbined_constant,
        });
        stages.collect()
    });
    plants.collect()
}

/// Overrides of costs with those of turbined flow that are not those of all stages of a plant, which is the least of them.
pub(super) fn turbined_overrides(system: &System, columns: &mut Columns) {
    columns.retain(|(name, _)| name != "fpha_turbined_cost" && name != "turbined_cost");
    let (plants, stages) = (
        system.indices.hydros.numbers(),
        system.indices.stages.numbers(),
    );
    let mut wanted = std::collections::BTreeMap::new();
    for (plant, costs) in plants.iter().zip(turbined_costs(system)) {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        for (stage, cost) in stages.iter().zip(costs).filter(|(_, cost)| *cost > least) {
            wanted.insert((*plant, *stage), cost);
        }
    }
    let of = |columns: &Columns, wanted: &str| {
        let found = columns.iter().find(|(name, _)| name == wanted);
        found.map_or(Vec::new(), |(_, column)| column.numbers())
    };
    let ids = of(columns, "hydro_id")
        .into_iter()
        .zip(of(columns, "stage_id"));
    let ids: Vec<(i32, i32)> = ids
        .map(|(plant, stage)| (plant.unwrap_or(-1.0) as i32, stage.unwrap_or(-1.0) as i32))
        .collect();
    let mut costs: Vec<Option<f64>> = ids.iter().map(|key| wanted.remove(key)).collect();
    if wanted.is_empty() && costs.iter().all(Option::is_none) {
        return;
    }
    if columns.is_empty() {
        *columns =
            named(["hydro_id", "stage_id"].map(|name| (name, TemplateColumn::Ids(Vec::new()))));
    }
    for ((plant, stage), cost) in wanted {
        for (name, column) in columns.iter_mut() {
            column.extend(&match name.as_str() {
                "hydro_id" => TemplateColumn::Ids(vec![plant]),
                "stage_id" => TemplateColumn::Ids(vec![stage]),
                _ => TemplateColumn::Maybe(vec![None]),
            });
        }
        costs.push(Some(cost));
    }
    columns.push(("turbined_cost".to_owned(), TemplateColumn::Maybe(costs)));
}
