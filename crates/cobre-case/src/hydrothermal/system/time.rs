//! Stages and their blocks.

use cobre_sddp::Risk;

use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::stages::{self, BlockMode, RiskMeasure, SamplingMethod, Stages};
use crate::hydrothermal::number::Id;

/// Days of a year, for the discount.
const DAYS_PER_YEAR: f64 = 365.25;
/// hm³ that 1 m³/s brings in an hour.
const HM3_PER_M3S_HOUR: f64 = 3600.0 / 1e6;

/// A stage.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) id: Id,
    pub(crate) start_date: Date,
    /// The length of each block, h.
    pub(crate) hours: Vec<f64>,
    pub(crate) block_labels: Vec<String>,
    /// The discount factor of costs of the next stage.
    pub(crate) discount: f64,
    pub(crate) openings: usize,
    pub(crate) risk: Risk,
    pub(crate) sampling: SamplingMethod,
    pub(crate) season: Option<Id>,
    /// The choice of storage and past inflows as states, where the file makes one.
    pub(crate) storage_is_state: bool,
    pub(crate) lags_are_states: Option<bool>,
    pub(crate) at: Place,
    /// True if its blocks follow each other.
    pub(crate) chronological: bool,
    /// The calendar month of its first day, from 0, and the hours of that month.
    pub(crate) month: usize,
    pub(crate) month_hours: f64,
}

impl Stage {
    /// All hours.
    pub(crate) fn total_hours(&self) -> f64 {
        self.hours.iter().sum()
    }

    /// hm³ that 1 m³/s brings in a block.
    pub(crate) fn volume(&self, block: usize) -> f64 {
        self.hours[block] * HM3_PER_M3S_HOUR
    }

    /// The number of its water balances: one for each block if they follow each other, else one.
    pub(crate) fn periods(&self) -> usize {
        if self.chronological {
            self.hours.len()
        } else {
            1
        }
    }

    /// The period that a block belongs to.
    pub(crate) fn period_of(&self, block: usize) -> usize {
        if self.chronological { block } else { 0 }
    }

    /// The blocks of a period.
    pub(crate) fn blocks_of(&self, period: usize) -> std::ops::Range<usize> {
        if self.chronological {
            period..period + 1
        } else {
            0..self.hours.len()
        }
    }

    /// The hours of a period.
    pub(crate) fn period_hours(&self, period: usize) -> f64 {
        self.hours[self.blocks_of(period)].iter().sum()
    }

    /// hm³ that 1 m³/s brings in a period.
    pub(crate) fn period_volume(&self, period: usize) -> f64 {
        self.period_hours(period) * HM3_PER_M3S_HOUR
    }

    /// hm³ that 1 m³/s brings in the stage.
    pub(crate) fn total_volume(&self) -> f64 {
        self.total_hours() * HM3_PER_M3S_HOUR
    }
}

/// The stages, and an index of them.
pub(super) fn resolve(
    files: &Files,
    rates: &[f64],
    findings: &mut Findings,
) -> (Vec<Stage>, Index) {
    let file = &files.stages;
    let list = Place::file(stages::FILE).key("stages");
    if file.stages.is_empty() {
        findings.wrong(&list, "there is no stage");
    }
    let labels: Vec<String> = file
        .stages
        .iter()
        .map(|stage| stage.id.to_string())
        .collect();
    let things = file.stages.iter().zip(&labels);
    let things = things.map(|(stage, label)| (stage.id, label.as_str()));
    let mut index = Index::new("stage", things, &list, findings);
    // A number is a label as it is, even if it comes twice.
    index.labels.clone_from(&labels);
    let mut found = Vec::new();
    for (place, stage) in file.stages.iter().enumerate() {
        let at = list.index(place);
        if stage.id < 0 {
            findings.wrong(&at.key("id"), format!("{} is below 0", stage.id));
        }
        if place > 0 {
            let before = &file.stages[place - 1];
            if i64::from(stage.id) != i64::from(before.id) + 1 {
                let message = format!("{} does not follow {}", stage.id, before.id);
                findings.wrong(&at.key("id"), message);
            }
            if stage.start_date != before.end_date {
                adjoins(files, before.end_date, &at.key("start_date"), findings);
            }
        }
        let days = stage.end_date.0 - stage.start_date.0;
        if days <= 0 {
            findings.wrong(&at.key("end_date"), "it is not after start_date");
        }
        found.push(resolve_stage(stage, days, rates[place], at, findings));
    }
    pre_study(file, findings);
    (found, index)
}

/// Says that a stage begins at another day than that on which the one before ends: a month after weeks that reach into
/// it, or the wrong day. What is under way between stages has no place then.
fn adjoins(files: &Files, end: Date, at: &Place, findings: &mut Findings) {
    let plants = files.hydros.hydros.iter();
    let mut travels = plants.filter_map(|plant| plant.travel_time_hours);
    let thermals = files.thermals.thermals.iter();
    let mut ahead = thermals.filter_map(|plant| plant.anticipated_config.as_ref());
    let message = format!("it is not the end of the stage before, {end}");
    if travels.any(|hours| hours.0 > 0.0) {
        findings.wrong(at, format!("{message}, which travel_time_hours needs"));
    } else if ahead.any(|config| config.lead_time_hours.is_some()) {
        findings.wrong(at, format!("{message}, which lead_time_hours needs"));
    } else {
        let message = format!("{message}: days are left out or counted twice");
        findings.doubtful(at, message);
    }
}

fn resolve_stage(
    stage: &stages::Stage,
    days: i64,
    rate: f64,
    at: Place,
    findings: &mut Findings,
) -> Stage {
    let blocks = at.key("blocks");
    if stage.blocks.is_empty() {
        findings.wrong(&blocks, "there is no block");
    }
    for (place, block) in stage.blocks.iter().enumerate() {
        if block.id as usize != place || block.id < 0 {
            let message = format!("{place} is expected, {} is found", block.id);
            findings.wrong(&blocks.index(place).key("id"), message);
        }
    }
    let names = stage
        .blocks
        .iter()
        .map(|block| (block.id, block.name.as_str()));
    let labels = Index::new("block", names, &blocks, &mut Findings::default()).labels;
    let risk = match &stage.risk_measure {
        Some(RiskMeasure::Cvar(cvar)) => Risk {
            lambda: cvar.lambda.0,
            alpha: cvar.alpha.0,
        },
        None | Some(RiskMeasure::Expectation) => Risk::EXPECTATION,
    };
    let states = stage.state_variables.as_ref();
    let (month, days_of_month) = stage.start_date.month();
    Stage {
        id: stage.id,
        start_date: stage.start_date,
        hours: stage.blocks.iter().map(|block| block.hours.0).collect(),
        block_labels: labels,
        discount: libm::pow(1.0 + rate, -(days as f64) / DAYS_PER_YEAR),
        openings: stage.num_scenarios.0,
        risk,
        sampling: stage.sampling_method.unwrap_or(SamplingMethod::Saa),
        season: stage.season_id,
        storage_is_state: states.and_then(|states| states.storage) != Some(false),
        lags_are_states: states.and_then(|states| states.inflow_lags),
        at,
        chronological: stage.block_mode == Some(BlockMode::Chronological),
        month,
        month_hours: 24.0 * days_of_month as f64,
    }
}

fn pre_study(file: &Stages, findings: &mut Findings) {
    let list = Place::file(stages::FILE).key("pre_study_stages");
    let ids = file.pre_study_stages.iter().flatten();
    let ids = ids.map(|stage| (stage.id, ""));
    Index::new("stage", ids, &list, findings);
    for (place, stage) in file.pre_study_stages.iter().flatten().enumerate() {
        let at = list.index(place);
        if stage.id >= 0 {
            findings.wrong(&at.key("id"), format!("{} is not below 0", stage.id));
        }
        if stage.end_date <= stage.start_date {
            findings.wrong(&at.key("end_date"), "it is not after start_date");
        }
    }
}
