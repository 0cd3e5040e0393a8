//! The operating system as ranks of a segment wait on it: clock, threads, futexes, the detection of deaths, the segment
//! of a host. The unit tests put a simulation behind the same names (`simulated.rs`).

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::layout::SegmentLayout;
use super::rendezvous::{self, MeetError, SegmentFile};
use super::segment::Mapping;
use crate::backends::spin::Spin;
use crate::env::ShmConfig;

pub(super) use super::death;
pub(super) use std::thread::{JoinHandle, sleep, yield_now};
pub(super) use std::time::Instant;

/// A step between ranks: only in a simulation do the others run at such points.
#[inline]
pub(super) const fn step() {}

/// True if the signals of this process are those of one rank.
pub(super) const fn has_own_signals() -> bool {
    true
}

/// Number of looks before a rank of a host sleeps.
pub(super) fn spin(is_crowded: bool, yields: u32) -> Spin {
    Spin::new(is_crowded, yields)
}

/// Starts a thread.
pub(super) fn spawn(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new();
    builder.name(name.to_owned()).stack_size(stack).spawn(work)
}

/// Wakes a thread that is parked.
pub(super) fn unpark(thread: &JoinHandle<()>) {
    thread.thread().unpark();
}

/// Waits for the one message of a thread, or its end.
pub(super) fn await_message(messages: &Receiver<()>) {
    let _ = messages.recv();
}

/// Bytes of a stage in the segment of a host of so many ranks.
pub(super) const fn stage_bytes(ranks: usize) -> usize {
    SegmentLayout::stage_bytes(ranks)
}

/// The segment that `config` names: created by its rank 0, opened by the others once it is there.
pub(super) fn segment(
    config: &ShmConfig,
) -> Result<(Arc<Mapping>, SegmentLayout, SegmentFile), String> {
    let (mapping, layout, file) = if config.rank == 0 {
        rendezvous::create(config).map_err(MeetError::into_text)?
    } else {
        rendezvous::open(config)?
    };
    Ok((Arc::new(mapping), layout, file))
}

#[cfg(not(cobre_portable))]
pub(super) mod futex {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::thread::futex::{Flags, Timespec, wait as wait_on, wake};

    /// Not private: the word lies in memory that several processes map.
    const SHARED: Flags = Flags::empty();

    pub(in super::super) fn wait(word: &AtomicU32, seen: u32, slice: Duration) {
        let slice = Timespec {
            tv_sec: slice.as_secs().cast_signed(),
            tv_nsec: slice.subsec_nanos().into(),
        };
        // Woken, late, interrupted or changed before: the caller looks again in any case.
        let _ = wait_on(word, SHARED, seen, Some(&slice));
    }

    pub(in super::super) fn wake_all(word: &AtomicU32) {
        let _ = wake(word, SHARED, i32::MAX as u32);
    }
}

#[cfg(cobre_portable)]
pub(super) mod futex {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use super::super::machine::NAP;

    pub(in super::super) fn wait(_: &AtomicU32, _: u32, slice: Duration) {
        std::thread::sleep(slice.min(NAP));
    }

    pub(in super::super) fn wake_all(_: &AtomicU32) {}
}
