//! The tables of simulated paths: what they say adds up, to the balances of water and energy and to the
//! objective, and prices are those at which plants decide.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::Path;

use cobre_case::{Case, Options, load};
use cobre_comm::LocalBackend;
use cobre_results::{Results, Table};
use cobre_sddp::{About, Cadence, Settings, Solver, Start, StopRule, Stopping, run_from};

use crate::balances::{MAX_OUTFLOW, MIN_GENERATION, MIN_OUTFLOW, MIN_TURBINED, Random, World};
use crate::non_negativity::wild_case;

/// hm³ that 1 m³/s brings in an hour.
const HM3: f64 = 0.0036;

/// A table as one map of columns.
pub struct Whole(BTreeMap<String, Vec<f64>>);

impl Whole {
    pub fn read(results: &Results, name: &str) -> Option<Self> {
        let table: Table = results
            .table(&format!("simulation/{name}"))
            .expect("it can be read")?;
        let columns = table.columns().iter().filter_map(|column| {
            // Names are not needed here.
            let numbers = table.all_numbers(column).ok()?;
            Some((column.clone(), numbers))
        });
        Some(Self(columns.collect()))
    }

    pub fn of(&self, column: &str) -> &[f64] {
        &self.0[column]
    }

    pub fn rows(&self) -> usize {
        self.of("scenario").len()
    }

    /// The numbers of some columns in a row, as a key.
    pub fn key(&self, row: usize, columns: &[&str]) -> Vec<i64> {
        let numbers = columns.iter().map(|column| self.of(column)[row] as i64);
        numbers.collect()
    }

    /// Adds a number of each row to the entry of its key.
    pub fn add(
        &self,
        keys: &[&str],
        sums: &mut BTreeMap<Vec<i64>, f64>,
        number: impl Fn(usize) -> f64,
    ) {
        for row in 0..self.rows() {
            *sums.entry(self.key(row, keys)).or_default() += number(row);
        }
    }
}

/// A number of a plant as keys have it.
fn place(plant: usize) -> i64 {
    i64::try_from(plant).expect("there are few")
}

/// Trains a little, simulates and writes.
pub fn simulate(case: Case, solver: Solver, output: &Path) -> Results {
    let settings = Settings {
        seed: 7,
        passes: NonZero::new(2).expect("not 0"),
        stopping: Stopping::any(vec![StopRule::Iterations(6)]),
        threads: NonZero::new(2).expect("not 0"),
        simulate: 40,
        solver,
        checkpoints: Cadence::Never,
        output: Some(output.to_owned()),
        ..Settings::default()
    };
    let about = About {
        tables: &*case.tables,
        facts: serde_json::Map::new(),
    };
    let start = Start {
        about,
        policy: None,
    };
    run_from(&LocalBackend, case.problem, &settings, &start, &mut ()).expect("it runs");
    Results::open(output).expect("it has results")
}

pub fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * (1.0 + one.abs().max(other.abs()))
}

/// The price of truncation, which nobody pays.
const UNPAID: &str = "inflow_truncation_cost";

/// Costs by kind add up to the cost of a stage, and stages to what the path is worth.
pub fn sums(results: &Results) {
    let costs = Whole::read(results, "costs").expect("it is there");
    let stages = Whole::read(results, "stages").expect("it is there");
    let paths = Whole::read(results, "paths").expect("it is there");
    let none = ["scenario", "stage", "discount", "stage_cost", "future_cost"];
    let kinds: Vec<&String> = costs
        .0
        .keys()
        .filter(|name| !none.contains(&name.as_str()))
        .collect();
    assert_eq!(kinds.len(), 26);
    let mut values: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
    for row in 0..costs.rows() {
        let paid = kinds.iter().filter(|kind| kind.as_str() != UNPAID);
        let whole: f64 = paid.map(|kind| costs.of(kind)[row]).sum();
        let stage = costs.of("stage_cost")[row];
        // The future is part of what a solve computes, so its digits bound those of the stage.
        let scale = stage.abs().max(costs.of("future_cost")[row].abs());
        let scale = scale.max(costs.of(UNPAID)[row]);
        assert!(
            (whole - stage).abs() <= 1e-9 * (1.0 + scale),
            "{whole} is {stage}"
        );
        assert_eq!(stage, stages.of("stage_value")[row]);
        assert_eq!(costs.of("discount")[row], stages.of("discount")[row]);
    }
    costs.add(&["scenario"], &mut values, |row| {
        costs.of("discount")[row] * costs.of("stage_cost")[row]
    });
    for (row, value) in paths.of("value").iter().enumerate() {
        let sum = values[&paths.key(row, &["scenario"])];
        assert!(
            close(sum, *value, 1e-12),
            "path {}: {sum} is {value}",
            row + 1
        );
    }
    // What entities cost is in the table of costs.
    for (table, column, kind) in [
        ("thermals", "cost", "thermal_cost"),
        ("sources", "cost", "source_cost"),
        ("lines", "cost", "exchange_cost"),
        ("buses", "deficit_cost", "deficit_cost"),
        ("buses", "excess_cost", "excess_cost"),
        ("contracts", "cost", "contract_cost"),
        ("commitments", "cost", "commitment_cost"),
        ("battery_blocks", "cost", "battery_degradation_cost"),
        ("constraints", "cost", "constraint_violation_cost"),
    ] {
        let keys = ["scenario", "stage"];
        let mut of_stage: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
        if let Some(table) = Whole::read(results, table) {
            table.add(&keys, &mut of_stage, |row| table.of(column)[row]);
        }
        for row in 0..costs.rows() {
            let sum = of_stage.get(&costs.key(row, &keys)).copied();
            assert!(
                close(sum.unwrap_or(0.0), costs.of(kind)[row], 1e-12),
                "{kind}"
            );
        }
    }
}

/// The energy balance of a bus in a block.
pub fn energy(results: &Results) {
    let keys = ["scenario", "stage", "block", "bus_id"];
    let mut balance: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
    let buses = Whole::read(results, "buses").expect("it is there");
    buses.add(&keys, &mut balance, |row| {
        buses.of("deficit_mw")[row] - buses.of("excess_mw")[row] - buses.of("load_mw")[row]
    });
    let units = Whole::read(results, "hydro_units");
    let of_units = |id: f64| {
        let plants = units.iter().flat_map(|table| table.of("hydro_id"));
        plants.into_iter().any(|plant| *plant == id)
    };
    for name in ["hydro_blocks", "hydro_units", "thermals", "sources"] {
        if let Some(table) = Whole::read(results, name) {
            table.add(&keys, &mut balance, |row| {
                // Units feed buses of their own.
                let elsewhere = name == "hydro_blocks" && of_units(table.of("hydro_id")[row]);
                if elsewhere {
                    0.0
                } else {
                    table.of("generation_mw")[row]
                }
            });
        }
    }
    for (name, gives, takes) in [
        ("contracts", "import_mw", "export_mw"),
        ("battery_blocks", "discharge_mw", "charge_mw"),
    ] {
        if let Some(table) = Whole::read(results, name) {
            let net = |row: usize| table.of(gives)[row] - table.of(takes)[row];
            table.add(&keys, &mut balance, net);
        }
    }
    if let Some(pumping) = Whole::read(results, "pumping") {
        pumping.add(&keys, &mut balance, |row| -pumping.of("power_mw")[row]);
    }
    if let Some(lines) = Whole::read(results, "lines") {
        let arrives = |row: usize, sent: f64| {
            let all = lines.of("direct_mw")[row] + lines.of("reverse_mw")[row];
            let lost = lines.of("losses_mw")[row];
            if all > 0.0 {
                sent * (1.0 - lost / all)
            } else {
                0.0
            }
        };
        for (bus, away, here) in [
            ("from_bus_id", "direct_mw", "reverse_mw"),
            ("to_bus_id", "reverse_mw", "direct_mw"),
        ] {
            let keys = ["scenario", "stage", "block", bus];
            lines.add(&keys, &mut balance, |row| {
                arrives(row, lines.of(here)[row]) - lines.of(away)[row]
            });
        }
    }
    for (key, balance) in balance {
        assert!(balance.abs() < 1e-5, "energy of {key:?}: {balance}");
    }
}

/// The water balance of a reservoir; downstream is given by plant.
fn water(results: &Results, downstream: &[Option<usize>]) {
    let hydros = Whole::read(results, "hydros").expect("it is there");
    let blocks = Whole::read(results, "hydro_blocks").expect("it is there");
    let keys = ["scenario", "stage", "hydro_id"];
    let (mut left, mut hours) = (BTreeMap::new(), BTreeMap::new());
    blocks.add(&keys, &mut left, |row| {
        HM3 * blocks.of("hours")[row] * blocks.of("outflow_m3s")[row]
    });
    blocks.add(&keys, &mut hours, |row| blocks.of("hours")[row]);
    let mut before: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
    for row in 0..hydros.rows() {
        let key = hydros.key(row, &keys);
        let of = |column: &str| hydros.of(column)[row];
        let feeders = downstream.iter().enumerate();
        let feeders = feeders.filter(|(_, below)| **below == Some(key[2] as usize));
        let from_above: f64 = feeders
            .map(|(plant, _)| left[&vec![key[0], key[1], place(plant)]])
            .sum();
        let natural = HM3 * hours[&key] * (of("inflow_m3s") + of("inflow_added_m3s"));
        let after = of("storage_initial_hm3") + natural + from_above - left[&key];
        assert!(close(after, of("storage_hm3"), 1e-6), "water of {key:?}");
        if let Some(stored) = before.get(&key) {
            assert_eq!(*stored, of("storage_initial_hm3"), "storage before {key:?}");
        }
        before.insert(vec![key[0], key[1] + 1, key[2]], of("storage_hm3"));
    }
}

/// A plant that could give more and less has the marginal cost of its bus as its price: a thermal plant in
/// $/MWh, a hydro plant in the value of its water less that of the plant below.
fn prices(results: &Results, world: &World) -> usize {
    let keys = ["scenario", "stage", "block", "bus_id"];
    let buses = Whole::read(results, "buses").expect("it is there");
    let mut marginal = BTreeMap::new();
    buses.add(&keys, &mut marginal, |row| {
        buses.of("marginal_cost_per_mwh")[row]
    });
    let thermals = Whole::read(results, "thermals").expect("it is there");
    let range = |plant: usize| {
        let ids = thermals.of("thermal_id").iter();
        let outputs = ids.zip(thermals.of("generation_mw"));
        let own = outputs.filter(|(id, _)| **id as usize == plant);
        own.fold((f64::INFINITY, 0.0_f64), |(least, most), (_, output)| {
            (least.min(*output), most.max(*output))
        })
    };
    let mut checked = 0;
    for (plant, (_, price)) in world.thermals.iter().enumerate() {
        // Nothing is known here of its limits but that no output is beyond them.
        let (least, most) = range(plant);
        for row in 0..thermals.rows() {
            let output = thermals.of("generation_mw")[row];
            let own = thermals.of("thermal_id")[row] as usize == plant;
            if own && output > least + 1e-3 && output < most - 1e-3 {
                let cost = marginal[&thermals.key(row, &keys)];
                assert!(close(cost, *price, 1e-6), "T{plant} at {price}: {cost}");
                checked += 1;
            }
        }
    }
    let hydros = Whole::read(results, "hydros").expect("it is there");
    let mut worth = BTreeMap::new();
    let of_plant = ["scenario", "stage", "hydro_id"];
    hydros.add(&of_plant, &mut worth, |row| {
        hydros.of("water_value_per_hm3")[row]
    });
    let blocks = Whole::read(results, "hydro_blocks").expect("it is there");
    let most: Vec<f64> = (0..world.hydros.len())
        .map(|plant| {
            let rows =
                (0..blocks.rows()).filter(|row| blocks.of("hydro_id")[*row] as usize == plant);
            rows.map(|row| blocks.of("turbined_m3s")[row])
                .fold(0.0, f64::max)
        })
        .collect();
    for row in 0..blocks.rows() {
        let of = |column: &str| blocks.of(column)[row];
        let plant = of("hydro_id") as usize;
        let (_, productivity, below, _, _) = world.hydros[plant];
        let limits = [
            MIN_TURBINED,
            MIN_GENERATION / productivity,
            MIN_OUTFLOW - of("spilled_m3s"),
            MAX_OUTFLOW - of("spilled_m3s"),
            most[plant],
        ];
        let free = limits
            .iter()
            .all(|limit| (of("turbined_m3s") - limit).abs() > 1e-3);
        if free && of("turbined_m3s") > 1e-3 && of("max_outflow_violation_m3s") < 1e-9 {
            let missed = [
                "min_turbined_violation_m3s",
                "min_generation_violation_mw",
                "min_outflow_violation_m3s",
            ];
            if missed.iter().any(|column| of(column) > 1e-9) {
                continue;
            }
            let key = blocks.key(row, &of_plant);
            let at_below = below.map_or(0.0, |below| worth[&vec![key[0], key[1], place(below)]]);
            let water = (worth[&key] - at_below) * HM3;
            let energy = productivity * marginal[&blocks.key(row, &keys)];
            assert!(
                (water - energy).abs() < 1e-5 * (1.0 + energy.abs()),
                "H{plant} in {key:?}: {water}, {energy}"
            );
            checked += 1;
        }
    }
    checked
}

#[test]
fn what_random_cases_write_adds_up() {
    let mut checked = 0;
    for seed in 0..24 {
        println!("seed {seed}");
        let (world, files) = World::random(&mut Random::new(seed));
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        let solver = [Solver::Kernel, Solver::Highs, Solver::Check][seed as usize % 3];
        let results = simulate(case, solver, &directory.path().join("output"));
        sums(&results);
        energy(&results);
        let downstream: Vec<Option<usize>> = world.hydros.iter().map(|plant| plant.2).collect();
        water(&results, &downstream);
        checked += prices(&results, &world);
    }
    assert!(checked > 200, "{checked} plants were free to decide");
}

#[test]
fn inflows_below_zero_are_in_the_balance_and_in_the_costs() {
    for (method, kind) in [
        ("penalty", "inflow_added_cost"),
        ("truncation", "inflow_truncation_cost"),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let results = simulate(wild_case(method), Solver::Auto, directory.path());
        sums(&results);
        energy(&results);
        water(&results, &[Some(1), None]);
        let costs = Whole::read(&results, "costs").expect("it is there");
        assert!(costs.of(kind).iter().any(|cost| *cost > 0.0), "{kind}");
    }
}

#[test]
fn every_column_has_one_entry_in_the_dictionary_and_every_entry_its_column() {
    let (_, files) = World::random(&mut Random::new(5));
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let case = load(directory.path(), &Options::default()).expect("it is sound");
    let output = directory.path().join("output");
    let results = simulate(case, Solver::Auto, &output);
    let text = std::fs::read_to_string(output.join("dictionary.csv")).expect("it is there");
    let mut explained = BTreeSet::new();
    for line in text.lines().skip(1) {
        let mut cells = line.splitn(4, ',').map(str::to_owned);
        let mut next = || cells.next().expect("it has four cells");
        let (file, column, _, meaning) = (next(), next(), next(), next());
        assert!(meaning.len() > 3, "{line}");
        assert!(explained.insert((file, column)), "{line} comes twice");
    }
    let mut written = BTreeSet::new();
    for part in ["training", "policy", "simulation"] {
        for file in std::fs::read_dir(output.join(part))
            .expect("it is there")
            .flatten()
        {
            let name = format!("{part}/{}", file.file_name().to_string_lossy());
            let Some(table) = name.strip_suffix(".parquet") else {
                continue;
            };
            let table = results
                .table(table)
                .expect("it can be read")
                .expect("it is explained");
            let columns = table.columns().iter();
            written.extend(columns.map(|column| (name.clone(), column.clone())));
        }
    }
    assert_eq!(explained, written);
}
