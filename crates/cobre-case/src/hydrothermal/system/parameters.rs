//! Parameters of generic constraints: numbers by stage and block.

use std::collections::HashMap;

use super::System;
use super::bounds::everywhere;
use super::index::Index;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::generic::{
    ComputedParameter, ComputedTag, PARAMETERS, ParameterKind, ScalarParameter,
};

/// A parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// By stage and block; none where the file gives none.
    pub(crate) values: Vec<Vec<Option<f64>>>,
    /// True if it can differ between the blocks of a stage.
    pub(crate) by_block: bool,
}

impl Parameter {
    /// The value of a block; zero where there is none, which has been said.
    pub(crate) fn at(&self, stage: usize, block: usize) -> f64 {
        self.values[stage][block].unwrap_or(0.0)
    }

    /// The largest absolute value.
    pub(crate) fn largest(&self) -> f64 {
        let values = self.values.iter().flatten().flatten();
        values.fold(0.0, |largest: f64, value| largest.max(value.abs()))
    }
}

/// The parameters of the file, and their places by name.
pub(super) fn resolve<'f>(
    files: &'f Files,
    system: &System,
    findings: &mut Findings,
) -> (Vec<Parameter>, HashMap<&'f str, usize>) {
    let list = Place::file(PARAMETERS).key("scalar_parameters");
    let file = files.parameters.iter();
    let parameters = file.flat_map(|file| &file.scalar_parameters);
    let things = parameters
        .clone()
        .map(|parameter| (parameter.id, parameter.name.as_str()));
    Index::new("parameter", things, &list, findings);
    let mut names = HashMap::new();
    let mut found = Vec::new();
    for (place, parameter) in parameters.enumerate() {
        let at = list.index(place);
        if names.insert(parameter.name.as_str(), place).is_some() {
            let message = format!("a parameter is called {} already", parameter.name);
            findings.wrong(&at.key("name"), message);
        }
        check_keys(parameter, &at, findings);
        found.push(Parameter {
            values: values(parameter, system, &at, findings),
            by_block: parameter.kind == ParameterKind::PerStageBlock,
        });
    }
    (found, names)
}

/// Says which keys a kind of parameter lacks, and which do not go with it.
fn check_keys(parameter: &ScalarParameter, at: &Place, findings: &mut Findings) {
    let kind = parameter.kind;
    let lists = matches!(kind, ParameterKind::PerStage | ParameterKind::Seasonal);
    for (key, given, wanted) in [
        (
            "value",
            parameter.value.is_some(),
            kind == ParameterKind::Constant,
        ),
        ("values", parameter.values.is_some(), lists),
        (
            "block_values",
            parameter.block_values.is_some(),
            kind == ParameterKind::PerStageBlock,
        ),
        (
            "computed_spec",
            parameter.computed_spec.is_some(),
            kind == ParameterKind::Computed,
        ),
    ] {
        if given != wanted {
            let message = if wanted {
                "the key is missing, which this kind needs"
            } else {
                "it does not go with this kind; remove the key"
            };
            findings.wrong(&at.key(key), message);
        }
    }
}

fn values(
    parameter: &ScalarParameter,
    system: &System,
    at: &Place,
    findings: &mut Findings,
) -> Vec<Vec<Option<f64>>> {
    let stages = &system.stages;
    let mut found = everywhere(stages, parameter.value.map(|value| value.0));
    let mut seen = HashMap::new();
    let rows = parameter.values.iter().flatten().enumerate();
    for (number, row) in rows {
        let [key] = row.keys;
        let at = at.key("values").index(number);
        if let Some(first) = seen.insert((key, None), number) {
            findings.wrong(&at, format!("{key} is there already, at [{first}]"));
        }
        if parameter.kind == ParameterKind::Seasonal {
            let own = stages.iter().zip(&mut found);
            for (_, values) in own.filter(|(stage, _)| stage.season == Some(key)) {
                values.fill(Some(row.value.0));
            }
        } else if let Some(stage) = system.indices.stages.find(key, &at, findings) {
            found[stage].fill(Some(row.value.0));
        }
    }
    let rows = parameter.block_values.iter().flatten().enumerate();
    for (number, row) in rows {
        let [stage, block] = row.keys;
        let at = at.key("block_values").index(number);
        if let Some(first) = seen.insert((stage, Some(block)), number) {
            let message = format!("stage {stage}, block {block} are there already, at [{first}]");
            findings.wrong(&at, message);
        }
        let Some(place) = system.indices.stages.find(stage, &at, findings) else {
            continue;
        };
        let values = &mut found[place];
        match usize::try_from(block)
            .ok()
            .and_then(|id| values.get_mut(id))
        {
            Some(value) => *value = Some(row.value.0),
            None => findings.wrong(&at, format!("stage {stage} has no block {block}")),
        }
    }
    if let Some(spec) = &parameter.computed_spec {
        computed(spec, system, at, &mut found, findings);
    }
    found
}

/// Puts the values of a quantity of a plant in place; says if the plant has no such quantity.
fn computed(
    spec: &ComputedParameter,
    system: &System,
    at: &Place,
    found: &mut [Vec<Option<f64>>],
    findings: &mut Findings,
) {
    let at = at.key("computed_spec");
    let Some(plant) = system
        .indices
        .hydros
        .find(spec.hydro_id, &at.key("hydro_id"), findings)
    else {
        return;
    };
    for (stage, values) in found.iter_mut().enumerate() {
        let value = quantity(spec.tag, system, plant, stage);
        if value.is_none() {
            let message = format!(
                "nothing gives it for stage {}: it needs a productivity, or a specific productivity and the plant's \
                 rows in system/hydro_geometry.parquet",
                system.stages[stage].id
            );
            findings.wrong(&at.key("tag"), message);
            return;
        }
        values.fill(value);
    }
}

/// A quantity of a plant in a stage; none if the plant has none.
fn quantity(tag: ComputedTag, system: &System, plant: usize, stage: usize) -> Option<f64> {
    let hydro = &system.hydros[plant];
    let conversion = &hydro.production.conversions[stage];
    let (least, most) = hydro.reservoir;
    let below = |pick: fn(&super::EnergyConversion) -> Option<f64>| {
        let (mut sum, mut next) = (0.0, Some(plant));
        // A river that flows in a circle has been said; it ends here all the same.
        for _ in &system.hydros {
            let Some(place) = next else { break };
            sum += pick(&system.hydros[place].production.conversions[stage])?;
            next = system.hydros[place].downstream;
        }
        Some(sum)
    };
    match tag {
        ComputedTag::EquivalentProductivity => conversion.equivalent,
        ComputedTag::AccumulatedProductivity => below(|own| own.equivalent),
        ComputedTag::ReferenceVolume => Some(conversion.reference_volume),
        ComputedTag::ReferenceTurbine => Some(conversion.reference_flow),
        ComputedTag::MinStorage => Some(least),
        ComputedTag::MaxStorage => Some(most),
        ComputedTag::SpecificProductivity => conversion.specific,
        ComputedTag::IntegratedEquivalentProductivity => conversion.integrated,
        ComputedTag::IntegratedAccumulatedProductivity => below(|own| own.integrated),
        ComputedTag::MaxStoredEnergy => {
            below(|own| own.integrated).map(|integrated| integrated * (most - least))
        }
    }
}
