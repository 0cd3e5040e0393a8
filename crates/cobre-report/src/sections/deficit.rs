//! Load that is not served: how likely, and how much.

use cobre_results::ResultsError;
use cobre_results::layout::buses;
use cobre_results::statistics::mean;

use crate::chart::{Section, Series, SeriesMark, View};
use crate::grid::Grid;
use crate::palette;
use crate::sections::quantity;
use crate::sections::ribbon::over_stages;
use crate::simulation::{Blocks, Quantity, SimulationData};

const ENERGY: Quantity = quantity(buses::TABLE, buses::BUS, buses::DEFICIT_MW, Blocks::Energy);

/// Deficits up to this are the solver's tolerance: a kWh in a stage.
const TOLERANCE_MWH: f64 = 1e-3;

/// The share of scenarios with a deficit and its energy, stage by stage.
pub(super) fn section(simulation: &SimulationData) -> Result<Section, ResultsError> {
    let mut section = Section::new("deficit", "Deficit risk");
    let gathered = simulation.gather(ENERGY)?;
    let Some(gathered) = gathered.filter(|gathered| gathered.total.largest() > TOLERANCE_MWH)
    else {
        let text = match simulation.scenarios() {
            1 => "The simulated scenario serves all load in every stage.".to_owned(),
            count => format!("None of the {count} simulated scenarios has a deficit in any stage."),
        };
        section.text.push(text);
        return Ok(section);
    };
    let any = |scenario: &usize| {
        gathered
            .total
            .scenario(*scenario)
            .iter()
            .any(|energy| *energy > TOLERANCE_MWH)
    };
    let with = (0..simulation.scenarios()).filter(any).count();
    section.text.push(format!(
        "{with} of {} scenarios ({:.2} %) have a deficit in some stage.",
        simulation.scenarios(),
        with as f64 * 100.0 / simulation.scenarios() as f64
    ));
    let views = |what: &str, unit: &str, of: fn(&[f64]) -> f64| {
        let view = |name: &str, grid: &Grid| {
            let values = grid.stages().map(of).collect();
            let bars = Series::new(what, SeriesMark::Bar, palette::PURPLE, values);
            View::scaled(name, what, unit, vec![bars])
        };
        let mut views = Vec::new();
        if gathered.entities.len() > 1 {
            views.push(view("The whole system", &gathered.total));
        }
        // A bus that never lacks anything has nothing to show.
        let lacking = gathered.entities.iter();
        let lacking = lacking.filter(|entity| entity.grid.largest() > TOLERANCE_MWH);
        views.extend(lacking.map(|entity| view(&entity.name, &entity.grid)));
        views
    };
    let chance = views("share of scenarios", "%", |values| {
        mean(
            values
                .iter()
                .map(|energy| if *energy > TOLERANCE_MWH { 100.0 } else { 0.0 }),
        )
    });
    let title = "Probability of a deficit";
    let about = "The share of scenarios in which some load is not served in a stage.";
    section.panels.push(over_stages(
        simulation,
        "deficit-risk",
        title,
        about,
        "Bus",
        chance,
    ));
    let energy = views("energy not served", "MWh", |values| {
        mean(values.iter().copied())
    });
    let title = "Expected energy not served";
    let about = "The energy that is not served in each stage: mean of all scenarios, those without a deficit too.";
    section.panels.push(over_stages(
        simulation,
        "deficit-energy",
        title,
        about,
        "Bus",
        energy,
    ));
    Ok(section)
}
