//! Openings that a file gives.

use std::collections::HashMap;

use super::Kinds;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::config;
use crate::hydrothermal::files::inflow::NoiseOpenings;
use crate::hydrothermal::system::System;
use crate::hydrothermal::table::Row;

/// The noise of `noise_openings.parquet`, by stage, opening and series.
#[derive(Debug)]
pub(super) struct GivenOpenings {
    values: Vec<Vec<Vec<f64>>>,
    /// The number of each of the file's series, and how many series there are.
    series: Vec<usize>,
    count: usize,
    /// True if series are left that nothing is given for.
    partial: bool,
}

impl GivenOpenings {
    /// The openings of a case, if it gives them; says what is wrong with them.
    pub(super) fn resolve(files: &Files, system: &System, findings: &mut Findings) -> Option<Self> {
        if files.noise_openings.is_empty() {
            let source = files.config.training.scenario_source.as_ref();
            if source.is_some_and(|source| source.openings.is_some()) {
                let at = Place::file(config::FILE).key("training.scenario_source.openings.source");
                findings.wrong(&at, format!("\"file\" needs {}", NoiseOpenings::FILE));
            }
            return None;
        }
        let (own, sources) = series(files, system);
        let at = Place::file(NoiseOpenings::FILE);
        let entities = files.noise_openings.iter().map(|row| row.entity_index);
        let most = entities.max().and_then(|most| usize::try_from(most).ok());
        let found = most.map_or(0, |most| most + 1);
        let all = own.len() + sources.len();
        // Files of the reference program leave sources out.
        let series: Vec<usize> = if found == own.len() {
            own
        } else {
            own.into_iter().chain(sources).collect()
        };
        if found != series.len() {
            let message = format!(
                "it has {found} series; {all} are expected: hydro plants, buses whose load is uncertain, and sources"
            );
            findings.wrong(&at, message);
            return None;
        }
        let mut values: Vec<Vec<Vec<Option<f64>>>> = system
            .stages
            .iter()
            .map(|stage| vec![vec![None; series.len()]; stage.openings])
            .collect();
        fill(files, system, &mut values, findings);
        let values = complete(values, system, findings)?;
        let partial = series.len() < all;
        Some(Self {
            values,
            series,
            count: Kinds::of(system).sources.end,
            partial,
        })
    }

    /// The noise of a stage by opening and series; what the file leaves out is drawn.
    pub(super) fn openings(
        &self,
        stage: usize,
        drawn: impl FnOnce() -> Vec<Vec<f64>>,
    ) -> Vec<Vec<f64>> {
        let given = &self.values[stage];
        let mut found = if self.partial {
            let mut found = drawn();
            found.truncate(given.len());
            found
        } else {
            vec![vec![0.0; self.count]; given.len()]
        };
        for (opening, given) in found.iter_mut().zip(given) {
            for (number, value) in self.series.iter().zip(given) {
                opening[*number] = *value;
            }
        }
        found
    }
}

/// The series of the file by number: plants and buses whose load is uncertain, and after them sources, each by id.
fn series(files: &Files, system: &System) -> (Vec<usize>, Vec<usize>) {
    let kinds = Kinds::of(system);
    let sorted = |mut list: Vec<(i32, usize)>| -> Vec<usize> {
        list.sort_unstable();
        list.into_iter().map(|(_, number)| number).collect()
    };
    let plants = files.hydros.hydros.iter().map(|plant| plant.id);
    let mut own = sorted(plants.zip(kinds.inflows.clone()).collect());
    let buses = files.buses.buses.iter().zip(&system.buses);
    let buses = buses.zip(kinds.loads.clone());
    let buses = buses.filter(|((_, bus), _)| bus.load.iter().any(|load| load.deviation > 0.0));
    own.extend(sorted(
        buses.map(|((bus, _), number)| (bus.id, number)).collect(),
    ));
    let sources = files.sources.iter();
    let sources = sources.flat_map(|file| &file.non_controllable_sources);
    let sources = sources.map(|source| source.id).zip(kinds.sources.clone());
    (own, sorted(sources.collect()))
}

/// Puts the rows where they belong.
fn fill(
    files: &Files,
    system: &System,
    values: &mut [Vec<Vec<Option<f64>>>],
    findings: &mut Findings,
) {
    let mut most: HashMap<usize, i32> = HashMap::new();
    for (number, row) in files.noise_openings.iter().enumerate() {
        let at = Place::file(NoiseOpenings::FILE).row(number);
        let Some(stage) = system.indices.stages.find(row.stage_id, &at, findings) else {
            continue;
        };
        let opening = usize::try_from(row.opening_index).ok();
        let entity = usize::try_from(row.entity_index).ok();
        let openings = values[stage].len();
        let of_opening = opening.and_then(|opening| values[stage].get_mut(opening));
        let Some(of_opening) = of_opening else {
            let seen = most.entry(stage).or_insert(row.opening_index);
            *seen = (*seen).max(row.opening_index);
            let message = format!(
                "opening_index {} of stage {} is not from 0 to {}: the stage has num_scenarios {openings}",
                row.opening_index,
                row.stage_id,
                openings.saturating_sub(1)
            );
            findings.wrong(&at, message);
            continue;
        };
        match entity.and_then(|entity| of_opening.get_mut(entity)) {
            None => {
                let message = format!("entity_index {} is below 0", row.entity_index);
                findings.wrong(&at, message);
            }
            Some(place) => {
                if place.replace(row.value.0).is_some() {
                    let message = format!(
                        "there is a row of stage {}, opening {}, entity {} already",
                        row.stage_id, row.opening_index, row.entity_index
                    );
                    findings.wrong(&at, message);
                }
            }
        }
    }
}

/// All values; says the first that is missing of each stage.
fn complete(
    values: Vec<Vec<Vec<Option<f64>>>>,
    system: &System,
    findings: &mut Findings,
) -> Option<Vec<Vec<Vec<f64>>>> {
    let at = Place::file(NoiseOpenings::FILE);
    for (of_stage, stage) in values.iter().zip(&system.stages) {
        let places = of_stage.iter().enumerate();
        let mut missing = places.filter_map(|(opening, values)| {
            let entity = values.iter().position(Option::is_none)?;
            Some((opening, entity))
        });
        if let Some((opening, entity)) = missing.next() {
            let message = format!(
                "there is no row of opening {opening}, entity {entity}: the file must have all openings of all stages"
            );
            findings.wrong(&at.rows(format!("stage {}", stage.id)), message);
        }
    }
    let values = values.into_iter().map(|of_stage| {
        let openings = of_stage.into_iter();
        openings
            .map(|values| values.into_iter().collect::<Option<Vec<f64>>>())
            .collect::<Option<Vec<_>>>()
    });
    values.collect()
}
