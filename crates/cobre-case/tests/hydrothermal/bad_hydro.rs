//! Production functions, curves and the ways of water with something wrong in them.

use cobre_case::template::{CaseFiles, TemplateColumn};
use serde_json::{Value, json};

use crate::bad_cases::{errors, sound, text, warnings};

const MODELS: &str = "system/hydro_production_models.json";
const PLANES: &str = "system/fpha_hyperplanes.parquet";
const GEOMETRY: &str = "system/hydro_geometry.parquet";

fn said(found: &[String], part: &str) {
    assert!(
        found.iter().any(|error| error.contains(part)),
        "{part}: {found:#?}"
    );
}

/// The sound case with one production model of the first plant.
fn with_model(model: &Value) -> CaseFiles {
    let mut files = sound();
    files.json(MODELS, json!({"production_models": [model]}));
    files
}

fn ranges(range: &Value) -> Value {
    json!({"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [range]})
}

/// A table of hyperplanes of the first plant.
fn planes(files: &mut CaseFiles, rows: &[[f64; 4]], kappa: f64) {
    let of = |place: usize| TemplateColumn::Numbers(rows.iter().map(|row| row[place]).collect());
    files.table(
        PLANES,
        &[
            ("hydro_id", TemplateColumn::Ids(vec![0; rows.len()])),
            (
                "plane_id",
                TemplateColumn::of_places((0..rows.len()).collect()),
            ),
            ("gamma_0", of(0)),
            ("gamma_v", of(1)),
            ("gamma_q", of(2)),
            ("gamma_s", of(3)),
            ("kappa", TemplateColumn::Numbers(vec![kappa; rows.len()])),
        ],
    );
}

/// A table of geometry of the first plant.
fn geometry(files: &mut CaseFiles, rows: &[[f64; 3]]) {
    let of = |place: usize| TemplateColumn::Numbers(rows.iter().map(|row| row[place]).collect());
    files.table(
        GEOMETRY,
        &[
            ("hydro_id", TemplateColumn::Ids(vec![0; rows.len()])),
            ("volume_hm3", of(0)),
            ("height_m", of(1)),
            ("area_km2", of(2)),
        ],
    );
}

#[test]
fn wrong_production_models_are_named_with_their_place() {
    let whole = |more: Value| {
        let mut range = json!({"start_stage_id": 0, "end_stage_id": null, "model": "fpha"});
        for (key, value) in more.as_object().expect("an object") {
            range[key] = value.clone();
        }
        ranges(&range)
    };
    let given = json!({"source": "precomputed"});
    for (model, part) in [
        (
            whole(json!({})),
            "hydro plant 0 (upper lake): there is no plane for stage 0, whose model is precomputed fpha",
        ),
        (
            whole(json!({"fpha_config": given, "productivity_override": 1.0})),
            "stage_ranges[0].productivity_override: it does not go with fpha",
        ),
        (
            whole(json!({"model": "constant_productivity", "fpha_config": given})),
            "stage_ranges[0].fpha_config: it does not go with this model",
        ),
        (
            whole(json!({"start_stage_id": 5, "end_stage_id": 3, "fpha_config": given})),
            "stage_ranges[0].end_stage_id: it is before start_stage_id, 5",
        ),
        (
            whole(json!({"model": "constant_productivity", "productivity_override": 0})),
            "productivity_override: a number above 0 is expected, 0 is found",
        ),
        (
            whole(
                json!({"fpha_config": {"source": "computed", "volume_discretization_points": 1}}),
            ),
            "fpha_config.volume_discretization_points: a whole number from 2 to 30 is expected, 1 is found",
        ),
        (
            whole(json!({"fpha_config": {"source": "computed"}})),
            "hydro_geometry.parquet: hydro plant 0 (upper lake): there is no row, which computed hyperplanes need",
        ),
        (
            whole(json!({"fpha_config": given})),
            "fpha_hyperplanes.parquet: hydro plant 0 (upper lake): there is no plane for stage 0",
        ),
        (
            json!({"hydro_id": 7, "selection_mode": "stage_ranges", "stage_ranges": []}),
            "production_models[0].hydro_id: there is no hydro plant 7",
        ),
        (
            json!({"hydro_id": 0, "selection_mode": "seasonal", "default_model": "fpha", "seasons": []}),
            "hydro plant 0 (upper lake): there is no plane for stage 0, whose model is precomputed fpha",
        ),
        (
            json!({"hydro_id": 0, "selection_mode": "seasonal", "stage_ranges": []}),
            "production_models[0].stage_ranges: it does not go with this selection_mode",
        ),
        (
            json!({"hydro_id": 0, "selection_mode": "seasonal", "default_model": "constant_productivity", "seasons": [
                {"season_id": 1, "model": "linearized_head"}, {"season_id": 1, "model": "linearized_head"},
            ]}),
            "seasons[1].season_id: season 1 has a model already",
        ),
    ] {
        said(&errors(&with_model(&model)), part);
    }
}

#[test]
fn wrong_hyperplanes_are_named() {
    let model = ranges(&json!({
        "start_stage_id": 0, "end_stage_id": null, "model": "fpha", "fpha_config": {"source": "precomputed"},
    }));
    for (row, kappa, part) in [
        (
            [0.0, -0.1, 1.0, 0.0],
            1.0,
            "row 1: gamma_v: a number that is at least 0 is expected, -0.1 is found",
        ),
        (
            [0.0, 0.1, 0.0, 0.0],
            1.0,
            "row 1: gamma_q: a number above 0 is expected, 0.0 is found",
        ),
        (
            [0.0, 0.1, 1.0, 0.2],
            1.0,
            "row 1: gamma_s: a number that is at most 0 is expected, 0.2 is found",
        ),
        (
            [0.0, 0.1, 1.0, 0.0],
            1.5,
            "row 1: kappa: a number above 0 and at most 1 is expected, 1.5 is found",
        ),
    ] {
        let mut files = with_model(&model);
        planes(&mut files, &[row], kappa);
        said(&errors(&files), part);
    }
    let mut files = with_model(&model);
    planes(&mut files, &[[20.0, 0.01, 1.0, 0.0]], 1.0);
    said(
        &warnings(&files),
        "the hyperplanes of stage 0 give 29 MW at the largest storage without any flow",
    );
    let mut files = sound();
    planes(&mut files, &[[0.0, 0.01, 1.0, 0.0]], 1.0);
    said(&warnings(&files), "no stage uses its hyperplanes");
}

#[test]
fn wrong_curves_are_named() {
    for (rows, part) in [
        (
            vec![[0.0, 300.0, 1.0], [0.0, 310.0, 2.0]],
            "row 2: volume_hm3: 0 is not above the 0 of the row",
        ),
        (
            vec![[0.0, 300.0, 1.0], [9.0, 290.0, 2.0]],
            "row 2: height_m: 290 is below the 300",
        ),
        (
            vec![[0.0, 300.0, 3.0], [9.0, 310.0, 2.0]],
            "row 2: area_km2: 2 is below the 3",
        ),
    ] {
        let mut files = sound();
        geometry(&mut files, &rows);
        said(&errors(&files), part);
    }
    let mut files = sound();
    geometry(&mut files, &[[100.0, 300.0, 1.0], [500.0, 310.0, 2.0]]);
    said(
        &warnings(&files),
        "level and area are given from 100 to 500 hm³, but storage goes from 0 to 900 hm³",
    );
}

#[test]
fn wrong_tailraces_losses_and_windows_are_named() {
    let computed = |window: Value| {
        ranges(&json!({
            "start_stage_id": 0, "end_stage_id": null, "model": "fpha",
            "fpha_config": {"source": "computed", "fitting_window": window},
        }))
    };
    let file = |model: &Value, key: &str, value: Value| {
        let mut files = with_model(model);
        geometry(&mut files, &[[0.0, 300.0, 1.0], [900.0, 340.0, 2.0]]);
        let mut hydros = text(&files, "system/hydros.json");
        hydros["hydros"][0][key] = value;
        files.insert("system/hydros.json", hydros.to_string());
        files
    };
    let plain = computed(Value::Null);
    for (key, value, part) in [
        (
            "tailrace",
            json!({"type": "polynomial"}),
            "tailrace.coefficients: at least one coefficient",
        ),
        (
            "tailrace",
            json!({"type": "polynomial", "coefficients": [1.0], "points": []}),
            "tailrace.points: it does not go with this type",
        ),
        (
            "tailrace",
            json!({"type": "piecewise", "points": [{"outflow_m3s": 5, "height_m": 1}, {"outflow_m3s": 5, "height_m": 2}]}),
            "tailrace.points[1].outflow_m3s: 5 is not above the 5 before it",
        ),
        (
            "hydraulic_losses",
            json!({"type": "factor", "value_m": 1.0}),
            "hydraulic_losses.value: the key is missing",
        ),
        (
            "efficiency",
            json!({"type": "constant", "value": 1.2}),
            "efficiency.value: a number from 0 to 1 is expected",
        ),
    ] {
        said(&errors(&file(&plain, key, value)), part);
    }
    let both = computed(json!({"volume_min_hm3": 5.0, "volume_min_percentile": 0.1}));
    let loss = json!({"type": "factor", "value": 0.02});
    said(
        &errors(&file(&both, "hydraulic_losses", loss.clone())),
        "given both as a storage and as a percentile",
    );
    let empty = computed(json!({"volume_min_hm3": 500.0, "volume_max_hm3": 100.0}));
    said(
        &errors(&file(&empty, "hydraulic_losses", loss)),
        "the window begins at 500 hm³ and ends at 100 hm³",
    );
}

#[test]
fn bounds_of_what_a_plant_lacks_are_named() {
    for (column, part) in [
        (
            "max_diversion_m3s",
            "max_diversion_m3s: the plant has no diversion",
        ),
        (
            "filling_inflow_m3s",
            "filling_inflow_m3s: the plant has no filling",
        ),
    ] {
        let mut files = sound();
        files.table(
            "constraints/hydro_bounds.parquet",
            &[
                ("hydro_id", TemplateColumn::Ids(vec![0])),
                ("stage_id", TemplateColumn::Ids(vec![2])),
                (column, TemplateColumn::Numbers(vec![3.0])),
            ],
        );
        said(&errors(&files), part);
    }
}

#[test]
fn releases_that_are_missing_are_suspicious() {
    let mut files = sound();
    let mut hydros = text(&files, "system/hydros.json");
    hydros["hydros"][0]["travel_time_hours"] = json!(48);
    files.insert("system/hydros.json", hydros.to_string());
    said(
        &warnings(&files),
        "its water travels 48 h, and releases of only 0 h before the first stage are given",
    );
}

#[test]
fn productivities_of_a_table_take_the_place_of_others() {
    let table = |rows: &[(i32, f64)]| {
        let mut files = with_model(&ranges(&json!({
            "start_stage_id": 0, "end_stage_id": 0, "model": "constant_productivity", "productivity_override": 0.5,
        })));
        files.table(
            "system/hydro_energy_productivity.parquet",
            &[
                ("hydro_id", TemplateColumn::Ids(vec![0; rows.len()])),
                (
                    "stage_id",
                    TemplateColumn::Ids(rows.iter().map(|row| row.0).collect()),
                ),
                (
                    "equivalent_productivity_mw_per_m3s",
                    TemplateColumn::Numbers(rows.iter().map(|row| row.1).collect()),
                ),
            ],
        );
        files
    };
    said(
        &errors(&table(&[(0, 0.77)])),
        "hydro_energy_productivity.parquet has one for stage 0 as well",
    );
    said(
        &errors(&table(&[(1, 0.77), (1, 0.8)])),
        "row 2: hydro plant 0 has such a row already",
    );
    said(
        &errors(&table(&[(44, 0.77)])),
        "row 1: there is no stage 44",
    );
    let directory = tempfile::tempdir().expect("a directory");
    table(&[(1, 0.77)])
        .write(directory.path())
        .expect("it can be written");
    let case =
        cobre_case::load(directory.path(), &cobre_case::Options::default()).expect("it is sound");
    // The factor of turbined flow in the balance of the bus, by stage.
    let factor = |stage: usize| {
        let template = case.problem.template(stage);
        let column = template
            .columns
            .iter()
            .position(|own| own.name.starts_with("turbined.upper_lake"));
        let row = template
            .rows
            .iter()
            .find(|row| row.name.starts_with("energy."));
        let terms = &row.expect("it has a bus").terms;
        terms
            .iter()
            .find(|term| Some(term.0) == column)
            .expect("it feeds it")
            .1
    };
    assert_eq!([factor(0), factor(1)], [0.5, 0.77]);
    assert!((factor(2) - 0.77).abs() > 1e-6);
}
