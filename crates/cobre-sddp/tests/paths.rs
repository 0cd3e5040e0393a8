//! Paths that are not drawn from openings: given by opening, given by value, and from a source.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use cobre_comm::LocalBackend;
use cobre_results::{Rows, TableSchema};
use cobre_sddp::{
    About, Cadence, Change, Draft, GivenStep, Observer, PathPoint, PathSource, PathSources, Policy,
    Problem, Purpose, Results, RowId, Sense, Settings, Solver, Start, Step, StopRule, Stopping,
    Tables, Template, Visited, run_from, simulate,
};

const STAGES: usize = 4;
const OPENINGS: usize = 5;
const PATHS: usize = 40;

/// The inflow of an opening.
fn inflow(stage: usize, opening: usize) -> f64 {
    3.0 + ((7 * stage + 3 * opening) % 11) as f64
}

/// The changes that an inflow makes; a source has as much available as water flows in.
fn changes(row: RowId, column: cobre_sddp::ColumnId, inflow: f64) -> Vec<Change> {
    vec![
        Change::RowBounds {
            row,
            lower: inflow,
            upper: inflow,
        },
        Change::ColumnBounds {
            column,
            lower: 0.0,
            upper: inflow / 4.0,
        },
    ]
}

/// The paths of a problem that are not sampled.
enum Paths<'p> {
    Sampled,
    Openings(&'p [Vec<usize>]),
    Values(&'p [Vec<usize>]),
    Source(&'p [Vec<usize>]),
    Training,
}

/// A reservoir with an expensive thermal plant, and a source.
fn problem(paths: &Paths<'_>) -> Problem {
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
    let after = lp.column("after", 0.0, 0.0, 12.0);
    lp.state("store", before, after);
    let used = lp.column("used", 0.0, 0.0, 9.0);
    let spilled = lp.column("spilled", 0.01, 0.0, f64::INFINITY);
    let wind = lp.column("wind", 0.1, 0.0, 1.0);
    let thermal = lp.column("thermal", 7.0, 0.0, 5.0);
    let deficit = lp.column("deficit", 90.0, 0.0, f64::INFINITY);
    let terms = [(after, 1.0), (before, -1.0), (used, 1.0), (spilled, 1.0)];
    let water = lp.row("water", 0.0, 0.0, &terms);
    let terms = [(used, 1.0), (wind, 1.0), (thermal, 1.0), (deficit, 1.0)];
    lp.row("energy", 10.0, 10.0, &terms);
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("store", 6.0);
    let lp = draft.template(lp);
    let nodes: Vec<_> = (0..STAGES)
        .map(|stage| draft.node(stage.to_string(), lp))
        .collect();
    draft.start(nodes[0], 1.0);
    for (stage, &node) in nodes.iter().enumerate() {
        if stage > 0 {
            draft.edge(nodes[stage - 1], node, 0.95);
        }
        for opening in 0..OPENINGS {
            let changes = changes(water, wind, inflow(stage, opening));
            draft.opening(node, 1.0 / OPENINGS as f64, changes);
        }
    }
    let source = |openings: Vec<Vec<usize>>| -> Arc<dyn PathSource> {
        Arc::new(Openings {
            openings,
            at: (water, wind),
        })
    };
    match paths {
        Paths::Sampled => {}
        Paths::Openings(paths) => {
            for path in *paths {
                let steps = nodes.iter().zip(path);
                let steps = steps.map(|(node, opening)| GivenStep::Opening(*node, *opening));
                draft.given("by opening".to_owned(), steps.collect());
            }
        }
        Paths::Values(paths) => {
            for (number, path) in paths.iter().enumerate() {
                let steps = path.iter().enumerate().map(|(stage, opening)| {
                    GivenStep::Values(Step {
                        node: nodes[stage],
                        changes: changes(water, wind, inflow(stage, *opening)),
                    })
                });
                draft.given(format!("path {number}"), steps.collect());
            }
        }
        Paths::Source(paths) => draft.paths(PathSources {
            training: None,
            simulation: Some(source(paths.to_vec())),
        }),
        Paths::Training => {
            for &node in &nodes {
                for end in [0.0, 20.0] {
                    draft.range(node, changes(water, wind, end));
                }
            }
            draft.paths(PathSources {
                training: Some(source(Vec::new())),
                simulation: Some(source(Vec::new())),
            });
        }
    }
    draft.build().expect("it is a problem")
}

/// A source that gives the values of openings, or values between them.
#[derive(Debug)]
struct Openings {
    openings: Vec<Vec<usize>>,
    at: (RowId, cobre_sddp::ColumnId),
}

impl PathSource for Openings {
    fn kind(&self) -> &'static str {
        "tried"
    }

    fn count(&self) -> Option<usize> {
        (!self.openings.is_empty()).then_some(self.openings.len())
    }

    fn label(&self, _: u64, _: Purpose, path: usize) -> String {
        format!("year {path}")
    }

    fn changes(&self, at: &PathPoint) -> Vec<Change> {
        let opening = match self.openings.get(at.path) {
            Some(path) => inflow(at.stage, path[at.stage]),
            None => ((at.path * 31 + at.stage * 17 + at.seed as usize) % 200) as f64 / 10.0,
        };
        changes(self.at.0, self.at.1, opening)
    }

    fn identity(&self) -> String {
        format!("{:?}", self.openings)
    }
}

/// Keeps the openings of simulated paths.
#[derive(Debug, Default)]
struct Visits(Mutex<Vec<(usize, i64, Option<usize>)>>);

impl Tables for Visits {
    fn tables(&self, _: &Problem) -> Vec<TableSchema> {
        Vec::new()
    }

    fn fill(&self, visited: &Visited<'_>, _: &mut [Rows]) {
        let visit = (visited.scenario, visited.stage, visited.opening);
        self.0.lock().expect("not poisoned").push(visit);
    }
}

/// Asks for tables without files.
struct Keeps;

impl Observer for Keeps {
    fn keeps_tables(&self) -> bool {
        true
    }
}

fn settings(solver: Solver, threads: usize) -> Settings {
    Settings {
        seed: 5,
        passes: NonZero::new(3).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(8)]),
        threads: NonZero::new(threads).expect("not 0"),
        simulate: PATHS,
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

/// The results, and the opening of each stage of each path.
fn run(
    paths: &Paths<'_>,
    settings: &Settings,
    policy: Option<&Policy>,
) -> (Results, Vec<Option<usize>>) {
    let visits = Visits::default();
    let start = Start {
        about: About::new(&visits, "", "", ""),
        policy: policy.map(Into::into),
    };
    let perform = if policy.is_some() { simulate } else { run_from };
    let results = perform(&LocalBackend, problem(paths), settings, &start, &mut Keeps);
    let mut visits = visits.0.into_inner().expect("not poisoned");
    visits.sort_unstable();
    let openings = visits.into_iter().map(|visit| visit.2).collect();
    (results.expect("it runs"), openings)
}

#[test]
fn paths_are_replayed_by_opening_with_the_same_bits_and_by_value_closely() {
    for solver in [Solver::Kernel, Solver::Highs, Solver::Check] {
        let settings = settings(solver, 2);
        let (trained, _) = run(&Paths::Sampled, &settings, None);
        let policy = trained.policy.as_ref().expect("rank 0 has it");
        let (sampled, openings) = run(&Paths::Sampled, &settings, Some(policy));
        assert_eq!(openings.len(), PATHS * STAGES);
        let paths: Vec<Vec<usize>> = openings
            .chunks(STAGES)
            .map(|path| path.iter().map(|opening| opening.expect("drawn")).collect())
            .collect();
        let (by_opening, again) = run(&Paths::Openings(&paths), &settings, Some(policy));
        let bits = |results: &Results| -> Vec<u64> {
            let values = results.values.iter();
            values.map(|value| value.to_bits()).collect()
        };
        assert_eq!(bits(&by_opening), bits(&sampled));
        assert_eq!(again, openings);
        for (kind, values) in [
            ("given", Paths::Values(&paths)),
            ("source", Paths::Source(&paths)),
        ] {
            let (by_value, openings) = run(&values, &settings, Some(policy));
            assert!(openings.iter().all(Option::is_none), "{kind}");
            for (one, other) in by_value.values.iter().zip(&sampled.values) {
                assert!((one - other).abs() <= 1e-9 * (1.0 + other.abs()), "{kind}");
            }
        }
    }
}

#[test]
fn given_paths_are_as_many_as_there_are() {
    let paths = vec![vec![0; STAGES], vec![1; STAGES]];
    let settings = settings(Solver::Auto, 1);
    let (found, _) = run(&Paths::Values(&paths), &settings, None);
    assert_eq!(found.values.len(), 2);
    let (found, _) = run(&Paths::Source(&paths), &settings, None);
    assert_eq!(found.values.len(), 2);
    let wrong = vec![vec![0, 0, OPENINGS, 0]];
    let lp = std::panic::catch_unwind(|| problem(&Paths::Openings(&wrong)));
    assert!(lp.is_err(), "there is no such opening");
}

/// The values are of no opening, and beyond them.
#[test]
fn values_of_a_source_train_and_give_the_same_bits_on_any_threads() {
    let traced = |solver, threads| {
        let (found, _) = run(&Paths::Training, &settings(solver, threads), None);
        let values: Vec<u64> = found.values.iter().map(|value| value.to_bits()).collect();
        (found.policy_sha256, found.trained.bound.to_bits(), values)
    };
    let one = traced(Solver::Kernel, 1);
    assert_eq!(traced(Solver::Kernel, 3), one);
    traced(Solver::Check, 2);
    let (sampled, _) = run(&Paths::Sampled, &settings(Solver::Kernel, 1), None);
    assert_ne!(sampled.policy_sha256, one.0);
}
