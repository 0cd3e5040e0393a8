//! Generic constraints as planners write them: relations, parameters, named expressions and every variable of storage, by
//! values found by hand.

use cobre_case::template::CaseFiles;
use serde_json::{Value, json};

use crate::bad_cases::errors;
use crate::hand_base::{base, costs, plant, stages, with_commitments, with_plants};

/// Adds constraint 0 with a slack at 100 $ per unit and hour, its rows of bounds, and parameters.
fn constrained(
    mut files: CaseFiles,
    expression: &str,
    rows: &str,
    parameters: &Value,
) -> CaseFiles {
    let named = json!([
        {"name": "dear", "expression": "thermal_generation(1)"},
        {"name": "both", "expression": "2 * @dear + thermal_generation(0)"}]);
    files.json(
        "constraints/generic_constraints.json",
        json!({"expressions": named, "constraints": [{"id": 0, "name": "C", "expression": expression,
            "slack": {"enabled": true, "penalty": 100}}]}),
    );
    files.insert(
        "constraints/generic_constraint_bounds.csv",
        format!("constraint_id,stage_id,block_id,bound_lower,bound_upper\n{rows}"),
    );
    if !parameters.is_null() {
        files.json(
            "constraints/generic_parameters.json",
            json!({"scalar_parameters": parameters}),
        );
    }
    files
}

fn parameter(name: &str, kind: &str, key: &str, value: &Value) -> Value {
    json!({"id": name.len(), "name": name, "kind": kind, key: value})
}

#[test]
fn relations_parameters_and_named_expressions_mean_what_they_say() {
    let by_block = parameter(
        "p",
        "per_stage_block",
        "block_values",
        &json!([[0, 0, 40], [0, 1, 30]]),
    );
    let two = parameter("a", "constant", "value", &json!(2));
    let seasonal = parameter("s", "seasonal", "values", &json!([[0, 5], [7, 9]]));
    let staged = parameter("t", "per_stage", "values", &json!([[0, 40]]));
    let none = Value::Null;
    // Per hour: 10 · plant 0 + 30 · plant 1, 50 MW together.
    for (expression, rows, parameters, expected) in [
        ("thermal_generation(0) <= 40", "0,0,,,", &none, 210_000.0),
        // What rows give is added to what the relation says.
        ("thermal_generation(0) <= 30", "0,0,,,10", &none, 210_000.0),
        ("40 >= thermal_generation(0)", "0,0,0,,", &none, 170_000.0),
        (
            "thermal_generation(0) <= @t",
            "0,0,,,",
            &json!([staged]),
            210_000.0,
        ),
        (
            "thermal_generation(0) - 2 * (thermal_generation(1) - @dear) <= @p",
            "0,0,,,",
            &json!([by_block]),
            250_000.0,
        ),
        // 2 g₀ ≤ g₁ + 20: g₀ = 70 / 3.
        (
            "@a * thermal_generation(0) <= 0.5 * @a * thermal_generation(1) + 20",
            "0,0,,,",
            &json!([two]),
            310_000.0,
        ),
        (
            "thermal_generation(1) == @s",
            "0,0,,,",
            &json!([seasonal]),
            180_000.0,
        ),
        // g₀ + 2 g₁ ≥ 60: g₁ = 10.
        ("@both >= 60", "0,0,,,", &none, 210_000.0),
        ("@both - 10", "0,0,,50,", &none, 210_000.0),
        // No more than 20 MW may leave bus 0, so 20 MW come back at 40 $/MWh.
        (
            "line_exchange(source_bus=0, target_bus=1) <= -20",
            "0,0,,,",
            &none,
            330_000.0,
        ),
    ] {
        let files = constrained(base(), expression, &format!("{rows}\n"), parameters);
        costs(expression, &files, expected);
    }
}

#[test]
fn storage_and_quantities_of_plants_are_variables_and_parameters() {
    let tags = ["min_storage", "max_storage", "max_stored_energy"].map(|tag| {
        let spec = json!({"tag": tag, "hydro_id": 0});
        json!({"id": tag.len() + tag.len() * usize::from(tag.starts_with("max")), "name": tag, "kind": "computed", "computed_spec": spec})
    });
    let mut rho = tags[2].clone();
    rho["id"] = json!(99);
    rho["name"] = json!("rho");
    rho["computed_spec"]["tag"] = json!("integrated_accumulated_productivity");
    let parameters = json!([tags[0], tags[1], tags[2], rho]);
    let mut files = base();
    with_plants(&mut files, &[plant()], 1);
    // 20 hm³ are 20 / 0.0036 MWh, in place of energy at 10 $/MWh.
    let expected = 150_000.0 - 10.0 * 20.0 / 0.0036;
    for expression in [
        "hydro_storage(0) >= 50",
        "hydro_storage_final(0) >= @min_storage + 30",
        "hydro_useful_volume_final(0) >= 30",
        "@rho * hydro_useful_volume_final(0) >= 0.3 * @max_stored_energy",
        "hydro_storage_initial(0) - hydro_storage_final(0) <= 20",
        "hydro_useful_volume_initial(0, 0) - hydro_useful_volume_final(0, 1) <= 20",
        "2 * hydro_storage_final(0) >= @max_storage - 20",
    ] {
        let files = constrained(files.clone(), expression, "0,0,,,\n", &parameters);
        costs(expression, &files, expected);
    }
    // The second block may not use more than 5 hm³, the first not more than its 50 m³/s take: 18 hm³.
    stages(&mut files, 1, "chronological");
    let inner = "hydro_storage_initial(0, 1) - hydro_storage_final(0, 1) <= 5";
    let files = constrained(files, inner, "0,0,1,,\n", &Value::Null);
    costs(inner, &files, 150_000.0 - 10.0 * 23.0 / 0.0036);
}

#[test]
fn a_bus_picks_the_groups_of_units_that_feed_it() {
    let mut two = plant();
    let groups = [0, 1].map(|bus| {
        json!({"id": bus, "name": format!("G{bus}"), "bus_id": bus, "max_turbined_m3s": 50,
            "max_generation_mw": 50})
    });
    two["unit_groups"] = json!(groups);
    two["bus_id"] = Value::Null;
    let mut files = base();
    with_plants(&mut files, &[two], 1);
    // All 50 hm³ give 46.3 MW; those that feed bus 1 reach bus 0 by the line.
    let free = 150_000.0 - 10.0 * 50.0 / 0.0036;
    for (expression, expected) in [
        ("hydro_generation(0, bus=0) <= 0", free),
        ("hydro_generation(0) - hydro_turbined(0, bus=1) <= 0", free),
        // 20 MW of the 46.3 in all hours.
        ("hydro_generation(0) <= 20", 150_000.0 - 10.0 * 20.0 * 300.0),
        (
            "hydro_turbined(0, bus=0) + hydro_generation(0, 1, bus=1) <= 20",
            // The second block's generation for bus 1 counts in both rows: all goes to bus 1 in the first block.
            150_000.0 - 10.0 * (50.0 * 100.0 + 20.0 * 200.0),
        ),
    ] {
        let files = constrained(files.clone(), expression, "0,0,,,\n", &Value::Null);
        costs(expression, &files, expected);
    }
}

#[test]
fn the_commitment_that_a_stage_makes_is_a_variable() {
    let files = with_commitments(&json!([{"thermal_id": 0, "values_mw": [50]}]));
    costs("free", &files, 150_000.0);
    let files = constrained(
        files,
        "anticipated_decision(0) <= 40",
        "0,0,,,\n",
        &Value::Null,
    );
    costs("committed", &files, 210_000.0);
}

#[test]
fn what_expressions_and_parameters_get_wrong_is_said_with_its_place() {
    let one = json!([parameter("p", "constant", "value", &json!(1))]);
    let staged = json!([parameter("q", "per_stage", "values", &json!([]))]);
    let mut files = base();
    with_plants(&mut files, &[plant()], 1);
    for (expression, rows, parameters, said) in [
        (
            "@missing * thermal_generation(0) <= 1",
            "0,0,,,",
            &one,
            "there is no @missing; there are both, dear, p",
        ),
        (
            "@dear * thermal_generation(0) <= 1",
            "0,0,,,",
            &one,
            "@dear is an expression: only a parameter",
        ),
        ("@p <= 3", "0,0,,,", &one, "the expression has no variable"),
        (
            "@q * thermal_generation(0) <= 3",
            "0,0,,,",
            &staged,
            "@q has no value in stage 0, block 0",
        ),
        (
            "hydro_storage_initial(0, 1) <= 3",
            "0,0,,,",
            &one,
            "stage 0, in which the constraint holds, has parallel blocks",
        ),
        (
            "hydro_evaporation(0, 7) <= 3",
            "0,0,,,",
            &one,
            "has no block 7",
        ),
        (
            "hydro_generation(0, bus=1) <= 3",
            "0,0,,,",
            &one,
            "no unit of the plant feeds bus 1",
        ),
        (
            "thermal_generation(0, bus=1) <= 3",
            "0,0,,,",
            &one,
            "only hydro_turbined and hydro_generation have a bus",
        ),
        (
            "bus_excess(source_bus=0, target_bus=1) <= 3",
            "0,0,,,",
            &one,
            "bus_excess is of one thing: give its number",
        ),
        (
            "line_exchange(source_bus=0, target_bus=0) <= 3",
            "0,0,,,",
            &one,
            "0 lines join buses 0 and 0",
        ),
        (
            "anticipated_decision(0) <= 3",
            "0,0,,,",
            &one,
            "the plant has no anticipated_config",
        ),
        (
            "thermal_generation(0)",
            "0,0,,,",
            &one,
            "the constraint has no sense: give bound_lower or bound_upper",
        ),
        (
            "thermal_generation(0) == 3",
            "0,0,,5,4",
            &one,
            "the least, 8, is above the most, 7",
        ),
    ] {
        let files = constrained(files.clone(), expression, &format!("{rows}\n"), parameters);
        let found = errors(&files);
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{expression}: {found:#?}"
        );
    }
}

#[test]
fn parameters_and_named_expressions_are_checked_by_themselves() {
    let cases = [
        (
            json!([{"name": "p", "expression": "thermal_generation(0)"}]),
            "a parameter is called p as well",
        ),
        (
            json!([{"name": "a", "expression": "@b"}, {"name": "b", "expression": "@a"}]),
            "expressions refer to each other: a → b → a",
        ),
        (
            json!([{"name": "a", "expression": "thermal_generation(0) <= 3"}]),
            "an expression with a name has no relation",
        ),
        (
            json!([{"name": "a", "expression": "thermal_generation("}]),
            "expressions[0].expression: a whole number",
        ),
    ];
    let constraint = json!([{"id": 0, "name": "C", "expression": "thermal_generation(0) <= @p"}]);
    let one = json!([parameter("p", "constant", "value", &json!(1))]);
    for (expressions, said) in cases {
        let mut files = constrained(base(), "thermal_generation(0) <= @p", "0,0,,,\n", &one);
        files.json(
            "constraints/generic_constraints.json",
            json!({"constraints": constraint, "expressions": expressions}),
        );
        let found = errors(&files);
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
    let spec = |tag: &str, hydro: i32| json!({"tag": tag, "hydro_id": hydro});
    for (parameters, said) in [
        (
            json!([{"id": 0, "name": "p", "kind": "constant"}]),
            "scalar_parameters[0].value: the key is missing",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "constant", "value": 1, "values": []}]),
            "values: it does not go with this kind",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "per_stage", "values": [[0, 1], [0, 2]]}]),
            "values[1]: 0 is there already, at [0]",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "per_stage", "values": [[7, 1]]}]),
            "values[0]: there is no stage 7",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "per_stage", "values": [[0]]}]),
            "values[0]: a list of 1 whole numbers and a number is expected",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "per_stage_block", "block_values": [[0, 5, 1]]}]),
            "block_values[0]: stage 0 has no block 5",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "computed", "computed_spec": spec("min_storage", 3)}]),
            "computed_spec.hydro_id: there is no hydro plant 3",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "computed", "computed_spec": spec("volume", 0)}]),
            "\"volume\" is none of equivalent_productivity",
        ),
        (
            json!([{"id": 0, "name": "p", "kind": "computed", "computed_spec": spec("specific_productivity", 0)}]),
            "nothing gives it for stage 0",
        ),
        (json!([one[0], one[0]]), "parameter 1 is there already"),
    ] {
        let mut files = constrained(
            base(),
            "thermal_generation(0) <= @p",
            "0,0,,,\n",
            &parameters,
        );
        with_plants(&mut files, &[plant()], 1);
        let found = errors(&files);
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{said}: {found:#?}"
        );
    }
}
