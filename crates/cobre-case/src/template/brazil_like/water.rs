//! Hydro plants beyond constant productivity: hyperplanes, evaporation, withdrawal, diversion, filling, travel time,
//! groups of units.

use serde_json::{Value, json};

use super::{CaseFiles, SystemShape, TemplateHydro, amend, parts};
use crate::template::TemplateColumn;

/// Points of the curves of a reservoir.
const POINTS: usize = 5;
/// MW of 1 m³/s that falls 1 m, at the efficiency of the plants.
const PER_METRE: f64 = 0.00981 * EFFICIENCY;
const EFFICIENCY: f64 = 0.92;
/// Evaporation from January to December, mm per month.
const EVAPORATION: [f64; 12] = [
    20.0, 15.0, 25.0, 40.0, 60.0, 70.0, 80.0, 95.0, 90.0, 60.0, 35.0, 20.0,
];

/// Adds all of it to plants that are written already.
pub(super) fn add(shape: &SystemShape, files: &mut CaseFiles) {
    let stores = |place: &usize| shape.plants[*place].max_storage > 0.0;
    let reservoirs: Vec<usize> = (0..shape.plants.len()).filter(stores).collect();
    let large = |place: &usize| {
        let plant = &shape.plants[*place];
        plant.max_storage > 2.5 * plant.max_turbined
    };
    // Only in large reservoirs does the level change so slowly that it is worth a curve.
    let curved: Vec<usize> = reservoirs.iter().copied().filter(large).collect();
    geometry(shape, &curved, files);
    let fitted: Vec<usize> = curved.iter().copied().take(12).collect();
    production(shape, &fitted, files);
    let new = new_plant(shape, &curved);
    amend(files, "system/hydros.json", |file| {
        for &place in &curved {
            let plant = &mut file["hydros"][place];
            plant["evaporation"] = json!({"coefficients_mm": EVAPORATION});
            plant["reservoir"]["min_storage_hm3"] =
                parts::round(0.1 * shape.plants[place].max_storage).into();
            plant["tailrace"] = json!({"type": "polynomial", "coefficients": [0.0, 0.0004]});
            plant["hydraulic_losses"] = json!({"type": "factor", "value": 0.02});
            plant["efficiency"] = json!({"type": "constant", "value": EFFICIENCY});
        }
        let last = shape.plants.len() - 1;
        units(&shape.plants[last], &mut file["hydros"][last]);
        if let Some(place) = new {
            let plant = &mut file["hydros"][place];
            plant["entry_stage_id"] = 5.into();
            plant["filling"] = json!({"start_stage_id": 1, "filling_inflow_m3s": 5.0});
        }
        travel_and_diversion(shape, file);
    });
    amend(files, "initial_conditions.json", |file| {
        let Some(place) = new else { return };
        if let Some(storage) = file["storage"].as_array_mut() {
            storage.retain(|entry| entry["hydro_id"] != place);
        }
        file["filling_storage"] = json!([{"hydro_id": place, "value_hm3": 0.0}]);
    });
    if let Some(main) = mains(shape).first() {
        let release = parts::round(shape.plants[*main].max_turbined / super::TURBINES);
        amend(files, "initial_conditions.json", |file| {
            file["past_defluences"] = json!([{
                "hydro_id": main, "start_date": "2025-12-01", "end_date": "2026-01-01", "value_m3s": release,
            }]);
        });
    }
    withdrawal(&reservoirs, files);
}

/// A reservoir that is built during the study: one without the curves of the others.
fn new_plant(shape: &SystemShape, curved: &[usize]) -> Option<usize> {
    let mut places = (0..shape.plants.len()).rev().skip(1);
    places.find(|place| shape.plants[*place].max_storage > 0.0 && !curved.contains(place))
}

/// Level and area by storage: the level is such that the head at 65 % of storage gives the plant's productivity.
fn geometry(shape: &SystemShape, places: &[usize], files: &mut CaseFiles) {
    let (mut ids, mut volumes, mut heights, mut areas) = (vec![], vec![], vec![], vec![]);
    for &place in places {
        let plant = &shape.plants[place];
        let head = plant.productivity / PER_METRE;
        for point in 0..POINTS {
            let part = point as f64 / (POINTS - 1) as f64;
            ids.push(place);
            volumes.push(parts::round(plant.max_storage * part));
            heights.push(parts::round(head * (0.8 + 0.3 * libm::sqrt(part))));
            areas.push(parts::round(plant.max_storage / head * (0.4 + 1.6 * part)));
        }
    }
    let columns = [
        ("hydro_id", TemplateColumn::of_places(ids)),
        ("volume_hm3", TemplateColumn::Numbers(volumes)),
        ("height_m", TemplateColumn::Numbers(heights)),
        ("area_km2", TemplateColumn::Numbers(areas)),
    ];
    files.table("system/hydro_geometry.parquet", &columns);
}

/// Hyperplanes: fitted for most, given for one, and a productivity by season for another.
fn production(shape: &SystemShape, fitted: &[usize], files: &mut CaseFiles) {
    let range = |place: usize, config: Value| {
        json!({
            "hydro_id": place, "selection_mode": "stage_ranges",
            "stage_ranges": [{"start_stage_id": 0, "end_stage_id": null, "model": "fpha", "fpha_config": config}],
        })
    };
    let computed = json!({"source": "computed", "max_planes_per_hydro": 6});
    let mut models: Vec<Value> = fitted
        .iter()
        .map(|place| range(*place, computed.clone()))
        .collect();
    let others = (0..shape.plants.len()).filter(|place| !fitted.contains(place));
    let others: Vec<usize> = others.take(2).collect();
    if let [given, seasonal] = others[..] {
        models.push(range(given, json!({"source": "precomputed"})));
        let plant = &shape.plants[given];
        let column = |values: Vec<f64>| TemplateColumn::Numbers(values);
        let slope = plant.productivity;
        let most = plant.max_turbined;
        // Less and less energy of more and more water.
        let columns = [
            ("hydro_id", TemplateColumn::of_places(vec![given; 2])),
            ("plane_id", TemplateColumn::of_places(vec![0, 1])),
            (
                "gamma_0",
                column(vec![0.0, parts::round(0.12 * slope * most)]),
            ),
            ("gamma_v", column(vec![0.0, 0.0])),
            (
                "gamma_q",
                column(vec![slope, parts::round(0.85 * slope * 100.0) / 100.0]),
            ),
            ("gamma_s", column(vec![0.0, 0.0])),
        ];
        files.table("system/fpha_hyperplanes.parquet", &columns);
        let dry = parts::round(0.95 * shape.plants[seasonal].productivity * 100.0) / 100.0;
        let seasons = (5..9).map(|season| {
            json!({"season_id": season, "model": "constant_productivity", "productivity_override": dry})
        });
        models.push(json!({
            "hydro_id": seasonal, "selection_mode": "seasonal", "default_model": "constant_productivity",
            "seasons": seasons.collect::<Vec<_>>(),
        }));
    }
    files.json(
        "system/hydro_production_models.json",
        json!({"production_models": models}),
    );
}

/// The last plant of all stands on a border, and feeds two regions.
fn units(plant: &TemplateHydro, file: &mut Value) {
    let (flow, power) = (plant.max_turbined, plant.max_turbined * plant.productivity);
    let group = |id: usize, name: &str, bus: usize, part: f64| {
        json!({
            "id": id, "name": name, "bus_id": bus, "min_turbined_m3s": 0.0,
            "max_turbined_m3s": parts::round(part * flow), "min_generation_mw": 0.0,
            "max_generation_mw": parts::round(part * power),
        })
    };
    if let Some(file) = file.as_object_mut() {
        file.remove("bus_id");
        let groups = json!([group(0, "50 Hz", 0, 0.5), group(1, "60 Hz", 1, 0.5)]);
        file.insert("unit_groups".to_owned(), groups);
    }
}

/// The first plants of all main stems.
fn mains(shape: &SystemShape) -> Vec<usize> {
    let on_main = |place: &usize| shape.plants[*place].name.contains("main 0");
    (0..shape.plants.len()).filter(on_main).collect()
}

/// Water of the first main stem needs two days to the next plant, and a canal leads from one river to another.
fn travel_and_diversion(shape: &SystemShape, file: &mut Value) {
    let mains = mains(shape);
    if let Some(&main) = mains.first() {
        file["hydros"][main]["travel_time_hours"] = 48.0.into();
    }
    if let [.., from, to] = mains[..] {
        let most = parts::round(0.1 * shape.plants[from].max_turbined);
        file["hydros"][from]["diversion"] = json!({"downstream_id": to, "max_flow_m3s": most});
    }
}

/// Irrigation takes water from the second reservoir in the dry months.
fn withdrawal(reservoirs: &[usize], files: &mut CaseFiles) {
    let Some(&place) = reservoirs.get(1) else {
        return;
    };
    let stages: Vec<usize> = (0..super::STAGES)
        .filter(|stage| (4..9).contains(&(stage % 12)))
        .collect();
    let columns = [
        (
            "hydro_id",
            TemplateColumn::of_places(vec![place; stages.len()]),
        ),
        (
            "water_withdrawal_m3s",
            TemplateColumn::Numbers(vec![4.0; stages.len()]),
        ),
        ("stage_id", TemplateColumn::of_places(stages)),
    ];
    files.table("constraints/hydro_bounds.parquet", &columns);
}
