//! Messages to the modeller when a linear program has no optimum.

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, Draft, LpFailure, LpFailureKind, Sampling, SddpError, Sense, Settings, Solver,
    StopRule, Stopping, Template, run,
};

fn settings(solver: Solver) -> Settings {
    Settings {
        seed: 1,
        passes: 1,
        selection: "none".parse().expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(5)]),
        threads: 2,
        simulate: 0,
        sampling: Sampling::Fresh,
        solver,
        checkpoints: Cadence::Never,
        resume: false,
        output: None,
        csv: false,
        ..Settings::default()
    }
}

/// Bounds, and terms by the number of their column.
type Row<'a> = (f64, f64, &'a [(usize, f64)]);

/// The optimum of one linear program, by each solver; columns are (cost, lower, upper).
fn optima(columns: &[(f64, f64, f64)], rows: &[Row<'_>]) -> [f64; 2] {
    [Solver::Kernel, Solver::Highs].map(|solver| {
        let mut draft = Draft::new(Sense::Minimize, 0.0);
        let mut lp = Template::new();
        let names: Vec<_> = columns
            .iter()
            .map(|(cost, lower, upper)| lp.column("x", *cost, *lower, *upper))
            .collect();
        for (lower, upper, terms) in rows {
            let terms: Vec<_> = terms
                .iter()
                .map(|(at, value)| (names[*at], *value))
                .collect();
            lp.row("r", *lower, *upper, &terms);
        }
        let lp = draft.template(lp);
        let node = draft.node("only", lp);
        draft.start(node, 1.0);
        let problem = draft.build().expect("it makes sense");
        let results = run(&LocalBackend, problem, &settings(solver), &mut ());
        results.expect("it has an optimum").trained.bound
    })
}

#[test]
fn small_costs_are_costs() {
    let infinite = f64::INFINITY;
    let columns = [(6e-8, 0.0, infinite), (1e-8, 0.0, infinite)];
    let rows: [Row<'_>; 1] = [(1e8, infinite, &[(0, 2.0), (1, 1.0)])];
    for found in optima(&columns, &rows) {
        assert!((found - 1.0).abs() < 1e-6, "{found}");
    }
}

#[test]
fn a_program_of_many_scales_is_not_called_unbounded() {
    let infinite = f64::INFINITY;
    let columns = [
        (-0.41, -2.0, 4.5),
        (0.14, -50.0, infinite),
        (12.7, 0.0, infinite),
        (0.0, -100.0, infinite),
        (1.0, -infinite, infinite),
    ];
    let rows: [Row<'_>; 4] = [
        (1.84e-5, 1.84e-5, &[(0, 1.7e-6), (1, 1.7e-6), (3, -1.7e-6)]),
        (52712.0, infinite, &[(1, 38790.0), (2, 38790.0)]),
        (0.0, infinite, &[(3, -9.5e-6), (4, 2.7e-6)]),
        (0.0, infinite, &[(3, 0.0061), (4, 0.0259)]),
    ];
    for found in optima(&columns, &rows) {
        assert!((found + 0.959_705_88).abs() < 1e-6, "{found}");
    }
}

/// Two stages: water is released to meet a demand that grows with the second opening.
fn failure(shortage_allowed: bool, release_cost: f64) -> (String, LpFailure) {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("storage", 3.0);
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
    let after = lp.column("after", 0.0, 0.0, 10.0);
    let released = lp.column("released", 0.0, 0.0, f64::INFINITY);
    let most = if shortage_allowed { f64::INFINITY } else { 0.0 };
    let bought = lp.column("bought", release_cost, 0.0, most);
    lp.row(
        "balance",
        0.0,
        0.0,
        &[(after, 1.0), (released, 1.0), (before, -1.0)],
    );
    let demand = lp.row(
        "demand",
        1.0,
        f64::INFINITY,
        &[(released, 1.0), (bought, 1.0)],
    );
    lp.state("storage", before, after);
    let lp = draft.template(lp);
    let first = draft.node("wet", lp);
    let second = draft.node("dry", lp);
    draft.start(first, 1.0);
    draft.edge(first, second, 1.0);
    for need in [0.0, 7.5] {
        let change = Change::RowBounds {
            row: demand,
            lower: need,
            upper: f64::INFINITY,
        };
        draft.opening(second, 0.5, vec![change]);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        output: Some(directory.path().to_owned()),
        csv: false,
        ..settings(Solver::default())
    };
    let problem = draft.build().expect("it makes sense");
    let error = run(&LocalBackend, problem, &settings, &mut ()).expect_err("it has no optimum");
    let text = error.to_string();
    let SddpError::Solver { failure, .. } = error else {
        panic!("{text}");
    };
    let file = failure.file.clone().expect("the linear program is written");
    let written = std::fs::read_to_string(&file).expect("it can be read");
    assert!(written.contains("demand"), "{written}");
    (text, *failure)
}

#[test]
fn an_infeasible_node_names_the_rows_that_must_give_way() {
    let (text, failure) = failure(false, 1.0);
    assert_eq!(failure.kind, LpFailureKind::Infeasible);
    assert_eq!((failure.node.as_str(), failure.opening), ("dry", Some(2)));
    for part in [
        "iteration 1",
        "scenario 1",
        "demand needs at least 7.5",
        "storage =",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_unbounded_node_names_the_columns_that_run_away() {
    let (text, failure) = failure(true, -1.0);
    assert_eq!(failure.kind, LpFailureKind::Unbounded);
    assert!(
        text.contains("give one of these columns a bound: bought"),
        "{text}"
    );
}
