//! The command in every build, whichever backends it has: what it lists, runs and refuses.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod outputs;

use std::path::Path;
use std::process::Command;

use outputs::{files, finish};
use serde_json::{Value, json};

/// Every backend that connects ranks, built or not.
const CONNECTING: [&str; 3] = ["shm", "tcp", "mpi"];

fn cobre(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cobre"));
    command.args(arguments);
    command
}

/// A short training with these options.
fn training(options: &[&str]) -> Command {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json");
    let mut command = cobre(&["run", "--bound=0", "--iterations=3", "--quiet", "--json"]);
    command.arg(example).args(options);
    command
}

/// The backends of [`CONNECTING`] that this build has, or those that it does not have.
fn connecting(built: bool) -> impl Iterator<Item = &'static str> {
    let available = cobre_comm::available_backends();
    let wanted = move |name: &&str| available.contains(name) == built;
    CONNECTING.into_iter().filter(wanted)
}

#[test]
fn doctor_lists_the_backends_of_the_build() {
    let output = finish(&mut cobre(&["doctor"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let line = text.lines().find_map(|line| line.strip_prefix("backends"));
    let listed = line.map(|line| line.trim().split(", ").collect::<Vec<_>>());
    assert_eq!(listed, Some(cobre_comm::available_backends()), "{text}");
    let absent = text.contains("not in this build (feature `mpi`)");
    assert_eq!(
        absent,
        !cobre_comm::available_backends().contains(&"mpi"),
        "{text}"
    );
}

#[test]
fn every_backend_of_the_build_trains_the_same_policy() {
    let expected = outputs::json(&finish(&mut training(&[])))["policy_sha256"].clone();
    assert!(expected.is_string());
    for backend in connecting(true) {
        let output = finish(&mut training(&["-n=2", "--backend", backend]));
        assert_eq!(output.status.code(), Some(0), "{backend}: {output:?}");
        assert_eq!(
            outputs::json(&output)["policy_sha256"],
            expected,
            "{backend}"
        );
    }
}

/// The example as a chain of so many stages.
fn chain(stages: usize) -> String {
    let example = include_str!("../../../examples/two_reservoirs.sof.json");
    let mut problem: Value = serde_json::from_str(example).expect("JSON");
    let mut stage = problem["nodes"]["now"].clone();
    let mut nodes = serde_json::Map::new();
    for number in 0..stages {
        stage["successors"] = if number + 1 < stages {
            json!({ format!("{}", number + 1): 1.0 })
        } else {
            json!({})
        };
        nodes.insert(number.to_string(), stage.clone());
    }
    problem["root"]["successors"] = json!({"0": 1.0});
    problem["nodes"] = nodes.into();
    problem["validation_scenarios"] = json!([]);
    problem.to_string()
}

#[test]
fn a_policy_of_many_stages_fits_into_the_regions_of_every_backend() {
    let directory = tempfile::tempdir().expect("a directory");
    // More stages than regions that `mpi` has at a time, and cuts that are published.
    let problem = directory.path().join("chain.sof.json");
    std::fs::write(&problem, chain(300)).expect("it is written");
    let train = |options: &[&str]| {
        let mut command = cobre(&["run", "--bound=0", "--iterations=4", "--forward-passes=3"]);
        let command = command.arg(&problem).args(["--quiet", "--json"]);
        let output = finish(command.args(options));
        assert_eq!(output.status.code(), Some(0), "{options:?}: {output:?}");
        outputs::json(&output)["policy_sha256"].clone()
    };
    let expected = train(&[]);
    for backend in connecting(true) {
        assert_eq!(
            train(&["-n=2", "--backend", backend]),
            expected,
            "{backend}"
        );
    }
}

#[test]
fn a_backend_that_is_not_built_is_refused_with_its_feature() {
    for backend in connecting(false) {
        let launch = ["launch", "-n", "2", "--backend", backend, "--", "true"];
        for mut command in [cobre(&launch), training(&["-n=2", "--backend", backend])] {
            let output = finish(&mut command);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{backend}: {output:?}");
            for part in [backend, "feature", "this build has local"] {
                assert!(text.contains(part), "{backend}: {part}: {text}");
            }
        }
    }
}

#[test]
fn several_ranks_train_together_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = finish(training(&["-n=2", "--output"]).arg(directory.path()));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if connecting(true).next().is_some() {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    } else {
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        assert!(text.contains("leave out -n"), "{text}");
        assert!(files(directory.path()).is_empty(), "it wrote results");
    }
}
