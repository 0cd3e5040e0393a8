//! Studies whose last stage is followed by the first, again and again.

use super::{HydroPhase, System};
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::config::{self, NonNegativity, ScenarioSource, SchemeKind};
use crate::hydrothermal::files::stages::{self, Horizon};
use crate::hydrothermal::files::terminal::TerminalWaterValues;
use crate::hydrothermal::table::Row;

/// The discount of a cycle that counts as none.
const LEAST_DISCOUNT: f64 = 1e-6;

/// The first day of a cycle, and the day after its last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cycle {
    start: Date,
    end: Date,
}

impl Cycle {
    /// The cycle of a case; none if the study ends.
    pub(super) fn resolve(files: &Files) -> Option<Self> {
        let file = &files.stages;
        let (first, last) = (file.stages.first()?, file.stages.last()?);
        (file.policy_graph.r#type == Horizon::Cyclic).then_some(Self {
            start: first.start_date,
            end: last.end_date,
        })
    }

    /// The first day that a stage which begins on `date` in the first cycle has after the day `before`: whole years
    /// later if cycles are whole years.
    pub(crate) fn later(self, date: Date, before: Date) -> Date {
        let (start, end) = (self.start.calendar(), self.end.calendar());
        let whole = (start.1, start.2) == (end.1, end.2);
        let years = whole.then_some(end.0 - start.0);
        let (year, month, day) = date.calendar();
        let length = self.end.0 - self.start.0;
        let mut cycles = (before.0 - date.0).max(0) / (length + 2);
        loop {
            let shifted = match years {
                Some(years) => Date::of(year + cycles * years, month, day),
                None => Date(date.0 + cycles * length),
            };
            if shifted > before {
                return shifted;
            }
            cycles += 1;
        }
    }
}

/// Says what a cyclic study cannot have.
pub(super) fn check(system: &System, files: &Files, findings: &mut Findings) {
    if system.cycle.is_none() {
        return;
    }
    let graph = Place::file(stages::FILE).key("policy_graph");
    let discount: f64 = system.stages.iter().map(|stage| stage.discount).product();
    if discount > 1.0 - LEAST_DISCOUNT {
        let message =
            "a cyclic study costs infinitely much without a discount: give a rate above 0";
        findings.wrong(&graph.key("annual_discount_rate"), message);
    }
    terminal(files, findings);
    let mut refuse = |what: String| {
        let message = format!("\"cyclic\" does not go with {what}");
        findings.wrong(&graph.key("type"), message);
    };
    for plant in &system.hydros {
        let name = &plant.label;
        if plant
            .phases
            .iter()
            .any(|phase| *phase != HydroPhase::Operating)
        {
            refuse(format!("plant {name}, which enters, fills or exits"));
        }
        if plant.travel.is_some() {
            refuse(format!("plant {name}, whose releases travel"));
        }
        let penalty = matches!(
            system.non_negativity,
            NonNegativity::Penalty | NonNegativity::None
        );
        if !plant.inflow.past.is_empty() && !penalty {
            refuse(format!(
                "a lower bound of the inflows of plant {name}, which depend on the past: use the method penalty"
            ));
        }
    }
    for plant in system
        .thermals
        .iter()
        .filter(|plant| plant.commitment.is_some())
    {
        refuse(format!("plant {}, which is committed ahead", plant.label));
    }
    let sources = [
        ("training", files.config.training.scenario_source.as_ref()),
        (
            "simulation",
            files
                .config
                .simulation
                .as_ref()
                .and_then(|own| own.scenario_source.as_ref()),
        ),
    ];
    for (part, source) in sources {
        if source.is_some_and(|source| !in_sample(source)) {
            let at = Place::file(config::FILE).key(part).key("scenario_source");
            findings.wrong(
                &at,
                "a cyclic study takes paths through the openings: use in_sample",
            );
        }
    }
}

/// Says that nothing comes after a study without an end.
fn terminal(files: &Files, findings: &mut Findings) {
    let message = "a cyclic study has no end, and no value after it: remove this";
    if !files.terminal_water_values.is_empty() {
        findings.wrong(&Place::file(TerminalWaterValues::FILE), message);
    }
    let policy = files.config.policy.as_ref();
    if policy.is_some_and(|policy| policy.boundary.is_some()) {
        findings.wrong(&Place::file(config::FILE).key("policy.boundary"), message);
    }
}

/// True if all paths go through the openings.
fn in_sample(source: &ScenarioSource) -> bool {
    let schemes = [&source.inflow, &source.load, &source.ncs];
    let mut schemes = schemes.into_iter().flatten();
    schemes.all(|scheme| scheme.scheme == SchemeKind::InSample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        Date::parse(text).expect("a date")
    }

    #[test]
    fn a_stage_comes_again_whole_years_later() {
        let year = Cycle {
            start: date("2024-01-01"),
            end: date("2025-01-01"),
        };
        let later = |day: &str, before: &str| year.later(date(day), date(before)).to_string();
        assert_eq!(later("2024-02-01", "2024-01-01"), "2024-02-01");
        assert_eq!(later("2024-01-01", "2024-12-01"), "2025-01-01");
        assert_eq!(later("2024-02-29", "2024-02-29"), "2025-02-28");
        assert_eq!(later("2024-03-01", "2047-02-01"), "2047-03-01");
        let month = Cycle {
            end: date("2024-01-31"),
            ..year
        };
        let again = month.later(date("2024-01-01"), date("2024-01-31"));
        assert_eq!(again.to_string(), "2024-03-01");
    }
}
