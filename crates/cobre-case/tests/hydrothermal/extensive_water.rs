//! Random systems with all that hydro plants can have, against their extensive form: one linear program of the whole
//! scenario tree, written from the page about hydro plants and not from the model.

use std::num::NonZero;

use cobre_case::{Options, load};
use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, ColumnId, Draft, Problem, Selection, Sense, Settings, Solver, StopRule, Stopping,
    Template, run,
};

use crate::water_world::{
    DEFICIT, DIVERSION, EVAPORATION, EXCESS, FILLING_BELOW, Function, HM3, OUTFLOW_BELOW, PAST,
    SPILLAGE, STORAGE_BELOW, TURBINED, WITHDRAWAL, WaterPhase, WaterPlant, WaterWorld,
};

const FREE: f64 = f64::INFINITY;

/// The tree in the making.
struct Tree<'w> {
    world: &'w WaterWorld,
    problem: &'w Problem,
    lp: Template,
    /// From and to of all periods, h.
    clock: Vec<(f64, f64)>,
    /// The first period of each stage.
    first: Vec<usize>,
}

/// Volumes released in a period, hm³.
type Released = (usize, Vec<(ColumnId, f64)>);

/// A node of the tree: what its successors need to know.
#[derive(Clone)]
struct Branch {
    /// Storage after it; none before the first stage.
    storage: Vec<Option<ColumnId>>,
    /// By plant: period, and the volumes released in it, hm³.
    released: Vec<Vec<Released>>,
    probability: f64,
}

impl<'w> Tree<'w> {
    fn new(world: &'w WaterWorld, problem: &'w Problem) -> Self {
        let (mut clock, mut first, mut now) = (Vec::new(), Vec::new(), 0.0);
        for stage in &world.stages {
            first.push(clock.len());
            for blocks in stage.periods() {
                let hours: f64 = blocks.iter().map(|block| stage.hours[*block]).sum();
                clock.push((now, now + hours));
                now += hours;
            }
        }
        Self {
            world,
            problem,
            lp: Template::new(),
            clock,
            first,
        }
    }

    fn column(&mut self, cost: f64, lower: f64, upper: f64) -> ColumnId {
        let name = format!("x{}", self.lp.columns.len());
        self.lp.column(name, cost, lower, upper)
    }

    fn row(&mut self, lower: f64, upper: f64, terms: &[(ColumnId, f64)]) {
        let name = format!("r{}", self.lp.rows.len());
        self.lp.row(name, lower, upper, terms);
    }

    /// The inflow of a plant in an opening, m³/s, as the problem has drawn it.
    fn inflow(&self, stage: usize, opening: usize, plant: usize) -> f64 {
        let template = self.problem.template(stage);
        let place = |name: String| template.rows.iter().position(|row| row.name == name);
        let hours: f64 = self.world.stages[stage].hours.iter().sum();
        let (row, unit) = match place(format!("inflow_model.H{plant}")) {
            Some(row) => (row, 1.0),
            None => (
                place(format!("water.H{plant}")).expect("it has a balance"),
                hours * HM3,
            ),
        };
        let places = &self.problem.nodes[stage].places;
        let parts = places.split(self.problem.opening(&self.problem.values, stage, opening));
        let at = places.rows.binary_search(&row).expect("openings change it");
        parts.row_lower[at] / unit
    }

    /// The share of what is released in one interval that arrives in another, `hours` later.
    fn share(&self, from: (f64, f64), hours: f64, to: usize) -> f64 {
        let (start, end) = self.clock[to];
        ((from.1 + hours).min(end) - (from.0 + hours).max(start)).max(0.0) / (from.1 - from.0)
    }

    fn grow(&mut self, stage: usize, before: &Branch) {
        if stage == self.world.stages.len() {
            return;
        }
        let openings = self.problem.nodes[stage].probabilities.len();
        for opening in 0..openings {
            let mut branch = before.clone();
            branch.probability =
                before.probability * self.problem.nodes[stage].probabilities[opening];
            self.node(stage, opening, &mut branch);
            self.grow(stage + 1, &branch);
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "the equations of a page, in its order"
    )]
    fn node(&mut self, stage: usize, opening: usize, branch: &mut Branch) {
        let world = self.world;
        let own = &world.stages[stage];
        let (blocks, periods) = (own.hours.len(), own.periods());
        let weight = branch.probability;
        let hours =
            |blocks: &[usize]| -> f64 { blocks.iter().map(|block| own.hours[*block]).sum() };
        let all: f64 = own.hours.iter().sum();
        let mut supply: Vec<Vec<(ColumnId, f64)>> = vec![Vec::new(); blocks];
        let mut flows = Vec::new();
        for plant in &world.plants {
            let works = plant.phases[stage] == WaterPhase::Works;
            let passes = matches!(plant.phases[stage], WaterPhase::Absent | WaterPhase::Gone);
            let of_block = (0..blocks).map(|block| {
                let cost = |per_hour: f64| weight * per_hour * own.hours[block];
                let turbined = match &plant.functions[stage] {
                    _ if !works => self.column(0.0, 0.0, 0.0),
                    Function::Rho(rho) => {
                        self.column(0.0, 0.0, plant.max_turbined.min(plant.max_generation / rho))
                    }
                    Function::Planes(_) => self.column(cost(TURBINED), 0.0, plant.max_turbined),
                };
                let spilled = if passes {
                    self.column(0.0, -FREE, FREE)
                } else {
                    self.column(cost(SPILLAGE), 0.0, FREE)
                };
                let most = if works && plant.diverts_to.is_some() {
                    plant.max_diversion[stage]
                } else {
                    0.0
                };
                let diverted = self.column(cost(DIVERSION), 0.0, most);
                [turbined, spilled, diverted]
            });
            let of_block: Vec<[ColumnId; 3]> = of_block.collect();
            flows.push(of_block);
        }
        // Storage before the stage and after each period.
        let mut levels: Vec<Vec<ColumnId>> = Vec::new();
        for (place, plant) in world.plants.iter().enumerate() {
            let start = branch.storage[place]
                .unwrap_or_else(|| self.column(0.0, plant.storage[0], plant.storage[0]));
            let mut own_levels = vec![start];
            for _ in &periods {
                let most = if plant.phases[stage] == WaterPhase::Gone {
                    0.0
                } else {
                    plant.storage[2]
                };
                own_levels.push(self.column(0.0, 0.0, most));
            }
            branch.storage[place] = own_levels.last().copied();
            levels.push(own_levels);
        }
        for (place, plant) in world.plants.iter().enumerate() {
            for (number, blocks) in periods.iter().enumerate() {
                let released = blocks.iter().flat_map(|block| {
                    let volume = HM3 * own.hours[*block];
                    [
                        (flows[place][*block][0], volume),
                        (flows[place][*block][1], volume),
                    ]
                });
                branch.released[place].push((self.first[stage] + number, released.collect()));
            }
            self.production(
                plant,
                stage,
                weight,
                &flows[place],
                &levels[place],
                &mut supply,
            );
        }
        for (place, plant) in world.plants.iter().enumerate() {
            let inflow = self.inflow(stage, opening, place);
            let wanted = plant.withdrawal[stage];
            let limits = match wanted {
                0.0 => [0.0, 0.0],
                wanted if wanted > 0.0 => [wanted, FREE],
                wanted => [FREE, -wanted],
            };
            let slack =
                [0, 1].map(|side| self.column(weight * WITHDRAWAL[side] * all, 0.0, limits[side]));
            for (number, blocks) in periods.iter().enumerate() {
                let volume = HM3 * hours(blocks);
                let mut terms = vec![
                    (levels[place][number + 1], 1.0),
                    (levels[place][number], -1.0),
                ];
                for block in blocks {
                    let volume = HM3 * own.hours[*block];
                    terms.extend(flows[place][*block].map(|column| (column, volume)));
                    for (other, flow) in world.plants.iter().zip(&flows) {
                        if other.diverts_to == Some(place) {
                            terms.push((flow[*block][2], -volume));
                        }
                    }
                }
                let mut known = volume * (inflow - wanted);
                for (other, upstream) in world
                    .plants
                    .iter()
                    .enumerate()
                    .filter(|(_, other)| other.below == Some(place))
                {
                    known += self.arrivals(
                        upstream,
                        &branch.released[other],
                        self.first[stage] + number,
                        &mut terms,
                    );
                }
                terms.extend([(slack[0], -volume), (slack[1], volume)]);
                let passes = matches!(plant.phases[stage], WaterPhase::Absent | WaterPhase::Gone);
                if let Some(evaporation) = plant.evaporation.as_ref().filter(|_| !passes) {
                    let [k0, k1, most] = evaporation[stage];
                    let evaporated = self.column(0.0, -most, most);
                    let cost = weight * hours(blocks);
                    let slack = EVAPORATION.map(|price| self.column(cost * price, 0.0, FREE));
                    let mean = [levels[place][number], levels[place][number + 1]]
                        .map(|level| (level, -k1 / 2.0));
                    let mut sides = vec![(evaporated, 1.0), (slack[0], 1.0), (slack[1], -1.0)];
                    sides.extend(mean);
                    self.row(k0, k0, &sides);
                    terms.push((evaporated, volume));
                }
                self.row(known, known, &terms);
                if plant.phases[stage] == WaterPhase::Absent {
                    let still = [
                        (levels[place][number + 1], 1.0),
                        (levels[place][number], -1.0),
                    ];
                    self.row(0.0, 0.0, &still);
                }
            }
            self.limits(
                plant,
                stage,
                weight,
                &flows[place],
                levels[place][periods.len()],
            );
        }
        for (block, mut terms) in supply.into_iter().enumerate() {
            let hours = weight * own.hours[block];
            for (cost, most) in &world.thermals {
                terms.push((self.column(cost * hours, 0.0, *most), 1.0));
            }
            terms.push((self.column(DEFICIT * hours, 0.0, FREE), 1.0));
            terms.push((self.column(EXCESS * hours, 0.0, FREE), -1.0));
            self.row(world.load, world.load, &terms);
        }
    }

    /// Generation by block; adds it to the supply.
    fn production(
        &mut self,
        plant: &WaterPlant,
        stage: usize,
        weight: f64,
        flows: &[[ColumnId; 3]],
        levels: &[ColumnId],
        supply: &mut [Vec<(ColumnId, f64)>],
    ) {
        if plant.phases[stage] != WaterPhase::Works {
            return;
        }
        assert!(weight > 0.0);
        for (number, blocks) in self.world.stages[stage].periods().iter().enumerate() {
            for block in blocks {
                let [turbined, spilled, _] = flows[*block];
                match &plant.functions[stage] {
                    Function::Rho(rho) => supply[*block].push((turbined, *rho)),
                    Function::Planes(planes) => {
                        let power = self.column(0.0, 0.0, plant.max_generation);
                        for [constant, storage, flow, spill] in planes {
                            let terms = [
                                (power, 1.0),
                                (levels[number], -storage / 2.0),
                                (levels[number + 1], -storage / 2.0),
                                (turbined, -flow),
                                (spilled, -spill),
                            ];
                            self.row(-FREE, *constant, &terms);
                        }
                        supply[*block].push((power, 1.0));
                    }
                }
            }
        }
    }

    /// The water of a plant above that arrives in a period: terms, and the part that was released before the study.
    fn arrivals(
        &self,
        upstream: &WaterPlant,
        released: &[Released],
        period: usize,
        terms: &mut Vec<(ColumnId, f64)>,
    ) -> f64 {
        for (from, volumes) in released {
            let share = self.share(self.clock[*from], upstream.travel, period);
            terms.extend(
                volumes
                    .iter()
                    .map(|(column, volume)| (*column, -share * volume)),
            );
        }
        if upstream.travel == 0.0 {
            return 0.0;
        }
        let window = (-24.0 * f64::from(PAST.1), 0.0);
        let volume = PAST.0 * HM3 * (window.1 - window.0);
        volume * self.share(window, upstream.travel, period)
    }

    /// The least storage or the target of filling, and the least outflow.
    fn limits(
        &mut self,
        plant: &WaterPlant,
        stage: usize,
        weight: f64,
        flows: &[[ColumnId; 3]],
        after: ColumnId,
    ) {
        let (least, cost) = match plant.phases[stage] {
            WaterPhase::Absent | WaterPhase::Gone => return,
            WaterPhase::Filling(target) => (target, FILLING_BELOW),
            WaterPhase::Works => (plant.storage[1], STORAGE_BELOW),
        };
        let slack = self.column(weight * cost, 0.0, FREE);
        self.row(least, FREE, &[(after, 1.0), (slack, 1.0)]);
        for (flows, hours) in flows.iter().zip(&self.world.stages[stage].hours) {
            let slack = self.column(weight * OUTFLOW_BELOW * hours, 0.0, FREE);
            let mut terms: Vec<(ColumnId, f64)> = flows.map(|flow| (flow, 1.0)).to_vec();
            terms.push((slack, 1.0));
            self.row(plant.min_outflow, FREE, &terms);
        }
    }
}

fn solved(problem: Problem, iterations: usize, solver: Solver) -> f64 {
    let settings = Settings {
        seed: 3,
        passes: NonZero::new(4).expect("not 0"),
        selection: Selection::ALL,
        stopping: Stopping::any(vec![StopRule::Iterations(iterations)]),
        solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    run(&LocalBackend, problem, &settings, &mut ())
        .expect("it runs")
        .trained
        .bound
}

/// The cost of the extensive form.
fn extensive(world: &WaterWorld, problem: &Problem) -> f64 {
    let mut tree = Tree::new(world, problem);
    let plants = world.plants.len();
    let root = Branch {
        storage: vec![None; plants],
        released: vec![Vec::new(); plants],
        probability: 1.0,
    };
    tree.grow(0, &root);
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let lp = draft.template(tree.lp);
    let node = draft.node("all", lp);
    draft.start(node, 1.0);
    solved(draft.build().expect("it is a problem"), 1, Solver::Highs)
}

#[test]
fn random_hydro_systems_cost_what_their_extensive_form_does() {
    for seed in 0..24 {
        let (world, files) = WaterWorld::random(seed);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default());
        let case = case.unwrap_or_else(|error| panic!("seed {seed}: {:?}", error.errors()));
        let expected = extensive(&world, &case.problem);
        // Cuts are valid, so no bound on the way is above the cost; and in the end it is reached.
        let solver = [Solver::Kernel, Solver::Highs][seed as usize % 2];
        let mut bound = f64::NEG_INFINITY;
        for iterations in [1, 4, 60] {
            bound = solved(case.problem.clone(), iterations, solver);
            let above = bound - expected;
            assert!(
                above <= 1e-7 * expected.abs(),
                "seed {seed}: {bound} after {iterations}, {expected}"
            );
        }
        println!("seed {seed}: {bound}, {expected}");
        let gap = (bound / expected - 1.0).abs();
        assert!(gap < 1e-6, "seed {seed}: {bound} instead of {expected}");
    }
}
