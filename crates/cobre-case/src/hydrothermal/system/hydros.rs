//! Hydro plants: what they can do, and what water follows from what.

use super::bounds::{apply, everywhere};
use super::evaporation::{self, Evaporation};
use super::geometry::Reservoir;
use super::index::{Index, by_stage};
use super::inflow::Inflow;
use super::phases::{self, HydroPhase};
use super::production::{PlantProduction, Production};
use super::time::Stage;
use super::travel::{self, Travel};
use super::units::{self, UnitGroup};
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::constraints::HydroBounds;
use crate::hydrothermal::files::inflow::InflowHistory;
use crate::hydrothermal::files::penalties::HydroPenalties;
use crate::hydrothermal::files::penalty_overrides::HydroOverrides;
use crate::hydrothermal::files::scenarios::InflowStats;
use crate::hydrothermal::files::{config, initial, system};
use crate::hydrothermal::number::{NonNegative, Positive};
use crate::hydrothermal::table::Row;

/// The cost of added water where no file gives one, $/(m³/s·h).
const INFLOW_PENALTY: f64 = 1000.0;

/// A hydro plant.
#[derive(Debug)]
pub(crate) struct Hydro {
    pub(crate) label: String,
    pub(crate) bus: usize,
    pub(crate) downstream: Option<usize>,
    /// The least and the most storage of the plant as such, hm³; those of stages may differ.
    pub(crate) reservoir: (f64, f64),
    pub(crate) production: PlantProduction,
    /// By stage.
    pub(crate) costs: Vec<HydroCosts>,
    /// By stage.
    pub(crate) limits: Vec<HydroLimits>,
    /// By stage and block; storage is that of the stage.
    pub(crate) block_limits: Vec<Vec<HydroLimits>>,
    /// Groups of units with buses of their own; empty if all feed `bus`.
    pub(crate) units: Vec<UnitGroup>,
    /// hm³.
    pub(crate) initial_storage: f64,
    pub(crate) inflow: Inflow,
    /// By stage.
    pub(crate) phases: Vec<HydroPhase>,
    /// By stage, if it evaporates.
    pub(crate) evaporation: Option<Vec<Evaporation>>,
    /// The plant that its diverted water flows to.
    pub(crate) diverts_to: Option<usize>,
    /// The way of its releases, if it takes time.
    pub(crate) travel: Option<Travel>,
}

impl Hydro {
    /// The production function of a stage.
    pub(crate) fn production(&self, stage: usize) -> &Production {
        &self.production.stages[stage]
    }

    /// The costs of a stage.
    pub(crate) fn costs(&self, stage: usize) -> &HydroCosts {
        &self.costs[stage]
    }

    /// The most generation of a stage, MW.
    pub(crate) fn capacity(&self, stage: usize) -> f64 {
        let limits = &self.limits[stage];
        if self.phases[stage] != HydroPhase::Operating {
            return 0.0;
        }
        match self.production(stage) {
            Production::Constant(productivity) => limits
                .max_generation
                .min(limits.max_turbined * productivity),
            Production::Planes(planes) => {
                let lowest = super::fit::lowest(planes, limits.max_storage, limits.max_turbined);
                limits.max_generation.min(lowest.max(0.0))
            }
        }
    }

    /// True if it can store water.
    pub(crate) fn stores(&self) -> bool {
        self.initial_storage > 0.0 || self.limits.iter().any(|limits| limits.max_storage > 0.0)
    }

    /// True if a limit is set in any block of any stage.
    pub(crate) fn any_limit(&self, is_set: impl Fn(&HydroLimits) -> bool) -> bool {
        self.block_limits.iter().flatten().any(is_set)
    }
}

/// Costs of a plant's violations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HydroCosts {
    /// $/(m³/s·h).
    pub(crate) spillage: f64,
    /// $/hm³.
    pub(crate) storage_below: f64,
    /// $/(m³/s·h).
    pub(crate) turbined_below: f64,
    /// $/(m³/s·h).
    pub(crate) outflow_below: f64,
    /// $/(m³/s·h).
    pub(crate) outflow_above: f64,
    /// $/MWh.
    pub(crate) generation_below: f64,
    /// $/(m³/s·h).
    pub(crate) added_water: f64,
    /// Of stages with hyperplanes, and of those with constant productivity, $/(m³/s·h).
    pub(crate) turbined: f64,
    pub(crate) turbined_constant: f64,
    /// $/(m³/s·h).
    pub(crate) diversion: f64,
    /// $/hm³.
    pub(crate) filling_below: f64,
    /// $/(m³/s·h).
    pub(crate) evaporation_below: f64,
    /// $/(m³/s·h).
    pub(crate) evaporation_above: f64,
    /// $/(m³/s·h).
    pub(crate) withdrawal_below: f64,
    /// $/(m³/s·h).
    pub(crate) withdrawal_above: f64,
}

impl HydroCosts {
    /// These with what a row gives in place of them.
    fn changed(self, row: &HydroOverrides) -> Self {
        let or = |value: Option<Positive>, old: f64| value.map_or(old, |value| value.0);
        Self {
            spillage: or(row.spillage_cost, self.spillage),
            storage_below: or(row.storage_violation_below_cost, self.storage_below),
            turbined_below: or(row.turbined_violation_below_cost, self.turbined_below),
            outflow_below: or(row.outflow_violation_below_cost, self.outflow_below),
            outflow_above: or(row.outflow_violation_above_cost, self.outflow_above),
            generation_below: or(row.generation_violation_below_cost, self.generation_below),
            added_water: or(row.inflow_nonnegativity_cost, self.added_water),
            turbined: or(row.turbined_cost.or(row.fpha_turbined_cost), self.turbined),
            turbined_constant: or(row.turbined_cost, self.turbined_constant),
            diversion: or(row.diversion_cost, self.diversion),
            filling_below: or(row.filling_target_violation_cost, self.filling_below),
            evaporation_below: or(
                row.evaporation_violation_neg_cost
                    .or(row.evaporation_violation_cost),
                self.evaporation_below,
            ),
            evaporation_above: or(
                row.evaporation_violation_pos_cost
                    .or(row.evaporation_violation_cost),
                self.evaporation_above,
            ),
            withdrawal_below: or(
                row.water_withdrawal_violation_neg_cost
                    .or(row.water_withdrawal_violation_cost),
                self.withdrawal_below,
            ),
            withdrawal_above: or(
                row.water_withdrawal_violation_pos_cost
                    .or(row.water_withdrawal_violation_cost),
                self.withdrawal_above,
            ),
        }
    }
}

/// Limits of a plant in a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HydroLimits {
    /// hm³.
    pub(crate) min_storage: f64,
    /// hm³.
    pub(crate) max_storage: f64,
    /// m³/s.
    pub(crate) min_outflow: f64,
    /// m³/s; may be infinite.
    pub(crate) max_outflow: f64,
    /// m³/s.
    pub(crate) min_turbined: f64,
    /// m³/s.
    pub(crate) max_turbined: f64,
    /// MW.
    pub(crate) min_generation: f64,
    /// MW.
    pub(crate) max_generation: f64,
    /// m³/s.
    pub(crate) max_diversion: f64,
    /// m³/s.
    pub(crate) min_diversion: f64,
    /// m³/s.
    pub(crate) min_spillage: f64,
    /// m³/s; may be infinite.
    pub(crate) max_spillage: f64,
    /// m³/s; below zero if water is returned.
    pub(crate) withdrawal: f64,
}

impl HydroLimits {
    fn new(plant: &system::Hydro) -> Self {
        let generation = &plant.generation;
        Self {
            min_storage: plant.reservoir.min_storage_hm3.0,
            max_storage: plant.reservoir.max_storage_hm3.0,
            min_outflow: plant.outflow.min_outflow_m3s.0,
            max_outflow: plant
                .outflow
                .max_outflow_m3s
                .map_or(f64::INFINITY, |most| most.0),
            min_turbined: generation.min_turbined_m3s.0,
            max_turbined: generation.max_turbined_m3s.0,
            min_generation: generation.min_generation_mw.0,
            max_generation: generation.max_generation_mw.0,
            max_diversion: plant
                .diversion
                .as_ref()
                .map_or(0.0, |diversion| diversion.max_flow_m3s.0),
            min_diversion: 0.0,
            min_spillage: 0.0,
            max_spillage: f64::INFINITY,
            withdrawal: 0.0,
        }
    }

    fn changed(self, row: &HydroBounds) -> Self {
        let or = |value: Option<NonNegative>, old: f64| value.map_or(old, |value| value.0);
        Self {
            min_storage: or(row.min_storage_hm3, self.min_storage),
            max_storage: or(row.max_storage_hm3, self.max_storage),
            min_outflow: or(row.min_outflow_m3s, self.min_outflow),
            max_outflow: or(row.max_outflow_m3s, self.max_outflow),
            min_turbined: or(row.min_turbined_m3s, self.min_turbined),
            max_turbined: or(row.max_turbined_m3s, self.max_turbined),
            min_generation: or(row.min_generation_mw, self.min_generation),
            max_generation: or(row.max_generation_mw, self.max_generation),
            max_diversion: or(row.max_diversion_m3s, self.max_diversion),
            min_diversion: or(row.min_diversion_m3s, self.min_diversion),
            min_spillage: or(row.min_spillage_m3s, self.min_spillage),
            max_spillage: or(row.max_spillage_m3s, self.max_spillage),
            withdrawal: row
                .water_withdrawal_m3s
                .map_or(self.withdrawal, |own| own.0),
        }
    }

    /// The pairs whose first must not be above the second, with the key of the first.
    fn pairs(&self) -> [(&'static str, f64, f64); 6] {
        [
            ("min_spillage_m3s", self.min_spillage, self.max_spillage),
            ("min_diversion_m3s", self.min_diversion, self.max_diversion),
            (
                "reservoir.min_storage_hm3",
                self.min_storage,
                self.max_storage,
            ),
            (
                "outflow.min_outflow_m3s",
                self.min_outflow,
                self.max_outflow,
            ),
            (
                "generation.min_turbined_m3s",
                self.min_turbined,
                self.max_turbined,
            ),
            (
                "generation.min_generation_mw",
                self.min_generation,
                self.max_generation,
            ),
        ]
    }
}

/// The plants; inflows, curves and production functions are found elsewhere.
pub(super) fn resolve(
    files: &Files,
    (index, buses): (&Index, &Index),
    (stages, stage_index): (&[Stage], &Index),
    (inflows, reservoirs): (Vec<Inflow>, &[Option<Reservoir>]),
    productions: Vec<PlantProduction>,
    findings: &mut Findings,
) -> Vec<Hydro> {
    let list = Place::file(system::HYDROS).key("hydros");
    let by_block = block_limits(files, index, stages, stage_index, findings);
    let whole_rows = files.hydro_bounds.iter().copied();
    let whole_rows = whole_rows.filter(|row| row.block_id.is_none());
    let bounds = by_stage(
        &whole_rows.collect::<Vec<_>>(),
        HydroBounds::FILE,
        index,
        stage_index,
        |row| (row.hydro_id, row.stage_id, *row),
        // What is wrong with rows is said of all of them together.
        &mut Findings::default(),
    );
    let overrides = by_stage(
        &files.hydro_overrides,
        HydroOverrides::FILE,
        index,
        stage_index,
        |row| (row.hydro_id, row.stage_id, *row),
        findings,
    );
    let mut units = units::resolve(files, buses, (index, stages, stage_index), findings);
    let mut storage = initial_storage(files, index, findings);
    let mut found = Vec::new();
    let mut downstream = Vec::new();
    let given = inflows.into_iter().zip(productions).zip(by_block);
    let plants = files.hydros.hydros.iter().zip(given);
    for (place, (plant, ((inflow, production), mut by_block))) in plants.enumerate() {
        let at = list.index(place);
        let thing = format!("hydro plant {} ({})", plant.id, plant.name);
        let bus = units::bus(plant, buses, &at, findings);
        let below = plant
            .downstream_id
            .and_then(|id| index.find(id, &at.key("downstream_id"), findings));
        let diverts_to = plant.diversion.as_ref().and_then(|diversion| {
            let at = at.key("diversion.downstream_id");
            index.find(diversion.downstream_id, &at, findings)
        });
        downstream.push([below, diverts_to]);
        let whole = HydroLimits::new(plant);
        check_limits(plant, &by_block, stages, &at, findings);
        let usual = costs(files, plant, &files.penalties.hydro);
        let costs = overrides[place].iter();
        let costs = costs.map(|row| row.map_or(usual, |row| usual.changed(&row)));
        let units = merge_one(std::mem::take(&mut units[place]), &mut by_block);
        let limits: Vec<HydroLimits> = by_block
            .iter()
            .map(|blocks| blocks.first().copied().unwrap_or(whole))
            .collect();
        let mut phases = phases::resolve(plant, stages, &at, findings);
        set_targets(&mut phases, plant, stages, &limits, &bounds[place]);
        check_bounds(plant, stages, &bounds[place], findings);
        let plant = Hydro {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            downstream: below,
            reservoir: (whole.min_storage, whole.max_storage),
            production,
            costs: costs.collect(),
            limits,
            block_limits: by_block,
            units,
            initial_storage: check_storage(
                (plant, &phases),
                place,
                storage[place].take(),
                findings,
            ),
            inflow,
            phases,
            evaporation: evaporation::resolve(
                plant,
                reservoirs[place].as_ref(),
                stages,
                &at,
                findings,
            ),
            diverts_to,
            travel: travel::resolve(files, plant, stages, &at, findings),
        };
        // Of a history that cannot be read all is said.
        if plant.stores() && !plant.inflow.known && !findings.any_in_table(InflowHistory::FILE) {
            let at = Place::file(InflowStats::FILE).rows(thing);
            findings.wrong(&at, "there is no inflow, but the plant has a reservoir");
        }
        found.push(plant);
    }
    travel::check_past(files, index, findings);
    cascade(&downstream, files, &list, findings);
    found
}

/// The limits of plants by stage and block.
fn block_limits(
    files: &Files,
    index: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> Vec<Vec<Vec<HydroLimits>>> {
    let plants = files.hydros.hydros.iter();
    let whole = plants.map(|plant| everywhere(stages, HydroLimits::new(plant)));
    let mut found: Vec<_> = whole.collect();
    let rows = files.hydro_bounds.iter().enumerate();
    for (number, row) in rows.filter(|(_, row)| row.block_id.is_some()) {
        for (column, is_there) in [
            ("min_storage_hm3", row.min_storage_hm3.is_some()),
            ("max_storage_hm3", row.max_storage_hm3.is_some()),
            ("filling_inflow_m3s", row.filling_inflow_m3s.is_some()),
            ("filling_min_rate_m3s", row.filling_min_rate_m3s.is_some()),
            ("water_withdrawal_m3s", row.water_withdrawal_m3s.is_some()),
        ] {
            if is_there {
                let at = Place::file(HydroBounds::FILE).row(number);
                let message = format!("{column} is one value of a stage: give it without block_id");
                findings.wrong(&at, message);
            }
        }
    }
    apply(
        &files.hydro_bounds,
        (index, stage_index),
        |row: &HydroBounds| (row.hydro_id, row.stage_id, row.block_id),
        |limits: &mut HydroLimits, row| *limits = limits.changed(row),
        &mut found,
        findings,
    );
    found
}

/// Says which limits of a plant, and of its stages, have their least above their most.
fn check_limits(
    plant: &system::Hydro,
    by_block: &[Vec<HydroLimits>],
    stages: &[Stage],
    at: &Place,
    findings: &mut Findings,
) {
    let whole = HydroLimits::new(plant);
    for (key, least, most) in whole.pairs() {
        if least > most {
            findings.wrong(&at.key(key), format!("{least} is above the most, {most}"));
        }
    }
    for (limits, stage) in by_block.iter().zip(stages) {
        let changed = limits.iter().filter(|limits| **limits != whole);
        let pairs = changed.flat_map(HydroLimits::pairs);
        for (key, least, most) in pairs.filter(|(_, least, most)| least > most).take(1) {
            let at = Place::file(HydroBounds::FILE)
                .rows(format!("hydro plant {}, stage {}", plant.id, stage.id));
            findings.wrong(&at, format!("{key}: {least} is above the most, {most}"));
        }
    }
}

/// The groups of units that share a plant's flow: one alone has all of it, so that the stricter of its limits and those of
/// the plant hold, and what they miss costs once.
fn merge_one(units: Vec<UnitGroup>, by_block: &mut [Vec<HydroLimits>]) -> Vec<UnitGroup> {
    let [only] = &units[..] else {
        return units;
    };
    for (limits, own) in by_block.iter_mut().zip(&only.limits) {
        for (limits, own) in limits.iter_mut().zip(own) {
            limits.min_turbined = limits.min_turbined.max(own.min_turbined);
            limits.max_turbined = limits.max_turbined.min(own.max_turbined);
            limits.min_generation = limits.min_generation.max(own.min_generation);
            limits.max_generation = limits.max_generation.min(own.max_generation);
        }
    }
    Vec::new()
}

/// Sets the targets of filling.
fn set_targets(
    phases: &mut [HydroPhase],
    plant: &system::Hydro,
    stages: &[Stage],
    limits: &[HydroLimits],
    bounds: &[Option<HydroBounds>],
) {
    let Some(filling) = &plant.filling else {
        return;
    };
    let usual = filling.filling_inflow_m3s.or(filling.filling_min_rate_m3s);
    let usual = usual.map_or(0.0, |rate| rate.0);
    let rates = bounds.iter().map(|row| {
        let own = row.and_then(|row| row.filling_inflow_m3s.or(row.filling_min_rate_m3s));
        own.map_or(usual, |rate| rate.0)
    });
    let rates: Vec<f64> = rates.collect();
    let least: Vec<f64> = limits.iter().map(|limits| limits.min_storage).collect();
    phases::set_targets(phases, stages, &least, &rates);
}

/// Says which bounds are about what the plant does not have.
fn check_bounds(
    plant: &system::Hydro,
    stages: &[Stage],
    bounds: &[Option<HydroBounds>],
    findings: &mut Findings,
) {
    for (row, stage) in bounds.iter().zip(stages) {
        let Some(row) = row else { continue };
        let at = Place::file(HydroBounds::FILE)
            .rows(format!("hydro plant {}, stage {}", plant.id, stage.id));
        let diverts = row.max_diversion_m3s.is_some_and(|most| most.0 > 0.0);
        if diverts && plant.diversion.is_none() {
            let message = "max_diversion_m3s: the plant has no diversion in system/hydros.json";
            findings.wrong(&at, message);
        }
        let filling = [
            ("filling_inflow_m3s", row.filling_inflow_m3s),
            ("filling_min_rate_m3s", row.filling_min_rate_m3s),
        ];
        for (column, rate) in filling {
            if rate.is_some() && plant.filling.is_none() {
                let message = format!("{column}: the plant has no filling in system/hydros.json");
                findings.wrong(&at, message);
            }
        }
        if filling.iter().all(|(_, rate)| rate.is_some()) {
            let message = "filling_inflow_m3s and filling_min_rate_m3s are the same; keep one";
            findings.wrong(&at, message);
        }
    }
}

fn costs(files: &Files, plant: &system::Hydro, default: &HydroPenalties) -> HydroCosts {
    let own = plant.penalties.as_ref();
    let or = |pick: fn(&system::PenaltyOverrides) -> Option<NonNegative>, value: NonNegative| {
        own.and_then(pick).unwrap_or(value).0
    };
    let modeling = files.config.modeling.as_ref();
    let asked = modeling.and_then(|modeling| modeling.inflow_non_negativity.as_ref());
    let added = asked.and_then(|asked: &config::InflowNonNegativity| asked.penalty_cost);
    let added = default.inflow_nonnegativity_cost.or(added);
    HydroCosts {
        spillage: or(|own| own.spillage_cost, default.spillage_cost),
        storage_below: or(
            |own| own.storage_violation_below_cost,
            default.storage_violation_below_cost,
        ),
        turbined_below: or(
            |own| own.turbined_violation_below_cost,
            default.turbined_violation_below_cost,
        ),
        outflow_below: or(
            |own| own.outflow_violation_below_cost,
            default.outflow_violation_below_cost,
        ),
        outflow_above: or(
            |own| own.outflow_violation_above_cost,
            default.outflow_violation_above_cost,
        ),
        generation_below: or(
            |own| own.generation_violation_below_cost,
            default.generation_violation_below_cost,
        ),
        added_water: or(
            |own| own.inflow_nonnegativity_cost,
            added.unwrap_or(NonNegative(INFLOW_PENALTY)),
        ),
        turbined: or(
            |own| own.turbined_cost.or(own.fpha_turbined_cost),
            default.turbined_cost.unwrap_or(default.fpha_turbined_cost),
        ),
        turbined_constant: or(
            |own| own.turbined_cost,
            default.turbined_cost.unwrap_or(NonNegative(0.0)),
        ),
        diversion: or(|own| own.diversion_cost, default.diversion_cost),
        filling_below: or(
            |own| own.filling_target_violation_cost,
            default.filling_target_violation_cost,
        ),
        evaporation_below: or(
            |own| {
                own.evaporation_violation_neg_cost
                    .or(own.evaporation_violation_cost)
            },
            default
                .evaporation_violation_neg_cost
                .unwrap_or(default.evaporation_violation_cost),
        ),
        evaporation_above: or(
            |own| {
                own.evaporation_violation_pos_cost
                    .or(own.evaporation_violation_cost)
            },
            default
                .evaporation_violation_pos_cost
                .unwrap_or(default.evaporation_violation_cost),
        ),
        withdrawal_below: or(
            |own| {
                own.water_withdrawal_violation_neg_cost
                    .or(own.water_withdrawal_violation_cost)
            },
            default
                .water_withdrawal_violation_neg_cost
                .unwrap_or(default.water_withdrawal_violation_cost),
        ),
        withdrawal_above: or(
            |own| {
                own.water_withdrawal_violation_pos_cost
                    .or(own.water_withdrawal_violation_cost)
            },
            default
                .water_withdrawal_violation_pos_cost
                .unwrap_or(default.water_withdrawal_violation_cost),
        ),
    }
}

/// Initial storage by plant, with where it is given.
fn initial_storage(
    files: &Files,
    index: &Index,
    findings: &mut Findings,
) -> Vec<Option<(f64, Place)>> {
    let file = Place::file(initial::FILE);
    let mut found: Vec<Option<(f64, Place)>> = vec![None; index.len()];
    let lists = [
        ("storage", &files.initial.storage),
        ("filling_storage", &files.initial.filling_storage),
    ];
    for (list, entries) in lists {
        for (place, entry) in entries.iter().enumerate() {
            let at = file.key(list).index(place);
            let Some(plant) = index.find(entry.hydro_id, &at.key("hydro_id"), findings) else {
                continue;
            };
            if found[plant]
                .replace((entry.value_hm3.0, at.key("value_hm3")))
                .is_some()
            {
                let message = format!("hydro plant {} has an entry already", entry.hydro_id);
                findings.wrong(&at.key("hydro_id"), message);
            }
            if list == "filling_storage" && files.hydros.hydros[plant].filling.is_none() {
                let message = format!("hydro plant {} has no filling", entry.hydro_id);
                findings.wrong(&at.key("hydro_id"), message);
            }
        }
    }
    found
}

/// The initial storage of a plant; says if the reservoir cannot hold it.
fn check_storage(
    (plant, phases): (&system::Hydro, &[HydroPhase]),
    place: usize,
    given: Option<(f64, Place)>,
    findings: &mut Findings,
) -> f64 {
    let running = phases
        .first()
        .is_none_or(|phase| *phase == HydroPhase::Operating);
    let least = if running {
        plant.reservoir.min_storage_hm3.0
    } else {
        0.0
    };
    let most = plant.reservoir.max_storage_hm3.0;
    let absent = given.is_none();
    let (value, at) = given.unwrap_or_else(|| {
        let list = Place::file(system::HYDROS).key("hydros");
        (0.0, list.index(place).key("reservoir"))
    });
    if !(least..=most).contains(&value) && least <= most {
        let what = if absent {
            ", as initial_conditions.json gives none,"
        } else {
            ""
        };
        findings.wrong(
            &at,
            format!("the initial storage{what} is {value}; it must be from {least} to {most}"),
        );
    }
    value
}

/// Says where water flows in a circle, by rivers or diversions.
fn cascade(ways: &[[Option<usize>; 2]], files: &Files, list: &Place, findings: &mut Findings) {
    let mut done = vec![false; ways.len()];
    for start in 0..ways.len() {
        // The way to a plant, and which of the ways out of it comes next.
        let mut path = vec![(start, 0)];
        while let Some((place, next)) = path.last_mut().filter(|(place, _)| !done[*place]) {
            let (place, key) = (*place, *next);
            *next += 1;
            let Some(way) = ways[place].get(key) else {
                done[place] = true;
                path.pop();
                continue;
            };
            let Some(below) = *way else { continue };
            if let Some(entered) = path.iter().position(|(place, _)| *place == below) {
                let ids = path[entered..]
                    .iter()
                    .map(|(place, _)| place)
                    .chain([&below]);
                let ids: Vec<String> = ids
                    .map(|place| files.hydros.hydros[*place].id.to_string())
                    .collect();
                let key = ["downstream_id", "diversion.downstream_id"][key];
                let at = list.index(place).key(key);
                findings.wrong(&at, format!("water flows in a circle: {}", ids.join(" → ")));
            } else if !done[below] {
                path.push((below, 0));
            }
        }
    }
}
