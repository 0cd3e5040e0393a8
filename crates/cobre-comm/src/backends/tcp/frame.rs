//! Frames: the header before every block of a collective holds the call signature and the number of
//! bytes that follow.

use crate::call_signature::CallSignature;

/// Bytes of a header.
pub(super) const HEADER: usize = 120;

const MAGIC: u32 = 0x6362_7246;
/// The offset of the call signature.
const STAMP: usize = 32;
/// The offset of the checksum of all before it.
const CHECKSUM: usize = STAMP + 8 * CallSignature::LEN;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A rank's data for rank 0.
    Arrival = 1,
    /// Rank 0's answer when all have arrived.
    Release = 2,
    /// Data from one rank to another directly.
    Direct = 3,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: FrameKind,
    /// Number of the exchange in this job.
    pub(super) round: u64,
    pub(super) signature: CallSignature,
    /// Bytes that follow.
    pub(super) length: u64,
}

impl FrameHeader {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&(self.kind as u32).to_le_bytes());
        put(&mut out, 8, self.round);
        put(&mut out, 16, self.signature.digest());
        put(&mut out, 24, self.length);
        for (i, &word) in self.signature.words().iter().enumerate() {
            put(&mut out, STAMP + 8 * i, word);
        }
        let sum = checksum(&out);
        put(&mut out, CHECKSUM, sum);
        out
    }

    /// `None` for bytes that `encode` did not make.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let mut words = [0; CallSignature::LEN];
        for (i, word) in words.iter_mut().enumerate() {
            *word = get(bytes, STAMP + 8 * i);
        }
        let signature = CallSignature::from_words(words)?;
        let kind = match get(bytes, 0) {
            first if first == u64::from(MAGIC) | 1 << 32 => FrameKind::Arrival,
            first if first == u64::from(MAGIC) | 2 << 32 => FrameKind::Release,
            first if first == u64::from(MAGIC) | 3 << 32 => FrameKind::Direct,
            _ => return None,
        };
        let whole = get(bytes, CHECKSUM) == checksum(bytes) && get(bytes, 16) == signature.digest();
        whole.then(|| Self {
            kind,
            round: get(bytes, 8),
            signature,
            length: get(bytes, 24),
        })
    }
}

/// The header with the digest and the checksum that its other bytes ask for, as who knows the format would forge it.
#[cfg(any(test, fuzzing))]
pub(super) fn forged(mut bytes: [u8; HEADER]) -> [u8; HEADER] {
    let words = std::array::from_fn(|word| get(&bytes, STAMP + 8 * word));
    if let Some(signature) = CallSignature::from_words(words) {
        put(&mut bytes, 16, signature.digest());
    }
    let sum = checksum(&bytes);
    put(&mut bytes, CHECKSUM, sum);
    bytes
}

fn put(out: &mut [u8; HEADER], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Any change of one word changes it, as every step can be undone.
fn checksum(bytes: &[u8; HEADER]) -> u64 {
    (0..CHECKSUM)
        .step_by(8)
        .fold(0x9e37_79b9_7f4a_7c15, |sum: u64, at| {
            (sum.rotate_left(23) ^ get(bytes, at)).wrapping_mul(0xd6e8_feb8_6659_fd93)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_signature::Collective;
    use proptest::prelude::*;

    fn header(round: u64, length: u64) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Direct,
            round,
            signature: CallSignature::new(Collective::Allgatherv)
                .elements::<f64>(1 << 40)
                .counts(&[1, 2, 3])
                .at(round + 7),
            length,
        }
    }

    #[test]
    fn a_header_ends_with_its_checksum() {
        assert_eq!(CHECKSUM + 8, HEADER);
    }

    #[test]
    fn every_kind_survives_its_journey() {
        for kind in [FrameKind::Arrival, FrameKind::Release, FrameKind::Direct] {
            let sent = FrameHeader {
                kind,
                ..header(9, 5 << 32)
            };
            assert_eq!(FrameHeader::decode(&sent.encode()), Some(sent));
        }
    }

    proptest! {
        #[test]
        fn a_changed_bit_is_noticed(round: u32, length: u64, byte in 0..HEADER, bit in 0..8u8) {
            let mut bytes = header(round.into(), length).encode();
            bytes[byte] ^= 1 << bit;
            prop_assert_eq!(FrameHeader::decode(&bytes), None);
        }

        #[test]
        fn arbitrary_bytes_are_no_header(bytes in proptest::collection::vec(any::<u8>(), HEADER)) {
            let bytes: [u8; HEADER] = bytes.try_into().unwrap();
            prop_assert_eq!(FrameHeader::decode(&bytes), None);
        }
    }
}
