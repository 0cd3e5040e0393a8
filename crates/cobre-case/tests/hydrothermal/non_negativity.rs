//! Inflows below zero: what each method makes of them.

use cobre_case::template::{CaseFiles, Template, TemplateColumn};
use cobre_case::{Case, Options, load};
use cobre_sddp::{Problem, Solver};

use crate::balances::{Decided, decide};
use crate::reference_cases::solve;

const PLANTS: [&str; 2] = ["upper_lake", "lower_lake"];

/// Two reservoirs on a river that would often flow upwards.
pub fn wild_case(method: &str) -> Case {
    let mut files: CaseFiles = Template::find("cascade").expect("it is there").files();
    let config = files.remove("config.json").expect("it is there");
    let config = String::from_utf8(config).expect("it is text");
    files.insert("config.json", config.replace("truncation", method));
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
        ("mean_m3s", TemplateColumn::Numbers(vec![40.0; 24])),
        ("std_m3s", TemplateColumn::Numbers(vec![60.0; 24])),
    ];
    files.table("scenarios/inflow_seasonal_stats.parquet", &columns);
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    load(directory.path(), &Options::default()).expect("it is sound")
}

fn wild(method: &str) -> Problem {
    wild_case(method).problem
}

/// The inflow of the model in an opening, before any truncation.
fn modelled(problem: &Problem, node: usize, opening: usize, plant: &str, decided: &Decided) -> f64 {
    let template = problem.template(node);
    let name = format!("inflow_model.{plant}");
    let row = template
        .rows
        .iter()
        .position(|row| row.name == name)
        .expect("it has a model");
    let places = &problem.nodes[node].places;
    let parts = places.split(problem.opening(&problem.values, node, opening));
    let at = places.rows.binary_search(&row).expect("openings change it");
    let past = decided.of(&format!("inflow_lag1.{plant}.before"));
    let past_column = template
        .columns
        .iter()
        .position(|column| column.name == format!("inflow_lag1.{plant}.before"))
        .expect("it remembers");
    let terms = &template.rows[row].terms;
    let (_, factor) = terms
        .iter()
        .find(|(column, _)| *column == past_column)
        .expect("by a coefficient");
    parts.row_lower[at] - factor * past
}

/// Walks a path and checks the inflow of every stage; returns how many were below zero.
fn walk(method: &str, check: impl Fn(f64, &Decided, &str)) -> usize {
    let problem = wild(method);
    let mut state = problem.initial_state();
    let mut below = 0;
    for node in 0..problem.nodes.len() {
        let opening = (3 * node + 1) % problem.nodes[node].probabilities.len();
        let (decided, _, outgoing) = decide(&problem, node, &state, opening);
        for plant in PLANTS {
            let value = modelled(&problem, node, opening, plant, &decided);
            below += usize::from(value < 0.0);
            check(value, &decided, plant);
        }
        state = outgoing;
    }
    below
}

#[test]
fn truncation_makes_zero_of_what_is_below_and_adds_nothing_else() {
    let below = walk("truncation", |value, decided, plant| {
        let inflow = decided.of(&format!("inflow.{plant}"));
        assert!(
            (inflow - value.max(0.0)).abs() < 1e-6,
            "{plant}: {inflow} for {value}"
        );
    });
    assert!(below >= 3, "{below} inflows were below zero");
}

#[test]
fn a_penalty_hands_on_what_the_model_gives() {
    let below = walk("penalty", |value, decided, plant| {
        let inflow = decided.of(&format!("inflow.{plant}"));
        assert!(
            (inflow - value).abs() < 1e-6,
            "{plant}: {inflow} for {value}"
        );
        assert!(decided.of(&format!("added.{plant}")) >= -1e-9);
    });
    assert!(below >= 3, "{below} inflows were below zero");
}

/// A case whose inflows are certain, above zero and strongly felt by those after them, and in which every
/// drop is worth the dearest deficit.
fn thirsty(method: &str, files: &mut CaseFiles) {
    let config = files.remove("config.json").expect("it is there");
    let config = String::from_utf8(config).expect("it is text");
    files.insert("config.json", config.replace("truncation", method));
    let rows = || (0..2).flat_map(|plant| (0..12).map(move |stage| (plant, stage)));
    let ids = || TemplateColumn::Ids(rows().map(|row| row.0).collect());
    let stages = || TemplateColumn::Ids(rows().map(|row| row.1).collect());
    let columns = [
        ("hydro_id", ids()),
        ("stage_id", stages()),
        ("lag", TemplateColumn::Ids(vec![1; 24])),
        ("coefficient", TemplateColumn::Numbers(vec![0.9; 24])),
        ("residual_std_ratio", TemplateColumn::Numbers(vec![0.0; 24])),
    ];
    files.table("scenarios/inflow_ar_coefficients.parquet", &columns);
    let columns = [
        ("bus_id", TemplateColumn::Ids(vec![0; 12])),
        ("stage_id", TemplateColumn::Ids((0..12).collect())),
        ("mean_mw", TemplateColumn::Numbers(vec![900.0; 12])),
        ("std_mw", TemplateColumn::Numbers(vec![0.0; 12])),
    ];
    files.table("scenarios/load_seasonal_stats.parquet", &columns);
}

#[test]
fn truncation_buys_no_inflow_for_what_it_does_to_later_ones() {
    let [as_it_is, truncated] = ["none", "truncation"].map(|method| {
        let mut files: CaseFiles = Template::find("cascade").expect("it is there").files();
        thirsty(method, &mut files);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        solve(directory.path(), 40, Solver::Kernel).trained.bound
    });
    let error = (truncated / as_it_is - 1.0).abs();
    assert!(error < 1e-9, "{truncated} instead of {as_it_is}");
}
