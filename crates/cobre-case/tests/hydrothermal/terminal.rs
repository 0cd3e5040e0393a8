//! Terminal values of cases: water values in a table, and the cuts of another study.

use std::num::NonZero;
use std::path::Path;

use cobre_case::template::CaseFiles;
use cobre_case::{Case, Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Results, Settings, StopRule, Stopping, run_from, simulate};
use serde_json::json;

use crate::bad_cases::{errors, sound, text};

const VALUES: &str = "system/terminal_water_values.csv";

fn said(found: &[String], part: &str) {
    let has = found.iter().any(|error| error.contains(part));
    assert!(has, "{part}: {found:#?}");
}

fn with_values(rows: &str) -> CaseFiles {
    let mut files = sound();
    files.insert(VALUES, rows);
    files
}

fn loaded(files: &CaseFiles, directory: &Path) -> Case {
    files.write(directory).expect("it can be written");
    load(directory, &Options::default()).expect("it is sound")
}

fn settings(output: Option<&Path>) -> Settings {
    Settings {
        passes: NonZero::new(4).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(25)]),
        simulate: 50,
        checkpoints: Cadence::Never,
        output: output.map(Path::to_owned),
        ..Settings::default()
    }
}

fn trained(case: &Case, settings: &Settings) -> Results {
    let start = cobre_sddp::Start {
        about: cobre_sddp::About::new(&*case.tables, "case", case.kind, "local"),
        policy: None,
    };
    run_from(
        &LocalBackend,
        case.problem.clone(),
        settings,
        &start,
        &mut (),
    )
    .expect("it runs")
}

#[test]
fn a_table_of_water_values_is_a_cut_per_number() {
    let scratch = tempfile::tempdir().expect("a directory");
    let plain = loaded(
        &with_values("hydro_id,water_value\n0,900\n"),
        &scratch.path().join("a"),
    );
    let problem = &plain.problem;
    let last = problem.nodes.last().expect("a stage");
    let place = problem
        .states
        .iter()
        .position(|state| state.name.starts_with("storage."));
    let place = place.expect("a reservoir");
    assert_eq!(last.terminal.len(), 1);
    assert_eq!(last.terminal[0].gradient[place], -900.0);
    assert!(
        last.terminal[0].intercept > 0.0,
        "it costs nothing when full"
    );
    let rows = "hydro_id,water_value,storage_hm3,cut_id\n0,900,100,7\n0,300,200,9\n";
    let two = loaded(&with_values(rows), &scratch.path().join("b"));
    let cuts = &two.problem.nodes.last().expect("a stage").terminal;
    let intercepts: Vec<f64> = cuts.iter().map(|cut| cut.intercept).collect();
    assert_eq!(intercepts, [90_000.0, 60_000.0]);
}

#[test]
fn water_values_keep_water_at_the_end() {
    let scratch = tempfile::tempdir().expect("a directory");
    let without = loaded(&sound(), &scratch.path().join("a"));
    let dear = loaded(
        &with_values("hydro_id,water_value\n0,10000000\n"),
        &scratch.path().join("b"),
    );
    let settings = settings(None);
    let (without, dear) = (trained(&without, &settings), trained(&dear, &settings));
    // Whatever is generated instead costs more, and the estimate has the value of what is not left.
    assert!(dear.trained.bound > without.trained.bound);
    let estimate = dear.simulated.expect("asked for");
    let half = estimate.half_width_95.expect("there are several paths");
    assert!(
        estimate.mean + 3.0 * half > dear.trained.bound,
        "{estimate:?}"
    );
}

#[test]
fn wrong_water_values_are_named() {
    let found = errors(&with_values("hydro_id,water_value\n77,1\n"));
    said(&found, "row 1");
    said(&found, "77");
    let found = errors(&with_values("hydro_id,water_value\n0,1\n0,2\n"));
    said(
        &found,
        "there is a row of hydro plant 0 in this cut already",
    );
    let found = errors(&with_values("hydro_id,water_value\n0,-1\n"));
    said(&found, "water_value");
    let mut both = with_values("hydro_id,water_value\n0,1\n");
    let mut config = text(&both, "config.json");
    config["policy"] = json!({"boundary": {"path": "../other"}});
    both.json("config.json", config);
    said(&errors(&both), "one of them says the terminal value");
}

#[test]
fn a_boundary_that_is_not_there_is_named() {
    let mut files = sound();
    let mut config = text(&files, "config.json");
    config["policy"] = json!({"boundary": {"path": "nowhere", "source_stage": 3}});
    files.json("config.json", config);
    let found = errors(&files);
    said(&found, "policy.boundary");
    said(&found, "there is nothing");
}

#[test]
fn a_study_takes_the_cuts_of_the_stage_of_its_last_date() {
    let scratch = tempfile::tempdir().expect("a directory");
    let values = "hydro_id,water_value\n0,20000\n";
    let first = loaded(&with_values(values), &scratch.path().join("first"));
    let output = scratch.path().join("out");
    let source = trained(&first, &settings(Some(&output)));
    let dates = &source
        .policy
        .as_ref()
        .expect("this is the first rank")
        .manifest
        .start_dates;
    assert_eq!(dates.len(), first.problem.nodes.len());
    // The same horizon: the cuts after its last stage are those of the table.
    let mut files = sound();
    let mut config = text(&files, "config.json");
    config["policy"] = json!({"boundary": {"path": "../out"}});
    files.json("config.json", config);
    let second = loaded(&files, &scratch.path().join("second"));
    let last = |case: &Case| case.problem.nodes.last().expect("a stage").terminal.clone();
    assert_eq!(last(&second), last(&first));
    // Its policy is that of the other, and can be simulated there.
    let policy = source.policy.expect("this is the first rank");
    let start = cobre_sddp::Start {
        about: cobre_sddp::About::new(&*second.tables, "case", second.kind, "local"),
        policy: Some((&policy).into()),
    };
    let tried = simulate(
        &LocalBackend,
        second.problem.clone(),
        &settings(None),
        &start,
        &mut (),
    );
    let tried = tried.expect("it runs").simulated.expect("asked for");
    assert_eq!(Some(tried), source.simulated);
}

#[test]
fn suspicious_water_values_are_a_warning_in_the_file_that_is_there() {
    let warned = |rows: &str| crate::bad_cases::warnings(&with_values(rows));
    assert_eq!(
        warned("hydro_id,water_value\n0,1000\n"),
        Vec::<String>::new()
    );
    let file = "system/terminal_water_values.csv: row 1: ";
    for (rows, message) in [
        (
            "hydro_id,water_value,storage_hm3\n0,1000,1e9\n",
            "storage_hm3, 1000000000, is above the most storage",
        ),
        (
            "hydro_id,water_value\n0,1e14\n",
            "water_value, 100000000000000 $/hm³, is more than water can save",
        ),
        (
            "hydro_id,water_value,storage_hm3,cut_id\n0,1000,0,7\n",
            "cut 7 is above 0 at no storage",
        ),
    ] {
        said(&warned(rows), &format!("{file}{message}"));
    }
}
