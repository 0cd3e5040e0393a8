//! The output and the files of a command.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs it to its end.
pub fn finish(command: &mut Command) -> Output {
    command.output().expect("cobre can be started")
}

/// The JSON line, which must be the last one.
pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text
        .lines()
        .last()
        .unwrap_or_else(|| panic!("no output: {output:?}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"))
}

/// The contents of all files below a directory, by relative name.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .expect("it is below")
                    .display()
                    .to_string();
                found.insert(name, std::fs::read(path).expect("it can be read"));
            }
        }
    }
    found
}

/// Files that hold times, or that are no results.
pub const DIFFERENT: [&str; 4] = [
    "run.json",
    "training/timings.parquet",
    ".lock",
    ".cobre-files",
];

/// The results of a run, without what differs from run to run.
pub fn results(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(output);
    let is_result = |name: &str| !name.starts_with("checkpoint/") && !DIFFERENT.contains(&name);
    files.retain(|name, _| is_result(name));
    files
}

/// The number of the newest complete checkpoint.
pub fn newest_checkpoint(output: &Path) -> Option<usize> {
    let entries = std::fs::read_dir(output.join("checkpoint")).ok()?.flatten();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".json")?.parse().ok()
    };
    entries.filter_map(number).max()
}
