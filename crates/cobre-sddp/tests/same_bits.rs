//! The same bits, however the work is split.

#[path = "../../cobre-case/src/sample.rs"]
mod sample;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, DEFAULT_BASIS_MEMORY, Iteration, MemoryEstimate, Observer, Problem, Settings,
    StopRule, Stopping, run,
};
use sample::{Hydrothermal, hydrothermal};
use std::num::NonZero;

fn problem() -> Problem {
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

/// Keeps what must not depend on how work is split.
#[derive(Default)]
struct Trace(Vec<(u64, u64, usize)>);

impl Observer for Trace {
    fn iteration(&mut self, iteration: &Iteration) {
        let bits = (iteration.bound.to_bits(), iteration.estimate.mean.to_bits());
        self.0.push((bits.0, bits.1, iteration.cuts));
    }
}

#[test]
fn less_memory_for_bases_is_less_memory_of_training() {
    let estimate = |basis_memory: u64| {
        let settings = Settings {
            passes: NonZero::new(1_000_000).expect("not 0"),
            basis_memory,
            ..Settings::default()
        };
        MemoryEstimate::of(&problem(), &settings)
    };
    let (usual, none) = (estimate(DEFAULT_BASIS_MEMORY), estimate(0));
    assert_eq!(usual.per_iteration, none.per_iteration);
    assert_eq!(usual.units - none.units, DEFAULT_BASIS_MEMORY);
    // The warning of a machine that is too small names the setting.
    let warning = usual.warning(none.units, 1).expect("it does not fit");
    assert!(warning.contains("--basis-memory"), "{warning}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let train = |threads: usize, basis_memory: u64| {
        let settings = Settings {
            seed: 11,
            passes: NonZero::new(3).expect("not 0"),
            selection: "level1".parse().expect("a rule"),
            stopping: Stopping::any(vec![StopRule::Iterations(12)]),
            threads: NonZero::new(threads).expect("not 0"),
            simulate: 100,
            basis_memory,
            checkpoints: Cadence::Never,
            ..Settings::default()
        };
        let mut trace = Trace::default();
        let results = run(&LocalBackend, problem(), &settings, &mut trace).expect("it runs");
        let simulated = results.simulated.expect("asked for").mean.to_bits();
        (trace.0, simulated, results.policy_sha256)
    };
    // All that bases need, and less.
    for basis_memory in [DEFAULT_BASIS_MEMORY, 100_000, 0] {
        let one = train(1, basis_memory);
        for threads in 2..=4 {
            assert_eq!(
                train(threads, basis_memory),
                one,
                "{threads} threads, {basis_memory} bytes"
            );
        }
    }
}
