//! A policy outlives the run that made it.

#[path = "../../cobre-case/src/sample.rs"]
mod sample;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, ClassifiedError, ErrorKind, GivenPolicy, PlainTables, PolicyFile, Problem, Results,
    SddpError, Settings, Start, StopRule, Stopping, StoredCut, read_policy, run, run_from,
    simulate, write_policy,
};
use sample::{Hydrothermal, hydrothermal};
use std::num::NonZero;

fn problem(stages: usize) -> Problem {
    let size = Hydrothermal {
        stages,
        regions: 1,
        reservoirs: 2,
        thermals: 5,
        blocks: 1,
        lags: 0,
        openings: 4,
        known_start: true,
    };
    hydrothermal(size).expect("sizes are not zero")
}

fn settings() -> Settings {
    Settings {
        seed: 3,
        passes: NonZero::new(3).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(12)]),
        threads: NonZero::new(2).expect("not 0"),
        simulate: 40,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

/// Trains, or only simulates, with the cuts of a policy from the start.
fn from<'a>(
    policy: impl Into<GivenPolicy<'a>>,
    stages: usize,
    settings: &Settings,
    train: bool,
) -> Result<Results, SddpError> {
    let problem = problem(stages);
    let tables = PlainTables::new(&problem);
    let start = Start {
        policy: Some(policy.into()),
        ..Start::plain(&tables)
    };
    let run = if train { run_from } else { simulate };
    run(&LocalBackend, problem, settings, &start, &mut ())
}

#[test]
fn a_stored_policy_is_worth_what_it_was() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    assert_eq!(policy.sha256(), trained.policy_sha256);
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    let again = read_policy(directory.path()).expect("it is read");
    assert_eq!(again, policy);
    let tried = from(&again, 4, &settings(), false).expect("it is tried");
    assert_eq!(tried.simulated, trained.simulated);
    assert_eq!(tried.values, trained.values);
    assert_eq!(tried.values.len(), 40);
    assert_eq!(tried.trained.iterations.len(), 0);
    let bounds = (tried.trained.bound, trained.trained.bound);
    assert!(
        (bounds.0 - bounds.1).abs() <= 1e-9 * bounds.1.abs(),
        "{bounds:?}"
    );
}

#[test]
fn a_policy_that_is_read_node_by_node_is_the_same() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    let file = PolicyFile::open(directory.path()).expect("it is sound");
    let tried = from(&file, 4, &settings(), false).expect("it is tried");
    assert_eq!(tried.values, trained.values);
    // Nothing is added: the policy stays what it was, slots and manifest included.
    assert_eq!(tried.policy_sha256, trained.policy_sha256);
    assert_eq!(tried.policy.expect("this is the first rank"), policy);
    let grown = |from: Result<Results, SddpError>| from.expect("it trains").policy_sha256;
    let (whole, stored) = (
        from(&policy, 4, &settings(), true),
        from(&file, 4, &settings(), true),
    );
    assert_eq!(grown(whole), grown(stored));
}

#[test]
fn a_policy_of_another_problem_is_refused() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    let file = PolicyFile::open(directory.path()).expect("it is sound");
    for given in [GivenPolicy::Whole(&policy), GivenPolicy::Stored(&file)] {
        let refused = from(given, 5, &settings(), false);
        let error = refused.expect_err("it has other nodes");
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("list of nodes"), "{error}");
    }
}

#[test]
fn cuts_that_vanish_before_they_are_read_are_an_error() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), &policy).expect("it is written");
    let file = PolicyFile::open(directory.path()).expect("it is sound");
    let place = directory.path().join("cuts.parquet");
    let length = std::fs::metadata(&place).expect("it is there").len();
    let cut = std::fs::OpenOptions::new().write(true).open(&place);
    let cut = cut.and_then(|cut| cut.set_len(length / 4));
    cut.expect("it is shortened");
    let refused = from(&file, 4, &settings(), false);
    let error = refused.expect_err("most cuts are gone");
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn training_goes_on_from_the_cuts_of_a_policy() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    for selection in ["none", "lml1"] {
        let settings = Settings {
            seed: 9,
            passes: NonZero::new(2).expect("not 0"),
            selection: selection.parse().expect("a rule"),
            stopping: Stopping::any(vec![StopRule::Iterations(3)]),
            ..settings()
        };
        let cold = run(&LocalBackend, problem(4), &settings, &mut ()).expect("it trains");
        let warm = from(&policy, 4, &settings, true).expect("it trains");
        assert!(warm.trained.iterations[0].bound >= trained.trained.bound * (1.0 - 1e-9));
        assert!(cold.trained.bound < warm.trained.bound, "{selection}");
        // The given cuts are all there, in their order, before those of training.
        let grown = warm.policy.expect("this is the first rank");
        for (before, after) in policy.cuts.iter().zip(&grown.cuts) {
            let numbers = |cut: &StoredCut| (cut.intercept.to_bits(), cut.gradient.clone());
            let (before, after) = (before.iter().map(numbers), after.iter().map(numbers));
            assert!(after.zip(before).all(|(after, before)| after == before));
        }
    }
}

#[test]
fn a_leader_without_the_cuts_of_a_policy_is_refused() {
    let trained = run(&LocalBackend, problem(4), &settings(), &mut ()).expect("it trains");
    let policy = trained.policy.expect("this is the first rank");
    let problem = problem(4);
    let tables = PlainTables::new(&problem);
    let start = Start {
        policy: Some(GivenPolicy::Elsewhere(&policy.manifest)),
        ..Start::plain(&tables)
    };
    let refused = run_from(&LocalBackend, problem, &settings(), &start, &mut ());
    let error = refused.expect_err("nobody has the cuts");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("whole policy"), "{error}");
}
