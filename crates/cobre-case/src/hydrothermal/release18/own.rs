//! What this format has and neither release of the other program: 0.18 has no place for it.

use super::newer::JsonFiles;
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::scenarios::InflowRegimes;
use crate::hydrothermal::files::terminal::TerminalWaterValues;
use crate::hydrothermal::json::Json;
use crate::hydrothermal::table::Row;

/// Says what of a case 0.18 has no place for, though 0.5 is read with it.
pub(super) fn find(jsons: &JsonFiles, files: &Files, lost: &mut Vec<String>) {
    let file = |file: &str| jsons.get(file).cloned().unwrap_or(Json::Null);
    config(&file("config.json"), lost);
    let stages = file("stages.json");
    if let Some(graph) = stages.get("policy_graph") {
        if graph.text("type") == Some("cyclic") {
            lost.push("stages.json: policy_graph.type \"cyclic\"".to_owned());
        }
        if !graph.all("nodes").is_empty() {
            lost.push(
                "stages.json: policy_graph.nodes: regimes of inflows; nodes of 0.18 have scenarios of their own"
                    .to_owned(),
            );
        }
    }
    let tables = [
        (
            InflowRegimes::FILE,
            files.inflow_regimes.len(),
            "regimes of inflows",
        ),
        (
            TerminalWaterValues::FILE,
            files.terminal_water_values.len(),
            "water values after the last stage",
        ),
    ];
    for (file, _, what) in tables.iter().filter(|(_, rows, _)| *rows > 0) {
        lost.push(format!("{file}: {what}"));
    }
    let batteries = file("system/batteries.json").all("batteries").len();
    if batteries > 0 {
        lost.push(format!("system/batteries.json: {batteries} batteries"));
    }
    let with =
        |file: &Json, list: &str, has: &dyn Fn(&Json) -> bool| file.all(list).iter().any(has);
    let segments = |plant: &Json| {
        plant
            .get("cost_segments")
            .is_some_and(|own| !own.is_nothing())
    };
    if with(&file("system/thermals.json"), "thermals", &segments) {
        lost.push("system/thermals.json: cost_segments".to_owned());
    }
    let losses = |line: &Json| {
        line.number("losses_percent")
            .is_some_and(|losses| losses > 0.0)
    };
    if with(&file("system/lines.json"), "lines", &losses) {
        lost.push(
            "system/lines.json: losses_percent, which no linear program of 0.18 has".to_owned(),
        );
    }
}

fn config(config: &Json, lost: &mut Vec<String>) {
    let mut say = |key: &str| lost.push(format!("config.json: {key}"));
    let of = |path: &[&str]| {
        let found = path.iter().try_fold(config, |json, key| json.get(key));
        found.filter(|found| !found.is_nothing())
    };
    for path in [
        &["training", "path_stages"][..],
        &["training", "cut_selection", "max_active_per_stage"],
        &["simulation", "num_stages"],
        &["policy", "boundary", "source_stage"],
    ] {
        if of(path).is_some() {
            say(&path.join("."));
        }
    }
    let upper = of(&["upper_bound_evaluation", "enabled"]);
    if upper == Some(&Json::Bool(true)) {
        say("upper_bound_evaluation");
    }
    let method = of(&["modeling", "inflow_non_negativity"]).and_then(|own| own.text("method"));
    if method == Some("bounded_noise") {
        say("modeling.inflow_non_negativity.method \"bounded_noise\"");
    }
    let rules = of(&["training"]).map_or(&[][..], |training| training.all("stopping_rules"));
    for kind in rules.iter().filter_map(|rule| rule.text("type")) {
        if ["first_stage", "simulation"].contains(&kind) {
            say(&format!("training.stopping_rules: the rule {kind}"));
        }
    }
}
