//! Messages to the modeller when a linear program has no optimum.

use std::path::Path;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, Draft, LpFailure, LpFailureKind, SddpError, Sense, Settings, Solver, StopRule,
    Stopping, Template, run,
};
use std::num::NonZero;

fn settings(solver: Solver) -> Settings {
    Settings {
        seed: 1,
        stopping: Stopping::any(vec![StopRule::Iterations(5)]),
        threads: NonZero::new(2).expect("not 0"),
        solver,
        checkpoints: Cadence::Never,
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
    let directory = tempfile::tempdir().expect("a directory");
    let (text, failure) = failure_in(directory.path(), shortage_allowed, release_cost);
    let file = failure.file.clone().expect("the linear program is written");
    let written = std::fs::read_to_string(&file).expect("it can be read");
    assert!(written.contains("demand"), "{written}");
    (text, failure)
}

/// As [`failure`], with results in this directory.
fn failure_in(output: &Path, shortage_allowed: bool, release_cost: f64) -> (String, LpFailure) {
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
    let settings = Settings {
        output: Some(output.to_owned()),
        ..settings(Solver::default())
    };
    let problem = draft.build().expect("it makes sense");
    let error = run(&LocalBackend, problem, &settings, &mut ()).expect_err("it has no optimum");
    let text = error.to_string();
    let SddpError::Solver { failure, .. } = error else {
        panic!("{text}");
    };
    (text, *failure)
}

#[test]
fn a_failed_program_replaces_nothing_but_an_earlier_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = || failure_in(directory.path(), false, 1.0).1.file;
    let place = file().expect("it is written");
    assert_eq!(file(), Some(place.clone()), "an earlier one is replaced");
    std::fs::write(&place, "a thesis").expect("a file of the user's");
    assert_eq!(file(), None);
    assert_eq!(std::fs::read(&place).expect("it is there"), b"a thesis");
    std::fs::remove_file(&place).expect("it is removed");
    let thesis = directory.path().join("thesis");
    std::fs::write(&thesis, "").expect("an empty file");
    std::os::unix::fs::symlink(&thesis, &place).expect("a link");
    assert_eq!(file(), None);
    assert_eq!(std::fs::read(&thesis).expect("it is there"), b"");
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

/// Two nodes, the first of which costs nothing and leaves a state of at most `most`; the second needs `needed` of
/// column z per unit of it, at this cost.
fn chain((needed, cost): (f64, f64), most: f64) -> Result<cobre_sddp::Problem, String> {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("x", most);
    let mut lp = Template::new();
    let incoming = lp.column("x.before", 0.0, -most, most);
    let outgoing = lp.column("x", 0.0, -most, most);
    let z = lp.column("z", cost, 0.0, f64::INFINITY);
    lp.row("keep", 0.0, 0.0, &[(outgoing, 1.0), (incoming, -1.0)]);
    lp.row("need", 0.0, f64::INFINITY, &[(z, 1.0), (incoming, -needed)]);
    lp.state("x", incoming, outgoing);
    let lp = draft.template(lp);
    let (first, second) = (draft.node("first", lp), draft.node("second", lp));
    draft.start(first, 1.0);
    draft.edge(first, second, 1.0);
    draft.build().map_err(|errors| errors.to_string())
}

#[test]
fn a_coefficient_that_a_solver_would_drop_is_an_error_with_its_place() {
    let said =
        |needed: f64, cost: f64, most: f64| chain((needed, cost), most).expect_err("it is refused");
    for small in [1e-12, -9e-10, 5e-17] {
        let text = said(small, 1.0, 1e15);
        let place = "node first: the coefficient of column x.before in row need is";
        assert!(text.contains(place), "{text}");
        assert!(
            text.contains("a solver takes 0, or a number of 1e-9 or more"),
            "{text}"
        );
    }
    let text = said(1.0, 1e-12, 1e15);
    assert!(
        text.contains("node first: the cost of column z is 1e-12"),
        "{text}"
    );
    let text = said(1e15, 1.0, 1.0);
    assert!(
        text.contains("is -1000000000000000.0, beyond ±1e12"),
        "{text}"
    );
}

#[test]
fn the_rest_of_a_sum_that_cancels_is_no_error_and_no_coefficient() {
    // Beside a coefficient of 1, and a state of at most 100.
    let problem = chain((5e-17, 1.0), 100.0).expect("it is taken for zero");
    let terms = &problem.templates[0].rows[1].terms;
    assert!(terms.iter().any(|term| term.1 == 0.0), "{terms:?}");
    let mut lp = Template::new();
    let x = lp.column("x", 1.0, 0.0, 1e15);
    lp.row("r", 0.0, 1.0, &[(x, 0.1), (x, 0.2), (x, -0.3)]);
    assert_eq!(lp.rows[0].terms, [(0, 0.0)]);
}

#[test]
fn the_smallest_and_the_largest_coefficients_are_exact() {
    for solver in [Solver::Kernel, Solver::Highs] {
        for (needed, cost, most) in [
            (1e-9, 1.0, 1e12),
            (1e-9, 1.0, 1e15),
            (1e12, 1e-6, 1.0),
            (1e12, 1.0, 1e3),
        ] {
            let problem = chain((needed, cost), most).expect("it makes sense");
            let results = run(&LocalBackend, problem, &settings(solver), &mut ());
            let bound = results.expect("it has an optimum").trained.bound;
            let exact = 2.0 * needed * cost * most;
            assert!(
                (bound / exact - 1.0).abs() < 1e-6,
                "{solver:?} {needed} {cost} {most}: {bound} {exact}"
            );
        }
    }
}

#[test]
fn numbers_of_cuts_that_solvers_do_not_take_are_named() {
    let said = |given: (f64, f64), most: f64, solver: Solver| {
        let problem = chain(given, most).expect("it makes sense");
        let failed = run(&LocalBackend, problem, &settings(solver), &mut ());
        failed.expect_err("no solver takes it").to_string()
    };
    for solver in [Solver::Kernel, Solver::Highs] {
        let text = said((1e12, 1e15), 1.0, solver);
        assert!(
            text.contains("iteration 1, backward pass, scenario 1: node first"),
            "{text}"
        );
        assert!(
            text.contains("a slope of 1e27 in state x, beyond ±1e18"),
            "{text}"
        );
    }
    // A slope of 1e-13 is worth 100 here, and HiGHS takes it for zero.
    let text = said((1e-4, 1e-9), 1e15, Solver::Highs);
    assert!(text.contains("slopes of 1e-12 or less"), "{text}");
}
