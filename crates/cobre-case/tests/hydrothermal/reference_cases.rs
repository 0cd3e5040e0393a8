//! Hydrothermal cases with known answers, where the reference data are at hand.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use cobre_case::{Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Results, Settings, Solver, StopRule, Stopping, run};

/// The bound of each case, and how far from it ours may be, relative to it.
///
/// The inflows of d19 are uncertain by 0.001 m³/s, which moves its cost by 100 or so, and its value
/// holds for the openings of another generator.
const VALUES: &[(&str, f64, f64)] = &[
    ("d01-thermal-dispatch", 182_500.0, 1e-6),
    ("d02-single-hydro", 23_635_000.0 / 9.0, 1e-6),
    ("d03-two-hydro-cascade", 4_171_000.0 / 3.0, 1e-6),
    ("d04-transmission", 5_263_443_883.0 / 657.0, 1e-6),
    ("d09-multi-deficit", 80_738_000.0, 1e-6),
    ("d14-block-factors", 176_900.0, 1e-6),
    ("d15-non-controllable-source", 437_927.0, 1e-6),
    ("d16-par1-lag-shift", 7_756_250.0, 1e-6),
    ("d19-multi-hydro-par", 1_332_571.797, 4e-4),
    ("d25-discount-rate", 2_611_454.584_787_283, 1e-6),
    ("d27-per-stage-thermal-cost", 10_950_000.0, 1e-6),
    ("d05-fpha-constant-head", 23_635_000.0 / 9.0, 1e-6),
    ("d07-fpha-computed", 3_657_537.696_594_757, 1e-6),
    ("d08-evaporation", 2_628_380.531_119_177, 1e-6),
    ("d11-water-withdrawal", 3_930_320_000.0 / 657.0, 1e-6),
    ("d22-per-block-min-outflow", 140_376_666.666_666_66, 1e-6),
    ("d24-productivity-override", 23_945_000.0 / 9.0, 1e-6),
    ("x03-diversion", 1_915_490.333_333_333_3, 1e-6),
    ("x18-fpha-planes-b", 4_501_702.353_333_333_5, 1e-6),
    ("d13-generic-constraint", 15_330_000.0, 1e-6),
    ("x01-pumping", 865_288.888_888_889, 1e-6),
    ("x04-exchange-factors", 4_148_050.0, 1e-6),
    ("x15-contracts-b", 5_400_910.0, 1e-6),
    ("x16-ncs-b", 263_714.75, 1e-6),
    ("x10-estimated-par-openings", 50_607_484.905_810_1, 1e-6),
    ("x11-par-annual", 7_618_964.788_011_698, 1e-6),
    ("x17-weekly-lags-b", 3_944_555.327_746_879, 1e-6),
    ("x12-discount-override", 4_671_280.443_731_592, 1e-6),
];

pub fn reference() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let candidates = [
        root.join("shared/reference/cases"),
        root.join("../shared/reference/cases"),
    ];
    candidates.into_iter().find(|path| path.is_dir())
}

/// Trains a case as it wants to be trained, for so many iterations at most.
pub fn solve(path: &Path, iterations: usize, solver: Solver) -> Results {
    let case = load(path, &Options::default()).expect("it is sound");
    let mut settings = Settings {
        threads: NonZero::new(2).expect("not 0"),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
    .with(case.settings);
    settings.simulate = 8;
    let rules = &mut settings.stopping.rules;
    rules.push(StopRule::Iterations(iterations));
    run(&LocalBackend, case.problem, &settings, &mut ()).expect("it runs")
}

#[test]
fn known_values_are_reached() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let mut wrong = Vec::new();
    for &(name, value, tolerance) in VALUES {
        for solver in [Solver::Kernel, Solver::Highs] {
            let found = solve(&directory.join(name), 100, solver).trained.bound;
            println!("{name}: {found}, expected {value}");
            if (found / value - 1.0).abs() > tolerance {
                let solver = solver.name();
                wrong.push(format!("{name}, {solver}: {found} instead of {value}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `COBRE_DIFFERENTIAL` asks for more than a sample.
#[test]
fn the_kernel_and_highs_agree_on_every_linear_program_of_the_cases() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let iterations = match std::env::var_os("COBRE_DIFFERENTIAL") {
        Some(_) => 256,
        None => 12,
    };
    let names = VALUES.iter().map(|value| value.0);
    for name in names.chain(["1dtoy", "4ree"]) {
        let results = solve(&directory.join(name), iterations, Solver::Check);
        println!("{name}: {:?}", results.lp);
        assert!(results.lp.checked > 0 && results.lp.fallbacks < 10);
    }
}

#[test]
fn past_inflows_shift_in_the_forward_pass() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    // Its inflows are as good as certain: 150, 125 and 112.5 m³/s.
    for solver in [Solver::Kernel, Solver::Highs] {
        let results = solve(&directory.join("d16-par1-lag-shift"), 100, solver);
        let simulated = results.simulated.expect("it is simulated").mean;
        let error = (simulated / results.trained.bound - 1.0).abs();
        assert!(error < 1e-9, "{simulated}");
    }
}

#[test]
fn the_system_of_four_regions_costs_about_what_it_does_elsewhere() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let path = directory.join("4ree");
    let case = load(&path, &Options::default()).expect("it is sound");
    let size = case.problem.summary();
    assert_eq!((size.stages, size.states, size.openings), (12, 4, 120));
    let results = solve(&path, 256, Solver::Auto);
    let (bound, lp) = (results.trained.bound, results.lp);
    println!("4ree: {bound}, {lp:?}");
    assert!((6.0e10..6.5e10).contains(&bound), "{bound}");
    // Its costs are a million times what a cut's dual value is.
    assert!(lp.fallbacks < 10, "the kernel needed help: {lp:?}");
}

#[test]
fn many_passes_need_few_refactorisations() {
    let Some(directory) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let case = load(&directory.join("4ree"), &Options::default()).expect("it is sound");
    let settings = Settings {
        seed: 1,
        passes: NonZero::new(96).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(40)]),
        threads: NonZero::new(2).expect("not 0"),
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    let results = run(&LocalBackend, case.problem, &settings, &mut ()).expect("it runs");
    let lp = results.lp;
    println!("4ree with 96 passes: {lp:?}");
    // Thousands of cuts that differ little: elements that are rounding errors are no pivots.
    assert!(lp.refactored * 300 < lp.solves, "{lp:?}");
    assert!(lp.cold_starts < 100 && lp.fallbacks < 5, "{lp:?}");
}

/// Files of an example that templates do not have, and of templates that examples do not need.
const APART: [&str; 3] = ["README.md", "expected.json", "schemas/"];

#[test]
fn examples_are_what_cobre_init_writes() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    for template in cobre_case::template::TEMPLATES {
        let example = examples.join(template.name);
        if !example.is_dir() {
            continue;
        }
        checked += 1;
        for (path, bytes) in template.files().iter() {
            if APART.iter().any(|apart| path.starts_with(apart)) {
                continue;
            }
            let found = std::fs::read(example.join(path)).unwrap_or_default();
            assert!(
                found == bytes,
                "examples/{}/{path} is not what the template has; write it anew by `cobre init`",
                template.name
            );
        }
    }
    assert_eq!(checked, 4);
}
