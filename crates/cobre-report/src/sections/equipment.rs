//! Pumping, contracts, batteries and generic constraints.

use cobre_results::ResultsError;

use crate::chart::Section;
use crate::sections::quantity;
use crate::sections::ribbon::Ribbons;
use crate::simulation::{Blocks, Quantity, SimulationData};

const PUMPING: Ribbons = Ribbons {
    id: "pumping",
    title: "Pumping",
    chart: "Water lifted by pumping stations",
    about: "Blocks of a stage are averaged by their hours.",
    pick: "Station",
    all: Some("All stations together"),
    what: "flow",
    unit: "m³/s",
    quantity: quantity("pumping", "station", "flow_m3s", Blocks::Mean),
    levels: &[],
    zero: false,
};

const CONTRACTS: Ribbons = Ribbons {
    id: "contracts",
    title: "Contracts",
    chart: "Power of contracts",
    about: "Blocks of a stage are averaged by their hours. Above zero is import, below zero export.",
    pick: "Contract",
    all: Some("All contracts together"),
    what: "power",
    unit: "MW",
    quantity: Quantity {
        less: Some("export_mw"),
        ..quantity("contracts", "contract", "import_mw", Blocks::Mean)
    },
    levels: &[],
    zero: false,
};

const BATTERIES: Ribbons = Ribbons {
    id: "batteries",
    title: "Batteries",
    chart: "Energy stored in batteries at the end of each stage",
    about: "",
    pick: "Battery",
    all: Some("All batteries together"),
    what: "level",
    unit: "MWh",
    quantity: quantity("batteries", "battery", "level_mwh", Blocks::None),
    levels: &[],
    zero: false,
};

const DISCHARGE: Ribbons = Ribbons {
    id: "discharge",
    title: "Battery discharge",
    chart: "Power given by batteries",
    about: "Blocks of a stage are averaged by their hours.",
    pick: "Battery",
    all: Some("All batteries together"),
    what: "discharge",
    unit: "MW",
    quantity: quantity("battery_blocks", "battery", "discharge_mw", Blocks::Mean),
    levels: &[],
    zero: false,
};

const CONSTRAINTS: Ribbons = Ribbons {
    id: "constraint-price",
    title: "Generic constraints",
    chart: "Price of generic constraints: the cost of a bound that is 1 higher, per hour",
    about: "Blocks of a stage are averaged by their hours. Zero where a constraint does not bind or does not hold; below \
            zero where a higher bound saves money.",
    pick: "Constraint",
    all: None,
    what: "price",
    unit: "$/h",
    quantity: quantity("constraints", "constraint", "price_per_hour", Blocks::Mean),
    levels: &[],
    zero: false,
};

/// Prices up to this are the solver's tolerance.
const NO_PRICE: f64 = 1e-9;

/// The sections of what the case has; of constraints, only those that bind somewhere.
pub(super) fn sections(simulation: &SimulationData) -> Result<Vec<Section>, ResultsError> {
    let mut sections = Vec::new();
    for ribbons in [PUMPING, CONTRACTS, BATTERIES, DISCHARGE] {
        sections.extend(ribbons.section(simulation)?);
    }
    let prices = simulation.gather(CONSTRAINTS.quantity)?;
    let Some(mut prices) = prices.filter(|prices| prices.count > 0) else {
        return Ok(sections);
    };
    let binds = |grid: &crate::grid::Grid| {
        grid.stages()
            .flatten()
            .any(|price| price.abs() > NO_PRICE && price.is_finite())
    };
    prices.entities.retain(|entity| binds(&entity.grid));
    if prices.entities.is_empty() {
        let mut section = Section::new(CONSTRAINTS.id, CONSTRAINTS.title);
        let text = format!(
            "None of the {} generic constraints binds in any scenario.",
            prices.count
        );
        section.text.push(text);
        sections.push(section);
    } else {
        prices.count = prices.entities.len();
        sections.push(CONSTRAINTS.of(simulation, &prices, &[]));
    }
    Ok(sections)
}
