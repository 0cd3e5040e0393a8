//! A random system of two buses with one of each kind of equipment.

use crate::balances::Random;

/// A plant: productivity, largest flow and generation, initial and largest storage, mean inflow.
#[derive(Debug)]
pub struct Hydro {
    pub productivity: f64,
    pub max_turbined: f64,
    pub max_generation: f64,
    pub initial: f64,
    pub max_storage: f64,
    pub inflow: f64,
}

/// A group of units of the first plant: bus, least and most flow, most generation.
#[derive(Debug)]
pub struct Unit {
    pub bus: usize,
    pub min_turbined: f64,
    pub max_turbined: f64,
    pub max_generation: f64,
}

/// How far ahead the last thermal plant is committed.
#[derive(Debug, Clone, Copy)]
pub enum Lead {
    Stages(usize),
    Hours(f64),
}

#[derive(Debug)]
pub struct World {
    /// By stage and block.
    pub hours: Vec<Vec<f64>>,
    pub chronological: Vec<bool>,
    pub rate: f64,
    pub load: [f64; 2],
    /// Capacity both ways, cost, part that arrives, factor of the first block in stage 1, exit stage.
    pub line: (f64, f64, f64, f64, Option<usize>),
    /// The first flows to the second.
    pub hydros: Vec<Hydro>,
    /// None if the first plant feeds the first bus.
    pub units: Vec<Unit>,
    /// Consumption, least and most flow, first stage.
    pub pump: (f64, f64, f64, usize),
    /// Bus 0: least, most, cost.
    pub plain: (f64, f64, f64),
    /// Bus 1: segments of size and cost; the most is beyond their sum.
    pub segments: Vec<(f64, f64)>,
    pub segments_max: f64,
    /// Bus 0: least and most, cost by stage.
    pub committed: (f64, f64, Vec<f64>),
    pub lead: Lead,
    pub past: Vec<f64>,
    /// Import at bus 1: least, most, price; price of the last block of stage 2.
    pub import: (f64, f64, f64, f64),
    /// Export at bus 0: most, price.
    pub export: (f64, f64),
    pub battery: Battery,
    /// A source at bus 1: available power by stage, cost of curtailment by stage.
    pub source: (Vec<f64>, Vec<f64>),
    /// Bounds of the constraints, and their penalties.
    pub constraints: [(f64, f64); 4],
}

#[derive(Debug)]
pub struct Battery {
    pub capacity: f64,
    pub min_level: f64,
    pub initial: f64,
    pub charge: f64,
    pub discharge: f64,
    pub efficiency: [f64; 2],
    pub self_discharge: f64,
    pub wear: f64,
    pub below_cost: f64,
    pub exit: Option<usize>,
}

pub const DEFICIT: f64 = 900.0;
pub const EXCESS: f64 = 1.5;
pub const SPILLAGE: f64 = 0.3;
pub const TURBINED_BELOW: f64 = 40.0;
pub const DAYS: [f64; 3] = [31.0, 28.0, 31.0];

impl World {
    pub fn random(random: &mut Random) -> Self {
        let blocks = |random: &mut Random| -> Vec<f64> {
            let count = 1 + random.below(3);
            (0..count).map(|_| random.number(90.0, 300.0)).collect()
        };
        let hydro = |random: &mut Random| {
            let max_storage = random.number(60.0, 250.0);
            Hydro {
                productivity: random.number(0.3, 1.4),
                max_turbined: random.number(30.0, 90.0),
                max_generation: random.number(20.0, 70.0),
                initial: (max_storage * random.share() * 10.0).round() / 10.0,
                max_storage,
                inflow: random.number(20.0, 60.0),
            }
        };
        let (least, most) = (random.number(0.0, 8.0), random.number(20.0, 50.0));
        let units = if random.below(3) > 0 { 2 } else { 0 };
        let capacity = random.number(50.0, 3000.0);
        let mut world = Self {
            hours: (0..3).map(|_| blocks(random)).collect(),
            chronological: (0..3).map(|_| random.below(2) == 0).collect(),
            rate: if random.below(2) == 0 { 0.0 } else { 0.3 },
            load: [random.number(40.0, 130.0), random.number(30.0, 90.0)],
            line: (
                random.number(5.0, 60.0),
                random.number(0.0, 3.0),
                1.0 - random.below(6) as f64 / 100.0,
                random.number(0.0, 1.5),
                (random.below(3) == 0).then_some(2),
            ),
            hydros: (0..2).map(|_| hydro(random)).collect(),
            units: (0..units)
                .map(|bus| Unit {
                    bus,
                    min_turbined: random.number(0.0, 6.0),
                    max_turbined: random.number(10.0, 60.0),
                    max_generation: random.number(10.0, 50.0),
                })
                .collect(),
            pump: (
                random.number(0.2, 3.0),
                random.number(0.0, 2.0),
                random.number(2.0, 20.0),
                random.below(2),
            ),
            plain: (
                random.number(0.0, 8.0),
                random.number(10.0, 40.0),
                random.number(30.0, 200.0),
            ),
            segments: (1..4)
                .map(|step| (random.number(3.0, 12.0), 50.0 * f64::from(step)))
                .collect(),
            segments_max: random.number(20.0, 60.0),
            committed: (
                least,
                most,
                (0..3).map(|_| random.number(20.0, 120.0)).collect(),
            ),
            lead: match random.below(4) {
                0 => Lead::Hours(random.number(200.0, 700.0)),
                1 => Lead::Hours(random.number(750.0, 1400.0)),
                lead => Lead::Stages(lead - 1),
            },
            past: Vec::new(),
            import: (
                random.number(0.0, 3.0),
                random.number(3.0, 20.0),
                random.number(20.0, 250.0),
                random.number(0.0, 100.0),
            ),
            export: (random.number(0.0, 15.0), -random.number(10.0, 90.0)),
            battery: Battery {
                capacity,
                min_level: (0.2 * capacity * random.share()).round(),
                initial: (capacity * (0.3 + 0.6 * random.share())).round(),
                charge: random.number(0.0, 25.0),
                discharge: random.number(1.0, 25.0),
                efficiency: [random.number(0.7, 1.0), random.number(0.7, 1.0)],
                self_discharge: [0.0, 0.0005][random.below(2)],
                wear: random.number(0.0, 4.0),
                below_cost: random.number(5.0, 60.0),
                exit: (random.below(4) == 0).then_some(2),
            },
            source: (
                (0..3).map(|_| random.number(0.0, 30.0)).collect(),
                (0..3).map(|_| random.number(0.1, 2.0)).collect(),
            ),
            constraints: [0; 4].map(|_| (random.number(0.0, 40.0), random.number(5.0, 300.0))),
        };
        let past = (0..3).filter(|stage| world.decided_in(*stage).is_none());
        let past = past.map(|_| random.number(least, most)).collect();
        world.past = past;
        world
    }

    /// The stage in which the committed plant's generation of a stage is decided.
    pub fn decided_in(&self, stage: usize) -> Option<usize> {
        match self.lead {
            Lead::Stages(lead) => stage.checked_sub(lead),
            Lead::Hours(hours) => {
                let start = |stage: usize| 24.0 * DAYS[..stage].iter().sum::<f64>();
                (0..stage)
                    .rev()
                    .find(|earlier| start(*earlier) <= start(stage) - hours)
            }
        }
    }

    pub fn discount(&self, stage: usize) -> f64 {
        (1.0 + self.rate).powf(-DAYS[stage] / 365.25)
    }

    /// The blocks of each period of a stage.
    pub fn periods(&self, stage: usize) -> Vec<Vec<usize>> {
        let blocks = 0..self.hours[stage].len();
        if self.chronological[stage] {
            blocks.map(|block| vec![block]).collect()
        } else {
            vec![blocks.collect()]
        }
    }
}
