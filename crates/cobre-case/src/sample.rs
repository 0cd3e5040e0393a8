//! Made-up hydrothermal systems of any size, for benchmarks and tests. Tests of `cobre-sddp` include this
//! file, so it uses nothing of this crate.

use cobre_sddp::{
    Change, ColumnId, Draft, Noise, Problem, ProblemErrors, Purpose, RowId, Sense, Template,
};

/// The size of a made-up system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hydrothermal {
    /// Stages.
    pub stages: usize,
    /// Regions with a demand each; all trade through one hub.
    pub regions: usize,
    /// Reservoirs, dealt out over the regions. Those of a region lie one below the other, four to
    /// a river.
    pub reservoirs: usize,
    /// Thermal plants, over all regions.
    pub thermals: usize,
    /// Blocks of a stage. With more than one, each reservoir has a least outflow in each.
    pub blocks: usize,
    /// Earlier inflows that an inflow depends on; each is a state of its own.
    pub lags: usize,
    /// Openings per stage: inflows of all reservoirs.
    pub openings: usize,
    /// True if the first stage's inflows are known.
    pub known_start: bool,
}

/// Capacity of a reservoir, demand of a region, and what a missing unit of it costs.
const CAPACITY: f64 = 20_000.0;
const DEMAND: f64 = 10_000.0;
const SHORTAGE_COST: f64 = 5_000.0;

/// SampleNumbers from `low` to `high`, the same on every machine.
struct SampleNumbers {
    noise: Noise,
    count: usize,
}

impl SampleNumbers {
    fn next(&mut self, low: f64, high: f64) -> f64 {
        self.count += 1;
        low + (high - low) * self.noise.draw(0, self.count, 0)[0]
    }
}

/// The autoregressive coefficient of the inflow before; those of earlier inflows are smaller.
const PERSISTENCE: f64 = 0.4;

/// A made-up system of this size.
///
/// # Errors
/// When a size is zero.
pub fn hydrothermal(size: Hydrothermal) -> Result<Problem, ProblemErrors> {
    let mut numbers = SampleNumbers {
        noise: Noise::new(20_261_115, Purpose::Training),
        count: 0,
    };
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    for reservoir in 0..size.reservoirs {
        draft.state(format!("storage{reservoir}"), 0.5 * size.capacity());
    }
    for reservoir in 0..size.reservoirs {
        for lag in 1..=size.lags {
            draft.state(format!("inflow{reservoir}.{lag}"), size.inflow());
        }
    }
    let (lp, inflows) = stage(size, &mut numbers);
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
            let changes = inflows.iter().map(|&row| {
                let share = 1.0 - persistence(size.lags).iter().sum::<f64>();
                let inflow = size.inflow() * share * (0.5 * wet + numbers.next(0.0, 1.0));
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

/// The weights of the inflows before.
fn persistence(lags: usize) -> Vec<f64> {
    (0..lags)
        .map(|lag| PERSISTENCE / (1_u64 << lag) as f64)
        .collect()
}

impl Hydrothermal {
    /// Reservoirs of a region.
    fn share(self) -> f64 {
        self.reservoirs as f64 / self.regions.max(1) as f64
    }

    fn capacity(self) -> f64 {
        CAPACITY / self.share()
    }

    /// The mean inflow of a reservoir.
    fn inflow(self) -> f64 {
        0.45 * DEMAND / self.share()
    }
}

/// The linear program of a stage, and its rows that hold inflows.
fn stage(size: Hydrothermal, numbers: &mut SampleNumbers) -> (Template, Vec<RowId>) {
    let mut lp = Template::new();
    let mut supply: Vec<Vec<(ColumnId, f64)>> = vec![Vec::new(); size.regions * size.blocks];
    let inflows = rivers(size, &mut lp, &mut supply);
    let each = 1.0 / size.blocks as f64;
    let unlimited = f64::INFINITY;
    for block in 0..size.blocks {
        let mut hub: Vec<(ColumnId, f64)> = Vec::new();
        for region in 0..size.regions {
            let supply = &mut supply[block * size.regions + region];
            let own = (region..size.thermals).step_by(size.regions.max(1));
            for thermal in own {
                let cost = numbers.next(20.0, 1_200.0);
                let capacity = each * numbers.next(20.0, 400.0);
                let plant = lp.column(format!("thermal{thermal}.{block}"), cost, 0.0, capacity);
                supply.push((plant, 1.0));
            }
            for step in 1..=3 {
                let cost = SHORTAGE_COST * f64::from(step) / 3.0;
                let width = if step == 3 {
                    unlimited
                } else {
                    0.1 * each * DEMAND
                };
                let name = format!("shortage{region}.{step}.{block}");
                let shortage = lp.column(name, cost, 0.0, width);
                supply.push((shortage, 1.0));
            }
            let most = 0.3 * each * DEMAND;
            let sent = lp.column(format!("sent{region}.{block}"), 0.01, 0.0, most);
            let received = lp.column(format!("received{region}.{block}"), 0.01, 0.0, most);
            supply.extend([(sent, -1.0), (received, 1.0)]);
            hub.extend([(sent, 1.0), (received, -1.0)]);
            let demand = each * DEMAND * numbers.next(0.8, 1.2);
            lp.row(format!("demand{region}.{block}"), demand, demand, supply);
        }
        lp.row(format!("hub.{block}"), 0.0, 0.0, &hub);
    }
    (lp, inflows)
}

/// Reservoirs with their water balances; adds what they produce to the `supply` of each block and
/// region. Returns the rows that hold inflows.
fn rivers(
    size: Hydrothermal,
    lp: &mut Template,
    supply: &mut [Vec<(ColumnId, f64)>],
) -> Vec<RowId> {
    let (mut inflows, mut from_above) = (Vec::new(), Vec::new());
    let (each, unlimited) = (1.0 / size.blocks as f64, f64::INFINITY);
    for reservoir in 0..size.reservoirs {
        let (region, place) = (reservoir % size.regions, reservoir / size.regions % 4);
        let name = |what: &str| format!("{what}{reservoir}");
        let before = lp.column(name("before"), 0.0, -unlimited, unlimited);
        let after = lp.column(name("after"), 0.0, 0.0, size.capacity());
        lp.state(name("storage"), before, after);
        let mut balance = vec![(after, 1.0), (before, -1.0)];
        for block in 0..size.blocks {
            let name = |what: &str| format!("{what}{reservoir}.{block}");
            let most = 0.9 * each * DEMAND / size.share() * (1.0 + place as f64);
            let turbined = lp.column(name("turbined"), 0.0, 0.0, most);
            let spilled = lp.column(name("spilled"), 0.01, 0.0, unlimited);
            let outflow = [(turbined, 1.0), (spilled, 1.0)];
            balance.extend(outflow);
            supply[block * size.regions + region].push((turbined, 1.0 / (1.0 + place as f64)));
            if size.blocks > 1 {
                let missed = lp.column(name("missed"), 100.0, 0.0, unlimited);
                let least = 0.2 * each * size.inflow();
                let terms = [outflow[0], outflow[1], (missed, 1.0)];
                lp.row(name("outflow"), least, unlimited, &terms);
            }
            if place < 3 {
                from_above.push((reservoir + size.regions, outflow));
            }
        }
        for (_, outflow) in from_above.iter().filter(|(below, _)| *below == reservoir) {
            balance.extend(outflow.map(|(column, value)| (column, -value)));
        }
        if size.lags == 0 {
            inflows.push(lp.row(name("balance"), 0.0, 0.0, &balance));
        } else {
            let inflow = past(size, lp, reservoir, &mut inflows);
            balance.push((inflow, -1.0));
            lp.row(name("balance"), 0.0, 0.0, &balance);
        }
    }
    inflows
}

/// The inflow of a reservoir, which depends on those before; all but the oldest are handed on.
fn past(
    size: Hydrothermal,
    lp: &mut Template,
    reservoir: usize,
    inflows: &mut Vec<RowId>,
) -> ColumnId {
    let unlimited = f64::INFINITY;
    let columns: Vec<(ColumnId, ColumnId)> = (1..=size.lags)
        .map(|lag| {
            let name = |what: &str| format!("{what}{reservoir}.{lag}");
            let before = lp.column(name("inflow_before"), 0.0, -unlimited, unlimited);
            let after = lp.column(name("inflow"), 0.0, -unlimited, unlimited);
            lp.state(name("inflow"), before, after);
            (before, after)
        })
        .collect();
    let newest = columns[0].1;
    let mut terms = vec![(newest, 1.0)];
    let weights = persistence(size.lags).into_iter().zip(&columns);
    terms.extend(weights.map(|(weight, (before, _))| (*before, -weight)));
    inflows.push(lp.row(format!("inflow{reservoir}"), 0.0, 0.0, &terms));
    for pair in columns.windows(2) {
        let shift = [(pair[1].1, 1.0), (pair[0].0, -1.0)];
        lp.row(format!("shift{reservoir}"), 0.0, 0.0, &shift);
    }
    newest
}
