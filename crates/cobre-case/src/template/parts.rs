//! Parts that templates share.

use cobre_results::calendar;
use serde_json::{Value, json};

use super::files::{CaseFiles, TemplateColumn};

/// Days of the months.
const MONTHS: [i32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The months of a study.
#[derive(Debug, Clone)]
pub(super) struct Months {
    /// The number of months.
    pub(super) count: usize,
    /// Names of blocks, with the part of a month that each has.
    pub(super) blocks: Vec<(&'static str, f64)>,
    /// Openings of each stage.
    pub(super) openings: usize,
    /// Discount per year.
    pub(super) discount: f64,
    /// α and λ of CVaR.
    pub(super) cvar: Option<(f64, f64)>,
    /// True for PAR(p) inflows with p ≥ 1, which depend on the month before the first.
    pub(super) before: usize,
}

impl Months {
    /// Writes `stages.json`.
    pub(super) fn write(&self, files: &mut CaseFiles) {
        let stage = |number: usize| {
            let blocks = self.blocks.iter().enumerate();
            let hours = f64::from(MONTHS[number % 12]) * 24.0;
            let blocks = blocks
                .map(|(id, (name, part))| json!({"id": id, "name": name, "hours": hours * part}));
            let mut stage = json!({
                "id": number,
                "start_date": first_of(number.cast_signed()),
                "end_date": first_of(number.cast_signed() + 1),
                "season_id": number % 12,
                "blocks": blocks.collect::<Vec<_>>(),
                "num_scenarios": self.openings,
                "sampling_method": "lhs",
            });
            if let Some((alpha, lambda)) = self.cvar {
                stage["risk_measure"] = json!({"cvar": {"alpha": alpha, "lambda": lambda}});
            }
            stage
        };
        let mut stages = json!({
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": self.discount},
            "stages": (0..self.count).map(stage).collect::<Vec<_>>(),
        });
        if self.before > 0 {
            let before = (1..=self.before).rev().map(|back| {
                let number = -back.cast_signed();
                json!({
                    "id": number,
                    "start_date": first_of(number),
                    "end_date": first_of(number + 1),
                    "season_id": number.rem_euclid(12),
                })
            });
            stages["pre_study_stages"] = before.collect();
        }
        files.json("stages.json", stages);
    }
}

/// The first day of a month, counted from January 2026.
fn first_of(month: isize) -> String {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    calendar::text(calendar::first_of(2026 + year as i64, 1 + month as i64))
}

/// Settings of training and simulation, and the method for inflows below zero: with a risk measure it must not be
/// truncation.
pub(super) fn config(passes: usize, iterations: usize, simulated: usize, method: &str) -> Value {
    json!({
        "training": {
            "forward_passes": passes,
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
            "tree_seed": 42,
            "scenario_source": {"seed": 42, "inflow": {"scheme": "in_sample"}},
            "cut_selection": {"enabled": true, "method": "lml1"},
        },
        "simulation": {"enabled": simulated > 0, "num_scenarios": simulated.max(1)},
        "modeling": {"inflow_non_negativity": {"method": method}},
    })
}

/// Costs of violations.
pub(super) fn penalties() -> Value {
    json!({
        "bus": {
            "deficit_segments": [{"depth_mw": 50.0, "cost": 800.0}, {"depth_mw": null, "cost": 3000.0}],
            "excess_cost": 0.1,
        },
        "line": {"exchange_cost": 0.1},
        "hydro": {
            "spillage_cost": 0.01,
            "fpha_turbined_cost": 0.01,
            "diversion_cost": 0.1,
            "storage_violation_below_cost": 20_000.0,
            "filling_target_violation_cost": 20_000.0,
            "turbined_violation_below_cost": 1000.0,
            "outflow_violation_below_cost": 1000.0,
            "outflow_violation_above_cost": 1000.0,
            "generation_violation_below_cost": 1000.0,
            "evaporation_violation_cost": 1000.0,
            "water_withdrawal_violation_cost": 1000.0,
        },
        "non_controllable_source": {"curtailment_cost": 0.01},
    })
}

/// A hydro plant.
#[derive(Debug, Clone)]
pub(super) struct TemplateHydro {
    pub(super) name: String,
    pub(super) bus: usize,
    pub(super) downstream: Option<usize>,
    pub(super) max_storage: f64,
    pub(super) initial_storage: f64,
    pub(super) productivity: f64,
    pub(super) max_turbined: f64,
    pub(super) min_outflow: f64,
    /// Mean inflow of the year, m³/s.
    pub(super) inflow: f64,
    /// Deviation as a part of the mean.
    pub(super) spread: f64,
    /// The month, from 0, in which the river is high.
    pub(super) wet_month: f64,
    /// Coefficients of the months before.
    pub(super) memory: Vec<f64>,
}

impl TemplateHydro {
    fn json(&self, id: usize) -> Value {
        let capacity = self.productivity * self.max_turbined;
        json!({
            "id": id,
            "name": self.name,
            "bus_id": self.bus,
            "downstream_id": self.downstream,
            "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": self.max_storage},
            "outflow": {"min_outflow_m3s": self.min_outflow, "max_outflow_m3s": null},
            "generation": {
                "model": "constant_productivity",
                "productivity_mw_per_m3s": self.productivity,
                "min_turbined_m3s": 0.0,
                "max_turbined_m3s": self.max_turbined,
                "min_generation_mw": 0.0,
                "max_generation_mw": capacity,
            },
        })
    }

    /// The mean inflow of a month.
    pub(super) fn mean(&self, month: usize) -> f64 {
        round(self.inflow * wave(month, self.wet_month, 0.55))
    }
}

/// Two digits after the point.
pub(super) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A year: 1 on average, and highest in the month `top`.
pub(super) fn wave(month: usize, top: f64, height: f64) -> f64 {
    let angle = (month as f64 - top) / 12.0 * std::f64::consts::TAU;
    1.0 + height * libm::cos(angle)
}

/// Writes the plants, their inflows and what there is of them before the first stage.
pub(super) fn hydros(plants: &[TemplateHydro], months: &Months, files: &mut CaseFiles) {
    let list: Vec<Value> = plants
        .iter()
        .enumerate()
        .map(|(id, plant)| plant.json(id))
        .collect();
    files.json("system/hydros.json", json!({"hydros": list}));
    let storage = plants.iter().enumerate();
    let storage = storage.filter(|(_, plant)| plant.max_storage > 0.0);
    let storage =
        storage.map(|(id, plant)| json!({"hydro_id": id, "value_hm3": plant.initial_storage}));
    let past = plants
        .iter()
        .enumerate()
        .filter(|(_, plant)| !plant.memory.is_empty());
    let past = past.map(|(id, plant)| {
        let values = (1..=plant.memory.len()).map(|back| plant.mean((12 - back) % 12));
        json!({"hydro_id": id, "values_m3s": values.collect::<Vec<_>>()})
    });
    let initial = json!({
        "storage": storage.collect::<Vec<_>>(),
        "filling_storage": [],
        "past_inflows": past.collect::<Vec<_>>(),
    });
    files.json("initial_conditions.json", initial);
    inflows(plants, months, files);
}

fn inflows(plants: &[TemplateHydro], months: &Months, files: &mut CaseFiles) {
    let (mut ids, mut stages, mut means, mut deviations) = (vec![], vec![], vec![], vec![]);
    let (mut ar_ids, mut ar_stages, mut lags) = (vec![], vec![], vec![]);
    let (mut coefficients, mut ratios) = (vec![], vec![]);
    for (id, plant) in plants.iter().enumerate() {
        let residual = round(libm::sqrt(1.0 - explained(&plant.memory)));
        for month in 0..months.count {
            ids.push(id);
            stages.push(month);
            means.push(plant.mean(month));
            deviations.push(round(plant.spread * plant.mean(month)));
            for (place, coefficient) in plant.memory.iter().enumerate() {
                ar_ids.push(id);
                ar_stages.push(month);
                lags.push(place + 1);
                coefficients.push(*coefficient);
                ratios.push(residual);
            }
        }
    }
    let columns = [
        ("hydro_id", TemplateColumn::of_places(ids)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("mean_m3s", TemplateColumn::Numbers(means)),
        ("std_m3s", TemplateColumn::Numbers(deviations)),
    ];
    files.table("scenarios/inflow_seasonal_stats.parquet", &columns);
    if !lags.is_empty() {
        let columns = [
            ("hydro_id", TemplateColumn::of_places(ar_ids)),
            ("stage_id", TemplateColumn::of_places(ar_stages)),
            ("lag", TemplateColumn::of_places(lags)),
            ("coefficient", TemplateColumn::Numbers(coefficients)),
            ("residual_std_ratio", TemplateColumn::Numbers(ratios)),
        ];
        files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
    }
}

/// The part of the variance that coefficients of the two months before explain, or of fewer: the Yule-Walker
/// equations, in which every month has the same deviation as the others, divided by its own.
fn explained(memory: &[f64]) -> f64 {
    let [first, second] = [0, 1].map(|place| memory.get(place).copied().unwrap_or(0.0));
    let of_last = first / (1.0 - second);
    first * of_last + second * (first * of_last + second)
}

/// Thermal plants: name, bus, capacity in MW, cost in $/MWh.
pub(super) fn thermals(plants: &[(String, usize, f64, f64)], files: &mut CaseFiles) {
    let plants = plants
        .iter()
        .enumerate()
        .map(|(id, (name, bus, capacity, cost))| {
            json!({
                "id": id,
                "name": name,
                "bus_id": bus,
                "generation": {"min_mw": 0.0, "max_mw": capacity},
                "cost_per_mwh": cost,
            })
        });
    files.json(
        "system/thermals.json",
        json!({"thermals": plants.collect::<Vec<_>>()}),
    );
}

/// A line: the buses it joins, what it carries there and back in MW, and what is lost in %.
pub(super) type Line = (usize, usize, f64, f64, f64);

/// Buses with the mean of their load in MW, which is highest in July, and lines between them.
pub(super) fn buses(
    buses: &[(&str, f64)],
    lines: &[Line],
    months: &Months,
    block_factors: &[f64],
    files: &mut CaseFiles,
) {
    let list = buses
        .iter()
        .enumerate()
        .map(|(id, (name, _))| json!({"id": id, "name": name}));
    files.json(
        "system/buses.json",
        json!({"buses": list.collect::<Vec<_>>()}),
    );
    let lines = lines
        .iter()
        .enumerate()
        .map(|(id, (from, to, direct, reverse, losses))| {
            json!({
                "id": id,
                "name": format!("{}-{}", buses[*from].0, buses[*to].0),
                "source_bus_id": from,
                "target_bus_id": to,
                "capacity": {"direct_mw": direct, "reverse_mw": reverse},
                "losses_percent": losses,
            })
        });
    files.json(
        "system/lines.json",
        json!({"lines": lines.collect::<Vec<_>>()}),
    );
    let (mut ids, mut stages, mut means, mut deviations) = (vec![], vec![], vec![], vec![]);
    let mut factors = Vec::new();
    for (id, (_, load)) in buses.iter().enumerate() {
        for month in 0..months.count {
            ids.push(id);
            stages.push(month);
            means.push(round(load * wave(month, 6.0, 0.08)));
            deviations.push(round(0.01 * load));
            if block_factors.len() > 1 {
                let blocks = block_factors.iter().enumerate();
                let blocks = blocks.map(|(id, factor)| json!({"block_id": id, "factor": factor}));
                let blocks: Vec<Value> = blocks.collect();
                factors.push(json!({"bus_id": id, "stage_id": month, "block_factors": blocks}));
            }
        }
    }
    let columns = [
        ("bus_id", TemplateColumn::of_places(ids)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("mean_mw", TemplateColumn::Numbers(means)),
        ("std_mw", TemplateColumn::Numbers(deviations)),
    ];
    files.table("scenarios/load_seasonal_stats.parquet", &columns);
    if !factors.is_empty() {
        files.json(
            "scenarios/load_factors.json",
            json!({"load_factors": factors}),
        );
    }
}

/// Wind: name, bus, capacity in MW and what part of it there is on average.
pub(super) fn wind(sources: &[(&str, usize, f64, f64)], months: &Months, files: &mut CaseFiles) {
    let list = sources.iter().enumerate().map(|(id, (name, bus, capacity, _))| {
        json!({"id": id, "name": name, "bus_id": bus, "max_generation_mw": capacity})
    });
    let list: Vec<Value> = list.collect();
    files.json(
        "system/non_controllable_sources.json",
        json!({"non_controllable_sources": list}),
    );
    let (mut ids, mut stages, mut means, mut deviations) = (vec![], vec![], vec![], vec![]);
    for (id, (_, _, _, mean)) in sources.iter().enumerate() {
        for month in 0..months.count {
            ids.push(id);
            stages.push(month);
            means.push(round(mean * wave(month, 8.0, 0.25)));
            deviations.push(0.06);
        }
    }
    let columns = [
        ("ncs_id", TemplateColumn::of_places(ids)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("mean", TemplateColumn::Numbers(means)),
        ("std", TemplateColumn::Numbers(deviations)),
    ];
    files.table("scenarios/non_controllable_stats.parquet", &columns);
}

/// Inflows that are correlated as `of` says for every pair.
pub(super) fn correlation(plants: usize, of: impl Fn(usize, usize) -> f64, files: &mut CaseFiles) {
    let entities: Vec<Value> = (0..plants)
        .map(|id| json!({"type": "inflow", "id": id}))
        .collect();
    let row = |a: usize| -> Vec<f64> {
        (0..plants)
            .map(|b| if a == b { 1.0 } else { of(a, b) })
            .collect()
    };
    let group = json!({
        "name": "rivers",
        "entities": entities,
        "matrix": (0..plants).map(row).collect::<Vec<_>>(),
    });
    let profiles = json!({"default": {"correlation_groups": [group]}});
    files.json(
        "scenarios/correlation.json",
        json!({"method": "spectral", "profiles": profiles}),
    );
}
