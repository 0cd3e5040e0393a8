//! Policies and checkpoints that somebody has changed on purpose, fingerprints included: errors or other figures, and
//! never a panic, a long wait or much memory.
//!
//! `COBRE_HOSTILE` says how many mutants, `COBRE_HOSTILE_SEED` which.

mod random;
#[path = "../../cobre-case/src/sample.rs"]
mod sample;

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Policy, PolicyFile, Problem, Results, SddpError, Settings, Solver, StopRule, Stopping,
    read_policy, run, write_policy,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use random::{Random, setting};
use sample::{Hydrothermal, hydrothermal};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn problem() -> Problem {
    let size = Hydrothermal {
        stages: 3,
        regions: 1,
        reservoirs: 2,
        thermals: 4,
        blocks: 1,
        lags: 0,
        openings: 3,
        known_start: true,
    };
    hydrothermal(size).expect("sizes are not zero")
}

fn settings(iterations: usize, solver: Solver) -> Settings {
    Settings {
        seed: 3,
        passes: NonZero::new(2).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

fn trained() -> Policy {
    let results = run(
        &LocalBackend,
        problem(),
        &settings(4, Solver::Auto),
        &mut (),
    );
    results
        .expect("it trains")
        .policy
        .expect("this is the first rank")
}

/// Writes the cuts of a policy with another pass in each row.
fn write_cuts(directory: &Path, policy: &Policy, pass: i64) {
    let slopes = policy.manifest.states.iter();
    let slopes: Vec<String> = slopes
        .map(|state| format!("required double slope:{};", state.name))
        .collect();
    let schema = format!(
        "message t {{ required binary node (UTF8); required int64 iteration; required int64 pass; required double \
         intercept; {} }}",
        slopes.join(" ")
    );
    let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
    let file = std::fs::File::create(directory.join("cuts.parquet")).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let nodes = policy.manifest.nodes.iter().zip(&policy.cuts);
    let rows: Vec<&str> = nodes
        .flat_map(|(node, cuts)| cuts.iter().map(|_| node.as_str()))
        .collect();
    let mut place = 0;
    while let Some(mut column) = group.next_column().expect("it is written") {
        match place {
            0 => {
                let names: Vec<ByteArray> = rows.iter().map(|name| (*name).into()).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&names, None, None)
            }
            1 | 2 => {
                let numbers = vec![if place == 1 { 1 } else { pass }; rows.len()];
                column
                    .typed::<Int64Type>()
                    .write_batch(&numbers, None, None)
            }
            _ => {
                let numbers = vec![0.5; rows.len()];
                column
                    .typed::<DoubleType>()
                    .write_batch(&numbers, None, None)
            }
        }
        .expect("it is written");
        column.close().expect("it is written");
        place += 1;
    }
    group.close().expect("it is written");
    writer.close().expect("it is written");
}

fn told(error: &SddpError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

#[test]
fn a_pass_that_cannot_be_is_an_error_with_its_row() {
    let policy = trained();
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    for pass in [i64::MIN, i64::MAX, -1, 0, 3] {
        write_cuts(directory.path(), &policy, pass);
        let error = read_policy(directory.path()).expect_err("no pass has this number");
        let text = told(&error);
        assert!(
            text.contains("row 1: an iteration or pass that cannot be"),
            "{text}"
        );
    }
}

#[test]
fn a_manifest_whose_numbers_cannot_be_is_an_error() {
    let policy = trained();
    for (key, value) in [
        ("forward_passes", serde_json::json!(0)),
        ("forward_passes", serde_json::json!(u64::MAX)),
        ("forward_passes", serde_json::json!(1_u64 << 32)),
        ("cuts", serde_json::json!(u64::MAX)),
        ("cuts", serde_json::json!(0)),
        ("states", serde_json::json!([])),
        ("nodes", serde_json::json!([])),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        write_policy(directory.path(), &policy).expect("it is written");
        let place = directory.path().join("manifest.json");
        let text = std::fs::read(&place).expect("it is there");
        let mut manifest: Value = serde_json::from_slice(&text).expect("it is JSON");
        manifest[key] = value.clone();
        std::fs::write(&place, manifest.to_string()).expect("it is written");
        assert!(read_policy(directory.path()).is_err(), "{key} {value}");
    }
    let mut huge = policy;
    huge.manifest.forward_passes = 1 << 32;
    let directory = tempfile::tempdir().expect("a directory");
    let error = write_policy(directory.path(), &huge).expect_err("it is refused");
    assert!(
        error.to_string().contains("forward_passes is 4294967296"),
        "{error}"
    );
}

#[test]
fn mutants_of_a_policy_are_an_error() {
    let policy = trained();
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    let (count, seed) = (
        setting("COBRE_HOSTILE", 400),
        setting("COBRE_HOSTILE_SEED", 1),
    );
    for name in ["cuts.parquet", "manifest.json"] {
        let place = directory.path().join(name);
        let whole = std::fs::read(&place).expect("it is there");
        for round in 0..count {
            let mut random = Random(seed ^ round << 8);
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            std::fs::write(&place, &bytes).expect("it is written");
            let found = read_policy(directory.path());
            let by_node = PolicyFile::open(directory.path());
            assert_eq!(
                by_node.is_ok(),
                found.is_ok(),
                "{name}, round {round} of seed {seed}"
            );
            if let Ok(found) = found {
                assert_eq!(
                    found.cuts, policy.cuts,
                    "{name}, round {round} of seed {seed}"
                );
            }
        }
        std::fs::write(&place, &whole).expect("it is written");
    }
}

/// A directory in memory where there is one: every run waits until its files are on the disk.
fn scratch() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory
        .or_else(|_| tempfile::tempdir())
        .expect("a directory")
}

/// Goes on from the checkpoint in a directory.
fn resumed(output: &Path, solver: Solver) -> Result<Results, SddpError> {
    let settings = Settings {
        resume: true,
        output: Some(output.to_owned()),
        ..settings(6, solver)
    };
    run(&LocalBackend, problem(), &settings, &mut ())
}

fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hash: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hash.concat()
}

/// A state, with a manifest that says it is sound.
fn put(output: &Path, state: &[u8]) {
    let place = |kind: &str| output.join(format!("checkpoint/00000004.{kind}"));
    let text = std::fs::read(place("json")).expect("it is there");
    let mut manifest: Value = serde_json::from_slice(&text).expect("it is JSON");
    let keys = manifest.as_object_mut().expect("it is an object");
    keys.remove("manifest_sha256").expect("it has its own");
    manifest["sha256"] = sha256(state).into();
    manifest["bytes"] = state.len().into();
    manifest["manifest_sha256"] = sha256(manifest.to_string().as_bytes()).into();
    std::fs::write(place("json"), manifest.to_string()).expect("it is written");
    std::fs::write(place("state"), state).expect("it is written");
}

#[test]
fn mutants_of_a_checkpoint_with_the_right_fingerprint_are_an_error_or_other_figures() {
    let (count, seed) = (
        setting("COBRE_HOSTILE", 300),
        setting("COBRE_HOSTILE_SEED", 1),
    );
    for solver in [Solver::Kernel, Solver::Highs] {
        let scratch = scratch();
        let output = scratch.path().join("output");
        let first = Settings {
            checkpoints: Cadence::Iterations(4),
            output: Some(output.clone()),
            ..settings(4, solver)
        };
        run(&LocalBackend, problem(), &first, &mut ()).expect("it trains");
        let state = std::fs::read(output.join("checkpoint/00000004.state")).expect("it is there");
        let (mut refused, mut went_on) = (0, 0);
        for round in 0..count {
            let mut random = Random(seed ^ round << 8);
            let mut bytes = state.clone();
            // Half of them at the beginning, where the figures and the cuts are.
            let end = if random.below(2) == 0 {
                bytes.len().min(400)
            } else {
                bytes.len()
            };
            for _ in 0..=random.below(2) {
                let at = random.below(end);
                match random.below(4) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                    2 => bytes[at] = random.below(256) as u8,
                    _ => {
                        bytes.remove(at);
                    }
                }
            }
            put(&output, &bytes);
            let start = Instant::now();
            match resumed(&output, solver) {
                Ok(_) => went_on += 1,
                Err(_) => refused += 1,
            }
            let took = start.elapsed();
            assert!(
                took < Duration::from_secs(30),
                "round {round} of seed {seed}: {took:?}"
            );
            // Whatever the run has left is not the state of the next round.
            for kind in ["json", "state"] {
                let _ = std::fs::remove_file(output.join(format!("checkpoint/00000006.{kind}")));
            }
        }
        assert!(refused > count / 10, "{refused} refused, {went_on} went on");
    }
}
