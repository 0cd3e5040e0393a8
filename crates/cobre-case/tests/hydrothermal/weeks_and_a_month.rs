//! Weeks before a month that branches, as short-term studies have them: the last weeks reach into the month, belong to
//! the season before, and have one scenario where the month has several.

use cobre_case::template::CaseFiles;
use cobre_case::{Options, load};
use cobre_results::Results;
use cobre_sddp::Solver;
use serde_json::{Value, json};

use crate::bad_cases::{errors, warnings};
use crate::hand_base::{base, plant, with_plants};
use crate::inflow_history::months;
use crate::tables::{Whole, simulate};

const EXTERNAL: &str = "scenarios/external_inflow_scenarios.csv";

/// First days, days after the last, and seasons.
const STAGES: [(&str, &str, i32); 4] = [
    ("2026-04-18", "2026-04-25", 3),
    ("2026-04-25", "2026-05-02", 3),
    ("2026-05-02", "2026-05-09", 3),
    ("2026-05-01", "2026-06-01", 4),
];

fn case() -> CaseFiles {
    let mut files = base();
    with_plants(&mut files, &[plant()], STAGES.len());
    let stages = STAGES.iter().enumerate();
    let stages = stages.map(|(id, (start, end, season))| {
        json!({"id": id, "start_date": start, "end_date": end, "season_id": season,
            "num_scenarios": 1, "blocks": [{"id": 0, "name": "b", "hours": 168}]})
    });
    let stages: Vec<Value> = stages.collect();
    files.json(
        "stages.json",
        json!({"policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0},
            "season_definitions": months(), "stages": stages}),
    );
    files.insert(
        "scenarios/load_seasonal_stats.csv",
        "bus_id,stage_id,mean_mw,std_mw\n0,0,50,0\n0,1,50,0\n0,2,50,0\n0,3,50,0\n",
    );
    files.json(
        "config.json",
        json!({"training": {"forward_passes": 1,
                "stopping_rules": [{"type": "iteration_limit", "limit": 5}]},
            "simulation": {"enabled": true, "num_scenarios": 3,
                "scenario_source": {"seed": 42, "inflow": {"scheme": "external"}}},
            "modeling": {"inflow_non_negativity": {"method": "none"}}}),
    );
    files.insert(
        EXTERNAL,
        "stage_id,scenario_id,hydro_id,value_m3s\n0,0,0,45\n1,0,0,55\n2,0,0,60\n3,0,0,40\n3,1,0,50\n3,2,0,70\n",
    );
    files
}

fn simulated(files: &CaseFiles) -> (Results, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let case = load(directory.path(), &Options::default()).expect("it is sound");
    let output = tempfile::tempdir().expect("a directory");
    (simulate(case, Solver::Check, output.path()), output)
}

#[test]
fn weeks_that_reach_into_a_month_share_their_scenario_with_all_of_it() {
    let files = case();
    let (results, _keep) = simulated(&files);
    let table = Whole::read(&results, "hydros").expect("there is a plant");
    let expected = [40.0, 50.0, 70.0].map(|last| [45.0, 55.0, 60.0, last]);
    let (found, expected) = (table.of("inflow_m3s"), expected.concat());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    let said = warnings(&files).join("\n");
    for part in [
        "stages 0, 1, 2 have rows of one scenario: all scenarios have these values there",
        "stages[3].start_date: it is not the end of the stage before, 2026-05-09",
        "no day of the stage, 2026-05-02 to 2026-05-09, is in season 3; it counts as a part of it",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_is_under_way_needs_stages_that_adjoin() {
    let mut travels = plant();
    travels["travel_time_hours"] = json!(24);
    let mut files = case();
    let plants = json!({"hydros": [travels]});
    files.json("system/hydros.json", plants);
    let found = errors(&files).join("\n");
    assert!(found.contains("which travel_time_hours needs"), "{found}");
}

#[test]
fn a_stage_with_some_of_the_scenarios_is_refused() {
    let mut files = case();
    files.insert(
        EXTERNAL,
        "stage_id,scenario_id,hydro_id,value_m3s\n0,0,0,45\n1,0,0,55\n2,0,0,60\n2,1,0,61\n3,0,0,40\n3,1,0,50\n3,2,0,70\n",
    );
    let found = errors(&files).join("\n");
    assert!(
        found.contains("has no row in scenario 2, stage 2"),
        "{found}"
    );
}
