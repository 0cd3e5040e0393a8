//! Fuzz targets: policies and checkpoints that anybody may have changed, with fingerprints that are right.

use std::num::NonZero;
use std::path::Path;
use std::sync::OnceLock;

use cobre_comm::LocalBackend;
use cobre_results::layout::{CHECKPOINT, POLICY_FILES};
use serde_json::Value;

use crate::checkpoint::Cadence;
use crate::fingerprint::Fingerprint;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::training::{StopRule, Stopping};
use crate::{read_policy, run};

#[path = "../../cobre-case/src/sample.rs"]
pub(crate) mod sample;

/// A name, the reader (of a directory that is its own, and an input), and the mutants of its corpus that a test tries.
pub type Target = (&'static str, fn(&Path, &[u8]), usize);

/// The targets.
pub fn targets() -> Vec<Target> {
    vec![
        ("policy", policy as _, 1_000),
        ("checkpoint", checkpoint as _, 100),
    ]
}

/// The iterations of the checkpoint.
const KEPT: usize = 2;

fn problem() -> Problem {
    let size = sample::Hydrothermal {
        stages: 2,
        regions: 1,
        reservoirs: 1,
        thermals: 2,
        blocks: 1,
        lags: 0,
        openings: 2,
        known_start: true,
    };
    sample::hydrothermal(size).expect("sizes are not zero")
}

fn settings(place: &Path, iterations: usize) -> Settings {
    Settings {
        passes: NonZero::new(2).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        checkpoints: Cadence::Iterations(KEPT),
        output: Some(place.join("output")),
        ..Settings::default()
    }
}

/// Trains once, for the files of a policy and of a checkpoint.
fn train(place: &Path) {
    run(&LocalBackend, problem(), &settings(place, KEPT), &mut ()).expect("it trains");
}

/// The files of a policy. The first line of an input is the name of one, the rest its content.
fn policy(place: &Path, input: &[u8]) {
    static TRAINED: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let directory = place.join("output/policy");
    let sound = TRAINED.get_or_init(|| {
        train(place);
        POLICY_FILES.map(|name| std::fs::read(directory.join(name)).expect("it is there"))
    });
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    for (name, sound) in POLICY_FILES.iter().zip(sound) {
        let is_meant = name.as_bytes() == &input[..end];
        let content = if is_meant { &input[end + 1..] } else { sound };
        std::fs::write(directory.join(name), content).expect("it is written");
    }
    let _ = read_policy(&directory);
}

/// The state of a checkpoint, from which a run resumes.
fn checkpoint(place: &Path, input: &[u8]) {
    static TRAINED: OnceLock<()> = OnceLock::new();
    TRAINED.get_or_init(|| train(place));
    let file = |iteration: usize, kind: &str| {
        let name = format!("{CHECKPOINT}/{iteration:08}.{kind}");
        place.join("output").join(name)
    };
    let text = std::fs::read(file(KEPT, "json")).expect("it is there");
    let mut manifest: Value = serde_json::from_slice(&text).expect("it is JSON");
    manifest
        .as_object_mut()
        .expect("an object")
        .remove("manifest_sha256");
    manifest["sha256"] = Fingerprint::of_parts(&[input]).to_string().into();
    manifest["bytes"] = input.len().into();
    let own = Fingerprint::of_parts(&[manifest.to_string().as_bytes()]);
    manifest["manifest_sha256"] = own.to_string().into();
    std::fs::write(file(KEPT, "json"), manifest.to_string()).expect("it is written");
    std::fs::write(file(KEPT, "state"), input).expect("it is written");
    let settings = Settings {
        resume: true,
        checkpoints: Cadence::Never,
        ..settings(place, KEPT + 1)
    };
    let _ = run(&LocalBackend, problem(), &settings, &mut ());
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
