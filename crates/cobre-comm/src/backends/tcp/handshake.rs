//! Handshake: two processes prove to each other that they are ranks of one job, before anything else is
//! said: four messages of fixed length, each side showing that it knows the job's secret.
//!
//! ```text
//!   dialling → accepting   hello      identity, the rank it looks for, the protection it wants,
//!                                     a fresh nonce
//!   accepting → dialling   challenge  a fresh nonce and the protection it wants, or why it is refused
//!   dialling → accepting   proof      HMAC over hello and challenge
//!   accepting → dialling   welcome    the answer, with an HMAC over all of it
//! ```
//!
//! The dialling side proves itself first, so a stranger learns nothing that depends on the secret. Both
//! proofs cover everything said before with nonces of both sides: none can be used twice, and nobody
//! between them can lower the protection, which is the stronger of the two. The keys of the
//! [`Channel`] come from the secret and the same messages.

use aws_lc_rs::hmac::{self, HMAC_SHA256};

use super::channel::{Channel, Protection, Side};

const MAGIC: [u8; 8] = *b"cobretcp";
/// Changes with anything that ranks of two builds would not understand alike.
const VERSION: u16 = 4;
/// Reads differently on a machine with another byte order.
const ORDER: u16 = 0x0102;

pub(super) const HELLO: usize = 64;
pub(super) const CHALLENGE: usize = 48;
pub(super) const PROOF: usize = 32;
pub(super) const WELCOME: usize = 48;

const _: () = assert!(HELLO + PROOF <= 128, "a stranger may send no more");

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// Signs of life and the verdict.
    Watch = 1,
    /// Collectives.
    Data = 2,
}

/// The identity that a dialling process claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) purpose: ConnectionPurpose,
    /// The least protection it accepts.
    pub(super) protection: Protection,
    /// The rank it expects on the accepting side.
    pub(super) target: u16,
    pub(super) rank: u32,
    pub(super) size: u32,
    /// Tells jobs apart.
    pub(super) job: u64,
    pub(super) nonce: [u8; 32],
}

/// The reason for which the accepting side refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It runs another version of this protocol: that of the accepting side.
    Version(u16),
    ByteOrder,
    Secret,
    JobIdentity,
    /// It was started for another number of ranks than the accepting side: the latter's number.
    Size(u32),
    /// Its rank is taken, or is none.
    Rank,
    /// It looks for another rank than the accepting one: the latter's.
    Target(u32),
}

impl Refusal {
    fn code(self) -> [u32; 2] {
        match self {
            Self::Version(version) => [1, version.into()],
            Self::ByteOrder => [2, 0],
            Self::Secret => [3, 0],
            Self::JobIdentity => [4, 0],
            Self::Size(size) => [5, size],
            Self::Rank => [6, 0],
            Self::Target(rank) => [7, rank],
        }
    }

    fn of_code([code, figure]: [u32; 2]) -> Option<Self> {
        Some(match code {
            1 => Self::Version(u16::try_from(figure).ok()?),
            2 => Self::ByteOrder,
            3 => Self::Secret,
            4 => Self::JobIdentity,
            5 => Self::Size(figure),
            6 => Self::Rank,
            7 => Self::Target(figure),
            _ => return None,
        })
    }
}

/// The reason for which a handshake ends without a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeError {
    /// The bytes received are no message of this protocol.
    NotCobre,
    /// The other side says no.
    Refused(Refusal),
    /// The other side cannot prove that it knows the secret.
    Unproven,
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10..12].copy_from_slice(&ORDER.to_ne_bytes());
        out[12] = self.purpose as u8;
        out[13] = self.protection as u8;
        out[14..16].copy_from_slice(&self.target.to_le_bytes());
        out[16..20].copy_from_slice(&self.rank.to_le_bytes());
        out[20..24].copy_from_slice(&self.size.to_le_bytes());
        out[24..32].copy_from_slice(&self.job.to_le_bytes());
        out[32..].copy_from_slice(&self.nonce);
        out
    }

    /// Reads a hello; a refusal if it is one that this build does not speak to.
    pub(super) fn decode(bytes: &[u8; HELLO]) -> Result<Self, HandshakeError> {
        if bytes[..8] != MAGIC {
            return Err(HandshakeError::NotCobre);
        }
        if bytes[8..10] != VERSION.to_le_bytes() {
            return Err(HandshakeError::Refused(Refusal::Version(VERSION)));
        }
        if bytes[10..12] != ORDER.to_ne_bytes() {
            return Err(HandshakeError::Refused(Refusal::ByteOrder));
        }
        let purpose = match bytes[12] {
            1 => ConnectionPurpose::Watch,
            2 => ConnectionPurpose::Data,
            _ => return Err(HandshakeError::NotCobre),
        };
        let protection = Protection::of_number(bytes[13].into()).ok_or(HandshakeError::NotCobre)?;
        Ok(Self {
            purpose,
            protection,
            target: u16::from_le_bytes(part(bytes, 14)),
            rank: u32::from_le_bytes(part(bytes, 16)),
            size: u32::from_le_bytes(part(bytes, 20)),
            job: u64::from_le_bytes(part(bytes, 24)),
            nonce: part(bytes, 32),
        })
    }
}

/// The accepting side's answer to a hello: a fresh nonce and the least protection it accepts, or a refusal.
pub(super) fn challenge(answer: Result<([u8; 32], Protection), Refusal>) -> [u8; CHALLENGE] {
    let mut out = [0; CHALLENGE];
    out[..8].copy_from_slice(&MAGIC);
    match answer {
        Ok((nonce, protection)) => {
            put_code(&mut out[8..16], [0, protection as u32]);
            out[16..].copy_from_slice(&nonce);
        }
        Err(refusal) => put_code(&mut out[8..16], refusal.code()),
    }
    out
}

/// The proof of the dialling side: after this, only [`welcomed`] is left to check.
pub(super) fn proof(
    secret: &[u8],
    hello: &[u8; HELLO],
    challenge: &[u8; CHALLENGE],
) -> Result<[u8; PROOF], HandshakeError> {
    if challenge[..8] != MAGIC {
        return Err(HandshakeError::NotCobre);
    }
    match code(&challenge[8..16]) {
        [0, wanted] if Protection::of_number(wanted).is_some() => {
            Ok(mac(secret, b"guest", &[hello, challenge]))
        }
        // Nothing here is proven: only what says that nothing can be is believed.
        other => Err(match Refusal::of_code(other) {
            Some(refusal @ (Refusal::Version(_) | Refusal::ByteOrder)) => {
                HandshakeError::Refused(refusal)
            }
            _ => HandshakeError::NotCobre,
        }),
    }
}

/// True if the dialling side's proof is right, compared in constant time.
pub(super) fn is_proven(
    secret: &[u8],
    hello: &[u8; HELLO],
    challenge: &[u8; CHALLENGE],
    proof: &[u8; PROOF],
) -> bool {
    is_mac(secret, b"guest", &[hello, challenge], proof)
}

/// The channel of a connection whose handshake has succeeded: as safe as the side wants that wants
/// more.
pub(super) fn channel(
    secret: &[u8],
    side: Side,
    hello: &[u8; HELLO],
    challenge: &[u8; CHALLENGE],
) -> Channel {
    let [_, wanted] = code(&challenge[8..16]);
    // Each side has seen that the other's number means something.
    let of_number = |number| Protection::of_number(number).unwrap_or(Protection::Authentication);
    let protection = of_number(hello[13].into()).max(of_number(wanted));
    Channel::new(protection, side, secret, &[hello, challenge])
}

/// The accepting side's last message. A dialling side that is not proven gets no proof in return.
pub(super) fn welcome(
    secret: &[u8],
    hello: &[u8; HELLO],
    challenge: &[u8; CHALLENGE],
    answer: Result<(), Refusal>,
) -> [u8; WELCOME] {
    let mut out = [0; WELCOME];
    out[..8].copy_from_slice(&MAGIC);
    if let Err(refusal) = answer {
        put_code(&mut out[8..16], refusal.code());
    }
    if answer != Err(Refusal::Secret) {
        let (head, proof) = out.split_at_mut(16);
        proof.copy_from_slice(&mac(secret, b"host", &[hello, challenge, head]));
    }
    out
}

/// Checks that the connection is accepted, and that the accepting side is who it must be.
pub(super) fn welcomed(
    secret: &[u8],
    hello: &[u8; HELLO],
    challenge: &[u8; CHALLENGE],
    welcome: &[u8; WELCOME],
) -> Result<(), HandshakeError> {
    if welcome[..8] != MAGIC {
        return Err(HandshakeError::NotCobre);
    }
    let refusal = Refusal::of_code(code(&welcome[8..16]));
    if refusal == Some(Refusal::Secret) {
        return Err(HandshakeError::Refused(Refusal::Secret));
    }
    let (head, proof) = welcome.split_at(16);
    let known = is_mac(secret, b"host", &[hello, challenge, head], proof);
    match refusal {
        _ if !known => Err(HandshakeError::Unproven),
        Some(refusal) => Err(HandshakeError::Refused(refusal)),
        None if code(&welcome[8..16]) == [0, 0] => Ok(()),
        None => Err(HandshakeError::NotCobre),
    }
}

/// The bytes over which `role` computes its proof: all that was said.
fn statement(role: &[u8], said: &[&[u8]]) -> Vec<u8> {
    [b"cobre tcp ", role]
        .into_iter()
        .chain(said.iter().copied())
        .collect::<Vec<_>>()
        .concat()
}

fn mac(secret: &[u8], role: &[u8], said: &[&[u8]]) -> [u8; PROOF] {
    let key = hmac::Key::new(HMAC_SHA256, secret);
    part(hmac::sign(&key, &statement(role, said)).as_ref(), 0)
}

/// Compared in constant time.
fn is_mac(secret: &[u8], role: &[u8], said: &[&[u8]], proof: &[u8]) -> bool {
    let key = hmac::Key::new(HMAC_SHA256, secret);
    hmac::verify(&key, &statement(role, said), proof).is_ok()
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("N bytes")
}

fn put_code(out: &mut [u8], [code, figure]: [u32; 2]) {
    out[..4].copy_from_slice(&code.to_le_bytes());
    out[4..].copy_from_slice(&figure.to_le_bytes());
}

fn code(bytes: &[u8]) -> [u32; 2] {
    [part(bytes, 0), part(bytes, 4)].map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(nonce: u8) -> Hello {
        Hello {
            purpose: ConnectionPurpose::Data,
            protection: Protection::None,
            target: 1,
            rank: 3,
            size: 8,
            job: 0xfeed_beef,
            nonce: [nonce; 32],
        }
    }

    /// Both sides of a handshake: true if the accepting side accepts, and the result of the dialling side.
    fn shake(dialling: &[u8], accepting: &[u8]) -> (bool, Result<(), HandshakeError>) {
        let hello = hello(1).encode();
        let challenge = challenge(Ok(([2; 32], Protection::None)));
        let proof = proof(dialling, &hello, &challenge).unwrap();
        let proven = is_proven(accepting, &hello, &challenge, &proof);
        let answer = if proven { Ok(()) } else { Err(Refusal::Secret) };
        let welcome = welcome(accepting, &hello, &challenge, answer);
        (proven, welcomed(dialling, &hello, &challenge, &welcome))
    }

    #[test]
    fn one_secret_opens_both_ways_and_another_none() {
        assert_eq!(shake(b"secret", b"secret"), (true, Ok(())));
        let refused = Err(HandshakeError::Refused(Refusal::Secret));
        assert_eq!(shake(b"secret", b"Secret"), (false, refused));
    }

    #[test]
    fn other_versions_and_byte_orders_are_told_so() {
        let mut bytes = hello(1).encode();
        bytes[8] += 1;
        let failure = Hello::decode(&bytes).unwrap_err();
        assert_eq!(failure, HandshakeError::Refused(Refusal::Version(VERSION)));
        let mut bytes = hello(1).encode();
        bytes[10..12].reverse();
        let failure = Hello::decode(&bytes).unwrap_err();
        assert_eq!(failure, HandshakeError::Refused(Refusal::ByteOrder));
        let answer = challenge(Err(Refusal::ByteOrder));
        let told = proof(b"x", &bytes, &answer).unwrap_err();
        assert_eq!(told, HandshakeError::Refused(Refusal::ByteOrder));
    }

    #[test]
    fn only_a_proven_side_can_refuse_for_good() {
        let hello = hello(1).encode();
        for refusal in [
            Refusal::Rank,
            Refusal::Size(4),
            Refusal::Secret,
            Refusal::JobIdentity,
        ] {
            let told = proof(b"x", &hello, &challenge(Err(refusal))).unwrap_err();
            assert_eq!(told, HandshakeError::NotCobre);
        }
    }

    #[test]
    fn a_replayed_proof_opens_nothing() {
        let (secret, hello) = (b"secret", hello(1).encode());
        let seen = proof(secret, &hello, &challenge(Ok(([2; 32], Protection::None)))).unwrap();
        assert!(!is_proven(
            secret,
            &hello,
            &challenge(Ok(([3; 32], Protection::None))),
            &seen
        ));
    }

    #[test]
    fn the_side_that_wants_more_protection_gets_it() {
        use Protection::{Authentication, Encryption, None};
        let all = [None, Authentication, Encryption];
        let pairs = all.iter().flat_map(|one| all.map(|other| (*one, other)));
        for (dialling, accepting) in pairs {
            let hello = Hello {
                protection: dialling,
                ..hello(1)
            }
            .encode();
            let challenge = challenge(Ok(([2; 32], accepting)));
            let dialed = channel(b"secret", Side::Dialer, &hello, &challenge);
            let accepted = channel(b"secret", Side::Listener, &hello, &challenge);
            let mut record = b"record".to_owned();
            let tag = dialed.seal(&mut record);
            let agreed = dialling.max(accepting);
            assert_eq!(tag.is_some(), agreed != None);
            assert_eq!(record != *b"record", agreed == Encryption);
            let opened = accepted.open(&mut record, &tag.unwrap_or_default());
            assert_eq!((opened, record), (Ok(()), *b"record"));
        }
    }

    #[test]
    fn the_proofs_of_the_two_sides_differ() {
        // An accepting side without the secret sends the other's own proof back.
        let (hello, challenge) = (
            hello(1).encode(),
            challenge(Ok(([2; 32], Protection::None))),
        );
        let proof = proof(b"secret", &hello, &challenge).unwrap();
        let mut forged = welcome(b"", &hello, &challenge, Ok(()));
        forged[16..].copy_from_slice(&proof);
        let outcome = welcomed(b"secret", &hello, &challenge, &forged);
        assert_eq!(outcome, Err(HandshakeError::Unproven));
    }

    #[test]
    fn a_refusal_cannot_be_forged_into_a_welcome() {
        let (hello, challenge) = (
            hello(1).encode(),
            challenge(Ok(([2; 32], Protection::None))),
        );
        let mut refused = welcome(b"secret", &hello, &challenge, Err(Refusal::Size(4)));
        let outcome = welcomed(b"secret", &hello, &challenge, &refused);
        assert_eq!(outcome, Err(HandshakeError::Refused(Refusal::Size(4))));
        refused[8..16].fill(0);
        let outcome = welcomed(b"secret", &hello, &challenge, &refused);
        assert_eq!(outcome, Err(HandshakeError::Unproven));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_open_nothing(bytes: [u8; 32], more: [u8; 32], last: [u8; 16]) {
            let hello = hello(1).encode();
            let challenge = challenge(Ok(([2; 32], Protection::None)));
            prop_assert!(!is_proven(b"secret", &hello, &challenge, &bytes));
            let mut any = [0; HELLO];
            any[..32].copy_from_slice(&bytes);
            any[32..].copy_from_slice(&more);
            prop_assert_eq!(Hello::decode(&any), Err(HandshakeError::NotCobre));
            let mut answer = [0; WELCOME];
            answer[..8].copy_from_slice(&MAGIC);
            answer[8..40].copy_from_slice(&bytes);
            answer[40..].copy_from_slice(&last[..8]);
            prop_assert!(welcomed(b"secret", &hello, &challenge, &answer).is_err());
        }

        #[test]
        fn one_changed_bit_opens_nothing(byte in 0..HELLO + CHALLENGE, bit in 0..8u8) {
            let (mut hello, mut challenge) = (hello(1).encode(), challenge(Ok(([2; 32], Protection::None))));
            let proof = proof(b"secret", &hello, &challenge).unwrap();
            match byte.checked_sub(HELLO) {
                None => hello[byte] ^= 1 << bit,
                Some(byte) => challenge[byte] ^= 1 << bit,
            }
            prop_assert!(!is_proven(b"secret", &hello, &challenge, &proof));
        }

        #[test]
        fn a_hello_survives_its_journey(
            target: u16, rank: u32, size: u32, job: u64, nonce: [u8; 32],
        ) {
            let protection = Protection::Authentication;
            let hello = Hello { purpose: ConnectionPurpose::Watch, protection, target, rank, size, job, nonce };
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
    }
}
