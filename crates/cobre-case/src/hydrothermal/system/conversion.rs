//! Energy conversion: the energy of water at a reference storage and flow, by plant and stage.

use std::collections::HashMap;

use super::geometry::ProductionFunction;
use super::index::Index;
use super::production::Production;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::production::{EnergyProductivity, ReferenceVolume};
use crate::hydrothermal::files::system::Hydro;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::table::Row;

/// The reference storage where no file gives one, as a share of the way from least to most storage.
const USUAL_SHARE: f64 = 0.65;
/// Points of the mean level over a storage range.
const MEAN_POINTS: u32 = 1000;

/// Energy conversion of a plant in a stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnergyConversion {
    /// MW/(m³/s) per m of net head.
    pub(crate) specific: Option<f64>,
    /// hm³.
    pub(crate) reference_volume: f64,
    /// m³/s.
    pub(crate) reference_flow: f64,
    /// MW/(m³/s) of the table, or of its specific productivity: it takes the place of that of the plant.
    pub(super) given: Option<f64>,
    /// MW/(m³/s) at the reference.
    pub(crate) equivalent: Option<f64>,
    /// MW/(m³/s) with the mean level of the storage range.
    pub(crate) integrated: Option<f64>,
}

/// Rows of the table of productivities of a plant by stage, that of all stages under none.
pub(super) type ProductivityRows = HashMap<Option<Id>, EnergyProductivity>;

/// The rows of every plant; says which name nothing or come twice.
pub(super) fn rows(
    files: &Files,
    plants: &Index,
    stages: &Index,
    findings: &mut Findings,
) -> Vec<ProductivityRows> {
    let mut found = vec![HashMap::new(); plants.len()];
    for (number, row) in files.energy_productivity.iter().enumerate() {
        let at = Place::file(EnergyProductivity::FILE).row(number);
        let plant = plants.find(row.hydro_id, &at, findings);
        if let Some(id) = row.stage_id {
            stages.find(id, &at, findings);
        }
        if let Some(plant) = plant
            && found[plant].insert(row.stage_id, *row).is_some()
        {
            let message = format!("hydro plant {} has such a row already", row.hydro_id);
            findings.wrong(&at, message);
        }
    }
    found
}

/// The numbers of a plant in a stage: each from the row of the stage, else from that of all stages.
pub(super) struct StageNumbers<'r> {
    own: Option<&'r EnergyProductivity>,
    all: Option<&'r EnergyProductivity>,
}

impl<'r> StageNumbers<'r> {
    pub(super) fn new(rows: &'r ProductivityRows, stage: Id) -> Self {
        Self {
            own: rows.get(&Some(stage)),
            all: rows.get(&None),
        }
    }

    fn pick(&self, of: impl Fn(&EnergyProductivity) -> Option<f64>) -> Option<f64> {
        self.own.and_then(&of).or_else(|| self.all.and_then(&of))
    }

    /// MW/(m³/s), as the table gives it.
    pub(super) fn equivalent(&self) -> Option<f64> {
        self.pick(|row| row.equivalent_productivity_mw_per_m3s.map(|own| own.0))
    }

    fn specific(&self) -> Option<f64> {
        self.pick(|row| row.specific_productivity_mw_per_m3s_per_m.map(|own| own.0))
    }

    fn reference_flow(&self) -> Option<f64> {
        self.pick(|row| row.reference_outflow_m3s.map(|own| own.0))
    }
}

impl EnergyConversion {
    /// That of a plant, before its production function is known: `equivalent` and `integrated` are those of the table or
    /// of the head.
    pub(super) fn new(
        plant: &Hydro,
        numbers: &StageNumbers<'_>,
        reference: Option<&ReferenceVolume>,
        exact: Option<&ProductionFunction>,
    ) -> Self {
        let specific = plant.specific_productivity_mw_per_m3s_per_m;
        let specific = numbers.specific().or(specific.map(|own| own.0));
        let reference_flow = numbers.reference_flow();
        let reference_flow = reference_flow.unwrap_or(plant.generation.max_turbined_m3s.0);
        let reference_volume = reference_volume(plant, reference);
        let (least, most) = (
            plant.reservoir.min_storage_hm3.0,
            plant.reservoir.max_storage_hm3.0,
        );
        let by_head = |head: &dyn Fn(&ProductionFunction) -> f64| {
            let exact = exact?;
            specific.map(|specific| specific * head(exact))
        };
        let equivalent = numbers.equivalent();
        let at_reference = by_head(&|exact| exact.net_head(reference_volume, reference_flow));
        let mean = by_head(&|exact| exact.mean_net_head((least, most), reference_flow));
        Self {
            specific,
            reference_volume,
            reference_flow,
            given: equivalent.or_else(|| numbers.specific().and(at_reference)),
            equivalent: equivalent.or(at_reference),
            integrated: equivalent.or(mean),
        }
    }

    /// This with the productivity of the plant where it is constant and nothing else gives one.
    pub(super) fn with(mut self, production: &Production) -> Self {
        if let Production::Constant(productivity) = production {
            self.equivalent = Some(*productivity);
            self.integrated = self.integrated.or(self.equivalent);
        }
        self
    }
}

/// The reference storage of a plant, hm³.
pub(super) fn reference_volume(plant: &Hydro, given: Option<&ReferenceVolume>) -> f64 {
    let (least, most) = (
        plant.reservoir.min_storage_hm3.0,
        plant.reservoir.max_storage_hm3.0,
    );
    let share = given.and_then(|given| given.percentile);
    let share = share.map_or(USUAL_SHARE, |share| share.0);
    let volume = given.and_then(|given| given.volume_hm3);
    volume.map_or(least + share * (most - least), |volume| volume.0)
}

impl ProductionFunction {
    /// Mean net head over a range of storages within the level curve, m, at an outflow, m³/s.
    fn mean_net_head(&self, (least, most): (f64, f64), outflow: f64) -> f64 {
        let (from, to) = self.storages();
        let (least, most) = (least.clamp(from, to), most.clamp(from, to));
        if least == most {
            return self.net_head(least, outflow);
        }
        let step = (most - least) / f64::from(MEAN_POINTS);
        let heads = (0..MEAN_POINTS).map(|point| {
            let storage = least + step * (f64::from(point) + 0.5);
            self.net_head(storage, outflow)
        });
        heads.sum::<f64>() / f64::from(MEAN_POINTS)
    }
}
