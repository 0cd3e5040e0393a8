//! Simulations of random systems add up: energy, water, stored energy, commitments and costs.

use std::collections::BTreeMap;

use cobre_case::{Options, load};
use cobre_results::Results;
use cobre_sddp::Solver;

use super::files;
use super::world::World;
use crate::balances::Random;
use crate::tables::{Whole, close, energy, simulate, sums};

type Sums = BTreeMap<Vec<i64>, f64>;

fn table(results: &Results, name: &str) -> Whole {
    Whole::read(results, name).unwrap_or_else(|| panic!("there is no table {name}"))
}

/// Flows by stage, with the hours of blocks.
fn by_stage(table: &Whole, keys: &[&str], value: impl Fn(usize) -> f64) -> Sums {
    let mut found = Sums::new();
    table.add(keys, &mut found, |row| table.of("hours")[row] * value(row));
    found
}

/// Water: the first plant flows to the second, and the pump lifts it back.
fn water(results: &Results, world: &World) {
    let blocks = table(results, "hydro_blocks");
    let keys = ["scenario", "stage", "hydro_id"];
    let out = by_stage(&blocks, &keys, |row| 0.0036 * blocks.of("outflow_m3s")[row]);
    let pumping = table(results, "pumping");
    let lifted = by_stage(&pumping, &["scenario", "stage"], |row| {
        0.0036 * pumping.of("flow_m3s")[row]
    });
    let hydros = table(results, "hydros");
    for row in 0..hydros.rows() {
        let of = |column: &str| hydros.of(column)[row];
        let key = hydros.key(row, &keys);
        let stage = usize::try_from(key[1]).expect("from 0");
        let hours: f64 = world.hours[stage].iter().sum();
        let lifted = lifted[&key[..2].to_vec()];
        let (from_above, pumped) = if key[2] == 1 {
            (out[&vec![key[0], key[1], 0]], -lifted)
        } else {
            (0.0, lifted)
        };
        let arrived = 0.0036 * hours * of("inflow_m3s") + from_above + pumped;
        let after = of("storage_initial_hm3") + arrived - out[&key];
        assert!(close(after, of("storage_hm3"), 1e-6), "water of {key:?}");
    }
}

/// Energy in the battery.
fn stored(results: &Results, world: &World) {
    let battery = &world.battery;
    let blocks = table(results, "battery_blocks");
    let keys = ["scenario", "stage"];
    let flows = by_stage(&blocks, &keys, |row| {
        battery.efficiency[0] * blocks.of("charge_mw")[row]
            - blocks.of("discharge_mw")[row] / battery.efficiency[1]
    });
    let batteries = table(results, "batteries");
    let mut before: Sums = BTreeMap::new();
    for row in 0..batteries.rows() {
        let of = |column: &str| batteries.of(column)[row];
        let key = batteries.key(row, &keys);
        let lost = of("self_discharge_mwh");
        let after = of("level_initial_mwh") + flows[&key] - lost;
        assert!(close(after, of("level_mwh"), 1e-6), "level of {key:?}");
        assert!(lost > -1e-6 && of("level_mwh") < battery.capacity + 1e-6);
        let stage = usize::try_from(key[1]).expect("from 0");
        if !world.chronological[stage] && battery.exit.is_none_or(|exit| stage < exit) {
            let hours: f64 = world.hours[stage].iter().sum();
            let rest = (1.0 - battery.self_discharge).powf(hours);
            let expected = (1.0 - rest) * of("level_initial_mwh");
            assert!(close(lost, expected, 1e-6), "self-discharge of {key:?}");
        }
        if let Some(level) = before.get(&key) {
            assert_eq!(*level, of("level_initial_mwh"));
        }
        before.insert(vec![key[0], key[1] + 1], of("level_mwh"));
    }
}

/// A committed plant generates what was committed, and pays for it where that was decided.
fn committed(results: &Results, world: &World) -> usize {
    let thermals = table(results, "thermals");
    let keys = ["scenario", "stage", "thermal_id"];
    let generated = by_stage(&thermals, &keys, |row| thermals.of("generation_mw")[row]);
    let commitments = table(results, "commitments");
    let mut checked = 0;
    for row in 0..commitments.rows() {
        let of = |column: &str| commitments.of(column)[row];
        let due = of("delivery_stage") as usize;
        let hours: f64 = world.hours[due].iter().sum();
        let key = vec![of("scenario") as i64, of("delivery_stage") as i64, 2];
        assert!(
            close(generated[&key], hours * of("committed_mw"), 1e-6),
            "{key:?}"
        );
        let decided = of("stage") as usize;
        assert_eq!(world.decided_in(due), Some(decided));
        let discount: f64 = (decided..due).map(|stage| world.discount(stage)).product();
        let cost = world.committed.2[due] * hours * discount * of("committed_mw");
        assert!(close(cost, of("cost"), 1e-9), "{cost}");
        checked += 1;
    }
    for (stage, power) in world.past.iter().enumerate() {
        let hours: f64 = world.hours[stage].iter().sum();
        let key = vec![1, i64::try_from(stage).expect("few"), 2];
        assert!(
            close(generated[&key], hours * power, 1e-6),
            "past of {key:?}"
        );
    }
    checked
}

/// Constraints hold but for their violations.
fn constraints(results: &Results) -> usize {
    let table = table(results, "constraints");
    for row in 0..table.rows() {
        let of = |column: &str| table.of(column)[row];
        let (lower, upper) = (of("lower"), of("upper"));
        let value = of("value") + of("min_constraint_violation") - of("max_constraint_violation");
        // What is not there is no number.
        assert!(
            lower.is_nan() || value > lower - 1e-5,
            "{value} is below {lower}"
        );
        assert!(
            upper.is_nan() || value < upper + 1e-5,
            "{value} is above {upper}"
        );
        assert!(!(lower.is_nan() && upper.is_nan()));
    }
    table.rows()
}

#[test]
fn what_random_systems_write_adds_up() {
    let (mut decided, mut rows) = (0, 0);
    for seed in 0..12 {
        let world = World::random(&mut Random::new(2000 + seed));
        let directory = tempfile::tempdir().expect("a directory");
        let files = files::write(&world);
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        let solver = [Solver::Kernel, Solver::Highs, Solver::Check][seed as usize % 3];
        let results = simulate(case, solver, &directory.path().join("output"));
        sums(&results);
        energy(&results);
        water(&results, &world);
        stored(&results, &world);
        decided += committed(&results, &world);
        rows += constraints(&results);
    }
    assert!(decided > 100 && rows > 100, "{decided}, {rows}");
}
