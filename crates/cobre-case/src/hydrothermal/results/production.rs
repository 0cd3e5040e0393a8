//! Production of plants with a level curve: head, and what the exact production function gives.

use cobre_results::Rows;
use cobre_results::layout::production;

use super::PathStage;
use crate::hydrothermal::model::Generation;

pub(super) fn fill(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for (block, &hours) in stage.hours.iter().enumerate() {
        for (plant, layout) in path_stage.results.hydros.iter().zip(&stage.layout.hydros) {
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
            let row = production::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                hydro_id: plant.entity.id,
                hydro: &plant.entity.name,
                storage_mean_hm3: storage,
                turbined_m3s: turbined,
                net_head_m: exact.net_head(storage, turbined + spilled),
                generation_mw: visited.value(generation[block]),
                exact_generation_mw: exact.power(storage, turbined, spilled).min(most),
            };
            rows.push(&row.cells());
        }
    }
}
