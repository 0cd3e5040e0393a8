//! Problems with published optima, where the reference data are at hand.

use std::path::{Path, PathBuf};

use cobre_case::{Options, read};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Sampling, Settings, Solver, StopRule, Stopping, run};

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
    let mut rows: Vec<Expected> = lines.map(parse).collect();
    rows.retain(|row| !is_cyclic(&directory.join(format!("{}.sof.json", row.name)), row.bound));
    rows
}

/// True if a problem is refused because its policy graph has a cycle.
fn is_cyclic(path: &Path, bound: f64) -> bool {
    let options = Options {
        bound: Some(bound),
        risk: None,
    };
    let refused = read(path, &options).err().map(|error| error.to_string());
    let cyclic = refused.is_some_and(|error| error.contains("cyclic, which is not supported"));
    if cyclic {
        println!("refused: {} is cyclic", path.display());
    }
    cyclic
}

fn solve(path: &Path, bound: f64, iterations: usize, solver: Solver) -> f64 {
    let options = Options {
        bound: Some(bound),
        risk: None,
    };
    let problem = read(path, &options).expect("it is sound");
    let settings = Settings {
        seed: 1,
        passes: 4,
        selection: "lml1".parse().expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        threads: 2,
        simulate: 0,
        sampling: Sampling::Fresh,
        solver,
        checkpoints: Cadence::Never,
        resume: false,
        output: None,
        csv: false,
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
        let path = directory.join(format!("{}.sof.json", expected.name));
        for solver in [Solver::Kernel, Solver::Highs] {
            let found = solve(&path, expected.bound, 120, solver);
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
        let iterations = match (more, size > 100_000) {
            (false, true) => 2,
            (false, false) => 20,
            (true, true) => 25,
            (true, false) => 200,
        };
        // A difference is an error, which names the linear program.
        let found = solve(&path, expected.bound, iterations, Solver::Check);
        println!("{}: {found} after {iterations} iterations", expected.name);
    }
}
