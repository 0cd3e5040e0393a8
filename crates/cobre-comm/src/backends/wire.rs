//! A cause as bytes: how one rank tells the others why the job failed, in shared memory and on the
//! wire.

use std::time::Duration;

use super::MAX_RANKS;
use crate::call_signature::CallSignature;
use crate::error::{Call, CallPosition, Cause, Loss};

/// Longest encoding of a cause.
#[allow(
    dead_code,
    reason = "only who keeps room for a record before there is one needs it"
)]
pub(crate) const LONGEST: usize = 4096;

/// Kinds of record.
const ABORTED: u8 = 1;
const MISMATCH: u8 = 2;
const DEADLINE: u8 = 3;
const OTHER: u8 = 4;
const LOST: u8 = 5;

/// The action of a failure that another rank has reported.
const ELSEWHERE: &str = "another rank failed";

/// Longest text in a record; longer ones are cut.
const TEXT: usize = 1024;

/// The cause as bytes, at most [`LONGEST`] of them.
pub(crate) fn encode(cause: &Cause) -> Vec<u8> {
    let mut out = Vec::new();
    match cause {
        Cause::Aborted {
            rank,
            host,
            pid,
            kind,
            reason,
            last,
        } => {
            out.push(ABORTED);
            number(&mut out, last.map_or(0, CallPosition::word));
            number(&mut out, *rank as u64);
            number(&mut out, u64::from(*pid));
            text(&mut out, host);
            text(&mut out, kind.name());
            text(&mut out, reason);
        }
        Cause::RankLost {
            rank,
            host,
            pid,
            how,
            last,
        } => {
            out.push(LOST);
            number(&mut out, last.map_or(0, CallPosition::word));
            number(&mut out, *rank as u64);
            number(&mut out, u64::from(*pid));
            text(&mut out, host);
            let (kind, figure, words) = match how {
                Loss::Signal(signal) => (0, *signal, ""),
                Loss::Exit(code) => (1, *code, ""),
                Loss::Panic(words) => (2, 0, words.as_str()),
                Loss::Left => (3, 0, ""),
                Loss::Vanished => (4, 0, ""),
                Loss::AfterPanic(words) => (5, 0, words.as_str()),
            };
            number(&mut out, kind);
            number(&mut out, u64::from(figure.cast_unsigned()));
            text(&mut out, words);
        }
        Cause::Mismatch { left, right } => {
            out.push(MISMATCH);
            for call in [left, right] {
                number(&mut out, call.rank as u64);
                call.signature
                    .words()
                    .iter()
                    .for_each(|&word| number(&mut out, word));
            }
        }
        Cause::Deadline { waited, missing } => {
            out.push(DEADLINE);
            number(&mut out, waited.as_millis() as u64);
            number(&mut out, missing.len().min(MAX_RANKS) as u64);
            for &rank in missing.iter().take(MAX_RANKS) {
                number(&mut out, rank as u64);
            }
        }
        // Passed on, not told again.
        Cause::Io { action, message } if action == ELSEWHERE => {
            out.push(OTHER);
            text(&mut out, message);
        }
        other => {
            out.push(OTHER);
            text(&mut out, &other.to_string());
        }
    }
    out
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn text(out: &mut Vec<u8>, value: &str) {
    let cut = value.floor_char_boundary(TEXT);
    number(out, cut as u64);
    out.extend(&value.as_bytes()[..cut]);
}

/// `None` for bytes that `encode` did not make: other processes can write there.
pub(crate) fn decode(bytes: &[u8]) -> Option<Cause> {
    let mut rest = WireReader(bytes);
    match rest.take(1)?[0] {
        ABORTED => Some(Cause::Aborted {
            last: CallPosition::of_word(rest.number()?),
            rank: rest.number()? as usize,
            pid: rest.number()? as u32,
            host: rest.text()?,
            kind: rest.text()?.parse().ok()?,
            reason: rest.text()?,
        }),
        LOST => {
            let last = CallPosition::of_word(rest.number()?);
            let (rank, pid) = (rest.number()? as usize, rest.number()? as u32);
            let host = rest.text()?;
            let (kind, figure) = (rest.number()?, (rest.number()? as u32).cast_signed());
            let how = match kind {
                0 => Loss::Signal(figure),
                1 => Loss::Exit(figure),
                2 => Loss::Panic(rest.text()?),
                3 => Loss::Left,
                4 => Loss::Vanished,
                5 => Loss::AfterPanic(rest.text()?),
                _ => return None,
            };
            Some(Cause::RankLost {
                rank,
                host,
                pid,
                how,
                last,
            })
        }
        MISMATCH => {
            let mut call = || {
                let rank = rest.number()? as usize;
                let mut words = [0; CallSignature::LEN];
                for word in &mut words {
                    *word = rest.number()?;
                }
                let signature = CallSignature::from_words(words)?;
                Some(Box::new(Call { rank, signature }))
            };
            Some(Cause::Mismatch {
                left: call()?,
                right: call()?,
            })
        }
        DEADLINE => {
            let waited = Duration::from_millis(rest.number()?);
            let missing = (0..rest.number()?.min(MAX_RANKS as u64))
                .map(|_| rest.number().map(|rank| rank as usize))
                .collect::<Option<_>>()?;
            Some(Cause::Deadline { waited, missing })
        }
        OTHER => Some(Cause::Io {
            action: ELSEWHERE.to_owned(),
            message: rest.text()?,
        }),
        _ => None,
    }
}

/// The bytes that are left to decode.
struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()? as usize;
        let bytes = self.take(len.min(TEXT))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_signature::Collective;
    use crate::error_kind::ErrorKind;
    use proptest::prelude::*;

    const STEP: Option<CallPosition> = Some(CallPosition {
        collective: Collective::Fence,
        sequence: 1 << 40,
    });

    fn lost(how: Loss, last: Option<CallPosition>) -> Cause {
        Cause::RankLost {
            rank: 2,
            host: "node-7".into(),
            pid: 41,
            how,
            last,
        }
    }

    fn aborted(text: &str) -> Cause {
        Cause::Aborted {
            rank: usize::MAX,
            host: text.into(),
            pid: u32::MAX,
            kind: ErrorKind::Io,
            reason: text.into(),
            last: STEP,
        }
    }

    fn late(missing: usize) -> Cause {
        Cause::Deadline {
            waited: Duration::from_millis(1500),
            missing: (0..missing).collect(),
        }
    }

    fn mismatch() -> Cause {
        let call = |rank, collective| {
            let signature = CallSignature::new(collective).elements::<f64>(9).at(3);
            Box::new(Call { rank, signature })
        };
        Cause::Mismatch {
            left: call(0, Collective::Allreduce),
            right: call(200, Collective::Broadcast),
        }
    }

    #[test]
    fn every_kind_survives_its_journey() {
        let panic = Loss::Panic("index out of bounds".into());
        let losses = [
            Loss::Signal(9),
            Loss::Exit(3),
            panic,
            Loss::Left,
            Loss::Vanished,
            Loss::AfterPanic("caught, perhaps".into()),
        ];
        let losses = losses.map(|how| lost(how, STEP));
        let others = [aborted("why"), mismatch(), late(2), lost(Loss::Left, None)];
        for cause in losses.into_iter().chain(others) {
            assert_eq!(decode(&encode(&cause)), Some(cause));
        }
    }

    #[test]
    fn a_failure_that_travels_twice_is_told_once() {
        let cause = Cause::Io {
            action: "reading".into(),
            message: "no".into(),
        };
        let once = decode(&encode(&cause)).unwrap();
        assert_eq!(once.to_string(), "another rank failed: reading: no");
        assert_eq!(decode(&encode(&once)), Some(once));
    }

    #[test]
    fn the_longest_cause_fits() {
        let long = "ä".repeat(10_000);
        let panic = lost(Loss::Panic(long.clone()), STEP);
        for cause in [
            aborted(&long),
            panic,
            mismatch(),
            late(MAX_RANKS),
            late(9999),
        ] {
            assert!(encode(&cause).len() <= LONGEST);
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_not_trusted(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
        }
    }
}
