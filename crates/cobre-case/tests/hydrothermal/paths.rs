//! Paths that are not drawn from openings: fresh draws, given scenarios and past years.

use std::fmt::Write;
use std::path::PathBuf;

use cobre_case::template::{CaseFiles, Template};
use cobre_case::{Case, Options, Scenarios, load};
use cobre_comm::LocalBackend;
use cobre_results::Results;
use cobre_sddp::{Purpose, Settings, Solver, run};
use serde_json::json;

use crate::bad_cases::{changed_in, errors, sound, warnings};
use crate::tables::{Whole, simulate};

const STAGES: usize = 12;
const PLANTS: usize = 2;
const EXTERNAL: &str = "scenarios/external_inflow_scenarios.csv";

/// The inflow of a scenario.
fn inflow(scenario: usize, stage: usize, plant: usize) -> f64 {
    20.0 + ((5 * scenario + 3 * stage + 7 * plant) % 40) as f64
}

/// A table of scenarios, as CSV.
fn scenarios(count: usize) -> String {
    let mut text = "scenario_id,stage_id,hydro_id,value_m3s\n".to_owned();
    for scenario in 0..count {
        for stage in 0..STAGES {
            for plant in 0..PLANTS {
                let value = inflow(scenario, stage, plant);
                writeln!(text, "{},{stage},{plant},{value}", 1950 + scenario).expect("memory");
            }
        }
    }
    text
}

fn with_scheme(files: CaseFiles, part: &str, scheme: &str) -> CaseFiles {
    let source = json!({"inflow": {"scheme": scheme}, "seed": 42});
    changed_in(
        files,
        "config.json",
        &format!("/{part}/scenario_source"),
        &source,
    )
}

fn loaded(files: &CaseFiles, options: &Options) -> Case {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    load(directory.path(), options).expect("it is sound")
}

fn simulated(case: Case, solver: Solver) -> (Results, tempfile::TempDir) {
    let output = tempfile::tempdir().expect("a directory");
    (simulate(case, solver, output.path()), output)
}

/// The inflows of simulated paths, by path, stage and plant.
fn inflows(results: &Results) -> Vec<f64> {
    let table = Whole::read(results, "hydros").expect("there are plants");
    table.of("inflow_m3s").to_vec()
}

fn labels(results: &Results) -> Vec<String> {
    let table = results.table("simulation/paths").expect("it can be read");
    let table = table.expect("it is there");
    let groups = 0..table.groups();
    groups
        .flat_map(|group| table.texts(group, "label").expect("texts"))
        .collect()
}

#[test]
fn given_inflows_are_what_happens() {
    let mut files = with_scheme(sound(), "simulation", "external");
    files.insert(EXTERNAL, scenarios(3));
    for solver in [Solver::Check, Solver::Highs] {
        let case = loaded(&files, &Options::default());
        assert_eq!(
            case.problem.path_kind(Purpose::Simulation),
            Some("external")
        );
        assert_eq!(case.problem.path_kind(Purpose::Training), None);
        let (results, _keep) = simulated(case, solver);
        assert_eq!(labels(&results), ["1950", "1951", "1952"]);
        let mut found = inflows(&results).into_iter();
        for scenario in 0..3 {
            for stage in 0..STAGES {
                for plant in 0..PLANTS {
                    let (expected, found) = (inflow(scenario, stage, plant), found.next());
                    let error = (found.expect("a row") - expected).abs();
                    assert!(error < 1e-9, "{scenario} {stage} {plant}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn sampled_paths_given_as_values_cost_the_same() {
    let (sampled, _keep) = simulated(loaded(&sound(), &Options::default()), Solver::Kernel);
    let values = inflows(&sampled);
    let paths = values.chunks(STAGES * PLANTS);
    let values: Vec<Vec<Vec<f64>>> = paths
        .map(|path| path.chunks(PLANTS).map(<[f64]>::to_vec).collect())
        .collect();
    assert_eq!(values.len(), 40);
    let options = Options {
        scenarios: Some(Scenarios::Inflows {
            labels: vec!["the first".to_owned()],
            values,
        }),
        ..Options::default()
    };
    let (given, _keep) = simulated(loaded(&sound(), &options), Solver::Kernel);
    let of = |results: &Results| {
        Whole::read(results, "paths")
            .expect("paths")
            .of("value")
            .to_vec()
    };
    let (sampled, again) = (of(&sampled), of(&given));
    for (one, other) in sampled.iter().zip(&again) {
        assert!((one - other).abs() <= 1e-9 * other.abs(), "{one} {other}");
    }
    assert_eq!(labels(&given)[..2], ["the first", "2"]);
}

#[test]
fn fresh_draws_are_of_the_same_model_and_none_of_its_openings() {
    let files = with_scheme(sound(), "training", "out_of_sample");
    let case = loaded(&files, &Options::default());
    for purpose in [Purpose::Training, Purpose::Simulation] {
        assert_eq!(case.problem.path_kind(purpose), Some("out_of_sample"));
    }
    let (fresh, _keep) = simulated(case, Solver::Check);
    let (sampled, _keep) = simulated(loaded(&sound(), &Options::default()), Solver::Auto);
    let (fresh, sampled) = (inflows(&fresh), inflows(&sampled));
    let first =
        |all: &[f64]| -> Vec<f64> { all.chunks(STAGES * PLANTS).map(|path| path[0]).collect() };
    let different = |values: Vec<f64>| {
        let mut bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        bits.len()
    };
    assert_eq!(different(first(&fresh)), 40, "every path has its own");
    assert!(different(first(&sampled)) < 40, "openings come again");
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let ratio = mean(&fresh) / mean(&sampled);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn files_of_scenarios_are_told_by_their_columns_and_named_by_their_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: String| -> PathBuf {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path
    };
    let mut text = "stage_id,hydro_id,value_m3s\n".to_owned();
    for stage in 0..STAGES {
        for plant in 0..PLANTS {
            writeln!(text, "{stage},{plant},15").expect("memory");
        }
    }
    let (dry, drier) = (
        write("dry.csv", text.clone()),
        write("drier.csv", text.replace(",15", ",9")),
    );
    let options = |files: &[&PathBuf]| Options {
        scenarios: Some(Scenarios::Files(
            files.iter().map(|file| (*file).clone()).collect(),
        )),
        ..Options::default()
    };
    let case = loaded(&sound(), &options(&[&dry, &drier]));
    assert_eq!(case.settings.simulate, Some(2));
    let (results, _keep) = simulated(case, Solver::Auto);
    assert_eq!(labels(&results), ["dry", "drier"]);
    let costs = Whole::read(&results, "paths")
        .expect("paths")
        .of("value")
        .to_vec();
    assert!(costs[1] > costs[0], "{costs:?}");

    let said = |file: &PathBuf| {
        let directory = tempfile::tempdir().expect("a directory");
        sound().write(directory.path()).expect("it can be written");
        load(directory.path(), &options(&[file]))
            .expect_err("it is wrong")
            .to_string()
    };
    let stranger = write("stranger.csv", "stage_id,value\n0,1\n".to_owned());
    assert!(said(&stranger).contains("it has no column hydro_id, bus_id or ncs_id"));
    let short = write(
        "short.csv",
        "stage_id,hydro_id,value_m3s\n0,0,5\n".to_owned(),
    );
    let text = said(&short);
    assert!(
        text.contains("has no row in scenario short, stage 1"),
        "{text}"
    );
    assert!(said(&directory.path().join("none.csv")).contains("none.csv"));
}

#[test]
fn wrong_scenarios_are_named() {
    let with = |text: String| {
        let mut files = with_scheme(sound(), "simulation", "external");
        files.insert(EXTERNAL, text);
        files
    };
    let all = |text: &str| {
        let found = errors(&with(scenarios(2) + text));
        found.join("\n")
    };
    for (row, message) in [
        ("1950,0,9,5\n", "there is no hydro plant 9"),
        ("1950,99,0,5\n", "there is no stage 99"),
        (
            "1950,0,0,5\n",
            "there is a row of scenario 1950, hydro plant 0, stage 0 already",
        ),
        ("1960,0,0,5\n", "in scenario 1960, stage"),
        ("1960,0,0,\n", "value_m3s"),
    ] {
        let found = all(row);
        assert!(found.contains(message), "{row}: {found}");
    }
    let found = errors(&with_scheme(sound(), "simulation", "external")).join("\n");
    let message = "simulation.scenario_source.inflow.scheme: \"external\" needs scenarios/external_inflow_scenarios.parquet";
    assert!(found.contains(message), "{found}");
    let found = errors(&with_scheme(sound(), "training", "historical")).join("\n");
    assert!(
        found.contains("training.scenario_source.inflow: no year has the inflows"),
        "{found}"
    );
    let source = json!({"load": {"scheme": "historical"}});
    let files = changed_in(sound(), "config.json", "/training/scenario_source", &source);
    let found = errors(&files).join("\n");
    assert!(
        found.contains("load.scheme: \"historical\" is for inflows"),
        "{found}"
    );
    let source = json!({"historical_years": [1950]});
    let files = changed_in(sound(), "config.json", "/training/scenario_source", &source);
    let found = errors(&files).join("\n");
    assert!(
        found.contains("historical_years: inflow.scheme is not \"historical\""),
        "{found}"
    );
    let mut files = sound();
    files.insert(EXTERNAL, scenarios(1));
    let found = warnings(&files).join("\n");
    assert!(
        found.contains("nothing reads it: no scenario_source"),
        "{found}"
    );
}

/// The sound case on external scenarios of inflows, and of loads of these numbers, in this order.
fn with_loads(inflow_count: usize, loads: &[usize]) -> CaseFiles {
    let source =
        json!({"inflow": {"scheme": "external"}, "load": {"scheme": "external"}, "seed": 42});
    let pointer = "/simulation/scenario_source";
    let mut files = changed_in(sound(), "config.json", pointer, &source);
    files.insert(EXTERNAL, scenarios(inflow_count));
    let mut text = "scenario_id,stage_id,bus_id,value_mw\n".to_owned();
    for scenario in loads {
        for stage in 0..STAGES {
            writeln!(text, "{scenario},{stage},0,{}", scenario - 1900).expect("memory");
        }
    }
    files.insert("scenarios/external_load_scenarios.csv", text);
    files
}

#[test]
fn scenarios_of_several_kinds_go_together_by_their_names() {
    let load_of = |files: &CaseFiles| {
        let (results, _keep) = simulated(loaded(files, &Options::default()), Solver::Auto);
        let table = Whole::read(&results, "buses").expect("there are buses");
        let (scenarios, loads) = (table.of("scenario").to_vec(), table.of("load_mw").to_vec());
        let highest = |scenario: usize| {
            let rows = scenarios.iter().zip(&loads);
            let own = rows.filter(|(own, _)| **own == (scenario + 1) as f64);
            own.map(|(_, load)| *load).fold(0.0, f64::max)
        };
        (labels(&results), (0..3).map(highest).collect::<Vec<f64>>())
    };
    let (sorted, expected) = load_of(&with_loads(3, &[1950, 1951, 1952]));
    let (shuffled, found) = load_of(&with_loads(3, &[1952, 1950, 1951]));
    assert_eq!(sorted, ["1950", "1951", "1952"]);
    assert_eq!(shuffled, sorted);
    assert_eq!(found, expected);
    assert!(found[0] < found[1] && found[1] < found[2], "{found:?}");
    // One scenario of a kind goes with all of the others.
    let (names, same) = load_of(&with_loads(3, &[1977]));
    assert_eq!(names, sorted);
    assert!(
        same[0] > 0.0 && same.iter().all(|load| *load == same[0]),
        "{same:?}"
    );

    for (loads, message) in [
        (
            &[1950, 1951][..],
            "load: there is no scenario 1952, which others have",
        ),
        (
            &[1950, 1951, 1953],
            "load: there is no scenario 1952, which others have",
        ),
        (
            &[1950, 1951, 1952, 1953],
            "inflow: there is no scenario 1953, which others have",
        ),
    ] {
        let found = errors(&with_loads(3, loads)).join("\n");
        assert!(found.contains(message), "{loads:?}: {found}");
    }
}

#[test]
fn scenarios_that_are_the_numbers_of_rows_are_refused_before_they_take_memory() {
    let mut text = "scenario_id,stage_id,hydro_id,value_m3s\n".to_owned();
    // Of 24 stages and 100 plants: more than a gibibyte.
    for scenario in 0..60_000 {
        writeln!(text, "{scenario},0,0,5").expect("memory");
    }
    let large = Template::find("large").expect("it is there").files();
    let mut files = with_scheme(large, "simulation", "external");
    files.insert(EXTERNAL, text);
    let found = errors(&files).join("\n");
    let message =
        "there are 60000 scenarios, of 24 stages and 100 × hydro plant; 55924 are the most";
    assert!(found.contains(message), "{found}");
}

#[test]
fn years_that_are_no_choice_are_named_and_take_no_memory() {
    let with = |years: serde_json::Value| {
        let source = json!({"inflow": {"scheme": "historical"}, "historical_years": years});
        let history = crate::inflow_history::with_history(40);
        changed_in(history, "config.json", "/training/scenario_source", &source)
    };
    for (years, message) in [
        (json!([]), "historical_years: the list is empty"),
        (
            json!([1990, 1991, 1990]),
            "historical_years: 1990 is there twice",
        ),
        (
            json!({"from": 1991, "to": 1990}),
            "historical_years: to, 1990, is before from, 1991",
        ),
        (json!({"from": i32::MIN, "to": i32::MAX}), "no such year"),
    ] {
        let found = errors(&with(years.clone())).join("\n");
        assert!(found.contains(message), "{years}: {found}");
    }
}

/// Three stages of 2, 3 and 2 openings, a reservoir with uncertain inflow, and all sequences of openings.
fn enumerated(stage_openings: [usize; 3]) -> CaseFiles {
    let mut files = crate::hand_base::base();
    crate::hand_base::stages(&mut files, 3, "parallel");
    crate::hand_base::with_plants(&mut files, &[crate::hand_base::plant()], 3);
    let stats = "hydro_id,stage_id,mean_m3s,std_m3s\n0,0,30,20\n0,1,20,12\n0,2,25,15\n";
    files.insert("scenarios/inflow_seasonal_stats.csv", stats);
    for (stage, openings) in stage_openings.into_iter().enumerate() {
        let pointer = format!("/stages/{stage}/num_scenarios");
        files = changed_in(files, "stages.json", &pointer, &json!(openings));
    }
    let all = json!({"method": "enumerated"});
    let training =
        json!({"selection": all, "stopping_rules": [{"type": "iteration_limit", "limit": 20}]});
    let files = changed_in(files, "config.json", "/training", &training);
    let simulation = json!({"enabled": true, "selection": all});
    changed_in(files, "config.json", "/simulation", &simulation)
}

#[test]
fn enumerated_paths_are_all_sequences_of_openings_and_cost_the_bound_on_average() {
    let case = loaded(&enumerated([2, 3, 2]), &Options::default());
    let settings = case.settings.clone();
    assert_eq!(settings.passes.map(std::num::NonZero::get), Some(12));
    assert_eq!(settings.simulate, Some(12));
    for purpose in [Purpose::Training, Purpose::Simulation] {
        assert_eq!(case.problem.path_kind(purpose), Some("enumerated"));
    }
    let settings = Settings::default().with(settings);
    let output = tempfile::tempdir().expect("a directory");
    let (case, again) = (case.clone(), case);
    let trained = run(&LocalBackend, case.problem, &settings, &mut ()).expect("it runs");
    let results = crate::cyclic::results_of(again, settings, output.path());
    let paths = Whole::read(&results, "paths").expect("there are paths");
    let values = paths.of("value").to_vec();
    assert_eq!(values.len(), 12);
    let (bound, mean) = (trained.trained.bound, values.iter().sum::<f64>() / 12.0);
    assert!((mean - bound).abs() <= 1e-6 * bound, "{mean} {bound}");
    let hydros = inflows(&results);
    let mut sequences: Vec<Vec<u64>> = hydros
        .chunks(3)
        .map(|path| path.iter().map(|inflow| inflow.to_bits()).collect())
        .collect();
    sequences.sort();
    sequences.dedup();
    assert_eq!(sequences.len(), 12);
}

#[test]
fn enumeration_is_refused_where_paths_have_no_end_or_are_too_many() {
    let said = |files: CaseFiles, message: &str| {
        let found = errors(&files).join("\n");
        assert!(found.contains(message), "{message}: {found}");
    };
    said(
        enumerated([100, 100, 100]),
        "training.selection: there are 1e6 sequences of openings, and 100000 are the most",
    );
    let source = json!({"seed": 1, "inflow": {"scheme": "out_of_sample"}});
    said(
        changed_in(
            enumerated([2, 2, 2]),
            "config.json",
            "/simulation/scenario_source",
            &source,
        ),
        "simulation.selection: there is no end of fresh draws",
    );
    said(
        changed_in(
            enumerated([2, 2, 2]),
            "config.json",
            "/training/forward_passes",
            &json!(4),
        ),
        "training.forward_passes: selection says how many paths there are",
    );
    said(
        changed_in(
            enumerated([2, 2, 2]),
            "config.json",
            "/training/selection",
            &json!(null),
        ),
        "training.forward_passes: the key is missing",
    );
    let graph = json!({"type": "cyclic", "annual_discount_rate": 0.1});
    said(
        changed_in(
            enumerated([2, 2, 2]),
            "stages.json",
            "/policy_graph",
            &graph,
        ),
        "training.selection: paths of a cyclic study have no end",
    );
}

#[test]
fn enumerated_scenarios_are_each_given_one_once() {
    let files = with_scheme(sound(), "simulation", "external");
    let selection = json!({"method": "enumerated"});
    let files = changed_in(
        files,
        "config.json",
        "/simulation/num_scenarios",
        &json!(null),
    );
    let mut files = changed_in(files, "config.json", "/simulation/selection", &selection);
    files.insert(EXTERNAL, scenarios(5));
    let found = errors(&files).join("\n");
    assert!(
        found.contains("load is drawn from openings beside given scenarios"),
        "{found}"
    );
    let mut certain = files;
    let rows = (0..STAGES).map(|stage| format!("0,{stage},100,0\n"));
    let rows: String = rows.collect();
    certain.remove("scenarios/load_seasonal_stats.parquet");
    certain.insert(
        "scenarios/load_seasonal_stats.csv",
        format!("bus_id,stage_id,mean_mw,std_mw\n{rows}"),
    );
    let case = loaded(&certain, &Options::default());
    assert_eq!(case.settings.simulate, Some(5));
}
