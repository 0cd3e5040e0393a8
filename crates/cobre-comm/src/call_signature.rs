//! Call signatures: a rank's description of the call it makes, so that ranks that disagree all learn it.
//!
//! Each backend moves the call signature, or its digest, with its data. Equal digests mean that the ranks
//! make the same call; the call signature itself is for the message when they do not.

use std::fmt;

use crate::communicator::ReduceOp;
use crate::data::CommData;
use crate::error::CallPosition;

/// The collectives, region calls included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collective {
    /// [`Communicator::allgatherv`](crate::Communicator::allgatherv)
    Allgatherv,
    /// [`Communicator::allreduce`](crate::Communicator::allreduce)
    Allreduce,
    /// [`Communicator::broadcast`](crate::Communicator::broadcast)
    Broadcast,
    /// [`Communicator::barrier`](crate::Communicator::barrier)
    Barrier,
    /// [`SharedRegion::fence`](crate::SharedRegion::fence)
    Fence,
    /// [`SharedMemoryProvider::create_shared_region`](crate::SharedMemoryProvider::create_shared_region)
    CreateSharedRegion,
    /// [`SharedMemoryProvider::create_partitioned_region`](crate::SharedMemoryProvider::create_partitioned_region)
    CreatePartitionedRegion,
    /// [`SharedMemoryProvider::split_local`](crate::SharedMemoryProvider::split_local)
    SplitLocal,
    /// [`Communicator::gatherv`](crate::Communicator::gatherv)
    Gatherv,
}

impl Collective {
    /// In the order of their numbers.
    const ALL: [Self; 9] = [
        Self::Allgatherv,
        Self::Allreduce,
        Self::Broadcast,
        Self::Barrier,
        Self::Fence,
        Self::CreateSharedRegion,
        Self::CreatePartitionedRegion,
        Self::SplitLocal,
        Self::Gatherv,
    ];

    /// The collective of this number; `None` if none has it.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone no record travels"
    )]
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name as users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allgatherv => "allgatherv",
            Self::Allreduce => "allreduce",
            Self::Broadcast => "broadcast",
            Self::Barrier => "barrier",
            Self::Fence => "fence",
            Self::CreateSharedRegion => "create_shared_region",
            Self::CreatePartitionedRegion => "create_partitioned_region",
            Self::SplitLocal => "split_local",
            Self::Gatherv => "gatherv",
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Words of a type's name that travel with the call signature.
const NAME: usize = 3;
/// Words of a call signature.
const WORDS: usize = 7 + NAME;

/// A rank's description of one collective call. Ranks make the same call exactly if their call signatures
/// have the same [`digest`](Self::digest).
///
/// It is kept in the form in which it travels, as it is made anew for every call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CallSignature {
    /// In the order of the constants below, then the end of the element type's name.
    words: [u64; WORDS],
}

/// Collective, whether the arguments were refused (then it agrees with nobody), operator.
const KIND: usize = 0;
/// Root rank, or which region a fence belongs to.
const SUBJECT: usize = 1;
/// Size and alignment of an element.
const ELEMENT: usize = 2;
const TYPE_HASH: usize = 3;
/// Elements in all, as this rank sees it.
const LENGTH: usize = 4;
const COUNTS_HASH: usize = 5;
/// Position in the communicator's sequence of collectives.
const SEQUENCE: usize = 6;

const REFUSED: u64 = 1 << 8;
const OP: u32 = 16;

impl CallSignature {
    /// A call without arguments.
    #[inline]
    pub(crate) fn new(collective: Collective) -> Self {
        let mut words = [0; WORDS];
        words[KIND] = collective as u64;
        Self { words }
    }

    /// … on `length` elements of type `T`.
    #[inline]
    pub(crate) fn elements<T: CommData>(mut self, length: usize) -> Self {
        let name = std::any::type_name::<T>();
        self.words[ELEMENT] = (size_of::<T>() as u64) << 32 | align_of::<T>() as u64;
        self.words[TYPE_HASH] = name.bytes().fold(SEED, |hash, byte| mix(hash, byte.into()));
        // The end of a path says more than its beginning.
        let skipped = name.len().saturating_sub(8 * NAME);
        for (i, &byte) in name.as_bytes()[skipped..].iter().enumerate() {
            self.words[WORDS - NAME + i / 8] |= u64::from(byte) << (i % 8 * 8);
        }
        self.words[LENGTH] = length as u64;
        self
    }

    /// … with these elements per rank.
    #[inline]
    pub(crate) fn counts(mut self, counts: &[usize]) -> Self {
        self.words[COUNTS_HASH] = counts.iter().fold(SEED, |hash, &n| mix(hash, n as u64));
        self
    }

    /// … combined by `op`.
    #[inline]
    pub(crate) fn op(mut self, op: ReduceOp) -> Self {
        self.words[KIND] |= (op as u64 + 1) << OP;
        self
    }

    /// … from this root, or on this region.
    #[inline]
    pub(crate) fn subject(mut self, subject: u64) -> Self {
        self.words[SUBJECT] = subject;
        self
    }

    /// … as number `sequence` of its communicator.
    #[inline]
    pub(crate) fn at(mut self, sequence: u64) -> Self {
        self.words[SEQUENCE] = sequence;
        self
    }

    /// … with arguments that this rank refuses.
    pub(crate) fn refused(mut self) -> Self {
        self.words[KIND] |= REFUSED;
        self
    }

    /// The collective called.
    pub fn collective(&self) -> Collective {
        Collective::ALL[usize::from(self.words[KIND] as u8)]
    }

    /// The call's place in its communicator's sequence, from 1.
    pub fn sequence(&self) -> u64 {
        self.words[SEQUENCE]
    }

    /// Collective and place alone.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone no record travels"
    )]
    #[inline]
    pub(crate) fn step(&self) -> CallPosition {
        CallPosition {
            collective: self.collective(),
            sequence: self.sequence(),
        }
    }

    fn reduce_op(&self) -> Option<ReduceOp> {
        let number = usize::from((self.words[KIND] >> OP) as u8);
        OPERATORS.get(number.checked_sub(1)?).copied()
    }

    /// 64 bits that are the same on two ranks exactly if (but for a chance of 2⁻⁶⁴) they make the
    /// same call.
    #[inline]
    pub fn digest(&self) -> u64 {
        // Independent products: short in time, and words that differ in one place never collide,
        // since every factor is odd.
        let products = self.words.iter().zip(FACTORS);
        let sum = products.fold(0u64, |sum, (word, factor)| {
            sum.wrapping_add(word.wrapping_mul(factor))
        });
        mix(SEED, sum)
    }

    /// The call signature as it lies in memory that ranks share, and on the wire.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone no signature travels"
    )]
    #[inline]
    pub(crate) fn words(&self) -> &[u64; Self::LEN] {
        &self.words
    }

    /// Reads what [`words`](Self::words) gave; `None` if it is nothing of the kind.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone no signature travels"
    )]
    pub(crate) fn from_words(words: [u64; Self::LEN]) -> Option<Self> {
        let collective = usize::from(words[KIND] as u8);
        let op = usize::from((words[KIND] >> OP) as u8);
        let known = collective < Collective::ALL.len() && op <= OPERATORS.len();
        known.then_some(Self { words })
    }

    /// Words of a call signature.
    pub(crate) const LEN: usize = WORDS;

    fn type_name(&self) -> String {
        let bytes = self.words[WORDS - NAME..]
            .iter()
            .flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

const OPERATORS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max];

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One for each word but those of the name, which the hash stands for.
const FACTORS: [u64; WORDS - NAME] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0x2545_f491_4f6c_dd1d,
];

/// One round of a multiplicative hash; a handful of cycles, as it runs in every collective.
#[inline]
const fn mix(hash: u64, value: u64) -> u64 {
    let x = (hash ^ value).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Reads as the call does: `call 17: allreduce(sum) of 4 f64`.
impl fmt::Display for CallSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}: {}", self.sequence(), self.collective())?;
        match self.reduce_op() {
            Some(ReduceOp::Sum) => f.write_str("(sum)")?,
            Some(ReduceOp::Min) => f.write_str("(min)")?,
            Some(ReduceOp::Max) => f.write_str("(max)")?,
            None => {}
        }
        if self.words[ELEMENT] > 0 {
            write!(f, " of {} {}", self.words[LENGTH], self.type_name())?;
        }
        match self.collective() {
            Collective::Broadcast => write!(f, " from root {}", self.words[SUBJECT])?,
            Collective::Fence => write!(f, " on region {}", self.words[SUBJECT])?,
            Collective::Gatherv => write!(f, " to root {}", self.words[SUBJECT])?,
            _ => {}
        }
        match self.collective() {
            Collective::Allgatherv | Collective::Gatherv | Collective::CreatePartitionedRegion => {
                write!(f, " with counts #{:08x}", self.words[COUNTS_HASH] >> 32)?;
            }
            _ => {}
        }
        if self.words[KIND] & REFUSED != 0 {
            f.write_str(", arguments refused")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stamp({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduction(op: ReduceOp) -> CallSignature {
        CallSignature::new(Collective::Allreduce)
            .elements::<f64>(4)
            .op(op)
            .at(17)
    }

    fn of_type<T: CommData>() -> CallSignature {
        let signature = CallSignature::new(Collective::Allreduce).elements::<T>(4);
        signature.op(ReduceOp::Sum).at(17)
    }

    fn sum_of(length: usize) -> CallSignature {
        CallSignature::new(Collective::Allreduce)
            .elements::<f64>(length)
            .op(ReduceOp::Sum)
            .at(17)
    }

    #[test]
    fn every_difference_changes_the_digest() {
        let gather = |counts: &[usize]| {
            CallSignature::new(Collective::Allgatherv)
                .elements::<u8>(4)
                .counts(counts)
                .digest()
        };
        let root = |root| {
            CallSignature::new(Collective::Broadcast)
                .subject(root)
                .digest()
        };
        let digests = [
            sum_of(4).digest(),
            sum_of(5).digest(),
            sum_of(4).at(18).digest(),
            reduction(ReduceOp::Min).digest(),
            reduction(ReduceOp::Max).digest(),
            sum_of(4).refused().digest(),
            of_type::<i64>().digest(),
            of_type::<[u8; 8]>().digest(),
            gather(&[1, 3]),
            gather(&[3, 1]),
            gather(&[2, 2]),
            gather(&[4]),
            gather(&[4, 0]),
            root(0),
            root(1),
            CallSignature::new(Collective::Barrier).digest(),
            CallSignature::new(Collective::Fence).digest(),
        ];
        for (i, a) in digests.iter().enumerate() {
            for b in &digests[i + 1..] {
                assert_ne!(a, b, "digest {i} is not alone");
            }
        }
        assert_eq!(sum_of(4).digest(), sum_of(4).digest());
    }

    #[test]
    fn a_stamp_survives_its_journey() {
        for collective in Collective::ALL {
            let signature = CallSignature::new(collective)
                .elements::<[u8; 3]>(9)
                .subject(4)
                .counts(&[4, 5]);
            for signature in [
                signature,
                signature.op(ReduceOp::Max),
                signature.at(1 << 40).refused(),
            ] {
                assert_eq!(
                    CallSignature::from_words(*signature.words()),
                    Some(signature)
                );
            }
        }
        assert_eq!(
            CallSignature::from_words([u64::MAX; CallSignature::LEN]),
            None
        );
    }

    #[test]
    fn a_stamp_reads_as_the_call_does() {
        assert_eq!(sum_of(4).to_string(), "call 17: allreduce(sum) of 4 f64");
        let refused = CallSignature::new(Collective::Broadcast)
            .elements::<[u8; 3]>(2)
            .subject(9)
            .refused();
        assert_eq!(
            refused.to_string(),
            "call 0: broadcast of 2 [u8; 3] from root 9, arguments refused"
        );
        let gather = CallSignature::new(Collective::Gatherv)
            .elements::<u8>(3)
            .counts(&[1, 2])
            .subject(1)
            .to_string();
        assert!(
            gather.starts_with("call 0: gatherv of 3 u8 to root 1 with counts #"),
            "{gather}"
        );
    }
}
