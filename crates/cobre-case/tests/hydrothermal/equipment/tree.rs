//! The scenario tree of a random system as one linear program, written from the equations of the book.

use std::num::NonZero;

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, ColumnId, Draft, Selection, Sense, Settings, Solver, StopRule, Stopping, Template, run,
};

use super::world::{DEFICIT, EXCESS, SPILLAGE, TURBINED_BELOW, World};
use crate::balances::Random;

/// Inflows by stage, opening and plant, m³/s.
pub type Inflows = Vec<Vec<Vec<f64>>>;

const FREE: f64 = f64::INFINITY;

/// The state at the beginning of a stage.
#[derive(Debug, Clone)]
pub struct InitialState {
    stage: usize,
    storage: Vec<f64>,
    level: f64,
    /// By stage of the study; what is decided later is not looked at.
    committed: Vec<f64>,
}

impl InitialState {
    pub fn of(world: &World) -> Self {
        let mut committed = world.past.clone();
        committed.resize(3, 0.0);
        Self {
            stage: 0,
            storage: world.hydros.iter().map(|plant| plant.initial).collect(),
            level: world.battery.initial,
            committed,
        }
    }

    pub fn random(world: &World, stage: usize, random: &mut Random) -> Self {
        let part = |most: f64, random: &mut Random| most * random.share();
        Self {
            stage,
            storage: world
                .hydros
                .iter()
                .map(|plant| part(plant.max_storage, random))
                .collect(),
            level: part(world.battery.capacity, random),
            committed: (0..3)
                .map(|_| random.number(world.committed.0, world.committed.1))
                .collect(),
        }
    }

    /// The value of a state variable by its name.
    pub fn value(&self, world: &World, name: &str) -> f64 {
        if let Some(plant) = name.strip_prefix("storage.H") {
            return self.storage[plant.parse::<usize>().expect("a number")];
        }
        if name == "level.A0" {
            return self.level;
        }
        let slot = name
            .strip_prefix("committed")
            .and_then(|rest| rest.strip_suffix(".T2"));
        let slot: usize = slot.expect(name).parse().expect("a number");
        let due = self.stage + slot - 1;
        // Stages that are decided later, or after the study, are handed on as nothing.
        let known = due < 3
            && world
                .decided_in(due)
                .is_none_or(|decided| decided < self.stage);
        if known { self.committed[due] } else { 0.0 }
    }
}

/// The expected cost of all stages from one on, in money of that stage.
pub fn cost(world: &World, inflows: &Inflows, stage: usize, given: &InitialState) -> f64 {
    let mut tree = Tree {
        world,
        inflows,
        lp: Template::new(),
    };
    let fixed = |value: f64, tree: &mut Tree<'_>| tree.column(0.0, value, value);
    let before = Before {
        storage: given
            .storage
            .iter()
            .map(|value| fixed(*value, &mut tree))
            .collect(),
        level: fixed(given.level, &mut tree),
        committed: given
            .committed
            .iter()
            .map(|value| fixed(*value, &mut tree))
            .collect(),
    };
    tree.branch(stage, 1.0, &before);
    solve(tree.lp)
}

fn solve(lp: Template) -> f64 {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let lp = draft.template(lp);
    let only = draft.node("only", lp);
    draft.start(only, 1.0);
    let settings = Settings {
        seed: 0,
        passes: NonZero::new(1).expect("not 0"),
        selection: Selection::ALL,
        stopping: Stopping::any(vec![StopRule::Iterations(1)]),
        threads: NonZero::new(1).expect("not 0"),
        solver: Solver::Highs,
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    let problem = draft.build().expect("a tree is a problem");
    let results = run(&LocalBackend, problem, &settings, &mut ());
    results.expect("it has an optimum").trained.bound
}

struct Tree<'w> {
    world: &'w World,
    inflows: &'w Inflows,
    lp: Template,
}

/// The columns that a node takes over from the one before.
#[derive(Debug, Clone)]
struct Before {
    storage: Vec<ColumnId>,
    level: ColumnId,
    /// By stage of the study.
    committed: Vec<ColumnId>,
}

type Terms = Vec<(ColumnId, f64)>;

/// What a block decides.
struct Block {
    turbined: [ColumnId; 2],
    spilled: [ColumnId; 2],
    pumped: ColumnId,
    charge: ColumnId,
    discharge: ColumnId,
    /// The left-hand sides of constraints 0, 2 (without its first term) and 3.
    sides: [Terms; 3],
    import: ColumnId,
    committed: ColumnId,
}

impl Tree<'_> {
    fn column(&mut self, cost: f64, lower: f64, upper: f64) -> ColumnId {
        self.lp.column("", cost, lower, upper)
    }

    fn row(&mut self, lower: f64, upper: f64, terms: &[(ColumnId, f64)]) {
        self.lp.row("", lower, upper, terms);
    }

    fn branch(&mut self, stage: usize, weight: f64, before: &Before) {
        if stage == 3 {
            return;
        }
        let openings = &self.inflows[stage];
        let weight = weight / openings.len() as f64;
        for inflows in openings {
            let after = self.node(stage, weight, inflows, before);
            self.branch(stage + 1, weight * self.world.discount(stage), &after);
        }
    }

    fn node(&mut self, stage: usize, weight: f64, inflows: &[f64], before: &Before) -> Before {
        let world = self.world;
        let hours = &world.hours[stage];
        let whole: f64 = hours.iter().sum();
        let blocks: Vec<Block> = (0..hours.len())
            .map(|block| self.block(stage, block, weight))
            .collect();
        let mut after = before.clone();
        self.water(stage, inflows, &blocks, &mut after);
        self.battery(stage, weight, &blocks, &mut after);
        // Committed generation of this stage, and commitments that this stage decides.
        let mut terms: Terms = vec![(before.committed[stage], -whole)];
        for (block, hours) in blocks.iter().zip(hours) {
            terms.push((block.committed, *hours));
        }
        self.row(0.0, 0.0, &terms);
        for later in stage + 1..3 {
            if world.decided_in(later) == Some(stage) {
                let discount: f64 = (stage..later).map(|stage| world.discount(stage)).product();
                let hours: f64 = world.hours[later].iter().sum();
                let price = world.committed.2[later] * hours * discount;
                let (least, most, _) = &world.committed;
                after.committed[later] = self.column(weight * price, *least, *most);
            }
        }
        self.constraints(stage, weight, &blocks, &after);
        after
    }

    /// Turbined flows of both plants, with what they give to the buses.
    fn turbined(&mut self, per_hour: f64, balance: &mut [Terms; 2]) -> [ColumnId; 2] {
        let world = self.world;
        let turbined = [0, 1].map(|place| {
            let plant = &world.hydros[place];
            let most = plant
                .max_turbined
                .min(plant.max_generation / plant.productivity);
            let column = self.column(0.0, 0.0, most);
            if place == 1 || world.units.is_empty() {
                balance[place].push((column, plant.productivity));
            }
            column
        });
        if !world.units.is_empty() {
            let productivity = world.hydros[0].productivity;
            let mut terms = vec![(turbined[0], -1.0)];
            for unit in &world.units {
                let most = unit.max_turbined.min(unit.max_generation / productivity);
                let flow = self.column(0.0, 0.0, most);
                let below = self.column(TURBINED_BELOW * per_hour, 0.0, FREE);
                self.row(unit.min_turbined, FREE, &[(flow, 1.0), (below, 1.0)]);
                terms.push((flow, 1.0));
                balance[unit.bus].push((flow, productivity));
            }
            self.row(0.0, 0.0, &terms);
        }
        turbined
    }

    fn block(&mut self, stage: usize, block: usize, weight: f64) -> Block {
        let world = self.world;
        let hours = world.hours[stage][block];
        let per_hour = weight * hours;
        let mut balance: [Terms; 2] = [Vec::new(), Vec::new()];
        let turbined = self.turbined(per_hour, &mut balance);
        let spilled = [0, 1].map(|_| self.column(SPILLAGE * per_hour, 0.0, FREE));
        // Thermal plants.
        let (least, most, cost) = world.plain;
        let plain = self.column(cost * per_hour, least, most);
        balance[0].push((plain, 1.0));
        let segmented = self.column(0.0, 0.0, world.segments_max);
        balance[1].push((segmented, 1.0));
        let mut parts = vec![(segmented, -1.0)];
        for (number, (size, cost)) in world.segments.iter().enumerate() {
            let is_final = number + 1 == world.segments.len();
            let part = self.column(cost * per_hour, 0.0, if is_final { FREE } else { *size });
            parts.push((part, 1.0));
        }
        self.row(0.0, 0.0, &parts);
        let committed = self.column(0.0, world.committed.0, world.committed.1);
        balance[0].push((committed, 1.0));
        // Pumping, contracts, the battery.
        let (consumption, least, most, entry) = world.pump;
        let there = f64::from(u8::from(stage >= entry));
        // There is always water for the minimum here.
        let pumped = self.column(0.0, there * least, there * most);
        balance[1].push((pumped, -consumption));
        let is_final = stage == 2 && block + 1 == world.hours[2].len();
        let (least, most, price, late) = world.import;
        let import = self.column(if is_final { late } else { price } * per_hour, least, most);
        balance[1].push((import, 1.0));
        let export = self.column(world.export.1 * per_hour, 0.0, world.export.0);
        balance[0].push((export, -1.0));
        let battery = &world.battery;
        let there = f64::from(u8::from(battery.exit.is_none_or(|exit| stage < exit)));
        let charge = self.column(0.0, 0.0, there * battery.charge);
        let discharge = self.column(battery.wear * per_hour, 0.0, there * battery.discharge);
        balance[1].extend([(charge, -1.0), (discharge, 1.0)]);
        // The source and what is curtailed.
        let available = world.source.0[stage];
        let taken = self.column(-world.source.1[stage] * per_hour, 0.0, available);
        balance[1].push((taken, 1.0));
        let curtailed = self.column(0.0, 0.0, FREE);
        self.row(available, available, &[(taken, 1.0), (curtailed, 1.0)]);
        // The line.
        let (capacity, cost, arrives, factor, exit) = world.line;
        let there = f64::from(u8::from(exit.is_none_or(|exit| stage < exit)));
        let factor = if stage == 1 && block == 0 {
            factor
        } else {
            1.0
        };
        let direct = self.column(cost * per_hour, 0.0, there * factor * capacity);
        let reverse = self.column(cost * per_hour, 0.0, there * capacity);
        balance[0].extend([(direct, -1.0), (reverse, arrives)]);
        balance[1].extend([(direct, arrives), (reverse, -1.0)]);
        let mut deficits = Vec::new();
        for (terms, load) in balance.iter_mut().zip(world.load) {
            let deficit = self.column(DEFICIT * per_hour, 0.0, FREE);
            let excess = self.column(EXCESS * per_hour, 0.0, FREE);
            terms.extend([(deficit, 1.0), (excess, -1.0)]);
            self.row(load, load, terms);
            deficits.push(deficit);
        }
        let first = vec![(direct, 1.0), (reverse, -1.0), (segmented, 0.5)];
        let second = vec![(pumped, consumption), (curtailed, -1.0)];
        let third = vec![
            (turbined[1], 1.0),
            (spilled[1], 1.0),
            (turbined[0], -1.5 * world.hydros[0].productivity),
            (deficits[1], 1.0),
            (discharge, 1.0),
        ];
        Block {
            turbined,
            spilled,
            pumped,
            charge,
            discharge,
            sides: [first, second, third],
            import,
            committed,
        }
    }

    fn water(&mut self, stage: usize, inflows: &[f64], blocks: &[Block], held: &mut Before) {
        let world = self.world;
        for period in world.periods(stage) {
            let hours: f64 = period.iter().map(|block| world.hours[stage][*block]).sum();
            for (plant, inflow) in inflows.iter().enumerate() {
                let after = self.column(0.0, 0.0, world.hydros[plant].max_storage);
                let mut terms = vec![(after, 1.0), (held.storage[plant], -1.0)];
                for &block in &period {
                    let volume = 0.0036 * world.hours[stage][block];
                    let own = &blocks[block];
                    terms.extend([(own.turbined[plant], volume), (own.spilled[plant], volume)]);
                    if plant == 1 {
                        terms.extend([(own.turbined[0], -volume), (own.spilled[0], -volume)]);
                        terms.push((own.pumped, volume));
                    } else {
                        terms.push((own.pumped, -volume));
                    }
                }
                let inflow = 0.0036 * hours * inflow;
                self.row(inflow, inflow, &terms);
                held.storage[plant] = after;
            }
        }
    }

    fn battery(&mut self, stage: usize, weight: f64, blocks: &[Block], held: &mut Before) {
        let world = self.world;
        let battery = &world.battery;
        let there = battery.exit.is_none_or(|exit| stage < exit);
        for period in world.periods(stage) {
            let hours: f64 = period.iter().map(|block| world.hours[stage][*block]).sum();
            let left = if there {
                (1.0 - battery.self_discharge).powf(hours)
            } else {
                1.0
            };
            let after = self.column(0.0, 0.0, battery.capacity);
            let mut terms = vec![(after, 1.0), (held.level, -left)];
            for block in period {
                let hours = world.hours[stage][block];
                terms.push((blocks[block].charge, -hours * battery.efficiency[0]));
                terms.push((blocks[block].discharge, hours / battery.efficiency[1]));
            }
            self.row(0.0, 0.0, &terms);
            held.level = after;
        }
        if there {
            let below = self.column(weight * battery.below_cost, 0.0, FREE);
            self.row(battery.min_level, FREE, &[(held.level, 1.0), (below, 1.0)]);
        }
    }

    fn constraints(&mut self, stage: usize, weight: f64, blocks: &[Block], held: &Before) {
        let world = self.world;
        let [first, second, third, fourth] = world.constraints;
        let hours = &world.hours[stage];
        for (block, hours) in blocks.iter().zip(hours) {
            if stage != 1 {
                let bound = if stage == 0 { first.0 } else { first.0 / 2.0 };
                let above = self.column(weight * first.1 * hours, 0.0, FREE);
                let mut terms = block.sides[0].clone();
                terms.push((above, -1.0));
                self.row(-FREE, bound, &terms);
            }
            if stage == 2 {
                let slacks = [0, 1].map(|_| self.column(weight * third.1 * hours, 0.0, FREE));
                let mut terms = block.sides[1].clone();
                terms.push((blocks[0].import, 1.0));
                terms.extend([(slacks[0], 1.0), (slacks[1], -1.0)]);
                self.row(third.0, third.0, &terms);
            }
            if stage == 1 {
                let slacks = [0, 1].map(|_| self.column(weight * fourth.1 * hours, 0.0, FREE));
                let mut terms = block.sides[2].clone();
                terms.extend([(slacks[0], 1.0), (slacks[1], -1.0)]);
                self.row(fourth.0, fourth.0 + 5.0, &terms);
            }
        }
        if stage == 1 {
            let whole: f64 = hours.iter().sum();
            let below = self.column(weight * second.1 * whole, 0.0, FREE);
            let terms = [(held.storage[0], 1.0), (held.level, 0.01), (below, 1.0)];
            self.row(second.0 + 2.0, FREE, &terms);
        }
    }
}
