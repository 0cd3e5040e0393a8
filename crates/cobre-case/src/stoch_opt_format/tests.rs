use super::*;

const OPTIONS: Options = Options {
    bound: Some(0.0),
    risk: None,
    scenarios: None,
};

/// Two stages of a reservoir; `{…}` parts are replaced by tests.
const FILE: &str = r#"{
  "version": {"major": 1, "minor": 0},
  "root": {"state_variables": {"x": 2.0}, "successors": {"first": 1.0}},
  "nodes": {
    "first": {"subproblem": "dry", "successors": {"second": 0.9}},
    "second": {"subproblem": "wet", "realizations": [
      {"probability": 0.25, "support": {"rain": 1.0, "price": 3.0}},
      {"probability": 0.75, "support": {"rain": 2.0, "price": 5.0}}]}},
  "subproblems": {
    "dry": {"state_variables": {"x": {"in": "x_in", "out": "x"}},
      "subproblem": {"variables": [{"name": "x_in"}, {"name": "x"}],
        "objective": {"sense": "min", "function": {"type": "Variable", "name": "x"}},
        "constraints": [
          {"function": {"type": "Variable", "name": "x"}, "set": {"type": "Interval", "lower": 0, "upper": 9}},
          {"function": {"type": "Variable", "name": "x"}, "set": {"type": "LessThan", "upper": 4}},
          {"function": {"type": "Variable", "name": "x_in"}, "set": {"type": "GreaterThan", "lower": 1}}]}},
    "wet": {"state_variables": {"x": {"in": "x_in", "out": "x"}}, "random_variables": ["rain", "price"],
      "subproblem": {"variables": [{"name": "x_in"}, {"name": "x"}, {"name": "rain"}, {"name": "price"}],
        "objective": {"sense": "min", "function": {"type": "ScalarQuadraticFunction", "constant": 7.0,
          "affine_terms": [{"variable": "x", "coefficient": 1.0}, {"variable": "rain", "coefficient": 2.0}],
          "quadratic_terms": [{"variable_1": "price", "variable_2": "x", "coefficient": 2.0}]}},
        "constraints": [{"name": "balance",
          "function": {"type": "ScalarAffineFunction", "constant": 0.5, "terms": [
            {"variable": "x", "coefficient": 1.0}, {"variable": "x_in", "coefficient": -1.0},
            {"variable": "rain", "coefficient": -1.0}]},
          "set": {"type": "EqualTo", "value": 0.0}}]}}}}"#;

fn refused(text: &str) -> Errors {
    read(text.as_bytes(), &OPTIONS).expect_err("it is wrong")
}

#[test]
fn bounds_are_joined_and_those_of_an_incoming_state_become_rows() {
    let problem = read(FILE.as_bytes(), &OPTIONS).expect("it is sound");
    let dry = problem.template(0);
    assert_eq!((dry.columns[1].lower, dry.columns[1].upper), (0.0, 4.0));
    assert_eq!(dry.rows.len(), 1);
    assert_eq!(
        (dry.rows[0].lower, &dry.rows[0].terms[..]),
        (1.0, &[(0, 1.0)][..])
    );
}

#[test]
fn random_variables_become_openings() {
    let problem = read(FILE.as_bytes(), &OPTIONS).expect("it is sound");
    let node = &problem.nodes[1];
    let parts = node.places.split(problem.opening(&problem.values, 1, 1));
    assert_eq!(parts.row_lower, [-0.5 + 2.0]);
    assert_eq!(parts.costs, [1.0 + 2.0 * 5.0]);
    assert_eq!(parts.constant, 7.0 + 2.0 * 2.0);
    assert_eq!(node.probabilities, [0.25, 0.75]);
}

#[test]
fn every_error_is_named_with_its_place() {
    let text = FILE
        .replace(r#""subproblem": "dry""#, r#""subproblem": "arid""#)
        .replace(
            r#""rain": 2.0, "price": 5.0"#,
            r#""rain": 2.0, "prize": 5.0"#,
        )
        .replace(
            r#"{"type": "LessThan", "upper": 4}"#,
            r#"{"type": "Integer"}"#,
        )
        .replace(r#""variable": "x_in""#, r#""variable": "y""#)
        .replace(r#"{"second": 0.9}"#, r#"{"third": 0.9}"#);
    let errors = refused(&text);
    for part in [
        "nodes.first.subproblem: there is no subproblem arid",
        "subproblems.dry.subproblem.constraints[1].set",
        "subproblems.wet.subproblem.constraints[0]: there is no variable y",
        "there is no node third",
    ] {
        assert!(
            errors.iter().any(|error| error.contains(part)),
            "{part}: {errors:#?}"
        );
    }
    let errors = refused(&FILE.replace(
        r#""rain": 2.0, "price": 5.0"#,
        r#""rain": 2.0, "prize": 5.0"#,
    ));
    assert!(
        errors
            .iter()
            .any(|error| error.contains("realizations[1].support: price has no value"))
    );
    assert!(
        errors
            .iter()
            .any(|error| error.contains("prize is no random variable"))
    );
}

#[test]
fn a_product_of_decisions_is_refused() {
    let errors = refused(&FILE.replace(r#""variable_1": "price""#, r#""variable_1": "x_in""#));
    assert!(errors[0].contains("x_in and x is not linear"), "{errors:?}");
}

#[test]
fn a_missing_key_is_named() {
    let errors = refused(&FILE.replace(r#""root""#, r#""rot""#));
    assert!(errors[0].contains("root"), "{errors:?}");
    let errors = refused(&FILE.replace(r#""probability": 0.25,"#, ""));
    assert!(
        errors[0].contains("nodes.second.realizations[0]"),
        "{errors:?}"
    );
}

#[test]
fn a_bound_must_be_given() {
    let options = Options {
        bound: None,
        ..OPTIONS
    };
    let errors = read(FILE.as_bytes(), &options).expect_err("no bound");
    assert!(errors[0].contains("--bound"), "{errors:?}");
}

#[test]
fn a_cycle_that_no_path_leaves_is_refused_by_name() {
    let text = FILE.replace(
        r#""second": {"subproblem": "wet","#,
        r#""second": {"subproblem": "wet", "successors": {"first": 0.5},"#,
    );
    let problem = read(text.as_bytes(), &OPTIONS).expect("half of the paths leave it");
    assert!(problem.graph.is_cyclic());
    let closed = text.replace(r#"{"first": 0.5}"#, r#"{"first": 1.0}"#);
    let errors = refused(&closed.replace(r#"{"second": 0.9}"#, r#"{"second": 1.0}"#));
    assert!(
        errors[0].contains("a cycle that no path leaves, first → second → first: "),
        "{errors:?}"
    );
}

#[test]
fn validation_scenarios_may_take_values_that_no_opening_has() {
    let text = FILE.replacen(
        r#""root""#,
        r#""validation_scenarios": [{"probability": 1.0, "scenario": [
            {"node": "first"}, {"node": "second", "support": {"rain": 9.0, "price": 1.0}}]}],
        "root""#,
        1,
    );
    let problem = read(text.as_bytes(), &OPTIONS).expect("it is sound");
    let step = problem.validation[0][1];
    assert_eq!((step.node, step.opening), (1, 2));
    let parts = problem.nodes[1]
        .places
        .split(problem.opening(&problem.values, 1, 2));
    assert_eq!(parts.row_lower, [-0.5 + 9.0]);
}

#[test]
fn garbage_is_an_error_and_not_a_panic() {
    for text in ["", "{", "[]", "null", "{\"version\": 1}", "\u{0}\u{1}"] {
        assert!(!refused(text).is_empty());
    }
}

#[test]
fn a_key_that_appears_twice_is_refused() {
    let twice = r#""successors": {"second": 0.45, "second": 0.45}"#;
    let text = FILE.replace(r#""successors": {"second": 0.9}"#, twice);
    let errors = refused(&text);
    assert!(errors[0].contains("\"second\" appears twice"), "{errors:?}");
}

#[test]
fn a_misspelt_step_is_refused() {
    let text = FILE.replace(
        r#""successors": {"second": 0.9}"#,
        r#""succesors": {"second": 0.9}"#,
    );
    let errors = refused(&text).join("; ");
    assert!(errors.contains("succesors"), "{errors}");
    let text = FILE.replace(r#", "successors": {"second": 0.9}"#, "");
    let errors = refused(&text).join("; ");
    assert!(
        errors.contains("nodes.second: no step leads to it"),
        "{errors}"
    );
    assert!(!refused(&format!("{FILE} and more")).is_empty());
}

#[test]
fn numbers_too_large_to_be_meant_are_refused_with_their_place() {
    for (from, to, said) in [
        (
            r#""type": "EqualTo", "value": 0.0"#,
            r#""type": "EqualTo", "value": 1e31"#,
            "node second: row balance has a bound of 1e31, beyond ±1e15",
        ),
        (
            r#""variable": "x_in", "coefficient": -1.0"#,
            r#""variable": "x_in", "coefficient": -1e16"#,
            "node second: the coefficient of column x_in in row balance is -1e16, beyond ±1e12",
        ),
        (
            r#"{"type": "LessThan", "upper": 4}"#,
            r#"{"type": "GreaterThan", "lower": -1e20}"#,
            "",
        ),
        (
            r#""lower": 0, "upper": 9"#,
            r#""lower": -1e20, "upper": 9"#,
            "node first: column x has a bound of -1e20, beyond ±1e15",
        ),
        (
            r#"{"x": 2.0}"#,
            r#"{"x": 2e15}"#,
            "the initial value of state x is 2000000000000000.0, beyond ±1e15",
        ),
        // Each of the two is allowed, and their product is not.
        (
            r#""price": 5.0"#,
            r#""price": 1e15"#,
            "node second, opening 2: the cost of column x is 2000000000000001.0, beyond ±1e15",
        ),
        (
            r#""constant": 7.0"#,
            r#""constant": 1e300"#,
            "node second: the constant of the objective is 1e300, beyond ±1e15",
        ),
    ] {
        assert!(FILE.contains(from), "{from}");
        let read = read(FILE.replace(from, to).as_bytes(), &OPTIONS);
        match read {
            Ok(_) => assert_eq!(said, "", "{to}"),
            Err(errors) => assert!(
                !said.is_empty() && errors.iter().any(|error| error.contains(said)),
                "{to}: {errors:#?}"
            ),
        }
    }
    let options = Options {
        bound: Some(-1e18),
        ..OPTIONS
    };
    let errors = read(FILE.as_bytes(), &options).expect_err("nothing costs that");
    assert!(
        errors[0].contains("the bound on the cost to go is -1e18, beyond"),
        "{errors:?}"
    );
}

#[test]
fn openings_that_multiply_are_refused_before_they_are_made() {
    // 20,000 rows that a random variable is in, and 20,000 openings: 400 million changes from 3 MB.
    let row = r#"{"function": {"type": "ScalarAffineFunction", "constant": 0.0, "terms": [
        {"variable": "rain", "coefficient": 1.0}]}, "set": {"type": "LessThan", "upper": 9.0}}"#;
    let rows = vec![row; 20_000].join(",");
    let text = FILE.replace(
        r#""constraints": [{"name": "balance","#,
        &format!(r#""constraints": [{rows}, {{"name": "balance","#),
    );
    let opening = r#"{"probability": 0.00005, "support": {"rain": 1.0, "price": 3.0}}"#;
    let openings = vec![opening; 20_000].join(",");
    let start = text.find(r#""realizations": ["#).expect("it is there") + 17;
    let end = start + text[start..].find("]}},").expect("it is there");
    let text = format!("{}{openings}{}", &text[..start], &text[end..]);
    let errors = refused(&text);
    assert!(
        errors
            .iter()
            .any(|error| error.contains("at most 67108864 are possible")),
        "{errors:?}"
    );
}

#[test]
fn a_random_variable_that_is_given_twice_is_refused() {
    let errors = refused(&FILE.replace(r#"["rain", "price"]"#, r#"["rain", "price", "rain"]"#));
    assert!(
        errors[0].contains("random_variables: rain is given twice"),
        "{errors:?}"
    );
}
