//! Plants below hyperplanes: the reference of a group may be any of its rows, and results stay those of the template.

use super::{agree_without_help, trained_on};
use crate::SddpError;
use crate::kernel::{Fault, with_sparse_factors};
use crate::lp::LpStatistics;
use crate::noise::{Noise, Purpose};
use crate::problem::{Change, ColumnId, Draft, Problem, RowId, Sense, Template};

const PLANTS: usize = 7;
const BLOCKS: usize = 3;
const UNLIMITED: f64 = f64::INFINITY;

/// Adds a plant whose generation in each block is below five hyperplanes of flow and mean storage and below a
/// capacity, and a row for the generation of all blocks. Returns the row of its inflow.
fn plant(
    lp: &mut Template,
    plant: usize,
    supply: &mut [Vec<(ColumnId, f64)>],
    numbers: &mut impl FnMut(f64, f64) -> f64,
) -> RowId {
    let name = |what: &str| format!("{what}{plant}");
    let before = lp.column(name("before"), 0.0, -UNLIMITED, UNLIMITED);
    let after = lp.column(name("after"), 0.0, 0.0, 200.0);
    lp.state(name("storage"), before, after);
    let mut balance = vec![(after, 1.0), (before, -1.0)];
    let mut all_blocks = Vec::new();
    let productivity = numbers(0.5, 1.5);
    for (block, supply) in supply.iter_mut().enumerate() {
        let name = |what: &str| format!("{what}{plant}.{block}");
        let turbined = lp.column(name("turbined"), 0.0, 0.0, 40.0);
        let spilled = lp.column(name("spilled"), 0.01, 0.0, UNLIMITED);
        let least = if block == 0 { 1.0 } else { 0.0 };
        let generation = lp.column(name("generation"), 0.0, least, 45.0);
        let help = lp.column(name("help"), 900.0, 0.0, UNLIMITED);
        balance.extend([(turbined, 1.0), (spilled, 1.0)]);
        for plane in 0..5 {
            let part = f64::from(plane) / 5.0;
            let slope = productivity * (1.3 - part);
            let head = 0.02 * part * numbers(0.5, 1.0);
            let terms = [
                (generation, 1.0),
                (turbined, -slope),
                (before, -head),
                (after, -head),
                (help, -1.0),
            ];
            let name = format!("plane{plane}.{plant}.{block}");
            lp.row(name, -UNLIMITED, 9.0 * part * part, &terms);
        }
        supply.push((generation, 1.0));
        all_blocks.push((generation, 1.0));
    }
    lp.row(name("energy"), 2.0, 100.0, &all_blocks);
    lp.row(name("balance"), 0.0, 0.0, &balance)
}

/// A stage of plants below hyperplanes, thermal plants, and a shortage. Returns the rows of inflows.
fn stage(numbers: &mut impl FnMut(f64, f64) -> f64) -> (Template, Vec<RowId>) {
    let mut lp = Template::new();
    let mut supply = vec![Vec::new(); BLOCKS];
    let inflows = (0..PLANTS).map(|number| plant(&mut lp, number, &mut supply, numbers));
    let inflows = inflows.collect();
    for (block, supply) in supply.iter_mut().enumerate() {
        for thermal in 0..4 {
            let name = format!("thermal{thermal}.{block}");
            let plant = lp.column(name, 10.0 + numbers(0.0, 90.0), 0.0, 30.0);
            supply.push((plant, 1.0));
        }
        let shortage = lp.column(format!("shortage{block}"), 1000.0, 0.0, UNLIMITED);
        supply.push((shortage, 1.0));
        let load = 150.0 + 40.0 * block as f64;
        lp.row(format!("load{block}"), load, load, &*supply);
    }
    (lp, inflows)
}

fn problem() -> Problem {
    let noise = Noise::new(23, Purpose::Training);
    let mut count = 0;
    let mut numbers = |low: f64, high: f64| {
        count += 1;
        low + (high - low) * noise.draw(0, count, 0)[0]
    };
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    for plant in 0..PLANTS {
        draft.state(format!("storage{plant}"), 60.0);
    }
    let (lp, inflows) = stage(&mut numbers);
    let lp = draft.template(lp);
    let mut before = None;
    for number in 0..5 {
        let node = draft.node(format!("{}", number + 1), lp);
        for _ in 0..8 {
            let changes = inflows.iter().map(|&row| {
                let inflow = numbers(0.0, 60.0);
                Change::RowBounds {
                    row,
                    lower: inflow,
                    upper: inflow,
                }
            });
            let changes = changes.collect();
            draft.opening(node, 1.0 / 8.0, changes);
        }
        match before {
            None => draft.start(node, 1.0),
            Some(before) => draft.edge(before, node, 1.0),
        }
        before = Some(node);
    }
    draft.build().expect("it is sound")
}

fn trained(fault: Option<Fault>) -> Result<LpStatistics, SddpError> {
    with_sparse_factors(|| trained_on(problem(), (12, 20), fault))
}

/// Values, decisions, and the dual values of the rows of the template: those of simulated paths are compared with the
/// gradient.
#[test]
fn hyperplane_groups_agree_without_help() {
    agree_without_help(trained(None));
}

#[test]
fn a_basis_with_the_reference_of_another_is_caught() {
    let found = match trained(Some(Fault::WrongReference)) {
        Ok(statistics) => statistics.refactored > 0,
        Err(error) => format!("{error:?}").contains("two solvers differ"),
    };
    assert!(found);
}

#[test]
fn weights_that_are_never_reset_do_not_change_an_answer() {
    let statistics = trained(Some(Fault::UnresetWeights)).expect("both agree");
    assert!(statistics.difference < 1e-8, "{statistics:?}");
}
