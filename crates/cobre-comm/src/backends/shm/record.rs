//! The one record of why a job failed, in the header of its segment: the first to post it wins,
//! and every rank answers every later call with it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::copy;
use super::layout::header;
use super::segment::Mapping;
use crate::copy::Store;
use crate::error::{Call, Cause, Loss};
use crate::stamp::Stamp;

/// Values of the `STOPPED` word.
const RUNNING: u32 = 0;
const WRITING: u32 = 1;
const POSTED: u32 = 2;

/// Posts `cause` and marks the job as failed; false if another rank was first. The caller rings.
pub(super) fn post(header: &Mapping, cause: &Cause) -> bool {
    let state = header.word32(header::STOPPED);
    // Winning is decided by the exchange alone; the text is published by the release below.
    let won = state.compare_exchange(RUNNING, WRITING, Ordering::Relaxed, Ordering::Relaxed);
    if won.is_ok() {
        let mut bytes = encode(cause);
        bytes.resize(header::RECORD_LEN, 0);
        copy::write(&bytes, area(header));
        // Pairs with the acquire loads in `read` and in every wait.
        state.store(POSTED, Ordering::Release);
    }
    won.is_ok()
}

/// The record, once it is posted; `None` while the job runs.
pub(super) fn read(header: &Mapping) -> Option<Cause> {
    let state = header.word32(header::STOPPED);
    match settled(state) {
        RUNNING => None,
        POSTED => {
            let mut bytes = vec![0; header::RECORD_LEN];
            copy::read(area(header), &mut bytes, Store::Cached);
            Some(decode(&bytes).unwrap_or_else(unreadable))
        }
        _ => Some(unreadable()),
    }
}

fn area(header: &Mapping) -> super::segment::SharedBytes<'_> {
    header.bytes(header::RECORD..header::RECORD + header::RECORD_LEN)
}

/// Waits out a writer for a moment: writing takes microseconds, unless the writer died in it.
fn settled(state: &AtomicU32) -> u32 {
    for _ in 0..1000 {
        // Pairs with the release in `post`.
        match state.load(Ordering::Acquire) {
            WRITING => std::thread::sleep(Duration::from_micros(100)),
            settled => return settled,
        }
    }
    WRITING
}

fn unreadable() -> Cause {
    Cause::Io {
        action: "reading why the job failed".to_owned(),
        message: "the rank that found out died while it wrote the record".to_owned(),
    }
}

/// Kinds of record.
const ABORTED: u8 = 1;
const MISMATCH: u8 = 2;
const DEADLINE: u8 = 3;
const OTHER: u8 = 4;
const LOST: u8 = 5;

/// Longest text in a record; longer ones are cut.
const TEXT: usize = 1024;

fn encode(cause: &Cause) -> Vec<u8> {
    let mut out = Vec::new();
    match cause {
        Cause::Aborted {
            rank,
            host,
            pid,
            reason,
        } => {
            out.push(ABORTED);
            number(&mut out, *rank as u64);
            number(&mut out, u64::from(*pid));
            text(&mut out, host);
            text(&mut out, reason);
        }
        Cause::RankLost {
            rank,
            host,
            pid,
            how,
        } => {
            out.push(LOST);
            number(&mut out, *rank as u64);
            number(&mut out, u64::from(*pid));
            text(&mut out, host);
            let (kind, figure, words) = match how {
                Loss::Signal(signal) => (0, *signal, ""),
                Loss::Exit(code) => (1, *code, ""),
                Loss::Panic(words) => (2, 0, words.as_str()),
                Loss::Left => (3, 0, ""),
                Loss::Vanished => (4, 0, ""),
            };
            number(&mut out, kind);
            number(&mut out, u64::from(figure.cast_unsigned()));
            text(&mut out, words);
        }
        Cause::Mismatch { left, right } => {
            out.push(MISMATCH);
            for call in [left, right] {
                number(&mut out, call.rank as u64);
                call.stamp
                    .words()
                    .iter()
                    .for_each(|&word| number(&mut out, word));
            }
        }
        Cause::Deadline { waited, missing } => {
            out.push(DEADLINE);
            number(&mut out, waited.as_millis() as u64);
            number(&mut out, missing.len() as u64);
            for &rank in missing {
                number(&mut out, rank as u64);
            }
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
fn decode(bytes: &[u8]) -> Option<Cause> {
    let mut rest = Rest(bytes);
    match rest.take(1)?[0] {
        ABORTED => Some(Cause::Aborted {
            rank: rest.number()? as usize,
            pid: rest.number()? as u32,
            host: rest.text()?,
            reason: rest.text()?,
        }),
        LOST => {
            let (rank, pid) = (rest.number()? as usize, rest.number()? as u32);
            let host = rest.text()?;
            let (kind, figure) = (rest.number()?, (rest.number()? as u32).cast_signed());
            let how = match kind {
                0 => Loss::Signal(figure),
                1 => Loss::Exit(figure),
                2 => Loss::Panic(rest.text()?),
                3 => Loss::Left,
                4 => Loss::Vanished,
                _ => return None,
            };
            Some(Cause::RankLost {
                rank,
                host,
                pid,
                how,
            })
        }
        MISMATCH => {
            let mut call = || {
                let rank = rest.number()? as usize;
                let mut words = [0; Stamp::LEN];
                for word in &mut words {
                    *word = rest.number()?;
                }
                let stamp = Stamp::from_words(words)?;
                Some(Box::new(Call { rank, stamp }))
            };
            Some(Cause::Mismatch {
                left: call()?,
                right: call()?,
            })
        }
        DEADLINE => {
            let waited = Duration::from_millis(rest.number()?);
            let missing = (0..rest.number()?.min(super::layout::MAX_RANKS as u64))
                .map(|_| rest.number().map(|rank| rank as usize))
                .collect::<Option<_>>()?;
            Some(Cause::Deadline { waited, missing })
        }
        OTHER => Some(Cause::Io {
            action: "another rank failed".to_owned(),
            message: rest.text()?,
        }),
        _ => None,
    }
}

/// What is left to decode.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
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
    use super::super::layout::HEADER;
    use super::*;
    use crate::stamp::Collective;
    use proptest::prelude::*;

    fn aborted(reason: &str) -> Cause {
        Cause::Aborted {
            rank: 3,
            host: "node-7".into(),
            pid: 41,
            reason: reason.into(),
        }
    }

    fn mismatch() -> Cause {
        let call = |rank, collective| {
            let stamp = Stamp::new(collective).elements::<f64>(9).at(3);
            Box::new(Call { rank, stamp })
        };
        Cause::Mismatch {
            left: call(0, Collective::Allreduce),
            right: call(200, Collective::Broadcast),
        }
    }

    #[test]
    fn the_first_record_stays() {
        let header = Mapping::anonymous(HEADER);
        assert_eq!(read(&header), None);
        assert!(post(&header, &aborted("first")));
        assert!(!post(&header, &aborted("second")));
        assert_eq!(read(&header), Some(aborted("first")));
    }

    #[test]
    fn every_kind_survives_its_journey() {
        let late = Cause::Deadline {
            waited: Duration::from_millis(1500),
            missing: vec![1, 5],
        };
        for cause in [aborted("why"), mismatch(), late] {
            assert_eq!(decode(&encode(&cause)), Some(cause));
        }
        let panic = Loss::Panic("index out of bounds".into());
        for how in [
            Loss::Signal(9),
            Loss::Exit(3),
            panic,
            Loss::Left,
            Loss::Vanished,
        ] {
            let cause = Cause::RankLost {
                rank: 2,
                host: "node-7".into(),
                pid: 41,
                how,
            };
            assert_eq!(decode(&encode(&cause)), Some(cause));
        }
    }

    #[test]
    fn the_longest_record_fits() {
        let long = "ä".repeat(10_000);
        let cause = Cause::Aborted {
            rank: usize::MAX,
            host: long.clone(),
            pid: u32::MAX,
            reason: long,
        };
        assert!(encode(&cause).len() <= header::RECORD_LEN);
        let everyone = Cause::Deadline {
            waited: Duration::MAX,
            missing: (0..super::super::layout::MAX_RANKS).collect(),
        };
        assert!(encode(&everyone).len() <= header::RECORD_LEN);
    }

    #[test]
    fn a_writer_that_died_is_no_hang() {
        let header = Mapping::anonymous(HEADER);
        header
            .word32(header::STOPPED)
            .store(WRITING, Ordering::Relaxed);
        assert_eq!(read(&header), Some(unreadable()));
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_not_trusted(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
        }
    }
}
