//! Cases in the form of the other release of the format: the same problem, there and back.

use std::path::Path;

use cobre_case::template::{CaseFiles, TEMPLATES, Template, TemplateColumn};
use cobre_case::{Options, Release, load, migrate};
use serde_json::json;

use crate::bad_cases::{changed_in, sound};
use crate::hand_base::{base, plant, stages, with_plants};
use crate::inflow_history::{months, with_history};

const INITIAL: &str = "initial_conditions.json";

/// All that a problem is, in words.
fn identity(case: &Path) -> String {
    let case = load(case, &Options::default()).expect("it is sound");
    let problem = case.problem;
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        problem.states,
        problem.templates,
        problem.nodes,
        problem.graph,
        problem.values,
        case.settings
    )
}

/// Migrates a case there and back; false if the other release has no place for something in it.
fn there_and_back(case: &Path) -> bool {
    let scratch = tempfile::tempdir().expect("a directory");
    let [there, back] = ["there", "back"].map(|name| scratch.path().join(name));
    let newer = migrate(case).expect("it is sound");
    assert_eq!((newer.from, newer.to), (Release::Older, Release::Newer));
    if !newer.lost.is_empty() {
        println!("{}: {:?}", case.display(), newer.lost);
        return false;
    }
    newer.files.write(&there).expect("it can be written");
    let stages = std::fs::read_to_string(there.join("stages.json")).expect("it is there");
    assert!(stages.contains("num_openings") && !stages.contains("num_scenarios"));
    let hydros = std::fs::read_to_string(there.join("system/hydros.json")).expect("it is there");
    assert!(!hydros.contains("productivity_mw_per_m3s"), "{hydros}");
    let expected = identity(case);
    assert!(identity(&there) == expected, "{} as 0.18", case.display());
    let older = migrate(&there).expect("it is sound");
    assert_eq!((older.from, older.to), (Release::Newer, Release::Older));
    assert_eq!(older.lost, Vec::<String>::new());
    older.files.write(&back).expect("it can be written");
    let stages = std::fs::read_to_string(back.join("stages.json")).expect("it is there");
    assert!(stages.contains("num_scenarios") && !stages.contains("num_openings"));
    assert!(
        identity(&back) == expected,
        "{} there and back",
        case.display()
    );
    true
}

#[test]
fn templates_are_the_same_problem_there_and_back() {
    let mut same = 0;
    for template in TEMPLATES.iter().filter(|template| template.name != "large") {
        let directory = tempfile::tempdir().expect("a directory");
        template
            .files()
            .write(directory.path())
            .expect("it can be written");
        same += usize::from(there_and_back(directory.path()));
    }
    assert!(same >= 1, "{same}");
}

#[test]
fn stages_in_no_range_and_things_that_enter_after_the_end_stay_what_they_are() {
    let mut files = base();
    stages(&mut files, 3, "parallel");
    with_plants(&mut files, &[plant()], 3);
    let range = json!({"start_stage_id": 1, "end_stage_id": 1, "model": "linearized_head", "productivity_override": 0.5});
    files.json(
        "system/hydro_production_models.json",
        json!({"production_models": [
            {"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [range]}]}),
    );
    for (entry, exit) in [(3, None), (9, None), (2, Some(7))] {
        let pointer = "/thermals/0/entry_stage_id";
        let later = changed_in(
            files.clone(),
            "system/thermals.json",
            pointer,
            &json!(entry),
        );
        let pointer = "/thermals/0/exit_stage_id";
        let later = changed_in(later, "system/thermals.json", pointer, &json!(exit));
        let directory = tempfile::tempdir().expect("a directory");
        later.write(directory.path()).expect("it can be written");
        assert!(there_and_back(directory.path()), "{entry}");
    }
}

#[test]
fn plants_beside_one_with_bounded_groups_of_units_stay_what_they_are() {
    let mut files = base();
    let (mut own, mut other) = (plant(), plant());
    own.as_object_mut().expect("an object").remove("bus_id");
    own["unit_groups"] = json!([
        {"id": 0, "name": "a", "bus_id": 0, "max_turbined_m3s": 30, "max_generation_mw": 30},
        {"id": 1, "name": "b", "bus_id": 1, "max_turbined_m3s": 30, "max_generation_mw": 30}]);
    other["id"] = json!(1);
    other["name"] = json!("other");
    with_plants(&mut files, &[own, other], 1);
    files.insert(
        "constraints/hydro_unit_group_bounds.csv",
        "hydro_id,hydro_unit_group_id,stage_id,max_turbined_m3s\n0,1,0,10\n".to_owned(),
    );
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    assert!(there_and_back(directory.path()));
}

#[test]
fn reference_cases_are_the_same_problem_there_and_back() {
    let Some(directory) = crate::reference_cases::reference() else {
        println!("skipped: no reference data");
        return;
    };
    let mut same = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
        if load(&entry.path(), &Options::default()).is_ok() && there_and_back(&entry.path()) {
            same.push(entry.file_name());
        }
    }
    println!("{same:?}");
    assert!(same.len() >= 26, "{same:?}");
}

#[test]
fn what_another_release_has_no_place_for_is_said() {
    let lost = |files: &CaseFiles| {
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        migrate(directory.path())
            .expect("it is sound")
            .lost
            .join("\n")
    };
    let found = lost(&with_coefficients(0.9));
    assert!(
        found.contains("residual_std_ratio 0.9 of plant 0, stage 0: 0.18 derives 0.8"),
        "{found}"
    );
    assert!(!found.contains("past_inflows"), "{found}");
    let past = json!([{"hydro_id": 0, "values_m3s": [1.0]}]);
    let estimated = with_history(40);
    let estimated = changed_in(estimated, INITIAL, "/past_inflows", &past);
    let found = lost(&estimated);
    assert!(
        found.contains("past_inflows of plant 0") && found.contains("model is estimated"),
        "{found}"
    );
}

#[test]
fn what_only_this_format_has_is_said() {
    let lost = |name: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let template = Template::find(name).expect("it is there");
        template
            .files()
            .write(directory.path())
            .expect("it can be written");
        let migrated = migrate(directory.path()).expect("it is sound");
        migrated.lost.join("\n")
    };
    let found = lost("wet-and-dry");
    assert!(
        found.contains("stages.json: policy_graph.nodes: regimes of inflows"),
        "{found}"
    );
    assert!(
        found.contains("scenarios/inflow_regimes.parquet: "),
        "{found}"
    );
    let found = lost("brazil-like");
    assert!(found.contains("system/batteries.json: "), "{found}");
    let found = lost("five-years");
    assert!(
        found.contains("system/terminal_water_values.parquet: "),
        "{found}"
    );
    let rules = json!([{"type": "first_stage", "iterations": 5, "tolerance": 0.1}]);
    let files = changed_in(base(), "config.json", "/training/stopping_rules", &rules);
    let files = changed_in(
        files,
        "config.json",
        "/upper_bound_evaluation",
        &json!({"enabled": true}),
    );
    let losses = "/lines/0/losses_percent";
    let files = changed_in(files, "system/lines.json", losses, &json!(3.0));
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let found = migrate(directory.path()).expect("it is sound").lost;
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn gaps_and_enumerated_paths_are_the_same_there_and_back() {
    let mut files = base();
    stages(&mut files, 3, "parallel");
    let rules = json!([{"type": "gap", "tolerance": 0.02, "absolute_tolerance": 500}, {"type": "gap", "tolerance": 0.01}]);
    let training = json!({"selection": {"method": "enumerated"}, "stopping_rules": rules});
    let files = changed_in(files, "config.json", "/training", &training);
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    assert!(there_and_back(directory.path()));
}

/// The cascade with one lag of 0.6, and this residual ratio.
fn with_coefficients(ratio: f64) -> CaseFiles {
    let (mut files, rows) = (sound(), 24);
    let column = |value: f64| TemplateColumn::Numbers(vec![value; rows]);
    let plants = (0..rows).map(|row| row / 12).collect();
    let stages = (0..rows).map(|row| row % 12).collect();
    let columns = [
        ("hydro_id", TemplateColumn::of_places(plants)),
        ("stage_id", TemplateColumn::of_places(stages)),
        ("lag", TemplateColumn::of_places(vec![1; rows])),
        ("coefficient", column(0.6)),
        ("residual_std_ratio", column(ratio)),
    ];
    files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
    files
}

#[test]
fn past_inflows_become_observations_with_and_without_seasons() {
    for seasons in [None, Some(months())] {
        let files = with_coefficients(0.8);
        let past = json!([
            {"hydro_id": 0, "values_m3s": [31.5]}, {"hydro_id": 1, "values_m3s": [12.25]}
        ]);
        let mut files = changed_in(files, INITIAL, "/past_inflows", &past);
        if let Some(seasons) = &seasons {
            files = changed_in(files, "stages.json", "/season_definitions", seasons);
        }
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        assert!(there_and_back(directory.path()), "{seasons:?}");
    }
}

#[test]
fn residual_ratios_that_a_table_leaves_out_are_derived() {
    let template = TEMPLATES.iter().find(|template| template.name == "cascade");
    let files = template.expect("it is there").files();
    let inflows = |ratio: Option<f64>| {
        let (mut files, stages) = (files.clone(), 12);
        let column = |value: f64| TemplateColumn::Numbers(vec![value; stages]);
        let mut columns = vec![
            ("hydro_id", TemplateColumn::of_places(vec![0; stages])),
            ("stage_id", TemplateColumn::of_places((0..stages).collect())),
            ("lag", TemplateColumn::of_places(vec![1; stages])),
            ("coefficient", column(0.6)),
        ];
        columns.extend(ratio.map(|ratio| ("residual_std_ratio", column(ratio))));
        files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        case.problem.values
    };
    let expected = inflows(Some(0.8));
    let derived = inflows(None);
    assert_eq!(derived.len(), expected.len());
    let pairs = derived.iter().zip(&expected);
    let off = pairs.map(|(one, other)| (one - other).abs() / other.abs().max(1.0));
    assert!(off.fold(0.0, f64::max) < 1e-9);
}
