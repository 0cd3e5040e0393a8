//! A Markov chain of inflow regimes: several nodes in a stage, with the probabilities of the next.

use std::collections::{HashMap, HashSet};

use super::index::Index;
use super::nodes::{RegimeNode, check_rate, name, next_stage, stage_rates};
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::stages::{self, GraphNode, Stages, Transition};
use crate::hydrothermal::number::Id;

/// The most that probabilities may lack to 1 by the digits that a file has.
const ROUNDING: f64 = 1e-5;

/// The nodes of a chain in the order of stages, and the annual discount rate of each stage; says what does not make
/// a chain.
pub(super) fn resolve(
    file: &Stages,
    given: &[GraphNode],
    findings: &mut Findings,
) -> (Vec<RegimeNode>, Vec<f64>) {
    let graph = Place::file(stages::FILE).key("policy_graph");
    let list = graph.key("nodes");
    let ids = given.iter().map(|node| (node.id, ""));
    Index::new("node", ids, &list, findings);
    let mut found = nodes(file, given, &list, findings);
    // The sort is stable: nodes of a stage stay in the order of the file.
    found.sort_by_key(|(_, node)| node.stage);
    let places = found.iter().enumerate();
    let mut chain = MarkovChain {
        file,
        places: places.map(|(place, (id, _))| (*id, place)).collect(),
        ids: found.iter().map(|(id, _)| *id).collect(),
        nodes: found.into_iter().map(|(_, node)| node).collect(),
        rates: stage_rates(file),
    };
    if given.is_empty() {
        findings.wrong(
            &list,
            "there is no node: leave it out for one in each stage",
        );
    } else if !findings.any_wrong() {
        chain.begin(&list, findings);
        let transitions = file.policy_graph.transitions.as_deref().unwrap_or_default();
        chain.connect(transitions, &graph.key("transitions"), findings);
        chain.check_reach(&list, findings);
    }
    (chain.nodes, chain.rates)
}

/// The nodes of the file with their numbers, and nothing that follows them.
fn nodes(
    file: &Stages,
    given: &[GraphNode],
    list: &Place,
    findings: &mut Findings,
) -> Vec<(Id, RegimeNode)> {
    let mut found = Vec::new();
    let mut seen = HashMap::new();
    for (place, node) in given.iter().enumerate() {
        let at = list.index(place);
        let mut stages = file.stages.iter();
        let Some(stage) = stages.position(|stage| stage.id == node.stage_id) else {
            let message = format!("there is no stage {}", node.stage_id);
            findings.wrong(&at.key("stage_id"), message);
            continue;
        };
        let regime = node.scenario_id;
        if let Some(first) = seen.insert((stage, regime), place) {
            let message = match regime {
                Some(regime) => format!(
                    "node [{first}] is stage {} in regime {regime} already",
                    node.stage_id
                ),
                None => format!(
                    "node [{first}] is stage {} already: give both a scenario_id",
                    node.stage_id
                ),
            };
            findings.wrong(&at, message);
        }
        if stage > 0 && node.initial_probability.is_some() {
            let message = "paths begin in the first stage only".to_owned();
            findings.wrong(&at.key("initial_probability"), message);
        }
        let initial = node.initial_probability.map_or(1.0, |given| given.0);
        let resolved = RegimeNode {
            name: name(node.stage_id, regime),
            stage,
            regime,
            initial: if stage == 0 { initial } else { 0.0 },
            next: Vec::new(),
        };
        found.push((node.id, resolved));
    }
    for (place, stage) in file.stages.iter().enumerate() {
        if !given.is_empty() && !found.iter().any(|(_, node)| node.stage == place) {
            findings.wrong(list, format!("stage {} has no node", stage.id));
        }
    }
    found
}

/// A chain in the making.
struct MarkovChain<'f> {
    file: &'f Stages,
    /// The places of nodes by their numbers.
    places: HashMap<Id, usize>,
    /// The numbers of nodes by place.
    ids: Vec<Id>,
    nodes: Vec<RegimeNode>,
    rates: Vec<f64>,
}

impl MarkovChain<'_> {
    /// Makes the probabilities of the nodes of the first stage sum to 1.
    fn begin(&mut self, list: &Place, findings: &mut Findings) {
        let sum: f64 = self.nodes.iter().map(|node| node.initial).sum();
        if (sum - 1.0).abs() > ROUNDING {
            let message = format!(
                "the initial probabilities of the nodes of the first stage sum to {sum}: 1 is expected"
            );
            findings.wrong(list, message);
        }
        for node in &mut self.nodes {
            node.initial /= sum;
        }
    }

    /// Adds the transitions.
    fn connect(&mut self, transitions: &[Transition], list: &Place, findings: &mut Findings) {
        let mut steps = HashSet::new();
        let mut rated: HashMap<usize, f64> = HashMap::new();
        for (number, step) in transitions.iter().enumerate() {
            let at = list.index(number);
            let ends = [("source_id", step.source_id), ("target_id", step.target_id)];
            let [source, target] = ends.map(|(key, id)| {
                let place = self.places.get(&id).copied();
                if place.is_none() {
                    findings.wrong(&at.key(key), format!("there is no node {id}"));
                }
                place
            });
            let (Some(source), Some(target)) = (source, target) else {
                continue;
            };
            self.check_stages(source, target, &at.key("target_id"), findings);
            if !steps.insert((source, target)) {
                let (from, to) = (step.source_id, step.target_id);
                let message = format!("there is a transition from node {from} to {to} already");
                findings.wrong(&at, message);
            }
            if let Some(rate) = step.annual_discount_rate_override {
                let stage = self.nodes[source].stage;
                let first = *rated.entry(stage).or_insert(rate.0);
                if first != rate.0 {
                    let message = format!(
                        "{} is found, and {first} at another transition from stage {}: a stage has one rate",
                        rate.0, self.file.stages[stage].id
                    );
                    findings.wrong(&at.key("annual_discount_rate_override"), message);
                }
                check_rate(&self.file.stages[stage], rate, &at, findings);
                self.rates[stage] = rate.0;
            }
            if step.probability.0 > 0.0 {
                self.nodes[source].next.push((target, step.probability.0));
            }
        }
        self.check_sums(list, findings);
    }

    /// Says if a node is not of the stage after that of another.
    fn check_stages(&self, source: usize, target: usize, at: &Place, findings: &mut Findings) {
        let [from, to] = [source, target].map(|place| self.nodes[place].stage);
        let next = next_stage(self.file, from);
        if next != Some(to) {
            let id = |place: usize| self.file.stages[place].id;
            let expected = next.map_or("no stage follows it".to_owned(), |next| {
                format!("{} follows it", id(next))
            });
            let message = format!(
                "node {} is of stage {}, and node {} of stage {}: {expected}",
                self.ids[target],
                id(to),
                self.ids[source],
                id(from)
            );
            findings.wrong(at, message);
        }
    }

    /// Makes the probabilities from each node sum to 1.
    fn check_sums(&mut self, list: &Place, findings: &mut Findings) {
        for (node, id) in self.nodes.iter_mut().zip(&self.ids) {
            let steps = node.next.iter().map(|(_, probability)| probability);
            // The sum of no numbers is a zero with a sign.
            let sum = 0.0 + steps.sum::<f64>();
            let ends = next_stage(self.file, node.stage).is_none();
            if !ends && (sum - 1.0).abs() > ROUNDING {
                let message =
                    format!("the probabilities from node {id} sum to {sum}: 1 is expected");
                findings.wrong(list, message);
            }
            for (_, probability) in &mut node.next {
                *probability /= sum;
            }
        }
    }

    /// Says which nodes no path visits.
    fn check_reach(&self, list: &Place, findings: &mut Findings) {
        let mut reached = vec![false; self.nodes.len()];
        let begins = |place: &usize| self.nodes[*place].initial > 0.0;
        let mut ahead: Vec<usize> = (0..self.nodes.len()).filter(begins).collect();
        while let Some(place) = ahead.pop() {
            if !std::mem::replace(&mut reached[place], true) {
                ahead.extend(self.nodes[place].next.iter().map(|(next, _)| *next));
            }
        }
        if findings.any_wrong() {
            return;
        }
        for place in (0..self.nodes.len()).filter(|place| !reached[*place]) {
            let message = format!(
                "no path visits node {}: no transition of a probability above 0 leads to it",
                self.ids[place]
            );
            findings.wrong(list, message);
        }
    }
}
