//! The different cuts of a node, found by their numbers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::cuts::Cuts;

/// The slots of different cuts, by the hash of their numbers; of cuts with equal hashes, by the next free number.
#[derive(Debug, Default)]
pub(super) struct KnownCuts(HashMap<u64, u32>);

impl KnownCuts {
    /// Adds a cut; returns false if an equal one that `counts` is known.
    pub(super) fn add(&mut self, all: &Cuts<'_>, slot: u32, counts: impl Fn(u32) -> bool) -> bool {
        let mut key = hash(all, slot);
        loop {
            match self.0.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(slot);
                    return true;
                }
                Entry::Occupied(mut known) if equal(all, slot, *known.get()) => {
                    if counts(*known.get()) {
                        return false;
                    }
                    known.insert(slot);
                    return true;
                }
                Entry::Occupied(_) => key = key.wrapping_add(1),
            }
        }
    }

    /// Makes room for so many more cuts.
    pub(super) fn reserve(&mut self, cuts: usize) {
        self.0.reserve(cuts);
    }
}

/// The bits of a cut.
pub(super) fn bits<'a>(cuts: &Cuts<'a>, slot: u32) -> impl Iterator<Item = u64> + use<'a> {
    cuts.numbers(slot).iter().map(|number| number.to_bits())
}

fn equal(cuts: &Cuts<'_>, one: u32, other: u32) -> bool {
    bits(cuts, one).eq(bits(cuts, other))
}

fn hash(cuts: &Cuts<'_>, slot: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    for number in bits(cuts, slot) {
        number.hash(&mut hasher);
    }
    hasher.finish()
}
