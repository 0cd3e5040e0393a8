//! Thermal plants, pumping, contracts, batteries, sun, bounds, penalties and generic constraints.

use serde_json::{Value, json};

use super::{CaseFiles, STAGES, SystemShape, amend, parts};
use crate::template::TemplateColumn;

/// Stages between a commitment of the plants on liquefied gas and their generation.
const LEAD: usize = 2;

/// Adds all of it.
pub(super) fn add(shape: &SystemShape, files: &mut CaseFiles) {
    thermals(shape, files);
    pumping(shape, files);
    let load = shape.load;
    let contract = |id: usize, name: &str, kind: &str, price: f64, part: f64| {
        json!({
            "id": id, "name": name, "bus_id": 1, "type": kind, "price_per_mwh": price,
            "limits": {"min_mw": 0.0, "max_mw": parts::round(part * load)},
        })
    };
    let contracts = [
        contract(0, "from the neighbour", "import", 190.0, 0.02),
        contract(1, "to the neighbour", "export", -25.0, 0.015),
    ];
    files.json(
        "system/energy_contracts.json",
        json!({"contracts": contracts}),
    );
    let battery = |id: usize, name: &str, bus: usize, entry: Value| {
        let power = parts::round(0.006 * load);
        json!({
            "id": id, "name": name, "bus_id": bus, "capacity_mwh": parts::round(4.0 * power),
            "min_level_mwh": parts::round(0.4 * power), "initial_level_mwh": parts::round(2.0 * power),
            "max_charge_mw": power, "max_discharge_mw": power, "charge_efficiency": 0.95,
            "discharge_efficiency": 0.94, "self_discharge_per_hour": 0.0001, "degradation_cost_per_mwh": 3.0,
            "entry_stage_id": entry,
        })
    };
    let batteries = [
        battery(0, "northeast battery", 2, Value::Null),
        battery(1, "southeast battery", 0, 6.into()),
    ];
    files.json("system/batteries.json", json!({"batteries": batteries}));
    sun(load, files);
    network(files);
    constraints(shape, files);
    amend(files, "stages.json", |file| {
        for stage in 0..2 {
            file["stages"][stage]["block_mode"] = "chronological".into();
        }
    });
}

/// Plants of all costs: some by segments, two on liquefied gas that is ordered ahead, one that is shut down.
fn thermals(shape: &SystemShape, files: &mut CaseFiles) {
    let count = shape.plants.len() * 4 / 5;
    let usual = 0.45 * shape.load / count as f64;
    let plants = (0..count).map(|plant| {
        let capacity = parts::round(usual * shape.number(11, plant, 0.4, 1.6));
        let cost = shape.number(12, plant, 40.0, 420.0);
        (
            format!("thermal {plant}"),
            [0, 0, 1, 2, 3][plant % 5],
            capacity,
            cost,
        )
    });
    parts::thermals(&plants.collect::<Vec<_>>(), files);
    let committed = [3, 7];
    amend(files, "system/thermals.json", |file| {
        let list = file["thermals"].as_array_mut().into_iter().flatten();
        for (number, plant) in list.enumerate() {
            let most = plant["generation"]["max_mw"].as_f64().unwrap_or(0.0);
            if committed.contains(&number) {
                plant["anticipated_config"] = json!({"lead_stages": LEAD});
            } else if number % 4 == 0 {
                let cost = plant["cost_per_mwh"].as_f64().unwrap_or(0.0);
                let half = parts::round(most / 2.0);
                plant["cost_segments"] = json!([
                    {"capacity_mw": half, "cost_per_mwh": cost},
                    {"capacity_mw": parts::round(most - half), "cost_per_mwh": parts::round(1.25 * cost)},
                ]);
                plant["cost_per_mwh"] = Value::Null;
            } else if number % 5 == 1 {
                plant["generation"]["min_mw"] = parts::round(0.2 * most).into();
            }
        }
        file["thermals"][5]["exit_stage_id"] = 14.into();
    });
    amend(files, "initial_conditions.json", |file| {
        let past = committed.map(|plant| json!({"thermal_id": plant, "values_mw": [0.0, 0.0]}));
        file["past_anticipated_commitments"] = json!(past);
    });
    // Maintenance.
    let columns = [
        ("thermal_id", TemplateColumn::of_places(vec![1, 2, 2])),
        ("stage_id", TemplateColumn::of_places(vec![3, 8, 9])),
        ("min_generation_mw", TemplateColumn::Numbers(vec![0.0; 3])),
        ("max_generation_mw", TemplateColumn::Numbers(vec![0.0; 3])),
    ];
    files.table("constraints/thermal_bounds.parquet", &columns);
}

/// Water of the second plant of the first main stem is lifted to the head of the tributary.
fn pumping(shape: &SystemShape, files: &mut CaseFiles) {
    let named = |name: &str| shape.plants.iter().position(|plant| plant.name == name);
    let (Some(low), Some(high)) = (named("river 0 main 1"), named("river 0 left 0")) else {
        return;
    };
    let way = std::iter::successors(Some(high), |place| shape.plants[*place].downstream);
    let gained: f64 = way
        .take_while(|place| *place != low)
        .map(|place| shape.plants[place].productivity)
        .sum();
    let most = parts::round(0.05 * shape.plants[low].max_turbined);
    files.json(
        "system/pumping_stations.json",
        json!({"pumping_stations": [{
            "id": 0, "name": "lift", "bus_id": 0, "source_hydro_id": low, "destination_hydro_id": high,
            "consumption_mw_per_m3s": parts::round(1.35 * gained), "flow": {"min_m3s": 0.0, "max_m3s": most},
        }]}),
    );
}

/// Sun: known power by stage, and factors by block.
fn sun(load: f64, files: &mut CaseFiles) {
    let capacity = parts::round(0.06 * load);
    amend(files, "system/non_controllable_sources.json", |file| {
        let list = file["non_controllable_sources"].as_array_mut();
        let id = list.as_ref().map_or(0, |list| list.len());
        if let Some(list) = list {
            list.push(json!({
                "id": id, "name": "northeast sun", "bus_id": 2, "max_generation_mw": capacity, "entry_stage_id": 3,
            }));
        }
    });
    let stages: Vec<usize> = (0..STAGES).collect();
    let power = |stage: &usize| parts::round(0.22 * capacity * parts::wave(*stage, 0.0, 0.15));
    let columns = [
        ("ncs_id", TemplateColumn::of_places(vec![2; STAGES])),
        ("stage_id", TemplateColumn::of_places(stages.clone())),
        (
            "available_generation_mw",
            TemplateColumn::Numbers(stages.iter().map(power).collect()),
        ),
    ];
    files.table("constraints/ncs_bounds.parquet", &columns);
    let factors = stages.iter().map(|stage| {
        let blocks = [(0, 0.3), (1, 1.7), (2, 0.3)];
        let blocks = blocks.map(|(id, factor)| json!({"block_id": id, "factor": factor}));
        json!({"ncs_id": 2, "stage_id": stage, "block_factors": blocks})
    });
    let factors: Vec<Value> = factors.collect();
    files.json(
        "scenarios/non_controllable_factors.json",
        json!({"non_controllable_factors": factors}),
    );
}

/// A line that comes later, a line with less capacity at night, and penalties of single stages.
fn network(files: &mut CaseFiles) {
    amend(files, "system/lines.json", |file| {
        file["lines"][4]["entry_stage_id"] = 2.into();
    });
    let factors = (0..STAGES).map(|stage| {
        let block = json!({"block_id": 2, "direct_factor": 0.85, "reverse_factor": 0.85});
        json!({"line_id": 0, "stage_id": stage, "block_factors": [block]})
    });
    let factors: Vec<Value> = factors.collect();
    files.json(
        "constraints/exchange_factors.json",
        json!({"exchange_factors": factors}),
    );
    let columns = [
        ("hydro_id", TemplateColumn::of_places(vec![0])),
        ("stage_id", TemplateColumn::of_places(vec![0])),
        ("spillage_cost", TemplateColumn::Numbers(vec![0.02])),
    ];
    files.table("constraints/penalty_overrides_hydro.parquet", &columns);
}

/// Limits on exchange, on storage before the dry months, and on what a basin lets go.
fn constraints(shape: &SystemShape, files: &mut CaseFiles) {
    let heads = shape.plants.iter().enumerate();
    let heads: Vec<(usize, f64)> = heads
        .filter(|(place, plant)| shape.rivers[*place] == 0 && plant.max_storage > 0.0)
        .map(|(place, plant)| (place, plant.max_storage))
        .collect();
    let stored: Vec<String> = heads
        .iter()
        .map(|(place, _)| format!("hydro_storage({place})"))
        .collect();
    let room: f64 = heads.iter().map(|(_, room)| room).sum();
    let constraint = |id: usize, name: &str, expression: &str, sense: &str, penalty: f64| {
        json!({
            "id": id, "name": name, "expression": expression, "sense": sense,
            "slack": {"enabled": true, "penalty": penalty},
        })
    };
    let list = [
        constraint(
            0,
            "received by the southeast",
            "line_reverse(0) + line_reverse(1) - 0.5 * contract_export(1)",
            "<=",
            600.0,
        ),
        constraint(1, "stored on river 0", &stored.join(" + "), ">=", 0.5),
        constraint(
            2,
            "reserve of the northeast",
            "thermal_generation(3) + battery_discharge(0) - battery_charge(0)",
            ">=",
            50.0,
        ),
    ];
    files.json(
        "constraints/generic_constraints.json",
        json!({"constraints": list}),
    );
    let (mut ids, mut stages, mut bounds) = (vec![], vec![], vec![]);
    for stage in 0..STAGES {
        ids.push(0);
        stages.push(stage);
        bounds.push(parts::round(0.2 * shape.load));
        if stage % 12 == 3 {
            ids.push(1);
            stages.push(stage);
            bounds.push(parts::round(0.4 * room));
        }
        if stage % 12 > 6 && stage % 12 < 10 {
            ids.push(2);
            stages.push(stage);
            bounds.push(parts::round(0.0005 * shape.load));
        }
    }
    let columns = [
        ("constraint_id", TemplateColumn::of_places(ids)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("bound", TemplateColumn::Numbers(bounds)),
    ];
    files.table("constraints/generic_constraint_bounds.parquet", &columns);
}
