//! Tables of simulated systems with all that hydro plants can have: water, energy and costs add up.

use std::collections::BTreeMap;

use cobre_case::template::{Template, TemplateColumn};
use cobre_case::{Options, load};
use cobre_sddp::Solver;
use serde_json::json;

use crate::tables::{Whole, close, energy, simulate, sums};
use crate::water_world::{HM3, WaterPhase, WaterWorld};

/// The balance of every plant and stage, from the tables alone.
fn water(results: &cobre_results::Results, world: &WaterWorld, seen: &mut [usize; 6]) {
    let hydros = Whole::read(results, "hydros").expect("it is there");
    let blocks = Whole::read(results, "hydro_blocks").expect("it is there");
    let keys = ["scenario", "stage", "hydro_id"];
    let sum = |column: &str| {
        let mut sums: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
        blocks.add(&keys, &mut sums, |row| {
            HM3 * blocks.of("hours")[row] * blocks.of(column)[row]
        });
        sums
    };
    let (left, diverted) = (sum("outflow_m3s"), sum("diverted_m3s"));
    let mut arriving: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
    hydros.add(&keys, &mut arriving, |row| {
        hydros.of("arriving_below_hm3")[row]
    });
    for row in 0..hydros.rows() {
        let key = hydros.key(row, &keys);
        let of = |column: &str| hydros.of(column)[row];
        let (stage, place) = (key[1] as usize - 1, key[2] as usize);
        let volume = HM3 * world.stages[stage].hours.iter().sum::<f64>();
        let others = world.plants.iter().zip(0_i64..);
        let from = |amounts: &BTreeMap<Vec<i64>, f64>, wanted: bool| -> f64 {
            let reach = |plant: &crate::water_world::WaterPlant| {
                if wanted {
                    plant.diverts_to
                } else {
                    plant.below
                }
            };
            let others = others
                .clone()
                .filter(|(other, _)| reach(other) == Some(place));
            others
                .map(|(_, other)| amounts[&vec![key[0], key[1], other]])
                .sum()
        };
        let come = volume * of("inflow_m3s") + from(&arriving, false) + from(&diverted, true);
        let gone =
            left[&key] + diverted[&key] + volume * (of("evaporation_m3s") + of("withdrawal_m3s"));
        let after = of("storage_initial_hm3") + come - gone;
        assert!(
            close(after, of("storage_hm3"), 1e-6),
            "water of {key:?}: {after}, not {}",
            of("storage_hm3")
        );
        let counts = [
            of("evaporation_m3s") < -1e-6,
            of("evaporation_below_violation_m3s") > 1e-6,
            of("withdrawal_below_violation_m3s") > 1e-6,
            of("filling_violation_hm3") > 1e-6,
            of("under_way_hm3") > 1e-6,
            diverted[&key] > 1e-6,
        ];
        for (count, seen) in counts.iter().zip(seen.iter_mut()) {
            *seen += usize::from(*count);
        }
        let phase = world.plants[place].phases[stage];
        if phase == WaterPhase::Gone {
            assert!(of("storage_hm3").abs() < 1e-9);
        }
        if phase == WaterPhase::Absent {
            assert!(close(of("storage_hm3"), of("storage_initial_hm3"), 1e-9));
        }
    }
}

/// Storage by block goes where flows take it, in chronological stages; else it is that after the stage.
fn levels(results: &cobre_results::Results, world: &WaterWorld) {
    let hydros = Whole::read(results, "hydros").expect("it is there");
    let blocks = Whole::read(results, "hydro_blocks").expect("it is there");
    let mut after = BTreeMap::new();
    hydros.add(&["scenario", "stage", "hydro_id"], &mut after, |row| {
        hydros.of("storage_hm3")[row]
    });
    for row in 0..blocks.rows() {
        let key = blocks.key(row, &["scenario", "stage", "hydro_id"]);
        let stage = &world.stages[key[1] as usize - 1];
        let last = blocks.of("block")[row] as usize == stage.hours.len();
        let level = blocks.of("storage_hm3")[row];
        if last || !stage.chronological {
            assert_eq!(level, after[&key], "storage after {key:?}");
        }
        assert!(level <= world.plants[key[2] as usize].storage[2] + 1e-6);
    }
}

#[test]
fn what_hydro_systems_write_adds_up() {
    let mut seen = [0; 6];
    for seed in 0..12 {
        println!("seed {seed}");
        let (world, files) = WaterWorld::random(seed);
        let directory = tempfile::tempdir().expect("a directory");
        files.write(directory.path()).expect("it can be written");
        let case = load(directory.path(), &Options::default()).expect("it is sound");
        let solver = [Solver::Kernel, Solver::Highs, Solver::Check][seed as usize % 3];
        let results = simulate(case, solver, &directory.path().join("output"));
        sums(&results);
        energy(&results);
        water(&results, &world, &mut seen);
        levels(&results, &world);
    }
    // Rain on the lake, evaporation and withdrawal that fall short, filling that is late, water under way, diversion.
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// The case `one-reservoir` with hyperplanes that spilled water lowers, and a flood.
#[test]
fn a_flood_that_takes_hyperplanes_below_zero_is_a_violation_and_no_error() {
    let mut files = Template::find("one-reservoir")
        .expect("it is there")
        .files();
    let range = json!({
        "start_stage_id": 0, "end_stage_id": null, "model": "fpha", "fpha_config": {"source": "precomputed"},
    });
    let model = json!({"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": [range]});
    files.json(
        "system/hydro_production_models.json",
        json!({"production_models": [model]}),
    );
    files.table(
        "system/fpha_hyperplanes.parquet",
        &[
            ("hydro_id", TemplateColumn::Ids(vec![0])),
            ("plane_id", TemplateColumn::Ids(vec![0])),
            ("gamma_0", TemplateColumn::Numbers(vec![0.0])),
            ("gamma_v", TemplateColumn::Numbers(vec![0.01])),
            ("gamma_q", TemplateColumn::Numbers(vec![0.9])),
            ("gamma_s", TemplateColumn::Numbers(vec![-0.5])),
        ],
    );
    files.table(
        "scenarios/inflow_seasonal_stats.parquet",
        &[
            ("hydro_id", TemplateColumn::Ids(vec![0; 12])),
            ("stage_id", TemplateColumn::Ids((0..12).collect())),
            ("mean_m3s", TemplateColumn::Numbers(vec![5000.0; 12])),
            ("std_m3s", TemplateColumn::Numbers(vec![10.0; 12])),
        ],
    );
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    let case = load(directory.path(), &Options::default()).expect("it is sound");
    let results = simulate(case, Solver::Check, &directory.path().join("output"));
    sums(&results);
    energy(&results);
    let blocks = Whole::read(&results, "hydro_blocks").expect("it is there");
    for row in 0..blocks.rows() {
        let of = |column: &str| blocks.of(column)[row];
        assert!(of("spilled_m3s") > 1000.0 && of("production_violation_mw") > 100.0);
        assert!(of("generation_mw").abs() < 1e-6, "it gives no energy");
    }
}
