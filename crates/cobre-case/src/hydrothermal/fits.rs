//! Fitted production functions of a case, for people to judge.

use std::path::Path;

use super::system::{PlantFit, System};
use crate::finding::Finding;

/// Hyperplanes fitted to the production function of a plant.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductionFit {
    /// The number of the plant.
    pub hydro_id: i32,
    /// Its name.
    pub hydro: String,
    /// The first and the last stage that has these planes.
    pub stages: (i32, i32),
    /// The storages that the fit covers, hm³.
    pub storages_hm3: (f64, f64),
    /// The turbined flow up to which it goes, m³/s.
    pub max_turbined_m3s: f64,
    /// The most generation, MW.
    pub max_generation_mw: f64,
    /// The planes.
    pub planes: Vec<FittedPlane>,
    /// The factor of least squares that all planes have.
    pub scale: f64,
    /// The largest distance from the exact function without spillage, MW, on a grid four times as fine as that of
    /// the fit.
    pub largest_error_mw: f64,
    /// The mean distance there, MW.
    pub mean_error_mw: f64,
}

/// A fitted hyperplane, as `system/fpha_hyperplanes.parquet` would have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedPlane {
    /// MW.
    pub gamma_0: f64,
    /// MW/hm³.
    pub gamma_v: f64,
    /// MW/(m³/s).
    pub gamma_q: f64,
    /// MW/(m³/s).
    pub gamma_s: f64,
}

/// The fits of the case in a directory, or everything that is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Vec<ProductionFit>, Vec<Finding>> {
    let (files, system, findings) = super::resolve_system(path, None)?;
    if findings.any_wrong() {
        return Err(findings.sorted());
    }
    let plants = files.hydros.hydros.iter().zip(&system.hydros);
    let fits = plants.flat_map(|(file, plant)| {
        let fits = plant.production.fits.iter();
        fits.map(|own| told(own, file.id, &file.name, &system))
    });
    Ok(fits.collect())
}

fn told(own: &PlantFit, id: i32, name: &str, system: &System) -> ProductionFit {
    let (first, last) = own.stages;
    let planes = own.fit.planes.iter().map(|plane| FittedPlane {
        gamma_0: plane.constant,
        gamma_v: plane.storage,
        gamma_q: plane.turbined,
        gamma_s: plane.spilled,
    });
    ProductionFit {
        hydro_id: id,
        hydro: name.to_owned(),
        stages: (system.stages[first].id, system.stages[last].id),
        storages_hm3: own.grid.storages,
        max_turbined_m3s: own.grid.max_turbined,
        max_generation_mw: own.grid.max_generation,
        planes: planes.collect(),
        scale: own.fit.scale,
        largest_error_mw: own.fit.largest_error,
        mean_error_mw: own.fit.mean_error,
    }
}
