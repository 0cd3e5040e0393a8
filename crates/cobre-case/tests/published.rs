//! Problems with published optima, where the reference data are at hand.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use cobre_case::{Options, read};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Problem, Settings, Solver, StopRule, Stopping, run};

fn reference() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let candidates = [
        root.join("shared/reference/problems"),
        root.join("../shared/reference/problems"),
    ];
    candidates.into_iter().find(|path| path.is_dir())
}

/// One line of the table of expected values.
struct Expected {
    name: String,
    bound: f64,
    optimum: Option<f64>,
    tolerance: Option<f64>,
}

fn table(directory: &Path) -> Vec<Expected> {
    let text = std::fs::read_to_string(directory.join("expected.csv")).expect("the table is there");
    let lines = text.lines().skip(1);
    let parse = |line: &str| {
        let cells: Vec<&str> = line.splitn(9, ',').collect();
        Expected {
            name: cells[0].to_owned(),
            bound: cells[2].parse().expect("a bound"),
            optimum: cells[5].parse().ok(),
            tolerance: cells[6].parse().ok(),
        }
    };
    lines.map(parse).collect()
}

/// The problem of a line.
fn problem(directory: &Path, expected: &Expected) -> Problem {
    let path = directory.join(format!("{}.sof.json", expected.name));
    let options = Options {
        bound: Some(expected.bound),
        ..Options::default()
    };
    read(&path, &options).expect("it makes sense")
}

fn solve(problem: Problem, iterations: usize, solver: Solver) -> f64 {
    let settings = Settings {
        seed: 1,
        passes: NonZero::new(4).expect("not 0"),
        selection: "lml1".parse().expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        threads: NonZero::new(2).expect("not 0"),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    let results = run(&LocalBackend, problem, &settings, &mut ()).expect("it runs");
    results.trained.bound
}

#[test]
fn published_optima_are_reached() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let mut wrong = Vec::new();
    let mut checked = 0;
    for expected in table(&directory) {
        let (Some(optimum), Some(tolerance)) = (expected.optimum, expected.tolerance) else {
            continue;
        };
        let problem = problem(&directory, &expected);
        for solver in [Solver::Kernel, Solver::Highs] {
            let found = solve(problem.clone(), 120, solver);
            let name = format!("{} with {}", expected.name, solver.name());
            println!("{name}: {found}, published {optimum} ± {tolerance}");
            checked += 1;
            if (found - optimum).abs() > tolerance {
                wrong.push(format!("{name}: {found} instead of {optimum}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked >= 38, "{checked} runs have a tolerance");
}

#[test]
fn the_kernel_and_highs_agree_on_every_linear_program_of_the_reference() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let more = std::env::var("COBRE_DIFFERENTIAL").is_ok();
    for expected in table(&directory) {
        let path = directory.join(format!("{}.sof.json", expected.name));
        let size = std::fs::metadata(&path).expect("it is there").len();
        let problem = problem(&directory, &expected);
        let iterations = match (more, size > 100_000) {
            (false, true) => 2,
            (false, false) => 20,
            (true, true) => 25,
            (true, false) => 200,
        };
        // A difference is an error, which names the linear program.
        let found = solve(problem, iterations, Solver::Check);
        println!("{}: {found} after {iterations} iterations", expected.name);
    }
}

/// A reservoir of 5 to 15, full at 10, whose inflows and demands SDDP.jl publishes with its infinite horizons and its inner
/// approximations: nodes are numbered from 1 and take thermal power at these costs; `next` says what follows each.
fn reservoir(
    name: &str,
    costs: &[f64],
    spilled: f64,
    outcomes: [[f64; 2]; 3],
    next: impl Fn(usize) -> serde_json::Value,
) -> tempfile::NamedTempFile {
    use serde_json::{Map, json};
    let term = |variable: &str, coefficient: f64| json!({"variable": variable, "coefficient": coefficient});
    let affine = |terms: &[serde_json::Value]| json!({"type": "ScalarAffineFunction", "terms": terms, "constant": 0.0});
    let (mut nodes, mut programs) = (Map::new(), Map::new());
    for (place, cost) in costs.iter().enumerate() {
        let water = [
            term("after", 1.0),
            term("before", -1.0),
            term("hydro", 1.0),
            term("spilled", 1.0),
            term("inflow", -1.0),
        ];
        let power = [
            term("hydro", 1.0),
            term("thermal", 1.0),
            term("demand", -1.0),
        ];
        let least = |variable: &str, value: f64| {
            json!({"function": {"type": "Variable", "name": variable},
                "set": {"type": "GreaterThan", "lower": value}})
        };
        let zero = json!({"type": "EqualTo", "value": 0.0});
        let most = json!({"function": {"type": "Variable", "name": "after"},
            "set": {"type": "LessThan", "upper": 15.0}});
        let names = [
            "before", "after", "thermal", "hydro", "spilled", "inflow", "demand",
        ];
        let program = json!({
            "state_variables": {"storage": {"in": "before", "out": "after"}},
            "random_variables": ["inflow", "demand"],
            "subproblem": {
                "version": {"major": 1, "minor": 2},
                "variables": names.map(|name| json!({"name": name})),
                "objective": {"sense": "min", "function": affine(&[term("thermal", *cost), term("spilled", spilled)])},
                "constraints": [
                    {"name": "water", "function": affine(&water), "set": zero},
                    {"name": "power", "function": affine(&power), "set": zero},
                    least("after", 5.0), most, least("thermal", 0.0), least("hydro", 0.0), least("spilled", 0.0),
                ],
            },
        });
        let outcomes = outcomes.map(|[inflow, demand]| {
            json!({"probability": 1.0 / 3.0, "support": {"inflow": inflow, "demand": demand}})
        });
        let number = place + 1;
        let node = json!({"subproblem": format!("program{number}"), "realizations": outcomes,
            "successors": next(number)});
        nodes.insert(number.to_string(), node);
        programs.insert(format!("program{number}"), program);
    }
    let file = json!({
        "name": name,
        "version": {"major": 1, "minor": 0},
        "root": {"state_variables": {"storage": 10.0}, "successors": {"1": 1.0}},
        "nodes": nodes,
        "subproblems": programs,
    });
    let path = tempfile::Builder::new().suffix(".sof.json").tempfile();
    let path = path.expect("a file");
    std::fs::write(path.path(), file.to_string()).expect("it is written");
    path
}

/// Inflow and demand of the outcomes.
const OUTCOMES: [[f64; 2]; 3] = [[0.0, 7.5], [5.0, 5.0], [10.0, 2.5]];

fn of_file(file: &tempfile::NamedTempFile) -> Problem {
    let options = Options {
        bound: Some(0.0),
        ..Options::default()
    };
    read(file.path(), &options).expect("it makes sense")
}

#[test]
fn published_values_of_infinite_horizons_are_reached() {
    use serde_json::json;
    let again = |goes_on: f64, count: usize| {
        move |node: usize| match node {
            last if last == count => json!({"1": goes_on}),
            node => json!({(node + 1).to_string(): 1.0}),
        }
    };
    let one = reservoir("week", &[1.0], 10.0, OUTCOMES, again(0.9, 1));
    // Three seasons; the value is that of value iteration over steps of 0.5.
    let dry = [[0.0, 7.5], [3.0, 5.0], [10.0, 2.5]];
    let three = reservoir("seasons", &[1.0, 2.0, 3.0], 1.0, dry, again(0.95, 3));
    for (file, published) in [(one, 119.166_666), (three, 236.436_671)] {
        for solver in [Solver::Kernel, Solver::Highs] {
            let found = solve(of_file(&file), 150, solver);
            assert!((found - published).abs() <= 1e-4, "{found}, {published}");
        }
    }
}

#[test]
fn published_values_of_inner_approximations_are_reached_from_both_sides() {
    use serde_json::json;
    // As SDDP.jl has them, within 0.1.
    for (stages, published) in [(2, 21.39), (4, 45.833), (20, 241.383)] {
        let next = |node: usize| match node {
            last if last == stages => json!({}),
            node => json!({(node + 1).to_string(): 1.0}),
        };
        let file = reservoir("stages", &vec![1.0; stages], 10.0, OUTCOMES, next);
        let settings = Settings {
            seed: 1,
            passes: NonZero::new(4).expect("not 0"),
            stopping: Stopping::any(vec![StopRule::Iterations(60)]),
            upper_bound: 60,
            checkpoints: Cadence::Never,
            ..Settings::default()
        };
        let results = run(&LocalBackend, of_file(&file), &settings, &mut ()).expect("it runs");
        let (bound, upper) = (results.trained.bound, results.trained.upper_bound);
        let upper = upper.expect("visited states bound it");
        assert!((bound - published).abs() < 0.1, "{bound}, {published}");
        assert!(
            upper >= bound && upper - bound <= 1e-5 * bound,
            "{bound}, {upper}"
        );
    }
}
