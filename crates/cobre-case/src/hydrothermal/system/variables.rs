//! Variables of generic constraints: their names, and the things that have them.

use super::System;
use super::expression::{WrittenThing, WrittenVariable};
use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::ContractKind;

/// A variable of a term: its kind, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThingVariable {
    pub(crate) variable: Variable,
    /// The place of the plant, line or other thing.
    pub(crate) thing: usize,
    /// The block it is about; that of the row if none.
    pub(crate) block: Option<usize>,
    /// The bus whose groups of units it is about; all of the plant if none.
    pub(crate) bus: Option<usize>,
    /// True if it counts against its direction, as the exchange of a line that is named from its end.
    pub(crate) reversed: bool,
}

/// Rule of the blocks of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockRule {
    /// One value in a stage.
    Whole,
    /// One value in each block.
    Each,
    /// One value in a stage, and one in each period of it.
    Period,
}

/// Declares the variables of expressions: what they are called, what kind of thing has them, and their blocks.
macro_rules! variables {
    ($( $variable:ident = $name:literal of $things:ident, $blocks:ident; )+) => {
        /// A variable of an expression.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Variable { $( $variable, )+ }

        impl Variable {
            const ALL: &'static [(&'static str, Self)] = &[ $( ($name, Self::$variable), )+ ];

            /// The things that have it.
            fn things(self, system: &System) -> &Index {
                match self { $( Self::$variable => &system.indices.$things, )+ }
            }

            fn blocks(self) -> BlockRule {
                match self { $( Self::$variable => BlockRule::$blocks, )+ }
            }
        }
    };
}

variables! {
    HydroStorage = "hydro_storage" of hydros, Whole;
    HydroStorageInitial = "hydro_storage_initial" of hydros, Period;
    HydroStorageFinal = "hydro_storage_final" of hydros, Period;
    HydroUsefulInitial = "hydro_useful_volume_initial" of hydros, Period;
    HydroUsefulFinal = "hydro_useful_volume_final" of hydros, Period;
    HydroEvaporation = "hydro_evaporation" of hydros, Period;
    HydroWithdrawal = "hydro_withdrawal" of hydros, Whole;
    HydroTurbined = "hydro_turbined" of hydros, Each;
    HydroSpillage = "hydro_spillage" of hydros, Each;
    HydroDiversion = "hydro_diversion" of hydros, Each;
    HydroOutflow = "hydro_outflow" of hydros, Each;
    HydroGeneration = "hydro_generation" of hydros, Each;
    ThermalGeneration = "thermal_generation" of thermals, Each;
    AnticipatedDecision = "anticipated_decision" of thermals, Whole;
    LineDirect = "line_direct" of lines, Each;
    LineReverse = "line_reverse" of lines, Each;
    LineExchange = "line_exchange" of lines, Each;
    BusDeficit = "bus_deficit" of buses, Each;
    BusExcess = "bus_excess" of buses, Each;
    PumpingFlow = "pumping_flow" of pumping, Each;
    PumpingPower = "pumping_power" of pumping, Each;
    ContractImport = "contract_import" of contracts, Each;
    ContractExport = "contract_export" of contracts, Each;
    SourceGeneration = "non_controllable_generation" of sources, Each;
    SourceCurtailment = "non_controllable_curtailment" of sources, Each;
    BatteryLevel = "battery_level" of batteries, Whole;
    BatteryCharge = "battery_charge" of batteries, Each;
    BatteryDischarge = "battery_discharge" of batteries, Each;
}

impl Variable {
    /// True if it has one value in each block, so that a term without a block is about that of the row.
    pub(crate) fn is_of_block(self) -> bool {
        self.blocks() == BlockRule::Each
    }

    /// True if it is about storage.
    pub(crate) fn is_storage(self) -> bool {
        matches!(
            self,
            Self::HydroStorage
                | Self::HydroStorageInitial
                | Self::HydroStorageFinal
                | Self::HydroUsefulInitial
                | Self::HydroUsefulFinal
        )
    }
}

/// A variable as it is written, for messages.
pub(super) fn shown(written: &WrittenVariable<'_>) -> String {
    let of = match written.of {
        WrittenThing::Numbered(id) => id.to_string(),
        WrittenThing::Between(source, target) => {
            format!("source_bus={source}, target_bus={target}")
        }
    };
    let block = written.block.map(|block| format!(", {block}"));
    let bus = written.bus.map(|bus| format!(", bus={bus}"));
    format!(
        "{}({of}{}{})",
        written.name,
        block.unwrap_or_default(),
        bus.unwrap_or_default()
    )
}

/// The variable that is written; says if it is not there.
pub(super) fn find(
    written: &WrittenVariable<'_>,
    (files, system): (&Files, &System),
    at: &Place,
    findings: &mut Findings,
) -> Option<ThingVariable> {
    let known = Variable::ALL.iter();
    let Some(&(name, variable)) = known.clone().find(|(name, _)| *name == written.name) else {
        let names: Vec<&str> = known.map(|(name, _)| *name).collect();
        let message = format!(
            "there is no variable {}; there are {}",
            written.name,
            names.join(", ")
        );
        findings.wrong(at, message);
        return None;
    };
    let (thing, reversed) = match written.of {
        WrittenThing::Numbered(id) => (variable.things(system).find(id, at, findings)?, false),
        WrittenThing::Between(..) if variable != Variable::LineExchange => {
            let message = format!("{name} is of one thing: give its number");
            findings.wrong(at, message);
            return None;
        }
        WrittenThing::Between(source, target) => line(source, target, system, at, findings)?,
    };
    if variable.blocks() == BlockRule::Whole && written.block.is_some() {
        let message = format!("{name} is one value of a stage: leave the block out");
        findings.wrong(at, message);
        return None;
    }
    if let Some(problem) = problem(written, variable, thing, (files, system)) {
        findings.wrong(at, format!("{}: {problem}", shown(written)));
        return None;
    }
    let bus = match written.bus {
        Some(id) => Some(system.indices.buses.find(id, at, findings)?),
        None => None,
    };
    Some(ThingVariable {
        variable,
        thing,
        // One that is below zero is in no stage, which is said where the constraint holds.
        block: written
            .block
            .map(|id| usize::try_from(id).unwrap_or(usize::MAX)),
        bus,
        reversed,
    })
}

/// The one line between two buses, and whether it is named from its end.
fn line(
    source: i32,
    target: i32,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> Option<(usize, bool)> {
    let from = system.indices.buses.find(source, at, findings)?;
    let to = system.indices.buses.find(target, at, findings)?;
    let lines = system.lines.iter().enumerate();
    let mut between = lines.filter_map(|(place, line)| match (line.from, line.to) {
        ends if ends == (from, to) => Some((place, false)),
        ends if ends == (to, from) => Some((place, true)),
        _ => None,
    });
    let found = between.next();
    let count = usize::from(found.is_some()) + between.count();
    if count != 1 {
        let message =
            format!("{count} lines join buses {source} and {target}: give the number of a line");
        findings.wrong(at, message);
        return None;
    }
    found
}

/// Says what keeps a thing from having a variable.
fn problem(
    written: &WrittenVariable<'_>,
    variable: Variable,
    thing: usize,
    (files, system): (&Files, &System),
) -> Option<String> {
    let asked = match variable {
        Variable::ContractImport => Some(ContractKind::Import),
        Variable::ContractExport => Some(ContractKind::Export),
        _ => None,
    };
    if asked.is_some_and(|asked| system.contracts[thing].kind != asked) {
        return Some("the contract is of the other type".to_owned());
    }
    if variable == Variable::AnticipatedDecision && system.thermals[thing].commitment.is_none() {
        return Some("the plant has no anticipated_config: it decides nothing ahead".to_owned());
    }
    let bus = written.bus?;
    if !matches!(
        variable,
        Variable::HydroTurbined | Variable::HydroGeneration
    ) {
        return Some("only hydro_turbined and hydro_generation have a bus".to_owned());
    }
    let plant = &files.hydros.hydros[thing];
    let mut groups = plant.groups().iter();
    let feeds = plant.bus_id == Some(bus) || groups.any(|group| group.bus_id == bus);
    (!feeds).then(|| format!("no unit of the plant feeds bus {bus}"))
}
