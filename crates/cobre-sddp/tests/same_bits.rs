//! The same bits, however the work is split.

use std::path::Path;

use cobre_comm::LocalBackend;
use cobre_sddp::checkpoint::Cadence;
use cobre_sddp::events::{Iteration, Observer};
use cobre_sddp::kernel::{Always, StageKernel};
use cobre_sddp::lp::{Answer, HighsNode, Kernel, NodeView, Want};
use cobre_sddp::policy::{CutPool, NewCut, Selection};
use cobre_sddp::problem::{Hydrothermal, Problem, hydrothermal};
use cobre_sddp::ranks::Ranks;
use cobre_sddp::run::{Settings, Solver, run};
use cobre_sddp::simulation::Sampling;
use cobre_sddp::training::{Rule, Stopping};

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

/// Trains one node's cuts from its successor's answers, with the units dealt out over `objects`
/// solver objects; returns every bit of every answer.
fn answers<K: Kernel>(objects: usize, lml1: bool) -> Vec<u64> {
    let problem = problem();
    let comm = LocalBackend;
    let ranks = Ranks::new(&comm);
    let selection = if lml1 {
        "lml1".parse()
    } else {
        Ok(Selection::ALL)
    };
    let units = 6;
    let mut pool = CutPool::<LocalBackend>::new(&problem, units, selection.expect("a rule"));
    let mut solvers: Vec<Vec<Option<K>>> = (0..objects)
        .map(|_| (0..problem.nodes.len()).map(|_| None).collect())
        .collect();
    let mut memories: Vec<Vec<K::Memory>> = (0..units)
        .map(|_| problem.nodes.iter().map(|_| K::Memory::default()).collect())
        .collect();
    let mut bits = Vec::new();
    for iteration in 0..12 {
        for level in 1..problem.graph.depth() {
            let node = problem.graph.depth() - level;
            let mut cuts = Vec::new();
            for (unit, memories) in memories.iter_mut().enumerate() {
                let share = (unit * 7 + iteration * 3) % 17;
                let state = vec![20_000.0 * share as f64 / 17.0; 3];
                let view = NodeView {
                    problem: &problem,
                    values: &problem.values,
                    node,
                    cuts: pool.cuts(&problem, node),
                    failures: Path::new("."),
                };
                // Deals units out anew each time, and objects come in one after the other, so that
                // they meet nodes at different times.
                let present = objects.min(1 + iteration / 3);
                let object = (unit + iteration * (level % 2)) % present;
                let solver = &mut solvers[object][node];
                let solver = match solver {
                    Some(solver) => solver,
                    empty => empty.insert(K::load(&view).expect("it loads")),
                };
                let (mut value, mut gradient) = (0.0, vec![0.0; 3]);
                let mut each = |_: usize, answer: &Answer| {
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
                let memory = &mut memories[node];
                solver
                    .solve(&view, &state, 0..11, Want::All, memory, &mut each)
                    .expect("it is solved");
                let at_zero = value - gradient.iter().zip(&state).map(|(a, b)| a * b).sum::<f64>();
                cuts.push(NewCut {
                    pass: unit,
                    node: node - 1,
                    intercept: at_zero,
                    gradient,
                    point: state,
                });
            }
            pool.insert(&ranks, &problem, level, iteration, &cuts)
                .expect("one rank");
        }
    }
    bits
}

#[test]
fn units_split_over_any_number_of_solver_objects_give_the_same_bits() {
    fn check<K: Kernel>() {
        for lml1 in [false, true] {
            let one = answers::<K>(1, lml1);
            for objects in 2..=4 {
                assert!(
                    answers::<K>(objects, lml1) == one,
                    "{}: {objects} objects, lml1 {lml1}",
                    K::NAME
                );
            }
        }
    }
    check::<HighsNode>();
    check::<StageKernel<Always>>();
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
fn any_number_of_threads_gives_the_same_bits() {
    let train = |threads: usize| {
        let settings = Settings {
            seed: 11,
            passes: 3,
            selection: "level1".parse().expect("a rule"),
            stopping: Stopping::any(vec![Rule::Iterations(12)]),
            threads,
            simulate: 100,
            sampling: Sampling::Fresh,
            solver: Solver::default(),
            checkpoints: Cadence::Never,
            resume: false,
            output: None,
            csv: false,
        };
        let mut trace = Trace::default();
        let results = run(&LocalBackend, problem(), &settings, &mut trace).expect("it runs");
        let simulated = results.simulated.expect("asked for").mean.to_bits();
        (trace.0, simulated, results.policy_sha256)
    };
    let one = train(1);
    for threads in 2..=4 {
        assert_eq!(train(threads), one, "{threads} threads");
    }
}
