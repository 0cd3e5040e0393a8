//! Paths that are not drawn from openings: fresh draws, given scenarios and past years.

use std::fmt::Write;
use std::path::PathBuf;

use cobre_case::template::CaseFiles;
use cobre_case::{Case, Options, Scenarios, load};
use cobre_results::Results;
use cobre_sddp::{Purpose, Solver};
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
