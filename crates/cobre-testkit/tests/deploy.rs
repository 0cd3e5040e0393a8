//! The manifests in `examples/deploy` are well-formed and set nothing that does not exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cobre_comm::env;

fn manifests() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy");
    let entries = fs::read_dir(folder).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn every_manifest_is_yaml() {
    let script =
        "import sys, yaml; print(len([d for d in yaml.safe_load_all(open(sys.argv[1])) if d]))";
    for path in manifests() {
        let mut read = Command::new("python3");
        read.args(["-c", script]).arg(&path);
        let output = read.output().expect("python3 is there");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("No module named 'yaml'") {
            assert!(std::env::var_os("CI").is_none(), "skipped in CI: {said}");
            println!("skipped: python3-yaml is not installed");
            return;
        }
        assert!(output.status.success(), "{}: {said}", path.display());
        assert_ne!(output.stdout, b"0\n", "{} is empty", path.display());
    }
}

#[test]
fn every_variable_of_a_manifest_exists_and_all_that_a_rank_needs_are_there() {
    let known = [
        env::COMM_BACKEND,
        env::TCP_RANK,
        env::TCP_SIZE,
        env::TCP_PORT,
        env::TCP_COORDINATOR,
        env::TCP_BIND,
        env::TCP_SECRET_FILE,
    ];
    for path in manifests() {
        let text = fs::read_to_string(&path).unwrap();
        let letter = |c: char| c.is_ascii_uppercase() || c == '_';
        let words = text
            .split(|c| !letter(c))
            .filter(|word| word.starts_with("COBRE_"));
        let mut found: Vec<&str> = words.filter(|word| *word != "COBRE_IMAGE").collect();
        found.sort_unstable();
        found.dedup();
        // What the process manager says need not be set.
        let told = text.contains("completionMode: Indexed");
        let needed = [env::TCP_SIZE, env::TCP_SECRET_FILE];
        let mut expected = if told {
            needed.to_vec()
        } else {
            known.to_vec()
        };
        expected.sort_unstable();
        assert_eq!(found, expected, "{}", path.display());
    }
}
