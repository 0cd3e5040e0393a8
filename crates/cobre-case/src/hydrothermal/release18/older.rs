//! Files of 0.18 in the form of 0.5.

use std::path::Path;

use super::{ENTITIES, LIMITS};
use crate::hydrothermal::json::Json;

/// Puts the keys of a file of 0.18 in the places of 0.5. What has none stays.
pub(crate) fn translate(case: &Path, file: &str, json: &mut Json) {
    match file {
        "config.json" => config(case, json),
        "stages.json" => {
            for stage in json.each("stages") {
                stage.rename("num_openings", "num_scenarios");
            }
        }
        "penalties.json" => penalties(json),
        "system/hydro_production_models.json" => {
            for model in json.each("production_models") {
                for part in ["stage_ranges", "seasons"] {
                    for range in model.each(part) {
                        range.rename("productivity_mw_per_m3s", "productivity_override");
                    }
                }
            }
        }
        _ => {}
    }
    if let Some((_, list)) = ENTITIES.iter().find(|(of, _)| *of == file) {
        entities(case, json, list);
    }
    if file == "system/hydros.json" {
        // A table of limits refers to the groups.
        let table = case.join(GROUP_BOUNDS);
        if !table.exists() && !table.with_extension("csv").exists() {
            json.each("hydros").for_each(one_group);
        }
        json.each("hydros").for_each(limits_of_groups);
    }
}

/// The table of limits of groups of units.
pub(super) const GROUP_BOUNDS: &str = "constraints/hydro_unit_group_bounds.parquet";

fn config(case: &Path, json: &mut Json) {
    if let Some(training) = json.get_mut("training") {
        let is_newer = is_newer(case, training);
        for rule in training.each("stopping_rules") {
            tolerances_of_gap(rule, is_newer);
        }
    }
    for (part, key) in [
        ("training", "forward_passes"),
        ("simulation", "num_scenarios"),
    ] {
        let Some(part) = json.get_mut(part) else {
            continue;
        };
        let sampled = part
            .get("selection")
            .is_some_and(|selection| selection.text("method") == Some("sampled"));
        if sampled
            && part.get(key).is_none()
            && let Some(mut selection) = part.take("selection")
            && let Some(count) = selection.take(key)
        {
            part.put(key, count);
        }
    }
    let Some(cuts) = json
        .get_mut("training")
        .and_then(|part| part.get_mut("cut_selection"))
    else {
        return;
    };
    if let Some(Json::Object(own)) = cuts.take("selection") {
        if cuts.get("enabled").is_none() {
            cuts.put("enabled", Json::Bool(true));
        }
        for (key, value) in own {
            cuts.put(&key, value);
        }
    }
}

/// True if settings of training are of 0.18. Both forms may have paths enumerated.
fn is_newer(case: &Path, training: &Json) -> bool {
    match training.get("selection").map(|own| own.text("method")) {
        Some(Some("sampled")) => true,
        Some(_) => {
            let text = cobre_files::read(&case.join("stages.json"), cobre_files::MOST_TEXT_BYTES);
            let json = text
                .ok()
                .and_then(|text| serde_json::from_slice::<Json>(&text).ok());
            json.is_some_and(|json| counts_openings(&json))
        }
        None => false,
    }
}

/// True if stages have the key of 0.18 for their openings.
pub(super) fn counts_openings(stages: &Json) -> bool {
    let mut stages = stages.all("stages").iter();
    stages.any(|stage| stage.get("num_openings").is_some())
}

/// Makes the tolerances of a rule `gap` those of 0.5: 0.18 has the relative one in per cent, and `tolerance` is the
/// absolute one.
fn tolerances_of_gap(rule: &mut Json, is_newer: bool) {
    if rule.text("type") != Some("gap") {
        return;
    }
    if is_newer {
        rule.rename("tolerance", "absolute_tolerance");
    }
    if rule.get("tolerance").is_none_or(Json::is_nothing)
        && let Some(percent) = rule.number("relative_tolerance")
    {
        rule.take("relative_tolerance");
        rule.take("tolerance");
        rule.put("tolerance", Json::Number(percent / 100.0));
    }
}

fn penalties(json: &mut Json) {
    let Some(hydro) = json.get_mut("hydro") else {
        return;
    };
    // Each key of 0.5, and the one of 0.18 that is read in its place.
    for (older, newer) in [
        ("fpha_turbined_cost", "turbined_cost"),
        (
            "evaporation_violation_cost",
            "evaporation_violation_pos_cost",
        ),
        (
            "water_withdrawal_violation_cost",
            "water_withdrawal_violation_pos_cost",
        ),
    ] {
        if hydro.get(older).is_none()
            && let Some(value) = hydro.get(newer).cloned()
        {
            hydro.put(older, value);
        }
    }
}

/// Makes dates of operation the stages that begin there.
fn entities(case: &Path, json: &mut Json, list: &str) {
    if !json
        .all(list)
        .iter()
        .any(|thing| thing.get(START).is_some())
    {
        return;
    }
    let starts = stage_starts(case);
    for thing in json.each(list) {
        let Some(date) = thing.text(START).map(str::to_owned) else {
            continue;
        };
        let first = starts.first().is_some_and(|(_, first)| date <= *first);
        let stage = starts.iter().find(|(_, start)| *start == date);
        let stage = stage.or(starts.last().filter(|(_, end)| date > *end));
        if first {
            thing.take(START);
        } else if let Some((id, _)) = stage
            && thing.get("entry_stage_id").is_none_or(Json::is_nothing)
        {
            thing.take(START);
            thing.put("entry_stage_id", id.clone());
        }
    }
}

/// The day from which a thing is there.
pub(super) const START: &str = "operational_start_date";

/// The numbers and first days of the stages of a case.
pub(super) fn stage_starts(case: &Path) -> Vec<(Json, String)> {
    let text = cobre_files::read(&case.join("stages.json"), cobre_files::MOST_TEXT_BYTES);
    let json = text
        .ok()
        .and_then(|text| serde_json::from_slice::<Json>(&text).ok());
    json.map_or(Vec::new(), |json| starts_of(&json))
}

/// The numbers and first days of stages, and of one after the last: what is there from that day on is in no stage.
pub(super) fn starts_of(stages: &Json) -> Vec<(Json, String)> {
    let stages = stages.all("stages");
    let after = stages.last().and_then(|last| {
        let next = last.number("id")? as i128 + 1;
        Some((Json::Integer(next), last.text("end_date")?.to_owned()))
    });
    let starts = stages.iter().filter_map(|stage| {
        Some((
            stage.get("id")?.clone(),
            stage.text("start_date")?.to_owned(),
        ))
    });
    starts.chain(after).collect()
}

/// Gives a plant without limits of its own those that its groups of units have together; their least ones hold for each.
fn limits_of_groups(plant: &mut Json) {
    let groups = plant.all("unit_groups").iter();
    let together = LIMITS.map(|key| {
        let most = if key.starts_with("max") { 1.0 } else { 0.0 };
        let own = groups.clone().map(|group| group.number(key).unwrap_or(0.0));
        (key, most * own.sum::<f64>())
    });
    if plant.all("unit_groups").is_empty() {
        return;
    }
    if let Some(generation) = plant.get_mut("generation") {
        for (key, limit) in together {
            if generation.get(key).is_none_or(Json::is_nothing) {
                generation.put(key, Json::Number(limit));
            }
        }
    }
}

/// Makes a plant with one group of units one at a bus, if they have the same limits.
fn one_group(plant: &mut Json) {
    let [group] = plant.all("unit_groups") else {
        return;
    };
    let Some(generation) = plant.get("generation") else {
        return;
    };
    let alike = LIMITS.iter().all(|key| {
        let own = group.number(key).unwrap_or(0.0);
        generation.number(key).is_none_or(|limit| limit == own)
    });
    if plant.get("bus_id").is_some() || !alike {
        return;
    }
    let limits = LIMITS.map(|key| (key, group.get(key).cloned().unwrap_or(Json::Integer(0))));
    let bus = group.get("bus_id").cloned();
    if let Some(generation) = plant.get_mut("generation") {
        for (key, limit) in limits {
            generation.put(key, limit);
        }
    }
    plant.take("unit_groups");
    plant.put("bus_id", bus.unwrap_or(Json::Null));
}
