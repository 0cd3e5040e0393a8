//! Markov chains of inflow regimes, against the extensive form written from the page about policy graphs.

use std::num::NonZero;
use std::path::Path;

use cobre_case::template::CaseFiles;
use cobre_case::{Case, Options, load};
use cobre_comm::LocalBackend;
use cobre_results::Results;
use cobre_sddp::{
    Cadence, ColumnId, Draft, Problem, Sense, Settings, Solver, StopRule, Stopping, Template, run,
};
use serde_json::{Value, json};

use crate::bad_cases::{errors, text, warnings};
use crate::cyclic::results_of;
use crate::hand_base::{base, plant, stages, with_plants};

const STAGES: usize = 3;
/// Hours of the blocks of a stage, and hm³ that 1 m³/s brings in one.
const HOURS: [f64; 2] = [100.0, 200.0];
const HM3: f64 = 0.0036;
/// Mean and deviation without a regime, in the wet regime 1 and in the dry regime 2.
const USUAL: [f64; 2] = [25.0, 8.0];
const WET: [f64; 2] = [45.0, 6.0];
const DRY: [f64; 2] = [4.0, 3.0];
/// From wet to wet and dry, from dry to wet and dry.
const STEPS: [[f64; 2]; 2] = [[0.7, 0.3], [0.2, 0.8]];
/// η of the two openings of each stage.
const NOISE: [f64; 2] = [-1.0, 1.0];
const PAST: f64 = 31.0;
/// The tables that have rows for each stage.
const TABLES: [&str; 4] = [
    "scenarios/inflow_seasonal_stats.csv",
    "scenarios/inflow_regimes.csv",
    "scenarios/noise_openings.csv",
    "scenarios/load_seasonal_stats.csv",
];

/// The node of a stage in a regime.
fn node(stage: usize, regime: usize) -> usize {
    10 * stage + regime
}

/// Three stages; the first is of no regime, the others wet or dry.
fn graph() -> Value {
    let mut nodes = vec![json!({"id": 0, "stage_id": 0})];
    let mut steps = Vec::new();
    for stage in 1..STAGES {
        for regime in [1, 2] {
            nodes
                .push(json!({"id": node(stage, regime), "stage_id": stage, "scenario_id": regime}));
        }
    }
    let mut step = |from: usize, to: usize, probability: f64| {
        steps.push(json!({"source_id": from, "target_id": to, "probability": probability}));
    };
    step(0, node(1, 1), 0.5);
    step(0, node(1, 2), 0.5);
    for (from, own) in STEPS.iter().enumerate() {
        for (to, probability) in own.iter().enumerate() {
            step(node(1, from + 1), node(2, to + 1), *probability);
        }
    }
    json!({"type": "finite_horizon", "annual_discount_rate": 0.1, "nodes": nodes, "transitions": steps})
}

fn with_graph(files: &mut CaseFiles, graph: &Value) {
    let mut file = text(files, "stages.json");
    file["policy_graph"] = graph.clone();
    files.json("stages.json", file);
}

/// A reservoir and two thermal plants, of which the cheap one is small.
fn case(coefficient: f64, method: &str, deviates: bool) -> CaseFiles {
    let mut files = base();
    stages(&mut files, STAGES, "parallel");
    with_plants(&mut files, &[plant()], STAGES);
    with_graph(&mut files, &graph());
    let mut file = text(&files, "stages.json");
    for stage in file["stages"].as_array_mut().expect("a list") {
        stage["num_scenarios"] = json!(NOISE.len());
    }
    files.json("stages.json", file);
    let mut file = text(&files, "config.json");
    file["modeling"]["inflow_non_negativity"]["method"] = json!(method);
    files.json("config.json", file);
    let thermal = |id: i32, cost: f64, most: f64| {
        json!({"id": id, "name": format!("T{id}"), "bus_id": 0, "cost_per_mwh": cost,
            "generation": {"min_mw": 0, "max_mw": most}})
    };
    files.json(
        "system/thermals.json",
        json!({"thermals": [thermal(0, 10.0, 20.0), thermal(1, 30.0, 100.0)]}),
    );
    let wide = if deviates { 1.0 } else { 0.0 };
    let rows = (-1..3).map(|stage| format!("0,{stage},{},{}\n", USUAL[0], USUAL[1]));
    let head = "hydro_id,stage_id,mean_m3s,std_m3s\n";
    let rows = rows.collect::<String>();
    files.insert(
        "scenarios/inflow_seasonal_stats.csv",
        format!("{head}{rows}"),
    );
    let rows = (1..STAGES).flat_map(|stage| {
        [(1, WET), (2, DRY)].map(|(regime, [mean, deviation])| {
            format!("{regime},0,{stage},{mean},{}\n", wide * deviation)
        })
    });
    let rows = rows.collect::<String>();
    files.insert(
        "scenarios/inflow_regimes.csv",
        format!("scenario_id,{head}{rows}"),
    );
    let rows = (0..STAGES).flat_map(|stage| {
        let noise = NOISE.iter().enumerate();
        noise.map(move |(opening, noise)| format!("{stage},{opening},0,{noise}\n"))
    });
    let rows = rows.collect::<String>();
    files.insert(
        "scenarios/noise_openings.csv",
        format!("stage_id,opening_index,entity_index,value\n{rows}"),
    );
    if coefficient != 0.0 {
        let rows = (0..STAGES).map(|stage| format!("0,{stage},1,{coefficient},0.8\n"));
        let head = "hydro_id,stage_id,lag,coefficient,residual_std_ratio\n";
        let rows = rows.collect::<String>();
        files.insert(
            "scenarios/inflow_ar_coefficients.csv",
            format!("{head}{rows}"),
        );
        let mut file = text(&files, "initial_conditions.json");
        file["past_inflows"] = json!([{"hydro_id": 0, "values_m3s": [PAST]}]);
        files.json("initial_conditions.json", file);
    }
    files
}

/// The tree of a case in the making.
struct Tree {
    lp: Template,
    coefficient: f64,
    truncated: bool,
    deviates: bool,
}

/// The end of a branch: the stage to come, the regime, the storage, the inflow and the weight before it.
#[derive(Clone, Copy)]
struct Branch {
    stage: usize,
    regime: Option<usize>,
    storage: Option<ColumnId>,
    inflow: f64,
    weight: f64,
}

impl Tree {
    fn grow(&mut self, before: Branch) {
        if before.stage == STAGES {
            return;
        }
        let next: Vec<(Option<usize>, f64)> = match before {
            Branch { stage: 0, .. } => vec![(None, 1.0)],
            Branch { regime: None, .. } => vec![(Some(0), 0.5), (Some(1), 0.5)],
            Branch {
                regime: Some(own), ..
            } => vec![(Some(0), STEPS[own][0]), (Some(1), STEPS[own][1])],
        };
        // The days of the stage before, at 10 % a year of 365.25 days.
        let days = [0.0, 31.0, 28.0][before.stage];
        let discount = 1.1_f64.powf(-days / 365.25);
        for (regime, probability) in next {
            for noise in NOISE {
                let weight = before.weight * probability * discount / NOISE.len() as f64;
                let inflow = self.inflow(regime, before.inflow, noise);
                let storage = self.stage(before.storage, inflow, weight);
                self.grow(Branch {
                    stage: before.stage + 1,
                    regime,
                    storage: Some(storage),
                    inflow,
                    weight,
                });
            }
        }
    }

    fn inflow(&self, regime: Option<usize>, before: f64, noise: f64) -> f64 {
        let [mean, deviation] = regime.map_or(USUAL, |regime| [WET, DRY][regime]);
        let wide = if regime.is_none() || self.deviates {
            1.0
        } else {
            0.0
        };
        let new = if self.coefficient == 0.0 { 1.0 } else { 0.8 };
        let inflow = mean + self.coefficient * (before - USUAL[0]) + wide * new * deviation * noise;
        if self.truncated {
            inflow.max(0.0)
        } else {
            inflow
        }
    }

    /// The stage at the end of a branch; returns the storage after it.
    fn stage(&mut self, before: Option<ColumnId>, inflow: f64, weight: f64) -> ColumnId {
        let mut column = |cost: f64, lower: f64, upper: f64| {
            let name = format!("x{}", self.lp.columns.len());
            self.lp.column(name, weight * cost, lower, upper)
        };
        let after = column(0.0, 20.0, 120.0);
        let mut balance = vec![(after, 1.0)];
        let mut loads = Vec::new();
        for hours in HOURS {
            let turbined = column(0.0, 0.0, 50.0);
            let spilled = column(0.0, 0.0, f64::INFINITY);
            let cheap = column(10.0 * hours, 0.0, 20.0);
            let dear = column(30.0 * hours, 0.0, 100.0);
            balance.extend([turbined, spilled].map(|flow| (flow, HM3 * hours)));
            loads.push([turbined, cheap, dear].map(|power| (power, 1.0)));
        }
        // Minimum storage is soft.
        let below = column(1e5, 0.0, f64::INFINITY);
        balance.push((below, -1.0));
        balance.extend(before.map(|before| (before, -1.0)));
        let first = if before.is_none() { 70.0 } else { 0.0 };
        let volume = first + HM3 * 300.0 * inflow;
        let rows = self.lp.rows.len();
        self.lp
            .row(format!("water{rows}"), volume, volume, &balance);
        for (block, terms) in loads.iter().enumerate() {
            let name = format!("load{rows}.{block}");
            self.lp.row(name, 50.0, 50.0, terms);
        }
        after
    }
}

/// The cost of the tree.
fn extensive(coefficient: f64, truncated: bool, deviates: bool) -> f64 {
    let mut tree = Tree {
        lp: Template::new(),
        coefficient,
        truncated,
        deviates,
    };
    tree.grow(Branch {
        stage: 0,
        regime: None,
        storage: None,
        inflow: PAST,
        weight: 1.0,
    });
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let lp = draft.template(tree.lp);
    let node = draft.node("all", lp);
    draft.start(node, 1.0);
    bound(draft.build().expect("it is a problem"), Solver::Highs)
}

fn bound(problem: Problem, solver: Solver) -> f64 {
    let settings = Settings {
        passes: NonZero::new(2).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(60)]),
        threads: NonZero::new(1).expect("not 0"),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    let results = run(&LocalBackend, problem, &settings, &mut ());
    results.expect("it runs").trained.bound
}

fn loaded(files: &CaseFiles, directory: &Path) -> Case {
    files.write(directory).expect("it can be written");
    let case = load(directory, &Options::default());
    case.unwrap_or_else(|error| panic!("{:#?}", error.errors()))
}

#[test]
fn a_chain_of_regimes_costs_what_its_extensive_form_does() {
    for (coefficient, method, deviates) in [
        (0.0, "none", true),
        (0.0, "none", false),
        (0.6, "none", true),
        (0.6, "truncation", true),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let case = loaded(&case(coefficient, method, deviates), directory.path());
        let expected = extensive(coefficient, method == "truncation", deviates);
        for solver in [Solver::Kernel, Solver::Highs] {
            let found = bound(case.problem.clone(), solver);
            assert!(
                (found - expected).abs() <= 1e-6 * expected,
                "{coefficient} {method} {deviates}: {found} instead of {expected}"
            );
        }
    }
}

/// The output of a run of a case.
fn simulated(case: Case, output: &Path) -> Results {
    let stages = NonZero::new(7).filter(|_| case.problem.graph.is_cyclic());
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(5)]),
        simulate: 40,
        simulate_stages: stages,
        ..Settings::default()
    };
    results_of(case, settings, output)
}

#[test]
fn tables_have_the_nodes_and_the_inflows_of_their_regimes() {
    for (source, cyclic) in [
        ("in_sample", false),
        ("out_of_sample", false),
        ("in_sample", true),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut files = case(0.0, "none", false);
        let mut file = text(&files, "config.json");
        file["training"]["scenario_source"] = json!({"seed": 1, "inflow": {"scheme": source}});
        files.json("config.json", file);
        if cyclic {
            let mut graph = graph();
            graph["type"] = json!("cyclic");
            let steps = graph["transitions"].as_array_mut().expect("a list");
            for regime in [1, 2] {
                steps.push(json!({"source_id": node(2, regime), "target_id": 0, "probability": 1}));
            }
            with_graph(&mut files, &graph);
        }
        let case = loaded(&files, &scratch.path().join("case"));
        let results = simulated(case, &scratch.path().join("out"));
        let read = |table: &str| {
            results
                .table(table)
                .expect("it is read")
                .expect("it is there")
        };
        let (visits, hydros) = (read("simulation/stages"), read("simulation/hydros"));
        let names = visits.texts(0, "node").expect("texts");
        let numbers = visits.numbers(0, "stage").expect("numbers");
        let inflows = hydros.numbers(0, "inflow_m3s").expect("numbers");
        assert_eq!(names.len(), inflows.len());
        let mut seen = std::collections::BTreeSet::new();
        for ((name, number), inflow) in names.iter().zip(&numbers).zip(&inflows) {
            let stage = *number as usize % STAGES;
            let regime = name.strip_prefix(&format!("stage{stage}")).expect(name);
            let expected = match regime {
                ".regime1" => WET[0],
                ".regime2" => DRY[0],
                other => {
                    assert_eq!((other, stage), ("", 0));
                    continue;
                }
            };
            assert!((inflow - expected).abs() < 1e-9, "{name}: {inflow}");
            seen.insert(name.clone());
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    }
}

/// A change of the graph, and a part of what is said of it.
type ChangeOfGraph<'a> = (&'a dyn Fn(&mut Value), &'a str);

#[test]
fn what_is_no_markov_chain_is_refused_at_its_place() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut files = case(0.0, "none", true);
        let mut own = graph();
        change(&mut own);
        with_graph(&mut files, &own);
        errors(&files)
    };
    let push = |list: &'static str, entry: Value| {
        move |graph: &mut Value| {
            let list = graph[list].as_array_mut().expect("a list");
            list.push(entry.clone());
        }
    };
    let put = |pointer: &'static str, value: Value| {
        move |graph: &mut Value| *graph.pointer_mut(pointer).expect(pointer) = value.clone()
    };
    let step =
        |from: usize, to: usize| json!({"source_id": from, "target_id": to, "probability": 0.5});
    let none = |graph: &mut Value| graph["nodes"] = json!([]);
    let wrong: [ChangeOfGraph<'_>; 16] = [
        (
            &put("/transitions/0/probability", json!(0.4)),
            "policy_graph.transitions: the probabilities from node 0 sum to 0.9: 1 is expected",
        ),
        (
            &put("/transitions/0/probability", json!(-0.5)),
            "a number from 0 to 1",
        ),
        (
            &put("/transitions/0/probability", json!(1.5)),
            "a number from 0 to 1",
        ),
        (
            &put("/transitions/0/target_id", json!(77)),
            "transitions[0].target_id: there is no node 77",
        ),
        (
            &put("/transitions/0/target_id", json!(21)),
            "transitions[0].target_id: node 21 is of stage 2, and node 0 of stage 0: 1 follows it",
        ),
        (
            &push("transitions", step(0, 11)),
            "transitions[6]: there is a transition from node 0 to 11 already",
        ),
        (
            &push("transitions", step(21, 11)),
            "node 11 is of stage 1, and node 21 of stage 2: no stage follows it",
        ),
        (
            &push("nodes", json!({"id": 11, "stage_id": 1, "scenario_id": 3})),
            "nodes[5].id: node 11 is there already, at [1]",
        ),
        (
            &push("nodes", json!({"id": 5, "stage_id": 1, "scenario_id": 2})),
            "nodes[5]: node [2] is stage 1 in regime 2 already",
        ),
        (
            &push("nodes", json!({"id": 5, "stage_id": 9})),
            "nodes[5].stage_id: there is no stage 9",
        ),
        (
            &push("nodes", json!({"id": 5, "stage_id": 2, "scenario_id": 3})),
            "policy_graph.nodes: no path visits node 5",
        ),
        (
            &push("nodes", json!({"id": 5, "stage_id": 0, "scenario_id": 1})),
            "the initial probabilities of the nodes of the first stage sum to 2: 1 is expected",
        ),
        (
            &put(
                "/nodes/1",
                json!({"id": 11, "stage_id": 1, "scenario_id": 1, "initial_probability": 1}),
            ),
            "nodes[1].initial_probability: paths begin in the first stage only",
        ),
        (
            &put("/nodes/0/stage_id", json!(1)),
            "policy_graph.nodes: stage 0 has no node",
        ),
        (&none, "policy_graph.nodes: there is no node"),
        (
            &put("/type", json!("cyclic")),
            "the probabilities from node 21 sum to 0: 1 is expected",
        ),
    ];
    for (change, part) in wrong {
        let found = with(change);
        let said = found.iter().any(|error| error.contains(part));
        assert!(said, "{part}: {found:#?}");
    }
}

#[test]
fn tables_of_regimes_name_plants_stages_and_regimes_that_there_are() {
    let table = "scenarios/inflow_regimes.csv";
    let head = "scenario_id,hydro_id,stage_id,mean_m3s,std_m3s\n";
    for (rows, part) in [
        ("7,0,1,3,1\n", "has scenario_id 7"),
        ("1,4,1,3,1\n", "there is no hydro plant 4"),
        ("1,0,8,3,1\n", "there is no stage 8"),
        (
            "1,0,1,3,1\n1,0,1,3,1\n",
            "there is a row of regime 1, hydro plant 0, stage 1 already",
        ),
        ("1,0,1,3,-1\n", "at least 0"),
    ] {
        let mut files = case(0.0, "none", true);
        files.insert(table, format!("{head}{rows}"));
        let found = errors(&files);
        let said = found.iter().any(|error| error.contains(part));
        assert!(said, "{part}: {found:#?}");
    }
    let mut files = case(0.0, "none", true);
    files.insert(table, format!("{head}1,0,1,3,1\n"));
    let found = warnings(&files);
    let part = "it has no row of scenario_id 2";
    assert!(
        found.iter().any(|warning| warning.contains(part)),
        "{found:#?}"
    );
    let mut file = text(&files, "config.json");
    file["simulation"] = json!({"enabled": true, "num_scenarios": 1,
        "scenario_source": {"inflow": {"scheme": "external"}}});
    files.json("config.json", file);
    let rows = (0..STAGES).map(|stage| format!("{stage},1,0,5\n"));
    let rows = rows.collect::<String>();
    files.insert(
        "scenarios/external_inflow_scenarios.csv",
        format!("stage_id,scenario_id,hydro_id,value_m3s\n{rows}"),
    );
    let found = errors(&files);
    let part = "do not say which regime";
    assert!(found.iter().any(|error| error.contains(part)), "{found:#?}");
}

#[test]
fn each_regime_takes_the_terminal_value_of_its_own() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |name: &str| scratch.path().join(name);
    let settings = |output: Option<&Path>| Settings {
        passes: NonZero::new(4).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(60)]),
        checkpoints: Cadence::Never,
        output: output.map(Path::to_owned),
        ..Settings::default()
    };
    let files = case(0.0, "none", true);
    let long = loaded(&files, &place("long"));
    let whole = run(
        &LocalBackend,
        long.problem,
        &settings(Some(&place("out"))),
        &mut (),
    );
    let whole = whole.expect("it runs").trained.bound;
    // The first two of three stages, with the cuts after the second.
    let mut short = files;
    let mut file = text(&short, "stages.json");
    file["stages"].as_array_mut().expect("a list").pop();
    let graph = &mut file["policy_graph"];
    graph["nodes"].as_array_mut().expect("a list").truncate(3);
    graph["transitions"]
        .as_array_mut()
        .expect("a list")
        .truncate(2);
    short.json("stages.json", file);
    for path in TABLES {
        let table = short.remove(path).expect(path);
        let table = String::from_utf8(table).expect("text");
        let mut lines = table.lines();
        let head = lines.next().expect("a head");
        let column = head
            .split(',')
            .position(|name| name == "stage_id")
            .expect("a stage");
        let kept = lines.filter(|line| line.split(',').nth(column) != Some("2"));
        let kept: Vec<&str> = std::iter::once(head).chain(kept).collect();
        short.insert(path, kept.join("\n"));
    }
    for source in [json!(null), json!(1)] {
        let mut short = short.clone();
        let mut file = text(&short, "config.json");
        let mut boundary = json!({"path": place("out")});
        if !source.is_null() {
            boundary["source_stage"] = source.clone();
        }
        file["policy"] = json!({"boundary": boundary});
        short.json("config.json", file);
        let name = format!("short{source}");
        let case = loaded(&short, &place(&name));
        let found = run(&LocalBackend, case.problem, &settings(None), &mut ());
        let found = found.expect("it runs").trained.bound;
        assert!(
            (found - whole).abs() <= 1e-6 * whole,
            "{source}: {found} and {whole}"
        );
    }
}
