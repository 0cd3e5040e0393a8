//! Hyperplane production functions for every plant of a system: tangents of a concave function of flow and storage, and
//! a plane through the origin.

use serde_json::{Value, json};

use super::files::{CaseFiles, TemplateColumn};
use super::parts::{self, TemplateHydro};

/// The points of tangents, as parts of the largest flow and of the largest storage.
const FLOWS: [f64; 2] = [0.35, 0.85];
const STORAGES: [f64; 2] = [0.25, 0.8];
/// Generation per unit of flow at a small flow, at the tangents' second order, and what storage adds: relative to the
/// productivity of the plant.
const SLOPE: f64 = 1.08;
const LOSS: f64 = 0.18;
const HEAD: f64 = 0.12;

/// A plane: constant, slope by storage, slope by flow.
type Plane = (f64, f64, f64);

/// Gives every plant hyperplanes instead of its productivity.
pub(super) fn add(hydros: &[TemplateHydro], files: &mut CaseFiles) {
    let planes: Vec<(usize, usize, Plane)> = hydros
        .iter()
        .enumerate()
        .flat_map(|(place, plant)| {
            let of_plant = planes(plant).into_iter().enumerate();
            of_plant.map(move |(number, plane)| (place, number, plane))
        })
        .collect();
    let numbers = |of: fn(Plane) -> f64| {
        TemplateColumn::Numbers(planes.iter().map(|plane| of(plane.2)).collect())
    };
    let columns = [
        (
            "hydro_id",
            TemplateColumn::of_places(planes.iter().map(|plane| plane.0).collect()),
        ),
        (
            "plane_id",
            TemplateColumn::of_places(planes.iter().map(|plane| plane.1).collect()),
        ),
        ("gamma_0", numbers(|plane| plane.0)),
        ("gamma_v", numbers(|plane| plane.1)),
        ("gamma_q", numbers(|plane| plane.2)),
        ("gamma_s", numbers(|_| 0.0)),
    ];
    files.table("system/fpha_hyperplanes.parquet", &columns);
    let models: Vec<Value> = (0..hydros.len())
        .map(|place| {
            json!({
                "hydro_id": place, "selection_mode": "stage_ranges",
                "stage_ranges": [{
                    "start_stage_id": 0, "end_stage_id": null, "model": "fpha",
                    "fpha_config": {"source": "precomputed"},
                }],
            })
        })
        .collect();
    files.json(
        "system/hydro_production_models.json",
        json!({"production_models": models}),
    );
}

/// The planes of a plant: one through the origin, and the tangents of
/// productivity × (flow × (slope − loss × flow / largest) + head × largest flow × √(storage / largest)).
fn planes(plant: &TemplateHydro) -> Vec<Plane> {
    let (flow, storage) = (plant.max_turbined, plant.max_storage);
    let digits = |value: f64| parts::round(value * 1e4) / 1e4;
    let origin = digits(plant.productivity * (SLOPE + HEAD));
    let mut planes = vec![(0.0, 0.0, origin)];
    let storages = if storage > 0.0 {
        &STORAGES[..]
    } else {
        &[0.0][..]
    };
    for &part in &FLOWS {
        for &full in storages {
            // What is left of the function at its tangent when flow and storage are zero.
            let by_flow = plant.productivity * (SLOPE - 2.0 * LOSS * part);
            let head = plant.productivity * HEAD * flow;
            let root = libm::sqrt(full);
            let by_storage = if storage > 0.0 {
                head / (2.0 * root * storage)
            } else {
                0.0
            };
            let constant = plant.productivity * LOSS * flow * part * part + 0.5 * head * root;
            planes.push((parts::round(constant), digits(by_storage), digits(by_flow)));
        }
    }
    planes
}
