//! The kernel against HiGHS, one linear program after the other, on made-up problems with
//! everything that it takes: equalities, inequalities, ranges, columns that are free, fixed, bounded
//! on one side or on both, costs of any sign, states that are known before the solve, and openings
//! that change right-hand sides, bounds and constants.
//!
//! `COBRE_DIFFERENTIAL` is the least number of linear programs; a sample without it.

mod random;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, Change, ColumnId, Draft, LpStatistics, Problem, RowId, Sense, Settings, Solver,
    StopRule, Stopping, Template, run,
};
use random::Random;
use std::num::NonZero;

const INFINITY: f64 = f64::INFINITY;

/// A linear program in the making, and what openings may change in it.
struct Stage {
    lp: Template,
    sign: f64,
    columns: Vec<ColumnId>,
    rows: Vec<(RowId, f64)>,
    fixed: Vec<ColumnId>,
    bounded: Vec<(ColumnId, f64)>,
}

impl Stage {
    fn column(&mut self, cost: f64, lower: f64, upper: f64) -> ColumnId {
        let name = format!("y{}", self.lp.columns.len());
        let column = self.lp.column(name, self.sign * cost, lower, upper);
        self.columns.push(column);
        column
    }

    /// Columns that carry a quantity from stage to stage, by decision or by a rule.
    fn states(&mut self, random: &mut Random, count: usize) {
        for state in 0..count {
            let before = self
                .lp
                .column(format!("in{state}"), 0.0, -INFINITY, INFINITY);
            let known = state % 3 == 2;
            let (lower, upper) = if known {
                (-INFINITY, INFINITY)
            } else {
                (0.0, random.number(5.0, 40.0))
            };
            let cost = if random.below(2) == 0 {
                0.0
            } else {
                random.number(-1.0, 1.0)
            };
            let after = self
                .lp
                .column(format!("out{state}"), self.sign * cost, lower, upper);
            self.lp.state(format!("x{state}"), before, after);
            self.columns.push(before);
            if known {
                // As an inflow follows from the one before and from chance.
                let chance = self.lp.column(format!("chance{state}"), 0.0, 0.0, 0.0);
                self.fixed.push(chance);
                let factor = random.number(0.1, 0.9);
                let terms = [(after, 2.0), (before, -2.0 * factor), (chance, -1.0)];
                self.lp.row(format!("lag{state}"), 1.0, 1.0, &terms);
            } else {
                self.columns.push(after);
            }
        }
    }

    fn decisions(&mut self, random: &mut Random, count: usize) {
        for _ in 0..count {
            let cost = random.number(-4.0, 12.0);
            let width = random.number(0.5, 8.0);
            match random.below(8) {
                0 => {
                    // Without bounds of its own, with cost: a row makes it the sum of others.
                    let one = self.column(0.0, -width, width);
                    let other = self.column(0.5, 0.0, width);
                    let free = self.column(cost, -INFINITY, INFINITY);
                    self.lp
                        .row("sum", 0.0, 0.0, &[(free, 1.0), (one, -1.0), (other, -0.5)]);
                }
                1 => {
                    let free = self.column(0.0, -INFINITY, INFINITY);
                    let held = self.column(random.number(0.0, 2.0), -width, width);
                    self.lp.row("tie", -1.0, 1.0, &[(free, 1.0), (held, 1.0)]);
                }
                2 => {
                    self.column(cost.abs(), random.number(-3.0, 1.0), INFINITY);
                }
                3 => {
                    self.column(-cost.abs(), -INFINITY, random.number(-1.0, 3.0));
                }
                4 => {
                    self.column(cost, width, width);
                }
                5 => {
                    let column = self.column(cost, 0.0, width);
                    self.bounded.push((column, width));
                }
                6 => {
                    self.column(0.0, -width, width);
                }
                _ => {
                    self.column(cost, random.number(-3.0, 0.0), width);
                }
            }
        }
    }

    /// Rows of every kind, each with a price at which it may be missed.
    fn balances(&mut self, random: &mut Random, count: usize) {
        for number in 0..count {
            let mut terms = Vec::new();
            for &column in &self.columns {
                if random.below(3) == 0 {
                    terms.push((column, random.number(-2.0, 2.0)));
                }
            }
            let name = |what: &str| format!("{what}{number}");
            let short = self
                .lp
                .column(name("short"), self.sign * 60.0, 0.0, INFINITY);
            let over = self
                .lp
                .column(name("over"), self.sign * 50.0, 0.0, INFINITY);
            terms.extend([(short, 1.0), (over, -1.0)]);
            let level = random.number(-5.0, 15.0);
            let (lower, upper) = [
                (level, level),
                (level, INFINITY),
                (-INFINITY, level),
                (level, level + 4.0),
            ][random.below(4)];
            let row = self.lp.row(name("row"), lower, upper, &terms);
            self.rows.push((row, upper - lower));
        }
    }

    fn opening(&self, random: &mut Random) -> Vec<Change> {
        let mut changes = Vec::new();
        for &(row, width) in &self.rows {
            let level = random.number(-6.0, 18.0);
            let (lower, upper) = if width == INFINITY {
                (level, INFINITY)
            } else {
                (level, level + width)
            };
            if random.below(3) > 0 {
                changes.push(Change::RowBounds { row, lower, upper });
            }
        }
        for &column in &self.fixed {
            let value = random.number(-3.0, 3.0);
            changes.push(Change::ColumnBounds {
                column,
                lower: value,
                upper: value,
            });
        }
        for &(column, width) in &self.bounded {
            let upper = random.number(0.0, width);
            changes.push(Change::ColumnBounds {
                column,
                lower: 0.0,
                upper,
            });
        }
        changes.push(Change::Constant(random.number(-5.0, 5.0)));
        changes
    }
}

fn problem(seed: u64) -> Problem {
    let random = &mut Random(seed);
    let sense = [Sense::Minimize, Sense::Maximize][random.below(2)];
    let mut draft = Draft::new(sense, -1e5 * sense.sign());
    let states = 1 + random.below(6);
    for state in 0..states {
        draft.state(format!("x{state}"), random.number(0.0, 5.0));
    }
    let mut before = None;
    for stage in 0..4 {
        let mut made = Stage {
            lp: Template::new(),
            sign: sense.sign(),
            columns: Vec::new(),
            rows: Vec::new(),
            fixed: Vec::new(),
            bounded: Vec::new(),
        };
        made.states(random, states);
        let decisions = 2 + random.below(20);
        made.decisions(random, decisions);
        let rows = 1 + random.below(12);
        made.balances(random, rows);
        let lp = draft.template(made.lp.clone());
        let node = draft.node(format!("{stage}"), lp);
        let count = 1 + random.below(12);
        for _ in 0..count {
            let changes = made.opening(random);
            draft.opening(node, 1.0 / count as f64, changes);
        }
        match before {
            None => draft.start(node, 1.0),
            Some(before) => draft.edge(before, node, 1.0),
        }
        before = Some(node);
    }
    draft
        .build()
        .unwrap_or_else(|errors| panic!("seed {seed}: {errors}"))
}

/// Trains on a problem with both solvers; any difference is an error.
fn check(problem: Problem, seed: u64) -> LpStatistics {
    train(problem, seed, Solver::Check)
}

fn train(problem: Problem, seed: u64, solver: Solver) -> LpStatistics {
    // Where tables are written, dual values are asked for, and checked.
    let output = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        seed,
        passes: NonZero::new(3).expect("not 0"),
        selection: ["none", "lml1", "level1:6"][seed as usize % 3]
            .parse()
            .expect("a rule"),
        stopping: Stopping::any(vec![StopRule::Iterations(12)]),
        simulate: 20,
        solver,
        checkpoints: Cadence::Never,
        output: Some(output.path().to_owned()),
        ..Settings::default()
    };
    run(&LocalBackend, problem, &settings, &mut ())
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        .lp
}

#[test]
fn the_kernel_and_highs_find_the_same_values() {
    let wanted = std::env::var("COBRE_DIFFERENTIAL").ok();
    let wanted: u64 = wanted.map_or(8_000, |text| text.parse().expect("a number"));
    let mut all = LpStatistics::default();
    let mut seed = 0;
    while all.checked < wanted {
        all += check(problem(seed), seed);
        seed += 1;
    }
    println!("{seed} problems: {all:?}");
    assert!(all.difference <= 1e-7, "{all:?}");
    // The kernel solves nearly all of them itself, and most starts are good ones.
    assert!(all.fallbacks * 200 < all.checked, "{all:?}");
    assert_eq!(all.highs, all.fallbacks, "every node is one for the kernel");
    assert!(all.remembered * 20 > all.checked, "{all:?}");
}

/// Four stages with a store of water, whose other columns and rows `rest` adds; it is given the store's
/// release. Half of the openings bring 0.1 of `scale`, half 0.3.
fn store(scale: f64, rest: impl Fn(&mut Template, ColumnId)) -> Problem {
    let mut lp = Template::new();
    let before = lp.column("before", 0.0, -INFINITY, INFINITY);
    let after = lp.column("after", 0.0, 0.0, INFINITY);
    lp.state("water", before, after);
    let release = lp.column("release", 0.0, 0.0, INFINITY);
    let spill = lp.column("spill", 0.0, 0.0, INFINITY);
    let terms = [(after, 1.0), (release, 1.0), (spill, 1.0), (before, -1.0)];
    let balance = lp.row("water", 0.0, 0.0, &terms);
    rest(&mut lp, release);
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    draft.state("water", 0.2 * scale);
    let lp = draft.template(lp);
    let nodes = ["1", "2", "3", "4"].map(|name| draft.node(name, lp));
    draft.start(nodes[0], 1.0);
    for stage in nodes.windows(2) {
        draft.edge(stage[0], stage[1], 1.0);
    }
    for node in nodes {
        for inflow in [0.1 * scale, 0.3 * scale] {
            let change = Change::RowBounds {
                row: balance,
                lower: inflow,
                upper: inflow,
            };
            draft.opening(node, 0.5, vec![change]);
        }
    }
    draft.build().expect("it is sound")
}

#[test]
fn a_price_counts_beside_one_that_is_much_larger() {
    for largest in [1e4, 1e6, 1e8, 1e10] {
        let counts = check(
            store(1e4, |lp, release| {
                // In two rows each, and without limits.
                let one = lp.column("one", 1e-4, 0.0, INFINITY);
                let other = lp.column("other", 2e-4, 0.0, INFINITY);
                let missing = lp.column("missing", largest, 0.0, INFINITY);
                let terms = [(one, 1.0), (other, 3.0), (missing, 1.0), (release, 1.0)];
                lp.row("demand", 1e4, 1e4, &terms);
                lp.row("apart", -1e12, INFINITY, &[(one, 1.0), (other, -1.0)]);
            }),
            1,
        );
        println!("{largest:e}: {counts:?}");
    }
}

#[test]
fn columns_of_a_supply_curve_may_differ_in_size() {
    for factor in [1.0, 1e-3, 1e-6, 1e-9, 1e3, 1e6] {
        let counts = check(
            store(10.0, |lp, release| {
                let odd = lp.column("odd", factor, 0.0, 1.0);
                let cheap = lp.column("cheap", 2.0, 0.0, 5.0);
                let dear = lp.column("dear", 3.0, 0.0, 6.0);
                let missing = lp.column("missing", 50.0, 0.0, INFINITY);
                let terms = [
                    (odd, factor),
                    (cheap, 1.0),
                    (dear, 1.0),
                    (missing, 1.0),
                    (release, 1.0),
                ];
                lp.row("demand", 13.0, 13.0, &terms);
                lp.row("also", -INFINITY, 1e3, &[(missing, 1.0), (release, 1.0)]);
            }),
            1,
        );
        println!("{factor:e}: {counts:?}");
    }
}

#[test]
fn a_node_with_many_rows_is_for_the_kernel_too() {
    for rows in [500, 700, 2000] {
        let problem = store(10.0, |lp, release| {
            let missing = lp.column("missing", 50.0, 0.0, INFINITY);
            lp.row("demand", 13.0, 13.0, &[(missing, 1.0), (release, 1.0)]);
            for number in 0..rows {
                let terms = [(missing, 1.0 + f64::from(number)), (release, 1.0)];
                lp.row(format!("loose{number}"), -INFINITY, 1e6, &terms);
            }
        });
        let counts = check(problem, 1);
        assert_eq!(counts.highs, 0, "{rows} rows: {counts:?}");
    }
}

#[test]
fn a_stage_without_rows_and_columns_costs_nothing() {
    for solver in [Solver::Highs, Solver::Kernel, Solver::Check] {
        let mut draft = Draft::new(Sense::Minimize, 0.0);
        let lp = draft.template(Template::new());
        let node = draft.node("empty", lp);
        draft.start(node, 1.0);
        let problem = draft.build().expect("it is sound");
        assert!(train(problem, 1, solver).solves > 0);
    }
}
