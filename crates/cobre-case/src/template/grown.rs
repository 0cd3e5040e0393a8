//! Systems of any size, grown from a seed: regions, cascades, and thermal plants of all costs.

use cobre_sddp::{Noise, Purpose};

use super::files::{CaseFiles, TemplateColumn};
use super::parts::{self, Months, TemplateHydro};

const REGIONS: [&str; 4] = ["south", "centre", "coast", "north"];

/// The size of a system.
struct Size {
    hydros: usize,
    /// Plants of one river; the first of each stores most.
    river: usize,
    thermals: usize,
    /// Mean load of all regions, MW.
    load: f64,
}

/// The demo: five years of months.
pub(super) fn five_years(files: &mut CaseFiles) {
    files.json("config.json", parts::config(8, 200, 400, "truncation"));
    let size = Size {
        hydros: 8,
        river: 2,
        thermals: 16,
        load: 6000.0,
    };
    let months = months(60, vec![("peak", 0.3), ("rest", 0.7)], 10, 2);
    grow(&size, &months, &[1.15, 0.9357], files);
    terminal_value(files);
}

/// By plant, the most storage in hm³ and the value of its water at the end of the fourth year of the demo without a
/// terminal value, in $/hm³.
const WATER: [(f64, f64); 8] = [
    (8965.91, 46_100.0),
    (1803.43, 20_400.0),
    (10_662.16, 48_900.0),
    (71.73, 27_500.0),
    (4993.67, 79_800.0),
    (506.52, 40_400.0),
    (8766.67, 43_200.0),
    (1315.0, 20_900.0),
];

/// Writes what water is worth after the last stage: its full value while little is left, four tenths of it above a third
/// of all storage.
fn terminal_value(files: &mut CaseFiles) {
    let (mut plants, mut cuts) = (Vec::new(), Vec::new());
    let (mut values, mut storages) = (Vec::new(), Vec::new());
    for (cut, worth, full) in [(1, 1.0, 0.6), (2, 0.4, 1.0)] {
        for (plant, (most, value)) in WATER.into_iter().enumerate() {
            plants.push(plant);
            cuts.push(cut);
            values.push(parts::round(worth * value));
            storages.push(parts::round(full * most));
        }
    }
    files.table(
        "system/terminal_water_values.parquet",
        &[
            ("hydro_id", TemplateColumn::of_places(plants)),
            ("water_value", TemplateColumn::Numbers(values)),
            ("storage_hm3", TemplateColumn::Numbers(storages)),
            ("cut_id", TemplateColumn::of_places(cuts)),
        ],
    );
}

/// The hydro plants of a system of the size of a large country.
const LARGE_HYDROS: usize = 100;

/// A system of the size of a large country.
pub(super) fn large(files: &mut CaseFiles) {
    of_hydros(LARGE_HYDROS, files);
}

/// A system like [`large`] with so many hydro plants; returns them.
pub(super) fn of_hydros(hydros: usize, files: &mut CaseFiles) -> Vec<TemplateHydro> {
    files.json("config.json", parts::config(4, 10, 0, "truncation"));
    let size = Size {
        hydros,
        river: 5,
        thermals: hydros * 6 / 5,
        load: 600.0 * hydros as f64,
    };
    let blocks = vec![("peak", 0.15), ("day", 0.5), ("night", 0.35)];
    let months = months(24, blocks, 20, 1);
    grow(&size, &months, &[1.15, 1.05, 0.8643], files)
}

fn months(
    count: usize,
    blocks: Vec<(&'static str, f64)>,
    openings: usize,
    before: usize,
) -> Months {
    Months {
        count,
        blocks,
        openings,
        discount: 0.1,
        cvar: None,
        before,
    }
}

/// Grows a system; `load` are the factors of its blocks. Returns its hydro plants.
fn grow(size: &Size, months: &Months, load: &[f64], files: &mut CaseFiles) -> Vec<TemplateHydro> {
    let noise = Noise::new(2026, Purpose::Openings);
    let number = |kind: usize, thing: usize, low: f64, high: f64| {
        parts::round(low + (high - low) * noise.draw(kind, thing, 0)[0])
    };
    files.schemas();
    files.json("penalties.json", parts::penalties());
    months.write(files);
    let shares = [0.25, 0.4, 0.2, 0.15];
    let buses: Vec<(&str, f64)> = REGIONS
        .into_iter()
        .zip(shares.map(|share| size.load * share))
        .collect();
    let tie = parts::round(0.08 * size.load);
    let lines = [
        (0, 1, tie, tie, 2.0),
        (1, 2, tie, tie, 3.0),
        (3, 1, tie, tie, 4.0),
        (3, 2, tie, tie, 3.0),
    ];
    parts::buses(&buses, &lines, months, load, files);
    let of_thermal = size.load * 0.55 / size.thermals as f64;
    let thermals = (0..size.thermals).map(|plant| {
        let capacity = of_thermal * number(1, plant, 0.5, 1.5);
        let cost = number(2, plant, 30.0, 380.0);
        (
            format!("thermal {plant}"),
            plant % 4,
            parts::round(capacity),
            cost,
        )
    });
    parts::thermals(&thermals.collect::<Vec<_>>(), files);
    let capacity = parts::round(0.05 * size.load);
    let winds = [
        ("coast wind", 2, capacity, 0.4),
        ("south wind", 0, capacity, 0.35),
    ];
    parts::wind(&winds, months, files);
    // Rivers bring what half of the load needs, all plants of a river together.
    let rivers = size.hydros.div_ceil(size.river);
    let plants = (0..size.hydros).map(|plant| {
        let (river, place) = (plant / size.river, plant % size.river);
        let productivity = number(3, plant, 0.35, 0.9);
        let share = size.load * 0.5 / (rivers * size.river) as f64;
        // What flows past a plant is its own inflow and that of the plants above.
        let inflow = parts::round(share / productivity / (place as f64 + 1.0));
        let passing = share / productivity * if place == 0 { 1.0 } else { 1.6 };
        let months_of_storage = if place == 0 {
            4.0
        } else {
            number(4, plant, 0.0, 0.6)
        };
        let storage = parts::round(passing * months_of_storage * 2.63);
        TemplateHydro {
            name: format!("river {river} plant {place}"),
            bus: river % 4,
            downstream: (place + 1 < size.river && plant + 1 < size.hydros).then_some(plant + 1),
            max_storage: storage,
            initial_storage: parts::round(0.6 * storage),
            productivity,
            max_turbined: parts::round(1.8 * passing),
            min_outflow: parts::round(0.1 * passing),
            inflow,
            spread: number(5, plant, 0.2, 0.35),
            wet_month: [7.0, 1.0, 2.0, 3.0][river % 4],
            memory: if months.before > 1 && place == 0 {
                vec![0.45, 0.15]
            } else {
                vec![0.5]
            },
        }
    });
    let plants: Vec<TemplateHydro> = plants.collect();
    parts::hydros(&plants, months, files);
    let river = size.river;
    let region = move |plant: usize| plant / river % 4;
    let together = move |a: usize, b: usize| {
        if a / river == b / river {
            0.8
        } else if region(a) == region(b) {
            0.5
        } else {
            0.1
        }
    };
    parts::correlation(size.hydros, together, files);
    plants
}
