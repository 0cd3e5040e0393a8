//! Evaporation: a linear function of storage for each plant and stage.

use super::geometry::Reservoir;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::production::Geometry;
use crate::hydrothermal::files::system;
use crate::hydrothermal::table::Row;

const MONTHS: usize = 12;
/// m³/s of 1 mm from 1 km² in an hour, and the inverse.
const MM_KM2_HOURS: f64 = 3.6;

/// Evaporation in a stage, m³/s: constant + slope · (mean of storages before and after, hm³).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evaporation {
    pub(crate) constant: f64,
    pub(crate) slope: f64,
    /// Evaporation may be as far from zero as this, m³/s.
    pub(crate) most: f64,
}

/// The evaporation of a plant by stage; none without any.
pub(super) fn resolve(
    plant: &system::Hydro,
    reservoir: Option<&Reservoir>,
    stages: &[Stage],
    at: &Place,
    findings: &mut Findings,
) -> Option<Vec<Evaporation>> {
    let file = plant.evaporation.as_ref()?;
    let at = at.key("evaporation");
    let (least, most) = (
        plant.reservoir.min_storage_hm3.0,
        plant.reservoir.max_storage_hm3.0,
    );
    let mut sound = true;
    let references = file.reference_volumes_hm3.as_ref();
    for (key, count) in [
        ("coefficients_mm", Some(file.coefficients_mm.len())),
        ("reference_volumes_hm3", references.map(Vec::len)),
    ] {
        if let Some(count) = count.filter(|count| *count != MONTHS) {
            let message =
                format!("{MONTHS} numbers are expected, one per month; {count} are found");
            findings.wrong(&at.key(key), message);
            sound = false;
        }
    }
    for (month, reference) in references.into_iter().flatten().enumerate() {
        if !(least..=most).contains(&reference.0) {
            let message = format!(
                "{} is not from {least} to {most}, the storage range",
                reference.0
            );
            findings.wrong(&at.key("reference_volumes_hm3").index(month), message);
        }
    }
    let Some(reservoir) = reservoir else {
        let thing = format!("hydro plant {} ({})", plant.id, plant.name);
        let message = "there is no row, which evaporation needs";
        findings.wrong(&Place::file(Geometry::FILE).rows(thing), message);
        return None;
    };
    if !sound {
        return None;
    }
    let of_stage = |stage: &Stage| {
        let reference = references.map_or(f64::midpoint(least, most), |own| own[stage.month].0);
        let rate = file.coefficients_mm[stage.month].0 / (MM_KM2_HOURS * stage.month_hours);
        let slope = rate * reservoir.area.slope(reference);
        let constant = rate * reservoir.area.at(reference) - slope * reference;
        Evaporation {
            constant,
            slope,
            most: 2.0 * (constant + slope * most).abs(),
        }
    };
    Some(stages.iter().map(of_stage).collect())
}
