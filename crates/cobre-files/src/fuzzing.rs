//! Fuzz targets: files that anybody may have changed.

use std::fs::File;
use std::path::Path;

use crate::{Most, Register, Table};

/// A name, the reader (of a directory that is its own, and an input), and the mutants of its corpus that a test tries.
pub type Target = (&'static str, fn(&Path, &[u8]), usize);

/// The targets.
pub fn targets() -> Vec<Target> {
    vec![
        ("register", register as _, 1_000),
        ("table", table as _, 2_000),
    ]
}

/// The register of the files that Cobre wrote into a directory: no name leads out of it.
fn register(place: &Path, input: &[u8]) {
    std::fs::write(place.join(".cobre-files"), input).expect("it is written");
    let Ok(register) = Register::open(place) else {
        return;
    };
    let names: Vec<String> = register.names().map(str::to_owned).collect();
    for name in &names {
        assert!(register.holds(name));
        let leaves = name.starts_with('/') || name.split('/').any(|part| part == "..");
        assert!(!leaves, "{name}");
        let _ = register.check(name);
    }
}

/// A Parquet table: the schema, and every column.
fn table(place: &Path, input: &[u8]) {
    let place = place.join("table.parquet");
    std::fs::write(&place, input).expect("it is written");
    let file = File::open(&place).expect("it is there");
    let Ok(table) = Table::open(file, Most::Rows(10_000)) else {
        return;
    };
    for column in 0..table.columns().len() {
        let _ = table.read_all(column);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
