//! The words and kernel calls of the event count on a real machine.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::event_count::Machine;
use super::system::{self, futex};

/// The way in which a rank sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleep {
    /// On the event word itself, by the kernel's futex.
    Futex,
    /// For a short while at a time: any Unix can do that.
    Nap,
}

/// Longest nap: what a publisher's news may be late by, where there is no futex.
pub(super) const NAP: Duration = Duration::from_micros(200);

impl Machine for Sleep {
    type W64 = AtomicU64;
    type W32 = AtomicU32;

    #[inline]
    fn load64(word: &AtomicU64, order: Ordering) -> u64 {
        word.load(order)
    }

    #[inline]
    fn swap64(word: &AtomicU64, value: u64, order: Ordering) {
        system::step();
        word.swap(value, order);
    }

    #[inline]
    fn load32(word: &AtomicU32, order: Ordering) -> u32 {
        word.load(order)
    }

    #[inline]
    fn add32(word: &AtomicU32, value: u32, order: Ordering) {
        word.fetch_add(value, order);
    }

    #[inline]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }

    fn sleep(&self, word: &AtomicU32, seen: u32, slice: Duration) {
        match self {
            Self::Futex => futex::wait(word, seen, slice),
            Self::Nap if word.load(Ordering::Relaxed) == seen => {
                std::thread::sleep(slice.min(NAP));
            }
            Self::Nap => {}
        }
    }

    fn wake_all(word: &AtomicU32) {
        futex::wake_all(word);
    }

    #[inline]
    fn spin() {
        std::hint::spin_loop();
    }

    fn yield_now() {
        system::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_count::{self, EventCount, WaitPolicy};
    use super::super::system::Instant;
    use super::*;
    use crate::backends::spin::Spin;

    struct Segment {
        sleep: Sleep,
        events: AtomicU32,
        sleepers: AtomicU32,
        stopped: AtomicU32,
        arrived: [AtomicU64; 2],
    }

    impl EventCount for Segment {
        type Machine = Sleep;

        fn machine(&self) -> &Sleep {
            &self.sleep
        }

        fn events(&self) -> &AtomicU32 {
            &self.events
        }

        fn sleepers(&self) -> &AtomicU32 {
            &self.sleepers
        }

        fn stopped(&self) -> &AtomicU32 {
            &self.stopped
        }
    }

    /// Two threads that go to sleep at once, over and over, with an event word about to wrap around.
    fn take_turns(sleep: Sleep, turns: u64) -> u32 {
        let segment = Segment {
            sleep,
            events: AtomicU32::new(u32::MAX - 5),
            sleepers: AtomicU32::new(0),
            stopped: AtomicU32::new(0),
            arrived: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        let wait_policy = WaitPolicy {
            spin: Spin {
                spins: 0,
                yields: 0,
            },
            slice: Duration::from_secs(60),
        };
        let side = |me: usize| {
            for turn in 1..=turns {
                event_count::publish(&segment, &segment.arrived[me], turn);
                let other = &segment.arrived[1 - me];
                let until = || (Some(Instant::now() + Duration::from_secs(60)), ());
                let there = || event_count::reached::<Segment>(other, turn);
                event_count::wait(&segment, &wait_policy, until, there).unwrap();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| side(1));
            side(0);
        });
        segment.events.load(Ordering::Relaxed)
    }

    #[test]
    fn no_wake_is_lost_when_the_bell_wraps_around() {
        let events = take_turns(Sleep::Futex, 2000);
        assert!(
            events < u32::MAX - 5,
            "the event word never wrapped: {events}"
        );
    }

    #[test]
    fn napping_ranks_find_what_was_published() {
        take_turns(Sleep::Nap, 200);
    }
}
