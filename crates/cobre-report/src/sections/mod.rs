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

use crate::chart::Section;
use crate::input::ReportInput;
use crate::simulation::{Blocks, Quantity, SimulationData};

pub(crate) use facts::headline;

use self::ribbon::Ribbons;

/// All sections that have something to show.
pub(crate) fn all(input: &ReportInput) -> Result<Vec<Section>, ResultsError> {
    let mut sections = vec![convergence::section(input)?];
    match &input.simulation {
        None => sections.push(no_simulation()),
        Some(simulation) if input.results.hydrothermal() => {
            hydrothermal(input, simulation, &mut sections)?;
        }
        Some(simulation) => generic(input, simulation, &mut sections)?,
    }
    sections.push(facts::section(input));
    Ok(sections)
}

fn no_simulation() -> Section {
    let mut section = Section::new("simulation", "Simulation");
    let text = "This run trained a policy and did not simulate it, so there is nothing on storage, \
                generation or costs. To have it, simulate: cobre run with simulation enabled.";
    section.text.push(text.to_owned());
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
            quantity: quantity("hydros", "hydro", "storage_hm3", Blocks::None),
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
            quantity: quantity("hydros", "hydro", "inflow_m3s", Blocks::None),
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
            quantity: quantity("buses", "bus", "marginal_cost_per_mwh", Blocks::Mean),
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
            quantity: quantity("hydros", "hydro", "water_value_per_hm3", Blocks::None),
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
    let stages = simulation.required("stages")?;
    let grid = simulation.column(&stages, "stage_value")?;
    total.panels.push(ribbon::stage_values(simulation, &grid));
    sections.push(total);
    let tables = [
        (
            "states",
            "States",
            "Each state at the end of each stage",
            "State",
            "states",
        ),
        (
            "controls",
            "Controls",
            "Each control in each stage",
            "Control",
            "controls",
        ),
        (
            "duals",
            "Duals",
            "The dual of each row in each stage",
            "Row",
            "duals",
        ),
    ];
    for (id, title, chart, pick, table) in tables {
        sections.extend(ribbon::columns(simulation, id, title, chart, pick, table)?);
    }
    Ok(())
}
