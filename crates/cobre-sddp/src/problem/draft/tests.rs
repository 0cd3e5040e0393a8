use super::*;

fn reservoir() -> Template {
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
    let after = lp.column("after", 0.0, 0.0, 10.0);
    let released = lp.column("released", 1.0, 0.0, f64::INFINITY);
    lp.row(
        "balance",
        2.0,
        2.0,
        &[(after, 1.0), (before, -1.0), (released, 1.0)],
    );
    lp.state("storage", before, after);
    lp
}

fn chain(nodes: usize) -> (Draft, Vec<NodeId>) {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("storage", 5.0);
    let lp = draft.template(reservoir());
    let ids: Vec<NodeId> = (0..nodes)
        .map(|number| draft.node(format!("{number}"), lp))
        .collect();
    draft.start(ids[0], 1.0);
    for pair in ids.windows(2) {
        draft.edge(pair[0], pair[1], 1.0);
    }
    (draft, ids)
}

fn refusals(draft: Draft) -> Vec<String> {
    let ProblemErrors(errors) = draft.build().expect_err("it makes no sense");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_problem_is_built() {
    let (draft, _) = chain(3);
    let problem = draft.build().expect("it makes sense");
    assert_eq!(problem.graph.depth(), 3);
    assert_eq!(problem.nodes[0].probabilities, [1.0]);
}

#[test]
fn all_errors_come_at_once() {
    let (mut draft, ids) = chain(2);
    draft.state("storage", f64::NAN);
    draft.opening(ids[1], 0.4, vec![Change::Constant(f64::NAN)]);
    draft.start(ids[1], 0.5);
    let refused = refusals(draft);
    for part in [
        "the initial value of state storage is NaN",
        "two states",
        "sum to 0.4",
        "is NaN; a finite number is needed",
        "more than 1",
    ] {
        assert!(
            refused.iter().any(|error| error.contains(part)),
            "{part}: {refused:?}"
        );
    }
}

#[test]
fn a_cycle_that_no_path_leaves_is_refused_by_name() {
    let (mut draft, ids) = chain(3);
    draft.edge(ids[2], ids[1], 0.9);
    let problem = draft.build().expect("a tenth of the paths leave it");
    assert!(problem.graph.is_cyclic());
    let (mut draft, ids) = chain(3);
    draft.edge(ids[2], ids[1], 1.0);
    let refused = refusals(draft);
    assert!(
        refused[0].contains("a cycle that no path leaves, 1 → 2 → 1: "),
        "{refused:?}"
    );
}

#[test]
fn an_opening_replaces_what_it_names_and_keeps_the_rest() {
    let (mut draft, ids) = chain(2);
    let row = RowId(0);
    let wet = Change::RowBounds {
        row,
        lower: 7.0,
        upper: 7.0,
    };
    draft.opening(ids[1], 0.5, vec![wet]);
    draft.opening(
        ids[1],
        0.5,
        vec![Change::Cost {
            column: ColumnId(2),
            value: 3.0,
        }],
    );
    let problem = draft.build().expect("it makes sense");
    let parts = |opening| {
        let values = problem.opening(&problem.values, 1, opening);
        let parts = problem.nodes[1].places.split(values);
        (parts.row_lower[0], parts.row_upper[0], parts.costs[0])
    };
    assert_eq!(parts(0), (7.0, 7.0, 1.0));
    assert_eq!(parts(1), (2.0, 2.0, 3.0));
}

#[test]
fn a_revenue_becomes_a_cost() {
    let mut draft = Draft::new(Sense::Maximize, 100.0);
    draft.state("storage", 5.0);
    let lp = draft.template(reservoir());
    let node = draft.node("only", lp);
    draft.start(node, 1.0);
    draft.opening(
        node,
        1.0,
        vec![Change::Cost {
            column: ColumnId(2),
            value: 3.0,
        }],
    );
    let problem = draft.build().expect("it makes sense");
    assert_eq!(problem.templates[0].columns[2].cost, -1.0);
    assert_eq!(problem.values[0], -3.0);
    assert_eq!(problem.nodes[0].future_bound, -100.0);
}

#[test]
fn bounds_that_nothing_meets_are_refused() {
    let (mut draft, ids) = chain(2);
    let change = Change::RowBounds {
        row: RowId(0),
        lower: 2.0,
        upper: 1.0,
    };
    draft.opening(ids[1], 1.0, vec![change]);
    let refused = refusals(draft);
    assert!(
        refused[0].contains("node 1, opening 1") && refused[0].contains("balance"),
        "{refused:?}"
    );
}

#[test]
fn a_validation_path_that_leaves_the_graph_is_refused() {
    let (mut draft, ids) = chain(3);
    let step = |node| Step {
        node,
        changes: Vec::new(),
    };
    draft.validate(vec![step(ids[0]), step(ids[2])]);
    let refused = refusals(draft);
    assert!(
        refused[0].contains("scenario 1") && refused[0].contains("does not follow"),
        "{refused:?}"
    );
}

#[test]
fn openings_that_multiply_into_more_than_a_problem_can_have_are_refused() {
    // Every opening changes another row: 9,000 openings of 18,001 numbers each.
    let count = 9_000;
    let mut lp = Template::new();
    let column = lp.column("x", 1.0, 0.0, 1.0);
    let rows: Vec<RowId> = (0..count)
        .map(|row| lp.row(format!("row {row}"), 0.0, 1.0, &[(column, 1.0)]))
        .collect();
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let lp = draft.template(lp);
    let node = draft.node("only", lp);
    draft.start(node, 1.0);
    for row in rows {
        let change = Change::RowBounds {
            row,
            lower: 0.0,
            upper: 0.5,
        };
        draft.opening(node, 1.0 / f64::from(count), vec![change]);
    }
    let refused = draft.build().expect_err("it is too large").0;
    let text = refused[0].to_string();
    assert!(text.contains("162009000 numbers"), "{text}");
    assert!(text.contains("at most 67108864 are possible"), "{text}");
}
