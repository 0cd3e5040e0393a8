//! Cases with something wrong in them: each is refused, with file, place and what was expected.

use std::path::Path;

use cobre_case::template::{CaseFiles, Template, TemplateColumn};
use cobre_case::{CaseError, Options, load};
use serde_json::{Value, json};

const INFLOWS: &str = "scenarios/inflow_seasonal_stats.parquet";

pub fn sound() -> CaseFiles {
    Template::find("cascade").expect("it is there").files()
}

pub fn text(files: &CaseFiles, path: &str) -> Value {
    let (_, bytes) = files.iter().find(|(known, _)| *known == path).expect(path);
    serde_json::from_slice(bytes).expect("it is JSON")
}

/// The case in a directory of its own.
fn written(files: &CaseFiles) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    directory
}

/// The warnings about a case without errors.
pub fn warnings(files: &CaseFiles) -> Vec<String> {
    let case = load(written(files).path(), &Options::default()).expect("it is legal");
    case.warnings.iter().map(ToString::to_string).collect()
}

/// The errors of a case.
pub fn errors(files: &CaseFiles) -> Vec<String> {
    said_of(written(files).path())
}

fn said_of(directory: &Path) -> Vec<String> {
    let before = listing(directory);
    let loaded = load(directory, &Options::default());
    assert_eq!(listing(directory), before, "nothing is written");
    match loaded {
        Ok(_) => Vec::new(),
        Err(error @ CaseError::Case { .. }) => error.errors(),
        Err(error) => vec![error.to_string()],
    }
}

fn listing(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is there").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path().display().to_string())
        .collect();
    names.sort();
    names
}

/// The sound case with one value of a JSON file changed, by JSON pointer; `Null` removes the key.
fn changed(path: &str, pointer: &str, value: &Value) -> CaseFiles {
    changed_in(sound(), path, pointer, value)
}

/// A case with one value of a JSON file changed, by JSON pointer; `Null` removes the key.
pub fn changed_in(mut files: CaseFiles, path: &str, pointer: &str, value: &Value) -> CaseFiles {
    let mut file = text(&files, path);
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = file.pointer_mut(parent).expect(pointer);
    match parent {
        Value::Object(object) if value.is_null() => {
            object.remove(key);
        }
        Value::Object(object) => {
            object.insert(key.to_owned(), value.clone());
        }
        Value::Array(array) => array[key.parse::<usize>().expect("an index")] = value.clone(),
        other => panic!("{other} has no keys"),
    }
    files.insert(path, file.to_string());
    files
}

/// Changes of JSON files: file, place, value, and what must be said about it.
const WRONG: &str = r#"
config.json | /training/forward_passes | "four" | training.forward_passes: a whole number from 1 to 100000 is expected, "four" is found
config.json | /training/forward_passes | 10000000 | training.forward_passes: a whole number from 1 to 100000 is expected, 10000000 is found
config.json | /simulation/num_scenarios | 4294967295 | simulation.num_scenarios: a whole number from 1 to 10000000 is expected
stages.json | /stages/0/num_scenarios | 4294967295 | stages[0].num_scenarios: a whole number from 1 to 100000 is expected, 4294967295 is found
config.json | /training/forward_passes | null | training.forward_passes: the key is missing
config.json | /training/pases | 4 | training.pases: unknown key; forward_passes, 
config.json | /training/stopping_rules | [] | training.stopping_rules: there is no rule
config.json | /training/stopping_rules/0/limit | 0 | training.stopping_rules[0].limit: a whole number that is at least 1
config.json | /training/stopping_rules/0/seconds | 9 | stopping_rules[0].seconds: the rule has no such key
config.json | /training/cut_selection/method | "luck" | cut_selection.method: "luck" is none of level1, lml1, domination
config.json | /training/selection | {"method": "enumerated"} | training.forward_passes: selection says how many paths there are
config.json | /training/selection | {"method": "lucky"} | training.selection.method: "lucky" is none of enumerated
config.json | /training/scenario_source/inflow/scheme | "lucky" | inflow.scheme: "lucky" is none of in_sample, out_of_sample, external, historical
config.json | /policy | {"mode": "warm_start"} | policy.mode: "warm_start" is not supported
config.json | /exports | {"states": true} | exports.states: true is not supported
config.json | /modeling/inflow_non_negativity/method | "hope" | method: "hope" is none of none, penalty, truncation
stages.json | /policy_graph/type | "endless" | policy_graph.type: "endless" is none of finite_horizon, cyclic
stages.json | /policy_graph | {"type": "cyclic", "annual_discount_rate": 0.0} | policy_graph.annual_discount_rate: a cyclic study costs infinitely much without a discount
stages.json | /season_definitions | {} | season_definitions.cycle_type: the key is missing
stages.json | /season_definitions | {"cycle_type": "monthly", "seasons": [{"id": 0}]} | season_definitions.seasons[0].month_start: the key is missing
stages.json | /season_definitions | {"cycle_type": "monthly", "seasons": [{"id": 0, "month_start": 1}, {"id": 0, "month_start": 1}]} | season_definitions.seasons[1].id: season 0 is there already
stages.json | /season_definitions | {"cycle_type": "weekly", "seasons": [{"id": 52}]} | season_definitions.seasons[0].id: a week from 0 to 51 is expected, 52 is found
stages.json | /season_definitions | {"cycle_type": "custom", "seasons": [{"id": 0, "month_start": 2, "day_start": 30}]} | season_definitions.seasons[0].day_start: month 2 has no day 30
stages.json | /season_definitions | {"cycle_type": "monthly", "seasons": [{"id": 0, "month_start": 1}]} | stages[1].season_id: there is no season 1 in season_definitions
stages.json | /stages/0/sampling_method | "selective" | stages[0].sampling_method: "selective" is not supported
stages.json | /stages/0/sampling_method | "historical_residuals" | stages[0].sampling_method: historical_residuals needs a year
config.json | /estimation | {"max_order": 13} | estimation.max_order: a whole number from 0 to 12 is expected, 13 is found
config.json | /estimation | {"order_selection": "aic"} | estimation.order_selection: "aic" is none of pacf, pacf_annual
initial_conditions.json | /recent_observations | [{"hydro_id": 0, "start_date": "2025-12-20", "end_date": "2026-01-01", "value_m3s": 3}] | recent_observations: they need season_definitions in stages.json
stages.json | /policy_graph/transitions | [{"source_id": 0, "target_id": 2, "probability": 1}] | policy_graph.transitions[0].target_id: 2 does not follow stage 0: 1 follows it
stages.json | /policy_graph/transitions | [{"source_id": 0, "target_id": 1, "probability": 0.5}] | policy_graph.transitions[0].probability: 0.5 is found, 1 is expected
stages.json | /policy_graph/transitions | [{"source_id": 0, "target_id": 1, "probability": 1}] | policy_graph.transitions: there is none from stage 1
stages.json | /policy_graph/transitions | [{"source_id": 99, "target_id": 1, "probability": 1}] | policy_graph.transitions[0].source_id: there is no stage 99
stages.json | /stages/3/start_date | "2026-02-30" | stages[3].start_date: a date such as
stages.json | /stages/3/id | 7 | stages[3].id: 7 does not follow 2
stages.json | /stages/3/blocks/1/hours | 0 | stages[3].blocks[1].hours: a number above 0 is expected, 0 is found
stages.json | /stages/3/risk_measure | {"cvar": {"alpha": 2, "lambda": 0.5}} | stages[3].risk_measure.cvar.alpha: a number from 0 to 1
stages.json | /stages/0/state_variables | {"storage": false} | stages[0].state_variables.storage: false, but plant upper_lake can store
stages.json | /stages/0/state_variables | {"inflow_lags": false} | inflow_lags: false, but plant upper_lake has AR coefficients
stages.json | /pre_study_stages | [] | add a row for stage -1, or its season to pre_study_stages
stages.json | /pre_study_stages | [{"id": -1, "start_date": "2025-12-01", "end_date": "2026-01-01", "season_id": 11}, {"id": -1, "start_date": "2025-12-01", "end_date": "2026-01-01", "season_id": 3}] | pre_study_stages[1].id: stage -1 is there already, at [0]
penalties.json | /hydro/spillage_cost | 1e300 | hydro.spillage_cost: a number that is at least 0 is expected, 1e300 (beyond ±1e15) is found
penalties.json | /hydro/spillage_cost | -1 | hydro.spillage_cost: a number that is at least 0 is expected, -1 is found
penalties.json | /bus/deficit_segments/1/depth_mw | 10 | bus.deficit_segments[1].depth_mw: the last segment has no end
penalties.json | /bus/deficit_segments/1/cost | 10 | bus.deficit_segments[1].cost: 10 is below the 800
initial_conditions.json | /storage/0/value_hm3 | 5000 | storage[0].value_hm3: the initial storage is 5000; it must be from 0 to 900
initial_conditions.json | /storage/0/hydro_id | 9 | storage[0].hydro_id: there is no hydro plant 9
initial_conditions.json | /past_inflows/0/values_m3s | [] | past_inflows: hydro plant 0 (upper lake) needs 1 past inflows
system/buses.json | /buses/0/id | 3 | there is no bus 0
system/buses.json | /buses | [{"id": 0, "name": "a"}, {"id": 0, "name": "b"}] | buses[1].id: bus 0 is there already, at [0]
system/hydros.json | /hydros/1/downstream_id | 0 | hydros[1].downstream_id: water flows in a circle: 0 → 1 → 0
system/hydros.json | /hydros/0/downstream_id | 5 | hydros[0].downstream_id: there is no hydro plant 5
system/hydros.json | /hydros/0/generation/max_turbined_m3s | -1 | hydros[0].generation.max_turbined_m3s: a number that is at least 0 is expected, -1 is found
system/hydros.json | /hydros/0/generation/min_turbined_m3s | 999 | hydros[0].generation.min_turbined_m3s: 999 is above the most, 180
system/hydros.json | /hydros/0/specific_productivity_mw_per_m3s_per_m | -1 | hydros[0].specific_productivity_mw_per_m3s_per_m: a number that is at least 0
system/hydros.json | /hydros/0/generation/model | "fpha" | hydros[0].generation.model: fpha needs an entry of the plant in system/hydro_production_models.json
system/hydros.json | /hydros/0/generation/productivity_mw_per_m3s | null | hydros[0].generation.productivity_mw_per_m3s: the key is missing, and stages 0, 1, 2
system/hydros.json | /hydros/0/evaporation | {"coefficients_mm": [1, 2]} | hydros[0].evaporation.coefficients_mm: 12 numbers are expected, one per month; 2 are found
system/hydros.json | /hydros/0/evaporation | {"coefficients_mm": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]} | hydro plant 0 (upper lake): there is no row, which evaporation needs
system/hydros.json | /hydros/0/evaporation | {"coefficients_mm": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "reference_volumes_hm3": [5, 5, 5, 9999, 5, 5, 5, 5, 5, 5, 5, 5]} | hydros[0].evaporation.reference_volumes_hm3[3]: 9999 is not from 0 to 900
system/hydros.json | /hydros/0/diversion | {"downstream_id": 8, "max_flow_m3s": 5} | hydros[0].diversion.downstream_id: there is no hydro plant 8
system/hydros.json | /hydros/1/diversion | {"downstream_id": 0, "max_flow_m3s": 5} | hydros[1].diversion.downstream_id: water flows in a circle: 0 → 1 → 0
system/hydros.json | /hydros/1/travel_time_hours | 5 | hydros[1].travel_time_hours: water of this plant reaches no other
system/hydros.json | /hydros/0/travel_time_hours | -5 | hydros[0].travel_time_hours: a number that is at least 0 is expected
system/hydros.json | /hydros/0/filling | {"start_stage_id": 0} | hydros[0].filling: filling ends where entry_stage_id says
system/hydros.json | /hydros/0/entry_stage_id | "soon" | hydros[0].entry_stage_id: a whole number
stages.json | /stages/0/block_mode | "sequential" | stages[0].block_mode: "sequential" is not supported: use chronological
initial_conditions.json | /filling_storage | [{"hydro_id": 0, "value_hm3": 5}] | filling_storage[0].hydro_id: hydro plant 0 has no filling
initial_conditions.json | /past_defluences | [{"hydro_id": 0, "start_date": "2025-12-01", "end_date": "2026-01-01", "value_m3s": 5}] | past_defluences[0].hydro_id: hydro plant 0 has no travel_time_hours
penalties.json | /hydro/evaporation_violation_neg_cost | -1 | hydro.evaporation_violation_neg_cost: a number that is at least 0 is expected
system/thermals.json | /thermals/0/generation/max_mw | -5 | thermals[0].generation.max_mw: a number that is at least 0 is expected, -5 is found
system/thermals.json | /thermals/1/id | 0 | thermals[1].id: thermal plant 0 is there already
system/thermals.json | /thermals/0/name | 7 | thermals[0].name: a text is expected, 7 is found
scenarios/load_factors.json | /load_factors/0/block_factors/1/block_id | 4 | load_factors[0].block_factors[1].block_id: stage 0 has no block 4
scenarios/load_factors.json | /load_factors/0/block_factors/1/block_id | 0 | load_factors[0].block_factors[1].block_id: block 0 has a factor already
scenarios/correlation.json | /schedule | [{"stage_id": 3, "profile_name": "default"}, {"stage_id": 3, "profile_name": "default"}] | schedule[1].stage_id: stage 3 has a profile already
scenarios/correlation.json | /profiles/default/correlation_groups/0/matrix/0/1 | 0.5 | matrix[0][1]: the matrix is not symmetric
scenarios/correlation.json | /profiles/default/correlation_groups/0/entities/0/id | 8 | entities[0].id: there is no hydro plant 8
"#;

#[test]
fn every_wrong_value_is_named_with_its_place() {
    for line in WRONG.lines().filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.splitn(4, " | ").collect();
        let [path, pointer, value, said] = parts[..] else {
            panic!("{line} has four parts");
        };
        let value = serde_json::from_str(value).expect("JSON");
        let found = errors(&changed(path, pointer, &value));
        let named = found.iter().any(|error| error.contains(said.trim_end()));
        assert!(named, "{line}: not in {found:#?}");
    }
}

#[test]
fn all_errors_are_said_at_once() {
    let mut files = sound();
    let mut wrong = 0;
    let paths = [
        "config.json",
        "penalties.json",
        "system/thermals.json",
        "system/lines.json",
    ];
    for path in paths {
        let mut file = text(&files, path);
        file["surprise"] = json!(1);
        files.insert(path, file.to_string());
        wrong += 1;
    }
    files.remove("system/buses.json");
    files.insert("stages.json", "{\"stages\": [1, 2}");
    files.insert(INFLOWS, "PAR1");
    let found = errors(&files);
    assert_eq!(found.len(), wrong + 3, "{found:#?}");
    for said in [
        "system/buses.json: the file is missing",
        "stages.json: it is no sound JSON",
        "inflow_seasonal_stats.parquet: it is no sound Parquet file",
        "system/lines.json: surprise: unknown key",
    ] {
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
}

#[test]
fn a_key_that_is_there_twice_is_an_error() {
    let mut files = sound();
    files.insert("system/lines.json", r#"{"lines": [], "lines": []}"#);
    let found = errors(&files);
    assert_eq!(found, ["system/lines.json: lines: the key is there twice"]);
}

#[test]
fn files_that_are_refused_or_unknown_are_named() {
    let mut files = sound();
    files.insert("scenarios/external_scenarios.parquet", "x");
    files.insert("scenarios/inflow_seasonal_stat.parquet", "x");
    let found = errors(&files);
    assert!(
        found[0].contains("scenarios/external_scenarios.parquet: not supported"),
        "{found:#?}"
    );
    assert!(
        found[1].contains("scenarios/inflow_seasonal_stat.parquet: no file of the format"),
        "{found:#?}"
    );
}

#[test]
fn files_that_nothing_reads_are_named() {
    let (load, factors) = ("load_seasonal_stats.parquet", "scenarios/load_factors.json");
    let mut files = sound();
    let bytes = files
        .remove(&format!("scenarios/{load}"))
        .expect("it is there");
    files.insert(&format!("scenario/{load}"), bytes.clone());
    files.insert(load, bytes.clone());
    let said = warnings(&files);
    let home = format!("{load}: nothing reads it here; its place is scenarios/{load}");
    assert_eq!(said[..2], [home.clone(), format!("scenario/{home}")]);
    assert!(said[2].contains("no bus has any load"), "{said:#?}");
    // A directory and a link to nothing are not tables and files, but they are not nothing either.
    let mut files = sound();
    files.remove(&format!("scenarios/{load}"));
    files.insert(&format!("scenarios/{load}/part-0.parquet"), bytes);
    files.remove(factors);
    let directory = written(&files);
    let link = directory.path().join(factors);
    std::os::unix::fs::symlink("/nowhere/at/all", link).expect("a link");
    let found = said_of(directory.path());
    assert_eq!(
        found[1],
        format!("scenarios/{load}: it cannot be read: it is a directory; a file is expected")
    );
    assert!(
        found[0].starts_with("scenarios/load_factors.json: it cannot be read"),
        "{found:#?}"
    );
}

#[test]
fn text_of_a_file_stays_on_its_line() {
    let mut files = sound();
    files.insert(
        "system/lines.json",
        r#"{"lines": "\u001b[2J\nerror: all is well"}"#,
    );
    let said =
        "system/lines.json: lines: a list is expected, \"\u{1b}[2J\\nerror: all is well\" is found";
    assert_eq!(errors(&files), [said]);
}

#[test]
fn a_directory_without_a_case_is_said_to_be_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = load(directory.path(), &Options::default()).expect_err("it is empty");
    assert!(error.to_string().contains("not a case"), "{error}");
}

/// Inflow statistics of the two plants in all twelve stages.
fn inflows(change: impl Fn(usize, &mut (i32, i32, f64, f64)) -> bool) -> CaseFiles {
    let mut rows = Vec::new();
    for hydro in 0..2 {
        for stage in 0..12 {
            let mut row = (hydro, stage, 50.0, 5.0);
            if change(rows.len(), &mut row) {
                rows.push(row);
            }
        }
    }
    let mut files = sound();
    let columns = [
        (
            "hydro_id",
            TemplateColumn::Ids(rows.iter().map(|row| row.0).collect()),
        ),
        (
            "stage_id",
            TemplateColumn::Ids(rows.iter().map(|row| row.1).collect()),
        ),
        (
            "mean_m3s",
            TemplateColumn::Numbers(rows.iter().map(|row| row.2).collect()),
        ),
        (
            "std_m3s",
            TemplateColumn::Numbers(rows.iter().map(|row| row.3).collect()),
        ),
    ];
    files.table(INFLOWS, &columns);
    files
}

#[test]
fn wrong_rows_of_a_table_are_named() {
    assert_eq!(errors(&inflows(|_, _| true)), [""; 0]);
    let missing = errors(&inflows(|_, row| row.0 != 1 || !(3..5).contains(&row.1)));
    assert!(
        missing[0].contains("hydro plant 1 (lower lake): there is no row for stages 3, 4"),
        "{missing:#?}"
    );
    let nan = errors(&inflows(|place, row| {
        if place == 6 {
            row.2 = f64::NAN;
        }
        true
    }));
    assert!(
        nan[0].contains("row 7: mean_m3s: a number is expected, NaN is found"),
        "{nan:#?}"
    );
    let negative = errors(&inflows(|place, row| {
        if place == 2 {
            row.3 = -1.0;
        }
        true
    }));
    assert!(
        negative[0].contains("row 3: std_m3s: a number that is at least 0"),
        "{negative:#?}"
    );
    let dangling = errors(&inflows(|place, row| {
        if place == 0 {
            (row.0, row.1) = (7, 99);
        }
        true
    }));
    assert!(
        dangling
            .iter()
            .any(|error| error.contains("row 1: there is no hydro plant 7"))
    );
    assert!(
        dangling
            .iter()
            .any(|error| error.contains("row 1: there is no stage 99"))
    );
    let twice = errors(&inflows(|place, row| {
        if place == 1 {
            row.1 = 0;
        }
        true
    }));
    assert!(
        twice[0].contains("row 2: there is a row of hydro plant 0, stage 0 already"),
        "{twice:#?}"
    );
}

#[test]
fn a_mean_below_zero_is_suspicious_without_any_deviation() {
    let mut files = inflows(|_, row| {
        (row.2, row.3) = (-50.0, 0.0);
        true
    });
    files.remove("scenarios/inflow_ar_coefficients.parquet");
    let said = warnings(&files);
    assert!(
        said[0].contains("negative inflows are likely in stage 0 (mean -50, deviation 0)"),
        "{said:#?}"
    );
}

#[test]
fn an_empty_table_is_an_error_if_it_could_be_about_something() {
    let mut files = sound();
    let ids = || TemplateColumn::Ids(Vec::new());
    files.table(
        "constraints/line_bounds.parquet",
        &[("line_id", ids()), ("stage_id", ids())],
    );
    assert_eq!(errors(&files), [""; 0], "there are no lines");
    files.table(
        "constraints/thermal_bounds.parquet",
        &[("thermal_id", ids()), ("stage_id", ids())],
    );
    let said = "constraints/thermal_bounds.parquet: the table has no rows; give it some, or remove the file";
    assert_eq!(errors(&files), [said]);
}

#[test]
fn a_row_is_counted_as_the_file_has_it() {
    let mut files = sound();
    let columns = [
        ("thermal_id", TemplateColumn::Ids(vec![0, 0, 9, 0, 0, 0])),
        ("stage_id", TemplateColumn::Ids(vec![0, 1, 0, 0, 0, 0])),
        ("block_id", TemplateColumn::Ids(vec![0, 0, 1, 0, 2, -1])),
    ];
    files.table("constraints/thermal_bounds.parquet", &columns);
    let file = "constraints/thermal_bounds.parquet";
    let said = [
        "row 3: there is no thermal plant 9",
        "row 4: there is a row of thermal plant 0, stage 0, block 0 already",
        "row 5: stage 0 has no block 2",
        "row 6: stage 0 has no block -1",
    ];
    assert_eq!(errors(&files), said.map(|said| format!("{file}: {said}")));
}

#[test]
fn reservoirs_that_only_tables_know_need_inflows_and_keep_their_water() {
    let mut files = inflows(|_, row| row.0 == 0);
    files.remove("scenarios/inflow_ar_coefficients.parquet");
    let mut hydros = text(&files, "system/hydros.json");
    hydros["hydros"][1]["reservoir"]["max_storage_hm3"] = json!(0.0);
    files.insert("system/hydros.json", hydros.to_string());
    let mut initial = text(&files, "initial_conditions.json");
    initial["storage"]
        .as_array_mut()
        .expect("a list")
        .truncate(1);
    files.insert("initial_conditions.json", initial.to_string());
    assert_eq!(errors(&files), [""; 0], "a plant without a reservoir");
    let most = |hydro: i32, most: f64| {
        [
            ("hydro_id", TemplateColumn::Ids(vec![hydro; 12])),
            ("stage_id", TemplateColumn::Ids((0..12).collect())),
            ("max_storage_hm3", TemplateColumn::Numbers(vec![most; 12])),
        ]
    };
    let bounds = "constraints/hydro_bounds.parquet";
    files.table(bounds, &most(1, 10.0));
    let found = errors(&files);
    assert!(
        found[0].contains("hydro plant 1 (lower lake): there is no inflow, but"),
        "{found:#?}"
    );
    // Water that may not stay must leave; it is not forgotten.
    files.table(bounds, &most(0, 0.0));
    let case = load(written(&files).path(), &Options::default()).expect("it is sound");
    assert_eq!(case.problem.initial_state(), [500.0]);
}

#[test]
fn a_table_that_is_compressed_by_something_else_or_too_long_is_said_to_be() {
    let mut files = sound();
    let mut table = files.remove(INFLOWS).expect("it is there");
    // In the footer the name of a column comes just before its codec: 6 is zstd and 2 is gzip, each twice.
    let codec = b"mean_m3s\x15\x0c";
    let found = table.windows(codec.len()).position(|part| part == codec);
    table[found.expect("it is compressed by zstd") + codec.len() - 1] = 4;
    files.insert(INFLOWS, table);
    let said = format!("{INFLOWS}: it is compressed by GZIP; snappy, zstd or nothing is expected");
    assert_eq!(errors(&files)[0], said);
    // 2 plants in 12 stages and 60 before them.
    let ids = || TemplateColumn::Ids(vec![0; 1_000_001]);
    files.table(INFLOWS, &[("hydro_id", ids()), ("stage_id", ids())]);
    let said = format!("{INFLOWS}: it has 1000001 rows; at most 1288 are expected");
    assert_eq!(errors(&files)[0], said);
}

#[test]
fn of_many_errors_of_a_table_the_first_are_told_and_the_rest_counted() {
    let found = errors(&inflows(|_, row| {
        row.2 = f64::NAN;
        true
    }));
    assert!(found[4].contains("row 5: mean_m3s"), "{found:#?}");
    assert_eq!(found[5], format!("{INFLOWS}: and 19 more errors"));
    assert_eq!(found.len(), 6);
}

#[test]
fn unknown_columns_are_refused_before_anything_is_decoded() {
    let mut files = sound();
    let columns = [
        ("thermal_id", TemplateColumn::Ids(vec![0; 3])),
        ("stage_id", TemplateColumn::Ids(vec![99; 3])),
        ("cost", TemplateColumn::Numbers(vec![f64::NAN; 3])),
    ];
    files.table("constraints/thermal_bounds.parquet", &columns);
    let found = errors(&files);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("column cost: unknown column"),
        "{found:#?}"
    );
}

#[test]
fn a_pipe_or_a_device_is_refused_and_nobody_waits() {
    for file in ["config.json", "stages.json", INFLOWS] {
        let directory = written(&sound());
        let place = directory.path().join(file);
        std::fs::remove_file(&place).expect("it was there");
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.expect("mkfifo is there").success());
        let found = said_of(directory.path());
        let said = "it cannot be read: it is a pipe; a file is expected";
        assert_eq!(found[0], format!("{file}: {said}"));
        std::fs::remove_file(&place).expect("it was there");
        std::os::unix::fs::symlink("/dev/zero", &place).expect("a link");
        let found = said_of(directory.path());
        assert!(
            found[0].contains("it is a device; a file is expected"),
            "{found:#?}"
        );
    }
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("a.sof.json");
    let made = std::process::Command::new("mkfifo").arg(&place).status();
    assert!(made.expect("mkfifo is there").success());
    let error = load(&place, &Options::default()).expect_err("it is a pipe");
    let source = std::error::Error::source(&error).expect("the system said it");
    assert_eq!(source.to_string(), "it is a pipe; a file is expected");
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_unreadable_and_not_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    // Root may look into everything but a link to itself.
    let place = directory.path().join("config.json");
    std::os::unix::fs::symlink("config.json", &place).expect("a link");
    let error = load(directory.path(), &Options::default()).expect_err("no case");
    assert!(error.to_string().starts_with("cannot read "), "{error}");
    std::fs::remove_file(&place).expect("it was there");
    let error = load(directory.path(), &Options::default()).expect_err("no case");
    assert!(error.to_string().contains("not a case"), "{error}");
}

#[test]
fn an_object_of_very_many_keys_takes_time_in_proportion() {
    let mut files = sound();
    let keys: Vec<String> = (0..200_000).map(|key| format!("\"key{key}\": 0")).collect();
    files.insert("penalties.json", format!("{{{}}}", keys.join(",")));
    let start = std::time::Instant::now();
    let found = errors(&files);
    // Every key with every other would take 20 s and more on an idle machine.
    assert!(start.elapsed().as_secs() < 15, "{:?}", start.elapsed());
    let last = found.iter().find(|error| error.contains("more errors"));
    assert!(
        last.is_some_and(|last| last.contains("penalties.json: and 1999")),
        "{last:?}"
    );
}

#[test]
fn a_case_too_large_to_be_built_is_refused_with_the_numbers() {
    let mut stages = text(&sound(), "stages.json");
    for stage in stages["stages"].as_array_mut().expect("a list") {
        stage["num_scenarios"] = json!(100_000);
    }
    let mut files = sound();
    let mut hydros = text(&files, "system/hydros.json");
    let one = hydros["hydros"][1].clone();
    for id in 100..200 {
        let mut plant = one.clone();
        plant["id"] = json!(id);
        hydros["hydros"].as_array_mut().expect("a list").push(plant);
    }
    files.insert("system/hydros.json", hydros.to_string());
    files.insert("stages.json", stages.to_string());
    let found = errors(&files);
    let said = "stages.json: the openings of all stages put about";
    assert!(found[0].starts_with(said), "{found:#?}");
    assert!(
        found[0].contains("at most 67108864 are possible"),
        "{found:#?}"
    );
    let mut stages = text(&sound(), "stages.json");
    let block = json!({"id": 0, "name": "b", "hours": 1.0});
    stages["stages"][0]["blocks"] = json!(vec![block; 1_000_000]);
    files.insert("stages.json", stages.to_string());
    let found = errors(&files);
    let said = found
        .iter()
        .find(|error| error.contains("at most 8388608 are possible"));
    assert!(said.is_some(), "{found:#?}");
}

#[test]
fn an_empty_table_lacks_the_inflow_of_reservoirs() {
    let lacks = |found: &[String]| {
        let said = "there is no inflow, but the plant has a reservoir";
        found.iter().filter(|error| error.ends_with(said)).count()
    };
    let found = errors(&inflows(|_, _| false));
    assert!(found[0].contains("the table has no rows"), "{found:#?}");
    assert_eq!(lacks(&found), 2, "{found:#?}");
    let mut files = sound();
    files.remove(INFLOWS);
    let found = errors(&files);
    assert_eq!(lacks(&found), 2, "{found:#?}");
}

#[test]
fn wrong_columns_of_a_table_are_named() {
    let mut files = sound();
    let columns = [
        ("thermal_id", TemplateColumn::Ids(vec![0])),
        ("stage_id", TemplateColumn::Numbers(vec![0.0])),
        ("cost", TemplateColumn::Numbers(vec![1.0])),
    ];
    files.table("constraints/thermal_bounds.parquet", &columns);
    let found = errors(&files);
    assert!(
        found[0].contains("column stage_id: int32 is expected, double is found"),
        "{found:#?}"
    );
    assert!(
        found[1].contains("column cost: unknown column; thermal_id, stage_id"),
        "{found:#?}"
    );
    let columns = [
        ("hydro_id", TemplateColumn::Ids(vec![0])),
        ("stage_id", TemplateColumn::Ids(vec![0])),
        ("mean_m3s", TemplateColumn::Numbers(vec![1.0])),
        ("std_m3s", TemplateColumn::Numbers(vec![1.0])),
        ("ar_order", TemplateColumn::Maybe(vec![Some(1.0)])),
    ];
    let mut files = sound();
    files.table(INFLOWS, &columns);
    let found = errors(&files);
    assert!(
        found[0].contains("column ar_order: not supported"),
        "{found:#?}"
    );
}

#[test]
fn a_parquet_file_that_is_cut_anywhere_is_an_error_and_not_a_panic() {
    let files = sound();
    let (_, whole) = files
        .iter()
        .find(|(path, _)| *path == INFLOWS)
        .expect("it is there");
    let whole = whole.to_vec();
    for length in (0..whole.len()).step_by(7) {
        let mut files = files.clone();
        files.insert(INFLOWS, &whole[..length]);
        let found = errors(&files);
        assert!(
            found[0].contains("no sound Parquet file"),
            "{length}: {found:#?}"
        );
    }
    // A byte that is wrong may go unnoticed, but nothing worse.
    for place in (0..whole.len()).step_by(11) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        let mut files = files.clone();
        files.insert(INFLOWS, bytes);
        errors(&files);
    }
}

#[test]
fn what_is_legal_but_suspicious_is_said() {
    let mut files = changed(
        "system/hydros.json",
        "/hydros/0/reservoir/max_storage_hm3",
        &json!(9e8),
    );
    files.insert(
        "system/thermals.json",
        json!({"thermals": [{
            "id": 0, "name": "gold", "bus_id": 0, "cost_per_mwh": 9000.0,
            "generation": {"min_mw": 0.0, "max_mw": 1.0},
        }]})
        .to_string(),
    );
    let wind = json!({"non_controllable_sources": [
        {"id": 4, "name": "wind", "bus_id": 0, "max_generation_mw": 30.0},
    ]});
    files.json("system/non_controllable_sources.json", wind);
    let columns = [
        ("ncs_id", TemplateColumn::Ids(vec![4; 12])),
        ("stage_id", TemplateColumn::Ids((0..12).collect())),
        ("mean", TemplateColumn::Numbers(vec![12.0; 12])),
        ("std", TemplateColumn::Numbers(vec![0.0; 12])),
    ];
    files.table("scenarios/non_controllable_stats.parquet", &columns);
    let mut stages = text(&files, "stages.json");
    stages["policy_graph"]["annual_discount_rate"] = json!(12.0);
    files.insert("stages.json", stages.to_string());
    let mut config = text(&files, "config.json");
    config["modeling"]["inflow_non_negativity"]["method"] = json!("penalty");
    files.insert("config.json", config.to_string());
    let said = warnings(&files);
    for part in [
        "source 4 (wind): the mean is a part of the capacity, but 12 is found; is it in MW?",
        "annual_discount_rate: 12 is 1200 % per year",
        "water can be added to the inflow of hydro plant 0 (upper lake) for 1000 $/(m³/s·h), and may save 5600:",
        "more than any on earth; is it in m³?",
        "gold): its energy costs 9000 $/MWh, more than load that is not served",
        "is above the capacity of all plants",
    ] {
        assert!(
            said.iter().any(|warning| warning.contains(part)),
            "{part}: {said:#?}"
        );
    }
}

#[test]
fn templates_are_sound_and_nothing_about_them_is_suspicious() {
    for template in cobre_case::template::TEMPLATES {
        let directory = tempfile::tempdir().expect("a directory");
        template
            .files()
            .write(directory.path())
            .expect("it can be written");
        let case = load(directory.path(), &Options::default());
        let case = case.unwrap_or_else(|error| panic!("{}: {error}", template.name));
        assert_eq!(case.warnings, [], "{}", template.name);
    }
}

#[test]
fn a_reservoir_without_an_entry_starts_empty_and_that_is_told() {
    let files = changed("initial_conditions.json", "/storage", &json!([]));
    let said = warnings(&files);
    let told = |line: &&String| line.contains("it starts empty") && line.contains("upper lake");
    assert!(said.iter().any(|line| told(&line)), "{said:#?}");
    assert_eq!(warnings(&sound()), Vec::<String>::new());
}

#[test]
fn coefficients_and_ratios_that_contradict_each_other_are_told() {
    let mut files = sound();
    let rows = || (0..2).flat_map(|plant| (0..12).map(move |stage| (plant, stage)));
    let columns = [
        (
            "hydro_id",
            TemplateColumn::Ids(rows().map(|row| row.0).collect()),
        ),
        (
            "stage_id",
            TemplateColumn::Ids(rows().map(|row| row.1).collect()),
        ),
        ("lag", TemplateColumn::Ids(vec![1; 24])),
        ("coefficient", TemplateColumn::Numbers(vec![0.6; 24])),
        ("residual_std_ratio", TemplateColumn::Numbers(vec![1.0; 24])),
    ];
    files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
    let said = warnings(&files);
    let told = |line: &String| line.contains("contradict each other") && line.contains("156 %");
    assert_eq!(
        said.iter().filter(|line| told(line)).count(),
        2,
        "{said:#?}"
    );
}
