//! The files of a random system.

use cobre_case::template::{CaseFiles, TemplateColumn};
use serde_json::{Value, json};

use super::world::{DEFICIT, EXCESS, Lead, SPILLAGE, TURBINED_BELOW, World};

pub fn write(world: &World) -> CaseFiles {
    let mut files = CaseFiles::default();
    time(world, &mut files);
    plants(world, &mut files);
    equipment(world, &mut files);
    tables(world, &mut files);
    files
}

fn time(world: &World, files: &mut CaseFiles) {
    files.json(
        "config.json",
        json!({
            "training": {"forward_passes": 1, "stopping_rules": [{"type": "iteration_limit", "limit": 2}]},
            "modeling": {"inflow_non_negativity": {"method": "none"}},
        }),
    );
    let nothing = 1.0;
    files.json(
        "penalties.json",
        json!({
            "bus": {"deficit_segments": [{"depth_mw": null, "cost": DEFICIT}], "excess_cost": EXCESS},
            "line": {"exchange_cost": 9.0},
            "hydro": {
                "spillage_cost": SPILLAGE, "fpha_turbined_cost": nothing, "diversion_cost": nothing,
                "storage_violation_below_cost": nothing, "filling_target_violation_cost": nothing,
                "turbined_violation_below_cost": TURBINED_BELOW, "outflow_violation_below_cost": nothing,
                "outflow_violation_above_cost": nothing, "generation_violation_below_cost": nothing,
                "evaporation_violation_cost": nothing, "water_withdrawal_violation_cost": nothing,
            },
            "non_controllable_source": {"curtailment_cost": 0.7},
        }),
    );
    let stages = world.hours.iter().enumerate().map(|(stage, hours)| {
        let blocks = hours.iter().enumerate();
        let blocks = blocks.map(|(id, hours)| json!({"id": id, "name": format!("b{id}"), "hours": hours}));
        json!({
            "id": stage, "num_scenarios": if stage == 0 { 1 } else { 2 }, "blocks": blocks.collect::<Vec<_>>(),
            "start_date": format!("2026-{:02}-01", stage + 1), "end_date": format!("2026-{:02}-01", stage + 2),
            "block_mode": if world.chronological[stage] { "chronological" } else { "parallel" },
        })
    });
    let stages: Vec<Value> = stages.collect();
    let graph = json!({"type": "finite_horizon", "annual_discount_rate": world.rate});
    files.json(
        "stages.json",
        json!({"policy_graph": graph, "stages": stages}),
    );
    let storage = world.hydros.iter().enumerate();
    let storage = storage.map(|(id, plant)| json!({"hydro_id": id, "value_hm3": plant.initial}));
    files.json(
        "initial_conditions.json",
        json!({
            "storage": storage.collect::<Vec<_>>(), "filling_storage": [],
            "past_anticipated_commitments": [{"thermal_id": 2, "values_mw": world.past}],
        }),
    );
}

fn plants(world: &World, files: &mut CaseFiles) {
    let buses = [
        json!({"id": 0, "name": "B0"}),
        json!({"id": 1, "name": "B1"}),
    ];
    files.json("system/buses.json", json!({"buses": buses}));
    let (capacity, cost, arrives, _, exit) = world.line;
    files.json(
        "system/lines.json",
        json!({"lines": [{
            "id": 0, "name": "L0", "source_bus_id": 0, "target_bus_id": 1,
            "capacity": {"direct_mw": capacity, "reverse_mw": capacity}, "exchange_cost": cost,
            "losses_percent": ((1.0 - arrives) * 100.0).round(), "exit_stage_id": exit,
        }]}),
    );
    let segments = world.segments.iter();
    let segments = segments.map(|(size, cost)| json!({"capacity_mw": size, "cost_per_mwh": cost}));
    let segments: Vec<Value> = segments.collect();
    let lead = match world.lead {
        Lead::Stages(1) => ("gnl_config", json!({"lag_stages": 1})),
        Lead::Stages(lead) => ("anticipated_config", json!({"lead_stages": lead})),
        Lead::Hours(hours) => ("anticipated_config", json!({"lead_time_hours": hours})),
    };
    let mut committed = json!({
        "id": 2, "name": "T2", "bus_id": 0, "cost_per_mwh": 1.0,
        "generation": {"min_mw": world.committed.0, "max_mw": world.committed.1},
    });
    committed[lead.0] = lead.1;
    files.json(
        "system/thermals.json",
        json!({"thermals": [
            {
                "id": 0, "name": "T0", "bus_id": 0, "cost_per_mwh": world.plain.2,
                "generation": {"min_mw": world.plain.0, "max_mw": world.plain.1},
            },
            {
                "id": 1, "name": "T1", "bus_id": 1, "cost_segments": segments,
                "generation": {"min_mw": 0.0, "max_mw": world.segments_max},
            },
            committed,
        ]}),
    );
    let hydros = world.hydros.iter().enumerate().map(|(id, plant)| {
        let mut hydro = json!({
            "id": id, "name": format!("H{id}"), "downstream_id": (id == 0).then_some(1),
            "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": plant.max_storage},
            "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": null},
            "generation": {
                "model": "constant_productivity", "productivity_mw_per_m3s": plant.productivity,
                "min_turbined_m3s": 0.0, "max_turbined_m3s": plant.max_turbined,
                "min_generation_mw": 0.0, "max_generation_mw": plant.max_generation,
            },
        });
        if id == 0 && !world.units.is_empty() {
            let groups = world.units.iter().enumerate().map(|(id, unit)| {
                json!({
                    "id": id, "name": format!("U{id}"), "bus_id": unit.bus,
                    "min_turbined_m3s": unit.min_turbined, "max_turbined_m3s": unit.max_turbined,
                    "max_generation_mw": unit.max_generation,
                })
            });
            hydro["unit_groups"] = groups.collect();
        } else {
            hydro["bus_id"] = id.into();
        }
        hydro
    });
    files.json(
        "system/hydros.json",
        json!({"hydros": hydros.collect::<Vec<_>>()}),
    );
}

fn equipment(world: &World, files: &mut CaseFiles) {
    let (consumption, least, most, entry) = world.pump;
    files.json(
        "system/pumping_stations.json",
        json!({"pumping_stations": [{
            "id": 0, "name": "P0", "bus_id": 1, "source_hydro_id": 1, "destination_hydro_id": 0,
            "consumption_mw_per_m3s": consumption, "flow": {"min_m3s": least, "max_m3s": most},
            "entry_stage_id": entry,
        }]}),
    );
    files.json(
        "system/energy_contracts.json",
        json!({"contracts": [
            {
                "id": 0, "name": "C0", "bus_id": 1, "type": "import", "price_per_mwh": world.import.2,
                "limits": {"min_mw": world.import.0, "max_mw": world.import.1},
            },
            {
                "id": 1, "name": "C1", "bus_id": 0, "type": "export", "price_per_mwh": world.export.1,
                "limits": {"min_mw": 0.0, "max_mw": world.export.0},
            },
        ]}),
    );
    let battery = &world.battery;
    files.json(
        "system/batteries.json",
        json!({"batteries": [{
            "id": 0, "name": "A0", "bus_id": 1, "capacity_mwh": battery.capacity, "min_level_mwh": battery.min_level,
            "initial_level_mwh": battery.initial, "max_charge_mw": battery.charge,
            "max_discharge_mw": battery.discharge, "charge_efficiency": battery.efficiency[0],
            "discharge_efficiency": battery.efficiency[1], "self_discharge_per_hour": battery.self_discharge,
            "degradation_cost_per_mwh": battery.wear, "level_violation_below_cost": battery.below_cost,
            "exit_stage_id": battery.exit,
        }]}),
    );
    files.json(
        "system/non_controllable_sources.json",
        json!({"non_controllable_sources": [{"id": 0, "name": "S0", "bus_id": 1, "max_generation_mw": 50.0}]}),
    );
    let factors = json!({"line_id": 0, "stage_id": 1, "block_factors": [
        {"block_id": 0, "direct_factor": world.line.3, "reverse_factor": 1.0},
    ]});
    files.json(
        "constraints/exchange_factors.json",
        json!({"exchange_factors": [factors]}),
    );
    let constraint = |id: usize, expression: &str, sense: Option<&str>| {
        json!({
            "id": id, "name": format!("G{id}"), "expression": expression, "sense": sense,
            "slack": {"enabled": true, "penalty": world.constraints[id].1},
        })
    };
    files.json(
        "constraints/generic_constraints.json",
        json!({"constraints": [
            constraint(0, "line_exchange(0) + 0.5 * thermal_generation(1)", Some("<=")),
            constraint(1, "hydro_storage(0) + 0.01*battery_level(0) - 2", Some(">=")),
            constraint(2, "contract_import(0, 0) + pumping_power(0) - non_controllable_curtailment(0)", Some("==")),
            constraint(3, "hydro_outflow(1) - 1.5 * hydro_generation(0) + bus_deficit(1) + battery_discharge(0)", None),
        ]}),
    );
}

fn tables(world: &World, files: &mut CaseFiles) {
    let column = TemplateColumn::of_places;
    let numbers = TemplateColumn::Numbers;
    let inflows = |stage: usize| world.hydros.iter().map(move |plant| (stage, plant.inflow));
    let rows: Vec<(usize, f64)> = (0..3).flat_map(inflows).collect();
    let deviation = |(stage, mean): &(usize, f64)| if *stage == 0 { 0.0 } else { 0.2 * mean };
    files.table(
        "scenarios/inflow_seasonal_stats.parquet",
        &[
            (
                "hydro_id",
                column((0..rows.len()).map(|row| row % 2).collect()),
            ),
            ("stage_id", column(rows.iter().map(|row| row.0).collect())),
            ("mean_m3s", numbers(rows.iter().map(|row| row.1).collect())),
            ("std_m3s", numbers(rows.iter().map(deviation).collect())),
        ],
    );
    files.table(
        "scenarios/load_seasonal_stats.parquet",
        &[
            ("bus_id", column(vec![0, 0, 0, 1, 1, 1])),
            ("stage_id", column(vec![0, 1, 2, 0, 1, 2])),
            (
                "mean_mw",
                numbers((0..6).map(|row| world.load[row / 3]).collect()),
            ),
            ("std_mw", numbers(vec![0.0; 6])),
        ],
    );
    files.table(
        "constraints/thermal_bounds.parquet",
        &[
            ("thermal_id", column(vec![2; 3])),
            ("stage_id", column(vec![0, 1, 2])),
            ("cost_per_mwh", numbers(world.committed.2.clone())),
        ],
    );
    files.table(
        "constraints/ncs_bounds.parquet",
        &[
            ("ncs_id", column(vec![0; 3])),
            ("stage_id", column(vec![0, 1, 2])),
            ("available_generation_mw", numbers(world.source.0.clone())),
        ],
    );
    files.table(
        "constraints/penalty_overrides_ncs.parquet",
        &[
            ("source_id", column(vec![0; 3])),
            ("stage_id", column(vec![0, 1, 2])),
            ("curtailment_cost", numbers(world.source.1.clone())),
        ],
    );
    let last = world.hours[2].len() - 1;
    files.table(
        "constraints/contract_bounds.parquet",
        &[
            ("contract_id", column(vec![0])),
            ("stage_id", column(vec![2])),
            ("block_id", column(vec![last])),
            ("price_per_mwh", numbers(vec![world.import.3])),
        ],
    );
    let bounds = world.constraints.map(|(bound, _)| bound);
    let maybe = TemplateColumn::Maybe;
    files.table(
        "constraints/generic_constraint_bounds.parquet",
        &[
            ("constraint_id", column(vec![0, 0, 1, 2, 3])),
            ("stage_id", column(vec![0, 2, 1, 2, 1])),
            (
                "bound",
                maybe(vec![
                    Some(bounds[0]),
                    Some(bounds[0] / 2.0),
                    Some(bounds[1]),
                    Some(bounds[2]),
                    None,
                ]),
            ),
            (
                "bound_lower",
                maybe(vec![None, None, None, None, Some(bounds[3])]),
            ),
            (
                "bound_upper",
                maybe(vec![None, None, None, None, Some(bounds[3] + 5.0)]),
            ),
        ],
    );
}
