//! Every path once: each sequence of openings, or each scenario where scenarios are given.

use super::{PathPlan, SeriesPlan};
use crate::finding::{Findings, Place};
use crate::hydrothermal::system::System;

/// All sequences of openings; they have the same probability, as openings of a stage have.
#[derive(Debug, Clone)]
pub(crate) struct EnumeratedOpenings {
    /// By stage.
    openings: Vec<usize>,
    count: usize,
}

impl EnumeratedOpenings {
    /// The number of sequences.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The opening of a stage in a sequence: the last stage changes first from one to the next.
    pub(crate) fn opening(&self, sequence: usize, stage: usize) -> usize {
        let later = self.openings[stage + 1..].iter();
        let left = later.fold(sequence % self.count, |left, openings| left / openings);
        left % self.openings[stage]
    }
}

/// The plan of all paths of a plan; says where there is no such thing, or more than `most`.
pub(super) fn plan(
    plan: Option<PathPlan>,
    system: &System,
    most: usize,
    at: &Place,
    findings: &mut Findings,
) -> Option<PathPlan> {
    let mut plan = plan.unwrap_or_else(|| PathPlan::in_sample(system));
    if let Some(wrong) = endless(&plan, system) {
        findings.wrong(at, wrong);
        return None;
    }
    if plan.scenarios().is_none() {
        let openings: Vec<usize> = system.stages.iter().map(|stage| stage.openings).collect();
        let product = openings
            .iter()
            .map(|openings| *openings as f64)
            .product::<f64>();
        plan.enumerated = Some(EnumeratedOpenings {
            // More than `most` is refused.
            count: product as usize,
            openings,
        });
        if product > most as f64 {
            let message = format!(
                "there are {product:e} sequences of openings, and {most} are the most: sample them, by forward_passes or \
                 num_scenarios"
            );
            findings.wrong(at, message);
            return None;
        }
    }
    if plan.count().is_some_and(|count| count > most) {
        let message = format!("there are more scenarios than {most}");
        findings.wrong(at, message);
    }
    Some(plan)
}

/// The reason why the paths of a plan cannot be counted, if there is one.
fn endless(plan: &PathPlan, system: &System) -> Option<String> {
    if system.cycle.is_some() {
        return Some("paths of a cyclic study have no end: sample them".to_owned());
    }
    if system.nodes.len() > system.stages.len() {
        return Some(
            "paths through the nodes of policy_graph differ in probability: sample them".to_owned(),
        );
    }
    let fresh = |plan: &SeriesPlan| matches!(plan, SeriesPlan::OutOfSample);
    let parts = plan.parts();
    if parts.iter().any(|(plan, _)| fresh(plan)) {
        return Some(
            "there is no end of fresh draws: scheme out_of_sample does not go with it".to_owned(),
        );
    }
    let uncertain = [
        system.hydros.iter().any(|plant| {
            plant
                .inflow
                .stages
                .iter()
                .any(|model| model.deviation > 0.0)
        }),
        system
            .buses
            .iter()
            .any(|bus| bus.load.iter().any(|load| load.deviation > 0.0)),
        system.sources.iter().any(|source| {
            source
                .availability
                .iter()
                .any(|share| share.deviation > 0.0)
        }),
    ];
    plan.scenarios()?;
    let names = ["inflow", "load", "ncs"];
    let drawn = parts.iter().zip(uncertain).zip(names);
    let mut drawn = drawn
        .filter(|(((plan, _), uncertain), _)| *uncertain && matches!(plan, SeriesPlan::InSample));
    let (_, name) = drawn.next()?;
    Some(format!(
        "{name} is drawn from openings beside given scenarios: give scenarios of all that is uncertain, or of nothing"
    ))
}
