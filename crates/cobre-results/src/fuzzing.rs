//! Fuzz targets: results that anybody may have changed.

use std::path::Path;

use crate::layout::{DICTIONARY, MANIFEST, RUN, in_policy};
use crate::{Results, dictionary};

/// A name, the reader (of a directory that is its own, and an input), and the mutants of its corpus that a test tries.
pub type Target = (&'static str, fn(&Path, &[u8]), usize);

/// The targets.
pub fn targets() -> Vec<Target> {
    vec![
        ("dictionary", dictionary as _, 10_000),
        ("results", results as _, 1_000),
    ]
}

/// The text of a `dictionary.csv`.
fn dictionary(_: &Path, input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(tables) = dictionary::tables(text) {
        let entries = dictionary::entries(text).expect("it has rows");
        assert!(tables.len() <= entries.count());
    }
}

/// A sound file of each kind.
const SOUND: [(&str, &str); 2] = [
    (RUN, r#"{"cobre": "0.1.0", "kind": "hydrothermal"}"#),
    (
        DICTIONARY,
        "file,column,unit,meaning\ntraining/convergence.parquet,bound,,\n",
    ),
];

/// A directory of results. The first line of an input is the path of a file in it, the rest its content.
fn results(place: &Path, input: &[u8]) {
    let table = crate::layout::parquet("training/convergence");
    for (name, content) in SOUND {
        std::fs::write(place.join(name), content).expect("it is written");
    }
    for folder in ["policy", "training"] {
        std::fs::create_dir_all(place.join(folder)).expect("a directory");
    }
    std::fs::write(place.join(in_policy(MANIFEST)), "{}").expect("it is written");
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let known = [RUN, DICTIONARY, &in_policy(MANIFEST), &table];
    let Some(name) = known
        .into_iter()
        .find(|name| name.as_bytes() == &input[..end])
    else {
        return;
    };
    std::fs::write(place.join(name), &input[end + 1..]).expect("it is written");
    let Ok(results) = Results::open(place) else {
        return;
    };
    for name in &results.tables {
        if let Ok(Some(table)) = results.table(name) {
            let _ = table.all_numbers("bound");
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
