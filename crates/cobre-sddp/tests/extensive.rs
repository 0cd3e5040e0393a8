//! Random small problems against their extensive form: the whole scenario tree as one linear
//! program.

mod random;
mod tree;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, ColumnId, Draft, NodeId, Problem, Risk, RowId, Sense, Settings, Solver,
    StopReason, StopRule, Stopping, Template, TemplateId, TerminalValue, run,
};
use random::Random;
use std::num::NonZero;

/// A linear program that has a solution whatever comes in, and what openings may change in it.
struct Program {
    id: TemplateId,
    rows: Vec<RowId>,
    decisions: Vec<ColumnId>,
}

fn program(random: &mut Random, draft: &mut Draft, states: usize, sign: f64) -> Program {
    let mut lp = Template::new();
    let mut through = Vec::new();
    for state in 0..states {
        let before = lp.column(
            format!("before{state}"),
            0.0,
            f64::NEG_INFINITY,
            f64::INFINITY,
        );
        let after = lp.column(
            format!("after{state}"),
            random.number(-1.0, 1.0),
            0.0,
            random.number(2.0, 9.0),
        );
        lp.state(format!("x{state}"), before, after);
        through.extend([before, after]);
    }
    let decisions: Vec<ColumnId> = (0..2 + random.below(3))
        .map(|number| {
            lp.column(
                format!("y{number}"),
                random.number(-3.0, 9.0),
                0.0,
                random.number(1.0, 6.0),
            )
        })
        .collect();
    let mut rows = Vec::new();
    for number in 0..=random.below(3) {
        let short = lp.column(format!("short{number}"), 30.0 * sign, 0.0, f64::INFINITY);
        let over = lp.column(format!("over{number}"), 20.0 * sign, 0.0, f64::INFINITY);
        let mut terms = vec![(short, 1.0), (over, -1.0)];
        for &column in through.iter().chain(&decisions) {
            if random.below(3) > 0 {
                terms.push((column, random.number(-2.0, 2.0)));
            }
        }
        let lower = random.number(-2.0, 5.0);
        let upper = lower + [0.0, 3.0, f64::INFINITY][random.below(3)];
        rows.push(lp.row(format!("row{number}"), lower, upper, &terms));
    }
    lp.add_constant(random.number(-2.0, 2.0));
    Program {
        id: draft.template(lp),
        rows,
        decisions,
    }
}

fn opening(random: &mut Random, program: &Program) -> Vec<Change> {
    let row = program.rows[random.below(program.rows.len())];
    let column = program.decisions[random.below(program.decisions.len())];
    let value = random.number(-2.0, 5.0);
    let mut changes = vec![Change::RowBounds {
        row,
        lower: value,
        upper: value + 1.0,
    }];
    match random.below(5) {
        0 => changes.push(Change::Cost { column, value }),
        1 => changes.push(Change::Coefficient { row, column, value }),
        // An entry that vanishes.
        2 => changes.push(Change::Coefficient {
            row,
            column,
            value: 0.0,
        }),
        3 => changes.push(Change::ColumnBounds {
            column,
            lower: 0.0,
            upper: value.abs(),
        }),
        _ => changes.push(Change::Constant(value)),
    }
    changes
}

fn problem(seed: u64) -> Problem {
    let random = &mut Random(seed);
    let sense = [Sense::Minimize, Sense::Maximize][random.below(2)];
    let mut draft = Draft::new(sense, -1000.0 * sense.sign());
    let states = 1 + random.below(2);
    for state in 0..states {
        draft.state(format!("x{state}"), random.number(0.0, 4.0));
    }
    let width = 1 + random.below(2);
    let mut before: Vec<NodeId> = Vec::new();
    for stage in 0..3 {
        let mut here = Vec::new();
        for place in 0..width {
            let program = program(random, &mut draft, states, sense.sign());
            let node = draft.node(format!("{stage}.{place}"), program.id);
            let count = 1 + random.below(3);
            for _ in 0..count {
                let changes = opening(random, &program);
                draft.opening(node, 1.0 / count as f64, changes);
            }
            here.push(node);
        }
        let discount = [1.0, 0.9][random.below(2)];
        let first = random.number(0.1, 0.9);
        let shares = if width == 1 {
            vec![1.0]
        } else {
            vec![first, 1.0 - first]
        };
        for (&node, share) in here.iter().zip(&shares) {
            if before.is_empty() {
                draft.start(node, *share);
            }
            for &parent in &before {
                draft.edge(parent, node, share * discount);
            }
        }
        before = here;
    }
    let risks = [
        "expectation",
        "cvar:0.5,0.4",
        "cvar:1,0",
        "cvar:0.3,0.1",
        "expectation",
    ];
    let risk: Risk = risks[random.below(risks.len())]
        .parse()
        .expect("a risk measure");
    draft.risk(risk);
    draft
        .build()
        .unwrap_or_else(|errors| panic!("seed {seed}: {errors}"))
}

fn settings(iterations: usize, cuts: &str, solver: Solver) -> Settings {
    Settings {
        seed: 1,
        passes: NonZero::new(3).expect("not 0"),
        selection: cuts.parse().expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

#[test]
fn the_bound_reaches_the_extensive_form() {
    let mut worst_case = 0;
    for seed in 0..60 {
        for solver in [Solver::Auto, Solver::Highs] {
            let problem = problem(seed);
            let sign = problem.sense.sign();
            let expected = sign * tree::optimum(&problem);
            let rule = ["none", "level1", "lml1"][seed as usize % 3];
            worst_case += usize::from(problem.risk.alpha == 0.0);
            let risk = problem.risk;
            let results = run(&LocalBackend, problem, &settings(60, rule, solver), &mut ());
            let found = results
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
                .trained
                .bound;
            assert!(
                (found - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
                "seed {seed}, {risk}, cuts {rule}, {}: {found} instead of {expected}",
                solver.name()
            );
        }
    }
    assert!(worst_case > 3);
}

#[test]
fn no_bound_on_the_way_passes_the_optimum() {
    struct Below {
        sign: f64,
        expected: f64,
        seed: u64,
    }
    impl cobre_sddp::Observer for Below {
        fn iteration(&mut self, iteration: &cobre_sddp::Iteration) {
            let above = self.sign * (iteration.bound - self.expected);
            assert!(
                above <= 1e-7 * (1.0 + self.expected.abs()),
                "seed {}: {above}",
                self.seed
            );
        }
    }
    for seed in 100..120 {
        for solver in [Solver::Auto, Solver::Highs] {
            let problem = problem(seed);
            let sign = problem.sense.sign();
            let expected = sign * tree::optimum(&problem);
            let mut below = Below {
                sign,
                expected,
                seed,
            };
            run(
                &LocalBackend,
                problem,
                &settings(15, "none", solver),
                &mut below,
            )
            .expect("it runs");
        }
    }
}

/// Cuts on the cost after the end, for the states of a problem.
fn terminal_value(seed: u64, problem: &Problem) -> TerminalValue {
    let random = &mut Random(seed);
    let states = problem.states.iter().map(|state| state.name.clone());
    let states: Vec<String> = states.collect();
    let cuts = (0..=random.below(4)).map(|_| {
        let slopes = states.iter().map(|_| random.number(-4.0, 1.0));
        let slopes = slopes.collect();
        (random.number(0.0, 20.0), slopes)
    });
    TerminalValue {
        cuts: cuts.collect(),
        states: states.clone(),
    }
}

#[test]
fn a_terminal_value_is_part_of_the_extensive_form() {
    let mut counts = 0;
    for seed in 300..330 {
        for solver in [Solver::Kernel, Solver::Highs] {
            let mut problem = problem(seed);
            let sign = problem.sense.sign();
            let without = sign * tree::optimum(&problem);
            let value = terminal_value(seed, &problem);
            problem
                .set_terminal_value(&value, |_| false)
                .expect("it fits");
            let expected = sign * tree::optimum(&problem);
            counts += usize::from((expected - without).abs() > 1e-3);
            let settings = settings(60, "level1", solver);
            let results = run(&LocalBackend, problem, &settings, &mut ()).expect("it runs");
            let found = results.trained.bound;
            assert!(
                (found - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
                "seed {seed}, {}: {found} instead of {expected}",
                solver.name()
            );
        }
    }
    assert!(counts > 30, "terminal values change {counts} optima");
}

#[test]
fn a_policy_with_a_terminal_value_belongs_to_it() {
    let mut problem = problem(301);
    let value = terminal_value(301, &problem);
    problem
        .set_terminal_value(&value, |_| false)
        .expect("it fits");
    let given = settings(5, "none", Solver::Auto);
    let results = run(&LocalBackend, problem.clone(), &given, &mut ()).expect("it runs");
    let policy = results.policy.expect("this is the first rank");
    assert_eq!(policy.fits(&problem), Ok(()));
    let mut other = value.clone();
    other.cuts[0].0 += 1.0;
    problem
        .set_terminal_value(&other, |_| false)
        .expect("it fits");
    let error = policy.fits(&problem).expect_err("another terminal value");
    assert!(
        error.contains("its terminal value after node 2.0"),
        "{error}"
    );
    let error = policy.fits(&self::problem(301)).expect_err("none");
    assert!(error.contains("which nothing follows"), "{error}");
}

/// The exact upper bound with these settings, and the bound.
fn bounds(problem: Problem, settings: &Settings) -> (Option<f64>, f64) {
    let results = run(&LocalBackend, problem, settings, &mut ()).expect("it runs");
    (results.trained.upper_bound, results.trained.bound)
}

#[test]
fn the_upper_bound_reaches_the_extensive_form() {
    let (mut averse, mut several) = (0, 0);
    for seed in 0..40 {
        let mut problem = problem(seed);
        if seed % 4 == 0 {
            let value = terminal_value(seed, &problem);
            problem
                .set_terminal_value(&value, |_| false)
                .expect("it fits");
        }
        let sign = problem.sense.sign();
        let expected = sign * tree::optimum(&problem);
        averse += usize::from(!problem.is_risk_neutral());
        several += usize::from(problem.nodes.len() > 3);
        let settings = Settings {
            upper_bound: 100,
            upper_bound_states: NonZero::new(1000).expect("not 0"),
            ..settings(100, "level1", Solver::Auto)
        };
        let (upper, bound) = bounds(problem, &settings);
        let upper = upper.unwrap_or_else(|| panic!("seed {seed}: no upper bound"));
        assert!(
            sign * (upper - bound) >= 0.0,
            "seed {seed}: {upper}, {bound}"
        );
        assert!(
            (upper - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
            "seed {seed}: {upper} instead of {expected}"
        );
    }
    assert!(averse > 10 && several > 10, "{averse}, {several}");
}

#[test]
fn no_upper_bound_on_the_way_passes_the_optimum() {
    struct Above {
        sign: f64,
        expected: f64,
        found: usize,
    }
    impl cobre_sddp::Observer for Above {
        fn iteration(&mut self, iteration: &cobre_sddp::Iteration) {
            let Some(upper) = iteration.upper_bound else {
                return;
            };
            self.found += 1;
            let below = self.sign * (self.expected - upper);
            assert!(below <= 1e-6 * (1.0 + self.expected.abs()), "{below}");
            assert!(self.sign * (upper - iteration.bound) >= 0.0);
        }
    }
    for seed in 100..110 {
        let problem = problem(seed);
        let sign = problem.sense.sign();
        let mut above = Above {
            sign,
            expected: sign * tree::optimum(&problem),
            found: 0,
        };
        let settings = Settings {
            upper_bound: 1,
            upper_bound_states: NonZero::new(2).expect("not 0"),
            ..settings(6, "none", Solver::Auto)
        };
        run(&LocalBackend, problem, &settings, &mut above).expect("it runs");
        assert_eq!(above.found, 6, "seed {seed}");
    }
}

/// Asks to end when it is asked for the so many-th time.
struct Impatient {
    patience: usize,
    uppers: Vec<Option<u64>>,
}

impl cobre_sddp::Observer for Impatient {
    fn interrupted(&mut self) -> bool {
        self.patience = self.patience.saturating_sub(1);
        self.patience == 0
    }

    fn iteration(&mut self, iteration: &cobre_sddp::Iteration) {
        self.uppers.push(iteration.upper_bound.map(f64::to_bits));
    }
}

#[test]
fn an_evaluation_ends_when_asked_and_a_resumed_run_makes_up_for_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let train = |name: &str, patience: usize, resume: bool| {
        let settings = Settings {
            upper_bound: 3,
            output: Some(scratch.path().join(name)),
            resume,
            checkpoints: Cadence::Iterations(1),
            ..settings(8, "lml1", Solver::Auto)
        };
        let mut observer = Impatient {
            patience,
            uppers: Vec::new(),
        };
        let results = run(&LocalBackend, problem(3), &settings, &mut observer).expect("it runs");
        let upper = results.trained.upper_bound.map(f64::to_bits);
        (
            results.trained.reason,
            (results.policy_sha256, upper),
            observer,
        )
    };
    let (reason, whole, observer) = train("whole", usize::MAX, false);
    assert_eq!(reason, StopReason::IterationLimit);
    // Once per iteration, and after each batch of an evaluation.
    let asked = usize::MAX - observer.patience;
    assert!(asked > 8 + 3, "{asked}");
    let mut lacking = 0;
    for patience in 1..=asked {
        let name = patience.to_string();
        let (reason, _, observer) = train(&name, patience, false);
        assert_eq!(reason, StopReason::Interrupted, "{patience}");
        let done = observer.uppers.len();
        lacking += usize::from(done.is_multiple_of(3) && observer.uppers[done - 1].is_none());
        let (reason, resumed, _) = train(&name, usize::MAX, true);
        assert_eq!(
            (reason, &resumed),
            (StopReason::IterationLimit, &whole),
            "{patience}"
        );
    }
    assert!(lacking > 0, "some were interrupted in an evaluation");
}

#[test]
fn training_ends_when_both_bounds_meet() {
    let settings = Settings {
        upper_bound: 5,
        stopping: Stopping::any(vec![
            StopRule::Iterations(200),
            StopRule::Gap { tolerance: 1e-6 },
        ]),
        ..settings(0, "none", Solver::Auto)
    };
    let results = run(&LocalBackend, problem(3), &settings, &mut ()).expect("it runs");
    assert_eq!(results.trained.reason, StopReason::Gap);
    let without = Settings {
        upper_bound: 0,
        ..settings
    };
    let error = run(&LocalBackend, problem(3), &without, &mut ()).expect_err("no upper bound");
    assert!(error.to_string().contains("--upper-bound"), "{error}");
}

#[test]
fn training_ends_when_the_policy_stays_the_same() {
    for (rule, reason) in [
        ("first_stage:10,1e-6", StopReason::FirstStage),
        ("simulation:5,40,1e-6", StopReason::Simulation),
    ] {
        let rules = vec![StopRule::Iterations(200), rule.parse().expect("a rule")];
        let settings = Settings {
            stopping: Stopping::any(rules),
            ..settings(0, "none", Solver::Auto)
        };
        let results = run(&LocalBackend, problem(3), &settings, &mut ()).expect("it runs");
        assert_eq!(results.trained.reason, reason);
        assert!(results.trained.iterations.len() >= 10);
    }
}

#[test]
fn a_node_weighs_what_follows_it_by_its_own_measure() {
    let worst: Risk = "cvar:1,0".parse().expect("a measure");
    for (all, of_first, expected) in [
        (Risk::EXPECTATION, worst, 3.0),
        (worst, Risk::EXPECTATION, 2.0),
    ] {
        let mut draft = Draft::new(Sense::Minimize, 0.0);
        let first = draft.template(Template::new());
        let first = draft.node("first", first);
        let mut lp = Template::new();
        let paid = lp.column("paid", 1.0, 0.0, f64::INFINITY);
        let price = lp.row("price", 0.0, f64::INFINITY, &[(paid, 1.0)]);
        let second = draft.template(lp);
        let second = draft.node("second", second);
        for lower in [1.0, 3.0] {
            let upper = f64::INFINITY;
            let row = price;
            draft.opening(second, 0.5, vec![Change::RowBounds { row, lower, upper }]);
        }
        draft.start(first, 1.0);
        draft.edge(first, second, 1.0);
        draft.risk(all);
        draft.node_risk(first, of_first);
        let problem = draft.build().expect("it is sound");
        let settings = settings(3, "none", Solver::Highs);
        let results = run(&LocalBackend, problem, &settings, &mut ()).expect("it runs");
        assert!((results.trained.bound - expected).abs() < 1e-9);
    }
}
