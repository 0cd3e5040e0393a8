//! The nodes of the policy graph: a stage each, or a stage in a regime of a Markov chain.

use super::markov;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::stages::{self, Horizon, Stages};
use crate::hydrothermal::number::{Id, NonNegative};

/// A node of the policy graph.
#[derive(Debug)]
pub(crate) struct RegimeNode {
    /// Its name, which results and policies have.
    pub(crate) name: String,
    /// The place of its stage.
    pub(crate) stage: usize,
    /// The regime of inflows; none for inflows without a regime.
    pub(crate) regime: Option<Id>,
    /// The probability that a path begins here.
    pub(crate) initial: f64,
    /// The places of the nodes that follow, and their probabilities without the discount.
    pub(crate) next: Vec<(usize, f64)>,
}

/// The nodes in the order of stages, and the annual discount rate of each stage.
pub(super) fn resolve(file: &Stages, findings: &mut Findings) -> (Vec<RegimeNode>, Vec<f64>) {
    match &file.policy_graph.nodes {
        None => (chain(file), discount_rates(file, findings)),
        Some(nodes) => markov::resolve(file, nodes, findings),
    }
}

/// The name of the node of a stage in a regime.
pub(super) fn name(stage: Id, regime: Option<Id>) -> String {
    match regime {
        None => format!("stage{stage}"),
        Some(regime) => format!("stage{stage}.regime{regime}"),
    }
}

/// The place of the stage after that at `place`; that of the first after the last of a cyclic study.
pub(super) fn next_stage(file: &Stages, place: usize) -> Option<usize> {
    match place + 1 {
        next if next < file.stages.len() => Some(next),
        _ if file.policy_graph.r#type == Horizon::Cyclic => Some(0),
        _ => None,
    }
}

/// A node for each stage.
fn chain(file: &Stages) -> Vec<RegimeNode> {
    let stages = file.stages.iter().enumerate();
    let stages = stages.map(|(place, stage)| RegimeNode {
        name: name(stage.id, None),
        stage: place,
        regime: None,
        initial: if place == 0 { 1.0 } else { 0.0 },
        next: next_stage(file, place)
            .map(|next| (next, 1.0))
            .into_iter()
            .collect(),
    });
    stages.collect()
}

/// The annual discount rate of each stage before transitions have their say.
pub(super) fn stage_rates(file: &Stages) -> Vec<f64> {
    let all = file.policy_graph.annual_discount_rate;
    let own = |stage: &stages::Stage| stage.annual_discount_rate_override.unwrap_or(all).0;
    file.stages.iter().map(own).collect()
}

/// Says if a stage has another rate than the transition at `at`.
pub(super) fn check_rate(
    stage: &stages::Stage,
    rate: NonNegative,
    at: &Place,
    findings: &mut Findings,
) {
    let own = stage.annual_discount_rate_override;
    if let Some(own) = own.filter(|own| *own != rate) {
        let message = format!("the stage itself has {}; remove one of the two", own.0);
        findings.wrong(&at.key("annual_discount_rate_override"), message);
    }
}

/// The annual discount rate of each stage.
fn discount_rates(file: &Stages, findings: &mut Findings) -> Vec<f64> {
    let graph = &file.policy_graph;
    let mut rates = stage_rates(file);
    let Some(transitions) = &graph.transitions else {
        return rates;
    };
    let list = Place::file(stages::FILE).key("policy_graph.transitions");
    let mut left = vec![false; file.stages.len()];
    for (place, step) in transitions.iter().enumerate() {
        let at = list.index(place);
        let source = file
            .stages
            .iter()
            .position(|stage| stage.id == step.source_id);
        let Some(source) = source else {
            findings.wrong(
                &at.key("source_id"),
                format!("there is no stage {}", step.source_id),
            );
            continue;
        };
        let next = next_stage(file, source).map(|next| file.stages[next].id);
        if next != Some(step.target_id) {
            let expected = next.map_or("no stage follows it".to_owned(), |next| {
                format!("{next} follows it")
            });
            let message = format!(
                "{} does not follow stage {}: {expected}",
                step.target_id, step.source_id
            );
            findings.wrong(&at.key("target_id"), message);
        }
        if step.probability.0 != 1.0 {
            let message = format!(
                "{} is found, 1 is expected: one stage follows another",
                step.probability.0
            );
            findings.wrong(&at.key("probability"), message);
        }
        if std::mem::replace(&mut left[source], true) {
            let message = format!("stage {} has a transition already", step.source_id);
            findings.wrong(&at.key("source_id"), message);
        }
        if let Some(rate) = step.annual_discount_rate_override {
            check_rate(&file.stages[source], rate, &at, findings);
            rates[source] = rate.0;
        }
    }
    let steps = file.stages.len().saturating_sub(1);
    let ends = file
        .stages
        .iter()
        .zip(&left)
        .take(steps)
        .find(|(_, left)| !**left);
    if let Some((stage, _)) = ends.filter(|_| !transitions.is_empty()) {
        findings.wrong(&list, format!("there is none from stage {}", stage.id));
    }
    rates
}
