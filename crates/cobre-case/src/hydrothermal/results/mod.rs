//! Simulation tables: plants, buses, lines and costs of simulated paths.
//!
//! Money is that of the stage; `discount` turns it into money of the first one.

mod constraints;
mod costs;
mod energy;
mod equipment;
mod production;
mod water;

use cobre_results::layout::{
    self, CostKind, batteries, battery_blocks, buses, commitments, contracts, hydro_blocks,
    hydro_units, hydros, lines, pumping, sources, thermals,
};
use cobre_results::{Rows, TableSchema};
use cobre_sddp::{ColumnId, Problem, Tables, Visited};

use self::costs::Costs;
use super::date::Date;
use super::files::Files;
use super::files::equipment::ContractKind;
use super::model::Layout;
use super::number::Id;
use super::system::{Cycle, ProductionFunction, System};

/// The data from which the tables of decisions are made.
#[derive(Debug)]
pub(crate) struct SimulationTables {
    /// The cycle of a study without an end.
    cycle: Option<Cycle>,
    stages: Vec<SimulatedStage>,
    /// The place of the stage of each node.
    nodes: Vec<usize>,
    hydros: Vec<SimulatedHydro>,
    thermals: Vec<NamedEntity>,
    sources: Vec<NamedEntity>,
    lines: Vec<SimulatedLine>,
    buses: Vec<NamedEntity>,
    pumping: Vec<SimulatedPumping>,
    contracts: Vec<SimulatedContract>,
    batteries: Vec<SimulatedBattery>,
    constraints: Vec<SimulatedConstraint>,
    /// The number of thermal plants that are committed ahead.
    committed: usize,
}

#[derive(Debug)]
struct SimulatedStage {
    /// Its number in the case.
    id: Id,
    layout: Layout,
    /// The number of each block in the case.
    blocks: Vec<Id>,
    /// The length of each block, h.
    hours: Vec<f64>,
    /// hm³ that 1 m³/s brings in the stage.
    volume: f64,
}

/// An entity of the case: its number and name there, and the number of its bus.
#[derive(Debug)]
struct NamedEntity {
    id: Id,
    name: String,
    bus: Id,
}

#[derive(Debug)]
struct SimulatedHydro {
    entity: NamedEntity,
    /// The capacity of the reservoir by stage, hm³.
    capacity: Vec<f64>,
    /// The exact production function, if hyperplanes stand for it in some stage and there is a level curve.
    exact: Option<ProductionFunction>,
    /// Groups of units that feed buses of their own.
    units: Vec<NamedEntity>,
}

#[derive(Debug)]
struct SimulatedPumping {
    entity: NamedEntity,
    /// MW/(m³/s).
    consumption: f64,
}

#[derive(Debug)]
struct SimulatedContract {
    entity: NamedEntity,
    kind: ContractKind,
}

#[derive(Debug)]
struct SimulatedBattery {
    entity: NamedEntity,
    charge_efficiency: f64,
    discharge_efficiency: f64,
}

#[derive(Debug)]
struct SimulatedConstraint {
    id: Id,
    name: String,
}

#[derive(Debug)]
struct SimulatedLine {
    /// Its bus is the one at its beginning.
    entity: NamedEntity,
    to: Id,
    arrives: f64,
}

impl SimulationTables {
    /// Those of a system, given where entities are in each stage.
    pub(crate) fn new(files: &Files, system: &System, layouts: Vec<Layout>) -> Self {
        let bus = |place: usize| files.buses.buses[place].id;
        let entity = |id: Id, name: &str, bus: Id| NamedEntity {
            id,
            name: name.to_owned(),
            bus,
        };
        let stages = layouts.into_iter().zip(&system.stages);
        let stages = stages.zip(&files.stages.stages);
        let stages = stages.map(|((layout, stage), file)| SimulatedStage {
            id: file.id,
            layout,
            blocks: file.blocks.iter().map(|block| block.id).collect(),
            hours: stage.hours.clone(),
            volume: stage.total_volume(),
        });
        let hydros = files.hydros.hydros.iter().zip(&system.hydros);
        let hydros = hydros.map(|(file, plant)| SimulatedHydro {
            entity: entity(file.id, &file.name, bus(plant.bus)),
            capacity: plant
                .limits
                .iter()
                .map(|limits| limits.max_storage)
                .collect(),
            exact: {
                let mut functions = plant.production.stages.iter();
                let planes = functions.any(|own| !own.planes().is_empty());
                plant.production.exact.clone().filter(|_| planes)
            },
            units: file
                .groups()
                .iter()
                .map(|group| entity(group.id, &group.name, group.bus_id))
                .collect(),
        });
        let thermals = files.thermals.thermals.iter().zip(&system.thermals);
        let thermals = thermals.map(|(file, plant)| entity(file.id, &file.name, bus(plant.bus)));
        let sources = files.sources.iter();
        let sources = sources.flat_map(|file| &file.non_controllable_sources);
        let sources = sources.zip(&system.sources);
        let sources = sources.map(|(file, source)| entity(file.id, &file.name, bus(source.bus)));
        let lines = files.lines.lines.iter().zip(&system.lines);
        let lines = lines.map(|(file, line)| SimulatedLine {
            entity: entity(file.id, &file.name, bus(line.from)),
            to: bus(line.to),
            arrives: line.arrives,
        });
        let buses = files.buses.buses.iter();
        let buses = buses.map(|bus| entity(bus.id, &bus.name, bus.id));
        let pumping = files.pumping.iter().flat_map(|file| &file.pumping_stations);
        let pumping = pumping.zip(&system.pumping);
        let pumping = pumping.map(|(file, station)| SimulatedPumping {
            entity: entity(file.id, &file.name, file.bus_id),
            consumption: station.consumption,
        });
        let contracts = files.contracts.iter().flat_map(|file| &file.contracts);
        let contracts = contracts.map(|file| SimulatedContract {
            entity: entity(file.id, &file.name, file.bus_id),
            kind: file.r#type,
        });
        let batteries = files.batteries.iter().flat_map(|file| &file.batteries);
        let batteries = batteries.zip(&system.batteries);
        let batteries = batteries.map(|(file, battery)| SimulatedBattery {
            entity: entity(file.id, &file.name, file.bus_id),
            charge_efficiency: battery.charge_efficiency,
            discharge_efficiency: battery.discharge_efficiency,
        });
        let constraints = files.constraints.iter().flat_map(|file| &file.constraints);
        let constraints = constraints.map(|file| SimulatedConstraint {
            id: file.id,
            name: file.name.clone(),
        });
        let committed = system.thermals.iter();
        let committed = committed.filter(|plant| plant.commitment.is_some());
        Self {
            cycle: system.cycle,
            stages: stages.collect(),
            nodes: system.nodes.iter().map(|node| node.stage).collect(),
            hydros: hydros.collect(),
            thermals: thermals.collect(),
            sources: sources.collect(),
            lines: lines.collect(),
            buses: buses.collect(),
            pumping: pumping.collect(),
            contracts: contracts.collect(),
            batteries: batteries.collect(),
            constraints: constraints.collect(),
            committed: committed.count(),
        }
    }

    /// The tables that this system has entities for.
    fn writers(&self) -> impl Iterator<Item = &'static Writer> {
        WRITERS.iter().filter(|writer| (writer.entities)(self) > 0)
    }
}

/// The description of one table.
struct Writer {
    /// The number of plants, buses or lines in it.
    entities: fn(&SimulationTables) -> usize,
    schema: fn() -> TableSchema,
    /// Adds the rows of a stage.
    fill: fn(&mut PathStage<'_>, &mut Rows),
}

impl Writer {
    const fn new(
        entities: fn(&SimulationTables) -> usize,
        schema: fn() -> TableSchema,
        fill: fn(&mut PathStage<'_>, &mut Rows),
    ) -> Self {
        Self {
            entities,
            schema,
            fill,
        }
    }
}

/// All tables; that of costs comes last, as the others add them up.
const WRITERS: [Writer; 15] = [
    Writer::new(|all| all.hydros.len(), hydros::schema, water::fill_hydros),
    Writer::new(
        |all| all.hydros.len(),
        hydro_blocks::schema,
        water::fill_blocks,
    ),
    Writer::new(
        |all| all.hydros.iter().filter(|one| one.exact.is_some()).count(),
        layout::production::schema,
        production::fill,
    ),
    Writer::new(
        |all| all.thermals.len(),
        thermals::schema,
        energy::fill_thermals,
    ),
    Writer::new(
        |all| all.sources.len(),
        sources::schema,
        energy::fill_sources,
    ),
    Writer::new(|all| all.buses.len(), buses::schema, energy::fill_buses),
    Writer::new(|all| all.lines.len(), lines::schema, energy::fill_lines),
    Writer::new(
        |all| all.hydros.iter().map(|plant| plant.units.len()).sum(),
        hydro_units::schema,
        equipment::fill_units,
    ),
    Writer::new(
        |all| all.committed,
        commitments::schema,
        equipment::fill_commitments,
    ),
    Writer::new(
        |all| all.pumping.len(),
        pumping::schema,
        equipment::fill_pumping,
    ),
    Writer::new(
        |all| all.contracts.len(),
        contracts::schema,
        equipment::fill_contracts,
    ),
    Writer::new(
        |all| all.batteries.len(),
        batteries::schema,
        equipment::fill_batteries,
    ),
    Writer::new(
        |all| all.batteries.len(),
        battery_blocks::schema,
        equipment::fill_battery_blocks,
    ),
    Writer::new(
        |all| all.constraints.len(),
        layout::constraints::schema,
        constraints::fill,
    ),
    Writer::new(|_| 1, layout::costs::schema, costs::fill),
];

/// All tables that simulations of hydrothermal cases can have; a case without plants, lines or the like lacks theirs.
pub fn simulation_tables() -> Vec<TableSchema> {
    WRITERS.iter().map(|writer| (writer.schema)()).collect()
}

/// A stage of a path, with its costs so far.
struct PathStage<'a> {
    results: &'a SimulationTables,
    stage: &'a SimulatedStage,
    visited: &'a Visited<'a>,
    costs: Costs,
}

impl PathStage<'_> {
    /// The cost of a column; counts it as a cost of this kind.
    fn cost(&mut self, kind: CostKind, column: ColumnId) -> f64 {
        // Nothing is plain zero, not one with a sign.
        let cost = 0.0 + self.visited.price(column) * self.visited.value(column);
        self.costs.add(kind, cost);
        cost
    }

    /// The value of the column of a block, if there is one; counts its cost.
    fn beyond(&mut self, kind: CostKind, columns: &[ColumnId], block: usize) -> f64 {
        columns.get(block).map_or(0.0, |&column| {
            self.cost(kind, column);
            self.visited.value(column)
        })
    }
}

impl Tables for SimulationTables {
    fn start_date(&self, problem: &Problem, node: usize, before: &str) -> String {
        let own = &problem.nodes[node].start_date;
        let dates = Date::parse(own).zip(Date::parse(before));
        match self.cycle.zip(dates) {
            Some((cycle, (date, before))) => cycle.later(date, before).to_string(),
            None => own.clone(),
        }
    }

    fn tables(&self, _: &Problem) -> Vec<TableSchema> {
        self.writers().map(|writer| (writer.schema)()).collect()
    }

    fn fill(&self, visited: &Visited<'_>, rows: &mut [Rows]) {
        let mut path_stage = PathStage {
            results: self,
            stage: &self.stages[self.nodes[visited.node]],
            visited,
            costs: Costs::default(),
        };
        for (writer, rows) in self.writers().zip(rows) {
            (writer.fill)(&mut path_stage, rows);
        }
    }
}
