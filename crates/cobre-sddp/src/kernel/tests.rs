//! Kernels that are wrong on purpose are found out.

use cobre_comm::LocalBackend;

use super::{Always, Checked, Rules};
use crate::SddpError;
use crate::lp::Counts;
use crate::output::PlainTables;
use crate::policy::Selection;
use crate::problem::{Hydrothermal, hydrothermal};
use crate::ranks::Ranks;
use crate::run::{Settings, Solver, Start, run_with};
use crate::simulation::Sampling;
use crate::training::{Rule, Stopping};

/// Trains on a made-up system with HiGHS beside the kernel.
fn trained<R: Rules>() -> Result<Counts, SddpError> {
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
    let settings = Settings {
        seed: 5,
        passes: 2,
        selection: Selection::ALL,
        stopping: Stopping::any(vec![Rule::Iterations(10)]),
        threads: 1,
        simulate: 10,
        sampling: Sampling::Fresh,
        solver: Solver::Check,
        checkpoints: crate::checkpoint::Cadence::Never,
        resume: false,
        output: None,
        csv: false,
    };
    let problem = hydrothermal(size).expect("sizes are not zero");
    let comm = LocalBackend;
    let ranks = Ranks::new(&comm);
    let tables = PlainTables::new(&problem);
    let results =
        run_with::<_, Checked<R>>(&ranks, problem, &settings, &Start::plain(&tables), &mut ())?;
    Ok(results.lp)
}

/// Whether a difference, or a check that failed, has given the kernel away.
fn found_out<R: Rules>() -> bool {
    trained::<R>().map_or(true, |counts| counts.fallbacks > 0)
}

#[test]
fn the_kernel_as_it_is_agrees_without_help() {
    let counts = trained::<Always>().expect("both agree");
    assert_eq!((counts.fallbacks, counts.highs), (0, 0), "{counts:?}");
    assert!(
        counts.checked > 500 && counts.difference < 1e-8,
        "{counts:?}"
    );
}

#[test]
fn a_wrong_sign_in_the_ratio_test_is_found_out() {
    struct WrongSign;
    impl Rules for WrongSign {
        const NAME: &'static str = "wrong sign";
        const MOST_EQUALITIES: usize = 400;
        const AT_UPPER: f64 = 1.0;
    }
    assert!(found_out::<WrongSign>());
}

#[test]
fn a_missed_bound_flip_is_found_out() {
    struct NoFlips;
    impl Rules for NoFlips {
        const NAME: &'static str = "no flips";
        const MOST_EQUALITIES: usize = 400;
        const FLIPS: bool = false;
    }
    assert!(found_out::<NoFlips>());
}
