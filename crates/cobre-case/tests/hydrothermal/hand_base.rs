//! A small case whose cost can be found by hand, for tests that change one thing of it.

use std::num::NonZero;

use cobre_case::template::CaseFiles;
use cobre_case::{Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Settings, Solver, StopRule, Stopping, run};
use serde_json::{Value, json};

/// One stage of 100 and 200 h, a load of 50 MW at bus 0, thermal plants 0 at 10 $/MWh, 1 at 30 $/MWh and, at bus 1 behind
/// line 4 of 60 MW, 2 at 40 $/MWh, 100 MW each. It costs 10 · 50 · 300 = 150,000.
pub fn base() -> CaseFiles {
    let mut files = CaseFiles::default();
    files.json(
        "config.json",
        json!({"training": {"forward_passes": 1,
            "stopping_rules": [{"type": "iteration_limit", "limit": 20}]},
            "modeling": {"inflow_non_negativity": {"method": "none"}}}),
    );
    let hydro = json!({"spillage_cost": 0, "fpha_turbined_cost": 0, "diversion_cost": 0,
        "storage_violation_below_cost": 1e5, "filling_target_violation_cost": 1000,
        "turbined_violation_below_cost": 1000, "outflow_violation_below_cost": 1000,
        "outflow_violation_above_cost": 1000, "generation_violation_below_cost": 1000,
        "evaporation_violation_cost": 1000, "water_withdrawal_violation_cost": 1000});
    files.json(
        "penalties.json",
        json!({"bus": {"deficit_segments": [{"depth_mw": null, "cost": 500}], "excess_cost": 100},
            "line": {"exchange_cost": 0}, "hydro": hydro,
            "non_controllable_source": {"curtailment_cost": 0}}),
    );
    stages(&mut files, 1, "parallel");
    files.json(
        "initial_conditions.json",
        json!({"storage": [], "filling_storage": []}),
    );
    files.json(
        "system/buses.json",
        json!({"buses": [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]}),
    );
    files.json(
        "system/lines.json",
        json!({"lines": [{"id": 4, "name": "L", "source_bus_id": 1, "target_bus_id": 0,
            "capacity": {"direct_mw": 60, "reverse_mw": 60}}]}),
    );
    let thermal = |id: i32, bus: i32, cost: f64| {
        json!({"id": id, "name": format!("T{id}"), "bus_id": bus, "cost_per_mwh": cost,
            "generation": {"min_mw": 0, "max_mw": 100}})
    };
    files.json(
        "system/thermals.json",
        json!({"thermals": [thermal(0, 0, 10.0), thermal(1, 0, 30.0), thermal(2, 1, 40.0)]}),
    );
    files.json("system/hydros.json", json!({"hydros": []}));
    files
}

/// Gives the case so many stages, of January, February and so on.
pub fn stages(files: &mut CaseFiles, count: usize, mode: &str) {
    let stages = (0..count).map(|stage| {
        json!({"id": stage, "start_date": format!("2026-{:02}-01", stage + 1),
            "end_date": format!("2026-{:02}-01", stage + 2), "season_id": stage, "num_scenarios": 1,
            "block_mode": mode, "blocks": [{"id": 0, "name": "b0", "hours": 100},
                {"id": 1, "name": "b1", "hours": 200}]})
    });
    let stages: Vec<Value> = stages.collect();
    files.json(
        "stages.json",
        json!({"policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0},
            "stages": stages}),
    );
    let rows = (0..count).map(|stage| format!("0,{stage},50,0\n"));
    let rows: String = rows.collect();
    files.insert(
        "scenarios/load_seasonal_stats.csv",
        format!("bus_id,stage_id,mean_mw,std_mw\n{rows}"),
    );
}

/// Two stages and two thermal plants, of which the cheap one is committed a stage ahead, after these commitments.
pub fn with_commitments(past: &Value) -> CaseFiles {
    let mut files = base();
    stages(&mut files, 2, "parallel");
    files.json(
        "system/thermals.json",
        json!({"thermals": [
            {"id": 0, "name": "T0", "bus_id": 0, "cost_per_mwh": 10, "generation": {"min_mw": 0, "max_mw": 100},
                "anticipated_config": {"lead_stages": 1}},
            {"id": 1, "name": "T1", "bus_id": 0, "cost_per_mwh": 30, "generation": {"min_mw": 0, "max_mw": 100}}]}),
    );
    files.json(
        "initial_conditions.json",
        json!({"storage": [], "filling_storage": [], "past_anticipated_commitments": past}),
    );
    files
}

/// Hydro plant 0: 70 hm³ of 20 to 120, 1 MW/(m³/s), at most 50 m³/s, no inflow.
pub fn plant() -> Value {
    json!({"id": 0, "name": "H", "bus_id": 0, "downstream_id": null,
        "reservoir": {"min_storage_hm3": 20, "max_storage_hm3": 120},
        "outflow": {"min_outflow_m3s": 0, "max_outflow_m3s": null},
        "generation": {"model": "constant_productivity", "productivity_mw_per_m3s": 1,
            "min_turbined_m3s": 0, "max_turbined_m3s": 50, "min_generation_mw": 0, "max_generation_mw": 50}})
}

/// Adds plants, each with 70 hm³ and no inflow in any of the stages.
pub fn with_plants(files: &mut CaseFiles, plants: &[Value], stages: usize) {
    let ids = plants.iter().map(|plant| &plant["id"]);
    let storage = ids
        .clone()
        .map(|id| json!({"hydro_id": id, "value_hm3": 70}));
    let storage: Vec<Value> = storage.collect();
    let rows = ids.flat_map(|id| (0..stages).map(move |stage| format!("{id},{stage},0,0\n")));
    let rows: String = rows.collect();
    files.json("system/hydros.json", json!({"hydros": plants}));
    files.json(
        "initial_conditions.json",
        json!({"storage": storage, "filling_storage": []}),
    );
    files.insert(
        "scenarios/inflow_seasonal_stats.csv",
        format!("hydro_id,stage_id,mean_m3s,std_m3s\n{rows}"),
    );
}

/// The cost of a case by both solvers, which must agree; what is wrong with it if it does not run.
pub fn cost(files: &CaseFiles) -> Result<f64, String> {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let solved = [Solver::Kernel, Solver::Highs].map(|solver| {
        let case =
            load(directory.path(), &Options::default()).map_err(|error| error.to_string())?;
        let settings = Settings {
            stopping: Stopping::any(vec![StopRule::Iterations(20)]),
            threads: NonZero::new(1).expect("not 0"),
            solver,
            checkpoints: Cadence::Never,
            ..Settings::default()
        };
        let results = run(&LocalBackend, case.problem, &settings, &mut ());
        results
            .map(|results| results.trained.bound)
            .map_err(|error| error.to_string())
    });
    let [kernel, highs] = solved;
    let (kernel, highs) = (kernel?, highs?);
    assert!(
        (kernel - highs).abs() <= 1e-6 * (1.0 + highs.abs()),
        "{kernel} and {highs}"
    );
    Ok(kernel)
}

/// Compares the cost of a case with that found by hand.
pub fn costs(what: &str, files: &CaseFiles, expected: f64) {
    let found = cost(files).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        (found - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
        "{what}: {found} instead of {expected}"
    );
}
