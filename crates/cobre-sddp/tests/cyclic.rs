//! Cyclic policy graphs: values of value iteration, and the promises that hold for all graphs.

use std::num::NonZero;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, ColumnId, Draft, Iteration, NodeId, Observer, PlainTables, Problem, Risk,
    RowId, SddpError, Sense, Settings, Solver, Start, StopRule, Stopping, Template, run, simulate,
};

const STORAGE: usize = 6;
const DEMAND: usize = 3;
const CHEAP: usize = 1;
const CHEAP_COST: f64 = 2.0;
const MISSING_COST: f64 = 10.0;

/// A node of a chain of seasons and regimes: its inflows, equally likely, and where paths go on.
struct Place {
    inflows: &'static [usize],
    next: Vec<(usize, f64)>,
}

const GOES_ON: f64 = 0.9;

/// Two seasons with two regimes each. Paths go on with this probability.
fn chain(goes_on: f64) -> Vec<Place> {
    let place = |inflows, next: [(usize, f64); 2]| Place {
        inflows,
        next: next.map(|(node, share)| (node, goes_on * share)).into(),
    };
    vec![
        place(&[2, 4, 5], [(2, 0.7), (3, 0.3)]),
        place(&[1, 2], [(2, 0.2), (3, 0.8)]),
        place(&[0, 1, 3], [(0, 0.6), (1, 0.4)]),
        place(&[0, 1], [(0, 0.3), (1, 0.7)]),
    ]
}

/// A reservoir beside a cheap plant; what is missing is dear.
fn reservoir() -> (Template, RowId) {
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
    let after = lp.column("after", 0.0, 0.0, STORAGE as f64);
    lp.state("storage", before, after);
    let hydro = lp.column("hydro", 0.0, 0.0, DEMAND as f64);
    let spill = lp.column("spill", 0.0, 0.0, f64::INFINITY);
    let cheap = lp.column("cheap", CHEAP_COST, 0.0, CHEAP as f64);
    let missing = lp.column("missing", MISSING_COST, 0.0, f64::INFINITY);
    let terms = [(hydro, 1.0), (cheap, 1.0), (missing, 1.0)];
    lp.row("demand", DEMAND as f64, DEMAND as f64, &terms);
    let terms: [(ColumnId, f64); 4] = [(after, 1.0), (hydro, 1.0), (spill, 1.0), (before, -1.0)];
    let balance = lp.row("balance", 0.0, 0.0, &terms);
    (lp, balance)
}

fn add(draft: &mut Draft, name: String, inflows: &[usize]) -> NodeId {
    let (lp, row) = reservoir();
    let template = draft.template(lp);
    let node = draft.node(name, template);
    for &inflow in inflows {
        let (lower, upper) = (inflow as f64, inflow as f64);
        let change = Change::RowBounds { row, lower, upper };
        draft.opening(node, 1.0 / inflows.len() as f64, vec![change]);
    }
    node
}

fn draft(risk: Risk) -> Draft {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("storage", 3.0);
    draft.risk(risk);
    draft
}

/// The chain as a cyclic graph.
fn cyclic_with(risk: Risk, goes_on: f64) -> Problem {
    let (mut draft, places) = (draft(risk), chain(goes_on));
    let nodes = places.iter().enumerate();
    let nodes = nodes.map(|(number, place)| add(&mut draft, number.to_string(), place.inflows));
    let nodes: Vec<NodeId> = nodes.collect();
    draft.start(nodes[0], 1.0);
    for (place, &node) in places.iter().zip(&nodes) {
        for &(next, probability) in &place.next {
            draft.edge(node, nodes[next], probability);
        }
    }
    draft.build().expect("paths end")
}

fn cyclic(risk: Risk) -> Problem {
    cyclic_with(risk, GOES_ON)
}

/// The chain over so many stages.
fn unrolled(risk: Risk, goes_on: f64, stages: usize) -> Problem {
    let (mut draft, places) = (draft(risk), chain(goes_on));
    let mut before: Vec<Option<NodeId>> = vec![None; places.len()];
    for stage in 0..stages {
        let here = places.iter().enumerate().map(|(number, place)| {
            let comes = |earlier: &usize| {
                let mut next = places[*earlier].next.iter();
                before[*earlier].is_some() && next.any(|(node, _)| *node == number)
            };
            let is_here = (stage == 0 && number == 0) || (0..places.len()).any(|at| comes(&at));
            is_here.then(|| add(&mut draft, format!("{stage}.{number}"), place.inflows))
        });
        let here: Vec<Option<NodeId>> = here.collect();
        if stage == 0 {
            draft.start(here[0].expect("paths start there"), 1.0);
        }
        for (earlier, place) in before.iter().zip(&places) {
            for &(next, probability) in place.next.iter().filter(|_| earlier.is_some()) {
                let pair = earlier.zip(here[next]).expect("both are there");
                draft.edge(pair.0, pair.1, probability);
            }
        }
        before = here;
    }
    draft.build().expect("it makes sense")
}

/// The optimal cost of the chain, by value iteration over whole units of storage: all data are whole, and so are
/// the breakpoints of the cost to go.
fn value_iteration() -> f64 {
    let places = chain(GOES_ON);
    let stage = |storage: usize, inflow: usize, hydro: usize, after: usize| {
        let water = storage + inflow;
        (hydro + after <= water).then(|| {
            let rest = DEMAND - hydro;
            let cheap = rest.min(CHEAP);
            CHEAP_COST * cheap as f64 + MISSING_COST * (rest - cheap) as f64
        })
    };
    let mut costs = vec![[0.0; STORAGE + 1]; places.len()];
    for _ in 0..400 {
        let to_go = |place: &Place, after: usize| -> f64 {
            let terms = place
                .next
                .iter()
                .map(|(next, share)| share * costs[*next][after]);
            terms.sum()
        };
        let of_node = |place: &Place| {
            std::array::from_fn(|storage| {
                let best = |inflow: usize| {
                    let pairs = (0..=DEMAND).flat_map(|h| (0..=STORAGE).map(move |a| (h, a)));
                    let found = pairs.filter_map(|(hydro, after)| {
                        stage(storage, inflow, hydro, after).map(|now| now + to_go(place, after))
                    });
                    found.fold(f64::INFINITY, f64::min)
                };
                let sum: f64 = place.inflows.iter().map(|&inflow| best(inflow)).sum();
                sum / place.inflows.len() as f64
            })
        };
        costs = places.iter().map(of_node).collect();
    }
    costs[0][3]
}

fn settings(iterations: usize) -> Settings {
    Settings {
        seed: 5,
        passes: NonZero::new(3).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

#[derive(Default)]
struct Trace {
    bounds: Vec<f64>,
    uppers: Vec<f64>,
    warnings: Vec<String>,
}

impl Observer for Trace {
    fn iteration(&mut self, iteration: &Iteration) {
        self.bounds.push(iteration.bound);
        self.uppers.extend(iteration.upper_bound);
    }

    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
}

#[test]
fn bounds_rise_to_the_value_of_value_iteration_and_never_above() {
    let optimum = value_iteration();
    assert!((39.0..39.1).contains(&optimum), "{optimum}");
    for (solver, rule, iterations, tolerance) in [
        (Solver::Kernel, "none", 300, 1e-5),
        (Solver::Highs, "lml1", 40, 0.1),
        (Solver::Check, "level1", 40, 0.1),
    ] {
        let settings = Settings {
            solver,
            selection: rule.parse().expect("a rule"),
            simulate: 1000,
            ..settings(iterations)
        };
        let mut trace = Trace::default();
        let results = run(
            &LocalBackend,
            cyclic(Risk::EXPECTATION),
            &settings,
            &mut trace,
        );
        let results = results.expect("it runs");
        let above = |bound: &&f64| **bound > optimum + 1e-6;
        assert_eq!(trace.bounds.iter().find(above), None, "{optimum}");
        let bound = results.trained.bound;
        assert!((bound - optimum).abs() < tolerance, "{bound} {optimum}");
        assert_eq!(trace.warnings, [""; 0]);
        // Paths end by chance and nothing is discounted: their mean is the value of the policy.
        let found = results.simulated.expect("asked for");
        let error = found.half_width_95.expect("many paths") / 1.96;
        assert!((found.mean - optimum).abs() < 4.0 * error, "{found:?}");
    }
}

#[test]
fn risk_is_weighed_and_then_discounted() {
    let risk: Risk = "cvar:0.5,0.4".parse().expect("a measure");
    let trained = |problem: Problem, iterations: usize| {
        let results = run(&LocalBackend, problem, &settings(iterations), &mut ());
        results.expect("it runs").trained.bound
    };
    // What follows 40 stages is worth 0.6^40, about a billionth, of the value.
    let long = trained(unrolled(risk, 0.6, 40), 150);
    let found = trained(cyclic_with(risk, 0.6), 400);
    assert!((found - long).abs() < 1e-4, "{found} {long}");
    let neutral = trained(cyclic_with(Risk::EXPECTATION, 0.6), 80);
    assert!(found > neutral + 1.0, "{found} {neutral}");
}

/// Bound and upper bound of a problem, and all upper bounds on the way.
fn enclosed(problem: Problem, iterations: usize, every: usize) -> (f64, f64, Vec<f64>) {
    let settings = Settings {
        upper_bound: every,
        ..settings(iterations)
    };
    let mut trace = Trace::default();
    let results = run(&LocalBackend, problem, &settings, &mut trace).expect("it runs");
    let upper = results.trained.upper_bound.expect("there is one");
    (results.trained.bound, upper, trace.uppers)
}

#[test]
fn upper_bounds_fall_to_the_value_of_value_iteration_and_never_below() {
    let optimum = value_iteration();
    let (bound, upper, on_the_way) = enclosed(cyclic(Risk::EXPECTATION), 150, 50);
    assert_eq!(on_the_way.len(), 3);
    let below = |upper: &&f64| **upper < optimum - 1e-6;
    assert_eq!(on_the_way.iter().find(below), None, "{optimum}");
    assert!(
        upper >= bound && upper - optimum < 1e-4,
        "{bound} {upper} {optimum}"
    );
    // After few iterations it is loose, and holds.
    let (_, upper, _) = enclosed(cyclic(Risk::EXPECTATION), 2, 2);
    assert!(
        (optimum..2.0 * optimum).contains(&upper),
        "{upper} {optimum}"
    );
}

#[test]
fn the_upper_bound_of_a_cycle_holds_under_risk() {
    for risk in ["cvar:0.5,0.4", "cvar:0.3,0"] {
        let risk: Risk = risk.parse().expect("a measure");
        // What follows 40 stages is worth 0.6^40, about a billionth, of the value.
        let long = run(
            &LocalBackend,
            unrolled(risk, 0.6, 40),
            &settings(60),
            &mut (),
        );
        let long = long.expect("it runs").trained.bound;
        let (bound, upper, on_the_way) = enclosed(cyclic_with(risk, 0.6), 200, 100);
        assert!(
            on_the_way.iter().all(|upper| *upper > long - 1e-6),
            "{on_the_way:?}"
        );
        assert!(
            upper >= bound && upper - bound < 1e-3 * bound,
            "{risk}: {bound} {upper}"
        );
    }
}

/// Orders at a cost before the demand is known, stock or backlog after it: states without bounds.
fn base_stock() -> (Problem, f64) {
    let (order, holding, backlog, goes_on, initial) = (1.0, 0.5, 4.0, 0.9, 2.0);
    let demands = [(0.0, 0.1), (3.0, 0.4), (5.0, 0.3), (8.0, 0.2)];
    let free = (f64::NEG_INFINITY, f64::INFINITY);
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("stock", initial);
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, free.0, free.1);
    let after = lp.column("after", 0.0, free.0, free.1);
    lp.state("stock", before, after);
    let ordered = lp.column("ordered", order, 0.0, f64::INFINITY);
    lp.row(
        "stock",
        0.0,
        0.0,
        &[(after, 1.0), (before, -1.0), (ordered, -1.0)],
    );
    let orders = draft.template(lp);
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, free.0, free.1);
    let after = lp.column("after", 0.0, free.0, free.1);
    lp.state("stock", before, after);
    let held = lp.column("held", holding, 0.0, f64::INFINITY);
    let lacking = lp.column("lacking", backlog, 0.0, f64::INFINITY);
    let demand = lp.row("demand", 0.0, 0.0, &[(after, 1.0), (before, -1.0)]);
    lp.row(
        "held",
        0.0,
        0.0,
        &[(after, 1.0), (held, -1.0), (lacking, 1.0)],
    );
    let sells = draft.template(lp);
    let orders = draft.node("orders", orders);
    let sells = draft.node("sells", sells);
    for (amount, probability) in demands {
        let change = Change::RowBounds {
            row: demand,
            lower: -amount,
            upper: -amount,
        };
        draft.opening(sells, probability, vec![change]);
    }
    draft.start(orders, 1.0);
    draft.edge(orders, sells, 1.0);
    draft.edge(sells, orders, goes_on);
    // Stock up to the demand that minimises what one turn costs, again and again.
    let turn = |stock: f64| -> f64 {
        let kept = demands.iter().map(|(demand, probability)| {
            let rest = stock - demand;
            probability * (holding * rest.max(0.0) - backlog * rest.min(0.0))
        });
        order * (1.0 - goes_on) * stock + kept.sum::<f64>()
    };
    let least = demands.iter().map(|(demand, _)| turn(*demand));
    let least = least.fold(f64::INFINITY, f64::min);
    let mean: f64 = demands
        .iter()
        .map(|(demand, probability)| demand * probability)
        .sum();
    let value = (least + goes_on * order * mean) / (1.0 - goes_on) - order * initial;
    (draft.build().expect("it makes sense"), value)
}

#[test]
fn states_without_bounds_have_both_bounds_of_a_cycle() {
    let (problem, value) = base_stock();
    assert!((value - 63.2).abs() < 1e-9);
    let (bound, upper, on_the_way) = enclosed(problem, 200, 50);
    assert!(
        on_the_way.iter().all(|upper| *upper > value - 1e-6),
        "{on_the_way:?}"
    );
    assert!(
        bound <= value + 1e-6 && value - bound < 1e-4,
        "{bound} {value}"
    );
    assert!(upper - value < 1e-4 * value, "{upper} {value}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let train = |threads: usize| {
        let settings = Settings {
            threads: NonZero::new(threads).expect("not 0"),
            selection: "lml1".parse().expect("a rule"),
            simulate: 100,
            upper_bound: 4,
            ..settings(8)
        };
        let mut trace = Trace::default();
        let problem = cyclic("cvar:0.3,0.5".parse().expect("a measure"));
        let results = run(&LocalBackend, problem, &settings, &mut trace).expect("it runs");
        let bits = |numbers: &[f64]| numbers.iter().map(|at| at.to_bits()).collect::<Vec<_>>();
        (
            bits(&trace.bounds),
            bits(&results.values),
            results.trained.upper_bound.map(f64::to_bits),
            results.policy_sha256,
        )
    };
    let one = train(1);
    for threads in 2..=4 {
        assert_eq!(train(threads), one, "{threads} threads");
    }
}

#[test]
fn a_policy_of_a_cyclic_graph_can_be_given_to_another_run() {
    let first = run(
        &LocalBackend,
        cyclic(Risk::EXPECTATION),
        &settings(10),
        &mut (),
    );
    let first = first.expect("it runs");
    let policy = first.policy.expect("of the first rank");
    let problem = cyclic(Risk::EXPECTATION);
    let tables = PlainTables::new(&problem);
    let start = Start {
        policy: Some((&policy).into()),
        ..Start::plain(&tables)
    };
    let again = simulate(&LocalBackend, problem, &settings(10), &start, &mut ());
    let again = again.expect("it runs");
    assert_eq!(again.policy_sha256, first.policy_sha256);
    // Summed in another order.
    assert!((again.trained.bound - first.trained.bound).abs() < 1e-9);
    let problem = cyclic(Risk::EXPECTATION);
    let further = cobre_sddp::run_from(&LocalBackend, problem, &settings(10), &start, &mut ());
    let bound = further.expect("it runs").trained.bound;
    assert!(bound >= first.trained.bound - 1e-9, "{bound}");
}

#[test]
fn simulated_stages_are_counted_and_discounted() {
    // A stage costs 1 × the demand that nothing serves: 3.
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let mut lp = Template::new();
    lp.column("cost", 3.0, 1.0, 1.0);
    let lp = draft.template(lp);
    let node = draft.node("again", lp);
    draft.start(node, 1.0);
    draft.edge(node, node, 0.5);
    let problem = draft.build().expect("paths end");
    let simulated = |stages: usize| {
        let settings = Settings {
            simulate: 3,
            simulate_stages: NonZero::new(stages),
            ..settings(30)
        };
        let results = run(&LocalBackend, problem.clone(), &settings, &mut ());
        let results = results.expect("it runs");
        assert!((results.trained.bound - 6.0).abs() < 1e-6);
        results.values
    };
    assert_eq!(simulated(1), [3.0; 3]);
    assert_eq!(simulated(4), [5.625; 3]);
}

#[test]
fn paths_that_are_cut_short_are_told_of_and_bounds_hold() {
    let settings = Settings {
        path_stages: NonZero::new(4).expect("not 0"),
        ..settings(80)
    };
    let mut trace = Trace::default();
    let problem = cyclic(Risk::EXPECTATION);
    let results = run(&LocalBackend, problem, &settings, &mut trace).expect("it runs");
    let optimum = value_iteration();
    assert!(results.trained.bound <= optimum + 1e-6);
    assert!(results.trained.estimate.mean < 0.8 * optimum);
    assert!(
        matches!(&trace.warnings[..], [text] if text.contains("path_stages=4 ends 65.6 %")),
        "{:?}",
        trace.warnings
    );
}

#[test]
fn stages_to_simulate_need_a_cycle() {
    let settings = Settings {
        simulate_stages: NonZero::new(4),
        ..settings(1)
    };
    let problem = unrolled(Risk::EXPECTATION, GOES_ON, 3);
    let error = run(&LocalBackend, problem, &settings, &mut ()).expect_err("no cycle");
    assert!(matches!(error, SddpError::Setting { .. }), "{error}");
}

#[test]
fn training_goes_on_from_a_checkpoint_with_the_same_bits() {
    let directory = tempfile::tempdir().expect("a directory");
    let train = |iterations: usize, name: &str, resume: bool| {
        let settings = Settings {
            selection: "lml1".parse().expect("a rule"),
            output: Some(directory.path().join(name)),
            checkpoints: "iterations:3".parse().expect("a rule"),
            resume,
            ..settings(iterations)
        };
        let results = run(&LocalBackend, cyclic(Risk::EXPECTATION), &settings, &mut ());
        let results = results.expect("it runs");
        (results.policy_sha256, results.trained.bound.to_bits())
    };
    let whole = train(14, "whole", false);
    train(7, "part", false);
    assert_eq!(train(14, "part", true), whole);
}
