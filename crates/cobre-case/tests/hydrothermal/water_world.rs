//! Random systems with everything that the page about hydro plants describes, and the cases that describe them.

use cobre_case::template::{CaseFiles, TemplateColumn};
use serde_json::{Value, json};

use crate::balances::Random;

/// hm³ that 1 m³/s brings in an hour.
pub const HM3: f64 = 0.0036;
pub const DEFICIT: f64 = 900.0;
pub const EXCESS: f64 = 0.5;
pub const SPILLAGE: f64 = 0.3;
pub const TURBINED: f64 = 0.2;
pub const DIVERSION: f64 = 0.4;
pub const STORAGE_BELOW: f64 = 300.0;
pub const FILLING_BELOW: f64 = 250.0;
pub const OUTFLOW_BELOW: f64 = 20.0;
/// Too little and too much.
pub const EVAPORATION: [f64; 2] = [35.0, 25.0];
pub const WITHDRAWAL: [f64; 2] = [60.0, 45.0];
/// Hours of January, February and March 2026.
const MONTHS: [f64; 3] = [744.0, 672.0, 744.0];
/// The release before the first stage, m³/s, over so many days.
pub const PAST: (f64, u32) = (12.0, 20);

pub struct WaterStage {
    pub hours: Vec<f64>,
    pub chronological: bool,
}

impl WaterStage {
    /// The blocks of each period.
    pub fn periods(&self) -> Vec<Vec<usize>> {
        let all = 0..self.hours.len();
        if self.chronological {
            all.map(|block| vec![block]).collect()
        } else {
            vec![all.collect()]
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WaterPhase {
    Absent,
    Filling(f64),
    Works,
    Gone,
}

pub enum Function {
    Rho(f64),
    /// κγ₀, γ_v, γ_q, γ_s.
    Planes(Vec<[f64; 4]>),
}

pub struct WaterPlant {
    pub below: Option<usize>,
    /// Before the first stage, least and most, hm³.
    pub storage: [f64; 3],
    pub max_turbined: f64,
    pub max_generation: f64,
    pub min_outflow: f64,
    /// By stage.
    pub functions: Vec<Function>,
    /// Constant and slope by stage, and the most.
    pub evaporation: Option<Vec<[f64; 3]>>,
    /// By stage.
    pub withdrawal: Vec<f64>,
    pub diverts_to: Option<usize>,
    /// By stage.
    pub max_diversion: Vec<f64>,
    pub travel: f64,
    pub phases: Vec<WaterPhase>,
}

pub struct WaterWorld {
    pub stages: Vec<WaterStage>,
    pub plants: Vec<WaterPlant>,
    /// Cost and capacity.
    pub thermals: Vec<(f64, f64)>,
    pub load: f64,
}

const STAGES: usize = 3;

/// Points of level and area: storage, m, km².
const CURVE: [[f64; 3]; 4] = [
    [0.0, 300.0, 2.0],
    [30.0, 318.0, 5.0],
    [80.0, 327.0, 7.0],
    [150.0, 335.0, 11.0],
];

impl WaterWorld {
    /// A random world, and the case that describes it.
    pub fn random(seed: u64) -> (Self, CaseFiles) {
        let mut random = Random::new(1000 + seed);
        let random = &mut random;
        let stages = (0..STAGES).map(|_| WaterStage {
            hours: (0..=random.below(3))
                .map(|_| random.number(40.0, 200.0))
                .collect(),
            chronological: random.below(2) == 0,
        });
        let stages: Vec<WaterStage> = stages.collect();
        let mut files = CaseFiles::default();
        let mut hydros = Vec::new();
        let mut models = Vec::new();
        let (mut plane_rows, mut bounds) = (Vec::new(), Vec::new());
        let mut plants = Vec::new();
        for place in 0..3 {
            let (plant, json) = plant(
                random,
                place,
                &stages,
                &mut bounds,
                &mut plane_rows,
                &mut models,
            );
            plants.push(plant);
            hydros.push(json);
        }
        let world = Self {
            stages,
            plants,
            thermals: vec![
                (40.0, random.number(20.0, 50.0)),
                (160.0, random.number(10.0, 40.0)),
            ],
            load: random.number(90.0, 160.0),
        };
        files.json("system/hydros.json", json!({"hydros": hydros}));
        let models = json!({"production_models": models});
        files.json("system/hydro_production_models.json", models);
        world.write(random, &mut files, &bounds, &plane_rows);
        (world, files)
    }

    #[expect(
        clippy::too_many_lines,
        reason = "the files of a case, one after the other"
    )]
    fn write(
        &self,
        random: &mut Random,
        files: &mut CaseFiles,
        bounds: &[(usize, usize, f64, Option<f64>)],
        planes: &[(usize, usize, usize, [f64; 4])],
    ) {
        files.json("config.json", json!({
            "training": {"forward_passes": 1, "stopping_rules": [{"type": "iteration_limit", "limit": 2}]},
            "modeling": {"inflow_non_negativity": {"method": "none"}},
        }));
        files.json("penalties.json", json!({
            "bus": {"deficit_segments": [{"depth_mw": null, "cost": DEFICIT}], "excess_cost": EXCESS},
            "line": {"exchange_cost": 1.0},
            "hydro": {
                "spillage_cost": SPILLAGE, "fpha_turbined_cost": TURBINED, "diversion_cost": DIVERSION,
                "storage_violation_below_cost": STORAGE_BELOW, "filling_target_violation_cost": FILLING_BELOW,
                "turbined_violation_below_cost": 1.0, "outflow_violation_below_cost": OUTFLOW_BELOW,
                "outflow_violation_above_cost": 1.0, "generation_violation_below_cost": 1.0,
                "evaporation_violation_cost": EVAPORATION[0], "evaporation_violation_pos_cost": EVAPORATION[1],
                "water_withdrawal_violation_cost": WITHDRAWAL[1],
                "water_withdrawal_violation_neg_cost": WITHDRAWAL[0],
            },
            "non_controllable_source": {"curtailment_cost": 0.0},
        }));
        let stages = self.stages.iter().enumerate().map(|(id, stage)| {
            let blocks = stage.hours.iter().enumerate();
            let blocks: Vec<Value> = blocks
                .map(|(id, hours)| json!({"id": id, "name": format!("b{id}"), "hours": hours}))
                .collect();
            let mode = if stage.chronological { "chronological" } else { "parallel" };
            json!({
                "id": id, "num_scenarios": 2, "blocks": blocks, "block_mode": mode,
                "start_date": format!("2026-{:02}-01", id + 1), "end_date": format!("2026-{:02}-01", id + 2),
            })
        });
        files.json(
            "stages.json",
            json!({
                "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.0},
                "stages": stages.collect::<Vec<_>>(),
            }),
        );
        let is_filled = |plant: &WaterPlant| {
            plant
                .phases
                .iter()
                .any(|phase| matches!(phase, WaterPhase::Filling(_)))
        };
        let of = |filling: bool| -> Vec<Value> {
            let wanted = self
                .plants
                .iter()
                .enumerate()
                .filter(|(_, plant)| is_filled(plant) == filling);
            wanted
                .map(|(id, plant)| json!({"hydro_id": id, "value_hm3": plant.storage[0]}))
                .collect()
        };
        let past = self
            .plants
            .iter()
            .enumerate()
            .filter(|(_, plant)| plant.travel > 0.0);
        let past = past.map(|(id, _)| json!({
            "hydro_id": id, "start_date": format!("2025-12-{}", 32 - PAST.1), "end_date": "2026-01-01",
            "value_m3s": PAST.0,
        }));
        files.json("initial_conditions.json", json!({
            "storage": of(false), "filling_storage": of(true), "past_defluences": past.collect::<Vec<_>>(),
        }));
        files.json(
            "system/buses.json",
            json!({"buses": [{"id": 0, "name": "B"}]}),
        );
        files.json("system/lines.json", json!({"lines": []}));
        let thermals = self.thermals.iter().enumerate().map(|(id, (cost, most))| {
            json!({
                "id": id, "name": format!("T{id}"), "bus_id": 0, "cost_per_mwh": cost,
                "generation": {"min_mw": 0.0, "max_mw": most},
            })
        });
        files.json(
            "system/thermals.json",
            json!({"thermals": thermals.collect::<Vec<_>>()}),
        );
        let rows: Vec<(usize, usize)> = (0..3)
            .flat_map(|plant| (0..STAGES).map(move |stage| (plant, stage)))
            .collect();
        let column = |pick: fn(&(usize, usize)) -> usize| {
            TemplateColumn::of_places(rows.iter().map(pick).collect())
        };
        let mut numbers = |low: f64, high: f64| {
            TemplateColumn::Numbers(rows.iter().map(|_| random.number(low, high)).collect())
        };
        files.table(
            "scenarios/inflow_seasonal_stats.parquet",
            &[
                ("hydro_id", column(|row| row.0)),
                ("stage_id", column(|row| row.1)),
                ("mean_m3s", numbers(25.0, 60.0)),
                ("std_m3s", numbers(4.0, 6.0)),
            ],
        );
        files.table(
            "scenarios/load_seasonal_stats.parquet",
            &[
                ("bus_id", TemplateColumn::Ids(vec![0; STAGES])),
                ("stage_id", TemplateColumn::of_places((0..STAGES).collect())),
                ("mean_mw", TemplateColumn::Numbers(vec![self.load; STAGES])),
                ("std_mw", TemplateColumn::Numbers(vec![0.0; STAGES])),
            ],
        );
        files.table(
            "constraints/hydro_bounds.parquet",
            &[
                (
                    "hydro_id",
                    TemplateColumn::of_places(bounds.iter().map(|row| row.0).collect()),
                ),
                (
                    "stage_id",
                    TemplateColumn::of_places(bounds.iter().map(|row| row.1).collect()),
                ),
                (
                    "water_withdrawal_m3s",
                    TemplateColumn::Numbers(bounds.iter().map(|row| row.2).collect()),
                ),
                (
                    "max_diversion_m3s",
                    TemplateColumn::Maybe(bounds.iter().map(|row| row.3).collect()),
                ),
            ],
        );
        let gamma =
            |place: usize| TemplateColumn::Numbers(planes.iter().map(|row| row.3[place]).collect());
        files.table(
            "system/fpha_hyperplanes.parquet",
            &[
                (
                    "hydro_id",
                    TemplateColumn::of_places(planes.iter().map(|row| row.0).collect()),
                ),
                (
                    "stage_id",
                    TemplateColumn::of_places(planes.iter().map(|row| row.1).collect()),
                ),
                (
                    "plane_id",
                    TemplateColumn::of_places(planes.iter().map(|row| row.2).collect()),
                ),
                // Half of κ, so that twice γ₀ is what counts.
                (
                    "gamma_0",
                    TemplateColumn::Numbers(planes.iter().map(|row| 2.0 * row.3[0]).collect()),
                ),
                ("gamma_v", gamma(1)),
                ("gamma_q", gamma(2)),
                ("gamma_s", gamma(3)),
                ("kappa", TemplateColumn::Numbers(vec![0.5; planes.len()])),
            ],
        );
        let points: Vec<(usize, [f64; 3])> = (0..3)
            .flat_map(|plant| CURVE.map(|point| (plant, point)))
            .collect();
        let of =
            |place: usize| TemplateColumn::Numbers(points.iter().map(|row| row.1[place]).collect());
        files.table(
            "system/hydro_geometry.parquet",
            &[
                (
                    "hydro_id",
                    TemplateColumn::of_places(points.iter().map(|row| row.0).collect()),
                ),
                ("volume_hm3", of(0)),
                ("height_m", of(1)),
                ("area_km2", of(2)),
            ],
        );
    }
}

/// The area curve at a storage, and its slope there, or right of it.
fn area(storage: f64) -> (f64, f64) {
    let piece = (1..CURVE.len())
        .find(|end| storage < CURVE[*end][0])
        .unwrap_or(CURVE.len() - 1);
    let ([x0, _, y0], [x1, _, y1]) = (CURVE[piece - 1], CURVE[piece]);
    let slope = (y1 - y0) / (x1 - x0);
    (y0 + slope * (storage - x0), slope)
}

/// A random plant, and what hydros.json says of it; adds its rows of tables.
#[expect(
    clippy::too_many_lines,
    reason = "the keys of a plant, one after the other"
)]
fn plant(
    random: &mut Random,
    place: usize,
    stages: &[WaterStage],
    bounds: &mut Vec<(usize, usize, f64, Option<f64>)>,
    plane_rows: &mut Vec<(usize, usize, usize, [f64; 4])>,
    models: &mut Vec<Value>,
) -> (WaterPlant, Value) {
    // The second plant may be filled, the third may end.
    let fills = place == 1 && random.below(2) == 0;
    let ends = place == 2 && random.below(3) == 0;
    let most = random.number(60.0, 150.0);
    let least = random.number(5.0, 15.0);
    let initial = if fills {
        random.number(0.0, 2.0)
    } else {
        random.number(least, most)
    };
    let below = [Some(1), Some(2), None][place];
    let travel = if place < 2 && random.below(3) > 0 {
        random.number(5.0, 450.0)
    } else {
        0.0
    };
    let rate = random.number(2.0, 6.0);
    let diverts_to = (place == 0).then_some(2);
    let max_turbined = random.number(40.0, 90.0);
    let max_generation = random.number(30.0, 70.0);
    let min_outflow = if place == 1 {
        random.number(5.0, 30.0)
    } else {
        0.0
    };
    let volume = |stage: usize| HM3 * stages[stage].hours.iter().sum::<f64>();
    let phases = (0..STAGES).map(|stage| match stage {
        0 if fills => WaterPhase::Filling(least - volume(1) * rate),
        1 if fills => WaterPhase::Filling(least),
        2 if ends => WaterPhase::Gone,
        _ => WaterPhase::Works,
    });
    let mut phases: Vec<WaterPhase> = phases.collect();
    let absent = fills && random.below(2) == 0;
    if absent {
        phases[0] = WaterPhase::Absent;
    }
    let rho = random.number(0.4, 1.1);
    let mut functions = Vec::new();
    let mut ranges = Vec::new();
    for stage in 0..STAGES {
        let by_planes = random.below(2) == 0;
        let by_stage = !by_planes && random.below(2) == 0;
        if by_planes {
            let planes: Vec<[f64; 4]> = (0..=random.below(3))
                .map(|number| {
                    let slope = 1.1 - 0.3 * number as f64 + random.number(0.0, 0.2);
                    [
                        5.0 * number as f64,
                        0.02 * random.number(0.0, 5.0),
                        slope,
                        -0.01 * random.number(0.0, 9.0),
                    ]
                })
                .collect();
            plane_rows.extend(
                planes
                    .iter()
                    .enumerate()
                    .map(|(number, plane)| (place, stage, number, *plane)),
            );
            functions.push(Function::Planes(planes));
            ranges.push(json!({"start_stage_id": stage, "end_stage_id": stage, "model": "fpha", "fpha_config": {"source": "precomputed"}}));
        } else if by_stage {
            let own = random.number(0.4, 1.1);
            functions.push(Function::Rho(own));
            ranges.push(json!({"start_stage_id": stage, "end_stage_id": stage, "model": "linearized_head", "productivity_override": own}));
        } else {
            functions.push(Function::Rho(rho));
        }
    }
    if !plane_rows.iter().any(|row| row.0 == place) && place == 0 {
        // The table has rows of some plant.
        let only = [0.0, 0.03, 0.8, -0.02];
        plane_rows.push((place, 0, 7, only));
        functions[0] = Function::Planes(vec![only]);
        ranges.retain(|range| range["start_stage_id"] != 0);
        ranges.push(json!({"start_stage_id": 0, "end_stage_id": 0, "model": "fpha", "fpha_config": {"source": "precomputed"}}));
    }
    models
        .push(json!({"hydro_id": place, "selection_mode": "stage_ranges", "stage_ranges": ranges}));
    let coefficients: Vec<f64> = (0..12).map(|_| random.number(-60.0, 900.0)).collect();
    let references: Vec<f64> = (0..12).map(|_| random.number(least, most)).collect();
    let evaporates = place < 2;
    let evaporation = evaporates.then(|| {
        let of_stage = (0..STAGES).map(|stage| {
            let (value, slope) = area(references[stage]);
            let rate = coefficients[stage] / (3.6 * MONTHS[stage]);
            let (k0, k1) = (rate * (value - slope * references[stage]), rate * slope);
            [k0, k1, 2.0 * (k0 + k1 * most).abs()]
        });
        of_stage.collect()
    });
    let mut withdrawal = Vec::new();
    let mut max_diversion = Vec::new();
    for stage in 0..STAGES {
        let own = [0.0, random.number(1.0, 30.0), random.number(-5.0, -1.0)][random.below(3)];
        let diversion = (place == 0 && random.below(2) == 0).then(|| random.number(1.0, 20.0));
        bounds.push((place, stage, own, diversion));
        withdrawal.push(own);
        max_diversion.push(diversion.unwrap_or(8.0));
    }
    let mut file = json!({
        "id": place, "name": format!("H{place}"), "bus_id": 0, "downstream_id": below,
        "reservoir": {"min_storage_hm3": least, "max_storage_hm3": most},
        "outflow": {"min_outflow_m3s": min_outflow, "max_outflow_m3s": null},
        "generation": {
            "model": "constant_productivity", "productivity_mw_per_m3s": rho,
            "min_turbined_m3s": 0.0, "max_turbined_m3s": max_turbined,
            "min_generation_mw": 0.0, "max_generation_mw": max_generation,
        },
    });
    if evaporates {
        file["evaporation"] =
            json!({"coefficients_mm": coefficients, "reference_volumes_hm3": references});
    }
    if let Some(to) = diverts_to {
        file["diversion"] = json!({"downstream_id": to, "max_flow_m3s": 8.0});
    }
    if travel > 0.0 {
        file["travel_time_hours"] = json!(travel);
    }
    if fills {
        file["filling"] = json!({"start_stage_id": i32::from(absent), "filling_inflow_m3s": rate});
        file["entry_stage_id"] = json!(2);
    }
    if ends {
        file["exit_stage_id"] = json!(2);
    }
    let plant = WaterPlant {
        below,
        storage: [initial, least, most],
        max_turbined,
        max_generation,
        min_outflow,
        functions,
        evaporation,
        withdrawal,
        diverts_to,
        max_diversion,
        travel,
        phases,
    };
    (plant, file)
}
