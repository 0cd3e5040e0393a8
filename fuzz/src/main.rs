//! One program for every fuzz target: `COBRE_FUZZ_TARGET` names it, `COBRE_FUZZ_DIRECTORY` is its own to write in.
#![no_main]

mod allocation;

// The program begins in it.
use libfuzzer_sys as _;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The targets of all crates.
fn targets() -> Vec<cobre_comm::fuzzing::Target> {
    let all = [
        cobre_comm::fuzzing::targets(),
        cobre_files::fuzzing::targets(),
        cobre_results::fuzzing::targets(),
        cobre_sddp::fuzzing::targets(),
        cobre_case::fuzzing::targets(),
    ];
    all.concat()
}

struct Chosen {
    run: fn(&Path, &[u8]),
    place: PathBuf,
}

static CHOSEN: LazyLock<Chosen> = LazyLock::new(|| {
    // libFuzzer's hook ends the process at a panic that a reader catches and reports as an error.
    drop(std::panic::take_hook());
    let name = std::env::var("COBRE_FUZZ_TARGET").unwrap_or_default();
    let Some((_, run, _)) = targets().into_iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = targets().into_iter().map(|(name, ..)| name).collect();
        eprintln!("targets: {}", names.join(" "));
        std::process::exit(2);
    };
    let place = std::env::var_os("COBRE_FUZZ_DIRECTORY").expect("a directory to write in");
    let chosen = Chosen {
        run,
        place: place.into(),
    };
    // What a target makes once counts for no input.
    (chosen.run)(&chosen.place, b"");
    chosen
});

/// The one function that libFuzzer calls; it catches a panic and reports the input.
#[unsafe(no_mangle)]
pub extern "Rust" fn rust_fuzzer_test_input(input: &[u8]) -> i32 {
    let chosen = &*CHOSEN;
    allocation::bounded(input, || (chosen.run)(&chosen.place, input));
    0
}
