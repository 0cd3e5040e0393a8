//! Kernels that are wrong on purpose are found out, and solutions do not depend on who solves what.

#[path = "tests/hyperplanes.rs"]
mod hyperplanes;

use std::num::NonZero;
use std::path::Path;

use cobre_comm::LocalBackend;

use super::{NodeSolver, Solver, WarmStart, most_bases};
use crate::SddpError;
use crate::fuzzing::sample::{Hydrothermal, hydrothermal};
use crate::kernel::{Fault, PresolvedNodes, Workspace, with_sparse_factors};
use crate::lp::{Detail, LpStatistics, NodeSolution, NodeView, Visit};
use crate::policy::{CutPool, NewCut, Selection};
use crate::problem::Problem;
use crate::ranks::Ranks;
use crate::run::run;
use crate::settings::Settings;
use crate::training::{StopRule, Stopping};

/// Trains on a made-up system with HiGHS beside a kernel that may have a fault.
fn trained(fault: Option<Fault>) -> Result<LpStatistics, SddpError> {
    let size = Hydrothermal {
        stages: 4,
        regions: 2,
        reservoirs: 4,
        thermals: 16,
        blocks: 2,
        lags: 1,
        openings: 8,
        known_start: false,
    };
    let problem = hydrothermal(size).expect("sizes are not zero");
    trained_on(problem, (10, 10), fault)
}

/// Trains for so many iterations and simulates so many paths, with HiGHS beside a kernel that may have a fault.
fn trained_on(
    problem: Problem,
    (iterations, paths): (usize, usize),
    fault: Option<Fault>,
) -> Result<LpStatistics, SddpError> {
    let settings = Settings {
        seed: 5,
        passes: NonZero::new(2).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        simulate: paths,
        solver: Solver::Check,
        checkpoints: crate::checkpoint::Cadence::Never,
        ..Settings::default()
    };
    let results = Fault::during(fault, || run(&LocalBackend, problem, &settings, &mut ()));
    results.map(|results| results.lp)
}

/// The check that found a fault.
#[derive(Debug, PartialEq)]
enum Caught {
    /// The checks of the kernel: HiGHS had to solve.
    ByLadder,
    /// The comparison with HiGHS, or HiGHS, which does not take a cut.
    ByDifference,
    Not,
}

fn caught(fault: Option<Fault>) -> Caught {
    match trained(fault) {
        Ok(statistics) if statistics.fallbacks > 0 => Caught::ByLadder,
        Ok(_) => Caught::Not,
        Err(error) => {
            let told = format!("{error:?}");
            let known = ["two solvers differ", "refused to take a cut"];
            assert!(known.iter().any(|words| told.contains(words)), "{told}");
            Caught::ByDifference
        }
    }
}

/// Asserts that the kernel solved everything itself, as HiGHS does.
fn agree_without_help(trained: Result<LpStatistics, SddpError>) {
    let statistics = trained.expect("both agree");
    assert_eq!(
        (statistics.fallbacks, statistics.highs),
        (0, 0),
        "{statistics:?}"
    );
    assert!(
        statistics.checked > 500 && statistics.difference < 1e-8,
        "{statistics:?}"
    );
}

#[test]
fn the_kernel_as_it_is_agrees_without_help() {
    agree_without_help(trained(None));
    assert_eq!(caught(None), Caught::Not);
}

#[test]
fn a_wrong_sign_in_the_ratio_test_is_caught_by_the_ladder() {
    assert_eq!(caught(Some(Fault::WrongSign)), Caught::ByLadder);
}

#[test]
fn a_missed_bound_flip_is_caught_by_the_ladder() {
    assert_eq!(caught(Some(Fault::MissedFlips)), Caught::ByLadder);
}

#[test]
fn sparse_factors_agree_without_help() {
    agree_without_help(with_sparse_factors(|| trained(None)));
}

#[test]
fn faults_of_sparse_factors_are_caught() {
    for fault in [Fault::LostUpdate, Fault::WrongPermutation] {
        let found = with_sparse_factors(|| caught(Some(fault)));
        assert_ne!(found, Caught::Not, "{fault:?}");
    }
}

#[test]
fn an_overlooked_cut_is_caught_by_the_difference() {
    assert_eq!(caught(Some(Fault::OverlookedCuts)), Caught::ByDifference);
}

fn one_river() -> Problem {
    let size = Hydrothermal {
        stages: 5,
        regions: 3,
        reservoirs: 3,
        thermals: 12,
        blocks: 1,
        lags: 0,
        openings: 11,
        known_start: false,
    };
    hydrothermal(size).expect("sizes are not zero")
}

/// Trains one node's cuts from the solutions of its successor, with the units spread over `objects`
/// threads with a workspace and solvers of their own; returns every bit of every solution.
fn answers(solver: Solver, objects: usize, lml1: bool) -> Vec<u64> {
    let problem = one_river();
    let comm = LocalBackend;
    let ranks = Ranks::new(&comm);
    let selection = if lml1 {
        "lml1".parse()
    } else {
        Ok(Selection::ALL)
    };
    let units = 6;
    let mut pool = CutPool::<LocalBackend>::new(&problem, units, selection.expect("a rule"));
    let presolved = PresolvedNodes::new(problem.nodes.len());
    let mut workspaces: Vec<Workspace> = (0..objects).map(|_| Workspace::default()).collect();
    let mut solvers: Vec<Vec<Option<NodeSolver>>> = (0..objects)
        .map(|_| (0..problem.nodes.len()).map(|_| None).collect())
        .collect();
    let mut warm_starts: Vec<Vec<WarmStart>> = (0..units)
        .map(|_| problem.nodes.iter().map(|_| WarmStart::default()).collect())
        .collect();
    let mut bits = Vec::new();
    for iteration in 0..12 {
        for level in 1..problem.graph.depth() {
            let node = problem.graph.depth() - level;
            let mut cuts = Vec::new();
            for (unit, warm_starts) in warm_starts.iter_mut().enumerate() {
                let share = (unit * 7 + iteration * 3) % 17;
                let state = vec![20_000.0 * share as f64 / 17.0; 3];
                let view = NodeView {
                    problem: &problem,
                    values: &problem.values,
                    node,
                    cuts: pool.cuts(&problem, node),
                    failures: Path::new("."),
                    given: None,
                };
                // Spreads units differently each time, and objects come in one after the other, so
                // that they meet nodes at different times.
                let present = objects.min(1 + iteration / 3);
                let object = (unit + iteration * (level % 2)) % present;
                let solver = match &mut solvers[object][node] {
                    Some(solver) => solver,
                    empty => {
                        let loaded = NodeSolver::load(&view, &presolved, solver, usize::MAX);
                        empty.insert(loaded.expect("it loads"))
                    }
                };
                let (mut value, mut gradient) = (0.0, vec![0.0; 3]);
                let mut each = |_: usize, answer: &NodeSolution| {
                    value += answer.bound / 11.0;
                    for (sum, slope) in gradient.iter_mut().zip(&answer.gradient) {
                        *sum += slope / 11.0;
                    }
                    let numbers = answer
                        .columns
                        .iter()
                        .chain(&answer.gradient)
                        .chain([&answer.bound]);
                    bits.extend(numbers.map(|number| number.to_bits()));
                };
                let visit = Visit {
                    incoming: &state,
                    openings: 0..11,
                    detail: Detail::Full,
                };
                let (work, warm_start) = (&mut workspaces[object], &mut warm_starts[node]);
                solver
                    .solve(work, &view, &visit, warm_start, &mut each)
                    .expect("it is solved");
                let at_zero = value - gradient.iter().zip(&state).map(|(a, b)| a * b).sum::<f64>();
                cuts.push(NewCut {
                    pass: unit,
                    visit: 0,
                    node: node - 1,
                    intercept: at_zero,
                    gradient,
                    point: state,
                });
            }
            pool.insert(&problem, level, iteration, &cuts);
        }
        pool.publish(&ranks).expect("one rank");
    }
    bits
}

#[test]
fn units_with_sparse_factors_give_the_same_bits_on_any_solver_object() {
    let solved = |objects| with_sparse_factors(|| answers(Solver::Kernel, objects, true));
    let one = solved(1);
    for objects in 2..=4 {
        assert!(solved(objects) == one, "{objects} objects");
    }
}

#[test]
fn units_split_over_any_number_of_solver_objects_give_the_same_bits() {
    for solver in [Solver::Highs, Solver::Kernel] {
        for lml1 in [false, true] {
            let one = answers(solver, 1, lml1);
            for objects in 2..=4 {
                assert!(
                    answers(solver, objects, lml1) == one,
                    "{solver:?}: {objects} objects, lml1 {lml1}"
                );
            }
        }
    }
}

/// Visits a node a few times at changing states; returns the values, and the bytes and the number of remembered bases
/// after each visit.
fn visits(basis_bytes: usize) -> (Vec<f64>, Vec<usize>) {
    let problem = one_river();
    let pool = CutPool::<LocalBackend>::new(&problem, 1, Selection::ALL);
    let (mut warm_start, mut solver) = (WarmStart::default(), None);
    let mut work = Workspace::default();
    let (mut values, mut bytes) = (Vec::new(), Vec::new());
    for visit in 0..12 {
        let view = NodeView {
            problem: &problem,
            values: &problem.values,
            node: 1,
            cuts: pool.cuts(&problem, 1),
            failures: Path::new("."),
            given: None,
        };
        let solver = solver.get_or_insert_with(|| {
            let presolved = PresolvedNodes::new(problem.nodes.len());
            NodeSolver::load(&view, &presolved, Solver::Kernel, basis_bytes).expect("it loads")
        });
        let state = vec![20_000.0 * f64::from(visit * 7 % 12) / 12.0; 3];
        let visit = Visit {
            incoming: &state,
            openings: 0..11,
            detail: Detail::Cut,
        };
        let mut each = |_: usize, answer: &NodeSolution| values.push(answer.bound);
        solver
            .solve(&mut work, &view, &visit, &mut warm_start, &mut each)
            .expect("it is solved");
        bytes.push(warm_start.kernel.bytes());
    }
    (values, bytes)
}

#[test]
fn remembered_bases_stay_within_their_bytes() {
    let (expected, free) = visits(usize::MAX);
    let most = most_bases(11);
    for basis_bytes in [0, 1, 50, 200, 1000] {
        let (values, bytes) = visits(basis_bytes);
        assert!(
            bytes.iter().all(|&bytes| bytes <= most * basis_bytes),
            "{basis_bytes}: {bytes:?}"
        );
        for (value, expected) in values.iter().zip(&expected) {
            assert!(
                (value - expected).abs() <= 1e-9 * expected.abs(),
                "{basis_bytes}"
            );
        }
    }
    assert!(free.iter().all(|&bytes| bytes > most * 50), "{free:?}");
}

/// A basis cache as it is written, with its fields in the open.
#[derive(serde::Serialize, serde::Deserialize)]
struct OpenCache {
    entries: Vec<OpenBasis>,
    openings: usize,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct OpenBasis {
    head: Vec<u32>,
    rows: Vec<u32>,
    sense: Vec<i8>,
    curve_states: Vec<(u32, bool)>,
    constant: f64,
    #[serde(with = "crate::packing")]
    slopes: Vec<f64>,
    at_visit: f64,
    weights: Vec<f32>,
    row_weights: Vec<u8>,
    references: Vec<u8>,
    factors: Option<OpenFactors>,
    lu_bytes: u32,
    idle: u32,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct OpenFactors {
    #[serde(with = "crate::packing")]
    numbers: Vec<f64>,
    bound_cost: f64,
    age: u32,
}

/// Visits a node twice at one state, the second time with bases that were written, changed by `change` and read; gives
/// the values, and how often the second visit found its optimal basis among them.
fn read_again(change: impl Fn(&mut OpenBasis) -> bool) -> ([f64; 2], u64) {
    let problem = one_river();
    let pool = CutPool::<LocalBackend>::new(&problem, 1, Selection::ALL);
    let view = NodeView {
        problem: &problem,
        values: &problem.values,
        given: None,
        node: 1,
        cuts: pool.cuts(&problem, 1),
        failures: Path::new("."),
    };
    let (mut warm_start, mut values, mut remembered) = (WarmStart::default(), [0.0; 2], 0);
    for value in &mut values {
        let presolved = PresolvedNodes::new(problem.nodes.len());
        let loaded = NodeSolver::load(&view, &presolved, Solver::Kernel, usize::MAX);
        let mut solver = loaded.expect("it loads");
        let visit = Visit {
            incoming: &[9_000.0; 3],
            openings: 0..1,
            detail: Detail::Cut,
        };
        let mut each = |_: usize, answer: &NodeSolution| *value = answer.bound;
        let mut work = Workspace::default();
        let outcome = solver.solve(&mut work, &view, &visit, &mut warm_start, &mut each);
        outcome.expect("it is solved");
        remembered = solver.statistics().remembered;
        let written = postcard::to_allocvec(&warm_start.kernel).expect("it is written");
        let mut open: OpenCache = postcard::from_bytes(&written).expect("it is read");
        assert!(open.entries.iter_mut().any(&change), "nothing to change");
        let changed = postcard::to_allocvec(&open).expect("it is written");
        warm_start.kernel = postcard::from_bytes(&changed).expect("it is read");
    }
    (values, remembered)
}

#[test]
fn bases_whose_marks_contradict_their_columns_are_not_believed() {
    let (values, remembered) = read_again(|_| true);
    assert_eq!((values[0], remembered), (values[1], 1));
    let marked = |basis: &OpenBasis| {
        let columns = basis.head.iter().map(|&variable| variable as usize);
        columns
            .filter(|&column| column < basis.sense.len())
            .collect::<Vec<usize>>()
    };
    let at_bound = |basis: &mut OpenBasis| {
        let basic = marked(basis);
        for &column in &basic {
            basis.sense[column] = 1;
        }
        !basic.is_empty()
    };
    let not_basic = |basis: &mut OpenBasis| {
        let found = basis.sense.iter().position(|&sense| sense != 0);
        found.map(|column| basis.sense[column] = 0).is_some()
    };
    let curve = |basis: &mut OpenBasis| {
        let found = basis.curve_states.iter_mut().find(|state| state.1);
        found.map(|state| state.1 = false).is_some()
    };
    let changes: [&dyn Fn(&mut OpenBasis) -> bool; 3] = [&at_bound, &not_basic, &curve];
    for (number, change) in changes.into_iter().enumerate() {
        let (values, remembered) = read_again(change);
        assert_eq!(remembered, 0, "change {number}");
        assert!((values[0] - values[1]).abs() <= 1e-9 * values[0].abs());
    }
}
