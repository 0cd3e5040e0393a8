//! Random cases: what the linear programs decide is checked against the physics of the case, which
//! this file knows by itself.

use std::collections::HashMap;
use std::sync::Mutex;

use cobre_case::template::{CaseFiles, TemplateColumn};
use cobre_case::{Options, load};
use cobre_comm::LocalBackend;
use cobre_results::{Rows, TableSchema};
use cobre_sddp::{
    About, Cadence, Draft, Noise, Problem, Purpose, Sense, Settings, Solver, Start, StopRule,
    Stopping, Tables, Template, Visited, run_from,
};
use serde_json::json;

/// Numbers from a seed.
pub struct Random(Noise, usize);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Noise::new(seed, Purpose::Simulation), 0)
    }

    pub fn share(&mut self) -> f64 {
        self.1 += 1;
        self.0.draw(self.1, 0, 0)[0]
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.share() * count as f64) as usize
    }

    pub fn number(&mut self, low: f64, high: f64) -> f64 {
        ((low + (high - low) * self.share()) * 10.0).round() / 10.0
    }
}

/// A system without chance: what it does follows from its numbers.
pub struct World {
    pub hours: Vec<f64>,
    pub stages: usize,
    pub buses: usize,
    /// Bus, productivity, downstream, initial storage, largest storage.
    pub hydros: Vec<(usize, f64, Option<usize>, f64, f64)>,
    /// Inflow by plant and stage, m³/s.
    inflows: Vec<Vec<f64>>,
    /// Bus, cost.
    pub thermals: Vec<(usize, f64)>,
    /// From, to, cost, part that arrives.
    lines: Vec<(usize, usize, f64, f64)>,
    /// Bus, capacity, part there is.
    sources: Vec<(usize, f64, f64)>,
    /// By bus and block, the same in all stages.
    load: Vec<Vec<f64>>,
}

const SPILLAGE: f64 = 0.5;
const DEFICIT: [f64; 2] = [700.0, 2000.0];
const EXCESS: f64 = 1.5;
const CURTAILMENT: f64 = 0.25;
const OUTFLOW_BELOW: f64 = 333.0;
const OUTFLOW_ABOVE: f64 = 2.5;
const STORAGE_BELOW: f64 = 77.0;
const TURBINED_BELOW: f64 = 55.0;
const GENERATION_BELOW: f64 = 44.0;
pub const MIN_OUTFLOW: f64 = 4.0;
pub const MAX_OUTFLOW: f64 = 85.0;
pub const MIN_TURBINED: f64 = 3.0;
pub const MIN_GENERATION: f64 = 2.0;
/// The least storage, as a part of the initial one.
const MIN_STORAGE: f64 = 0.5;

impl World {
    /// A random world, and the case that describes it.
    pub fn random(random: &mut Random) -> (Self, CaseFiles) {
        let blocks = 1 + random.below(3);
        let buses = 1 + random.below(3);
        let stages = 2 + random.below(3);
        let mut world = Self {
            hours: (0..blocks).map(|_| random.number(100.0, 400.0)).collect(),
            stages,
            buses,
            hydros: Vec::new(),
            inflows: Vec::new(),
            thermals: (0..=random.below(4))
                .map(|_| (random.below(buses), random.number(10.0, 300.0)))
                .collect(),
            lines: Vec::new(),
            sources: (0..random.below(3))
                .map(|_| {
                    (
                        random.below(buses),
                        random.number(5.0, 40.0),
                        random.number(0.1, 1.0),
                    )
                })
                .collect(),
            load: (0..buses)
                .map(|_| (0..blocks).map(|_| random.number(20.0, 120.0)).collect())
                .collect(),
        };
        for bus in 1..buses {
            let losses = random.below(6) as f64;
            world
                .lines
                .push((bus - 1, bus, random.number(0.0, 3.0), 1.0 - losses / 100.0));
        }
        let mut files = CaseFiles::default();
        let memory = world.grow_hydros(random, &mut files);
        world.write(random, &memory, &mut files);
        (world, files)
    }

    /// Adds plants, rivers and inflows; returns what inflows remember, by plant.
    fn grow_hydros(
        &mut self,
        random: &mut Random,
        files: &mut CaseFiles,
    ) -> Vec<(Vec<f64>, Vec<f64>)> {
        let count = 1 + random.below(4);
        let mut memory = Vec::new();
        let (mut ids, mut numbers, mut means, mut deviations) = (vec![], vec![], vec![], vec![]);
        let (mut ar_ids, mut ar_stages, mut lags, mut factors) = (vec![], vec![], vec![], vec![]);
        for plant in 0..count {
            let downstream = (plant + 1 < count && random.below(2) == 0).then_some(plant + 1);
            let storage = if random.below(4) == 0 {
                0.0
            } else {
                random.number(50.0, 400.0)
            };
            let initial = (storage * random.number(0.0, 1.0) * 10.0).round() / 10.0;
            self.hydros.push((
                random.below(self.buses),
                random.number(0.3, 1.2),
                downstream,
                initial,
                storage,
            ));
            let coefficients: Vec<f64> = (0..random.below(3))
                .map(|_| random.number(0.1, 0.3))
                .collect();
            let past: Vec<f64> = coefficients
                .iter()
                .map(|_| random.number(50.0, 100.0))
                .collect();
            let lag_count = i32::try_from(coefficients.len()).expect("few");
            let of_stage: Vec<(f64, f64)> = (0..coefficients.len() + self.stages)
                .map(|_| (random.number(60.0, 90.0), random.number(4.0, 6.0)))
                .collect();
            for (stage, (mean, deviation)) in (-lag_count..).zip(&of_stage) {
                ids.push(plant);
                numbers.push(stage);
                means.push(*mean);
                // Without memory a deviation would be chance.
                deviations.push(if lag_count == 0 { 0.0 } else { *deviation });
            }
            // The periodic model, with nothing new in any stage.
            let mut series: Vec<f64> = past.iter().rev().copied().collect();
            for stage in 0..self.stages {
                let now = stage + coefficients.len();
                let mut value = of_stage[now].0;
                for (place, coefficient) in coefficients.iter().enumerate() {
                    let before = now - place - 1;
                    let ratio = of_stage[now].1 / of_stage[before].1;
                    value += coefficient * ratio * (series[before] - of_stage[before].0);
                    ar_ids.push(plant);
                    ar_stages.push(stage);
                    lags.push(place + 1);
                    factors.push(*coefficient);
                }
                series.push(value);
            }
            self.inflows.push(series[coefficients.len()..].to_vec());
            memory.push((coefficients, past));
        }
        files.table(
            "scenarios/inflow_seasonal_stats.parquet",
            &[
                ("hydro_id", TemplateColumn::of_places(ids)),
                ("stage_id", TemplateColumn::Ids(numbers)),
                ("mean_m3s", TemplateColumn::Numbers(means)),
                ("std_m3s", TemplateColumn::Numbers(deviations)),
            ],
        );
        if lags.is_empty() {
            return memory;
        }
        let zeros = vec![0.0; lags.len()];
        files.table(
            "scenarios/inflow_ar_coefficients.parquet",
            &[
                ("hydro_id", TemplateColumn::of_places(ar_ids)),
                ("stage_id", TemplateColumn::of_places(ar_stages)),
                ("lag", TemplateColumn::of_places(lags)),
                ("coefficient", TemplateColumn::Numbers(factors)),
                ("residual_std_ratio", TemplateColumn::Numbers(zeros)),
            ],
        );
        memory
    }

    fn write(&self, random: &mut Random, memory: &[(Vec<f64>, Vec<f64>)], files: &mut CaseFiles) {
        files.json(
            "config.json",
            json!({
                "training": {"forward_passes": 1, "stopping_rules": [{"type": "iteration_limit", "limit": 2}]},
                "modeling": {"inflow_non_negativity": {"method": "none"}},
            }),
        );
        let nothing = 1.0;
        let rate = if random.below(2) == 0 { 0.0 } else { 0.12 };
        files.json(
            "penalties.json",
            json!({
                "bus": {
                    "deficit_segments": [{"depth_mw": 15.0, "cost": DEFICIT[0]}, {"depth_mw": null, "cost": DEFICIT[1]}],
                    "excess_cost": EXCESS,
                },
                "line": {"exchange_cost": 9.0},
                "hydro": {
                    "spillage_cost": SPILLAGE, "fpha_turbined_cost": nothing, "diversion_cost": nothing,
                    "storage_violation_below_cost": STORAGE_BELOW, "filling_target_violation_cost": nothing,
                    "turbined_violation_below_cost": TURBINED_BELOW, "outflow_violation_below_cost": OUTFLOW_BELOW,
                    "outflow_violation_above_cost": OUTFLOW_ABOVE,
                    "generation_violation_below_cost": GENERATION_BELOW,
                    "evaporation_violation_cost": nothing, "water_withdrawal_violation_cost": nothing,
                },
                "non_controllable_source": {"curtailment_cost": CURTAILMENT},
            }),
        );
        let stages = (0..self.stages).map(|stage| {
            let blocks = self.hours.iter().enumerate();
            let blocks = blocks.map(|(id, hours)| json!({"id": id, "name": format!("b{id}"), "hours": hours}));
            json!({
                "id": stage, "num_scenarios": 1, "blocks": blocks.collect::<Vec<_>>(),
                "start_date": format!("2026-{:02}-01", stage + 1), "end_date": format!("2026-{:02}-01", stage + 2),
            })
        });
        let stages: Vec<_> = stages.collect();
        let graph = json!({"type": "finite_horizon", "annual_discount_rate": rate});
        files.json(
            "stages.json",
            json!({"policy_graph": graph, "stages": stages}),
        );
        let storage = self
            .hydros
            .iter()
            .enumerate()
            .filter(|(_, plant)| plant.4 > 0.0);
        let storage = storage.map(|(id, plant)| json!({"hydro_id": id, "value_hm3": plant.3}));
        let past = memory.iter().enumerate();
        let past = past.map(|(id, (_, past))| json!({"hydro_id": id, "values_m3s": past}));
        files.json(
            "initial_conditions.json",
            json!({
                "storage": storage.collect::<Vec<_>>(), "filling_storage": [],
                "past_inflows": past.collect::<Vec<_>>(),
            }),
        );
        self.write_system(random, files);
        let (mut ids, mut numbers) = (Vec::new(), Vec::new());
        let (mut means, mut factors) = (Vec::new(), Vec::new());
        for (bus, load) in self.load.iter().enumerate() {
            for stage in 0..self.stages {
                ids.push(bus);
                numbers.push(stage);
                means.push(10.0);
                let blocks = load.iter().enumerate();
                let blocks =
                    blocks.map(|(id, load)| json!({"block_id": id, "factor": load / 10.0}));
                let blocks: Vec<_> = blocks.collect();
                factors.push(json!({"bus_id": bus, "stage_id": stage, "block_factors": blocks}));
            }
        }
        let zeros = vec![0.0; ids.len()];
        files.table(
            "scenarios/load_seasonal_stats.parquet",
            &[
                ("bus_id", TemplateColumn::of_places(ids)),
                ("stage_id", TemplateColumn::of_places(numbers)),
                ("mean_mw", TemplateColumn::Numbers(means)),
                ("std_mw", TemplateColumn::Numbers(zeros)),
            ],
        );
        files.json(
            "scenarios/load_factors.json",
            json!({"load_factors": factors}),
        );
    }

    fn write_system(&self, random: &mut Random, files: &mut CaseFiles) {
        let buses = (0..self.buses).map(|id| json!({"id": id, "name": format!("B{id}")}));
        files.json(
            "system/buses.json",
            json!({"buses": buses.collect::<Vec<_>>()}),
        );
        let lines = self.lines.iter().enumerate().map(|(id, (from, to, cost, arrives))| {
            json!({
                "id": id, "name": format!("L{id}"), "source_bus_id": from, "target_bus_id": to,
                "capacity": {"direct_mw": random.number(5.0, 60.0), "reverse_mw": random.number(5.0, 60.0)},
                "exchange_cost": cost, "losses_percent": ((1.0 - arrives) * 100.0).round(),
            })
        });
        files.json(
            "system/lines.json",
            json!({"lines": lines.collect::<Vec<_>>()}),
        );
        let thermals = self.thermals.iter().enumerate().map(|(id, (bus, cost))| {
            let least = random.number(0.0, 10.0);
            json!({
                "id": id, "name": format!("T{id}"), "bus_id": bus, "cost_per_mwh": cost,
                "generation": {"min_mw": least, "max_mw": least + random.number(0.0, 40.0)},
            })
        });
        files.json(
            "system/thermals.json",
            json!({"thermals": thermals.collect::<Vec<_>>()}),
        );
        let hydros = self.hydros.iter().enumerate().map(
            |(id, (bus, productivity, below, initial, storage))| {
                json!({
                    "id": id, "name": format!("H{id}"), "bus_id": bus, "downstream_id": below,
                    "reservoir": {"min_storage_hm3": MIN_STORAGE * initial, "max_storage_hm3": storage},
                    "outflow": {"min_outflow_m3s": MIN_OUTFLOW, "max_outflow_m3s": MAX_OUTFLOW},
                    "generation": {
                        "model": "constant_productivity", "productivity_mw_per_m3s": productivity,
                        "min_turbined_m3s": MIN_TURBINED, "max_turbined_m3s": random.number(20.0, 90.0),
                        "min_generation_mw": MIN_GENERATION, "max_generation_mw": random.number(10.0, 90.0),
                    },
                })
            },
        );
        files.json(
            "system/hydros.json",
            json!({"hydros": hydros.collect::<Vec<_>>()}),
        );
        let sources = self.sources.iter().enumerate();
        let sources = sources.map(|(id, (bus, capacity, _))| {
            json!({"id": id, "name": format!("S{id}"), "bus_id": bus, "max_generation_mw": capacity})
        });
        let list: Vec<_> = sources.collect();
        files.json(
            "system/non_controllable_sources.json",
            json!({"non_controllable_sources": list}),
        );
        let (mut ids, mut numbers, mut means) = (Vec::new(), Vec::new(), Vec::new());
        for (source, (_, _, part)) in self.sources.iter().enumerate() {
            for stage in 0..self.stages {
                ids.push(source);
                numbers.push(stage);
                means.push(*part);
            }
        }
        let zeros = vec![0.0; ids.len()];
        files.table(
            "scenarios/non_controllable_stats.parquet",
            &[
                ("ncs_id", TemplateColumn::of_places(ids)),
                ("stage_id", TemplateColumn::of_places(numbers)),
                ("mean", TemplateColumn::Numbers(means)),
                ("std", TemplateColumn::Numbers(zeros)),
            ],
        );
    }

    /// Checks what was decided in a stage; returns the storage after it.
    fn check(&self, stage: usize, decided: &Decided, before: &[f64], cost: f64) -> Vec<f64> {
        let mut expected = 0.0;
        for (block, hours) in self.hours.iter().enumerate() {
            for bus in 0..self.buses {
                let mut balance = -self.load[bus][block];
                for (id, (at, price)) in self
                    .thermals
                    .iter()
                    .enumerate()
                    .filter(|(_, plant)| plant.0 == bus)
                {
                    assert_eq!(*at, bus);
                    let power = decided.of(&format!("thermal.T{id}.b{block}"));
                    balance += power;
                    expected += price * power * hours;
                }
                for (id, plant) in self
                    .hydros
                    .iter()
                    .enumerate()
                    .filter(|(_, plant)| plant.0 == bus)
                {
                    balance += plant.1 * decided.of(&format!("turbined.H{id}.b{block}"));
                }
                for (id, source) in self
                    .sources
                    .iter()
                    .enumerate()
                    .filter(|(_, source)| source.0 == bus)
                {
                    let power = decided.of(&format!("source.S{id}.b{block}"));
                    assert!(
                        power <= source.1 * source.2 + 1e-6,
                        "a source gives what it has"
                    );
                    balance += power;
                    expected -= CURTAILMENT * power * hours;
                }
                for (id, (from, to, price, arrives)) in self.lines.iter().enumerate() {
                    let there = decided.of(&format!("direct.L{id}.b{block}"));
                    let back = decided.of(&format!("reverse.L{id}.b{block}"));
                    if *from == bus {
                        balance += arrives * back - there;
                        expected += price * (there + back) * hours;
                    }
                    if *to == bus {
                        balance += arrives * there - back;
                    }
                }
                for (segment, price) in DEFICIT.iter().enumerate() {
                    let short = decided.of(&format!("deficit{}.B{bus}.b{block}", segment + 1));
                    balance += short;
                    expected += price * short * hours;
                }
                let excess = decided.of(&format!("excess.B{bus}.b{block}"));
                balance -= excess;
                expected += EXCESS * excess * hours;
                assert!(
                    balance.abs() < 1e-6,
                    "energy of bus {bus}, block {block}: {balance}"
                );
            }
            for id in 0..self.hydros.len() {
                let spilled = decided.of(&format!("spilled.H{id}.b{block}"));
                let of = |what: &str| decided.of(&format!("{what}.H{id}.b{block}"));
                let (turbined, outflow) = (of("turbined"), spilled + of("turbined"));
                let (below, above) = (of("outflow_below"), of("outflow_above"));
                assert!(outflow + below >= MIN_OUTFLOW - 1e-6);
                assert!(outflow - above <= MAX_OUTFLOW + 1e-6);
                assert!(turbined + of("turbined_below") >= MIN_TURBINED - 1e-6);
                let generation = self.hydros[id].1 * turbined;
                assert!(generation + of("generation_below") >= MIN_GENERATION - 1e-6);
                expected +=
                    (SPILLAGE * spilled + OUTFLOW_BELOW * below + OUTFLOW_ABOVE * above) * hours;
                expected += TURBINED_BELOW * of("turbined_below") * hours;
                expected += GENERATION_BELOW * of("generation_below") * hours;
            }
        }
        for (id, plant) in self.hydros.iter().enumerate() {
            if MIN_STORAGE * plant.3 > 0.0 {
                expected += STORAGE_BELOW * decided.of(&format!("storage_below.H{id}"));
            }
        }
        assert!(
            (expected - cost).abs() < 1e-6 * (1.0 + cost.abs()),
            "{expected} adds up to {cost}"
        );
        self.water(stage, decided, before)
    }

    fn water(&self, stage: usize, decided: &Decided, before: &[f64]) -> Vec<f64> {
        let released = |id: usize| -> f64 {
            let blocks = self.hours.iter().enumerate();
            blocks
                .map(|(block, hours)| {
                    let turbined = decided.of(&format!("turbined.H{id}.b{block}"));
                    let spilled = decided.of(&format!("spilled.H{id}.b{block}"));
                    (turbined + spilled) * hours * 0.0036
                })
                .sum()
        };
        let hours: f64 = self.hours.iter().sum();
        let mut after = Vec::new();
        for (id, plant) in self.hydros.iter().enumerate() {
            let from_above =
                (0..self.hydros.len()).filter(|other| self.hydros[*other].2 == Some(id));
            let from_above: f64 = from_above.map(released).sum();
            let arrived = self.inflows[id][stage] * hours * 0.0036 + from_above;
            let left = before[id] + arrived - released(id);
            let stored = if plant.4 > 0.0 {
                decided.of(&format!("storage.H{id}"))
            } else {
                0.0
            };
            assert!(
                (left - stored).abs() < 1e-5,
                "water of plant {id}, stage {stage}: {left}, not {stored}"
            );
            assert!(stored <= plant.4 + 1e-6);
            after.push(stored);
        }
        after
    }
}

/// Decisions by the name of their column.
pub struct Decided(HashMap<String, f64>);

impl Decided {
    pub fn of(&self, name: &str) -> f64 {
        *self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("there is no column {name}"))
    }
}

/// Solves a stage at a state, without regard to what follows: as a problem of one stage.
pub fn decide(
    problem: &Problem,
    node: usize,
    state: &[f64],
    opening: usize,
) -> (Decided, f64, Vec<f64>) {
    let lp = with_opening(problem, node, opening);
    let names = lp.columns.iter().map(|column| column.name.clone());
    let names: Vec<String> = names.collect();
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    for (variable, value) in problem.states.iter().zip(state) {
        draft.state(variable.name.clone(), *value);
    }
    let lp = draft.template(lp);
    let only = draft.node("only", lp);
    draft.start(only, 1.0);
    let problem = draft.build().expect("it is a problem");
    // Decisions are handed out where results are written.
    let scratch = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(1)]),
        simulate: 1,
        solver: Solver::Highs,
        checkpoints: Cadence::Never,
        output: Some(scratch.path().to_owned()),
        ..Settings::default()
    };
    let kept = Kept::default();
    let start = Start {
        about: About::new(&kept, "one stage", "test", "local"),
        policy: None,
    };
    run_from(&LocalBackend, problem, &settings, &start, &mut ()).expect("it has a solution");
    let (columns, cost, outgoing) = kept.0.into_inner().expect("no panic").expect("it answers");
    (
        Decided(names.into_iter().zip(columns).collect()),
        cost,
        outgoing,
    )
}

/// The decisions, the cost and the outgoing state of a stage.
type Decision = (Vec<f64>, f64, Vec<f64>);

/// Keeps a decision.
#[derive(Debug, Default)]
struct Kept(Mutex<Option<Decision>>);

impl Tables for Kept {
    fn tables(&self, _: &Problem) -> Vec<TableSchema> {
        Vec::new()
    }

    fn fill(&self, visited: &Visited<'_>, _: &mut [Rows]) {
        let answer = visited.answer.clone();
        let kept = (answer.columns, answer.cost, answer.outgoing);
        *self.0.lock().expect("no panic") = Some(kept);
    }
}

/// The linear program of a node with the values of an opening in it.
pub fn with_opening(problem: &Problem, node: usize, opening: usize) -> Template {
    let mut lp = problem.template(node).clone();
    let places = &problem.nodes[node].places;
    let parts = places.split(problem.opening(&problem.values, node, opening));
    for (at, &row) in places.rows.iter().enumerate() {
        (lp.rows[row].lower, lp.rows[row].upper) = (parts.row_lower[at], parts.row_upper[at]);
    }
    for (at, &column) in places.columns.iter().enumerate() {
        let column = &mut lp.columns[column];
        (column.lower, column.upper) = (parts.column_lower[at], parts.column_upper[at]);
    }
    for (&column, &cost) in places.costs.iter().zip(parts.costs) {
        lp.columns[column].cost = cost;
    }
    for (&(column, row), &value) in places.coefficients.iter().zip(parts.coefficients) {
        lp.rows[row].terms.retain(|term| term.0 != column);
        lp.rows[row].terms.push((column, value));
    }
    lp.constant = parts.constant;
    lp
}

#[test]
fn energy_water_and_cost_add_up_in_random_cases() {
    for seed in 0..60 {
        println!("seed {seed}");
        let (world, files) = World::random(&mut Random::new(seed));
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default());
        let case = case.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut state = case.problem.initial_state();
        let mut storage: Vec<f64> = world.hydros.iter().map(|plant| plant.3).collect();
        for stage in 0..world.stages {
            let (decided, cost, outgoing) = decide(&case.problem, stage, &state, 0);
            storage = world.check(stage, &decided, &storage, cost);
            state = outgoing;
        }
    }
}
