//! Warnings about production functions, reservoirs and the ways of water.

use super::files::production::{Geometry, Hyperplanes};
use super::files::{Files, stages, system as names};
use super::system::{Hydro, HydroPhase, Production, System, lowest};
use super::table::Row;
use crate::finding::{Findings, Place};

/// Generation without flow above this part of the most is suspicious, and a fit whose mean error is.
const NOTABLE: f64 = 1e-6;
const POOR_FIT: f64 = 0.05;
/// Rows of hyperplanes in a block beyond which linear programs become slow.
const MANY_PLANES: usize = 60;

/// Says what looks wrong with the water of a plant.
pub(super) fn find(files: &Files, system: &System, place: usize, findings: &mut Findings) {
    let (plant, file) = (&system.hydros[place], &files.hydros.hydros[place]);
    let thing = format!("hydro plant {} ({})", file.id, file.name);
    planes(system, plant, &thing, findings);
    fits(plant, &thing, findings);
    meant_for(files, place, &thing, findings);
    curves(files, place, &thing, findings);
    let at = Place::file(names::HYDROS).rows(&thing);
    if plant.evaporation.is_some() && !plant.stores() {
        let message = "it evaporates, but cannot store water: evaporation is that of a fixed area";
        findings.doubtful(&at, message);
    }
    let idle = |stage: usize| plant.phases[stage] != HydroPhase::Operating;
    if !system.stages.is_empty() && (0..system.stages.len()).all(idle) {
        findings.doubtful(&at, "it is in operation in no stage");
    }
    if plant.diverts_to.is_some() && plant.diverts_to == plant.downstream {
        findings.doubtful(&at, "its diversion goes where its river goes");
    }
    evaporation(files, plant, &thing, findings);
}

/// Hyperplanes that give energy without flow, or too many of them.
fn planes(system: &System, plant: &Hydro, thing: &str, findings: &mut Findings) {
    for (number, stage) in system.stages.iter().enumerate() {
        let Production::Planes(planes) = plant.production(number) else {
            continue;
        };
        let limits = &plant.limits[number];
        let still = lowest(planes, limits.max_storage, 0.0);
        let at = if plant.production.fits.is_empty() {
            Place::file(Hyperplanes::FILE)
        } else {
            Place::file(Geometry::FILE)
        };
        if still > NOTABLE * limits.max_generation {
            let message = format!(
                "the hyperplanes of stage {} give {still} MW at the largest storage without any flow",
                stage.id
            );
            findings.doubtful(&at.rows(thing), message);
            return;
        }
        let most = lowest(planes, limits.max_storage, limits.max_turbined);
        if most <= 0.0 && limits.max_turbined > 0.0 {
            let message = format!(
                "the hyperplanes of stage {} give nothing at the largest storage and flow",
                stage.id
            );
            findings.doubtful(&at.rows(thing), message);
            return;
        }
        if planes.len() > MANY_PLANES {
            let message = format!(
                "stage {} has {} hyperplanes, each a row in every block: linear programs become slow; lower \
                 max_planes_per_hydro",
                stage.id,
                planes.len()
            );
            findings.doubtful(&at.rows(thing), message);
            return;
        }
    }
}

/// Given planes of a plant that can do more than they are meant for.
fn meant_for(files: &Files, place: usize, thing: &str, findings: &mut Findings) {
    let file = &files.hydros.hydros[place];
    let most = [
        file.reservoir.max_storage_hm3.0,
        file.generation.max_turbined_m3s.0,
    ];
    let rows = files
        .hyperplanes
        .iter()
        .filter(|row| row.hydro_id == file.id);
    let mut less = rows.filter(|row| {
        row.valid_v_max_hm3.is_some_and(|own| own.0 < most[0])
            || row.valid_q_max_m3s.is_some_and(|own| own.0 < most[1])
    });
    if let Some(row) = less.next() {
        let message = format!(
            "plane {} is meant for less than the storage of {} hm³ and the flow of {} m³/s that the plant can have",
            row.plane_id, most[0], most[1]
        );
        findings.doubtful(&Place::file(Hyperplanes::FILE).rows(thing), message);
    }
}

/// Fits that are far from the exact function.
fn fits(plant: &Hydro, thing: &str, findings: &mut Findings) {
    for own in &plant.production.fits {
        let error = own.fit.mean_error / own.grid.max_generation.max(f64::MIN_POSITIVE);
        if error > POOR_FIT {
            let message = format!(
                "the fitted hyperplanes miss the production function by {:.2} MW on average, {:.1} % of the most \
                 generation: give more discretization points, or a narrower fitting_window",
                own.fit.mean_error,
                100.0 * error
            );
            findings.doubtful(&Place::file(Geometry::FILE).rows(thing), message);
        }
    }
}

/// Curves that do not cover the storage range, where something uses them.
fn curves(files: &Files, place: usize, thing: &str, findings: &mut Findings) {
    let file = &files.hydros.hydros[place];
    let volumes = files.geometry.iter().filter(|row| row.hydro_id == file.id);
    let volumes = volumes.map(|row| row.volume_hm3.0);
    let from = volumes.clone().fold(f64::INFINITY, f64::min);
    let to = volumes.fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = (
        file.reservoir.min_storage_hm3.0,
        file.reservoir.max_storage_hm3.0,
    );
    if from <= to && (from > least || to < most) {
        let message = format!(
            "level and area are given from {from} to {to} hm³, but storage goes from {least} to {most} hm³: beyond \
             the ends they are taken as constant"
        );
        findings.doubtful(&Place::file(Geometry::FILE).rows(thing), message);
    }
}

/// Evaporation of a stage that is longer than a month.
fn evaporation(files: &Files, plant: &Hydro, thing: &str, findings: &mut Findings) {
    if plant.evaporation.is_none() {
        return;
    }
    let longer = files.stages.stages.iter().find(|stage| {
        let (_, days) = stage.start_date.month();
        stage.end_date.0 - stage.start_date.0 > days
    });
    if let Some(stage) = longer {
        let at = Place::file(stages::FILE).rows(format!("stage {}", stage.id));
        let message = format!(
            "{thing} evaporates all the stage as in the month of its start_date, but the stage is longer"
        );
        findings.doubtful(&at, message);
    }
}
