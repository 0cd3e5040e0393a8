//! Where the energy comes from.

use cobre_results::ResultsError;
use cobre_results::layout::{buses, hydro_blocks, sources, thermals};
use cobre_results::statistics::mean;

use crate::chart::{Section, Series, SeriesMark, View};
use crate::grid::Grid;
use crate::palette;
use crate::sections::quantity;
use crate::sections::ribbon::{Ribbons, over_stages};
use crate::simulation::{Blocks, Quantity, SimulationData};

/// The sources of the load's energy, from the bottom of the bars to their top.
const KINDS: [(&str, usize, Quantity); 6] = [
    (
        "hydro",
        palette::BLUE,
        quantity(
            hydro_blocks::TABLE,
            hydro_blocks::HYDRO,
            hydro_blocks::GENERATION_MW,
            Blocks::Mean,
        ),
    ),
    (
        "wind, sun and others",
        palette::GREEN,
        quantity(
            sources::TABLE,
            sources::SOURCE,
            sources::GENERATION_MW,
            Blocks::Mean,
        ),
    ),
    (
        "thermal",
        palette::VERMILION,
        quantity(
            thermals::TABLE,
            thermals::THERMAL,
            thermals::GENERATION_MW,
            Blocks::Mean,
        ),
    ),
    (
        "imports",
        palette::ORANGE,
        quantity("contracts", "contract", "import_mw", Blocks::Mean),
    ),
    (
        "batteries",
        palette::SKY,
        quantity("battery_blocks", "battery", "discharge_mw", Blocks::Mean),
    ),
    (
        "deficit",
        palette::PURPLE,
        quantity(buses::TABLE, buses::BUS, buses::DEFICIT_MW, Blocks::Mean),
    ),
];

/// The generation of a kind, plant by plant.
const fn by_plant(id: &'static str, chart: &'static str, place: usize) -> Ribbons {
    Ribbons {
        id,
        title: "",
        chart,
        about: "Blocks of a stage are averaged by their hours.",
        pick: "Plant",
        all: None,
        what: "mean power",
        unit: "MW",
        quantity: KINDS[place].2,
        levels: &[],
        zero: true,
    }
}

const PLANTS: [Ribbons; 3] = [
    by_plant("mix-hydro", "Generation of each hydro plant", 0),
    by_plant("mix-thermal", "Generation of each thermal plant", 2),
    by_plant("mix-source", "Generation of each source", 1),
];

const LOAD: Quantity = quantity(buses::TABLE, buses::BUS, buses::LOAD_MW, Blocks::Mean);

/// The generation of each stage by kind, as mean and in single scenarios.
pub(super) fn section(simulation: &SimulationData) -> Result<Section, ResultsError> {
    let mut grids: Vec<(&str, SeriesMark, usize, Grid)> = Vec::new();
    for (name, color, of) in KINDS {
        let gathered = simulation.gather(of)?;
        // What a case has none of is no part of its mix.
        if let Some(gathered) = gathered.filter(|gathered| gathered.total.largest() > 0.0) {
            grids.push((name, SeriesMark::Bar, color, gathered.total));
        }
    }
    if let Some(load) = simulation.gather(LOAD)? {
        grids.push(("load", SeriesMark::Dashes, palette::INK, load.total));
    }
    let view = |name: &str, values: &dyn Fn(&Grid) -> Vec<f64>| {
        let series = grids
            .iter()
            .map(|(name, mark, color, grid)| Series::new(*name, *mark, *color, values(grid)));
        View::scaled(name, "mean power", "MW", series.collect())
    };
    let means = |grid: &Grid| {
        let stages = grid.stages();
        stages.map(|values| mean(values.iter().copied())).collect()
    };
    let mut views = Vec::new();
    if simulation.scenarios() > 1 {
        views.push(view("Mean of all scenarios", &means));
    }
    for single in &simulation.single {
        views.push(view(&single.name, &|grid| grid.scenario(single.scenario)));
    }
    let about = "Power by what makes it, averaged over the hours of each stage, and the load it serves. \
                 What is generated beyond the load is pumped, charged, exported, lost in lines or in excess.";
    let mut section = Section::new("mix", "Generation mix");
    let title = "Generation by kind of source";
    section.panels.push(over_stages(
        simulation, "mix", title, about, "Scenario", views,
    ));
    for ribbons in PLANTS {
        let of_plants = ribbons.section(simulation)?;
        section
            .panels
            .extend(of_plants.into_iter().flat_map(|found| found.panels));
    }
    Ok(section)
}
