//! Travel time of releases: which share of a release arrives in which period.
//!
//! A period is a stage whose blocks are parallel, or a block of a stage whose blocks are chronological. A release is
//! even over its period and arrives, even, so many hours later.

use super::index::Index;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::{Files, initial, system};

/// hm³ that 1 m³/s brings in an hour.
const HM3_PER_M3S_HOUR: f64 = 3600.0 / 1e6;
/// The most periods that water may be under way.
const MOST_PERIODS: usize = 400;
/// Shares below this are rounding.
const NOTHING: f64 = 1e-12;

/// Travel of the releases of a plant.
#[derive(Debug)]
pub(crate) struct Travel {
    /// Volumes under way before the first stage, hm³, by the period in which they arrive; as many as states.
    pub(crate) under_way: Vec<f64>,
    /// By stage and period of release: periods in which it arrives, counted from the first of the stage, and shares.
    pub(crate) shares: Vec<Vec<Vec<(usize, f64)>>>,
}

/// The periods of all stages: from and to, in hours since the start of the first.
struct Clock {
    periods: Vec<(f64, f64)>,
    /// The place of the first period of each stage.
    first: Vec<usize>,
}

impl Clock {
    fn new(stages: &[Stage]) -> Self {
        let (mut periods, mut first) = (Vec::new(), Vec::new());
        let mut now = 0.0;
        for stage in stages {
            first.push(periods.len());
            for period in 0..stage.periods() {
                let end = now + stage.period_hours(period);
                periods.push((now, end));
                now = end;
            }
        }
        Self { periods, first }
    }

    /// The periods that an interval meets, counted from `first`, and the hours of it in each.
    fn overlaps(&self, first: usize, (from, to): (f64, f64)) -> Vec<(usize, f64)> {
        let periods = self.periods[first..].iter().enumerate();
        let hours = periods.map(|(place, own)| (place, own.1.min(to) - own.0.max(from)));
        hours
            .filter(|(_, hours)| *hours > NOTHING * (to - from))
            .collect()
    }
}

/// The travel of a plant's releases; none if they arrive at once, or nowhere.
pub(super) fn resolve(
    files: &Files,
    plant: &system::Hydro,
    stages: &[Stage],
    at: &Place,
    findings: &mut Findings,
) -> Option<Travel> {
    let hours = plant.travel_time_hours.map_or(0.0, |hours| hours.0);
    if hours > 0.0 && plant.downstream_id.is_none() {
        let message = "water of this plant reaches no other; remove the key";
        findings.wrong(&at.key("travel_time_hours"), message);
    }
    if hours == 0.0 || plant.downstream_id.is_none() {
        return None;
    }
    let clock = Clock::new(stages);
    let mut count = 0;
    let mut shares = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        let first = clock.first[number];
        let of_stage = (0..stage.periods()).map(|period| {
            let (from, to) = clock.periods[first + period];
            let arrivals = clock.overlaps(first, (from + hours, to + hours));
            let shares = arrivals
                .iter()
                .map(|(place, hours)| (*place, hours / (to - from)));
            shares.collect::<Vec<_>>()
        });
        let of_stage: Vec<Vec<(usize, f64)>> = of_stage.collect();
        let last = of_stage.iter().flatten().map(|(place, _)| place + 1);
        count = count.max(last.max().unwrap_or(0).saturating_sub(stage.periods()));
        shares.push(of_stage);
    }
    let mut under_way = past(files, plant, &clock, hours, findings);
    count = count.max(under_way.len());
    if count > MOST_PERIODS {
        let message = format!(
            "water is under way for {count} periods; at most {MOST_PERIODS} are possible: use longer blocks"
        );
        findings.wrong(&at.key("travel_time_hours"), message);
    }
    under_way.resize(count, 0.0);
    Some(Travel { under_way, shares })
}

/// Water that is under way at the start, hm³, by period of arrival.
fn past(
    files: &Files,
    plant: &system::Hydro,
    clock: &Clock,
    hours: f64,
    findings: &mut Findings,
) -> Vec<f64> {
    let list = Place::file(initial::FILE).key("past_defluences");
    let start = files
        .stages
        .stages
        .first()
        .map_or(0, |stage| stage.start_date.0);
    let horizon = clock.periods.last().map_or(0.0, |period| period.1);
    let mut found: Vec<f64> = Vec::new();
    let mut covered = 0.0;
    let releases = files.initial.past_defluences.iter().flatten().enumerate();
    for (place, release) in releases.filter(|(_, release)| release.hydro_id == plant.id) {
        let at = list.index(place);
        if release.end_date <= release.start_date {
            findings.wrong(&at.key("end_date"), "it is not after start_date");
            continue;
        }
        if release.end_date.0 > start {
            let message = "it is after the start of the first stage";
            findings.wrong(&at.key("end_date"), message);
            continue;
        }
        let since = |day: i64| 24.0 * (day - start) as f64;
        let window = (since(release.start_date.0), since(release.end_date.0));
        covered += (window.1 - window.0.max(-hours)).max(0.0);
        let earlier = files.initial.past_defluences.iter().flatten().take(place);
        let mut earlier = earlier.filter(|other| other.hydro_id == plant.id);
        if earlier
            .any(|other| other.start_date < release.end_date && release.start_date < other.end_date)
        {
            let message = "it overlaps with another release of the plant";
            findings.wrong(&at.key("start_date"), message);
        }
        for (period, hours) in clock.overlaps(0, (window.0 + hours, window.1 + hours)) {
            found.resize(found.len().max(period + 1), 0.0);
            found[period] += release.value_m3s.0 * HM3_PER_M3S_HOUR * hours;
        }
    }
    if covered < hours.min(horizon) * (1.0 - 1e-9) {
        let thing = list.rows(format!("hydro plant {} ({})", plant.id, plant.name));
        let message = format!(
            "its water travels {hours} h, and releases of only {covered} h before the first stage are given: nothing \
             arrives for the others"
        );
        findings.doubtful(&thing, message);
    }
    found
}

/// Says which past releases are of plants that have no travel time, or of none.
pub(super) fn check_past(files: &Files, plants: &Index, findings: &mut Findings) {
    let list = Place::file(initial::FILE).key("past_defluences");
    for (place, release) in files.initial.past_defluences.iter().flatten().enumerate() {
        let at = list.index(place).key("hydro_id");
        let Some(plant) = plants.find(release.hydro_id, &at, findings) else {
            continue;
        };
        let hours = files.hydros.hydros[plant].travel_time_hours;
        if hours.is_none_or(|hours| hours.0 == 0.0) {
            let message = format!("hydro plant {} has no travel_time_hours", release.hydro_id);
            findings.wrong(&at, message);
        }
    }
}
