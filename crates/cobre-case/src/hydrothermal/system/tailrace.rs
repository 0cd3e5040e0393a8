//! Tailraces in families: the level below a plant depends on that of the next reservoir.

use std::collections::BTreeMap;

use super::conversion::reference_volume;
use super::geometry::{PieceCurve, Reservoir, TailraceCurve};
use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::production::TailraceCurves;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::table::Row;

/// A family: the level of the reservoir below at which it holds, m, and its pieces by number.
#[derive(Debug, Default, Clone)]
struct TailraceFamily {
    level: Option<f64>,
    pieces: BTreeMap<Id, (f64, f64, [f64; 5])>,
}

impl TailraceFamily {
    fn curve(&self) -> PieceCurve {
        PieceCurve(self.pieces.values().copied().collect())
    }
}

/// The tailraces of the table, by plant; none where it has no rows.
pub(super) fn resolve(
    files: &Files,
    plants: &Index,
    reservoirs: &[Option<Reservoir>],
    findings: &mut Findings,
) -> Vec<Option<TailraceCurve>> {
    let families = families(files, plants, findings);
    let hydros = files.hydros.hydros.iter().zip(&families);
    let found = hydros.map(|(plant, own)| {
        let at = Place::file(TailraceCurves::FILE)
            .rows(format!("hydro plant {} ({})", plant.id, plant.name));
        let mut own: Vec<&TailraceFamily> = own.values().collect();
        for family in &own {
            let pieces: Vec<_> = family.pieces.values().collect();
            if pieces.windows(2).any(|pair| pair[1].0 < pair[0].1) {
                let message = "a piece begins before the one before it ends";
                findings.wrong(&at, message);
            }
        }
        if own.len() < 2 {
            let only = own.first()?;
            return Some(TailraceCurve::Families([only.curve(), only.curve()], 0.0));
        }
        if own.iter().any(|family| family.level.is_none()) {
            let message = "several families need downstream_reference_level_m in each";
            findings.wrong(&at, message);
            return None;
        }
        let level = level_below(files, plants, reservoirs, plant.downstream_id);
        let Some(level) = level else {
            let message =
                "several families need a plant below with rows in system/hydro_geometry.parquet";
            findings.wrong(&at, message);
            return None;
        };
        own.sort_by(|one, other| {
            one.level
                .partial_cmp(&other.level)
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        Some(between(&own, level))
    });
    found.collect()
}

/// The curve between the two families around a level; the nearest beyond the ends.
fn between(families: &[&TailraceFamily], level: f64) -> TailraceCurve {
    let levels: Vec<f64> = families
        .iter()
        .map(|own| own.level.unwrap_or(0.0))
        .collect();
    let after = levels.partition_point(|own| *own <= level);
    let second = after.min(levels.len() - 1);
    let first = after.saturating_sub(1);
    let apart = levels[second] - levels[first];
    let share = if apart > 0.0 {
        (level - levels[first]) / apart
    } else {
        0.0
    };
    TailraceCurve::Families([families[first].curve(), families[second].curve()], share)
}

/// The rows of every plant by family; says which name nothing, come twice or end before they begin.
fn families(
    files: &Files,
    plants: &Index,
    findings: &mut Findings,
) -> Vec<BTreeMap<Id, TailraceFamily>> {
    let mut found: Vec<BTreeMap<Id, TailraceFamily>> = vec![BTreeMap::new(); plants.len()];
    for (number, row) in files.tailrace_curves.iter().enumerate() {
        let at = Place::file(TailraceCurves::FILE).row(number);
        let Some(plant) = plants.find(row.hydro_id, &at, findings) else {
            continue;
        };
        let (from, to) = (row.outflow_min_m3s.0, row.outflow_max_m3s.0);
        if from > to {
            let message = format!("outflow_min_m3s, {from}, is above outflow_max_m3s, {to}");
            findings.wrong(&at, message);
            continue;
        }
        let family = found[plant].entry(row.family_id).or_default();
        let level = row.downstream_reference_level_m.map(|level| level.0);
        if !family.pieces.is_empty() && family.level != level {
            let message = "downstream_reference_level_m differs within the family";
            findings.wrong(&at, message);
        }
        family.level = level;
        let numbers = [
            row.coefficient_0,
            row.coefficient_1,
            row.coefficient_2,
            row.coefficient_3,
            row.coefficient_4,
        ];
        let piece = (from, to, numbers.map(|number| number.0));
        if family.pieces.insert(row.segment_id, piece).is_some() {
            let message = format!(
                "there is a piece {} of family {} of hydro plant {} already",
                row.segment_id, row.family_id, row.hydro_id
            );
            findings.wrong(&at, message);
        }
    }
    found
}

/// The level of the plant below at its reference storage, m.
fn level_below(
    files: &Files,
    plants: &Index,
    reservoirs: &[Option<Reservoir>],
    below: Option<Id>,
) -> Option<f64> {
    // A plant that is not there is said where the river is.
    let place = plants.find(below?, &Place::file(""), &mut Findings::default())?;
    let plant = &files.hydros.hydros[place];
    let models = files.production_models.iter();
    let mut models = models.flat_map(|file| &file.production_models);
    let given = models
        .find(|entry| entry.hydro_id == plant.id)
        .and_then(|entry| {
            let ranges = entry.stage_ranges.iter().flatten();
            let ranges = ranges.filter_map(|range| range.reference_volume.as_ref());
            let seasons = entry.seasons.iter().flatten();
            let seasons = seasons.filter_map(|season| season.reference_volume.as_ref());
            ranges.chain(seasons).next()
        });
    let volume = reference_volume(plant, given);
    reservoirs[place].as_ref().map(|own| own.height.at(volume))
}
