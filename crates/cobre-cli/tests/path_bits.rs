//! Every kind of path and every way to draw openings: the same bits on any backend, ranks and threads, and after a kill.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use outputs::newest_checkpoint;
use processes::{command, ranks_of, wait_until};
use serde_json::{Value, json};

const STAGES: usize = 12;
const PLANTS: usize = 2;

/// Backend, ranks and threads; the first is compared with the others.
const WAYS: [&[&str]; 6] = [
    &["--threads=1"],
    &["--threads=2"],
    &["-n=2", "--backend=shm"],
    &["-n=4", "--backend=shm"],
    &["-n=2", "--backend=tcp", "--threads=2"],
    &["-n=2", "--backend=mpi"],
];

/// A case with a history, three openings a stage, these keys of `config.json`, and further files.
struct TestCase {
    directory: tempfile::TempDir,
    options: Vec<String>,
}

impl TestCase {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let case = Self {
            directory,
            options: Vec::new(),
        };
        let mut init = command(env!("CARGO_BIN_EXE_cobre"));
        let made = init.args(["init", "history"]).arg(case.path()).output();
        assert!(made.expect("cobre starts").status.success());
        case.change("stages.json", |stages| {
            for stage in stages["stages"].as_array_mut().expect("stages") {
                stage["num_scenarios"] = json!(3);
            }
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("case")
    }

    fn change(self, file: &str, change: impl Fn(&mut Value)) -> Self {
        let path = self.path().join(file);
        let text = std::fs::read_to_string(&path).expect("it is there");
        let mut value = serde_json::from_str(&text).expect("it is JSON");
        change(&mut value);
        std::fs::write(path, value.to_string()).expect("it can be written");
        self
    }

    /// With this source of the paths of training, and so of simulation.
    fn source(self, source: &Value) -> Self {
        self.change("config.json", |config| {
            config["training"]["scenario_source"] = source.clone();
        })
    }

    fn file(self, name: &str, text: String) -> Self {
        std::fs::write(self.path().join(name), text).expect("it can be written");
        self
    }

    fn option(mut self, option: String) -> Self {
        self.options.push(option);
        self
    }

    fn run(&self, output: &Path, options: &[&str]) -> Command {
        let mut command = command(env!("CARGO_BIN_EXE_cobre"));
        command.arg("run").arg(self.path());
        command.args(["--simulate=5", "--quiet"]);
        command.arg("--output").arg(output);
        command.args(&self.options).args(options);
        command
    }

    /// The results of a run to its end.
    fn results(&self, options: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let scratch = tempfile::tempdir().expect("a directory");
        let output = scratch.path().join("results");
        finish(&mut self.run(&output, options));
        results(&output)
    }
}

fn finish(command: &mut Command) {
    let ended = command.output().expect("cobre starts");
    assert_eq!(ended.status.code(), Some(0), "{command:?}: {ended:?}");
}

fn results(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = outputs::results(output);
    assert!(files.contains_key("simulation/paths.parquet"));
    files
}

/// Inflows of so many scenarios, as CSV.
fn inflows(scenarios: usize) -> String {
    let mut text = "scenario_id,stage_id,hydro_id,value_m3s\n".to_owned();
    for scenario in 0..scenarios {
        for (stage, plant) in (0..STAGES).flat_map(|stage| [(stage, 0), (stage, 1)]) {
            let value = 20 + (5 * scenario + 3 * stage + 7 * plant) % 40;
            writeln!(text, "{},{stage},{plant},{value}", 1950 + scenario).expect("memory");
        }
    }
    text
}

fn loads() -> String {
    let mut text = "scenario_id,stage_id,bus_id,value_mw\n".to_owned();
    for (scenario, stage) in (0..3).flat_map(|one| (0..STAGES).map(move |stage| (one, stage))) {
        let value = 100 + (5 * scenario + 3 * stage) % 40;
        writeln!(text, "{scenario},{stage},0,{value}").expect("memory");
    }
    text
}

/// The noise of three openings of both plants and the load.
fn openings() -> String {
    let mut text = "stage_id,opening_index,entity_index,value\n".to_owned();
    for place in 0..STAGES * 3 * (PLANTS + 1) {
        let (stage, opening, thing) = (place / 9, place / 3 % 3, place % 3);
        let value = ((7 * stage + 3 * opening + 5 * thing) % 11) as f64 / 3.0 - 1.7;
        writeln!(text, "{stage},{opening},{thing},{value}").expect("memory");
    }
    text
}

fn external() -> TestCase {
    let source = json!({"seed": 5, "inflow": {"scheme": "external"}});
    let case = TestCase::new().source(&source);
    case.file("scenarios/external_inflow_scenarios.csv", inflows(5))
}

fn historical() -> TestCase {
    TestCase::new().source(&json!({
        "seed": 5, "inflow": {"scheme": "historical"}, "historical_years": {"from": 1970, "to": 1976},
    }))
}

/// Compares the results of a case on all ways, and returns those of the first.
fn same_everywhere(case: &TestCase) -> BTreeMap<String, Vec<u8>> {
    let built = cobre_comm::available_backends();
    let mut expected: Option<BTreeMap<String, Vec<u8>>> = None;
    for way in WAYS {
        let backend = way.iter().find_map(|word| word.strip_prefix("--backend="));
        if backend.is_some_and(|backend| !built.contains(&backend)) {
            println!("skipped: {backend:?} is not part of this build");
            continue;
        }
        let mut options = vec!["--iterations=3", "--checkpoint=none"];
        options.extend(way);
        let found = case.results(&options);
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert!(found == *expected, "{way:?} {:?}", case.options),
        }
    }
    expected.expect("it ran")
}

#[test]
fn every_kind_of_path_has_the_same_bits_everywhere() {
    let in_sample = same_everywhere(&TestCase::new());
    let fresh = json!({"seed": 5, "inflow": {"scheme": "out_of_sample"}});
    let load = json!({"seed": 5, "load": {"scheme": "external"}});
    let load = TestCase::new().source(&load);
    let file = tempfile::tempdir().expect("a directory");
    let given = file.path().join("given.csv");
    std::fs::write(&given, inflows(3)).expect("it can be written");
    let cases = [
        TestCase::new().source(&fresh),
        historical(),
        external(),
        load.file("scenarios/external_load_scenarios.csv", loads()),
        TestCase::new().option("--years=1970-1974".to_owned()),
        TestCase::new().option(format!("--scenarios={}", given.display())),
    ];
    for case in &cases {
        let found = same_everywhere(case);
        let paths = "simulation/paths.parquet";
        assert!(found[paths] != in_sample[paths], "other paths were walked");
    }
}

#[test]
fn every_way_to_draw_openings_has_the_same_bits_everywhere() {
    let methods = [
        "saa",
        "lhs",
        "qmc_sobol",
        "qmc_halton",
        "historical_residuals",
    ];
    same_everywhere(&TestCase::new().change("stages.json", |stages| {
        let stages = stages["stages"].as_array_mut().expect("stages");
        for (stage, method) in stages.iter_mut().zip(methods.iter().cycle()) {
            stage["sampling_method"] = json!(method);
        }
    }));
    same_everywhere(&TestCase::new().file("scenarios/noise_openings.csv", openings()));
}

#[test]
fn scenarios_of_a_stoch_opt_format_file_are_walked() {
    let problem =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json");
    let text = std::fs::read_to_string(&problem).expect("it is there");
    let text: Value = serde_json::from_str(&text).expect("it is JSON");
    let wet = text["validation_scenarios"][0]["scenario"].clone();
    let mut dear = wet.clone();
    for step in 1..=3 {
        dear[step]["support"]["inflow_upper"] = json!(0.125);
        dear[step]["support"]["inflow_lower"] = json!(0.125);
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name);
    let run = |scenarios: &Value, output: &str| {
        std::fs::write(place("given.json"), scenarios.to_string()).expect("it can be written");
        let mut command = command(env!("CARGO_BIN_EXE_cobre"));
        command
            .arg("run")
            .arg(&problem)
            .args(["--bound=0", "--iterations=5", "--quiet", "--csv"]);
        let given = format!("--scenarios={}", place("given.json").display());
        command.arg(given).arg("--output").arg(place(output));
        command.output().expect("cobre starts")
    };
    let ended = run(
        &json!([{"name": "wet", "scenario": wet}, {"scenario": dear}]),
        "results",
    );
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let read = |name: &str| std::fs::read_to_string(place("results").join(name)).expect(name);
    let paths = read("simulation/paths.csv");
    let rows: Vec<Vec<&str>> = paths
        .lines()
        .skip(1)
        .map(|row| row.split(',').collect())
        .collect();
    assert_eq!(
        (rows.len(), rows[0][2], rows[1][2]),
        (2, "wet", "2"),
        "{paths}"
    );
    let value = |row: usize| rows[row][1].parse::<f64>().expect("a number");
    assert!(
        value(1) > value(0),
        "without water after the first stage: {paths}"
    );
    dear[1]["node"] = json!("nowhere");
    let ended = run(&json!([{"scenario": dear}]), "refused");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(
        told.contains("given.json") && told.contains("nowhere"),
        "{told}"
    );
    assert!(!place("refused").exists(), "nothing is written");
}

#[test]
fn paths_of_years_and_scenarios_go_on_after_a_kill() {
    for case in [historical(), external()] {
        let scratch = tempfile::tempdir().expect("a directory");
        let output = scratch.path().join("results");
        let endless = ["--iterations=1000000", "--checkpoint=iterations:1"];
        let mut command = case.run(&output, &endless);
        command.args(["-n=2", "--backend=shm"]);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().expect("cobre starts");
        let limit = Duration::from_secs(120);
        wait_until("a checkpoint", limit, || {
            newest_checkpoint(&output) >= Some(4)
        });
        let rank = ranks_of(child.id())[1].to_string();
        let sent = Command::new("kill").args(["-s", "KILL", &rank]).status();
        assert!(sent.expect("kill starts").success());
        let ended = child.wait().expect("it ends");
        assert!(!ended.success(), "it lost a rank");
        let further = newest_checkpoint(&output).expect("a checkpoint") + 3;
        let further = format!("--iterations={further}");
        let resumed = [&further, "--resume", "-n=2", "--backend=tcp", "--threads=2"];
        finish(&mut case.run(&output, &resumed));
        let whole = case.results(&[&further, "--threads=1", "--checkpoint=none"]);
        assert!(results(&output) == whole, "{further}");
    }
}
