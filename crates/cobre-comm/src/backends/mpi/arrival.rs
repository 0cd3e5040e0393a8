//! Comparison of call signatures: a *frame* of each rank reaches all others, with the digest of its call signature and
//! whatever small data it brings. Frames say how long they are, and there is room for the longest, so ranks that
//! disagree still meet.

use std::sync::{MutexGuard, PoisonError};

use super::Member;
use super::collectives::int;
use crate::backends::wire;
use crate::call_signature::CallSignature;
use crate::error::{Call, Cause};
use crate::transport::TransportFault;

/// Words of a frame before its payload: the digest, and the payload's bytes.
const HEAD: usize = 2;
/// Bytes that travel with a digest at most; beyond, a call of MPI's own costs less than the copies.
const PAYLOAD: usize = 8 << 10;
/// Bytes that the payloads of all ranks together may take.
const PAYLOADS: usize = 1 << 20;
/// Instead of a digest: this rank is leaving.
const LEAVING: u64 = 0x6c65_6176_696e_6721;

/// Words of a statement: what a rank says when digests differ.
const STATEMENT: usize = 1 + wire::LONGEST / 8;
/// Kinds of statement.
const CALL: u64 = 1;
const RECORD: u64 = 2;

/// Memory for the frames of all ranks.
pub(super) struct FrameBuffer {
    /// The frames of this rank and of those after it, in that order.
    words: Vec<u64>,
    /// The place of each rank's frame.
    places: Vec<usize>,
    /// Bytes of a payload at most.
    payload: usize,
}

impl FrameBuffer {
    /// Room for the frames of `size` ranks.
    pub(super) fn new(size: usize) -> Self {
        let payload = longest_payload(size);
        Self {
            words: vec![0; size * (HEAD + payload / 8)],
            places: vec![0; size],
            payload,
        }
    }
}

/// Bytes that travel with the digest at most where there are `size` ranks: the same on all of them.
pub(super) fn longest_payload(size: usize) -> usize {
    PAYLOAD.min(PAYLOADS / size / 8 * 8)
}

/// The frames of all ranks in one call.
pub(super) struct Frames<'a>(MutexGuard<'a, FrameBuffer>);

impl Frames<'_> {
    /// The payload that `rank` brought.
    #[inline]
    pub(super) fn payload(&self, rank: usize) -> &[u8] {
        let FrameBuffer { words, places, .. } = &*self.0;
        let frame = &words[places[rank]..];
        &bytemuck::cast_slice(&frame[HEAD..])[..frame[1] as usize]
    }
}

/// Meets all ranks in the call that `signature` describes; `payload` has at most [`longest_payload`] bytes.
#[inline]
pub(super) fn meet<'a>(
    member: &'a Member,
    signature: &CallSignature,
    payload: &[u8],
) -> Result<Frames<'a>, TransportFault> {
    let said = || {
        let mut statement = vec![0; STATEMENT];
        statement[0] = CALL;
        statement[1..=CallSignature::LEN].copy_from_slice(signature.words());
        statement
    };
    exchange(member, signature.digest(), payload, said)
}

/// Meets all ranks in leaving; an error if some of them make another call.
pub(super) fn leave(member: &Member, lost: &Cause) -> Result<(), TransportFault> {
    let said = || {
        let mut statement = vec![0; STATEMENT];
        statement[0] = RECORD;
        let record = wire::encode(lost);
        bytemuck::cast_slice_mut(&mut statement[1..])[..record.len()].copy_from_slice(&record);
        statement
    };
    exchange(member, LEAVING, &[], said).map(drop)
}

/// Gives all ranks all frames, as Bruck's allgather does: with each step a rank gets as many frames of the ranks
/// after it as it has, until it has all. Two ranks swap theirs.
#[inline]
fn exchange<'a>(
    member: &'a Member,
    digest: u64,
    payload: &[u8],
    said: impl FnOnce() -> Vec<u64>,
) -> Result<Frames<'a>, TransportFault> {
    let (rank, size) = (member.rank, member.size);
    let mut frames = member.frames.lock().unwrap_or_else(PoisonError::into_inner);
    let FrameBuffer {
        words,
        places,
        payload: longest,
    } = &mut *frames;
    (words[0], words[1]) = (digest, payload.len() as u64);
    bytemuck::cast_slice_mut(&mut words[HEAD..])[..payload.len()].copy_from_slice(payload);
    places[rank] = 0;
    let (mut held, mut end) = (1, HEAD + payload.len().div_ceil(8));
    let mut agreed = true;
    while held < size {
        let count = held.min(size - held);
        let (own, rest) = words.split_at_mut(end);
        let sent = if count == held {
            end
        } else {
            places[(rank + count) % size]
        };
        let room = count * (HEAD + *longest / 8);
        let to = int((rank + size - held) % size);
        let from = int((rank + held) % size);
        let outcome = member
            .calls()
            .swap(&own[..sent], to, &mut rest[..room], from);
        outcome.map_err(|error| member.broken(&error))?;
        for next in held..held + count {
            let Some(frame) = words
                .get(end..end + HEAD)
                .filter(|frame| frame[1] <= *longest as u64)
            else {
                return Err(member.fail(unreadable()));
            };
            agreed &= frame[0] == digest;
            places[(rank + next) % size] = end;
            end += HEAD + (frame[1] as usize).div_ceil(8);
        }
        held += count;
    }
    if agreed {
        return Ok(Frames(frames));
    }
    Err(disagree(member, &said()))
}

/// Every rank says what it does, and all draw the same conclusion.
#[cold]
fn disagree(member: &Member, said: &[u64]) -> TransportFault {
    let mut all = vec![0; STATEMENT * member.size];
    match member.calls().allgather(said, &mut all) {
        Ok(()) => member.fail(conclusion(&all)),
        Err(error) => member.broken(&error),
    }
}

/// A rank that leaves is the cause; else the first that differs from rank 0.
fn conclusion(statements: &[u64]) -> Cause {
    let mut calls = Vec::new();
    for (rank, said) in statements.chunks(STATEMENT).enumerate() {
        let words = said[1..=CallSignature::LEN]
            .try_into()
            .unwrap_or([0; CallSignature::LEN]);
        let (CALL, Some(signature)) = (said[0], CallSignature::from_words(words)) else {
            let record = wire::decode(bytemuck::cast_slice(&said[1..]));
            return record.unwrap_or_else(unreadable);
        };
        calls.push(Call { rank, signature });
    }
    let first = calls.first().cloned();
    let other = first.clone().and_then(|first| {
        let mut others = calls.into_iter();
        others.find(|call| call.signature.digest() != first.signature.digest())
    });
    match (first, other) {
        (Some(left), Some(right)) => Cause::Mismatch {
            left: Box::new(left),
            right: Box::new(right),
        },
        _ => unreadable(),
    }
}

fn unreadable() -> Cause {
    Cause::Io {
        action: "comparing what the ranks called".to_owned(),
        message: "their call signatures are invalid; do all ranks run one program?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_signature::Collective;
    use crate::error::Loss;

    fn call(collective: Collective) -> Vec<u64> {
        let mut said = vec![0; STATEMENT];
        said[0] = CALL;
        said[1..=CallSignature::LEN].copy_from_slice(CallSignature::new(collective).at(7).words());
        said
    }

    fn leaving(lost: &Cause) -> Vec<u64> {
        let mut said = vec![0; STATEMENT];
        said[0] = RECORD;
        let record = wire::encode(lost);
        bytemuck::cast_slice_mut(&mut said[1..])[..record.len()].copy_from_slice(&record);
        said
    }

    #[test]
    fn the_first_that_differs_from_rank_0_is_shown() {
        let barrier = || call(Collective::Barrier);
        let all = [barrier(), barrier(), call(Collective::Fence), barrier()].concat();
        let Cause::Mismatch { left, right } = conclusion(&all) else {
            panic!("no mismatch");
        };
        assert_eq!((left.rank, right.rank), (0, 2));
        assert_eq!(right.signature.collective(), Collective::Fence);
    }

    #[test]
    fn a_rank_that_leaves_is_the_cause_whoever_else_differs() {
        let lost = Cause::RankLost {
            rank: 2,
            host: "node-7".into(),
            pid: 41,
            how: Loss::Left,
            last: None,
        };
        let (barrier, fence) = (call(Collective::Barrier), call(Collective::Fence));
        let all = [barrier, fence, leaving(&lost)].concat();
        assert_eq!(conclusion(&all), lost);
    }

    #[test]
    fn statements_that_make_no_sense_are_an_error_and_no_panic() {
        assert_eq!(conclusion(&vec![u64::MAX; 2 * STATEMENT]), unreadable());
        let same = [call(Collective::Fence), call(Collective::Fence)].concat();
        assert_eq!(conclusion(&same), unreadable());
    }
}
