//! Lags that are seasons, and noise that stages of one season share.

use cobre_case::template::CaseFiles;
use cobre_case::{Options, load, load_with};
use cobre_comm::LocalBackend;
use cobre_sddp::{Problem, Results, Settings, StopRule, Stopping, run};
use serde_json::{Value, json};

use crate::bad_cases::{changed_in, errors, sound, text, warnings};
use crate::reference_cases::reference;

/// Paths of other schemes are not what these tests are about.
const IN_SAMPLE: &str = r#"{"training": {"scenario_source": {"inflow": {"scheme": "in_sample"}}}}"#;

fn trained(problem: Problem) -> Results {
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(20)]),
        ..Settings::default()
    };
    run(&LocalBackend, problem, &settings, &mut ()).expect("it runs")
}

fn names(problem: &Problem) -> Vec<&str> {
    problem
        .states
        .iter()
        .map(|state| state.name.as_str())
        .collect()
}

#[test]
fn weeks_and_quarters_train() {
    let Some(cases) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let read = |name: &str| {
        let case = load_with(&cases.join(name), &Options::default(), Some(IN_SAMPLE));
        case.expect("it is sound").problem
    };
    let weeks = read("d29-weekly-par-noise-sharing");
    assert_eq!(
        names(&weeks),
        ["storage.H0", "inflow_lag1.H0", "inflow_sum.H0"]
    );
    // Weeks of one month have the same inflows: the lag stands still and the noise is shared.
    for stage in 1..4 {
        assert_eq!(noise(&weeks, stage), noise(&weeks, 0));
    }
    assert!(trained(weeks).trained.bound.is_finite());
    let quarters = read("d30-multi-resolution-monthly-quarterly");
    let expected = [
        "storage.H0",
        "inflow_lag1.H0",
        "inflow_lag1_resolution2.H0",
        "inflow_sum_resolution2.H0",
    ];
    assert_eq!(names(&quarters), expected);
    assert!(trained(quarters).trained.bound.is_finite());
}

/// The right-hand sides of the first inflow, by opening.
fn noise(problem: &Problem, node: usize) -> Vec<f64> {
    let places = &problem.nodes[node].places;
    let openings = 0..problem.nodes[node].probabilities.len();
    let first = |opening| {
        let values = problem.opening(&problem.values, node, opening);
        places.split(values).row_lower[0]
    };
    openings.map(first).collect()
}

/// The cascade with months that the file defines as seasons.
fn with_months() -> CaseFiles {
    let season = |id: i32| json!({"id": id, "month_start": id + 1});
    let months =
        json!({"cycle_type": "monthly", "seasons": (0..12).map(season).collect::<Vec<_>>()});
    changed_in(sound(), "stages.json", "/season_definitions", &months)
}

fn problem(files: &CaseFiles) -> Problem {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let case = load(directory.path(), &Options::default());
    case.expect("it is sound").problem
}

#[test]
fn months_as_seasons_and_as_stages_are_the_same_problem() {
    let (stages, seasons) = (problem(&sound()), problem(&with_months()));
    assert_eq!(stages.values, seasons.values);
    assert_eq!(stages.templates, seasons.templates);
    assert_eq!(stages.states, seasons.states);
}

#[test]
fn a_lag_of_a_season_that_no_stage_has_names_it() {
    let mut files = with_months();
    let last = text(&files, "stages.json")["stages"]
        .as_array()
        .map_or(0, |stages| stages.len() - 1);
    for (key, value) in [
        ("start_date", json!("2027-01-01")),
        ("end_date", json!("2027-02-01")),
        ("season_id", json!(0)),
    ] {
        files = changed_in(
            files,
            "stages.json",
            &format!("/stages/{last}/{key}"),
            &value,
        );
    }
    let found = errors(&files).join("\n");
    let expected = format!(
        "lag 1 of stage {last} needs mean and deviation of season 11, which no stage has: add it to pre_study_stages of \
         stages.json, from 2026-12-01 to 2027-01-01, and a row of its number"
    );
    assert!(found.contains(&expected), "{found}");
}

#[test]
fn stages_of_one_season_and_year_share_their_noise_without_definitions() {
    let files = changed_in(sound(), "stages.json", "/stages/1/season_id", &json!(0));
    let (apart, shared) = (problem(&sound()), problem(&files));
    let stratum = |problem: &Problem, node: usize| {
        let noise = noise(problem, node);
        let mut order: Vec<usize> = (0..noise.len()).collect();
        order.sort_by(|a, b| noise[*a].total_cmp(&noise[*b]));
        order
    };
    assert_eq!(stratum(&shared, 0), stratum(&shared, 1));
    assert_ne!(stratum(&apart, 0), stratum(&apart, 1));
}

#[test]
fn every_way_to_draw_openings_trains_and_repeats() {
    for method in ["saa", "lhs", "qmc_sobol", "qmc_halton"] {
        let mut files = sound();
        let text = files.remove("stages.json").expect("it is there");
        let text = String::from_utf8(text).expect("it is text");
        files.insert(
            "stages.json",
            text.replace("\"lhs\"", &format!("\"{method}\"")),
        );
        let (one, other) = (problem(&files), problem(&files));
        assert_eq!(one.values, other.values, "{method}");
        assert_ne!(noise(&one, 3), noise(&one, 4), "{method}");
    }
}

#[test]
fn what_is_wrong_with_seasons_and_observations_is_said() {
    let with =
        |pointer: &str, value: Value| changed_in(with_months(), "stages.json", pointer, &value);
    let told = errors(&with("/stages/2/season_id", json!(7))).join("; ");
    assert!(
        told.contains("stages[2].season_id: no day of the stage"),
        "{told}"
    );
    let observed = |entry: Value| {
        let list = json!([entry]);
        let files = with_months();
        let files = changed_in(
            files,
            "initial_conditions.json",
            "/recent_observations",
            &list,
        );
        errors(&files).join("; ")
    };
    let entry = |start: &str, end: &str| json!({"hydro_id": 0, "start_date": start, "end_date": end, "value_m3s": 50.0});
    let told = observed(entry("2025-12-20", "2026-01-05"));
    assert!(
        told.contains("is after the start of the first stage"),
        "{told}"
    );
    let told = observed(entry("2025-12-20", "2025-12-20"));
    assert!(
        told.contains("end_date: it is not after start_date"),
        "{told}"
    );
    assert_eq!(observed(entry("2025-12-20", "2025-12-25")), "");
}

#[test]
fn days_of_the_first_season_that_are_over_can_be_observed() {
    let files = changed_in(
        with_months(),
        "stages.json",
        "/stages/0/start_date",
        &json!("2026-01-11"),
    );
    let told = warnings(&files).join("; ");
    let over = "10 days of the season of the first stage are over, and 0 of them are observed";
    assert!(told.contains(over), "{told}");
    assert!(
        problem(&files)
            .states
            .iter()
            .all(|state| !state.name.contains("inflow_sum"))
    );
    let entry = |plant: i32, mean: f64| json!({"hydro_id": plant, "start_date": "2026-01-01", "end_date": "2026-01-11", "value_m3s": mean});
    let observed = json!([entry(0, 62.0), entry(1, 31.0)]);
    let files = changed_in(
        files,
        "initial_conditions.json",
        "/recent_observations",
        &observed,
    );
    let told = warnings(&files).join("; ");
    assert!(!told.contains("are over"), "{told}");
    let states = problem(&files).states;
    let sum = states
        .iter()
        .find(|state| state.name == "inflow_sum.upper_lake");
    let sum = sum.expect("a part of January is over").initial;
    assert!((sum - 10.0 / 31.0 * 62.0).abs() < 1e-9, "{sum}");
}
