//! Series that move together.

use std::collections::HashSet;

use super::Kinds;
use super::factor;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::scenarios::{
    CORRELATION, Correlation, CorrelationGroup, Factorization, Profile, SeriesKind,
};
use crate::hydrothermal::system::{Index, System};

/// Correlations are compared up to this.
const TOLERANCE: f64 = 1e-10;

/// Series that move together: what is new for each is a sum over all.
#[derive(Debug)]
pub(super) struct FactoredGroup {
    /// By number of the series.
    pub(super) members: Vec<usize>,
    /// A row for each member.
    pub(super) factor: Vec<Vec<f64>>,
}

/// The groups of each profile, and the profile of each stage.
#[derive(Debug, Default)]
pub(super) struct CorrelationProfiles {
    profiles: Vec<Vec<FactoredGroup>>,
    of_stage: Vec<usize>,
}

impl CorrelationProfiles {
    /// The groups that hold in a stage.
    pub(super) fn groups(&self, stage: usize) -> &[FactoredGroup] {
        let profile = self.of_stage.get(stage);
        profile.map_or(&[], |profile| &self.profiles[*profile])
    }
}

/// Which series move together; says what is wrong with it.
pub(super) fn resolve(
    files: &Files,
    system: &System,
    findings: &mut Findings,
) -> CorrelationProfiles {
    let given = files.correlation.as_ref();
    let Some(correlation) = given.or(system.correlation.as_ref()) else {
        return CorrelationProfiles::default();
    };
    let at = Place::file(CORRELATION);
    let of_stage = schedule(correlation, system, &at, findings);
    let profiles = correlation.profiles.0.iter();
    let profiles = profiles.map(|(name, profile)| {
        let at = at.key("profiles").key(name);
        groups(profile, correlation.method, system, &at, findings)
    });
    CorrelationProfiles {
        profiles: profiles.collect(),
        of_stage: of_stage.unwrap_or_default(),
    }
}

/// The profile of each stage, by place.
fn schedule(
    correlation: &Correlation,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> Option<Vec<usize>> {
    let profiles = &correlation.profiles.0;
    let find = |name: &str| profiles.iter().position(|(known, _)| known == name);
    let default = if profiles.len() == 1 {
        Some(0)
    } else {
        find("default")
    };
    let mut chosen: Vec<Option<usize>> = vec![default; system.stages.len()];
    let mut seen = HashSet::new();
    for (place, entry) in correlation.schedule.iter().flatten().enumerate() {
        let at = at.key("schedule").index(place);
        let profile = find(&entry.profile_name);
        if profile.is_none() {
            let message = format!("there is no profile {}", entry.profile_name);
            findings.wrong(&at.key("profile_name"), message);
        }
        let stage = system
            .indices
            .stages
            .find(entry.stage_id, &at.key("stage_id"), findings);
        if let Some(stage) = stage {
            chosen[stage] = profile;
            if !seen.insert(stage) {
                let message = format!("stage {} has a profile already", entry.stage_id);
                findings.wrong(&at.key("stage_id"), message);
            }
        }
    }
    if chosen.iter().any(Option::is_none) {
        let message =
            "every stage needs a profile: schedule all stages, or name a profile \"default\"";
        findings.wrong(&at.key("profiles"), message);
    }
    chosen.into_iter().collect()
}

fn groups(
    profile: &Profile,
    method: Factorization,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> Vec<FactoredGroup> {
    let kinds = Kinds::of(system);
    let mut seen: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (place, group) in profile.correlation_groups.iter().enumerate() {
        let at = at.key("correlation_groups").index(place);
        let mut members = Vec::new();
        for (number, series) in group.entities.iter().enumerate() {
            let at = at.key("entities").index(number);
            let (index, start): (&Index, usize) = match series.r#type {
                SeriesKind::Inflow => (&system.indices.hydros, kinds.inflows.start),
                SeriesKind::Load => (&system.indices.buses, kinds.loads.start),
                SeriesKind::Ncs => (&system.indices.sources, kinds.sources.start),
            };
            let Some(member) = index.find(series.id, &at.key("id"), findings) else {
                continue;
            };
            if seen.contains(&(start + member)) {
                findings.wrong(&at, "the series is in a group already");
            }
            seen.push(start + member);
            members.push(start + member);
        }
        if let Some(factor) = factored(group, method, &at, findings)
            && factor.len() == members.len()
        {
            found.push(FactoredGroup { members, factor });
        }
    }
    found
}

/// The factor of a group's matrix; says what is wrong with it.
fn factored(
    group: &CorrelationGroup,
    method: Factorization,
    at: &Place,
    findings: &mut Findings,
) -> Option<Vec<Vec<f64>>> {
    let matrix: Vec<Vec<f64>> = group
        .matrix
        .iter()
        .map(|row| row.iter().map(|value| value.0).collect())
        .collect();
    let size = group.entities.len();
    let at = at.key("matrix");
    if matrix.len() != size || matrix.iter().any(|row| row.len() != size) {
        findings.wrong(
            &at,
            format!("{size} rows of {size} numbers are expected, as there are entities"),
        );
        return None;
    }
    for (row, entries) in matrix.iter().enumerate() {
        for (column, value) in entries.iter().enumerate() {
            let problem = if row == column && (value - 1.0).abs() > TOLERANCE {
                "1 is expected on the diagonal"
            } else if value.abs() > 1.0 + TOLERANCE {
                "a number from -1 to 1 is expected"
            } else if (value - matrix[column][row]).abs() > TOLERANCE {
                "the matrix is not symmetric"
            } else {
                continue;
            };
            let at = at.index(row).index(column);
            findings.wrong(&at, format!("{problem}, {value} is found"));
            return None;
        }
    }
    match method {
        Factorization::Spectral => Some(factor::spectral(&matrix)),
        Factorization::Cholesky => factor::cholesky(&matrix).or_else(|| {
            findings.wrong(
                &at,
                "it is not positive definite; correct it, or use the method spectral",
            );
            None
        }),
    }
}
