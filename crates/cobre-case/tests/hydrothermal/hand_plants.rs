//! Hydro plants by values found by hand: limits of spilled and diverted flow, productivity from head, hyperplanes by
//! default.

use std::fmt::Write;

use cobre_case::template::CaseFiles;
use serde_json::{Value, json};

use crate::bad_cases::{changed_in, errors};
use crate::hand_base::{base, cost, costs, plant, stages, with_commitments, with_plants};
use crate::inflow_history::months;

/// 150,000 less what so many MWh save at 10 $/MWh.
fn saving(energy: f64) -> f64 {
    150_000.0 - 10.0 * energy
}

/// MWh that 50 hm³, all of plant 0 above its least storage, give at 1 MW/(m³/s).
const ALL: f64 = 50.0 / 0.0036;

fn with(plants: &[Value]) -> CaseFiles {
    let mut files = base();
    with_plants(&mut files, plants, 1);
    files
}

fn bounded(plants: &[Value], columns: &str, rows: &str) -> CaseFiles {
    let mut files = with(plants);
    files.insert(
        "constraints/hydro_bounds.csv",
        format!("hydro_id,stage_id,block_id,{columns}\n{rows}\n"),
    );
    files
}

#[test]
fn limits_of_spilled_and_diverted_flow_hold_where_they_can() {
    costs("free", &with(&[plant()]), saving(ALL));
    let files = bounded(&[plant()], "min_spillage_m3s", "0,0,,10");
    costs("all blocks", &files, saving((50.0 - 10.8) / 0.0036));
    let files = bounded(&[plant()], "min_spillage_m3s", "0,0,,10\n0,0,1,0");
    costs("first block", &files, saving((50.0 - 3.6) / 0.0036));
    // Plant 1 has nothing but what plant 0 turbines, at most 5 m³/s, and spills.
    let (mut upper, mut lower) = (plant(), plant());
    upper["downstream_id"] = json!(1);
    upper["generation"]["max_turbined_m3s"] = json!(5);
    lower["id"] = json!(1);
    lower["name"] = json!("below");
    lower["reservoir"]["min_storage_hm3"] = json!(70);
    let files = bounded(&[upper, lower.clone()], "max_spillage_m3s", "0,0,,10");
    costs("most", &files, saving((5.0 + 15.0) * 300.0));
    let mut diverts = plant();
    diverts["diversion"] = json!({"downstream_id": 1, "max_flow_m3s": 20});
    lower["generation"]["productivity_mw_per_m3s"] = json!(0.5);
    let files = bounded(&[diverts, lower], "min_diversion_m3s", "0,0,,10");
    let expected = saving(0.5 * 10.0 * 300.0 + (50.0 - 10.8) / 0.0036);
    costs("diverted", &files, expected);
}

#[test]
fn a_plant_may_enter_or_leave_after_the_study() {
    for (key, stage, energy) in [
        ("entry_stage_id", 9, 0.0),
        ("exit_stage_id", 9, ALL),
        ("exit_stage_id", 1, ALL),
        ("entry_stage_id", -3, ALL),
    ] {
        let mut own = plant();
        own[key] = json!(stage);
        costs(&format!("{key} {stage}"), &with(&[own]), saving(energy));
    }
    // The targets of a filling follow from the stages up to the entry.
    let mut filled = plant();
    filled["filling"] = json!({"start_stage_id": 0});
    let targets = "hydros[0].entry_stage_id: filling has its targets from the stages before it";
    for (entry, errors_there) in [(1, 0), (2, 1)] {
        filled["entry_stage_id"] = json!(entry);
        let found = errors(&with(&[filled.clone()]));
        let said = found.iter().filter(|error| error.contains(targets));
        assert_eq!(said.count(), errors_there, "{found:#?}");
    }
}

/// The plant with groups of units in place of a bus: of each least and most turbined flow, and the bus.
fn grouped(groups: &[[f64; 3]]) -> Value {
    let groups = groups.iter().enumerate().map(|(id, [least, most, bus])| {
        json!({"id": id, "name": format!("u{id}"), "bus_id": *bus as i32, "min_turbined_m3s": least,
            "max_turbined_m3s": most, "min_generation_mw": 0, "max_generation_mw": most})
    });
    let mut own = plant();
    own["unit_groups"] = groups.collect();
    own.as_object_mut().expect("an object").remove("bus_id");
    own
}

const GROUP_BOUNDS: &str = "constraints/hydro_unit_group_bounds.csv";

#[test]
fn one_group_of_units_has_the_stricter_limits_and_misses_them_once() {
    // No water may be used, so that 5 m³/s are missed in 300 h.
    let mut own = grouped(&[[5.0, 50.0, 0.0]]);
    own["generation"]["min_turbined_m3s"] = json!(5);
    own["reservoir"]["min_storage_hm3"] = json!(70);
    own["penalties"] = json!({"storage_violation_below_cost": 1e8});
    let missed = 150_000.0 + 5.0 * 300.0 * 1000.0;
    costs("without a table", &with(&[own.clone()]), missed);
    let mut files = with(&[own]);
    let columns = "hydro_id,hydro_unit_group_id,stage_id,block_id,max_turbined_m3s\n";
    files.insert(GROUP_BOUNDS, format!("{columns}0,0,0,,40\n"));
    costs("with a table", &files, missed);
    let mut files = with(&[grouped(&[[0.0, 50.0, 0.0]])]);
    files.insert(GROUP_BOUNDS, format!("{columns}0,0,0,,3\n"));
    costs("stricter", &files, saving(3.0 * 300.0));
}

#[test]
fn limits_of_a_plant_are_those_of_its_groups_together_if_it_has_none() {
    for (groups, energy, bounded) in [
        (
            &[[0.0, 30.0, 0.0], [0.0, 4.0, 1.0]][..],
            34.0 * 300.0,
            29.0 * 300.0,
        ),
        (&[[0.0, 30.0, 0.0], [0.0, 20.0, 1.0]], ALL, 45.0 * 300.0),
        (&[[0.0, 30.0, 0.0]], 30.0 * 300.0, 25.0 * 300.0),
    ] {
        let mut own = grouped(groups);
        own["generation"] = json!({"model": "constant_productivity", "productivity_mw_per_m3s": 1});
        let mut files = with(&[own]);
        costs("groups", &files, saving(energy));
        let columns = "hydro_id,hydro_unit_group_id,stage_id,max_turbined_m3s\n";
        files.insert(GROUP_BOUNDS, format!("{columns}0,0,0,25\n"));
        costs("with a table", &files, saving(bounded));
    }
}

#[test]
fn a_limit_of_spillage_that_cannot_be_kept_is_missed_and_said() {
    // 20 hm³ must leave, and no turbine takes them.
    let mut idle = plant();
    idle["generation"]["max_turbined_m3s"] = json!(0);
    let files = bounded(&[idle], "max_storage_hm3,max_spillage_m3s", "0,0,,50,10");
    let found = cost(&files).expect("it has a solution");
    assert!(found > 150_000.0 + 1e-3, "{found}");
    for (columns, row, said) in [
        (
            "min_spillage_m3s,max_spillage_m3s",
            "0,0,,5,4",
            "min_spillage_m3s: 5 is above the most, 4",
        ),
        (
            "min_diversion_m3s",
            "0,0,,5",
            "min_diversion_m3s: 5 is above the most, 0",
        ),
        (
            "filling_min_rate_m3s",
            "0,0,,5",
            "filling_min_rate_m3s: the plant has no filling",
        ),
        (
            "filling_min_rate_m3s",
            "0,0,1,5",
            "filling_min_rate_m3s is one value of a stage",
        ),
    ] {
        let found = errors(&bounded(&[plant()], columns, row));
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
}

/// Plant 0 without a productivity: its level is 300 m + storage / 2, its tailrace 300 m + outflow / 10.
fn by_head() -> Value {
    let mut plant = plant();
    plant["generation"]["productivity_mw_per_m3s"] = Value::Null;
    plant["tailrace"] = json!({"type": "polynomial", "coefficients": [300, 0.1]});
    plant
}

fn geometry(files: &mut CaseFiles) {
    files.insert(
        "system/hydro_geometry.csv",
        "hydro_id,volume_hm3,height_m,area_km2\n0,0,300,1\n0,200,400,2\n",
    );
}

#[test]
fn a_specific_productivity_times_the_head_at_the_reference_is_the_productivity() {
    let mut given = by_head();
    given["specific_productivity_mw_per_m3s_per_m"] = json!(0.02);
    let mut files = with(&[given.clone()]);
    geometry(&mut files);
    // At 20 + 0.65 · 100 hm³ and 50 m³/s: 342.5 − 305 m.
    costs("of the plant", &files, saving(0.02 * 37.5 * ALL));
    let reference = |volume: Value| {
        json!({"production_models": [{"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [
            {"start_stage_id": 0, "model": "constant_productivity", "reference_volume": volume}]}]})
    };
    let models = "system/hydro_production_models.json";
    files.json(models, reference(json!({"volume_hm3": 100})));
    costs("at 100 hm³", &files, saving(0.02 * 45.0 * ALL));
    files.json(models, reference(json!({"percentile": 0.3})));
    costs("at 50 hm³", &files, saving(0.02 * 20.0 * ALL));
    let columns = "hydro_id,stage_id,equivalent_productivity_mw_per_m3s,reference_outflow_m3s,\
                   specific_productivity_mw_per_m3s_per_m";
    for (row, productivity) in [
        ("0,,,100,", 0.02 * 15.0),
        ("0,0,,,0.03", 0.03 * 20.0),
        ("0,0,0.4,100,0.03", 0.4),
        ("0,,0.4,,\n0,0,0.5,,", 0.5),
        ("0,0,0,,", 0.0),
    ] {
        let table = format!("{columns}\n{row}\n");
        files.insert("system/hydro_energy_productivity.csv", table);
        costs(row, &files, saving(productivity * ALL));
    }
    files.remove("system/hydro_energy_productivity.csv");
    files.json(
        models,
        reference(json!({"percentile": 0.3, "volume_hm3": 2})),
    );
    let found = errors(&files);
    let said = "stage_ranges[0].reference_volume: one of volume_hm3 and percentile is expected";
    assert!(found[0].contains(said), "{found:#?}");
    // A curve whose points fall is an error, and no panic.
    files.json(models, reference(json!({"percentile": 0.3})));
    files.insert(
        "system/hydro_geometry.csv",
        "hydro_id,volume_hm3,height_m,area_km2\n0,200,300,1\n0,0,400,2\n",
    );
    let found = errors(&files);
    assert!(
        found[0].contains("volume_hm3: 0 is not above the 200"),
        "{found:#?}"
    );
    // Without a level curve there is no head.
    let found = errors(&with(&[given]));
    assert!(
        found[0].contains("generation.productivity_mw_per_m3s: the key is missing"),
        "{found:#?}"
    );
}

#[test]
fn hyperplanes_without_a_source_are_those_of_the_table() {
    let mut own = by_head();
    own["generation"]["model"] = json!("fpha");
    for entry in [
        json!({"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [
            {"start_stage_id": 0, "model": "fpha"}]}),
        json!({"hydro_id": 0, "selection_mode": "seasonal", "default_model": "fpha", "seasons": []}),
        json!({"hydro_id": 0, "selection_mode": "seasonal", "default_model": "constant_productivity",
            "seasons": [{"season_id": 0, "model": "fpha"}]}),
    ] {
        let mut files = with(&[own.clone()]);
        files.json(
            "system/hydro_production_models.json",
            json!({"production_models": [entry]}),
        );
        files.insert(
            "system/fpha_hyperplanes.csv",
            "hydro_id,stage_id,plane_id,gamma_0,gamma_v,gamma_q,gamma_s\n0,,0,0,0,0.8,0\n",
        );
        costs(&entry.to_string(), &files, saving(0.8 * ALL));
    }
}

#[test]
fn a_fit_without_a_window_covers_the_level_curve() {
    let with_window = |window: Value| {
        let mut own = by_head();
        own["generation"]["model"] = json!("fpha");
        let mut files = with(&[own]);
        stages(&mut files, 1, "parallel");
        geometry(&mut files);
        files.json(
            "system/hydro_production_models.json",
            json!({"production_models": [{"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [
                {"start_stage_id": 0, "model": "fpha", "fpha_config":
                    {"source": "computed", "fitting_window": window}}]}]}),
        );
        cost(&files).expect("it runs")
    };
    let curve = with_window(json!({"volume_min_hm3": 0, "volume_max_hm3": 200}));
    let storage = with_window(json!({"volume_min_percentile": 0, "volume_max_percentile": 1}));
    assert_eq!(with_window(Value::Null).to_bits(), curve.to_bits());
    assert!(
        (storage / curve - 1.0).abs() > 1e-4,
        "{storage} and {curve}"
    );
}

#[test]
fn a_deficit_that_constraints_make_dear_does_not_make_energy_that_hyperplanes_do_not_allow() {
    let mut own = by_head();
    own["generation"]["model"] = json!("fpha");
    own["generation"]["max_turbined_m3s"] = json!(40);
    let mut files = with(&[own]);
    files.json("system/thermals.json", json!({"thermals": []}));
    files.json(
        "system/hydro_production_models.json",
        json!({"production_models": [{"hydro_id": 0, "selection_mode": "stage_ranges",
            "stage_ranges": [{"start_stage_id": 0, "model": "fpha"}]}]}),
    );
    files.insert(
        "system/fpha_hyperplanes.csv",
        "hydro_id,stage_id,plane_id,gamma_0,gamma_v,gamma_q,gamma_s\n0,,0,-1,0,0.8,0\n",
    );
    files.json(
        "constraints/generic_constraints.json",
        json!({"constraints": [{"id": 0, "name": "served", "sense": "<=",
            "expression": "bus_deficit(0) + bus_deficit(1)",
            "slack": {"enabled": true, "penalty": 2000}}]}),
    );
    files.insert(
        "constraints/generic_constraint_bounds.csv",
        "constraint_id,stage_id,block_id,bound\n0,0,,0\n",
    );
    // 0.8 · 40 − 1 of 50 MW are there; the rest costs 500 + 2,000 $/MWh.
    costs("deficit", &files, 2500.0 * 19.0 * 300.0);
}

#[test]
fn the_slope_of_spillage_covers_twice_the_mean_of_the_observed_inflows() {
    let slopes = |history: &[f64]| -> Vec<f64> {
        let mut own = by_head();
        own["generation"]["model"] = json!("fpha");
        own["tailrace"] = json!({"type": "polynomial", "coefficients": [300, 0.01, 0.001]});
        let mut files = with(&[own]);
        geometry(&mut files);
        files.json(
            "system/hydro_production_models.json",
            json!({"production_models": [{"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [
                {"start_stage_id": 0, "model": "fpha", "fpha_config": {"source": "computed"}}]}]}),
        );
        if let &[odd, even] = history {
            let mut text = "hydro_id,date,value_m3s\n".to_owned();
            for year in 2000..2010 {
                for month in 1..=12 {
                    let value = if year % 2 == 0 { even } else { odd };
                    writeln!(text, "0,{year}-{month:02}-01,{value}").expect("memory");
                }
            }
            files.insert("scenarios/inflow_history.csv", text);
            let no_lags = json!({"max_order": 0});
            files = changed_in(files, "config.json", "/estimation", &no_lags);
            files = changed_in(files, "stages.json", "/season_definitions", &months());
        }
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let fits = cobre_case::fits(directory.path()).expect("it is sound");
        fits[0].planes.iter().map(|plane| plane.gamma_s).collect()
    };
    // Without a history it covers twice the largest turbined flow, 50 m³/s.
    assert_eq!(slopes(&[]), slopes(&[20.0, 80.0]));
    let wider = slopes(&[100.0, 60.0]);
    let pairs = wider.iter().zip(slopes(&[]));
    assert!(
        pairs.clone().any(|(wide, narrow)| wide < &narrow),
        "{wider:?}"
    );
}

#[test]
fn a_table_of_tailraces_takes_the_place_of_that_of_the_plant() {
    let columns = "hydro_id,family_id,downstream_reference_level_m,segment_id,outflow_min_m3s,outflow_max_m3s,\
                   coefficient_0,coefficient_1,coefficient_2,coefficient_3,coefficient_4";
    let mut given = by_head();
    given["specific_productivity_mw_per_m3s_per_m"] = json!(0.02);
    let mut below = plant();
    below["id"] = json!(1);
    below["name"] = json!("below");
    below["reservoir"]["min_storage_hm3"] = json!(70);
    below["generation"]["max_turbined_m3s"] = json!(0);
    given["downstream_id"] = json!(1);
    let mut files = with(&[given, below]);
    // The level of plant 0 at 85 hm³ is 342.5 m, that of plant 1 at 70 + 0.65 · 50 hm³ 305.125 m.
    files.insert(
        "system/hydro_geometry.csv",
        "hydro_id,volume_hm3,height_m,area_km2\n0,0,300,1\n0,200,400,2\n1,0,300,1\n1,200,310,2\n",
    );
    let whole = "0,3,,0,0,40,301,0,0,0,0\n0,3,,1,40,90,300,0.02,0.001,0,0";
    let first = "0,1,300,0,0,90,300,0,0,0,0";
    let second = "0,2,310,0,0,90,310,0,0,0,0";
    for (rows, head) in [
        // 300 + 0.02 · 50 + 0.001 · 50² m.
        (whole.to_owned(), 342.5 - 303.5),
        // Beyond the last piece its end counts.
        ("0,3,,0,0,40,301,0.1,0,0,0".to_owned(), 342.5 - 305.0),
        (format!("{second}\n{first}"), 342.5 - 305.125),
        (first.to_owned(), 42.5),
    ] {
        files.insert("system/tailrace_curves.csv", format!("{columns}\n{rows}\n"));
        costs(&rows, &files, saving(0.02 * head * ALL));
    }
    for (rows, said) in [
        (
            format!("{first}\n{first}"),
            "row 2: there is a piece 0 of family 1 of hydro plant 0 already",
        ),
        (
            "0,1,,0,9,3,1,0,0,0,0".to_owned(),
            "outflow_min_m3s, 9, is above outflow_max_m3s, 3",
        ),
        (
            "7,1,,0,0,3,1,0,0,0,0".to_owned(),
            "row 1: there is no hydro plant 7",
        ),
        (
            format!("{first}\n0,2,,0,0,90,310,0,0,0,0"),
            "several families need downstream_reference_level_m",
        ),
    ] {
        files.insert("system/tailrace_curves.csv", format!("{columns}\n{rows}\n"));
        let found = errors(&files);
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
}

#[test]
fn past_commitments_may_be_given_by_days() {
    let days = |from: &str, to: &str, value: f64| json!({"thermal_id": 0, "start_date": from, "end_date": to, "value_mw": value});
    // 31 days at 40 MW on average, which are paid; 10 MW at 30 $/MWh; the next stage costs 150,000.
    let first = days("2025-12-01", "2026-01-11", 9.0);
    let second = days(
        "2026-01-11",
        "2026-02-11",
        (40.0 * 31.0 - 9.0 * 10.0) / 21.0,
    );
    let files = with_commitments(&json!([first, second]));
    costs("days", &files, 10.0 * 30.0 * 300.0 + 150_000.0);
    for (past, said) in [
        (
            json!([first]),
            "stage 0 has 31 days, and commitments of 10 of them",
        ),
        (
            json!([days("2026-02-01", "2026-01-01", 5.0)]),
            "end_date: it is not after start_date, 2026-02-01",
        ),
        (
            json!([{"thermal_id": 0, "value_mw": 5}]),
            "values_mw is expected, or start_date, end_date and value_mw",
        ),
        (
            json!([first, {"thermal_id": 0, "values_mw": [1]}]),
            "thermal plant 0 has an entry already",
        ),
    ] {
        let found = errors(&with_commitments(&past));
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
}
