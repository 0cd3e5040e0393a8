//! The parts of a report, in the order a planner asks: did it converge, what does it cost, what happens.

mod convergence;
mod cost;
mod deficit;
mod equipment;
mod exchange;
mod facts;
mod hydro;
mod mix;
mod ribbon;
mod totals;
mod violations;

use cobre_results::ResultsError;
use cobre_results::layout::{buses, controls, duals, hydros, stages, states};

use crate::chart::Section;
use crate::input::ReportInput;
use crate::simulation::{Blocks, Quantity, SimulationData};

pub(crate) use facts::headline;

use self::ribbon::Ribbons;

/// All sections that have something to show.
pub(crate) fn all(input: &ReportInput) -> Result<Vec<Section>, ResultsError> {
    let mut sections = vec![convergence::section(input)?];
    match &input.simulation {
        None => sections.push(no_simulation(input)),
        Some(simulation) if input.results.hydrothermal() => {
            hydrothermal(input, simulation, &mut sections)?;
        }
        Some(simulation) => generic(input, simulation, &mut sections)?,
    }
    sections.push(facts::section(input));
    Ok(sections)
}

/// The command that simulates the policy of a run that did not.
fn no_simulation(input: &ReportInput) -> Section {
    let mut section = Section::new("simulation", "Simulation");
    let why = match input.results.run["interrupted"].as_str() {
        Some("simulation") => "The simulation of this policy was interrupted",
        _ => "This run trained a policy and did not simulate it",
    };
    section.text.push(format!(
        "{why}, so there is nothing on storage, generation or costs. To have it, simulate the policy, into another \
         directory:"
    ));
    let results = input.results.path.display().to_string();
    let case = input.results.run["case"].as_str().unwrap_or("CASE");
    section.text.push(format!(
        "cobre run {case} --warm-start {results} --simulate-only --simulate 200 --output {}-simulated",
        results.trim_end_matches('/')
    ));
    section
}

/// A quantity of the plants or buses of a case.
const fn quantity(
    table: &'static str,
    entity: &'static str,
    column: &'static str,
    blocks: Blocks,
) -> Quantity {
    Quantity {
        table,
        entity,
        column,
        less: None,
        blocks,
    }
}

/// Lines beside the storage of a reservoir.
const LEVELS: [(&str, Quantity, bool); 2] = [
    (
        "capacity",
        quantity(
            hydros::TABLE,
            hydros::HYDRO,
            hydros::STORAGE_MAX_HM3,
            Blocks::None,
        ),
        false,
    ),
    (
        "level before the first stage",
        quantity(
            hydros::TABLE,
            hydros::HYDRO,
            hydros::STORAGE_INITIAL_HM3,
            Blocks::None,
        ),
        true,
    ),
];

fn hydrothermal(
    input: &ReportInput,
    simulation: &SimulationData,
    sections: &mut Vec<Section>,
) -> Result<(), ResultsError> {
    let mut total = totals::section(input, simulation);
    cost::add(simulation, &mut total)?;
    sections.push(total);
    let ribbons = [
        Ribbons {
            id: "storage",
            title: "Storage",
            chart: "Water stored at the end of each stage",
            about: "",
            pick: "Reservoir",
            all: Some("All reservoirs together"),
            what: "storage",
            unit: "hm³",
            levels: &LEVELS,
            zero: true,
            quantity: quantity(
                hydros::TABLE,
                hydros::HYDRO,
                hydros::STORAGE_HM3,
                Blocks::None,
            ),
        },
        Ribbons {
            id: "inflow",
            title: "Inflow",
            chart: "Water that flows in during each stage",
            about: "",
            pick: "Plant",
            all: Some("All plants together"),
            what: "inflow",
            unit: "m³/s",
            levels: &[],
            zero: false,
            quantity: quantity(
                hydros::TABLE,
                hydros::HYDRO,
                hydros::INFLOW_M3S,
                Blocks::None,
            ),
        },
    ];
    for ribbon in ribbons {
        sections.extend(ribbon.section(simulation)?);
    }
    sections.extend(hydro::sections(simulation)?);
    sections.push(mix::section(simulation)?);
    sections.extend(exchange::section(simulation)?);
    sections.extend(equipment::sections(simulation)?);
    let ribbons = [
        Ribbons {
            id: "marginal-cost",
            title: "Marginal cost",
            chart: "Marginal cost: the cost of one more MWh of load",
            about: "Blocks of a stage are averaged by their hours.",
            pick: "Bus",
            all: None,
            what: "marginal cost",
            unit: "$/MWh",
            levels: &[],
            zero: true,
            quantity: quantity(
                buses::TABLE,
                buses::BUS,
                buses::MARGINAL_COST_PER_MWH,
                Blocks::Mean,
            ),
        },
        Ribbons {
            id: "water-value",
            title: "Water values",
            chart: "Water value: the saving of one more hm³ in store",
            about: "",
            pick: "Reservoir",
            all: None,
            what: "water value",
            unit: "$/hm³",
            levels: &[],
            zero: true,
            quantity: quantity(
                hydros::TABLE,
                hydros::HYDRO,
                hydros::WATER_VALUE_PER_HM3,
                Blocks::None,
            ),
        },
    ];
    for ribbon in ribbons {
        sections.extend(ribbon.section(simulation)?);
    }
    sections.push(deficit::section(simulation)?);
    sections.push(violations::section(simulation)?);
    Ok(())
}

fn generic(
    input: &ReportInput,
    simulation: &SimulationData,
    sections: &mut Vec<Section>,
) -> Result<(), ResultsError> {
    let mut total = totals::section(input, simulation);
    let table = simulation.required(stages::TABLE)?;
    let grid = simulation.column(&table, stages::STAGE_VALUE)?;
    total.panels.push(ribbon::stage_values(simulation, &grid));
    sections.push(total);
    let tables = [
        (
            "states",
            "States",
            "Each state at the end of each stage",
            "State",
            states::TABLE,
        ),
        (
            "controls",
            "Controls",
            "Each control in each stage",
            "Control",
            controls::TABLE,
        ),
        (
            "duals",
            "Duals",
            "The dual of each row in each stage",
            "Row",
            duals::TABLE,
        ),
    ];
    for (id, title, chart, pick, table) in tables {
        sections.extend(ribbon::columns(simulation, id, title, chart, pick, table)?);
    }
    Ok(())
}
