//! The system that the files describe: everything found, everything checked, nothing left to look
//! up.

mod batteries;
mod bounds;
mod buses;
mod commitment;
mod contracts;
mod conversion;
mod cycle;
mod evaporation;
mod expression;
mod fit;
mod generic;
mod geometry;
mod hull;
mod hydros;
mod index;
mod inflow;
mod inflow_lags;
mod lines;
mod markov;
mod named_expressions;
mod nodes;
mod parameters;
mod phases;
mod plant_inflow;
mod production;
mod pumping;
mod recent;
mod regimes;
mod seasons;
mod sources;
mod tailrace;
mod thermals;
mod time;
mod travel;
mod units;
mod variables;
mod window;

pub(crate) use batteries::Battery;
pub(crate) use buses::{Bus, Spread};
pub(crate) use commitment::{Commitment, mean_limits};
pub(crate) use contracts::ResolvedContract;
pub(crate) use conversion::EnergyConversion;
pub(crate) use cycle::Cycle;
pub(crate) use fit::lowest;
pub(crate) use generic::{ActiveBound, PlannerConstraint};
pub(crate) use geometry::ProductionFunction;
pub(crate) use hydros::{Hydro, HydroCosts, HydroLimits};
pub(crate) use index::Index;
pub(crate) use inflow::{CarriedInflow, InflowModel};
pub(crate) use inflow_lags::SeasonTimeline;
pub(crate) use lines::{Line, capacities};
pub(crate) use nodes::RegimeNode;
pub(crate) use parameters::Parameter;
pub(crate) use phases::HydroPhase;
pub(crate) use production::{PlantFit, Production};
pub(crate) use pumping::Pumping;
pub(crate) use seasons::Period;
pub(crate) use sources::{Source, SourceBlock};
pub(crate) use thermals::Thermal;
pub(crate) use time::Stage;
pub(crate) use units::UnitGroup;
pub(crate) use variables::{ThingVariable, Variable};

use self::inflow::InflowSources;
use super::estimation::{History, InflowTables};
use super::files::Files;
use super::files::config::NonNegativity;
use super::files::constraints::{HydroBounds, LineBounds, ThermalBounds};
use super::files::equipment::SourceBounds;
use super::files::inflow::{AnnualComponent, InflowHistory, NoiseOpenings};
use super::files::penalty_overrides::{
    BusOverrides, HydroOverrides, LineOverrides, SourceOverrides,
};
use super::files::production::{EnergyProductivity, Geometry, Hyperplanes};
use super::files::scenarios::{
    ArCoefficients, Correlation, InflowRegimes, InflowStats, LoadStats, SourceStats,
};
use super::files::system as names;
use super::table::Row;
use super::terminal::NodeTerminal;
use crate::finding::{Findings, Place};

/// A hydrothermal system over time.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) stages: Vec<Stage>,
    /// The nodes of the policy graph, in the order of stages.
    pub(crate) nodes: Vec<RegimeNode>,
    pub(crate) buses: Vec<Bus>,
    pub(crate) lines: Vec<Line>,
    pub(crate) thermals: Vec<Thermal>,
    pub(crate) hydros: Vec<Hydro>,
    pub(crate) sources: Vec<Source>,
    pub(crate) pumping: Vec<Pumping>,
    pub(crate) contracts: Vec<ResolvedContract>,
    pub(crate) batteries: Vec<Battery>,
    pub(crate) constraints: Vec<PlannerConstraint>,
    /// Numbers that the constraints refer to.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) non_negativity: NonNegativity,
    /// The values after the last stage.
    pub(crate) terminal: Vec<NodeTerminal>,
    pub(crate) indices: Indices,
    /// The seasons of stages, where the case defines any.
    pub(crate) timeline: Option<SeasonTimeline>,
    pub(crate) history: History,
    /// The correlation of inflows, where it is estimated.
    pub(crate) correlation: Option<Correlation>,
    /// The cycle of a study without an end.
    pub(crate) cycle: Option<Cycle>,
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
        let (nodes, rates) = nodes::resolve(&files.stages, findings);
        let (stages, stage_index) = time::resolve(files, &rates, findings);
        let named = files.buses.buses.iter();
        let named = named.map(|bus| (bus.id, bus.name.as_str()));
        let list = Place::file(names::BUSES).key("buses");
        let bus_index = Index::new("bus", named, &list, findings);
        let named = files.hydros.hydros.iter();
        let named = named.map(|plant| (plant.id, plant.name.as_str()));
        let list = Place::file(names::HYDROS).key("hydros");
        let hydro_index = Index::new("hydro plant", named, &list, findings);
        let timeline = SeasonTimeline::resolve(&files.stages, findings);
        let timeline = timeline.filter(|timeline| !timeline.stages.is_empty());
        let history = History::resolve(files, &hydro_index, timeline.as_ref(), findings);
        let tables = InflowTables::resolve(files, &history, timeline.as_ref(), findings);
        let from = InflowSources {
            tables: &tables,
            history: &history,
            timeline: timeline.as_ref(),
        };
        let mut inflows =
            inflow::resolve(files, &from, &hydro_index, &stages, &stage_index, findings);
        let indices = (&hydro_index, &stage_index);
        regimes::resolve(files, indices, &nodes, &mut inflows, findings);
        let correlation = tables.correlation;
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
            nodes,
            buses,
            lines,
            thermals,
            hydros,
            sources,
            pumping,
            contracts,
            batteries,
            constraints: Vec::new(),
            parameters: Vec::new(),
            terminal: Vec::new(),
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
            timeline,
            history,
            correlation,
            cycle: Cycle::resolve(files),
        };
        if system.non_negativity == NonNegativity::BoundedNoise {
            let models = system.hydros.iter_mut();
            let models = models.flat_map(|plant| plant.inflow.all_models());
            models.for_each(InflowModel::bound_noise);
        }
        (system.constraints, system.parameters) = generic::resolve(files, &system, findings);
        system.check_states(findings);
        cycle::check(&system, files, findings);
        system
    }

    /// True if inflows differ by regime.
    pub(crate) fn has_regimes(&self) -> bool {
        let mut plants = self.hydros.iter();
        plants.any(|plant| !plant.inflow.regimes.is_empty())
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
        (InflowRegimes::FILE, hydros),
        (ArCoefficients::FILE, hydros),
        (AnnualComponent::FILE, hydros),
        (InflowHistory::FILE, hydros),
        (
            NoiseOpenings::FILE,
            hydros + files.buses.buses.len() + sources,
        ),
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
