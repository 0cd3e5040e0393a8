//! What truncation costs nobody, and what bounded noise does instead, against extensive forms.

use std::num::NonZero;
use std::path::Path;

use cobre_case::template::{CaseFiles, Template, TemplateColumn};
use cobre_case::{CaseError, Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{
    About, Cadence, Problem, Results, Risk, Settings, Start, StopRule, Stopping, run, run_from,
};
use serde_json::{Value, json};

use crate::tree;

/// The cascade of three stages with three openings each, and inflows that would often be below zero.
fn small(method: &str, deficit: f64, coefficient: f64) -> CaseFiles {
    let mut files: CaseFiles = Template::find("cascade").expect("it is there").files();
    let mut edit = |path: &'static str, change: &dyn Fn(&mut Value)| {
        let bytes = files.remove(path).expect(path);
        let mut value = serde_json::from_slice(&bytes).expect("it is JSON");
        change(&mut value);
        files.insert(path, value.to_string());
    };
    edit("config.json", &|config| {
        config["modeling"]["inflow_non_negativity"]["method"] = json!(method);
    });
    edit("stages.json", &|stages| {
        let list = stages["stages"].as_array_mut().expect("a list");
        list.truncate(3);
        for stage in list {
            stage["num_scenarios"] = json!(3);
        }
    });
    edit("penalties.json", &|penalties| {
        penalties["bus"]["deficit_segments"] = json!([
            {"depth_mw": 50.0, "cost": 800.0},
            {"depth_mw": 10_000.0, "cost": 3000.0},
            {"depth_mw": null, "cost": deficit},
        ]);
    });
    let mut factors = files.remove("scenarios/load_factors.json");
    if let Some(bytes) = factors.take() {
        let mut value: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        let list = value["load_factors"].as_array_mut().expect("a list");
        list.retain(|entry| entry["stage_id"].as_u64() < Some(3));
        files.insert("scenarios/load_factors.json", value.to_string());
    }
    let plants = || TemplateColumn::Ids(vec![0, 0, 0, 1, 1, 1]);
    let stages = || TemplateColumn::Ids(vec![0, 1, 2, 0, 1, 2]);
    let numbers = |value: f64| TemplateColumn::Numbers(vec![value; 6]);
    let columns = [
        (
            "hydro_id",
            TemplateColumn::Ids(vec![0, 0, 0, 0, 1, 1, 1, 1]),
        ),
        (
            "stage_id",
            TemplateColumn::Ids(vec![-1, 0, 1, 2, -1, 0, 1, 2]),
        ),
        ("mean_m3s", TemplateColumn::Numbers(vec![40.0; 8])),
        ("std_m3s", TemplateColumn::Numbers(vec![40.0; 8])),
    ];
    files.table("scenarios/inflow_seasonal_stats.parquet", &columns);
    let columns = [
        ("hydro_id", plants()),
        ("stage_id", stages()),
        ("lag", TemplateColumn::Ids(vec![1; 6])),
        ("coefficient", numbers(coefficient)),
        ("residual_std_ratio", numbers(0.8)),
    ];
    files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
    let columns = [
        ("bus_id", TemplateColumn::Ids(vec![0; 3])),
        ("stage_id", TemplateColumn::Ids(vec![0, 1, 2])),
        ("mean_mw", TemplateColumn::Numbers(vec![500.0; 3])),
        ("std_mw", TemplateColumn::Numbers(vec![0.0; 3])),
    ];
    files.table("scenarios/load_seasonal_stats.parquet", &columns);
    files
}

fn on_disk(files: &CaseFiles) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    directory
}

fn with_risk(path: &Path, risk: Option<Risk>) -> Result<cobre_case::Case, CaseError> {
    let options = Options {
        risk,
        ..Options::default()
    };
    load(path, &options)
}

fn trained(problem: Problem, simulate: usize) -> Results {
    let settings = Settings {
        passes: NonZero::new(4).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(40)]),
        simulate,
        ..Settings::default()
    };
    run(&LocalBackend, problem, &settings, &mut ()).expect("it runs")
}

fn cvar() -> Risk {
    "cvar:0.5,0.35".parse().expect("a measure")
}

/// The inflows of a plant along a path, as the model gives them after what truncation, if asked for, has made of
/// those before.
fn modelled(problem: &Problem, plant: &str, path: &[usize], truncated: bool) -> Vec<f64> {
    let name = format!("inflow_lag1.{plant}");
    let past = problem.states.iter().find(|state| state.name == name);
    let mut past = past.expect("it remembers").initial;
    let mut found = Vec::new();
    for (node, &opening) in path.iter().enumerate() {
        let template = problem.template(node);
        let at = |name: String| {
            template
                .columns
                .iter()
                .position(|column| column.name == name)
        };
        let before = at(format!("{name}.before")).expect("a column");
        let name = format!("inflow_model.{plant}");
        let row = template.rows.iter().position(|row| row.name == name);
        let row = row.expect("it has a model");
        let places = &problem.nodes[node].places;
        let parts = places.split(problem.opening(&problem.values, node, opening));
        let place = places.rows.binary_search(&row).expect("openings change it");
        let terms = &template.rows[row].terms;
        let factor = terms
            .iter()
            .find(|(column, _)| *column == before)
            .expect("a term")
            .1;
        let inflow = parts.row_lower[place] - factor * past;
        found.push(inflow);
        past = if truncated { inflow.max(0.0) } else { inflow };
    }
    found
}

const PLANTS: [&str; 2] = ["upper_lake", "lower_lake"];

/// The mean cost of the whole tree where inflows below zero are zero, without any price.
fn truncated_by_hand(problem: &Problem) -> f64 {
    tree::optimum_given(problem, &|path, name| {
        let plant = name.strip_prefix("truncated.")?;
        let inflows = modelled(problem, plant, path, true);
        Some((-inflows[path.len() - 1]).max(0.0))
    })
}

/// The least inflow in the whole tree.
fn least(problem: &Problem) -> f64 {
    let paths = (0..27).map(|path| [path % 3, path / 3 % 3, path / 9]);
    let inflows = paths.flat_map(|path| {
        let plants = PLANTS.map(|plant| modelled(problem, plant, &path, false));
        plants.into_iter().flatten()
    });
    inflows.fold(f64::INFINITY, f64::min)
}

#[test]
fn bounds_and_estimates_have_no_price_that_nobody_pays() {
    let mut bounds = Vec::new();
    for deficit in [9000.0, 90_000.0] {
        let directory = on_disk(&small("truncation", deficit, 0.6));
        let case = with_risk(directory.path(), None).expect("it is sound");
        let fictitious = case.problem.fictitious;
        assert_eq!(fictitious.standard_error, 0.0, "27 paths are enumerated");
        let expected = truncated_by_hand(&case.problem);
        let results = trained(case.problem, 2000);
        let bound = results.trained.bound;
        assert!(fictitious.mean > 0.02 * bound, "{fictitious:?}");
        assert!((bound / expected - 1.0).abs() < 1e-6, "{bound}, {expected}");
        let simulated = results.simulated.expect("it is simulated");
        let half = simulated.half_width_95.expect("many paths");
        assert!((simulated.mean - bound).abs() < 2.0 * half, "{simulated:?}");
        bounds.push(bound);
    }
    // A deficit cost that is never paid moves nothing.
    assert!((bounds[0] / bounds[1] - 1.0).abs() < 1e-6, "{bounds:?}");
}

#[test]
fn truncation_that_depends_on_the_past_is_refused_under_a_risk_measure() {
    let directory = on_disk(&small("truncation", 9000.0, 0.6));
    let refused = with_risk(directory.path(), Some(cvar())).expect_err("it is refused");
    let said = refused.errors().join("\n");
    for part in [
        "config.json",
        "modeling.inflow_non_negativity.method",
        "bounded_noise",
        "cvar:0.5,0.35",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Without a past there is no price.
    let mut files = small("truncation", 9000.0, 0.6);
    files.remove("scenarios/inflow_ar_coefficients.parquet");
    with_risk(on_disk(&files).path(), Some(cvar())).expect("it is sound");
}

#[test]
fn bounded_noise_under_cvar_reaches_the_extensive_form_and_pays_no_price() {
    let mut bounds = Vec::new();
    for deficit in [9000.0, 90_000.0] {
        let directory = on_disk(&small("bounded_noise", deficit, 0.6));
        let case = with_risk(directory.path(), Some(cvar())).expect("it is sound");
        assert_eq!(case.problem.fictitious.mean, 0.0);
        let least = least(&case.problem);
        assert!(least >= -1e-9, "an inflow of {least}");
        let expected = tree::optimum_given(&case.problem, &|_, _| None);
        let bound = trained(case.problem, 0).trained.bound;
        assert!((bound / expected - 1.0).abs() < 1e-6, "{bound}, {expected}");
        bounds.push(bound);
    }
    assert!((bounds[0] / bounds[1] - 1.0).abs() < 1e-9, "{bounds:?}");
}

#[test]
fn cuts_with_a_price_that_nobody_pays_are_warned_of_and_refused_under_a_risk_measure() {
    let source = on_disk(&small("truncation", 9000.0, 0.6));
    let case = with_risk(source.path(), None).expect("it is sound");
    let scratch = tempfile::tempdir().expect("a directory");
    let output = scratch.path().join("out");
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(2)]),
        checkpoints: Cadence::Never,
        output: Some(output.clone()),
        ..Settings::default()
    };
    let start = Start {
        about: About::new(&*case.tables, "case", case.kind, "local"),
        policy: None,
    };
    run_from(&LocalBackend, case.problem, &settings, &start, &mut ()).expect("it runs");
    for place in [output.clone(), output.join("policy")] {
        let mut files = small("bounded_noise", 9000.0, 0.6);
        let config = files.remove("config.json").expect("it is there");
        let mut config: Value = serde_json::from_slice(&config).expect("it is JSON");
        config["policy"] = json!({"boundary": {"path": place, "source_stage": 1}});
        files.insert("config.json", config.to_string());
        let directory = on_disk(&files);
        let case = with_risk(directory.path(), None).expect("it is legal");
        let said: Vec<String> = case.warnings.iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        assert!(
            said.contains("policy.boundary") && said.contains("nobody pays"),
            "{said}"
        );
        let refused = with_risk(directory.path(), Some(cvar())).expect_err("it is refused");
        let said = refused.errors().join("\n");
        assert!(
            said.contains("policy.boundary") && said.contains("bounded_noise"),
            "{said}"
        );
    }
}

#[test]
fn validate_says_what_bounded_noise_cannot_keep_above_zero() {
    let said = |coefficient: f64| -> Vec<String> {
        let directory = on_disk(&small("bounded_noise", 9000.0, coefficient));
        let case = with_risk(directory.path(), None).expect("it is legal");
        case.warnings.iter().map(ToString::to_string).collect()
    };
    let below = |said: &[String]| {
        said.iter()
            .any(|line| line.contains("can still be below zero"))
    };
    assert!(!below(&said(0.6)));
    let negative = said(-0.6);
    assert!(below(&negative), "{negative:#?}");
    assert!(
        negative
            .iter()
            .any(|line| line.contains("lag 1 is negative")),
        "{negative:#?}"
    );
}
