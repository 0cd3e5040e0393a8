//! Types that may travel between ranks, and the reduction of numbers.

use bytemuck::Pod;
use cobre_simd::vectorized;

use crate::communicator::ReduceOp;

/// Plain data that any backend moves as bytes: every [`bytemuck::Pod`] type, user-defined ones
/// included, in every build.
///
/// A type without any bytes is refused when the call is compiled:
///
/// ```compile_fail,E0080
/// use cobre_comm::{Communicator, LocalBackend};
/// LocalBackend.broadcast(&mut [(), ()], 0).unwrap();
/// ```
pub trait CommData: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> CommData for T {}

/// Refuses, at compile time, types that no region could hold; each generic collective calls it.
pub(crate) const fn refuse_unfit<T>() {
    const { assert!(size_of::<T>() > 0, "a zero-sized type carries no data") }
    const {
        assert!(
            align_of::<T>() <= 4096,
            "shared memory is aligned to pages, not beyond"
        );
    }
}

/// A number that ranks can sum or compare. Sealed: the set is the same in every build.
///
/// The rules, the same on every backend: integers wrap. A sum starts from rank 0's element, so
/// −0.0 + −0.0 is −0.0. `Min` and `Max` order −0.0 below 0.0. A combination that yields NaN yields
/// the one quiet NaN `NAN` of its type, for any operator, whatever NaN went in.
pub trait Reducible: CommData + PartialEq + sealed::Number {}

mod sealed {
    /// The combinations themselves.
    pub trait Number: Copy {
        fn sum(self, next: Self) -> Self;
        fn min(self, next: Self) -> Self;
        fn max(self, next: Self) -> Self;
    }
}
use sealed::Number;

/// `into[i] = a[i] ∘ b[i]`, for what ranks 0 and 1 bring.
fn combine_pair<T: Reducible>(into: &mut [T], a: &[T], b: &[T], op: ReduceOp) {
    assert!(
        into.len() == a.len() && into.len() == b.len(),
        "ranks agreed on the length"
    );
    // One loop per operator, so that each vectorises.
    let places = into.iter_mut().zip(a.iter().zip(b));
    vectorized(
        #[inline(always)]
        || match op {
            ReduceOp::Sum => places.for_each(|(into, (a, b))| *into = Number::sum(*a, *b)),
            ReduceOp::Min => places.for_each(|(into, (a, b))| *into = Number::min(*a, *b)),
            ReduceOp::Max => places.for_each(|(into, (a, b))| *into = Number::max(*a, *b)),
        },
    );
}

/// `so_far[i] = so_far[i] ∘ next[i]`, for what each rank after them brings.
fn combine<T: Reducible>(so_far: &mut [T], next: &[T], op: ReduceOp) {
    assert!(so_far.len() == next.len(), "ranks agreed on the length");
    let places = so_far.iter_mut().zip(next);
    vectorized(
        #[inline(always)]
        || match op {
            ReduceOp::Sum => places.for_each(|(a, b)| *a = Number::sum(*a, *b)),
            ReduceOp::Min => places.for_each(|(a, b)| *a = Number::min(*a, *b)),
            ReduceOp::Max => places.for_each(|(a, b)| *a = Number::max(*a, *b)),
        },
    );
}

/// Reduces what the ranks bring, in rank order: the one definition that every backend keeps to.
#[allow(
    dead_code,
    reason = "in a build with one-rank backends alone nothing is combined"
)]
pub(crate) fn reduce<'a, T: Reducible>(
    into: &mut [T],
    ranks: impl IntoIterator<Item = &'a [T]>,
    op: ReduceOp,
) {
    let mut ranks = ranks.into_iter();
    match (ranks.next(), ranks.next()) {
        (Some(a), Some(b)) => combine_pair(into, a, b, op),
        (Some(only), None) => into.copy_from_slice(only),
        (None, _) => {}
    }
    ranks.for_each(|next| combine(into, next, op));
}

/// Goes on with what [`reduce`] has made of the ranks before: combines what further ranks bring, in rank order.
#[allow(
    dead_code,
    reason = "of the backends only tcp hands on what is not finished"
)]
pub(crate) fn reduce_onto<'a, T: Reducible>(
    so_far: &mut [T],
    ranks: impl IntoIterator<Item = &'a [T]>,
    op: ReduceOp,
) {
    let ranks = ranks.into_iter();
    ranks.for_each(|next| combine(so_far, next, op));
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Reducible for $t {}
        impl Number for $t {
            #[inline(always)]
            fn sum(self, next: Self) -> Self {
                self.wrapping_add(next)
            }
            #[inline(always)]
            fn min(self, next: Self) -> Self {
                Ord::min(self, next)
            }
            #[inline(always)]
            fn max(self, next: Self) -> Self {
                Ord::max(self, next)
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Reducible for $t {}
        impl Number for $t {
            #[inline(always)]
            fn sum(self, next: Self) -> Self {
                let sum = self + next;
                if sum.is_nan() { Self::NAN } else { sum }
            }
            #[inline(always)]
            fn min(self, next: Self) -> Self {
                if self < next {
                    self
                } else if next < self {
                    next
                } else if self == next {
                    // Equal numbers have equal bits, except zeros: −0.0 wins.
                    Self::from_bits(self.to_bits() | next.to_bits())
                } else {
                    Self::NAN
                }
            }
            #[inline(always)]
            fn max(self, next: Self) -> Self {
                if self > next {
                    self
                } else if next > self {
                    next
                } else if self == next {
                    Self::from_bits(self.to_bits() & next.to_bits())
                } else {
                    Self::NAN
                }
            }
        }
    )*};
}
floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to combine two numbers must give the same bits.
    fn bits(a: f64, b: f64, op: ReduceOp) -> u64 {
        let (mut pair, mut next) = ([0.0], [a]);
        reduce(&mut pair, [&[a][..], &[b]], op);
        combine(&mut next, &[b], op);
        assert_eq!(pair[0].to_bits(), next[0].to_bits());
        pair[0].to_bits()
    }

    #[test]
    fn zeros_keep_their_signs() {
        assert_eq!(bits(-0.0, -0.0, ReduceOp::Sum), (-0.0f64).to_bits());
        assert_eq!(bits(-0.0, 0.0, ReduceOp::Sum), 0.0f64.to_bits());
        for (a, b) in [(-0.0, 0.0), (0.0, -0.0)] {
            assert_eq!(bits(a, b, ReduceOp::Min), (-0.0f64).to_bits());
            assert_eq!(bits(a, b, ReduceOp::Max), 0.0f64.to_bits());
        }
    }

    #[test]
    fn any_nan_gives_the_one_nan() {
        let odd = f64::from_bits(0xfff8_0000_dead_beef);
        for op in [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max] {
            for (a, b) in [(odd, 1.0), (1.0, odd), (odd, odd), (f64::NAN, odd)] {
                assert_eq!(bits(a, b, op), f64::NAN.to_bits(), "{op:?} {a} {b}");
            }
        }
        let inf = f64::INFINITY;
        assert_eq!(bits(inf, -inf, ReduceOp::Sum), f64::NAN.to_bits());
    }

    #[test]
    fn infinities_are_ordinary_extremes() {
        assert_eq!(bits(f64::INFINITY, 1.0, ReduceOp::Min), 1f64.to_bits());
        assert_eq!(bits(f64::NEG_INFINITY, 1.0, ReduceOp::Max), 1f64.to_bits());
    }

    #[test]
    fn integers_wrap() {
        let mut so_far = [i8::MAX, i8::MIN];
        combine(&mut so_far, &[1, -1], ReduceOp::Sum);
        assert_eq!(so_far, [i8::MIN, i8::MAX]);
    }

    #[test]
    fn ranks_are_combined_in_their_order() {
        let (big, tiny) = (1e300, 1e-300);
        let mut sum = [0.0];
        let ranks: [&[f64]; 4] = [&[tiny], &[big], &[-big], &[tiny]];
        reduce(&mut sum, ranks, ReduceOp::Sum);
        assert_eq!(sum, [tiny]);
    }
}
