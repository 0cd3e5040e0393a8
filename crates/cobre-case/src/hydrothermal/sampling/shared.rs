//! Noise that neighbouring stages of one season and year share: opening k is the same in all of them.

use crate::hydrothermal::system::System;

/// The stages that share noise with a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedNoise {
    /// The first of them.
    pub(super) first: usize,
    /// The most openings of any of them.
    pub(super) openings: usize,
}

/// By stage, those that it shares noise with.
pub(super) fn resolve(system: &System) -> Vec<SharedNoise> {
    let count = system.stages.len();
    let mut found: Vec<SharedNoise> = Vec::new();
    for stage in 0..count {
        let first = match found.last() {
            Some(before) if same_season(system, stage - 1, stage) => before.first,
            _ => stage,
        };
        let openings = system.stages[stage].openings;
        found.push(SharedNoise { first, openings });
    }
    for stage in (0..count).rev() {
        let (first, openings) = (found[stage].first, found[stage].openings);
        found[first].openings = found[first].openings.max(openings);
    }
    for stage in 0..count {
        found[stage].openings = found[found[stage].first].openings;
    }
    found
}

/// True if two stages are of one season and year.
fn same_season(system: &System, one: usize, other: usize) -> bool {
    if let Some(timeline) = &system.timeline {
        return timeline.stages[one].2 == timeline.stages[other].2;
    }
    let of = |stage: usize| {
        let stage = &system.stages[stage];
        Some((stage.season?, stage.start_date.calendar().0))
    };
    of(one).is_some() && of(one) == of(other)
}
