//! Protection of a connection: what crosses it is cut into records, and each carries a tag that
//! only the other side can have made.
//!
//! A record is authenticated by AES-256-GCM under a key of this connection and direction, with its
//! number in the stream as the nonce. A record that was changed, left out, repeated or moved does
//! not open. Where the job asks for it, the record is encrypted too, in place: a sender that
//! must not change its caller's bytes seals a copy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// Payload bytes of a record: they stay in the cache between the socket and the tag.
pub(super) const RECORD: usize = 64 * 1024;

/// The protection of the records of a connection, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protection {
    /// Records travel as they are, without tags.
    None = 0,
    /// Records travel as they are, with tags.
    Authentication = 1,
    /// Records are encrypted, with tags.
    Encryption = 2,
}

impl Protection {
    pub(super) fn of_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Authentication),
            2 => Some(Self::Encryption),
            _ => None,
        }
    }
}

/// The side of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// It has connected.
    Dialer,
    /// It has accepted.
    Listener,
}

/// A record that the other side did not make, or not at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forged;

/// The keys of one connection, both ways.
#[derive(Debug)]
pub(super) struct Channel(Option<Box<Keys>>);

#[derive(Debug)]
struct Keys {
    encrypts: bool,
    sealing: Direction,
    opening: Direction,
}

/// A key and the number of the next record. Atomic only to be shared between threads, of which one
/// at a time sends and one receives.
#[derive(Debug)]
struct Direction {
    key: LessSafeKey,
    next: AtomicU64,
}

impl Channel {
    /// A connection without protection.
    pub(super) fn plain() -> Self {
        Self(None)
    }

    /// The channel of a connection whose sides share `secret` and have said `transcript` to each
    /// other, with fresh nonces of both.
    pub(super) fn new(
        protection: Protection,
        side: Side,
        secret: &[u8],
        transcript: &[&[u8]],
    ) -> Self {
        if protection == Protection::None {
            return Self::plain();
        }
        let transcript = transcript.concat();
        let pseudo_random = Salt::new(HKDF_SHA256, &transcript).extract(secret);
        let direction = |label: &[u8]| {
            let info = [b"cobre tcp records ", label];
            let key = pseudo_random.expand(&info, &AES_256_GCM);
            let key = key.expect("a key is shorter than 255 blocks of SHA-256");
            Direction {
                key: LessSafeKey::new(UnboundKey::from(key)),
                next: AtomicU64::new(0),
            }
        };
        let (dialed, answered) = (direction(b"to the listener"), direction(b"to the dialer"));
        let (sealing, opening) = match side {
            Side::Dialer => (dialed, answered),
            Side::Listener => (answered, dialed),
        };
        Self(Some(Box::new(Keys {
            encrypts: protection == Protection::Encryption,
            sealing,
            opening,
        })))
    }

    /// Bytes that follow each record.
    pub(super) fn tag_len(&self) -> usize {
        if self.0.is_some() { TAG } else { 0 }
    }

    /// True if records are encrypted: then a record that is sealed is changed.
    pub(super) fn encrypts(&self) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.encrypts)
    }

    /// The tag of the next record that is sent, on a connection without encryption; `None` on one without protection.
    pub(super) fn tag(&self, record: &[u8]) -> Option<[u8; TAG]> {
        self.seal_parts(record, &mut [])
    }

    /// Seals the next record that is sent, and encrypts it where the connection does; its tag, as for
    /// [`tag`](Self::tag).
    pub(super) fn seal(&self, record: &mut [u8]) -> Option<[u8; TAG]> {
        if self.encrypts() {
            self.seal_parts(&[], record)
        } else {
            self.seal_parts(record, &mut [])
        }
    }

    fn seal_parts(&self, open: &[u8], secret: &mut [u8]) -> Option<[u8; TAG]> {
        let Keys { sealing, .. } = self.0.as_deref()?;
        let tag = sealing
            .key
            .seal_in_place_separate_tag(sealing.nonce(), Aad::from(open), secret)
            .expect("a record is far shorter than AES-GCM allows");
        tag.as_ref().try_into().ok()
    }

    /// Succeeds if this is the next record that the other side has sent, and decrypts it where the connection does.
    pub(super) fn open(&self, record: &mut [u8], tag: &[u8; TAG]) -> Result<(), Forged> {
        let Some(keys) = self.0.as_deref() else {
            return Ok(());
        };
        let (key, nonce) = (&keys.opening.key, keys.opening.nonce());
        let opened = if keys.encrypts {
            key.open_in_place_separate_tag(nonce, Aad::empty(), tag, record)
        } else {
            key.open_in_place_separate_tag(nonce, Aad::from(&*record), tag, &mut [])
        };
        opened.map(|_| ()).map_err(|_| Forged)
    }
}

impl Direction {
    /// The number of the next record. 64 bits do not run out.
    fn nonce(&self) -> Nonce {
        let number = self.next.load(Relaxed);
        self.next.store(number + 1, Relaxed);
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROTECTED: [Protection; 2] = [Protection::Authentication, Protection::Encryption];

    fn pair(protection: Protection, secret: &[u8], other: &[u8]) -> (Channel, Channel) {
        let channel = |side, secret| Channel::new(protection, side, secret, &[b"a", b"b"]);
        (
            channel(Side::Dialer, secret),
            channel(Side::Listener, other),
        )
    }

    /// The record as it travels, with its tag.
    fn sealed(channel: &Channel, record: &[u8]) -> (Vec<u8>, [u8; TAG]) {
        let mut record = record.to_vec();
        let tag = channel.seal(&mut record).unwrap();
        (record, tag)
    }

    #[test]
    fn records_open_in_order_both_ways() {
        for protection in PROTECTED {
            let (one, other) = pair(protection, b"secret", b"secret");
            for number in 0..9u8 {
                let plain = vec![number; usize::from(number) * 1000];
                for (from, to) in [(&one, &other), (&other, &one)] {
                    let (mut record, tag) = sealed(from, &plain);
                    assert_eq!(to.open(&mut record, &tag), Ok(()));
                    assert_eq!(record, plain);
                }
            }
        }
    }

    #[test]
    fn only_encryption_changes_what_travels() {
        for protection in PROTECTED {
            let (one, _) = pair(protection, b"secret", b"secret");
            let plain = [7; 64];
            let (first, _) = sealed(&one, &plain);
            let (second, _) = sealed(&one, &plain);
            let is_encrypted = protection == Protection::Encryption;
            assert_eq!(one.encrypts(), is_encrypted);
            assert_eq!(first != plain, is_encrypted);
            assert_eq!(first != second, is_encrypted, "a nonce was used twice");
        }
    }

    #[test]
    fn a_record_opens_at_its_own_place_only() {
        for protection in PROTECTED {
            let plain = b"the same bytes";
            let (one, other) = pair(protection, b"secret", b"secret");
            let records: Vec<_> = (0..3).map(|_| sealed(&one, plain)).collect();
            let open = |channel: &Channel, number: usize| {
                let (record, tag) = &records[number];
                channel.open(&mut record.clone(), tag)
            };
            assert_eq!(open(&other, 1), Err(Forged), "left out");
            let (_, other) = pair(protection, b"secret", b"secret");
            assert_eq!(open(&other, 0), Ok(()));
            assert_eq!(open(&other, 0), Err(Forged), "repeated");
            // Sent back to who made it.
            assert_eq!(open(&one, 0), Err(Forged));
        }
    }

    #[test]
    fn neither_another_secret_nor_another_transcript_opens() {
        for protection in PROTECTED {
            let (one, other) = pair(protection, b"secret", b"Secret");
            let (record, tag) = sealed(&one, b"bytes");
            assert_eq!(other.open(&mut record.clone(), &tag), Err(Forged));
            let transcript: [&[u8]; 2] = [b"a", b"c"];
            let other = Channel::new(protection, Side::Listener, b"secret", &transcript);
            assert_eq!(other.open(&mut record.clone(), &tag), Err(Forged));
        }
    }

    proptest! {
        #[test]
        fn a_changed_bit_does_not_open(
            encrypts: bool,
            plain in proptest::collection::vec(any::<u8>(), 1..200), at: usize, bit in 0..8u8,
        ) {
            let (one, other) = pair(PROTECTED[usize::from(encrypts)], b"secret", b"secret");
            let (mut record, mut tag) = sealed(&one, &plain);
            let at = at % (record.len() + TAG);
            match at.checked_sub(record.len()) {
                None => record[at] ^= 1 << bit,
                Some(at) => tag[at] ^= 1 << bit,
            }
            prop_assert_eq!(other.open(&mut record, &tag), Err(Forged));
        }
    }
}
