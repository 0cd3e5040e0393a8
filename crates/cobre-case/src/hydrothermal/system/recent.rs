//! Observations of the season in which the first stage begins.

use super::index::Index;
use super::inflow_lags::{KnownInflow, SeasonTimeline};
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::{Files, initial};

/// The observations of each plant, as far as past inflows do not have their days; says what is wrong with them.
pub(super) fn resolve(
    files: &Files,
    plants: &Index,
    stages: &[Stage],
    timeline: Option<&SeasonTimeline>,
    findings: &mut Findings,
) -> Vec<Vec<KnownInflow>> {
    let mut found: Vec<Vec<KnownInflow>> = vec![Vec::new(); plants.len()];
    let list = Place::file(initial::FILE).key("recent_observations");
    let given = files.initial.recent_observations.as_deref().unwrap_or(&[]);
    let start = stages
        .first()
        .map_or(Date(i64::MAX), |stage| stage.start_date);
    let first = timeline.and_then(|timeline| timeline.stages.first());
    let Some((_, _, first)) = first else {
        if !given.is_empty() && files.stages.season_definitions.is_none() {
            findings.wrong(&list, "they need season_definitions in stages.json");
        }
        return found;
    };
    for (place, entry) in given.iter().enumerate() {
        let at = list.index(place);
        let plant = plants.find(entry.hydro_id, &at.key("hydro_id"), findings);
        if entry.end_date <= entry.start_date {
            findings.wrong(&at.key("end_date"), "it is not after start_date");
            continue;
        }
        if entry.end_date > start {
            let message = format!(
                "{} is after the start of the first stage, {start}",
                entry.end_date
            );
            findings.wrong(&at.key("end_date"), message);
            continue;
        }
        if entry.end_date <= first.start {
            let message = format!(
                "nothing reads it: the season of the first stage begins on {}; give earlier ones in past_inflows",
                first.start
            );
            findings.doubtful(&at, message);
            continue;
        }
        let Some(plant) = plant else { continue };
        let (own_start, end) = (entry.start_date.max(first.start), entry.end_date);
        let mut others = found[plant].iter();
        if others.any(|other| other.start < end && own_start < other.end) {
            findings.wrong(&at, "some of its days are observed already");
        }
        found[plant].push(KnownInflow {
            start: own_start,
            end,
            mean: entry.value_m3s.0,
        });
    }
    found
}
