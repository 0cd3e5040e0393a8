//! Random systems with pumping, contracts, batteries, commitments, groups of units and generic constraints: against
//! their extensive form, which [`tree`] writes from the equations of the book, and their tables against balances.

mod balances;
mod files;
mod tree;
mod world;

use std::num::NonZero;

use cobre_case::template::CaseFiles;
use cobre_case::{Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{Cadence, Problem, Selection, Settings, Solver, StopRule, Stopping, run};

use self::tree::{Inflows, InitialState, cost};
use self::world::{Lead, World};
use crate::balances::{Random, with_opening};

/// The inflows of the openings of each stage, m³/s, as they stand in the linear programs.
fn inflows(world: &World, problem: &Problem) -> Inflows {
    let stages = 0..world.hours.len();
    let of_stage = |stage: usize| {
        let openings = 0..problem.nodes[stage].probabilities.len();
        let of_opening = |opening: usize| {
            let lp = with_opening(problem, stage, opening);
            let bound = |name: String| {
                let row = lp.rows.iter().find(|row| row.name == name);
                row.map(|row| row.lower)
            };
            let of_plant = |plant: usize| {
                // The inflow stands in a row of its own, or in the one balance of the stage.
                bound(format!("inflow_model.H{plant}")).unwrap_or_else(|| {
                    let hours: f64 = world.hours[stage].iter().sum();
                    let volume = bound(format!("water.H{plant}")).expect("it has a balance");
                    volume / (0.0036 * hours)
                })
            };
            (0..world.hydros.len()).map(of_plant).collect()
        };
        openings.map(of_opening).collect()
    };
    stages.map(of_stage).collect()
}

/// A system with groups of units and a plant that is committed two stages ahead.
pub fn sound() -> CaseFiles {
    let worlds = (0..).map(|seed| World::random(&mut Random::new(seed)));
    let mut worlds = worlds.filter(|world| {
        let ahead = matches!(world.lead, Lead::Stages(2));
        ahead && !world.units.is_empty() && world.line.4.is_none() && world.hours[2].len() == 2
    });
    files::write(&worlds.next().expect("there are many"))
}

fn settings(solver: Solver) -> Settings {
    Settings {
        seed: 3,
        passes: NonZero::new(4).expect("not 0"),
        selection: Selection::ALL,
        stopping: Stopping::any(vec![StopRule::Iterations(40)]),
        threads: NonZero::new(2).expect("not 0"),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

#[test]
fn random_systems_cost_what_their_extensive_form_does_and_cuts_are_below_the_cost_to_go() {
    for seed in 0..24 {
        let random = &mut Random::new(1000 + seed);
        let world = World::random(random);
        let directory = tempfile::tempdir().expect("a directory");
        let files = files::write(&world);
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default());
        let case = case.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let inflows = inflows(&world, &case.problem);
        let expected = cost(&world, &inflows, 0, &InitialState::of(&world));
        let names: Vec<String> = case.problem.states.iter().map(|s| s.name.clone()).collect();
        let solver = [Solver::Kernel, Solver::Highs][seed as usize % 2];
        let results = run(&LocalBackend, case.problem, &settings(solver), &mut ());
        let results = results.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let bound = results.trained.bound;
        println!("seed {seed}: {bound}, expected {expected}");
        assert!(
            (bound - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
            "seed {seed}: {bound} instead of {expected}"
        );
        let policy = results.policy.expect("it is on this rank");
        for stage in 0..2 {
            for _ in 0..3 {
                let state = InitialState::random(&world, stage + 1, random);
                let exact = world.discount(stage) * cost(&world, &inflows, stage + 1, &state);
                let values = names.iter().map(|name| state.value(&world, name));
                let values: Vec<f64> = values.collect();
                for cut in &policy.cuts[stage] {
                    let slopes = cut.gradient.iter().zip(&values);
                    let height: f64 = cut.intercept + slopes.map(|(a, b)| a * b).sum::<f64>();
                    assert!(
                        height <= exact + 1e-6 * (1.0 + exact.abs()),
                        "seed {seed}, stage {stage}: a cut is {height} where the cost to go is {exact}"
                    );
                }
            }
        }
    }
}
