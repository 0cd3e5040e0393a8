//! Hydrothermal cases from the outside: the same bits on every backend, and every error at once.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outputs::{files, finish, json};
use serde_json::Value;

/// Backend and ranks. Backends that are not part of the build are left out, and said to be.
const WAYS: [(&str, &str); 5] = [
    ("shm", "2"),
    ("shm", "3"),
    ("tcp", "2"),
    ("tcp", "3"),
    ("mpi", "2"),
];

fn cobre(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(arguments);
    command
}

/// The directory of a reference case, where the reference data are at hand.
fn reference(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let candidates = [
        root.join("shared/reference/cases").join(name),
        root.join("../shared/reference/cases").join(name),
    ];
    let found = candidates.into_iter().find(|path| path.is_dir());
    if found.is_none() {
        println!("skipped: no reference data");
    }
    found
}

/// The line of JSON without times, and all files without times.
fn result_of(case: &Path, options: &[&str]) -> (Value, BTreeMap<String, Vec<u8>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = cobre(&["run", "--json", "--quiet", "--threads", "1"]);
    command.args(["--checkpoint=none", "--csv"]);
    command
        .args(options)
        .arg("--output")
        .arg(directory.path())
        .arg(case);
    let output = finish(&mut command);
    assert_eq!(output.status.code(), Some(0), "{options:?}: {output:?}");
    let mut line = json(&output);
    line.as_object_mut().and_then(|line| line.remove("seconds"));
    let mut files = files(directory.path());
    let times = ["training/timings.parquet", "training/timings.csv"];
    for name in times
        .into_iter()
        .chain(["run.json", ".lock", ".cobre-files"])
    {
        assert!(files.remove(name).is_some(), "{name}");
    }
    (line, files)
}

fn same_bits_everywhere(case: &Path, options: &[&str]) {
    let built = cobre_comm::available_backends();
    let expected = result_of(case, options);
    for (backend, ranks) in WAYS {
        if !built.contains(&backend) {
            println!("skipped: {backend} is not part of this build");
            continue;
        }
        let mut options = options.to_vec();
        options.extend(["--backend", backend, "-n", ranks]);
        assert!(
            result_of(case, &options) == expected,
            "{} differs on {backend} with {ranks} ranks",
            case.display()
        );
    }
}

#[test]
fn four_regions_give_the_same_bits_on_every_backend() {
    if let Some(case) = reference("4ree") {
        same_bits_everywhere(&case, &["--iterations", "4", "--simulate", "8"]);
    }
}

#[test]
fn the_toy_gives_the_same_bits_on_every_backend() {
    if let Some(case) = reference("1dtoy") {
        same_bits_everywhere(&case, &["--iterations", "20"]);
    }
}

#[test]
fn a_warm_start_gives_the_same_bits_on_every_backend() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_case, case) = initialised("four-regions");
    let mut train = cobre(&["run", "--quiet", "--iterations=3", "--cut-selection=none"]);
    train.args(["--simulate=0", "--forward-passes=7"]);
    let trained = finish(train.arg("--output").arg(directory.path()).arg(&case));
    assert_eq!(trained.status.code(), Some(0), "{trained:?}");
    let policy = format!("--warm-start={}", directory.path().display());
    same_bits_everywhere(&case, &[&policy, "--iterations=3", "--simulate=40"]);
}

/// True if the case can be read; else the part of the format that is in the way is refused by name.
fn is_read(case: &Path) -> bool {
    let checked = finish(cobre(&["validate", "--json"]).arg(case));
    let report = json(&checked);
    if report["valid"] == true {
        return true;
    }
    let errors = report["errors"].as_array().expect("a list");
    let by_name = |error: &Value| {
        let text = error.to_string();
        text.contains("not supported") || text.contains("no file of the format has this name")
    };
    // Others may follow from it: a table that would have been estimated is missing.
    assert!(errors.iter().any(by_name), "{}: {report}", case.display());
    false
}

#[test]
fn every_reference_case_gives_the_same_with_two_ranks() {
    let Some(toy) = reference("1dtoy") else {
        return;
    };
    let all = std::fs::read_dir(toy.parent().expect("it is in a directory")).expect("it is there");
    let mut checked = 0;
    for entry in all.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(['d', 'x']) || !is_read(&entry.path()) {
            continue;
        }
        let options = ["--iterations", "10", "--simulate", "4"];
        let alone = result_of(&entry.path(), &options);
        let both = result_of(
            &entry.path(),
            &[&options[..], &["--backend", "shm", "-n", "2"]].concat(),
        );
        assert!(alone == both, "{name}");
        checked += 1;
    }
    assert!(checked >= 23, "{checked} cases can be read");
}

#[test]
fn fitted_hyperplanes_are_shown_with_their_errors() {
    let Some(case) = reference("d07-fpha-computed") else {
        return;
    };
    let output = finish(cobre(&["fit", "--planes"]).arg(&case));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 fitted production function"), "{text}");
    assert!(
        text.contains("largest error") && text.contains("MW/hm³"),
        "{text}"
    );
    let fits = json(&finish(cobre(&["fit", "--json"]).arg(&case)));
    let fit = &fits["fits"][0];
    assert_eq!(fit["hydro"], "H0");
    assert!(
        fit["planes"]
            .as_array()
            .is_some_and(|planes| planes.len() > 1),
        "{fit}"
    );
    let error = |key: &str| fit[key].as_f64().expect("a number");
    assert!(error("mean_error_mw") > 0.0 && error("mean_error_mw") < error("largest_error_mw"));
    let (_directory, plain) = initialised("cascade");
    let output = finish(cobre(&["fit"]).arg(&plain));
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("no plant has fitted hyperplanes"), "{text}");
    replace(
        &plain,
        "system/hydros.json",
        "\"bus_id\": 0",
        "\"bus_id\": 5",
    );
    assert_eq!(finish(cobre(&["fit"]).arg(&plain)).status.code(), Some(1));
    assert_eq!(
        finish(cobre(&["fit"]).arg(plain.join("nowhere")))
            .status
            .code(),
        Some(2)
    );
}

/// A case in a directory of its own.
fn initialised(template: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let case = directory.path().join("case");
    let output = finish(cobre(&["init", template]).arg(&case));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    (directory, case)
}

#[test]
fn the_invented_system_has_any_size_and_gives_the_same_with_two_ranks() {
    let directory = tempfile::tempdir().expect("a directory");
    let case = directory.path().join("case");
    let output = finish(cobre(&["init", "brazil-like", "--hydros", "20"]).arg(&case));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&finish(cobre(&["validate", "--json"]).arg(&case)));
    assert_eq!(report["valid"], true, "{report}");
    assert_eq!(report["warnings"], serde_json::json!([]));
    let options = ["--iterations", "1", "--simulate", "2"];
    let alone = result_of(&case, &options);
    let both = result_of(
        &case,
        &[&options[..], &["--backend", "shm", "-n", "2"]].concat(),
    );
    assert!(alone == both);
    let large = directory.path().join("large");
    let output = finish(cobre(&["init", "brazil-like", "--hydros", "160"]).arg(&large));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&finish(cobre(&["validate", "--json"]).arg(&large)));
    assert_eq!(report["valid"], true, "{report}");
    for (template, hydros) in [
        ("brazil-like", "19"),
        ("brazil-like", "161"),
        ("cascade", "20"),
    ] {
        let refused = directory.path().join("refused");
        let output = finish(cobre(&["init", template, "--hydros", hydros]).arg(&refused));
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        assert!(!refused.exists());
    }
}

#[test]
fn a_template_runs_as_it_is() {
    for template in ["one-reservoir", "cascade", "four-regions"] {
        let (_directory, case) = initialised(template);
        let checked = finish(cobre(&["validate", "--json"]).arg(&case));
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        let report = json(&checked);
        assert_eq!(report["valid"], true);
        assert_eq!(report["warnings"], serde_json::json!([]), "{template}");
        let output = finish(cobre(&["run", "--json", "--quiet", "--iterations", "3"]).arg(&case));
        let line = json(&output);
        assert_eq!(line["iterations"], 3, "{output:?}");
        // As its config.json says.
        assert_eq!(line["estimate"]["paths"], 200);
    }
}

/// With a hundred plants one linear program of the second iteration went round in circles for minutes.
#[test]
fn a_large_case_trains_with_hardly_a_second_try() {
    let (_directory, case) = initialised("large");
    let options = [
        "--iterations=2",
        "--forward-passes=4",
        "--simulate=0",
        "-n2",
    ];
    let mut command = cobre(&["run", "--json", "--quiet", "--solver=highs"]);
    let output = tempfile::tempdir().expect("a directory");
    command.args(options).arg("--output").arg(output.path());
    let line = json(&finish(command.arg(&case)));
    // A second try from nothing is rare; one that goes round in circles takes a try of every kind.
    let retries = line["lp"]["retries"].as_u64().expect("a count");
    assert!(retries < 5, "{line}");
}

#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    for command in ["run", "validate"] {
        let output = finish(cobre(&[command]).arg(directory.path().join("pond")));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("pond: No such file or directory"), "{text}");
    }
}

#[test]
fn init_that_cannot_go_on_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let case = directory.path().join("case");
    // No file may have more than a few blocks, so the first large one fails.
    let script = "ulimit -f 8; trap '' XFSZ; exec \"$0\" init large \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_cobre")]);
    let output = finish(command.arg(&case));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("File too large"), "{text}");
    assert!(!case.exists());
}

#[test]
fn init_writes_nothing_over_what_is_there() {
    let (_directory, case) = initialised("cascade");
    let before = files(&case);
    let output = finish(cobre(&["init", "one-reservoir"]).arg(&case));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(files(&case), before);
    let output = finish(cobre(&["init", "pond"]).arg(case.join("new")));
    assert_eq!(output.status.code(), Some(64));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("one-reservoir") && text.contains("four-regions"),
        "{text}"
    );
}

/// Changes a text in a file of a case.
fn replace(case: &Path, file: &str, from: &str, to: &str) {
    let path = case.join(file);
    let text = std::fs::read_to_string(&path).expect("it can be read");
    assert!(text.contains(from), "{from} is in {file}");
    std::fs::write(path, text.replace(from, to)).expect("it can be written");
}

#[test]
fn a_wrong_case_exits_with_1_and_writes_nothing() {
    let (directory, case) = initialised("cascade");
    replace(
        &case,
        "config.json",
        "\"forward_passes\": 4",
        "\"forward_passes\": 0",
    );
    replace(
        &case,
        "system/hydros.json",
        "\"bus_id\": 0",
        "\"bus_id\": 5",
    );
    std::fs::remove_file(case.join("penalties.json")).expect("it can be removed");
    let results = directory.path().join("results");
    for ranks in ["1", "2"] {
        let mut command = cobre(&["run", "--json", "-n", ranks, "--output"]);
        let output = finish(command.arg(&results).arg(&case));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = &json(&output)["error"];
        assert_eq!(error["kind"], "input");
        assert_eq!(error["errors"].as_array().map(Vec::len), Some(4), "{error}");
        assert!(!results.exists());
    }
    let checked = finish(cobre(&["validate", "--json"]).arg(&case));
    assert_eq!(checked.status.code(), Some(1));
    let report = json(&checked);
    let files: Vec<&str> = report["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| error["file"].as_str())
        .collect();
    let hydros = "system/hydros.json";
    assert_eq!(files, ["config.json", "penalties.json", hydros, hydros]);
}

#[test]
fn validate_says_every_error_on_a_line_of_its_own() {
    let (_directory, case) = initialised("cascade");
    replace(
        &case,
        "system/hydros.json",
        "\"bus_id\": 0",
        "\"bus_id\": 5",
    );
    let output = finish(cobre(&["validate"]).arg(&case));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("error: system/hydros.json: hydros[0].bus_id: there is no bus 5\n"),
        "{text}"
    );
    assert!(
        text.contains("error: system/hydros.json: hydros[1].bus_id: there is no bus 5\n"),
        "{text}"
    );
    assert!(text.ends_with("2 errors, 0 warnings\n"), "{text}");
}

#[test]
fn a_directory_that_is_no_case_is_said_to_be_none() {
    let directory = tempfile::tempdir().expect("a directory");
    for command in ["run", "validate"] {
        let output = finish(cobre(&[command]).arg(directory.path()));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("not a case"), "{text}");
    }
}

#[test]
fn options_override_what_the_case_says() {
    let (_directory, case) = initialised("one-reservoir");
    let options = [
        "run",
        "--json",
        "--quiet",
        "--iterations",
        "2",
        "--simulate",
        "7",
        "--forward-passes",
        "3",
    ];
    let line = json(&finish(cobre(&options).arg(&case)));
    assert_eq!(
        (&line["iterations"], &line["estimate"]["paths"]),
        (&2.into(), &7.into())
    );
}

#[test]
fn a_statistical_stop_is_refused_on_a_case_with_a_risk_measure() {
    let (directory, case) = initialised("one-reservoir");
    let options = ["run", "--json", "--quiet", "--stop=statistical:9"];
    let neutral = |more: &[&str]| finish(cobre(&options).args(more).arg(&case));
    assert_eq!(neutral(&["--iterations=2"]).status.code(), Some(0));
    let measure = r#""season_id": 3, "risk_measure": {"cvar": {"alpha": 0.2, "lambda": 0.5}}"#;
    replace(&case, "stages.json", r#""season_id": 3"#, measure);
    let results = directory.path().join("results");
    for more in [&["-n=1"][..], &["-n=2"], &["--risk=cvar:0.5,0.5"]] {
        let output = finish(
            cobre(&options)
                .args(more)
                .arg("--output")
                .arg(&results)
                .arg(&case),
        );
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let error = &json(&output)["error"];
        assert_eq!(error["kind"], "usage", "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("stop=statistical:9: "), "{message}");
        assert!(!results.exists());
    }
    let overridden = neutral(&["--risk=expectation", "--iterations=2"]);
    assert_eq!(overridden.status.code(), Some(0), "{overridden:?}");
}

#[test]
fn schemas_describe_every_json_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let schemas = directory.path().join("schemas");
    let output: Output = finish(cobre(&["schema"]).arg(&schemas));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = files(&schemas);
    assert_eq!(
        found.len(),
        cobre_case::schemas().len(),
        "{:?}",
        found.keys()
    );
    let schema: Value = serde_json::from_slice(&found["thermals.schema.json"]).expect("it is JSON");
    let plant = &schema["properties"]["thermals"]["items"];
    let limits = &plant["properties"]["generation"]["properties"];
    assert_eq!(limits["min_mw"]["minimum"], 0);
    assert_eq!(plant["additionalProperties"], false);
    assert!(
        plant["required"]
            .as_array()
            .is_some_and(|keys| keys.contains(&"bus_id".into()))
    );
    let (_directory, case) = initialised("cascade");
    let named: Value = serde_json::from_slice(
        &std::fs::read(case.join("system/thermals.json")).expect("it is there"),
    )
    .expect("JSON");
    let named = case
        .join("system")
        .join(named["$schema"].as_str().expect("it names its schema"));
    assert_eq!(
        std::fs::read(named).expect("it is there"),
        found["thermals.schema.json"]
    );
}

#[test]
fn examples_give_their_expected_answers() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["one-reservoir", "cascade", "four-regions"] {
        let case = examples.join(name);
        let expected = std::fs::read(case.join("expected.json")).expect("it is there");
        let expected: Value = serde_json::from_slice(&expected).expect("it is JSON");
        let line = json(&finish(
            cobre(&["run", "--json", "--quiet", "--simulate", "0"]).arg(&case),
        ));
        let number = |value: &Value| value.as_f64().expect("a number");
        let (bound, answer) = (number(&line["bound"]), number(&expected["bound"]));
        let tolerance = number(&expected["relative_tolerance"]);
        assert!(
            (bound / answer - 1.0).abs() <= tolerance,
            "{name}: {bound} instead of {answer}"
        );
    }
}

/// A case of two reservoirs in a directory, with a table of four scenarios, whose forward passes and simulated paths are
/// of these schemes.
fn with_paths(directory: &Path, training: &str, simulation: &str) -> PathBuf {
    let case = directory.join("case");
    let made = finish(cobre(&["init", "cascade"]).arg(&case));
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let mut rows = "scenario_id,stage_id,hydro_id,value_m3s\n".to_owned();
    for scenario in 0..4 {
        for stage in 0..12 {
            for plant in 0..2 {
                let value = 25 + (7 * scenario + 5 * stage + 3 * plant) % 30;
                writeln!(rows, "{},{stage},{plant},{value}", 1951 + scenario).expect("memory");
            }
        }
    }
    let table = case.join("scenarios/external_inflow_scenarios.csv");
    std::fs::write(table, rows).expect("it can be written");
    let file = case.join("config.json");
    let text = std::fs::read(&file).expect("it is there");
    let mut config: Value = serde_json::from_slice(&text).expect("it is JSON");
    for (part, scheme) in [("training", training), ("simulation", simulation)] {
        config[part]["scenario_source"] =
            serde_json::json!({"seed": 42, "inflow": {"scheme": scheme}});
    }
    std::fs::write(&file, config.to_string()).expect("it can be written");
    case
}

#[test]
fn paths_of_every_kind_give_the_same_bits_on_every_backend_and_after_a_resume() {
    let kinds = [("out_of_sample", "external"), ("external", "out_of_sample")];
    for (training, simulation) in kinds {
        let directory = tempfile::tempdir().expect("a directory");
        let case = with_paths(directory.path(), training, simulation);
        let options = ["--iterations", "6", "--simulate", "6"];
        same_bits_everywhere(&case, &options);
        let expected = result_of(&case, &options).1;
        let output = directory.path().join("results");
        for (iterations, more) in [("3", &["-n=2"][..]), ("6", &["--resume", "--threads=2"])] {
            let mut command = cobre(&["run", "--quiet", "--csv", "--checkpoint=iterations:1"]);
            command.args(["--simulate", "6", "--iterations", iterations]);
            command.args(more).arg("--output").arg(&output).arg(&case);
            let run = finish(&mut command);
            assert_eq!(run.status.code(), Some(0), "{run:?}");
        }
        let found = files(&output);
        for (name, bytes) in &expected {
            assert!(found.get(name) == Some(bytes), "{training}: {name} differs");
        }
        let run = std::fs::read(output.join("run.json")).expect("it is there");
        let run: Value = serde_json::from_slice(&run).expect("it is JSON");
        let settings = &run["settings"];
        assert_eq!(settings["training_paths"], training);
        assert_eq!(settings["sampling"], simulation);
    }
}

#[test]
fn a_policy_is_tried_on_past_years_and_they_are_named() {
    let Some(case) = reference("d26-estimated-par2") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let [policy, years] = ["policy", "years"].map(|name| directory.path().join(name));
    let mut train = cobre(&["run", "--quiet", "--iterations", "3", "--simulate", "0"]);
    let trained = finish(train.arg("--output").arg(&policy).arg(&case));
    assert_eq!(trained.status.code(), Some(0), "{trained:?}");
    let mut simulate = cobre(&[
        "run",
        "--quiet",
        "--csv",
        "--simulate-only",
        "--years",
        "all",
    ]);
    simulate.arg("--warm-start").arg(&policy);
    let simulated = finish(simulate.arg("--output").arg(&years).arg(&case));
    assert_eq!(simulated.status.code(), Some(0), "{simulated:?}");
    let paths = std::fs::read_to_string(years.join("simulation/paths.csv")).expect("it is there");
    let named: Vec<i32> = paths
        .lines()
        .skip(1)
        .map(|line| {
            line.rsplit(',')
                .next()
                .and_then(|label| label.parse().ok())
                .expect("a year")
        })
        .collect();
    assert!(named.len() > 2, "{paths}");
    assert!(
        named.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{paths}"
    );
    let mut wrong = cobre(&["run", "--quiet", "--simulate-only", "--years", "1066"]);
    wrong.arg("--warm-start").arg(&policy);
    let refused = finish(wrong.arg(&case));
    assert_ne!(refused.status.code(), Some(0));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("1066: no such year, or it lacks"), "{text}");
}
