//! The system that the files describe: everything found, everything checked, nothing left to look
//! up.

mod batteries;
mod bounds;
mod buses;
mod commitment;
mod contracts;
mod evaporation;
mod expression;
mod fit;
mod generic;
mod geometry;
mod hull;
mod hydros;
mod index;
mod inflow;
mod lines;
mod phases;
mod production;
mod pumping;
mod sources;
mod thermals;
mod time;
mod travel;
mod units;
mod window;

pub(crate) use batteries::Battery;
pub(crate) use buses::Bus;
pub(crate) use commitment::{Commitment, mean_limits};
pub(crate) use contracts::ResolvedContract;
pub(crate) use fit::lowest;
pub(crate) use generic::{ActiveBound, ConstraintTerm, PlannerConstraint, Variable};
pub(crate) use geometry::ProductionFunction;
pub(crate) use hydros::{Hydro, HydroCosts, HydroLimits};
pub(crate) use index::Index;
pub(crate) use inflow::InflowModel;
pub(crate) use lines::Line;
pub(crate) use phases::HydroPhase;
pub(crate) use production::{PlantFit, Production};
pub(crate) use pumping::Pumping;
pub(crate) use sources::Source;
pub(crate) use thermals::Thermal;
pub(crate) use time::Stage;
pub(crate) use units::UnitGroup;

use super::files::Files;
use super::files::config::NonNegativity;
use super::files::constraints::{HydroBounds, LineBounds, ThermalBounds};
use super::files::equipment::SourceBounds;
use super::files::penalty_overrides::{
    BusOverrides, HydroOverrides, LineOverrides, SourceOverrides,
};
use super::files::production::{EnergyProductivity, Geometry, Hyperplanes};
use super::files::scenarios::{ArCoefficients, InflowStats, LoadStats, SourceStats};
use super::files::system as names;
use super::table::Row;
use crate::finding::{Findings, Place};

/// A hydrothermal system over time.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) stages: Vec<Stage>,
    pub(crate) buses: Vec<Bus>,
    pub(crate) lines: Vec<Line>,
    pub(crate) thermals: Vec<Thermal>,
    pub(crate) hydros: Vec<Hydro>,
    pub(crate) sources: Vec<Source>,
    pub(crate) pumping: Vec<Pumping>,
    pub(crate) contracts: Vec<ResolvedContract>,
    pub(crate) batteries: Vec<Battery>,
    pub(crate) constraints: Vec<PlannerConstraint>,
    pub(crate) non_negativity: NonNegativity,
    pub(crate) indices: Indices,
}

/// Where things are, by their numbers in files.
#[derive(Debug)]
pub(crate) struct Indices {
    pub(crate) stages: Index,
    pub(crate) buses: Index,
    pub(crate) hydros: Index,
    pub(crate) sources: Index,
    pub(crate) lines: Index,
    pub(crate) thermals: Index,
    pub(crate) pumping: Index,
    pub(crate) contracts: Index,
    pub(crate) batteries: Index,
}

impl System {
    /// The system of these files; says everything that does not fit together. What comes back after
    /// an error is fit for nothing but further checks.
    pub(crate) fn resolve(files: &Files, findings: &mut Findings) -> Self {
        check_tables(files, findings);
        let (stages, stage_index) = time::resolve(&files.stages, findings);
        let named = files.buses.buses.iter();
        let named = named.map(|bus| (bus.id, bus.name.as_str()));
        let list = Place::file(names::BUSES).key("buses");
        let bus_index = Index::new("bus", named, &list, findings);
        let named = files.hydros.hydros.iter();
        let named = named.map(|plant| (plant.id, plant.name.as_str()));
        let list = Place::file(names::HYDROS).key("hydros");
        let hydro_index = Index::new("hydro plant", named, &list, findings);
        let inflows = inflow::resolve(files, &hydro_index, &stages, &stage_index, findings);
        let reservoirs = geometry::resolve(files, &hydro_index, findings);
        let time = (&stages[..], &stage_index);
        let productions = production::resolve(files, &hydro_index, &reservoirs, time, findings);
        let hydros = hydros::resolve(
            files,
            (&hydro_index, &bus_index),
            time,
            (inflows, &reservoirs),
            productions,
            findings,
        );
        let (thermals, thermal_index) =
            thermals::resolve(files, &bus_index, &stages, &stage_index, findings);
        let (sources, source_index) =
            sources::resolve(files, &bus_index, &stages, &stage_index, findings);
        let (lines, line_index) =
            lines::resolve(files, &bus_index, &stages, &stage_index, findings);
        let plants = (&bus_index, &hydro_index);
        let (pumping, pumping_index) =
            pumping::resolve(files, plants, &stages, &stage_index, findings);
        let (contracts, contract_index) =
            contracts::resolve(files, &bus_index, &stages, &stage_index, findings);
        let (batteries, battery_index) =
            batteries::resolve(files, &bus_index, &stages, &stage_index, findings);
        let buses = buses::resolve(files, &bus_index, &stages, &stage_index, findings);
        let modeling = files.config.modeling.as_ref();
        let asked = modeling.and_then(|modeling| modeling.inflow_non_negativity.as_ref());
        let mut system = Self {
            stages,
            buses,
            lines,
            thermals,
            hydros,
            sources,
            pumping,
            contracts,
            batteries,
            constraints: Vec::new(),
            non_negativity: asked
                .and_then(|asked| asked.method)
                .unwrap_or(NonNegativity::Penalty),
            indices: Indices {
                stages: stage_index,
                buses: bus_index,
                hydros: hydro_index,
                sources: source_index,
                lines: line_index,
                thermals: thermal_index,
                pumping: pumping_index,
                contracts: contract_index,
                batteries: battery_index,
            },
        };
        if system.non_negativity == NonNegativity::BoundedNoise {
            let models = system.hydros.iter_mut();
            let models = models.flat_map(|plant| &mut plant.inflow.stages);
            models.for_each(InflowModel::bound_noise);
        }
        system.constraints = generic::resolve(files, &system, findings);
        system.check_states(findings);
        system
    }

    /// Says where the file denies that something is a state which is one.
    fn check_states(&self, findings: &mut Findings) {
        let stores = self.hydros.iter().find(|plant| plant.stores());
        let remembers = self
            .hydros
            .iter()
            .find(|plant| !plant.inflow.past.is_empty());
        for stage in &self.stages {
            let at = stage.at.key("state_variables");
            if let Some(plant) = stores
                && !stage.storage_is_state
            {
                let message = format!("false, but plant {} can store water", plant.label);
                findings.wrong(&at.key("storage"), message);
            }
            if let Some(plant) = remembers
                && stage.lags_are_states == Some(false)
            {
                let message = format!("false, but plant {} has AR coefficients", plant.label);
                findings.wrong(&at.key("inflow_lags"), message);
            }
        }
    }
}

/// Says which tables have no rows, though there are things that they could be about.
fn check_tables(files: &Files, findings: &mut Findings) {
    let sources = files.sources.as_ref();
    let sources = sources.map_or(0, |file| file.non_controllable_sources.len());
    let hydros = files.hydros.hydros.len();
    let things = [
        (InflowStats::FILE, hydros),
        (ArCoefficients::FILE, hydros),
        (HydroBounds::FILE, hydros),
        (LoadStats::FILE, files.buses.buses.len()),
        (LineBounds::FILE, files.lines.lines.len()),
        (ThermalBounds::FILE, files.thermals.thermals.len()),
        (SourceStats::FILE, sources),
        (HydroOverrides::FILE, hydros),
        (BusOverrides::FILE, files.buses.buses.len()),
        (LineOverrides::FILE, files.lines.lines.len()),
        (SourceOverrides::FILE, sources),
        (SourceBounds::FILE, sources),
        (Hyperplanes::FILE, hydros),
        (Geometry::FILE, hydros),
        (EnergyProductivity::FILE, hydros),
    ];
    for (file, count) in things {
        if count > 0 && files.empty.contains(&file) {
            findings.wrong(
                &Place::file(file),
                "the table has no rows; give it some, or remove the file",
            );
        }
    }
}
