#![expect(
    unsafe_code,
    reason = "calls code compiled for AVX2 on processors that report AVX2"
)]
//! Loops compiled for the vector instructions of the processor they run on.
//!
//! [`vectorized`] compiles work of the caller, [`places_above`] lists places, which compilers do not vectorise. Element-wise
//! work gives the same bits with either set of instructions: AVX2 without fused multiply-add, as the compiler never contracts
//! `a * b + c`.
//!
//! ```
//! let (a, b) = (vec![1.5; 1000], vec![2.0; 1000]);
//! let mut sum = vec![0.0; 1000];
//! cobre_simd::vectorized(
//!     #[inline(always)]
//!     || {
//!         for (sum, (a, b)) in sum.iter_mut().zip(a.iter().zip(&b)) {
//!             *sum = a + b;
//!         }
//!     },
//! );
//! assert_eq!(sum, vec![3.5; 1000]);
//! ```

/// Runs `work`, compiled for AVX2 where the processor has it, else for the baseline of the target.
/// `work` and all it calls must be `#[inline(always)]` to profit.
#[inline]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Places that [`places_above`] may write beyond those it lists.
pub const SPARE_PLACES: usize = LANES;

/// Elements of a vector.
const LANES: usize = 4;

/// Lists the places of the elements whose magnitude is above `least`, in order; returns their number. `places` has room for
/// a place for each element and for [`SPARE_PLACES`] more.
///
/// # Panics
/// If `places` has less room.
///
/// ```
/// let mut places = [0; 6 + cobre_simd::SPARE_PLACES];
/// let count = cobre_simd::places_above(&[0.0, -2.0, 1.0, 3.0, 0.5, -1.5], 1.0, &mut places);
/// assert_eq!(places[..count], [1, 3, 5]);
/// ```
pub fn places_above(elements: &[f64], least: f64, places: &mut [u32]) -> usize {
    assert!(
        places.len() >= elements.len() + SPARE_PLACES,
        "there is no room for all places"
    );
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, and `places` has the room that is asked for.
        return unsafe { places_above_by_avx2(elements, least, places) };
    }
    places_above_from(0, elements, least, (places, 0))
}

/// Lists the places from `first` on after the first `count` of `places`.
fn places_above_from(
    first: usize,
    elements: &[f64],
    least: f64,
    (places, mut count): (&mut [u32], usize),
) -> usize {
    // Without a branch for each element.
    for (at, element) in elements.iter().enumerate().skip(first) {
        places[count] = at as u32;
        count += usize::from(element.abs() > least);
    }
    count
}

/// By mask of lanes: the lanes in it, in order, and zeros; and their number.
#[cfg(target_arch = "x86_64")]
static LANES_OF: [([i32; LANES], usize); 1 << LANES] = {
    let mut all = [([0; LANES], 0); 1 << LANES];
    let mut mask = 0;
    while mask < all.len() {
        let mut lane = 0;
        while lane < LANES {
            if mask >> lane & 1 == 1 {
                all[mask].0[all[mask].1] = (lane as u32).cast_signed();
                all[mask].1 += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// As [`places_above`].
///
/// # Safety
/// `places` has [`SPARE_PLACES`] more than `elements`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn places_above_by_avx2(elements: &[f64], least: f64, places: &mut [u32]) -> usize {
    use std::arch::x86_64::{
        _CMP_GT_OQ, _mm_add_epi32, _mm_set1_epi32, _mm_setr_epi32, _mm_storeu_si128, _mm256_and_pd,
        _mm256_castsi256_pd, _mm256_cmp_pd, _mm256_movemask_pd, _mm256_set1_epi64x, _mm256_set1_pd,
        _mm256_setr_pd,
    };
    let magnitude = _mm256_castsi256_pd(_mm256_set1_epi64x(i64::MAX));
    let limit = _mm256_set1_pd(least);
    let (groups, _) = elements.as_chunks::<LANES>();
    let mut count = 0;
    for (first, group) in (0..).step_by(LANES).zip(groups) {
        let group = _mm256_setr_pd(group[0], group[1], group[2], group[3]);
        let above = _mm256_cmp_pd::<_CMP_GT_OQ>(_mm256_and_pd(group, magnitude), limit);
        let (lanes, found) = &LANES_OF[_mm256_movemask_pd(above) as usize & ((1 << LANES) - 1)];
        let lanes = _mm_setr_epi32(lanes[0], lanes[1], lanes[2], lanes[3]);
        let listed = _mm_add_epi32(lanes, _mm_set1_epi32(first));
        // SAFETY: `count` is at most the number of elements before this group, and `places` has four more than elements.
        let place = unsafe { places.as_mut_ptr().add(count) };
        // SAFETY: four places from there on are within `places`, as above.
        unsafe { _mm_storeu_si128(place.cast(), listed) };
        count += found;
    }
    places_above_from(groups.len() * LANES, elements, least, (places, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_plain_search() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for length in 0..200 {
            let elements: Vec<f64> = (0..length)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    match state >> 61 {
                        0 => f64::NAN,
                        1 => f64::NEG_INFINITY,
                        2 => -0.0,
                        3 => 1.0,
                        _ => (state >> 11) as f64 / (1_u64 << 51) as f64 - 2.0,
                    }
                })
                .collect();
            let mut places = vec![u32::MAX; length + SPARE_PLACES];
            let count = places_above(&elements, 1.0, &mut places);
            let expected: Vec<u32> = (0..)
                .zip(&elements)
                .filter(|(_, element)| element.abs() > 1.0)
                .map(|(place, _)| place)
                .collect();
            assert_eq!(places[..count], expected, "{elements:?}");
        }
    }

    #[test]
    #[should_panic(expected = "no room")]
    fn places_without_room_are_refused() {
        places_above(&[1.0; 8], 0.0, &mut [0; 8]);
    }
}
