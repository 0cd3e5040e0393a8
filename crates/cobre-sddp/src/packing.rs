//! Packed floats, bit for bit: a mask of the nonzero ones among eight, then those. For
//! `#[serde(with = "crate::packing")]`.
//!
//! More than a third of the numbers of bases are zero, and checkpoints of large problems have
//! hundreds of megabytes.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Floats per mask.
const GROUP: usize = 8;

/// Bytes that are written at once.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

pub(crate) fn serialize<S: Serializer>(numbers: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    (numbers.len(), Bytes(pack(numbers))).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<f64>, D::Error> {
    let (count, bytes) = Deserialize::deserialize(source)?;
    unpack(count, bytes).ok_or_else(|| Error::custom("there are not as many numbers as it says"))
}

fn pack(numbers: &[f64]) -> Vec<u8> {
    let groups = numbers.len().div_ceil(GROUP);
    let mut bytes = Vec::with_capacity(groups + size_of_val(numbers));
    for group in numbers.chunks(GROUP) {
        // Without a branch: a zero is written too, and then written over.
        let mut room = [0; 1 + GROUP * size_of::<f64>()];
        let mut end = 1;
        for (place, number) in group.iter().enumerate() {
            let bits = number.to_bits();
            room[end..end + size_of::<f64>()].copy_from_slice(&bits.to_le_bytes());
            room[0] |= u8::from(bits != 0) << place;
            end += usize::from(bits != 0) * size_of::<f64>();
        }
        bytes.extend_from_slice(&room[..end]);
    }
    bytes
}

/// Reverses [`pack`]; `None` if the bytes are not `count` numbers.
fn unpack(count: usize, mut bytes: &[u8]) -> Option<Vec<f64>> {
    let groups = count.div_ceil(GROUP);
    if groups > bytes.len() {
        return None;
    }
    let mut numbers = Vec::with_capacity(count);
    for group in 0..groups {
        let (&there, rest) = bytes.split_first()?;
        bytes = rest;
        for place in 0..GROUP.min(count - group * GROUP) {
            let mut number = 0.0;
            if there >> place & 1 == 1 {
                let (own, rest) = bytes.split_first_chunk()?;
                (number, bytes) = (f64::from_le_bytes(*own), rest);
            }
            numbers.push(number);
        }
    }
    bytes.is_empty().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_comes_back() {
        let some = [0.0, 1.5, -0.0, f64::NAN, f64::MIN_POSITIVE / 8.0, 0.0];
        for count in 0..40 {
            let numbers: Vec<f64> = some.iter().copied().cycle().take(count).collect();
            let found = unpack(count, &pack(&numbers)).expect("it was packed");
            let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&numbers), "{count}");
        }
    }

    #[test]
    fn zeros_take_an_eighth_of_a_byte() {
        assert_eq!(pack(&[0.0; 800]).len(), 100);
        assert_eq!(pack(&[1.0; 800]).len(), 100 + 800 * 8);
    }

    #[test]
    fn bytes_that_are_not_so_many_numbers_are_refused() {
        let packed = pack(&[1.0, 0.0, 2.0]);
        for (count, bytes) in [
            (3, &packed[..packed.len() - 1]),
            (3, &[]),
            (2, &packed),
            (usize::MAX, &packed),
            (11, &packed),
        ] {
            assert_eq!(unpack(count, bytes), None, "{count}");
        }
    }
}
