//! Cut selection.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::Cuts;

/// The relative tolerance within which a cut counts as the highest.
const TIE: f64 = 1e-10;

/// The cut selection of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// The rule.
    pub rule: SelectionRule,
    /// The most cuts a node uses.
    pub cap: Option<usize>,
}

/// A rule of cut selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SelectionRule {
    /// All cuts.
    All,
    /// Level-1: the cuts that are highest at some trial point visited, ties included.
    Level1,
    /// Limited-memory level-1: for each trial point visited, the oldest of the cuts that are
    /// highest there.
    LimitedMemoryLevel1,
}

impl Selection {
    /// All cuts.
    pub const ALL: Self = Self {
        rule: SelectionRule::All,
        cap: None,
    };
}

/// As [`FromStr`] reads it.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rule {
            SelectionRule::All => "none",
            SelectionRule::Level1 => "level1",
            SelectionRule::LimitedMemoryLevel1 => "lml1",
        })?;
        self.cap.map_or(Ok(()), |cap| write!(f, ":{cap}"))
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "none, level1 or lml1 is expected, with :CAP for a cap per node";
        let (name, cap) = match text.split_once(':') {
            None => (text, None),
            Some((name, cap)) => {
                let cap = cap.parse().ok().filter(|cap: &usize| *cap > 0);
                (name, Some(cap.ok_or(expected)?))
            }
        };
        let rule = match name {
            "none" => SelectionRule::All,
            "level1" => SelectionRule::Level1,
            "lml1" => SelectionRule::LimitedMemoryLevel1,
            _ => return Err(expected.to_owned()),
        };
        Ok(Self { rule, cap })
    }
}

/// The trial points and cuts of a node.
#[derive(Debug, Default)]
pub(super) struct SelectionState {
    /// Slots of all different cuts.
    cuts: Vec<u32>,
    /// By trial point: its slot, the highest value there, and the cuts that reach it.
    points: Vec<(u32, f64, Vec<u32>)>,
}

impl SelectionState {
    /// Adds the trial points and cuts of one iteration, and returns the cuts in use: those used
    /// before that still are, in their order, and then the others by slot.
    pub(super) fn select(
        &mut self,
        selection: Selection,
        all: &Cuts<'_>,
        new_points: &[u32],
        new_cuts: &[u32],
        used: &[u32],
    ) -> Vec<u32> {
        let mut next: Vec<u32> = match selection.rule {
            SelectionRule::All => used.iter().chain(new_cuts).copied().collect(),
            SelectionRule::Level1 | SelectionRule::LimitedMemoryLevel1 => {
                self.enter(selection.rule, all, new_points, new_cuts);
                let mut winners: Vec<u32> = self
                    .points
                    .iter()
                    .flat_map(|point| point.2.clone())
                    .collect();
                winners.sort_unstable();
                winners.dedup();
                let kept = used
                    .iter()
                    .filter(|slot| winners.binary_search(slot).is_ok());
                let kept: Vec<u32> = kept.copied().collect();
                let mut before = used.to_vec();
                before.sort_unstable();
                let is_new = |slot: &u32| before.binary_search(slot).is_err();
                let fresh = winners.into_iter().filter(is_new);
                kept.iter().copied().chain(fresh).collect()
            }
        };
        if let Some(cap) = selection.cap
            && next.len() > cap
        {
            self.drop_surplus(&mut next, cap);
        }
        next
    }

    fn enter(&mut self, rule: SelectionRule, all: &Cuts<'_>, new_points: &[u32], new_cuts: &[u32]) {
        for (point, best, holders) in &mut self.points {
            compete(rule, all, all.point(*point), best, holders, new_cuts);
        }
        self.cuts.extend_from_slice(new_cuts);
        for &slot in new_points {
            let (mut best, mut holders) = (f64::NEG_INFINITY, Vec::new());
            compete(
                rule,
                all,
                all.point(slot),
                &mut best,
                &mut holders,
                &self.cuts,
            );
            self.points.push((slot, best, holders));
        }
    }

    /// Drops cuts that are highest at the fewest points, the oldest first, until `cap` are left.
    fn drop_surplus(&self, cuts: &mut Vec<u32>, cap: usize) {
        let mut wins: HashMap<u32, usize> = HashMap::new();
        for slot in self.points.iter().flat_map(|point| &point.2) {
            *wins.entry(*slot).or_default() += 1;
        }
        let wins = |slot: u32| wins.get(&slot).copied().unwrap_or(0);
        let mut worth: Vec<(usize, u32)> = cuts.iter().map(|&slot| (wins(slot), slot)).collect();
        worth.sort_unstable();
        let mut dropped: Vec<u32> = worth[..cuts.len() - cap]
            .iter()
            .map(|(_, slot)| *slot)
            .collect();
        dropped.sort_unstable();
        cuts.retain(|slot| dropped.binary_search(slot).is_err());
    }
}

/// Updates the highest value at a point, and the cuts that reach it, with cuts by ascending slot.
fn compete(
    rule: SelectionRule,
    all: &Cuts<'_>,
    point: &[f64],
    best: &mut f64,
    holders: &mut Vec<u32>,
    cuts: &[u32],
) {
    for &slot in cuts {
        let value = all.value(slot, point);
        let margin = TIE * (1.0 + best.abs());
        if holders.is_empty() || value > *best + margin {
            *best = value;
            holders.clear();
            holders.push(slot);
        } else if rule == SelectionRule::Level1 && value >= *best - margin {
            holders.push(slot);
        }
    }
}

#[cfg(test)]
mod tests;
