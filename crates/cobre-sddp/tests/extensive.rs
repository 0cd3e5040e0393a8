//! Random small problems against their extensive form: the whole scenario tree as one linear
//! program.

mod random;
mod tree;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, ColumnId, Draft, NodeId, Problem, Risk, RowId, Sampling, Sense, Settings,
    Solver, StopRule, Stopping, Template, TemplateId, run,
};
use random::Random;

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
        passes: 3,
        selection: cuts.parse().expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        threads: 1,
        simulate: 0,
        sampling: Sampling::Fresh,
        solver,
        checkpoints: Cadence::Never,
        resume: false,
        output: None,
        csv: false,
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
