//! The search for the largest of many affine functions, whose numbers lie in blocks of lanes: cuts at a state, and
//! cached bases at an opening. Every function is a lane of its own, so vector instructions give the same bits.

use std::ops::Range;

use crate::policy::LANES;
use cobre_simd::vectorized;

/// The place of the largest of these functions and its value less `shift`, the first of equals; `None` if none is above
/// `least`. `heights` has whole blocks: values where `point` is zero. Every block has slopes, coordinate by coordinate.
/// The bounds are `shift` and `least`.
pub(super) fn largest_above<'a>(
    heights: &[f64],
    slopes: impl Iterator<Item = &'a [f64]>,
    point: &[f64],
    bounds: (f64, f64),
) -> Option<(usize, f64)> {
    // With as many coordinates as are known here, values and sums stay in registers.
    match *point {
        [_] => largest_of::<1>(heights, slopes, point, bounds),
        [_, _] => largest_of::<2>(heights, slopes, point, bounds),
        [_, _, _] => largest_of::<3>(heights, slopes, point, bounds),
        [_, _, _, _] => largest_of::<4>(heights, slopes, point, bounds),
        [_, _, _, _, _] => largest_of::<5>(heights, slopes, point, bounds),
        _ => vectorized(
            #[inline(always)]
            || {
                search(
                    (heights, slopes),
                    bounds,
                    #[inline(always)]
                    |sums, slopes| add_slopes(sums, slopes.as_chunks().0, point),
                )
            },
        ),
    }
}

/// The same where the coordinates have these rows of the blocks.
pub(super) fn largest_by_parts<'a>(
    (heights, blocks): (&[f64], impl Iterator<Item = &'a [f64]>),
    parts: &[Range<usize>],
    point: &[f64],
    bounds: (f64, f64),
) -> Option<(usize, f64)> {
    vectorized(
        #[inline(always)]
        || {
            search(
                (heights, blocks),
                bounds,
                #[inline(always)]
                |sums, block| {
                    let (block, mut rest) = (block.as_chunks().0, point);
                    for rows in parts {
                        let (values, others) = rest.split_at(rows.len());
                        add_slopes(sums, &block[rows.clone()], values);
                        rest = others;
                    }
                },
            )
        },
    )
}

/// The same at a point of so many coordinates.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn largest_of<'a, const N: usize>(
    heights: &[f64],
    slopes: impl Iterator<Item = &'a [f64]>,
    point: &[f64],
    bounds: (f64, f64),
) -> Option<(usize, f64)> {
    let point: [f64; N] = *point.first_chunk()?;
    vectorized(
        #[inline(always)]
        || {
            search(
                (heights, slopes),
                bounds,
                #[inline(always)]
                |sums, slopes| {
                    if let Some(slopes) = slopes.as_chunks().0.first_chunk::<N>() {
                        add_slopes(sums, slopes, &point);
                    }
                },
            )
        },
    )
}

/// The search; `add` adds the part of a block's slopes.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn search<'a>(
    (heights, slopes): (&[f64], impl Iterator<Item = &'a [f64]>),
    (shift, least): (f64, f64),
    add: impl Fn(&mut [f64; LANES], &[f64]),
) -> Option<(usize, f64)> {
    let (mut most, mut found) = (least, None);
    let heights = heights.as_chunks::<LANES>().0;
    for ((block, heights), slopes) in (0..heights.len()).zip(heights).zip(slopes) {
        let mut sums = [0.0; LANES];
        for lane in 0..LANES {
            sums[lane] = heights[lane] - shift;
        }
        add(&mut sums, slopes);
        #[expect(
            clippy::needless_bitwise_bool,
            reason = "without a branch for each lane"
        )]
        let is_any = sums.iter().fold(false, |any, &sum| any | (sum > most));
        if is_any {
            for (lane, &sum) in sums.iter().enumerate() {
                if sum > most {
                    (most, found) = (sum, Some(block * LANES + lane));
                }
            }
        }
    }
    found.map(|place| (place, most))
}

/// Adds slope × value of consecutive coordinates to the sums of a block.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn add_slopes(sums: &mut [f64; LANES], slopes: &[[f64; LANES]], point: &[f64]) {
    for (slopes, value) in slopes.iter().zip(point) {
        for lane in 0..LANES {
            sums[lane] += slopes[lane] * value;
        }
    }
}
