//! The report of a stall: ranks that have waited long in a collective, and who keeps them waiting.
//! It ends nothing, since slow is not dead.

use std::fmt::Write;
use std::time::Duration;

use super::rank_status::RankStatus;
use super::segment::Mapping;
use crate::error::CallPosition;

/// A process that runs shows itself every few milliseconds, far more often than this.
const UNSEEN: Duration = Duration::from_millis(500);

/// The schedule of reports.
#[derive(Debug)]
pub(super) struct Stall {
    after: Duration,
    next: Duration,
}

impl Stall {
    /// Reports after `after`, and again each time the wait has doubled.
    pub(super) fn after(after: Duration) -> Self {
        Self { after, next: after }
    }

    /// The report that is due, if one is, and if it is `rank`'s to make: that of the first rank whose
    /// process runs.
    pub(super) fn due(&mut self, header: &Mapping, rank: usize, ranks: usize) -> Option<String> {
        let runs = |rank: usize| {
            let status = RankStatus::of(header, rank);
            !status.has_left() && status.seen() < UNSEEN
        };
        if (0..rank).any(runs) {
            return None;
        }
        let longest = (0..ranks).filter_map(|rank| RankStatus::of(header, rank).asleep());
        let longest = longest.max().unwrap_or_default();
        if longest < self.after {
            self.next = self.after;
        }
        if longest < self.next {
            return None;
        }
        self.next = longest * 2;
        Some(report(header, ranks, longest))
    }
}

/// One line for the ranks that wait in a collective, and one for each that does not.
fn report(header: &Mapping, ranks: usize, longest: Duration) -> String {
    let mut text = format!("cobre: ranks have waited for {} s\n", longest.as_secs());
    let mut waiting: Vec<(CallPosition, Vec<usize>)> = Vec::new();
    for rank in 0..ranks {
        let status = RankStatus::of(header, rank);
        if let (Some(_), Some(step)) = (status.asleep(), status.step()) {
            match waiting.iter_mut().find(|(known, _)| *known == step) {
                Some((_, ranks)) => ranks.push(status.number()),
                None => waiting.push((step, vec![status.number()])),
            }
        }
    }
    for (step, ranks) in waiting {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "cobre:   arrived in {step}: {}", ranks.join(", "));
    }
    for rank in 0..ranks {
        let status = RankStatus::of(header, rank);
        if status.asleep().is_none() && !status.has_left() {
            let _ = writeln!(text, "cobre:   not arrived: {}", absent(status));
        }
    }
    text
}

fn absent(status: RankStatus<'_>) -> String {
    let last = CallPosition::describe_last(status.step());
    let seen = status.seen();
    let state = if seen < UNSEEN {
        "its process runs".to_owned()
    } else {
        format!(
            "its process was last seen {} s ago (stopped?)",
            seen.as_secs()
        )
    };
    let (number, pid) = (status.number(), status.pid());
    format!("rank {number} (pid {pid}); {last}; {state}")
}
