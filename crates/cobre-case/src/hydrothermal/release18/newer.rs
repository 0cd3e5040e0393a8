//! Files of 0.5 in the form of 0.18.

use super::older::{START, starts_of};
use super::{ENTITIES, LIMITS};
use crate::hydrothermal::files::equipment::EXCHANGE_FACTORS;
use crate::hydrothermal::json::Json;

/// The JSON files of a case by path.
pub(super) type JsonFiles = std::collections::BTreeMap<String, Json>;

/// Puts the keys of a case of 0.5 in the places of 0.18; `turbined` are the costs of turbined flow by plant and stage.
pub(super) fn translate(files: &mut JsonFiles, turbined: &[Vec<f64>]) {
    config(files);
    if let Some(stages) = files.get_mut("stages.json") {
        for stage in stages.each("stages") {
            stage.rename("num_scenarios", "num_openings");
        }
    }
    turbined_cost(files, turbined);
    productions(files);
    hydros(files);
    starts(files);
    if let Some(thermals) = files.get_mut("system/thermals.json") {
        for plant in thermals.each("thermals") {
            if let Some(mut older) = plant.take("gnl_config") {
                older.rename("lag_stages", "lead_stages");
                plant.put("anticipated_config", older);
            }
        }
    }
    if let Some(constraints) = files.get_mut("constraints/generic_constraints.json") {
        for constraint in constraints.each("constraints") {
            constraint.take("sense");
        }
    }
    if let Some(file) = files.get_mut("initial_conditions.json") {
        file.take("past_inflows");
    }
    files.remove(EXCHANGE_FACTORS);
}

fn config(files: &mut JsonFiles) {
    let Some(config) = files.get_mut("config.json") else {
        return;
    };
    for (part, key) in [
        ("training", "forward_passes"),
        ("simulation", "num_scenarios"),
    ] {
        if let Some(part) = config.get_mut(part)
            && let Some(count) = part.take(key)
        {
            let method = ("method", Json::Text("sampled".to_owned()));
            part.put("selection", Json::object([method, (key, count)]));
        }
    }
    if let Some(training) = config.get_mut("training") {
        training.each("stopping_rules").for_each(gap);
    }
    if let Some(training) = config.get_mut("training")
        && let Some(mut cuts) = training.take("cut_selection")
        && cuts.take("enabled") == Some(Json::Bool(true))
    {
        let method = cuts
            .take("method")
            .unwrap_or_else(|| Json::Text("level1".to_owned()));
        cuts.put("selection", Json::object([("method", method)]));
        training.put("cut_selection", cuts);
    }
    let asked = config.get_mut("modeling");
    let asked = asked.and_then(|modeling| modeling.get_mut("inflow_non_negativity"));
    let cost = asked.and_then(|asked| asked.take("penalty_cost"));
    if let Some(cost) = cost
        && let Some(hydro) = files
            .get_mut("penalties.json")
            .and_then(|file| file.get_mut("hydro"))
    {
        hydro.put("inflow_nonnegativity_cost", cost);
    }
}

/// Gives a rule `gap` the tolerances of 0.18: the relative one in per cent.
fn gap(rule: &mut Json) {
    if rule.text("type") != Some("gap") {
        return;
    }
    let relative = rule.number("tolerance");
    rule.take("tolerance");
    rule.rename("absolute_tolerance", "tolerance");
    if let Some(relative) = relative {
        rule.put("relative_tolerance", Json::Number(relative * 100.0));
    }
}

/// The cost of turbined flow, by plant and stage, in the places of 0.18: of all plants, else of each; stages that cost more
/// are in a table.
fn turbined_cost(files: &mut JsonFiles, costs: &[Vec<f64>]) {
    let least = |costs: &Vec<f64>| costs.iter().copied().fold(f64::INFINITY, f64::min);
    let of_all = costs.first().and_then(|first| first.first()).copied();
    let alike = costs.iter().flatten().all(|cost| Some(*cost) == of_all);
    if let Some(hydro) = files
        .get_mut("penalties.json")
        .and_then(|file| file.get_mut("hydro"))
    {
        hydro.take("fpha_turbined_cost");
        let cost = of_all.filter(|_| alike).unwrap_or(0.0);
        hydro.put("turbined_cost", Json::Number(cost));
    }
    let Some(hydros) = files.get_mut("system/hydros.json") else {
        return;
    };
    for (plant, costs) in hydros.each("hydros").zip(costs) {
        if let Some(own) = plant.get_mut("penalties") {
            own.take("fpha_turbined_cost");
            own.take("turbined_cost");
        }
        let cost = least(costs);
        if alike || cost == 0.0 {
            continue;
        }
        if plant.get("penalties").is_none_or(Json::is_nothing) {
            plant.put("penalties", Json::object([]));
        }
        if let Some(own) = plant.get_mut("penalties") {
            own.put("turbined_cost", Json::Number(cost));
        }
    }
}

/// Moves productivities to the production models.
fn productions(files: &mut JsonFiles) {
    const MODELS: &str = "system/hydro_production_models.json";
    let stages = files.get("stages.json").cloned().unwrap_or(Json::Null);
    let first = starts_of(&stages)
        .first()
        .map_or(Json::Integer(0), |(id, _)| id.clone());
    let mut models = files
        .remove(MODELS)
        .unwrap_or_else(|| Json::object([("production_models", Json::List(Vec::new()))]));
    let Some(hydros) = files.get_mut("system/hydros.json") else {
        return;
    };
    for plant in hydros.each("hydros") {
        let id = plant.get("id").cloned().unwrap_or(Json::Null);
        let own = plant
            .get_mut("generation")
            .and_then(|own| own.take("productivity_mw_per_m3s"));
        let mut known = models.each("production_models");
        if let Some(model) = known.find(|model| model.get("hydro_id") == Some(&id)) {
            existing(model, own.as_ref(), &stages, &first);
            continue;
        }
        drop(known);
        let known = models.get_mut("production_models");
        if let (Some(own), Some(Json::List(known))) = (own, known) {
            known.push(constant(id, first.clone(), own));
        }
    }
    if !models.all("production_models").is_empty() {
        files.insert(MODELS.to_owned(), models);
    }
}

/// The model of a plant with one productivity.
fn constant(plant: Json, first: Json, productivity: Json) -> Json {
    let range = constant_range(first, productivity);
    Json::object([
        ("hydro_id", plant),
        ("selection_mode", Json::Text("stage_ranges".to_owned())),
        ("stage_ranges", Json::List(vec![range])),
    ])
}

/// The range of all stages with one productivity.
fn constant_range(first: Json, productivity: Json) -> Json {
    Json::object([
        ("start_stage_id", first),
        ("end_stage_id", Json::Null),
        ("model", Json::Text("constant_productivity".to_owned())),
        ("productivity_mw_per_m3s", productivity),
    ])
}

/// Gives the productivity of a plant to the parts of its model that have none.
fn existing(model: &mut Json, own: Option<&Json>, stages: &Json, first: &Json) {
    let default = model
        .text("default_model")
        .is_some_and(|model| model != "fpha");
    // The default of a seasonal model has no productivity in 0.18.
    if default && own.is_some() {
        by_stage(model, stages);
    }
    for part in ["stage_ranges", "seasons"] {
        for range in model.each(part) {
            range.rename("productivity_override", "productivity_mw_per_m3s");
            if range.text("model") != Some("fpha")
                && range.get("productivity_mw_per_m3s").is_none()
                && let Some(own) = own
            {
                range.put("productivity_mw_per_m3s", own.clone());
            }
        }
    }
    // Stages in none of the ranges have constant productivity; the first range that has a stage counts.
    let uncovered = uncovered(model, stages);
    if let (true, Some(own), Some(Json::List(ranges))) =
        (uncovered, own, model.get_mut("stage_ranges"))
    {
        ranges.push(constant_range(first.clone(), own.clone()));
    }
}

/// True if some stage is in none of the ranges of a model.
fn uncovered(model: &Json, stages: &Json) -> bool {
    let has = |range: &Json, stage: f64| {
        let from = range.number("start_stage_id");
        let to = range.number("end_stage_id");
        from.is_some_and(|from| from <= stage) && to.is_none_or(|to| stage <= to)
    };
    let ids = stages.all("stages").iter();
    let mut ids = ids.filter_map(|stage| stage.number("id"));
    ids.any(|id| !model.all("stage_ranges").iter().any(|range| has(range, id)))
}

/// Makes a seasonal model one by stages.
fn by_stage(model: &mut Json, stages: &Json) {
    let default = model.take("default_model").unwrap_or(Json::Null);
    let seasons = model.take("seasons").unwrap_or(Json::Null);
    let seasons = Json::object([("seasons", seasons)]);
    let ranges = stages.all("stages").iter().map(|stage| {
        let of_season = |own: &&Json| own.get("season_id") == stage.get("season_id");
        let known = seasons.all("seasons").iter().find(of_season);
        let mut range = known
            .cloned()
            .unwrap_or_else(|| Json::object([("model", default.clone())]));
        range.take("season_id");
        let id = stage.get("id").cloned().unwrap_or(Json::Null);
        range.put("start_stage_id", id.clone());
        range.put("end_stage_id", id);
        range
    });
    model.put("stage_ranges", Json::List(ranges.collect()));
    model.put("selection_mode", Json::Text("stage_ranges".to_owned()));
}

/// Gives every plant at a bus a group of units there.
fn hydros(files: &mut JsonFiles) {
    let Some(hydros) = files.get_mut("system/hydros.json") else {
        return;
    };
    for plant in hydros.each("hydros") {
        if let Some(filling) = plant.get_mut("filling") {
            filling.rename("filling_inflow_m3s", "filling_min_rate_m3s");
        }
        if plant.get("unit_groups").is_some() {
            continue;
        }
        let bus = plant.take("bus_id").unwrap_or(Json::Null);
        let name = plant.get("name").cloned().unwrap_or(Json::Null);
        let mut group = Json::object([("id", Json::Integer(0)), ("name", name), ("bus_id", bus)]);
        // The limits of the plant stay beside those of the group.
        for key in LIMITS {
            let limit = plant.get("generation").and_then(|own| own.get(key));
            if let Some(limit) = limit.cloned() {
                group.put(key, limit);
            }
        }
        plant.put("unit_groups", Json::List(vec![group]));
    }
}

/// Gives every thing the day from which it is there.
fn starts(files: &mut JsonFiles) {
    let stages = files.get("stages.json").map(starts_of).unwrap_or_default();
    let Some((_, first)) = stages.first() else {
        return;
    };
    for (file, list) in ENTITIES {
        let Some(json) = files.get_mut(*file) else {
            continue;
        };
        for thing in json.each(list) {
            let entry = thing.number("entry_stage_id");
            thing.take("entry_stage_id");
            let number = |(id, _): &&(Json, String)| match id {
                Json::Integer(id) => *id as f64,
                _ => 0.0,
            };
            let mut from = stages.iter();
            // An entry after the last stage is one on the day after it.
            let start =
                entry.and_then(|entry| from.find(|own| number(own) >= entry).or(stages.last()));
            let start = start.map_or(first, |(_, start)| start);
            thing.put(START, Json::Text(start.clone()));
        }
    }
}
