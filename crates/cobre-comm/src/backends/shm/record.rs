//! The one record of why a job failed, in the header of its segment: the first to post it wins,
//! and every rank answers every later call with it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::copy;
use super::layout::header;
use super::segment::Mapping;
use super::system;
use crate::backends::wire;
use crate::copy::StoreMode;
use crate::error::Cause;

/// Values of the `STOPPED` word.
const RUNNING: u32 = 0;
const WRITING: u32 = 1;
const POSTED: u32 = 2;
/// The one who wrote did not come to an end in time; what it wrote does not count.
const BROKEN: u32 = 3;

/// Posts `cause` and marks the job as failed; false if another rank was first. The caller notifies the sleepers.
pub(super) fn post(header: &Mapping, cause: &Cause) -> bool {
    let state = header.word32(header::STOPPED);
    let mut bytes = wire::encode(cause);
    bytes.resize(header::RECORD_LEN, 0);
    // Winning is decided by the exchange alone; the text is published by the release below.
    let won = state.compare_exchange(RUNNING, WRITING, Relaxed, Relaxed);
    if won.is_ok() {
        copy::write(&bytes, area(header));
        // Pairs with the acquire loads in `read` and in every wait. Fails if someone has given this
        // record up: all answer alike, whichever comes first.
        let _ = state.compare_exchange(WRITING, POSTED, Release, Relaxed);
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
            copy::read(area(header), &mut bytes, StoreMode::Cached);
            Some(wire::decode(&bytes).unwrap_or_else(unreadable))
        }
        _ => Some(unreadable()),
    }
}

fn area(header: &Mapping) -> super::segment::SharedBytes<'_> {
    header.bytes(header::RECORD..header::RECORD + header::RECORD_LEN)
}

/// Waits out a writer for a moment: writing takes microseconds, unless the writer died in it. Then
/// its record is given up, for all and for good.
fn settled(state: &AtomicU32) -> u32 {
    for _ in 0..1000 {
        // Pairs with the release in `post`.
        match state.load(Acquire) {
            WRITING => system::sleep(Duration::from_micros(100)),
            settled => return settled,
        }
    }
    match state.compare_exchange(WRITING, BROKEN, Relaxed, Acquire) {
        Ok(_) => BROKEN,
        Err(settled) => settled,
    }
}

fn unreadable() -> Cause {
    Cause::Io {
        action: "reading why the job failed".to_owned(),
        message: "the rank that found out died or was stopped while it wrote the record".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::HEADER;
    use super::*;
    use crate::error_kind::ErrorKind;

    fn aborted(reason: &str) -> Cause {
        Cause::Aborted {
            rank: 3,
            host: "node-7".into(),
            pid: 41,
            kind: ErrorKind::Solver,
            reason: reason.into(),
            last: None,
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
    fn a_writer_that_died_is_no_hang() {
        let header = Mapping::anonymous(HEADER);
        let state = header.word32(header::STOPPED);
        state.store(WRITING, Relaxed);
        assert_eq!(read(&header), Some(unreadable()));
        // Whoever was only slow comes too late: the answer stays what it was.
        let late = state.compare_exchange(WRITING, POSTED, Release, Relaxed);
        assert!(late.is_err());
        assert_eq!(read(&header), Some(unreadable()));
    }
}
