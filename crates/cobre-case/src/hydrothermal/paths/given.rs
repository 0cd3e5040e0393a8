//! Scenarios that are given: a value for each stage and thing.

use std::sync::Arc;

use crate::finding::{Findings, Place};
use crate::hydrothermal::system::{Index, System};

/// The most values of the scenarios of one kind: 1 GiB.
const MOST_VALUES: usize = 1 << 27;

/// Scenarios of the series of one kind.
#[derive(Debug, Clone)]
pub(crate) struct GivenScenarios {
    /// The kind of the paths, in one word.
    pub(crate) kind: &'static str,
    labels: Arc<[String]>,
    things: usize,
    stages: usize,
    /// By scenario, stage and thing; NaN where a thing is in no scenario.
    values: Arc<[f64]>,
    /// The numbers that make them happen: of inflows, the values without their parts from the past.
    numbers: Arc<[f64]>,
}

/// A row of scenarios: the name of the scenario, the numbers of stage and thing, the value, and where that is.
pub(crate) struct GivenRow {
    pub(crate) scenario: String,
    pub(crate) stage: i32,
    pub(crate) thing: i32,
    pub(crate) value: f64,
    pub(crate) at: Place,
}

impl GivenScenarios {
    /// The scenarios of rows; says which name nothing, come twice or are missing. `needed` are the things that every
    /// scenario must have.
    pub(crate) fn of_rows(
        rows: &[GivenRow],
        (things, stages): (&Index, &Index),
        needed: impl Fn(usize) -> bool,
        file: &Place,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut labels: Vec<String> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for row in rows {
            places.entry(row.scenario.as_str()).or_insert_with(|| {
                labels.push(row.scenario.clone());
                labels.len() - 1
            });
        }
        if labels.is_empty() {
            findings.wrong(file, "there is no scenario");
            return None;
        }
        let (count, width) = (labels.len(), stages.len() * things.len());
        if count.saturating_mul(width) > MOST_VALUES {
            let message = format!(
                "there are {count} scenarios, of {} stages and {} × {}; {} are the most: is scenario_id the number of the row?",
                stages.len(),
                things.len(),
                things.what(),
                MOST_VALUES / width
            );
            findings.wrong(file, message);
            return None;
        }
        let mut values = vec![f64::NAN; count * width];
        for row in rows {
            let thing = things.find(row.thing, &row.at, findings);
            let stage = stages.find(row.stage, &row.at, findings);
            let (Some(thing), Some(stage)) = (thing, stage) else {
                continue;
            };
            let at = (places[row.scenario.as_str()] * stages.len() + stage) * things.len() + thing;
            if !values[at].is_nan() {
                let message = format!(
                    "there is a row of scenario {}, {} {}, stage {} already",
                    row.scenario,
                    things.what(),
                    row.thing,
                    row.stage
                );
                findings.wrong(&row.at, message);
            }
            values[at] = row.value;
        }
        share(&mut values, &labels, (things, stages), file, findings);
        for thing in 0..things.len() {
            let of = |at: &usize| values[*at].is_nan();
            let own = (0..count * stages.len()).map(|at| at * things.len() + thing);
            let missing = own.clone().find(of);
            let absent = own.clone().all(|at| of(&at));
            if let Some(at) = missing.filter(|_| !absent || needed(thing)) {
                let (scenario, stage) = (at / width, at % width / things.len());
                let message = format!(
                    "{} {} has no row in scenario {}, stage {}: every scenario has one for each stage",
                    things.what(),
                    things.labels[thing],
                    labels[scenario],
                    stages.labels[stage]
                );
                findings.wrong(file, message);
            }
        }
        let values: Arc<[f64]> = values.into();
        Some(Self {
            kind: "external",
            labels: labels.into(),
            things: things.len(),
            stages: stages.len(),
            numbers: Arc::clone(&values),
            values,
        })
    }

    /// The scenarios of inflows, with the numbers that make them happen after the past of the case.
    pub(crate) fn of_inflows(mut self, system: &System) -> Self {
        let mut numbers = self.values.to_vec();
        for (place, plant) in system.hydros.iter().enumerate() {
            for scenario in 0..self.labels.len() {
                let mut past = plant.inflow.past.clone();
                for (stage, model) in plant.inflow.stages.iter().enumerate() {
                    let at = self.at(scenario, stage, place);
                    numbers[at] = model.own_part(self.values[at], &past);
                    model.advance(&mut past, self.values[at]);
                }
            }
        }
        self.numbers = numbers.into();
        self
    }

    /// The same scenarios in another order.
    pub(crate) fn in_order(&self, order: &[usize]) -> Self {
        let width = self.stages * self.things;
        let of = |all: &[f64]| -> Arc<[f64]> {
            let scenarios = order.iter();
            scenarios
                .flat_map(|own| &all[own * width..][..width])
                .copied()
                .collect()
        };
        Self {
            labels: order.iter().map(|own| self.labels[*own].clone()).collect(),
            values: of(&self.values),
            numbers: of(&self.numbers),
            ..self.clone()
        }
    }

    /// The names of all scenarios.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    fn at(&self, scenario: usize, stage: usize, thing: usize) -> usize {
        (scenario * self.stages + stage) * self.things + thing
    }

    /// The number of scenarios.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The name of a scenario.
    pub(crate) fn label(&self, scenario: usize) -> &str {
        &self.labels[scenario % self.len()]
    }

    /// The number of a thing in a stage of a scenario; none if no scenario has the thing.
    pub(crate) fn number(&self, scenario: usize, stage: usize, thing: usize) -> Option<f64> {
        let number = self.numbers[self.at(scenario % self.len(), stage, thing)];
        (!number.is_nan()).then_some(number)
    }

    /// True if a thing is in no scenario.
    pub(crate) fn is_partial(&self) -> bool {
        self.numbers.iter().any(|number| number.is_nan())
    }

    /// The least and the largest number of a thing in a stage.
    pub(crate) fn range(&self, thing: usize, stage: usize) -> Option<[f64; 2]> {
        let numbers = (0..self.len()).filter_map(|scenario| self.number(scenario, stage, thing));
        numbers.fold(None, |range, number| {
            let [least, most] = range.unwrap_or([number; 2]);
            Some([least.min(number), most.max(number)])
        })
    }

    /// The least value of a thing in a stage.
    pub(crate) fn least_value(&self, thing: usize, stage: usize) -> f64 {
        let values = (0..self.len()).map(|scenario| self.values[self.at(scenario, stage, thing)]);
        values.fold(f64::INFINITY, f64::min)
    }

    /// A hash of all that it has (FNV-1a).
    pub(crate) fn hash(&self) -> u64 {
        let numbers = self
            .numbers
            .iter()
            .flat_map(|number| number.to_bits().to_le_bytes());
        let labels = self.labels.iter().flat_map(|label| label.bytes());
        numbers
            .chain(labels)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
    }
}

/// Gives all scenarios the values of stages of which one scenario alone has any: weeks before a month that branches.
fn share(
    values: &mut [f64],
    labels: &[String],
    (things, stages): (&Index, &Index),
    file: &Place,
    findings: &mut Findings,
) {
    let (width, mut shared) = (stages.len() * things.len(), Vec::new());
    for stage in 0..stages.len() {
        let of = |scenario: usize| {
            let first = scenario * width + stage * things.len();
            first..first + things.len()
        };
        let known = |scenario: &usize| values[of(*scenario)].iter().any(|value| !value.is_nan());
        let mut having = (0..labels.len()).filter(known);
        let (Some(only), None, true) = (having.next(), having.next(), labels.len() > 1) else {
            continue;
        };
        for scenario in (0..labels.len()).filter(|scenario| *scenario != only) {
            values.copy_within(of(only), of(scenario).start);
        }
        shared.push(stages.labels[stage].as_str());
    }
    if !shared.is_empty() {
        let message = format!(
            "stages {} have rows of one scenario: all scenarios have these values there",
            shared.join(", ")
        );
        findings.doubtful(file, message);
    }
}
