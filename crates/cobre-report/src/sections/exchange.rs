//! Power between buses.

use std::collections::HashMap;

use cobre_results::ResultsError;
use cobre_results::layout::{buses, lines};

use crate::chart::Section;
use crate::gather::names;
use crate::sections::quantity;
use crate::sections::ribbon::Ribbons;
use crate::simulation::{Blocks, Quantity, SimulationData};

const RIBBONS: Ribbons = Ribbons {
    id: "exchange",
    title: "Exchange",
    chart: "Power between buses",
    about: "Blocks of a stage are averaged by their hours. Above zero, power goes from the first bus to the \
            second; below zero, the other way. Losses are not taken off.",
    pick: "Line",
    all: None,
    what: "power sent",
    unit: "MW",
    levels: &[],
    zero: false,
    quantity: Quantity {
        less: Some(lines::REVERSE_MW),
        ..quantity(lines::TABLE, lines::LINE, lines::DIRECT_MW, Blocks::Mean)
    },
};

/// The power of each line, from its beginning to its end; none if the case has no lines.
pub(super) fn section(simulation: &SimulationData) -> Result<Option<Section>, ResultsError> {
    let Some(mut gathered) = simulation.gather(RIBBONS.quantity)? else {
        return Ok(None);
    };
    let ways = ways(simulation)?;
    for line in &mut gathered.entities {
        if let Some(way) = ways.get(&line.id) {
            line.name = format!("{} ({way})", line.name);
        }
    }
    Ok(Some(RIBBONS.of(simulation, &gathered, &[])))
}

/// From which bus to which each line goes.
fn ways(simulation: &SimulationData) -> Result<HashMap<i64, String>, ResultsError> {
    let buses = names(&simulation.required(buses::TABLE)?, buses::BUS)?;
    let buses: HashMap<i64, String> = buses.into_iter().collect();
    let table = simulation.required(lines::TABLE)?;
    let mut ways = HashMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, lines::LINE_ID)?;
        let ends = [
            table.integers(group, lines::FROM_BUS_ID)?,
            table.integers(group, lines::TO_BUS_ID)?,
        ];
        for (row, id) in ids.into_iter().enumerate() {
            let [Some(from), Some(to)] = ends.each_ref().map(|bus| buses.get(&bus[row])) else {
                return Err(table.damaged("it has buses that other tables have not"));
            };
            ways.entry(id)
                .or_insert_with(|| format!("from {from} to {to}"));
        }
    }
    Ok(ways)
}
