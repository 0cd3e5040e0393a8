//! An invented system of the shape of Brazil's: rivers with tributaries, four regions, and one of everything that a
//! case can have. Only its shape and the size of its numbers are like the real one.

mod equipment;
mod water;

use cobre_sddp::{Noise, Purpose};
use serde_json::Value;

use super::files::CaseFiles;
use super::parts::{self, Months, TemplateHydro};

/// The hydro plants that a system can have.
pub const BRAZIL_LIKE_HYDROS: std::ops::RangeInclusive<usize> = 20..=160;
/// The usual number of hydro plants.
pub(super) const USUAL_HYDROS: usize = 60;
/// Plants of a river, about.
const RIVER: usize = 10;
const STAGES: usize = 24;
/// Mean load of all regions, as a multiple of the mean energy of all rivers.
const LOAD: f64 = 1.45;
/// Turbines carry this multiple of the mean flow.
const TURBINES: f64 = 1.9;
/// Where people live, as parts of the load.
const PEOPLE: [f64; 5] = [0.55, 0.18, 0.17, 0.1, 0.0];

const ABOUT: &str = "# An invented system

Made by `cobre init brazil-like`. Nothing in it is data of Brazil or of anywhere: rivers, plants, loads and costs are drawn
from a seed. Its shape is that of a large hydrothermal system: rivers with tributaries, reservoirs at their heads, four
regions and a node without load, and one of everything that a case can have, for demonstrations and for tests of size.
";

/// The plants of a system and what is drawn for them.
struct SystemShape {
    plants: Vec<TemplateHydro>,
    /// By plant: the river it is on.
    rivers: Vec<usize>,
    load: f64,
    noise: Noise,
}

impl SystemShape {
    /// The mean energy of the plants on a bus, MW.
    fn energy(&self, bus: usize) -> f64 {
        let plants = self.plants.iter().filter(|plant| plant.bus == bus);
        let energy = plants.map(|plant| plant.max_turbined / TURBINES * plant.productivity);
        energy.sum()
    }

    /// The mean load of a bus, MW: half of it where people live, half of it where rivers are.
    fn load_of(&self, bus: usize) -> f64 {
        parts::round(0.5 * PEOPLE[bus] * self.load + 0.5 * LOAD * self.energy(bus))
    }

    fn number(&self, kind: usize, thing: usize, low: f64, high: f64) -> f64 {
        parts::round(low + (high - low) * self.noise.draw(kind, thing, 0)[0])
    }
}

/// The files of a system with so many hydro plants.
pub(super) fn make(hydros: usize, files: &mut CaseFiles) {
    let months = Months {
        count: STAGES,
        blocks: vec![("peak", 0.125), ("day", 0.5), ("night", 0.375)],
        openings: 20,
        discount: 0.08,
        cvar: Some((0.25, 0.35)),
        before: 1,
    };
    let shape = grow(hydros);
    files.schemas();
    files.insert("README.md", ABOUT);
    files.json("config.json", parts::config(4, 20, 100, "bounded_noise"));
    files.json("penalties.json", parts::penalties());
    months.write(files);
    let load = shape.load;
    let names = ["southeast", "south", "northeast", "north", "junction"];
    let buses: Vec<(&str, f64)> = names
        .into_iter()
        .enumerate()
        .map(|(bus, name)| (name, shape.load_of(bus)))
        .collect();
    let tie = |part: f64| parts::round(part * load);
    let lines = [
        (0, 1, tie(0.12), tie(0.15), 2.0),
        (0, 4, tie(0.08), tie(0.1), 2.0),
        (3, 4, tie(0.12), tie(0.05), 2.0),
        (2, 4, tie(0.06), tie(0.08), 2.0),
        (0, 2, tie(0.02), tie(0.03), 3.0),
    ];
    parts::buses(&buses, &lines, &months, &[1.18, 1.06, 0.86], files);
    let wind = tie(0.09);
    let winds = [
        ("northeast wind", 2, wind, 0.45),
        ("south wind", 1, parts::round(wind / 3.0), 0.35),
    ];
    parts::wind(&winds, &months, files);
    parts::hydros(&shape.plants, &months, files);
    let rivers = shape.rivers.clone();
    let plants = &shape.plants;
    let together = |a: usize, b: usize| {
        if rivers[a] == rivers[b] {
            0.75
        } else if plants[a].bus == plants[b].bus {
            0.45
        } else {
            0.05
        }
    };
    parts::correlation(hydros, together, files);
    water::add(&shape, files);
    equipment::add(&shape, files);
}

/// Plants on rivers: two tributaries that join a main stem.
fn grow(hydros: usize) -> SystemShape {
    let mut shape = SystemShape {
        plants: Vec::new(),
        rivers: Vec::new(),
        load: 0.0,
        noise: Noise::new(1982, Purpose::Openings),
    };
    let rivers = hydros.div_ceil(RIVER);
    let mut left = hydros;
    for river in 0..rivers {
        let count = left / (rivers - river);
        left -= count;
        grow_river(&mut shape, river, count);
    }
    let energy: f64 = (0..PEOPLE.len()).map(|bus| shape.energy(bus)).sum();
    shape.load = parts::round(LOAD * energy);
    shape
}

fn grow_river(shape: &mut SystemShape, river: usize, count: usize) {
    let first = shape.plants.len();
    let tributary = count * 3 / 10;
    // Most of the country's water is in the southeast.
    let bus = [0, 1, 3, 0, 2, 0][river % 6];
    for number in 0..count {
        let place = first + number;
        let (arm, step, downstream) = if number < tributary {
            let last = number + 1 == tributary;
            (
                "left",
                number,
                if last {
                    first + 2 * tributary
                } else {
                    place + 1
                },
            )
        } else if number < 2 * tributary {
            ("right", number - tributary, place + 1)
        } else {
            ("main", number - 2 * tributary, place + 1)
        };
        let is_last = number + 1 == count;
        let head = step == 0;
        let productivity = shape.number(1, place, 0.25, 0.95);
        let inflow = shape.number(2, place, 60.0, 420.0) * if head { 1.5 } else { 0.6 };
        let above = shape.plants.iter();
        let above = above.filter(|plant| plant.downstream == Some(place));
        let above: f64 = above.map(|plant| plant.max_turbined / TURBINES).sum();
        let passing = above + inflow;
        let months_of_storage = if head {
            shape.number(3, place, 2.5, 7.0)
        } else if arm == "main" && step == 1 {
            1.5
        } else {
            // Most plants below have no room worth mentioning.
            (shape.number(3, place, -1.0, 0.5)).max(0.0)
        };
        let storage = parts::round(passing * months_of_storage * 2.63);
        shape.plants.push(TemplateHydro {
            name: format!("river {river} {arm} {step}"),
            bus,
            downstream: (!is_last).then_some(downstream),
            max_storage: storage,
            initial_storage: parts::round(0.55 * storage),
            productivity,
            max_turbined: parts::round(TURBINES * passing),
            min_outflow: parts::round(0.08 * passing),
            inflow: parts::round(inflow),
            spread: shape.number(4, place, 0.18, 0.32),
            wet_month: [1.0, 8.0, 3.0, 0.5, 1.5, 1.0][river % 6],
            memory: vec![0.5],
        });
        shape.rivers.push(river);
    }
}

/// Changes a JSON file that is there already.
fn amend(files: &mut CaseFiles, path: &str, change: impl FnOnce(&mut Value)) {
    let bytes = files.remove(path).unwrap_or_default();
    let mut value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    change(&mut value);
    files.json(path, value);
}
