//! Collectives in a world of one cost their copies and nothing else: the compiled code shows it.
//!
//! Each function below calls one collective through a caller that is generic over the communicator,
//! as programs do, and is then disassembled in this very program.

use std::process::Command;

use cobre_comm::{CommError, Communicator, LocalBackend, ReduceOp};

/// Elements of an allreduce and of an allgatherv. They differ: functions of the same instructions are
/// merged into one, under one of their names.
const REDUCED: usize = 4;
const GATHERED: usize = 5;

/// The callers: what a program generic over [`Communicator`] writes.
mod generic {
    use super::{CommError, Communicator, GATHERED, REDUCED, ReduceOp};

    pub fn barrier<C: Communicator>(comm: &C) -> Result<(), CommError> {
        comm.barrier()
    }

    pub fn broadcast<C: Communicator>(comm: &C, buf: &mut [f64; REDUCED]) -> Result<(), CommError> {
        comm.broadcast(buf, 0)
    }

    pub fn sum<C: Communicator>(
        comm: &C,
        send: &[f64; REDUCED],
        recv: &mut [f64; REDUCED],
    ) -> Result<(), CommError> {
        comm.allreduce(send, recv, ReduceOp::Sum)
    }

    pub fn allgatherv<C: Communicator>(
        comm: &C,
        send: &[f64; GATHERED],
        recv: &mut [f64; GATHERED],
    ) -> Result<(), CommError> {
        comm.allgatherv(send, recv, &[GATHERED], &[0])
    }
}

#[inline(never)]
fn barrier_in_a_world_of_one() -> bool {
    generic::barrier(&LocalBackend).is_ok()
}

#[inline(never)]
fn broadcast_in_a_world_of_one(buf: &mut [f64; REDUCED]) -> bool {
    generic::broadcast(&LocalBackend, buf).is_ok()
}

#[inline(never)]
fn allreduce_in_a_world_of_one(send: &[f64; REDUCED], recv: &mut [f64; REDUCED]) -> bool {
    generic::sum(&LocalBackend, send, recv).is_ok()
}

#[inline(never)]
fn allgatherv_in_a_world_of_one(send: &[f64; GATHERED], recv: &mut [f64; GATHERED]) -> bool {
    generic::allgatherv(&LocalBackend, send, recv).is_ok()
}

/// The instructions of the function of this program that has this name, as `objdump` shows them.
fn instructions(name: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("objdump")
        .args(["--disassemble", "--demangle", "--no-show-raw-insn"])
        .arg(program)
        .output()
        .expect("objdump, from binutils, is installed by ci/setup.sh");
    let text = String::from_utf8_lossy(&output.stdout);
    let body = text
        .lines()
        .skip_while(|line| !line.contains(name) || !line.ends_with(">:"))
        .skip(1)
        .take_while(|line| !line.is_empty());
    let found: Vec<String> = body
        .filter_map(|line| line.split_once('\t'))
        .map(|(_, instruction)| instruction.trim().to_owned())
        .take_while(|instruction| {
            !instruction.starts_with("int3") && !instruction.starts_with("nop")
        })
        .collect();
    assert!(!found.is_empty(), "{name} was not found");
    found
}

/// Asserts that a function is `copies` moves of data, `true` into the return register, and back.
/// An unoptimised build promises nothing.
fn assert_is_copies_alone(name: &str, copies: usize) {
    let instructions = instructions(name);
    if cfg!(debug_assertions) {
        return;
    }
    assert!(
        instructions.len() <= copies + 2,
        "{name}: {instructions:#?}"
    );
    for forbidden in ["call", "j", "lock"] {
        let found = instructions
            .iter()
            .any(|found| found.starts_with(forbidden));
        assert!(!found, "{name} has {forbidden}: {instructions:#?}");
    }
}

/// A load and a store of each of `count` words of eight bytes.
const fn words(count: usize) -> usize {
    2 * count
}

#[test]
fn a_local_barrier_compiles_to_nothing() {
    let barrier: fn() -> bool = barrier_in_a_world_of_one;
    assert!(std::hint::black_box(barrier)());
    assert_is_copies_alone("barrier_in_a_world_of_one", 0);
}

#[test]
fn a_local_broadcast_compiles_to_nothing() {
    let broadcast: fn(&mut [f64; REDUCED]) -> bool = broadcast_in_a_world_of_one;
    assert!(std::hint::black_box(broadcast)(&mut [1.0; REDUCED]));
    assert_is_copies_alone("broadcast_in_a_world_of_one", 0);
}

#[test]
fn a_local_allreduce_compiles_to_its_copy() {
    let allreduce: fn(&[f64; REDUCED], &mut [f64; REDUCED]) -> bool = allreduce_in_a_world_of_one;
    let (send, mut recv) = ([1.0, 2.0, 3.0, 4.0], [0.0; REDUCED]);
    assert!(std::hint::black_box(allreduce)(&send, &mut recv));
    assert_eq!(recv, send);
    assert_is_copies_alone("allreduce_in_a_world_of_one", words(REDUCED));
}

#[test]
fn a_local_allgatherv_compiles_to_its_copy() {
    let allgatherv: fn(&[f64; GATHERED], &mut [f64; GATHERED]) -> bool =
        allgatherv_in_a_world_of_one;
    let (send, mut recv) = ([1.0, 2.0, 3.0, 4.0, 5.0], [0.0; GATHERED]);
    assert!(std::hint::black_box(allgatherv)(&send, &mut recv));
    assert_eq!(recv, send);
    assert_is_copies_alone("allgatherv_in_a_world_of_one", words(GATHERED));
}
