//! Suspicious pumping stations, contracts, batteries, thermal plants and generic constraints.

use crate::finding::{Findings, Place};
use crate::hydrothermal::files::equipment::{self, ContractKind};
use crate::hydrothermal::files::{Files, generic, system as names};
use crate::hydrothermal::number::Id;
use crate::hydrothermal::system::{Production, Pumping, System};

/// Power of imports and batteries in a block, MW.
pub(super) fn capacity(system: &System, stage: usize, block: usize) -> f64 {
    let contracts = system.contracts.iter();
    let imports = contracts.filter(|contract| contract.kind == ContractKind::Import);
    let imports = imports.map(|contract| contract.terms[stage][block].max);
    let batteries = system.batteries.iter();
    let batteries = batteries.map(|battery| battery.limits[stage][block][1]);
    imports.chain(batteries).sum()
}

/// Says what looks wrong with equipment and constraints.
pub(super) fn find(files: &Files, system: &System, findings: &mut Findings) {
    pumping(files, system, findings);
    contracts(files, system, findings);
    batteries(files, system, findings);
    thermals(files, system, findings);
    constraints(files, system, findings);
    units(files, system, findings);
}

fn thing(file: &str, what: &str, id: Id, name: &str) -> Place {
    Place::file(file).rows(format!("{what} {id} ({name})"))
}

/// Water that gives more energy on its way back than lifting it takes.
fn pumping(files: &Files, system: &System, findings: &mut Findings) {
    let file = files.pumping.iter().flat_map(|file| &file.pumping_stations);
    for (station, file) in system.pumping.iter().zip(file) {
        let at = thing(equipment::PUMPING, "pumping station", file.id, &file.name);
        let gained = way_back(system, station);
        if gained.is_some_and(|gained| gained > station.consumption) {
            let message = format!(
                "lifting water takes {} MW/(m³/s), and on its way back it gives {}: it gains energy",
                station.consumption,
                gained.unwrap_or(0.0)
            );
            findings.doubtful(&at, message);
        }
        let flows = station.limits.iter().flatten();
        if flows.clone().all(|limits| limits[1] == 0.0) {
            findings.doubtful(&at, "it can pump in no stage");
        }
    }
}

/// The productivity of all plants from the destination of a station down to its source, which excluded; none if
/// water does not come back.
fn way_back(system: &System, station: &Pumping) -> Option<f64> {
    let below = |place: &usize| system.hydros[*place].downstream;
    let way = std::iter::successors(Some(station.destination), below);
    let mut sum = 0.0;
    for place in way {
        if place == station.source {
            return Some(sum);
        }
        let functions = system.hydros[place].production.stages.iter();
        let most = functions.map(Production::per_flow);
        sum += most.fold(0.0, f64::max);
    }
    None
}

/// Contracts that pay for importing or cost for exporting, and pairs that make money of nothing.
fn contracts(files: &Files, system: &System, findings: &mut Findings) {
    let file = files.contracts.iter().flat_map(|file| &file.contracts);
    let named: Vec<_> = system.contracts.iter().zip(file).collect();
    for (contract, file) in &named {
        let at = thing(equipment::CONTRACTS, "contract", file.id, &file.name);
        let mut terms = contract.terms.iter().flatten();
        if terms.clone().all(|terms| terms.max == 0.0) {
            findings.doubtful(&at, "it has power in no stage");
        }
        let message = match contract.kind {
            ContractKind::Import if terms.any(|terms| terms.price < 0.0) => {
                "its price is below 0: importing is paid for"
            }
            ContractKind::Export if terms.any(|terms| terms.price > 0.0) => {
                "its price is above 0, so exporting costs: revenue is a price below 0"
            }
            _ => continue,
        };
        findings.doubtful(&at, message);
    }
    for (import, file) in &named {
        for (export, other) in &named {
            let kinds = (import.kind, export.kind);
            if kinds != (ContractKind::Import, ContractKind::Export) || import.bus != export.bus {
                continue;
            }
            let pairs = import.terms.iter().flatten();
            let mut pairs = pairs.zip(export.terms.iter().flatten());
            if pairs.any(|(bought, sold)| {
                bought.price + sold.price < 0.0 && bought.max > 0.0 && sold.max > 0.0
            }) {
                let at = thing(equipment::CONTRACTS, "contract", file.id, &file.name);
                let message = format!(
                    "its energy can be sold by contract {} for more than it costs",
                    other.id
                );
                findings.doubtful(&at, message);
            }
        }
    }
}

fn batteries(files: &Files, system: &System, findings: &mut Findings) {
    let file = files.batteries.iter().flat_map(|file| &file.batteries);
    for (battery, file) in system.batteries.iter().zip(file) {
        let at = thing(equipment::BATTERIES, "battery", file.id, &file.name);
        let lossless = battery.charge_efficiency * battery.discharge_efficiency == 1.0;
        if lossless && battery.self_discharge == 0.0 {
            let message = "nothing is lost in it: charge_efficiency and discharge_efficiency are 1";
            findings.doubtful(&at, message);
        }
        let limits = battery.limits.iter().flatten();
        let [charge, discharge] = limits.fold([0.0_f64; 2], |most, limits| {
            [most[0].max(limits[0]), most[1].max(limits[1])]
        });
        if charge == 0.0 || discharge == 0.0 || battery.capacity == 0.0 {
            let message = "it can never be charged and discharged: see capacity_mwh, max_charge_mw, \
                           max_discharge_mw and its stages";
            findings.doubtful(&at, message);
        } else if battery.capacity < 0.1 * discharge {
            let message = format!(
                "it is empty after {:.1} minutes of {discharge} MW; is capacity_mwh in MWh?",
                60.0 * battery.capacity / discharge
            );
            findings.doubtful(&at, message);
        }
        let hours = system.stages.first().map_or(0.0, super::Stage::total_hours);
        if battery.self_discharge > 0.0 && battery.retained(hours) < 1e-3 {
            let message = format!(
                "less than a thousandth of its energy is left after the {hours} hours of a stage: \
                 self_discharge_per_hour is {}",
                battery.self_discharge
            );
            findings.doubtful(&at, message);
        }
    }
}

/// Segments that no plant reaches.
fn thermals(files: &Files, system: &System, findings: &mut Findings) {
    for (plant, file) in system.thermals.iter().zip(&files.thermals.thermals) {
        let at = thing(names::THERMALS, "thermal plant", file.id, &file.name);
        let limits = plant.limits.iter().flatten();
        let most = limits.map(|limits| limits.max).fold(0.0, f64::max);
        let segments = file.cost_segments.iter().flatten();
        let sizes: Vec<f64> = segments.map(|segment| segment.capacity_mw.0).collect();
        let whole: f64 = sizes.iter().sum();
        if !sizes.is_empty() && whole < most * (1.0 - 1e-9) {
            let message = format!(
                "its cost_segments have {whole} MW, its generation up to {most} MW: the last one goes on"
            );
            findings.doubtful(&at, message);
        }
    }
}

/// Constraints that hold in no stage, and terms that are always zero.
fn constraints(files: &Files, system: &System, findings: &mut Findings) {
    let file = files.constraints.iter().flat_map(|file| &file.constraints);
    for (constraint, file) in system.constraints.iter().zip(file) {
        let at = thing(generic::FILE, "generic constraint", file.id, &file.name);
        if constraint.bounds.iter().all(Vec::is_empty) {
            let message =
                "it holds in no stage: generic_constraint_bounds.parquet has no row of it";
            findings.doubtful(&at, message);
        }
        for term in &constraint.terms {
            let hydro = || &system.hydros[term.of.thing];
            if term.factor.number == 0.0 {
                findings.doubtful(&at, "a term has the factor 0");
            } else if term.of.variable.is_storage() && !hydro().stores() {
                let message = format!("plant {} stores no water: its term is 0", hydro().label);
                findings.doubtful(&at, message);
            }
        }
    }
}

/// Units that are smaller than their plant.
fn units(files: &Files, system: &System, findings: &mut Findings) {
    for (plant, file) in system.hydros.iter().zip(&files.hydros.hydros) {
        let Some(stage) = plant
            .block_limits
            .first()
            .filter(|_| !plant.units.is_empty())
        else {
            continue;
        };
        let units = plant
            .units
            .iter()
            .map(|unit| unit.limits[0][0].max_turbined);
        let (units, most) = (units.sum::<f64>(), stage[0].max_turbined);
        if units < most * (1.0 - 1e-9) {
            let at = thing(names::HYDROS, "hydro plant", file.id, &file.name);
            let message = format!(
                "its unit_groups turbine {units} m³/s together, less than max_turbined_m3s, {most}"
            );
            findings.doubtful(&at, message);
        }
    }
}
