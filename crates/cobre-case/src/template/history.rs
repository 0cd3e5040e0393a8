//! Two reservoirs on one river, with a history of inflows in place of their model.

use cobre_sddp::{Noise, Purpose};
use serde_json::{Value, json};

use super::cascade;
use super::files::{CaseFiles, TemplateColumn};
use super::parts::{round, wave};
use crate::hydrothermal::days_to_month;

/// The years of the record.
const YEARS: std::ops::Range<i32> = 1966..2026;
/// Mean inflow of each plant, m³/s, and how much a month keeps of the one before.
const PLANTS: [(f64, f64); 2] = [(110.0, 0.7), (40.0, 0.5)];
/// The deviation of a month, as a part of its mean.
const SPREAD: f64 = 0.35;
/// The part of the noise that both plants share.
const SHARED: f64 = 0.8;

pub(super) fn make(files: &mut CaseFiles) {
    cascade::make(files);
    for model in [
        "scenarios/inflow_seasonal_stats.parquet",
        "scenarios/inflow_ar_coefficients.parquet",
        "scenarios/correlation.json",
    ] {
        files.remove(model);
    }
    seasons(files);
    let (mut ids, mut dates, mut values) = (vec![], vec![], vec![]);
    for (id, (mean, memory)) in PLANTS.into_iter().enumerate() {
        let mut deviation = 0.0;
        for (place, year) in YEARS.enumerate() {
            for month in 0..12 {
                let shared = normal(0, place, month);
                let noise = SHARED * shared
                    + libm::sqrt(1.0 - SHARED * SHARED) * normal(id + 1, place, month);
                deviation = memory * deviation + libm::sqrt(1.0 - memory * memory) * noise;
                // Inflows are skewed, and never below zero.
                let factor = libm::exp(SPREAD * deviation - 0.5 * SPREAD * SPREAD);
                ids.push(id);
                dates.push(days_to_month(year, month));
                values.push(round(mean * wave(month, 1.0, 0.5) * factor));
            }
        }
    }
    let columns = [
        ("hydro_id", TemplateColumn::of_places(ids)),
        ("date", TemplateColumn::Days(dates)),
        ("value_m3s", TemplateColumn::Numbers(values)),
    ];
    files.table("scenarios/inflow_history.parquet", &columns);
}

/// A normal number, nearly: the sum of twelve even ones.
fn normal(series: usize, year: usize, month: usize) -> f64 {
    let noise = Noise::new(20_261_117, Purpose::Openings);
    let pairs = (0..6).map(|part| noise.draw(series, 12 * year + month, part));
    pairs.map(|pair| pair[0] + pair[1]).sum::<f64>() - 6.0
}

/// Gives stages.json its months, and as many past inflows as an order of six needs.
fn seasons(files: &mut CaseFiles) {
    let mut change = |path: &str, with: fn(&mut Value)| {
        let text = files.remove(path).unwrap_or_default();
        let mut value: Value = serde_json::from_slice(&text).unwrap_or_default();
        with(&mut value);
        files.json(path, value);
    };
    change("stages.json", |stages| {
        let names = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let seasons = names.iter().enumerate();
        let seasons =
            seasons.map(|(id, name)| json!({"id": id, "label": name, "month_start": id + 1}));
        let seasons: Vec<Value> = seasons.collect();
        stages["season_definitions"] = json!({"cycle_type": "monthly", "seasons": seasons});
    });
    change("initial_conditions.json", |initial| {
        initial["past_inflows"] = json!([
            {"hydro_id": 0, "values_m3s": [140.0, 115.0, 80.0, 60.0, 50.0, 52.0]},
            {"hydro_id": 1, "values_m3s": [50.0, 41.0, 30.0, 22.0, 19.0, 20.0]},
        ]);
    });
}
