//! Numbers of calls by kind and by way, summed over the ranks at the end.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::communicators::BACKEND;
use crate::mpich;

/// The collectives of the layer.
#[derive(Clone, Copy)]
pub enum Kind {
    Barrier,
    Broadcast,
    Allgather,
    Allgatherv,
    Allreduce,
}

const KINDS: [(&str, Kind); 5] = [
    ("barrier", Kind::Barrier),
    ("broadcast", Kind::Broadcast),
    ("allgather", Kind::Allgather),
    ("allgatherv", Kind::Allgatherv),
    ("allreduce", Kind::Allreduce),
];

/// The way that a call took.
#[derive(Clone, Copy)]
pub enum Way {
    /// Over Cobre's backend.
    Carried,
    /// To MPICH, as the communicator has two groups.
    Intercommunicator,
    /// To MPICH, as Cobre does not reduce by the operator.
    Operator,
    /// To MPICH, as Cobre does not reduce the type.
    Datatype,
    /// To MPICH, which refuses its arguments.
    Refused,
}

const WAYS: [(&str, Way); 5] = [
    ("carried", Way::Carried),
    ("intercommunicator", Way::Intercommunicator),
    ("operator", Way::Operator),
    ("datatype", Way::Datatype),
    ("refused", Way::Refused),
];

/// A counter per kind, per way, and for plain number types (1) and others (0).
static COUNTERS: LazyLock<Vec<AtomicU64>> = LazyLock::new(|| {
    let number = KINDS.len() * WAYS.len() * 2;
    (0..number).map(|_| AtomicU64::new(0)).collect()
});

fn place(kind: Kind, way: Way, plain: bool) -> usize {
    (kind as usize * WAYS.len() + way as usize) * 2 + usize::from(plain)
}

/// Counts a call; `plain` if all its types are plain numbers.
pub fn count(kind: Kind, way: Way, plain: bool) {
    COUNTERS[place(kind, way, plain)].fetch_add(1, Ordering::Relaxed);
}

/// Writes the sums over all ranks of the world as JSON, on rank 0.
pub fn write() {
    let mine: Vec<u64> = COUNTERS
        .iter()
        .map(|counter| counter.load(Ordering::Relaxed))
        .collect();
    let sums = mpich::sum_of_world(&mine);
    if mpich::rank(mpich::WORLD) != Some(0) {
        return;
    }
    let text = json(&sums);
    match std::env::var_os("PMPI_COUNTS") {
        Some(path) => std::fs::write(path, text).expect("pmpi: the file for the numbers"),
        None => eprint!("pmpi: {text}"),
    }
}

fn json(sums: &[u64]) -> String {
    let ways = |kind: Kind| {
        let of_way = |(name, way): (&str, Way)| {
            let (other, plain) = (sums[place(kind, way, false)], sums[place(kind, way, true)]);
            format!(r#""{name}": {{"plain": {plain}, "other": {other}}}"#)
        };
        WAYS.map(of_way).join(", ")
    };
    let kinds = KINDS.map(|(name, kind)| format!(r#""{name}": {{{}}}"#, ways(kind)));
    format!(
        "{{\"backend\": \"{}\", \"calls\": {{{}}}}}\n",
        *BACKEND,
        kinds.join(", ")
    )
}
