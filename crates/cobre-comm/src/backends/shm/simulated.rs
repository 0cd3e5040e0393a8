//! The names of `os.rs` in unit tests: ranks of a simulation (`tcp/simulation/`) get its clock, its threads, its futexes
//! and its segments, all others those of the operating system. The memory is real: the ranks of a simulated host,
//! threads of this process, have one mapping.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use super::layout::SegmentLayout;
use super::rank_status::{OWNER_DIED, RankStatus};
use super::rendezvous::{self, SegmentFile};
use super::segment::Mapping;
use super::{os, system};
use crate::backends::spin::Spin;
use crate::backends::tcp::simulation::world::{Wait, current};
use crate::env::ShmConfig;

pub(super) use crate::backends::tcp::simulation::system::{
    Instant, JoinHandle, sleep, spawn, unpark, yield_now,
};

/// Bytes of a ring and of a stage: small ones are filled often.
const RING: usize = 32 * 1024;
const STAGE: usize = 16 * 1024;

pub(super) fn step() {
    if let Some((world, me)) = current() {
        world.tick(me);
    }
}

pub(super) fn has_own_signals() -> bool {
    current().is_none()
}

pub(super) fn spin(is_crowded: bool, yields: u32) -> Spin {
    let Some((world, _)) = current() else {
        return os::spin(is_crowded, yields);
    };
    let yields = world.state().random.below(3) as u32;
    Spin { spins: 0, yields }
}

pub(super) fn await_message(messages: &Receiver<()>) {
    if current().is_none() {
        return os::await_message(messages);
    }
    while messages.try_recv() == Err(TryRecvError::Empty) {
        system::yield_now();
    }
}

/// A segment of a simulated host.
pub(in crate::backends) struct SimulatedSegment {
    mapping: Arc<Mapping>,
    layout: SegmentLayout,
    file: OwnedFd,
}

impl SimulatedSegment {
    fn new(config: &ShmConfig) -> rustix::io::Result<Self> {
        let layout = SegmentLayout::new(config.size, RING, STAGE);
        let file = rustix::fs::memfd_create("cobre-simulation", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, layout.total() as u64)?;
        let mapping = Arc::new(Mapping::new(
            std::os::fd::AsFd::as_fd(&file),
            0,
            layout.total(),
        )?);
        rendezvous::write_identity(&mapping, &layout, config);
        Ok(Self {
            mapping,
            layout,
            file,
        })
    }

    fn attached(&self) -> Result<(Arc<Mapping>, SegmentLayout, SegmentFile), String> {
        let file = self.file.try_clone().map_err(|error| error.to_string())?;
        let held = SegmentFile::Follower(file);
        Ok((self.mapping.clone(), self.layout, held))
    }

    /// Marks the word of a rank of the job that has died, as the kernel does: the word's address, if the rank held it.
    pub(in crate::backends) fn mark_dead(&self, rank: usize) -> Option<usize> {
        let places = (0..self.layout.ranks).map(|place| RankStatus::of(&self.mapping, place));
        let is_it = |status: &RankStatus<'_>| {
            status.number() == rank && status.alive().load(Relaxed) != 0 && !status.has_left()
        };
        let word = places.into_iter().find(is_it)?.alive();
        word.fetch_or(OWNER_DIED, Release);
        Some(address(word))
    }
}

pub(super) fn stage_bytes(ranks: usize) -> usize {
    current().map_or(os::stage_bytes(ranks), |_| STAGE)
}

pub(super) fn segment(
    config: &ShmConfig,
) -> Result<(Arc<Mapping>, SegmentLayout, SegmentFile), String> {
    let Some((world, me)) = current() else {
        return os::segment(config);
    };
    world.tick(me);
    let rank = world.rank_of(me);
    let mut state = world.state();
    if state.unmapped == Some(rank) {
        return Err("its plan says that it cannot map memory".to_owned());
    }
    if config.rank == 0 {
        let segment = SimulatedSegment::new(config).map_err(|error| error.to_string())?;
        state.add_segment(rank, &config.name, segment);
    }
    let found = state.segment(rank, &config.name);
    found.ok_or("no segment of this name")?.attached()
}

fn address(word: &AtomicU32) -> usize {
    word.as_ptr() as usize
}

pub(super) mod futex {
    use super::{AtomicU32, Duration, Relaxed, Wait, address, current, os};

    pub(in super::super) fn wait(futex_word: &AtomicU32, seen: u32, slice: Duration) {
        let Some((world, me)) = current() else {
            return os::futex::wait(futex_word, seen, slice);
        };
        world.tick(me);
        if futex_word.load(Relaxed) == seen {
            let mut state = world.state();
            let futex = state.futex(address(futex_word));
            let until = state.now.checked_add(slice);
            drop(state);
            world.block(me, Wait::Futexes(vec![futex]), until);
        }
    }

    pub(in super::super) fn wake_all(futex_word: &AtomicU32) {
        match current() {
            Some((world, _)) => world.state().wake_futex(address(futex_word)),
            None => os::futex::wake_all(futex_word),
        }
    }
}

pub(super) mod death {
    use super::{AtomicU32, Duration, Relaxed, Release, Wait, address, current, futex, os};
    use crate::detector::Detector;

    pub(in super::super) use os::death::{MOST_WATCHED, ProcessProbe};

    /// The time after which a death is found that nobody was woken for, and the same while nobody has died: then there is
    /// nothing to find.
    const SLICE: Duration = Duration::from_millis(10);
    const NOBODY_DIED: Duration = Duration::from_secs(5);

    pub(in super::super) fn detector() -> Detector {
        match current() {
            Some(_) => Detector::Woken,
            None => os::death::detector(),
        }
    }

    pub(in super::super) fn wait<'a>(
        quit: &AtomicU32,
        words: impl Iterator<Item = (&'a AtomicU32, u32)>,
        detector: Detector,
    ) {
        let Some((world, me)) = current() else {
            return os::death::wait(quit, words, detector);
        };
        world.tick(me);
        let words: Vec<(&AtomicU32, u32)> = words.collect();
        let has_changed = |(word, seen): &(&AtomicU32, u32)| word.load(Relaxed) != *seen;
        if has_changed(&(quit, 0)) || words.iter().any(has_changed) {
            return;
        }
        let mut state = world.state();
        let slice = if state.has_death() {
            SLICE
        } else {
            NOBODY_DIED
        };
        let mut futexes = vec![state.futex(address(quit))];
        futexes.extend(words.iter().map(|(word, _)| state.futex(address(word))));
        let until = state.now.checked_add(slice);
        drop(state);
        world.block(me, Wait::Futexes(futexes), until);
    }

    pub(in super::super) fn wait_for_quit(quit: &AtomicU32) {
        match current() {
            Some(_) => futex::wait(quit, 0, Duration::MAX),
            None => os::death::wait_for_quit(quit),
        }
    }

    pub(in super::super) fn wake_all(word: &AtomicU32) {
        match current() {
            Some(_) => futex::wake_all(word),
            None => os::death::wake_all(word),
        }
    }

    pub(in super::super) enum RankMark {
        System(os::death::RankMark),
        Simulated,
    }

    impl RankMark {
        pub(in super::super) fn of(word: &AtomicU32) -> Self {
            if current().is_none() {
                return Self::System(os::death::RankMark::of(word));
            }
            word.store(1, Release);
            Self::Simulated
        }

        pub(in super::super) fn release(self, word: &AtomicU32) {
            match self {
                Self::System(mark) => mark.release(word),
                Self::Simulated => {
                    word.store(0, Release);
                    futex::wake_all(word);
                }
            }
        }
    }
}
