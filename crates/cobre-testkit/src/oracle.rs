//! The result of a reduction, computed serially from all ranks' numbers.
//!
//! The rules are stated here a second time and in another way than the communication layer does:
//! integers by exact arithmetic, minima and maxima by IEEE 754's total order, all on bit patterns.

use cobre_comm::{ReduceOp, Reducible};

use crate::number::{NumberKind, from_bits, to_bits};

/// Every operator.
pub const OPERATORS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max];

/// The result of reducing `sent`, one entry per rank, all of one length.
pub fn reduce<T: Reducible>(op: ReduceOp, sent: &[Vec<T>]) -> Vec<T> {
    let kind = NumberKind::of::<T>();
    let mut column = Vec::with_capacity(sent.len());
    (0..sent[0].len())
        .map(|index| {
            column.clear();
            column.extend(sent.iter().map(|rank| to_bits(rank[index])));
            from_bits(combine(kind, op, &column))
        })
        .collect()
}

/// The bits that the ranks' bits combine to.
pub fn combine(kind: NumberKind, op: ReduceOp, bits: &[u64]) -> u64 {
    match (bits, kind) {
        ([alone], _) => *alone,
        (_, NumberKind::Signed(width)) => {
            let spare = 64 - width;
            let widen = |&bits: &u64| i128::from((bits << spare).cast_signed() >> spare);
            narrow(exact(op, bits.iter().map(widen)), width)
        }
        (_, NumberKind::Unsigned(width)) => {
            narrow(exact(op, bits.iter().map(|&b| b.into())), width)
        }
        (_, NumberKind::Single) => {
            let values = bits.iter().map(|&bits| f32::from_bits(bits as u32));
            let result = match op {
                ReduceOp::Sum => values.reduce(|sum, next| sum + next),
                _ if values.clone().any(f32::is_nan) => None,
                ReduceOp::Min => values.min_by(f32::total_cmp),
                ReduceOp::Max => values.max_by(f32::total_cmp),
            };
            let number = result.filter(|result| !result.is_nan());
            number.unwrap_or(f32::NAN).to_bits().into()
        }
        (_, NumberKind::Double) => {
            let values = bits.iter().map(|&bits| f64::from_bits(bits));
            let result = match op {
                ReduceOp::Sum => values.reduce(|sum, next| sum + next),
                _ if values.clone().any(f64::is_nan) => None,
                ReduceOp::Min => values.min_by(f64::total_cmp),
                ReduceOp::Max => values.max_by(f64::total_cmp),
            };
            let number = result.filter(|result| !result.is_nan());
            number.unwrap_or(f64::NAN).to_bits()
        }
    }
}

fn exact(op: ReduceOp, values: impl Iterator<Item = i128>) -> i128 {
    match op {
        ReduceOp::Sum => values.sum(),
        ReduceOp::Min => values.min().expect("at least one rank"),
        ReduceOp::Max => values.max().expect("at least one rank"),
    }
}

/// The low `width` bits: what wrapping leaves of an exact result.
fn narrow(value: i128, width: u32) -> u64 {
    value as u64 & (u64::MAX >> (64 - width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Reducible>(op: ReduceOp, ranks: &[T]) -> u64 {
        let sent: Vec<Vec<T>> = ranks.iter().map(|&number| vec![number]).collect();
        to_bits(reduce(op, &sent)[0])
    }

    #[test]
    fn integers_wrap_around_their_own_width() {
        assert_eq!(of(ReduceOp::Sum, &[i8::MAX, 1]), 0x80);
        assert_eq!(of(ReduceOp::Sum, &[i8::MIN, -1, -1]), 126);
        assert_eq!(of(ReduceOp::Sum, &[u64::MAX, 2]), 1);
        assert_eq!(of(ReduceOp::Sum, &[i64::MIN, i64::MIN]), 0);
    }

    #[test]
    fn signs_count_for_signed_integers_alone() {
        assert_eq!(of(ReduceOp::Min, &[1i16, -1]), 0xffff);
        assert_eq!(of(ReduceOp::Min, &[1u16, 0xffff]), 1);
        assert_eq!(of(ReduceOp::Max, &[1u16, 0xffff]), 0xffff);
    }

    #[test]
    fn sums_are_taken_in_rank_order() {
        assert_eq!(of(ReduceOp::Sum, &[1e16, 1.0, -1e16]), 0f64.to_bits());
        assert_eq!(of(ReduceOp::Sum, &[1e16, -1e16, 1.0]), 1f64.to_bits());
        assert_eq!(of(ReduceOp::Sum, &[3e7f32, 1.0, -3e7]), 0);
    }

    #[test]
    fn zeros_are_ordered_by_sign_and_sums_start_from_the_first_rank() {
        assert_eq!(of(ReduceOp::Min, &[0.0, -0.0]), (-0.0f64).to_bits());
        assert_eq!(of(ReduceOp::Max, &[-0.0, 0.0]), 0);
        assert_eq!(of(ReduceOp::Sum, &[-0.0, -0.0]), (-0.0f64).to_bits());
    }

    #[test]
    fn any_nan_gives_the_one_nan_and_a_single_rank_keeps_its_own() {
        let odd = f64::from_bits(0xfff8_0000_dead_beef);
        for op in OPERATORS {
            assert_eq!(of(op, &[1.0, odd, 2.0]), f64::NAN.to_bits());
            assert_eq!(of(op, &[odd]), odd.to_bits());
        }
        let inf = f32::INFINITY;
        assert_eq!(
            of(ReduceOp::Sum, &[inf, -inf]),
            u64::from(f32::NAN.to_bits())
        );
    }
}
