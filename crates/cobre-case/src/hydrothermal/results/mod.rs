//! Simulation tables: plants, buses, lines and costs of simulated paths.
//!
//! Money is that of the stage; `discount` turns it into money of the first one.

mod constraints;
mod costs;
mod energy;
mod equipment;
mod production;
mod water;

use cobre_sddp::{Column, ColumnId, Kind, Problem, Rows, Table, Tables, Visited, stage_columns};

use self::costs::{Cost, Costs};
use super::files::Files;
use super::files::equipment::ContractKind;
use super::model::Layout;
use super::number::Id;
use super::system::{ProductionFunction, System};

/// The data from which the tables of decisions are made.
#[derive(Debug)]
pub(crate) struct SimulationTables {
    stages: Vec<SimulatedStage>,
    hydros: Vec<SimulatedHydro>,
    thermals: Vec<Thing>,
    sources: Vec<Thing>,
    lines: Vec<SimulatedLine>,
    buses: Vec<Thing>,
    pumping: Vec<SimulatedPumping>,
    contracts: Vec<SimulatedContract>,
    batteries: Vec<SimulatedBattery>,
    constraints: Vec<SimulatedConstraint>,
    /// The number of thermal plants that are committed ahead.
    committed: usize,
}

#[derive(Debug)]
struct SimulatedStage {
    layout: Layout,
    /// The length of each block, h.
    hours: Vec<f64>,
    /// hm³ that 1 m³/s brings in the stage.
    volume: f64,
}

/// A thing of the case: its number and name there, and the number of its bus.
#[derive(Debug)]
struct Thing {
    id: Id,
    name: String,
    bus: Id,
}

#[derive(Debug)]
struct SimulatedHydro {
    thing: Thing,
    /// The exact production function, if hyperplanes stand for it in some stage and there is a level curve.
    exact: Option<ProductionFunction>,
    /// Groups of units that feed buses of their own.
    units: Vec<Thing>,
}

#[derive(Debug)]
struct SimulatedPumping {
    thing: Thing,
    /// MW/(m³/s).
    consumption: f64,
}

#[derive(Debug)]
struct SimulatedContract {
    thing: Thing,
    kind: ContractKind,
}

#[derive(Debug)]
struct SimulatedBattery {
    thing: Thing,
    charge_efficiency: f64,
    discharge_efficiency: f64,
}

#[derive(Debug)]
struct SimulatedConstraint {
    id: Id,
    name: String,
    constant: f64,
}

#[derive(Debug)]
struct SimulatedLine {
    /// Its bus is the one at its beginning.
    thing: Thing,
    to: Id,
    arrives: f64,
}

impl SimulationTables {
    /// Those of a system, given where things are in each stage.
    pub(crate) fn new(files: &Files, system: &System, layouts: Vec<Layout>) -> Self {
        let bus = |place: usize| files.buses.buses[place].id;
        let thing = |id: Id, name: &str, bus: Id| Thing {
            id,
            name: name.to_owned(),
            bus,
        };
        let stages = layouts.into_iter().zip(&system.stages);
        let stages = stages.map(|(layout, stage)| SimulatedStage {
            layout,
            hours: stage.hours.clone(),
            volume: stage.total_volume(),
        });
        let hydros = files.hydros.hydros.iter().zip(&system.hydros);
        let hydros = hydros.map(|(file, plant)| SimulatedHydro {
            thing: thing(file.id, &file.name, bus(plant.bus)),
            exact: {
                let mut functions = plant.production.stages.iter();
                let planes = functions.any(|own| !own.planes().is_empty());
                plant.production.exact.clone().filter(|_| planes)
            },
            units: file
                .groups()
                .iter()
                .map(|group| thing(group.id, &group.name, group.bus_id))
                .collect(),
        });
        let thermals = files.thermals.thermals.iter().zip(&system.thermals);
        let thermals = thermals.map(|(file, plant)| thing(file.id, &file.name, bus(plant.bus)));
        let sources = files.sources.iter();
        let sources = sources.flat_map(|file| &file.non_controllable_sources);
        let sources = sources.zip(&system.sources);
        let sources = sources.map(|(file, source)| thing(file.id, &file.name, bus(source.bus)));
        let lines = files.lines.lines.iter().zip(&system.lines);
        let lines = lines.map(|(file, line)| SimulatedLine {
            thing: thing(file.id, &file.name, bus(line.from)),
            to: bus(line.to),
            arrives: line.arrives,
        });
        let buses = files.buses.buses.iter();
        let buses = buses.map(|bus| thing(bus.id, &bus.name, bus.id));
        let pumping = files.pumping.iter().flat_map(|file| &file.pumping_stations);
        let pumping = pumping.zip(&system.pumping);
        let pumping = pumping.map(|(file, station)| SimulatedPumping {
            thing: thing(file.id, &file.name, file.bus_id),
            consumption: station.consumption,
        });
        let contracts = files.contracts.iter().flat_map(|file| &file.contracts);
        let contracts = contracts.map(|file| SimulatedContract {
            thing: thing(file.id, &file.name, file.bus_id),
            kind: file.r#type,
        });
        let batteries = files.batteries.iter().flat_map(|file| &file.batteries);
        let batteries = batteries.zip(&system.batteries);
        let batteries = batteries.map(|(file, battery)| SimulatedBattery {
            thing: thing(file.id, &file.name, file.bus_id),
            charge_efficiency: battery.charge_efficiency,
            discharge_efficiency: battery.discharge_efficiency,
        });
        let constraints = files.constraints.iter().flat_map(|file| &file.constraints);
        let constraints = constraints.zip(&system.constraints);
        let constraints = constraints.map(|(file, constraint)| SimulatedConstraint {
            id: file.id,
            name: file.name.clone(),
            constant: constraint.constant,
        });
        let committed = system.thermals.iter();
        let committed = committed.filter(|plant| plant.commitment.is_some());
        Self {
            stages: stages.collect(),
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

    /// The tables that this system has things for.
    fn writers(&self) -> impl Iterator<Item = &'static Writer> {
        WRITERS.iter().filter(|writer| (writer.things)(self) > 0)
    }
}

/// The description of one table.
struct Writer {
    /// The number of plants, buses or lines in it.
    things: fn(&SimulationTables) -> usize,
    table: fn() -> Table,
    /// Adds the rows of a stage.
    fill: fn(&mut Scene<'_>, &mut Rows),
}

/// All tables; that of costs comes last, as the others add them up.
const WRITERS: [Writer; 15] = [
    Writer {
        things: |results| results.hydros.len(),
        table: water::hydros,
        fill: water::fill_hydros,
    },
    Writer {
        things: |results| results.hydros.len(),
        table: water::blocks,
        fill: water::fill_blocks,
    },
    Writer {
        things: |results| {
            results
                .hydros
                .iter()
                .filter(|plant| plant.exact.is_some())
                .count()
        },
        table: production::table,
        fill: production::fill,
    },
    Writer {
        things: |results| results.thermals.len(),
        table: energy::thermals,
        fill: energy::fill_thermals,
    },
    Writer {
        things: |results| results.sources.len(),
        table: energy::sources,
        fill: energy::fill_sources,
    },
    Writer {
        things: |results| results.buses.len(),
        table: energy::buses,
        fill: energy::fill_buses,
    },
    Writer {
        things: |results| results.lines.len(),
        table: energy::lines,
        fill: energy::fill_lines,
    },
    Writer {
        things: |results| results.hydros.iter().map(|plant| plant.units.len()).sum(),
        table: equipment::units,
        fill: equipment::fill_units,
    },
    Writer {
        things: |results| results.committed,
        table: equipment::commitments,
        fill: equipment::fill_commitments,
    },
    Writer {
        things: |results| results.pumping.len(),
        table: equipment::pumping,
        fill: equipment::fill_pumping,
    },
    Writer {
        things: |results| results.contracts.len(),
        table: equipment::contracts,
        fill: equipment::fill_contracts,
    },
    Writer {
        things: |results| results.batteries.len(),
        table: equipment::batteries,
        fill: equipment::fill_batteries,
    },
    Writer {
        things: |results| results.batteries.len(),
        table: equipment::battery_blocks,
        fill: equipment::fill_battery_blocks,
    },
    Writer {
        things: |results| results.constraints.len(),
        table: constraints::table,
        fill: constraints::fill,
    },
    Writer {
        things: |_| 1,
        table: costs::table,
        fill: costs::fill,
    },
];

/// All tables that simulations of hydrothermal cases can have; a case without plants, lines or the like lacks theirs.
pub fn simulation_tables() -> Vec<Table> {
    WRITERS.iter().map(|writer| (writer.table)()).collect()
}

/// A stage of a path, with its costs so far.
struct Scene<'a> {
    results: &'a SimulationTables,
    stage: &'a SimulatedStage,
    visited: &'a Visited<'a>,
    costs: Costs,
}

impl Scene<'_> {
    /// The cost of a column; counts it as a cost of this kind.
    fn cost(&mut self, kind: Cost, column: ColumnId) -> f64 {
        // Nothing is plain zero, not one with a sign.
        let cost = 0.0 + self.visited.price(column) * self.visited.value(column);
        self.costs.add(kind, cost);
        cost
    }

    /// The value of the column of a block, if there is one; counts its cost.
    fn beyond(&mut self, kind: Cost, columns: &[ColumnId], block: usize) -> f64 {
        columns.get(block).map_or(0.0, |&column| {
            self.cost(kind, column);
            self.visited.value(column)
        })
    }
}

impl Tables for SimulationTables {
    fn tables(&self, _: &Problem) -> Vec<Table> {
        self.writers().map(|writer| (writer.table)()).collect()
    }

    fn fill(&self, visited: &Visited<'_>, rows: &mut [Rows]) {
        let mut scene = Scene {
            results: self,
            stage: &self.stages[visited.node],
            visited,
            costs: Costs::default(),
        };
        for (writer, rows) in self.writers().zip(rows) {
            (writer.fill)(&mut scene, rows);
        }
    }
}

/// The columns that say which block of which stage a row is about.
fn block_columns() -> Vec<Column> {
    let mut columns = stage_columns().to_vec();
    columns.push(Column::new(
        "block",
        Kind::Integer,
        "number of the block of the stage, from 1",
    ));
    columns.push(Column::number("hours", "h", "length of the block"));
    columns
}

/// The columns of a thing's number and name.
fn thing_columns(id: &'static str, name: &'static str, what: &str) -> [Column; 2] {
    [
        Column::new(
            id,
            Kind::Integer,
            format!("number of the {what} in the case"),
        ),
        Column::new(name, Kind::Text, format!("name of the {what}")),
    ]
}

/// The column of the number of a bus.
fn bus_column(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Kind::Integer, meaning)
}
