//! The judgements of the contracts: each panics with what was expected and what was found.

use std::error::Error;
use std::fmt;

use cobre_comm::{CommData, CommError};

/// The value of a call that had to succeed on `rank`.
#[track_caller]
pub fn succeeded<T>(rank: usize, what: fmt::Arguments<'_>, result: Result<T, CommError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!(
            "rank {rank}: {what}: expected success, found: {}",
            told(&error)
        ),
    }
}

/// The error of a call that had to fail on `rank`.
#[track_caller]
pub fn failed<T>(rank: usize, what: fmt::Arguments<'_>, result: Result<T, CommError>) -> CommError {
    match result {
        Ok(_) => panic!("rank {rank}: {what}: expected an error, found success"),
        Err(error) => error,
    }
}

/// Refuses a difference in any bit of any element.
#[track_caller]
pub fn same_bits<T: CommData>(rank: usize, what: fmt::Arguments<'_>, found: &[T], expected: &[T]) {
    let (found_bytes, expected_bytes) = (bytes(found), bytes(expected));
    if found_bytes == expected_bytes {
        return;
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "rank {rank}: {what}: not as many elements as expected"
    );
    let width = size_of::<T>();
    let pairs = || found_bytes.chunks(width).zip(expected_bytes.chunks(width));
    let differ = pairs()
        .filter(|(found, expected)| found != expected)
        .count();
    let first = pairs().position(|(found, expected)| found != expected);
    let (index, (wrong, right)) = first
        .and_then(|index| Some((index, pairs().nth(index)?)))
        .expect("some element differs");
    panic!(
        "rank {rank}: {what}: element {index} of {}: expected bits {}, found {} ({differ} differ)",
        found.len(),
        Bits(right),
        Bits(wrong)
    );
}

/// An error and its causes on one line.
pub fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn bytes<T: CommData>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(elements)
}

/// The bytes of one element, most significant first.
struct Bits<'a>(&'a [u8]);

impl fmt::Display for Bits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        let mut digits = |byte: &u8| write!(f, "{byte:02x}");
        if cfg!(target_endian = "little") {
            self.0.iter().rev().try_for_each(&mut digits)
        } else {
            self.0.iter().try_for_each(&mut digits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "rank 3: a gather: element 1 of 3: expected bits 0x0002, found 0x0102 (2 differ)"
    )]
    fn a_difference_is_told_with_rank_index_and_bits() {
        same_bits(3, format_args!("a gather"), &[1u16, 0x102, 4], &[1, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "0x8000000000000000, found 0x0000000000000000")]
    fn zeros_of_different_sign_differ() {
        same_bits(0, format_args!("zeros"), &[0.0f64], &[-0.0]);
    }

    #[test]
    fn nans_of_equal_bits_are_the_same() {
        same_bits(0, format_args!("nan"), &[f32::NAN], &[f32::NAN]);
    }
}
