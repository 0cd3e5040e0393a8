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

/// The problem of a line; none if it is refused because its policy graph has a cycle.
fn problem(directory: &Path, expected: &Expected) -> Option<Problem> {
    let path = directory.join(format!("{}.sof.json", expected.name));
    let options = Options {
        bound: Some(expected.bound),
        risk: None,
    };
    match read(&path, &options) {
        Ok(problem) => Some(problem),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("cyclic, which is not supported"), "{text}");
            println!("refused: {} is cyclic", path.display());
            None
        }
    }
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
        let Some(problem) = problem(&directory, &expected) else {
            continue;
        };
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
    assert!(checked >= 30, "{checked} runs have a tolerance");
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
        let Some(problem) = problem(&directory, &expected) else {
            continue;
        };
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
