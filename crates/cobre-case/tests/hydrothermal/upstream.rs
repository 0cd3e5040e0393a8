//! Settings and keys as the newest release of the format and its NEWAVE converter write them.

use cobre_case::template::CaseFiles;
use cobre_case::{Options, load};
use cobre_results::Results;
use cobre_sddp::Solver;
use serde_json::{Value, json};

use crate::bad_cases::{changed_in, errors, sound, text, warnings};
use crate::inflow_history::with_history;
use crate::non_negativity::wild_case;
use crate::tables::{Whole, simulate};

/// `config.json` of the converter, with this cut selection.
fn converted(cut_selection: &Value, scheme: &str) -> Value {
    json!({
        "estimation": {"max_order": 6, "order_selection": "pacf"},
        "training": {
            "forward_passes": 2,
            "stopping_rules": [{"type": "iteration_limit", "limit": 3}],
            "cut_selection": cut_selection,
            "parallelism": {"backward_scheduler": {"method": "opening_block", "block_size": 5}},
            "scenario_source": {"seed": 42, "inflow": {"scheme": "out_of_sample"}},
        },
        "modeling": {"inflow_non_negativity": {"method": "truncation_with_penalty"}},
        "exports": {"states": false, "stochastic": true},
        "simulation": {
            "enabled": true,
            "num_scenarios": 2,
            "scenario_source": {
                "seed": 42,
                "inflow": {"scheme": scheme},
                "historical_years": {"from": 1932, "to": 1933},
            },
        },
    })
}

/// A case with a history and a risk measure, as the converter writes them.
fn case(config: &Value) -> CaseFiles {
    let mut files = with_history(40);
    files.insert("config.json", config.to_string());
    let mut stages = text(&files, "stages.json");
    for stage in stages["stages"].as_array_mut().expect("stages") {
        stage["risk_measure"] = json!({"cvar": {"alpha": 0.15, "lambda": 0.4}});
        stage["state_variables"] = json!({"storage": true, "inflow_lags": true});
    }
    files.insert("stages.json", stages.to_string());
    files
}

#[test]
fn configurations_of_the_newave_converter_are_read() {
    let today = json!({
        "row_activity_tolerance": 1e-6,
        "selection": {"method": "lml1", "check_frequency": 1},
    });
    let april = json!({
        "enabled": true, "method": "domination", "check_frequency": 5, "domination_epsilon": 0.0,
    });
    for (cuts, rule, unread) in [
        (today, "lml1", "cut_selection.row_activity_tolerance"),
        (april, "level1", "cut_selection.check_frequency"),
    ] {
        let files = case(&converted(&cuts, "historical"));
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let loaded = load(directory.path(), &Options::default()).expect("it is sound");
        let found = loaded.settings.selection.expect("it is chosen");
        assert_eq!(found.to_string(), rule);
        let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        for key in [unread, "training.parallelism"] {
            let named = |line: &String| line.contains(key) && line.contains("nothing reads it");
            assert!(said.iter().any(named), "{key}: {said:?}");
        }
        let output = tempfile::tempdir().expect("a directory");
        simulate(loaded, Solver::Check, output.path());
    }
}

#[test]
fn settings_that_change_nothing_here_are_passed_over_with_a_warning() {
    let mut config = text(&sound(), "config.json");
    config["policy"] = json!({
        "path": "./policy", "mode": "fresh", "validate_compatibility": true,
        "checkpointing": {"enabled": true, "initial_iteration": 5, "interval_iterations": 10,
            "store_basis": true, "compress": true},
    });
    config["exports"] = json!({
        "training": true, "cuts": true, "states": false, "vertices": false, "simulation": true,
        "forward_detail": false, "backward_detail": false, "compression": "zstd",
    });
    config["simulation"] = json!({
        "enabled": false, "policy_type": "outer", "output_path": "./out", "output_mode": "streaming",
        "io_channel_capacity": 64,
    });
    config["upper_bound_evaluation"] = json!({
        "enabled": true, "initial_iteration": 2, "interval_iterations": 2,
        "lipschitz": {"mode": "auto"},
    });
    config["training"]["cut_formulation"] = json!("single");
    config["training"]["forward_pass"] = json!({"type": "default"});
    config["training"]["solver"] = json!({"retry_max_attempts": 5});
    let mut files = sound();
    files.insert("config.json", config.to_string());
    let said = warnings(&files);
    for key in [
        "policy.path",
        "policy.validate_compatibility",
        "policy.checkpointing",
        "exports.training",
        "exports.cuts",
        "exports.simulation",
        "exports.compression",
        "simulation.policy_type",
        "simulation.output_path",
        "simulation.output_mode",
        "simulation.io_channel_capacity",
        "upper_bound_evaluation.initial_iteration",
        "upper_bound_evaluation.lipschitz",
        "training.cut_formulation",
        "training.forward_pass",
        "training.solver",
    ] {
        let named = |line: &&String| line.contains(&format!("{key}: nothing reads it"));
        assert_eq!(said.iter().filter(named).count(), 1, "{key}: {said:?}");
    }
    let files = changed_in(
        sound(),
        "config.json",
        "/exports",
        &json!({"vertices": true}),
    );
    let found = errors(&files).join("\n");
    assert!(
        found.contains("exports.vertices: true is not supported"),
        "{found}"
    );
}

#[test]
fn keys_that_only_the_newest_release_has_are_read_or_refused_by_name() {
    let loaded = |files: &CaseFiles| {
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        format!("{:?}", case.problem.graph)
    };
    let of = |of_stage: Option<f64>, of_step: Option<f64>| {
        let steps = (0..11).map(|stage| {
            let rate = of_step.filter(|_| stage == 3);
            json!({"source_id": stage, "target_id": stage + 1, "probability": 1.0,
                   "annual_discount_rate_override": rate})
        });
        let steps = Value::Array(steps.collect());
        let files = changed_in(sound(), "stages.json", "/policy_graph/transitions", &steps);
        let pointer = "/stages/3/annual_discount_rate_override";
        changed_in(files, "stages.json", pointer, &json!(of_stage))
    };
    let (stage, step) = (loaded(&of(Some(0.3), None)), loaded(&of(None, Some(0.3))));
    assert!(stage == step && stage != loaded(&of(None, None)));
    let found = errors(&of(Some(0.3), Some(0.2))).join("\n");
    assert!(found.contains("the stage itself has 0.3"), "{found}");
    let source = json!({"seed": 42, "openings": {"source": "file"}});
    let files = changed_in(sound(), "config.json", "/training/scenario_source", &source);
    let found = errors(&files).join("\n");
    assert!(found.contains("openings.source: \"file\" needs"), "{found}");
    let mut files = sound();
    files.insert("post_study_stages.json", "{}".to_owned());
    let found = errors(&files).join("\n");
    assert!(
        found.contains("post_study_stages.json: not supported"),
        "{found}"
    );
    let estimation = json!({"max_order": 0});
    let independent = changed_in(with_history(40), "config.json", "/estimation", &estimation);
    let lags = |files: &CaseFiles| {
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        let states = case.problem.states;
        states
            .iter()
            .filter(|state| state.name.contains("lag"))
            .count()
    };
    assert_eq!(lags(&independent), 0);
    assert!(lags(&with_history(40)) > 0);
}

/// A column of the table of hydro plants.
fn hydros(results: &Results, column: &str) -> Vec<f64> {
    let table = Whole::read(results, "hydros").expect("there are plants");
    table.of(column).to_vec()
}

#[test]
fn truncation_with_penalty_lifts_inflows_to_zero_and_they_cost_what_is_added() {
    let output = tempfile::tempdir().expect("a directory");
    let case = wild_case("truncation_with_penalty");
    let results = simulate(case, Solver::Check, output.path());
    let (inflow, added) = (
        hydros(&results, "inflow_m3s"),
        hydros(&results, "inflow_added_m3s"),
    );
    let lifted = inflow.iter().zip(&added).filter(|(inflow, added)| {
        assert!(**inflow + **added > -1e-6, "{inflow} and {added}");
        **inflow < -1.0
    });
    assert!(lifted.count() >= 3, "inflows are below zero before");
    let costs = Whole::read(&results, "costs").expect("there are costs");
    let paid: f64 = costs.of("inflow_added_cost").iter().sum();
    let fictitious: f64 = costs.of("inflow_truncation_cost").iter().sum();
    assert!(paid > 0.0 && fictitious == 0.0, "{paid} {fictitious}");
}

#[test]
fn a_simulation_has_a_seed_of_its_own() {
    let [one, other] = [7, 8].map(|seed| {
        let source = json!({"seed": seed, "inflow": {"scheme": "out_of_sample"}});
        let files = changed_in(
            sound(),
            "config.json",
            "/simulation/scenario_source",
            &source,
        );
        let source = json!({"seed": 7, "inflow": {"scheme": "out_of_sample"}});
        let files = changed_in(files, "config.json", "/training/scenario_source", &source);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        load(directory.path(), &Options::default())
            .expect("it is sound")
            .settings
    });
    assert_eq!((one.seed, one.simulate_seed), (Some(7), None));
    assert_eq!((other.seed, other.simulate_seed), (Some(7), Some(Some(8))));
}

#[test]
fn plants_have_every_cost_of_the_newest_release() {
    let own = json!({
        "turbined_cost": 2.0,
        "evaporation_violation_pos_cost": 3.0, "evaporation_violation_neg_cost": 4.0,
        "water_withdrawal_violation_pos_cost": 5.0, "water_withdrawal_violation_neg_cost": 6.0,
    });
    let problem = |files: CaseFiles| {
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        format!("{:?}", case.problem.templates)
    };
    let (mut of_plants, mut of_all) = (sound(), sound());
    for place in 0..2 {
        let pointer = format!("/hydros/{place}/penalties");
        of_plants = changed_in(of_plants, "system/hydros.json", &pointer, &own);
    }
    for (key, value) in own.as_object().expect("an object") {
        let pointer = format!("/hydro/{key}");
        of_all = changed_in(of_all, "penalties.json", &pointer, value);
    }
    let (of_plants, of_all) = (problem(of_plants), problem(of_all));
    assert!(of_plants == of_all);
    assert!(of_plants != problem(sound()));
}

#[test]
fn a_gap_in_per_cent_is_a_relative_one_and_one_without_a_unit_is_absolute() {
    let rules = json!([{"type": "gap", "relative_tolerance": 0.5}]);
    let files = changed_in(sound(), "config.json", "/training/stopping_rules", &rules);
    let upper = json!({"enabled": true});
    let files = changed_in(files, "config.json", "/upper_bound_evaluation", &upper);
    assert_eq!(errors(&files), Vec::<String>::new());
    let found = format!("{:?}", warnings(&files));
    assert!(!found.contains("relative_tolerance"), "{found}");
    let both = json!([{"type": "gap", "tolerance": 1.0, "relative_tolerance": 0.5}]);
    let files = changed_in(sound(), "config.json", "/training/stopping_rules", &both);
    let found = errors(&files).join("\n");
    assert!(
        found.contains("stopping_rules[0].relative_tolerance"),
        "{found}"
    );
    // In a case of 0.18 the tolerance without a unit is absolute.
    let newer = |rule: serde_json::Value| {
        let training = json!({"selection": {"method": "sampled", "forward_passes": 4}, "stopping_rules": [rule]});
        let files = changed_in(sound(), "config.json", "/training", &training);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        let stopping = case.settings.stopping.expect("there are rules");
        let rules: Vec<String> = stopping.rules.iter().map(ToString::to_string).collect();
        (rules, case.settings.upper_bound)
    };
    let absolute = json!({"type": "gap", "tolerance": 1000.0});
    assert_eq!(
        newer(absolute),
        (vec!["absolute_gap:1000.0".to_owned()], Some(10))
    );
    let either = json!({"type": "gap", "tolerance": 1000.0, "relative_tolerance": 0.5});
    let rules = ["gap:0.005", "absolute_gap:1000.0"].map(str::to_owned);
    assert_eq!(newer(either).0, rules);
}

#[test]
fn a_gap_turns_the_upper_bound_on_in_a_cyclic_study_too() {
    let rules = json!([{"type": "gap", "tolerance": 0.01}]);
    let with = changed_in(sound(), "config.json", "/training/stopping_rules", &rules);
    assert_eq!(errors(&with), Vec::<String>::new());
    let off = json!({"enabled": false});
    let off = changed_in(with.clone(), "config.json", "/upper_bound_evaluation", &off);
    let found = errors(&off).join("\n");
    assert!(
        found.contains("upper_bound_evaluation.enabled: the stopping rule gap"),
        "{found}"
    );
    let graph = json!({"type": "cyclic", "annual_discount_rate": 0.1});
    let none = json!({"method": "none"});
    let cyclic = changed_in(with, "stages.json", "/policy_graph", &graph);
    let pointer = "/modeling/inflow_non_negativity";
    let cyclic = changed_in(cyclic, "config.json", pointer, &none);
    let found = errors(&cyclic).join("\n");
    assert!(
        !found.contains("upper_bound") && !found.contains("stopping_rules"),
        "{found}"
    );
    let stages = changed_in(sound(), "config.json", "/simulation/num_stages", &json!(5));
    let found = errors(&stages).join("\n");
    assert!(
        found.contains("simulation.num_stages: it is for cyclic studies"),
        "{found}"
    );
}
