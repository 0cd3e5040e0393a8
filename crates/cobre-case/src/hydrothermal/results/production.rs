//! Production of plants with a level curve: head, and what the exact production function gives.

use cobre_sddp::{Column, Rows, Table};

use super::{Scene, block_columns, thing_columns};
use crate::hydrothermal::model::Generation;

/// The table of production by block, of plants and stages with hyperplanes.
pub(super) fn table() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns("hydro_id", "hydro", "hydro plant"));
    columns.extend([
        Column::number(
            "storage_mean_hm3",
            "hm³",
            "mean of the storages before and after, from which hyperplanes give generation",
        ),
        Column::number("turbined_m3s", "m³/s", "flow through the turbines"),
        Column::number("net_head_m", "m", "net head at that storage and outflow"),
        Column::number(
            "generation_mw",
            "MW",
            "power generated, below the hyperplanes",
        ),
        Column::number(
            "exact_generation_mw",
            "MW",
            "power that the exact production function gives for the same storage and flows",
        ),
    ]);
    Table::new("simulation/production", columns)
}

pub(super) fn fill(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in scene.results.hydros.iter().zip(&stage.layout.hydros) {
            let (Some(exact), Generation::Columns(generation)) = (&plant.exact, &layout.generation)
            else {
                continue;
            };
            let [first, last] = layout.storage.map_or([0.0; 2], |[before, after]| {
                let inner = |block: usize| layout.levels.get(block).copied();
                let is_own = layout.water.len() > 1;
                let from = block.checked_sub(1).filter(|_| is_own).and_then(inner);
                let to = Some(block).filter(|_| is_own).and_then(inner);
                [from.unwrap_or(before), to.unwrap_or(after)].map(|column| visited.value(column))
            });
            let storage = f64::midpoint(first, last);
            let turbined = visited.value(layout.turbined[block]);
            let spilled = visited.value(layout.spilled[block]);
            let most = visited.upper(generation[block]);
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                plant.thing.id.into(),
                plant.thing.name.as_str().into(),
                storage.into(),
                turbined.into(),
                exact.net_head(storage, turbined + spilled).into(),
                visited.value(generation[block]).into(),
                exact.power(storage, turbined, spilled).min(most).into(),
            ]);
        }
    }
}
