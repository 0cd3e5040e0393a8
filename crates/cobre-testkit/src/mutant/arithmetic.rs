//! Reductions that go wrong.

use cobre_comm::{ReduceOp, Reducible};

use super::fault::Fault;
use crate::number::{NumberKind, from_bits, to_bits};
use crate::oracle::combine;

/// A function from the bits of all ranks to the bits of the result.
pub(super) struct Combination(fn(NumberKind, ReduceOp, &[u64]) -> u64);

impl Combination {
    /// The combination of a communicator with `fault`; `None` if it combines rightly.
    pub(super) fn of(fault: Option<Fault>) -> Option<Self> {
        Some(Self(match fault? {
            Fault::SumFromZero => from_zero,
            Fault::NanAlone => nan_alone,
            Fault::SumReversed => reversed,
            Fault::SumInPairs => in_pairs,
            Fault::SumWide => wide,
            Fault::SumSaturates => saturating,
            Fault::MinSkipsNan => skipping_nan,
            Fault::NanKept => keeping_nan,
            Fault::ZerosEqual => zeros_equal,
            Fault::SignsIgnored => signs_ignored,
            // Right, but each rank by its own operator.
            Fault::OperatorIgnored => combine,
            _ => return None,
        }))
    }

    /// The result of what each rank sends.
    pub(super) fn reduce<T: Reducible>(&self, op: ReduceOp, columns: &[Vec<T>]) -> Vec<T> {
        let kind = NumberKind::of::<T>();
        let row = |index: usize| columns.iter().map(move |rank| to_bits(rank[index]));
        (0..columns[0].len())
            .map(|index| from_bits(self.0(kind, op, &row(index).collect::<Vec<u64>>())))
            .collect()
    }
}

fn from_zero(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    match op {
        ReduceOp::Sum => combine(kind, op, &[&[0], bits].concat()),
        _ => combine(kind, op, bits),
    }
}

fn nan_alone(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    match bits {
        [alone] if is_nan(kind, *alone) => combine(kind, op, &[*alone, *alone]),
        _ => combine(kind, op, bits),
    }
}

fn reversed(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let reversed: Vec<u64> = bits.iter().rev().copied().collect();
    combine(kind, op, &reversed)
}

fn signs_ignored(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    match kind {
        NumberKind::Signed(width) => combine(NumberKind::Unsigned(width), op, bits),
        _ => combine(kind, op, bits),
    }
}

fn in_pairs(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let halves: Vec<u64> = bits.chunks(2).map(|pair| combine(kind, op, pair)).collect();
    combine(kind, op, &halves)
}

/// As a wider register would.
fn wide(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    match (kind, op) {
        (NumberKind::Single, ReduceOp::Sum) => {
            let values = bits
                .iter()
                .map(|&bits| f64::from(f32::from_bits(bits as u32)));
            (values.sum::<f64>() as f32).to_bits().into()
        }
        _ => combine(kind, op, bits),
    }
}

fn saturating(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let (NumberKind::Unsigned(width), ReduceOp::Sum) = (kind, op) else {
        return combine(kind, op, bits);
    };
    let sum: u128 = bits.iter().map(|&bits| u128::from(bits)).sum();
    sum.min((1 << width) - 1) as u64
}

fn is_nan(kind: NumberKind, bits: u64) -> bool {
    match kind {
        NumberKind::Single => f32::from_bits(bits as u32).is_nan(),
        NumberKind::Double => f64::from_bits(bits).is_nan(),
        NumberKind::Signed(_) | NumberKind::Unsigned(_) => false,
    }
}

fn skipping_nan(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let numbers: Vec<u64> = bits.iter().copied().filter(|&b| !is_nan(kind, b)).collect();
    match op {
        ReduceOp::Min if !numbers.is_empty() => combine(kind, op, &numbers),
        _ => combine(kind, op, bits),
    }
}

fn keeping_nan(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let first = bits.iter().copied().find(|&bits| is_nan(kind, bits));
    first.unwrap_or_else(|| combine(kind, op, bits))
}

fn zeros_equal(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    let zero = |bits: &u64| *bits == 0 || *bits == 1 << 63;
    match (kind, op) {
        (NumberKind::Double, ReduceOp::Max) if bits.iter().all(zero) => bits[0],
        _ => combine(kind, op, bits),
    }
}
