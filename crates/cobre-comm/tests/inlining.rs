//! A barrier in a world of one costs nothing: the compiled code shows it.

use std::process::Command;

use cobre_comm::{Communicator, LocalBackend};

#[inline(never)]
fn barrier_in_a_world_of_one(comm: LocalBackend) -> bool {
    comm.barrier().is_ok()
}

/// The instructions of the function above, as `objdump` shows them in this very program.
fn instructions() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("objdump")
        .args(["--disassemble", "--demangle", "--no-show-raw-insn"])
        .arg(program)
        .output()
        .expect("objdump, from binutils, is installed by ci/setup.sh");
    let text = String::from_utf8_lossy(&output.stdout);
    let body = text
        .lines()
        .skip_while(|line| !line.contains("barrier_in_a_world_of_one") || !line.ends_with(">:"))
        .skip(1)
        .take_while(|line| !line.is_empty());
    body.filter_map(|line| line.split_once('\t'))
        .map(|(_, instruction)| instruction.trim().to_owned())
        .take_while(|instruction| {
            !instruction.starts_with("int3") && !instruction.starts_with("nop")
        })
        .collect()
}

#[test]
fn a_local_barrier_compiles_to_nothing() {
    let barrier: fn(LocalBackend) -> bool = barrier_in_a_world_of_one;
    assert!(std::hint::black_box(barrier)(LocalBackend));
    let instructions = instructions();
    assert!(!instructions.is_empty(), "the function was not found");
    if cfg!(debug_assertions) {
        return; // An unoptimised build promises nothing.
    }
    // `true` into the return register, and back.
    assert!(instructions.len() <= 2, "{instructions:#?}");
}
