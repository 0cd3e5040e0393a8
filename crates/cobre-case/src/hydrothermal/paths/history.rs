//! Past years as scenarios of inflows.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::GivenScenarios;
use super::given::GivenRow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::config::HistoricalYears;
use crate::hydrothermal::files::inflow::InflowHistory;
use crate::hydrothermal::system::{Period, System};
use crate::hydrothermal::table::Row;

/// The most years that a message names.
const NAMED: usize = 10;

/// The scenarios of past years: those that are asked for, else all that have the inflows of every stage and plant.
pub(super) fn years(
    system: &System,
    asked: Option<&HistoricalYears>,
    at: &Place,
    findings: &mut Findings,
) -> Option<GivenScenarios> {
    if let Some(wrong) = asked.and_then(wrong_choice) {
        findings.wrong(at, wrong);
        return None;
    }
    let found = complete(system);
    // A range may have more years than there is memory for.
    let wanted = || -> Box<dyn Iterator<Item = i64> + '_> {
        match asked {
            None => Box::new(found.keys().copied()),
            Some(HistoricalYears::List(years)) => Box::new(years.iter().copied().map(i64::from)),
            Some(HistoricalYears::Range(range)) => {
                Box::new(i64::from(range.from)..=i64::from(range.to))
            }
        }
    };
    let lacking = wanted().filter(|year| !found.contains_key(year));
    let lacking: Vec<String> = lacking.take(NAMED).map(|year| year.to_string()).collect();
    if !lacking.is_empty() || found.is_empty() {
        let which = match lacking.join(", ") {
            none if none.is_empty() => "no year has".to_owned(),
            years => format!("{years}: no such year, or it lacks"),
        };
        let there: Vec<String> = found.keys().map(ToString::to_string).collect();
        let there = match (there.first(), there.last()) {
            (Some(first), Some(last)) => {
                format!("; there are {} from {first} to {last}", there.len())
            }
            _ => String::new(),
        };
        let message = format!(
            "{which} the inflows of all stages and plants in {}, by season_definitions{there}",
            InflowHistory::FILE
        );
        findings.wrong(at, message);
        return None;
    }
    let stages = system.indices.stages.numbers();
    let plants = system.indices.hydros.numbers();
    let mut rows = Vec::new();
    for year in wanted() {
        for (stage, values) in found[&year].iter().enumerate() {
            for (plant, &value) in values.iter().enumerate() {
                rows.push(GivenRow {
                    scenario: year.to_string(),
                    stage: stages[stage],
                    thing: plants[plant],
                    value,
                    at: at.clone(),
                });
            }
        }
    }
    let indices = (&system.indices.hydros, &system.indices.stages);
    let found = GivenScenarios::of_rows(&rows, indices, |_| true, at, findings)?;
    let mut found = found.of_inflows(system);
    found.kind = "historical";
    Some(found)
}

/// What is wrong with a choice of years, whatever the history has.
fn wrong_choice(years: &HistoricalYears) -> Option<String> {
    match years {
        HistoricalYears::List(years) => {
            let mut seen = HashSet::new();
            let again = years.iter().find(|year| !seen.insert(**year));
            let again = again.map(|year| format!("{year} is there twice"));
            let none = || "the list is empty: leave it out for all years".to_owned();
            again.or_else(|| years.is_empty().then(none))
        }
        HistoricalYears::Range(range) => (range.to < range.from)
            .then(|| format!("to, {}, is before from, {}", range.to, range.from)),
    }
}

/// The inflows of each year that has all of them, by stage and plant. The year is that of the first stage.
fn complete(system: &System) -> BTreeMap<i64, Vec<Vec<f64>>> {
    let Some(timeline) = &system.timeline else {
        return BTreeMap::new();
    };
    let mut found: BTreeMap<i64, Vec<Vec<f64>>> = BTreeMap::new();
    let first = timeline.stages.first().map_or(0, |stage| year(&stage.2));
    for (number, (_, _, period)) in timeline.stages.iter().enumerate() {
        let Some(own) = system.history.of(period) else {
            return BTreeMap::new();
        };
        let season = timeline.seasons.place(period);
        let places = own.record.season_of.iter().enumerate();
        let places = places.filter(|(_, of)| **of == season);
        let places: HashMap<i64, usize> = places
            .map(|(place, _)| (year(&own.record.periods[place]), place))
            .collect();
        let later = year(period) - first;
        let of_year = |start: i64| -> Option<Vec<f64>> {
            let place = *places.get(&(start + later))?;
            let plants = own.plants.iter();
            plants
                .map(|plant| plant.values.get(place).copied().flatten())
                .collect()
        };
        if number == 0 {
            let years = places
                .keys()
                .filter_map(|year| Some((*year, vec![of_year(*year)?])));
            found = years.collect();
            continue;
        }
        found.retain(|start, stages| {
            let values = of_year(*start);
            let there = values.is_some();
            stages.extend(values);
            there
        });
    }
    found
}

/// The calendar year of the middle of a period.
fn year(period: &Period) -> i64 {
    let mut middle = period.start;
    middle.0 += period.days() / 2;
    middle.calendar().0
}
