//! Studies without an end.

use std::num::NonZero;
use std::path::Path;

use cobre_case::{Case, Options, load};
use cobre_comm::LocalBackend;
use cobre_results::Results;
use cobre_sddp::{About, Cadence, Settings, Start, StopRule, Stopping, run_from};
use serde_json::{Value, json};

/// The example of one reservoir, with another policy graph.
fn case(directory: &Path, graph: &Value) -> Case {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/one-reservoir");
    copy(&example, directory);
    let file = directory.join("stages.json");
    let text = std::fs::read_to_string(&file).expect("it is there");
    let mut stages: Value = serde_json::from_str(&text).expect("JSON");
    stages["policy_graph"] = graph.clone();
    std::fs::write(&file, stages.to_string()).expect("it is written");
    load(directory, &Options::default()).expect("it makes sense")
}

/// The results that a run of a case writes.
pub(crate) fn results_of(case: Case, settings: Settings, output: &Path) -> Results {
    let settings = Settings {
        checkpoints: Cadence::Never,
        output: Some(output.to_owned()),
        ..settings
    };
    let start = Start {
        about: About {
            tables: &*case.tables,
            facts: serde_json::Map::new(),
        },
        policy: None,
    };
    run_from(&LocalBackend, case.problem, &settings, &start, &mut ()).expect("it runs");
    Results::open(output).expect("it has results")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("it is copied");
        }
    }
}

#[test]
fn a_year_that_comes_again_has_dates_and_numbers_of_its_own() {
    let scratch = tempfile::tempdir().expect("a directory");
    let graph = json!({"type": "cyclic", "annual_discount_rate": 0.5});
    let case = case(&scratch.path().join("case"), &graph);
    let (problem, stages) = (&case.problem, case.problem.nodes.len());
    assert!(problem.graph.is_cyclic());
    let back = problem.graph.successors(stages - 1);
    assert_eq!((back.len(), back[0].node), (1, 0));
    let year: f64 = (0..stages)
        .map(|node| problem.graph.successors(node)[0].probability)
        .product();
    // A year of 365 days at a rate of 0.5 per year of 365.25.
    assert!(
        (year - 1.5_f64.powf(-365.0 / 365.25)).abs() < 1e-12,
        "{year}"
    );
    let output = scratch.path().join("out");
    let first = problem.nodes[0].stage.expect("a number");
    let date = problem.nodes[0].start_date.clone();
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(8)]),
        simulate: 3,
        simulate_stages: NonZero::new(30),
        ..Settings::default()
    };
    let results = results_of(case, settings, &output);
    let table = results.table("simulation/stages").expect("it can be read");
    let table = table.expect("it is there");
    let numbers = table.numbers(0, "stage").expect("numbers");
    let of_path = &numbers[..30];
    let expected: Vec<f64> = (0..30)
        .map(|place| first as f64 + f64::from(place))
        .collect();
    assert_eq!(of_path, expected);
    let dates = table.texts(0, "start_date").expect("texts");
    let year: i64 = date[..4].parse().expect("a year");
    for (place, later) in [(0, 0), (12, 1), (24, 2)] {
        assert_eq!(dates[place], format!("{}{}", year + later, &date[4..]));
    }
    assert!(
        dates[..30].windows(2).all(|two| two[0] < two[1]),
        "{dates:?}"
    );
}

#[test]
fn the_last_transition_of_a_cyclic_study_leads_back() {
    let scratch = tempfile::tempdir().expect("a directory");
    let step = |source: usize| {
        let target = (source + 1) % 12;
        let rate = if source == 11 {
            json!(0.9)
        } else {
            Value::Null
        };
        let mut step = json!({"source_id": source, "target_id": target, "probability": 1.0});
        if !rate.is_null() {
            step["annual_discount_rate_override"] = rate;
        }
        step
    };
    let steps: Vec<Value> = (0..12).map(step).collect();
    let graph = json!({"type": "cyclic", "annual_discount_rate": 0.0, "transitions": steps});
    let case = case(&scratch.path().join("case"), &graph);
    let probability = |node: usize| case.problem.graph.successors(node)[0].probability;
    assert_eq!(probability(0), 1.0);
    assert!(probability(11) < 0.96, "{}", probability(11));
}

#[test]
fn nothing_comes_after_a_study_without_an_end() {
    let mut files = crate::bad_cases::sound();
    let mut file = crate::bad_cases::text(&files, "stages.json");
    file["policy_graph"] = json!({"type": "cyclic", "annual_discount_rate": 0.1});
    files.json("stages.json", file);
    files.insert(
        "system/terminal_water_values.csv",
        "hydro_id,water_value\n0,100\n",
    );
    let mut file = crate::bad_cases::text(&files, "config.json");
    file["policy"] = json!({"boundary": {"path": "nowhere"}});
    files.json("config.json", file);
    let found = crate::bad_cases::errors(&files);
    for place in ["terminal_water_values", "policy.boundary"] {
        let told = |error: &&String| error.contains(place) && error.contains("has no end");
        assert!(
            found.iter().any(|error| told(&error)),
            "{place}: {found:#?}"
        );
    }
}
