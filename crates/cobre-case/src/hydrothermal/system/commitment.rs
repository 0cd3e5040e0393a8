//! Thermal plants that are committed stages ahead.

use super::index::Index;
use super::thermals::Thermal;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::{Files, initial, stages, system};

/// Tolerance of past commitments at the limits of a stage, MW.
const TOLERANCE: f64 = 1e-6;

/// Commitments of a thermal plant: the mean power of a stage, decided in an earlier one.
#[derive(Debug)]
pub(crate) struct Commitment {
    /// By stage, the stage in which it is committed; none if that was before the first.
    pub(crate) decided_in: Vec<Option<usize>>,
    /// The most stages that are committed at the end of a stage: the number of states.
    pub(crate) slots: usize,
    /// Mean power of the first stages, MW, which is committed already.
    pub(crate) past: Vec<f64>,
}

/// Commitments that were made before the first stage, with their place in the file.
#[derive(Debug, Clone)]
pub(super) enum PastCommitment {
    /// Mean power of the first stages, MW.
    Stages(Vec<f64>, Place),
    /// Days, from the first to the one after the last, and their mean power, MW.
    Days(Vec<(Date, Date, f64)>, Place),
}

impl PastCommitment {
    fn place(&self) -> &Place {
        match self {
            Self::Stages(_, at) | Self::Days(_, at) => at,
        }
    }

    /// Mean power of the first `known` stages, MW; says which days are missing.
    fn values(
        self,
        known: usize,
        dates: &[stages::Stage],
        findings: &mut Findings,
    ) -> Option<(Vec<f64>, Place)> {
        let (days, at) = match self {
            Self::Stages(values, at) => return Some((values, at)),
            Self::Days(days, at) => (days, at),
        };
        let mut values = Vec::new();
        for stage in &dates[..known] {
            let (mut covered, mut sum) = (0, 0.0);
            for (from, to, value) in &days {
                let shared = to.0.min(stage.end_date.0) - from.0.max(stage.start_date.0);
                covered += shared.max(0);
                sum += shared.max(0) as f64 * value;
            }
            let all = stage.end_date.0 - stage.start_date.0;
            if covered != all {
                let message = format!(
                    "stage {} has {all} days, and commitments of {covered} of them: give each day once",
                    stage.id
                );
                findings.wrong(&at, message);
                return None;
            }
            values.push(sum / all as f64);
        }
        Some((values, at))
    }
}

/// Past commitments by plant.
pub(super) fn past(
    files: &Files,
    index: &Index,
    findings: &mut Findings,
) -> Vec<Option<PastCommitment>> {
    let list = Place::file(initial::FILE).key("past_anticipated_commitments");
    let mut found: Vec<Option<PastCommitment>> = vec![None; index.len()];
    let entries = files.initial.past_anticipated_commitments.iter().flatten();
    for (place, entry) in entries.enumerate() {
        let at = list.index(place);
        let plant = index.find(entry.thermal_id, &at.key("thermal_id"), findings);
        let Some(plant) = plant else { continue };
        let days = (entry.start_date, entry.end_date, entry.value_mw);
        let own = match (&entry.values_mw, days) {
            (Some(values), (None, None, None)) => {
                let values = values.iter().map(|value| value.0).collect();
                PastCommitment::Stages(values, at.key("values_mw"))
            }
            (None, (Some(from), Some(to), Some(value))) if from < to => {
                PastCommitment::Days(vec![(from, to, value.0)], at.clone())
            }
            (None, (Some(from), Some(_), Some(_))) => {
                let message = format!("it is not after start_date, {from}");
                findings.wrong(&at.key("end_date"), message);
                continue;
            }
            _ => {
                let message = "values_mw is expected, or start_date, end_date and value_mw";
                findings.wrong(&at, message);
                continue;
            }
        };
        match (&mut found[plant], own) {
            (Some(PastCommitment::Days(all, _)), PastCommitment::Days(own, _)) => all.extend(own),
            (empty @ None, own) => *empty = Some(own),
            (Some(_), _) => {
                let message = format!("thermal plant {} has an entry already", entry.thermal_id);
                findings.wrong(&at.key("thermal_id"), message);
            }
        }
    }
    found
}

/// The commitments of a plant, if it has any; says what is wrong with them.
pub(super) fn resolve(
    (file, plant): (&system::Thermal, &Thermal),
    (dates, stages): (&[stages::Stage], &[Stage]),
    past: Option<PastCommitment>,
    at: &Place,
    findings: &mut Findings,
) -> Option<Commitment> {
    let Some(decided_in) = lead(file, dates, at, findings) else {
        if let Some(past) = past {
            let message = "the plant has no anticipated_config: nothing is committed ahead";
            findings.wrong(past.place(), message);
        }
        return None;
    };
    let known = decided_in
        .iter()
        .take_while(|stage| stage.is_none())
        .count();
    let (values, at) = if let Some(past) = past {
        past.values(known, dates, findings)?
    } else {
        let list = Place::file(initial::FILE).key("past_anticipated_commitments");
        (Vec::new(), list)
    };
    if values.len() != known {
        let message = format!(
            "thermal plant {} needs the commitments of {known} stages, {} are given",
            file.id,
            values.len()
        );
        findings.wrong(&at, message);
        return None;
    }
    for (number, value) in values.iter().enumerate() {
        let [least, most] = mean_limits(plant, stages, number);
        if *value < least - TOLERANCE || *value > most + TOLERANCE {
            let message = format!(
                "{value} is committed in stage {}, whose generation is from {least} to {most}",
                stages[number].id
            );
            findings.wrong(&at.index(number), message);
        }
    }
    let costs = plant.limits.iter().zip(stages);
    for (limits, stage) in costs {
        if limits.iter().any(|other| other.cost != limits[0].cost) {
            let message = format!(
                "its energy costs differ by block in stage {}, but a commitment has one price: give cost_per_mwh \
                 without block_id",
                stage.id
            );
            findings.wrong(&Place::file("constraints/thermal_bounds.parquet"), message);
        }
    }
    let ahead = decided_in.iter().enumerate().map(|(stage, decided)| {
        // A stage is a state from the stage that decides it to the one before it.
        stage - decided.unwrap_or(0).min(stage)
    });
    let slots = ahead.max().unwrap_or(0).max(known);
    Some(Commitment {
        decided_in,
        slots,
        past: values,
    })
}

/// By stage, the stage in which generation is committed; none without a lead.
fn lead(
    file: &system::Thermal,
    dates: &[stages::Stage],
    at: &Place,
    findings: &mut Findings,
) -> Option<Vec<Option<usize>>> {
    let (stages, hours) = match (&file.anticipated_config, &file.gnl_config) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            let message = "anticipated_config is there as well; remove one of the two";
            findings.wrong(&at.key("gnl_config"), message);
            return None;
        }
        (None, Some(config)) => (Some(config.lag_stages), None),
        (Some(config), None) => (config.lead_stages, config.lead_time_hours),
    };
    match (stages, hours) {
        (Some(lead), None) => Some(
            (0..dates.len())
                .map(|stage| stage.checked_sub(lead.0))
                .collect(),
        ),
        (None, Some(hours)) => {
            let start = |stage: &stages::Stage| 24.0 * stage.start_date.0 as f64;
            let decided = dates.iter().map(|stage| {
                let latest = start(stage) - hours.0;
                let before = dates.iter().take_while(|stage| start(stage) <= latest);
                before.count().checked_sub(1)
            });
            Some(decided.collect())
        }
        _ => {
            let message = "one of lead_stages and lead_time_hours is expected";
            findings.wrong(&at.key("anticipated_config"), message);
            None
        }
    }
}

/// The least and the most mean power of a plant in a stage, MW.
pub(crate) fn mean_limits(plant: &Thermal, stages: &[Stage], stage: usize) -> [f64; 2] {
    let hours = &stages[stage].hours;
    let limits = plant.limits[stage].iter().zip(hours);
    let sums = limits.fold([0.0, 0.0], |[least, most], (limits, hours)| {
        [least + limits.min * hours, most + limits.max * hours]
    });
    sums.map(|sum| sum / stages[stage].total_hours())
}
