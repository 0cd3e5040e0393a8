//! A hydrothermal system made up by numbers alone: what is measured where no case is at hand.

use super::{Change, ColumnId, Draft, Problem, ProblemErrors, RowId, Sense, Template};
use crate::noise::{Noise, Purpose};

/// The size of a made-up system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hydrothermal {
    /// Stages.
    pub stages: usize,
    /// Regions, each with one reservoir; all trade through one hub.
    pub reservoirs: usize,
    /// Thermal plants, over all regions.
    pub thermals: usize,
    /// Openings per stage: inflows of all reservoirs.
    pub openings: usize,
    /// Whether the first stage's inflows are known.
    pub known_start: bool,
}

/// Capacity of a reservoir, demand of a region, and what a missing unit of it costs.
const CAPACITY: f64 = 20_000.0;
const DEMAND: f64 = 10_000.0;
const SHORTAGE_COST: f64 = 5_000.0;

/// Numbers from `low` to `high`, the same on every machine.
struct Numbers {
    noise: Noise,
    count: usize,
}

impl Numbers {
    fn next(&mut self, low: f64, high: f64) -> f64 {
        self.count += 1;
        low + (high - low) * self.noise.draw(0, self.count, 0)[0]
    }
}

/// A made-up system of this size.
///
/// # Errors
/// When a size is zero.
pub fn hydrothermal(size: Hydrothermal) -> Result<Problem, ProblemErrors> {
    let mut numbers = Numbers {
        noise: Noise::new(20_261_115, Purpose::Training),
        count: 0,
    };
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    for reservoir in 0..size.reservoirs {
        draft.state(format!("storage{reservoir}"), 0.5 * CAPACITY);
    }
    let (lp, balances) = stage(size, &mut numbers);
    let lp = draft.template(lp);
    let mut before = None;
    for number in 0..size.stages {
        let node = draft.node(format!("{}", number + 1), lp);
        let openings = if number == 0 && size.known_start {
            1
        } else {
            size.openings
        };
        for _ in 0..openings {
            let wet = numbers.next(0.2, 1.8);
            let changes = balances.iter().map(|&row| {
                let inflow = 0.45 * DEMAND * (0.5 * wet + numbers.next(0.0, 1.0));
                Change::RowBounds {
                    row,
                    lower: inflow,
                    upper: inflow,
                }
            });
            let changes = changes.collect();
            draft.opening(node, 1.0 / openings as f64, changes);
        }
        match before {
            None => draft.start(node, 1.0),
            Some(before) => draft.edge(before, node, 1.0),
        }
        before = Some(node);
    }
    draft.build()
}

/// The linear program of a stage, and its rows that hold inflows.
fn stage(size: Hydrothermal, numbers: &mut Numbers) -> (Template, Vec<RowId>) {
    let mut lp = Template::new();
    let mut balances = Vec::new();
    let mut hub: Vec<(ColumnId, f64)> = Vec::new();
    let unlimited = f64::INFINITY;
    for region in 0..size.reservoirs {
        let before = lp.column(format!("before{region}"), 0.0, -unlimited, unlimited);
        let after = lp.column(format!("after{region}"), 0.0, 0.0, CAPACITY);
        let turbined = lp.column(format!("turbined{region}"), 0.0, 0.0, 0.9 * DEMAND);
        let spilled = lp.column(format!("spilled{region}"), 0.01, 0.0, unlimited);
        let terms = [
            (after, 1.0),
            (before, -1.0),
            (turbined, 1.0),
            (spilled, 1.0),
        ];
        balances.push(lp.row(format!("balance{region}"), 0.0, 0.0, &terms));
        lp.state(format!("storage{region}"), before, after);
        let mut supply = vec![(turbined, 1.0)];
        let own = (region..size.thermals).step_by(size.reservoirs.max(1));
        for thermal in own {
            let cost = numbers.next(20.0, 1_200.0);
            let capacity = numbers.next(20.0, 400.0);
            let plant = lp.column(format!("thermal{thermal}"), cost, 0.0, capacity);
            supply.push((plant, 1.0));
        }
        for step in 1..=3 {
            let cost = SHORTAGE_COST * f64::from(step) / 3.0;
            let width = if step == 3 { unlimited } else { 0.1 * DEMAND };
            let shortage = lp.column(format!("shortage{region}.{step}"), cost, 0.0, width);
            supply.push((shortage, 1.0));
        }
        let sent = lp.column(format!("sent{region}"), 0.01, 0.0, 0.3 * DEMAND);
        let received = lp.column(format!("received{region}"), 0.01, 0.0, 0.3 * DEMAND);
        supply.extend([(sent, -1.0), (received, 1.0)]);
        hub.extend([(sent, 1.0), (received, -1.0)]);
        let demand = DEMAND * numbers.next(0.8, 1.2);
        lp.row(format!("demand{region}"), demand, demand, &supply);
    }
    lp.row("hub", 0.0, 0.0, &hub);
    (lp, balances)
}
