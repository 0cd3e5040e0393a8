//! Hydro plants in detail: evaporation, diversion, and production against head and the exact function.

use std::collections::BTreeMap;

use cobre_results::ResultsError;

use crate::chart::{Panel, Positions, Section, Series, SeriesMark, View};
use crate::gather::names;
use crate::palette;
use crate::sections::quantity;
use crate::sections::ribbon::Ribbons;
use crate::simulation::{Blocks, Gathered, Quantity, SimulationData};
use crate::statistics::Quantiles;

/// Most plants whose flow is shown against head, and the parts of the range of heads.
const MAX_PLANTS: usize = 6;
const BINS: usize = 16;
/// Values up to this are the solver's tolerance.
const TOLERANCE: f64 = 1e-6;

const RIBBONS: [Ribbons; 3] = [
    Ribbons {
        id: "evaporation",
        title: "Evaporation",
        chart: "Water that evaporates during each stage",
        about: "Below zero, more rain falls on the lake than evaporates.",
        pick: "Reservoir",
        all: Some("All reservoirs together"),
        what: "evaporation",
        unit: "m³/s",
        quantity: quantity("hydros", "hydro", "evaporation_m3s", Blocks::None),
    },
    Ribbons {
        id: "withdrawal",
        title: "Withdrawal",
        chart: "Water taken out for other uses during each stage",
        about: "Below zero, water is returned.",
        pick: "Plant",
        all: Some("All plants together"),
        what: "withdrawal",
        unit: "m³/s",
        quantity: quantity("hydros", "hydro", "withdrawal_m3s", Blocks::None),
    },
    Ribbons {
        id: "under-way",
        title: "Water under way",
        chart: "Water under way to the plant below at the end of each stage",
        about: "",
        pick: "Plant",
        all: Some("All plants together"),
        what: "water under way",
        unit: "hm³",
        quantity: quantity("hydros", "hydro", "under_way_hm3", Blocks::None),
    },
];

const ERROR: Ribbons = Ribbons {
    id: "production-error",
    title: "Hyperplanes",
    chart: "Generation by hyperplanes less that of the exact production function",
    about: "Blocks of a stage are averaged by their hours. Above zero, the hyperplanes give more energy than head and \
            flow would.",
    pick: "Plant",
    all: None,
    what: "difference",
    unit: "MW",
    quantity: Quantity {
        less: Some("exact_generation_mw"),
        ..quantity("production", "hydro", "generation_mw", Blocks::Mean)
    },
};

/// The sections of what the case has.
pub(super) fn sections(simulation: &SimulationData) -> Result<Vec<Section>, ResultsError> {
    let mut found = Vec::new();
    for ribbon in &RIBBONS {
        // Results of earlier versions lack these columns.
        let table = simulation.table(ribbon.quantity.table)?;
        let has = |table: &cobre_results::Table| {
            table
                .columns()
                .iter()
                .any(|name| name == ribbon.quantity.column)
        };
        if !table.as_ref().is_some_and(has) {
            continue;
        }
        if let Some(gathered) = simulation.gather(ribbon.quantity)?.filter(any) {
            found.push(ribbon.of(simulation, &gathered));
        }
    }
    if let Some(mut section) = ERROR.section(simulation)? {
        section.panels.extend(heads(simulation)?);
        found.push(section);
    }
    Ok(found)
}

/// True if some value is not zero.
fn any(gathered: &Gathered) -> bool {
    let stages = gathered
        .entities
        .iter()
        .flat_map(|entity| entity.grid.stages());
    stages.flatten().any(|value| value.abs() > TOLERANCE)
}

/// Turbined flow against net head, a chart for each of the plants that turbine most.
fn heads(simulation: &SimulationData) -> Result<Vec<Panel>, ResultsError> {
    let table = simulation.required("production")?;
    let mut points: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, "hydro_id")?;
        let heads = table.numbers(group, "net_head_m")?;
        let flows = table.numbers(group, "turbined_m3s")?;
        for (id, point) in ids.into_iter().zip(heads.into_iter().zip(flows)) {
            points.entry(id).or_default().push(point);
        }
    }
    let flow = |points: &[(f64, f64)]| points.iter().map(|point| point.1).sum::<f64>();
    let mut plants: Vec<(i64, Vec<(f64, f64)>)> = points.into_iter().collect();
    plants.sort_by(|left, right| flow(&right.1).total_cmp(&flow(&left.1)));
    let names: BTreeMap<i64, String> = names(&table, "hydro")?.into_iter().collect();
    let panels = plants.iter().take(MAX_PLANTS).filter_map(|(id, points)| {
        let name = names.get(id)?;
        against_head(name, *id, points)
    });
    Ok(panels.collect())
}

/// The chart of a plant; none if its head is always the same.
fn against_head(name: &str, id: i64, points: &[(f64, f64)]) -> Option<Panel> {
    let heads = points.iter().map(|point| point.0);
    let low = heads.clone().fold(f64::INFINITY, f64::min);
    let high = heads.fold(f64::NEG_INFINITY, f64::max);
    let width = (high - low) / BINS as f64;
    if width.is_nan() || width <= TOLERANCE {
        return None;
    }
    let mut bins: Vec<Vec<f64>> = vec![Vec::new(); BINS];
    for (head, flow) in points {
        let bin = ((head - low) / width) as usize;
        bins[bin.min(BINS - 1)].push(*flow);
    }
    let filled = bins.iter().enumerate().filter(|(_, bin)| !bin.is_empty());
    let (mut at, mut low_edge, mut middle, mut high_edge) = (vec![], vec![], vec![], vec![]);
    for (bin, flows) in filled {
        let own = Quantiles::of(flows.iter().copied());
        at.push(low + width * (bin as f64 + 0.5));
        low_edge.push(own.percentiles[1]);
        middle.push(own.percentiles[3]);
        high_edge.push(own.percentiles[5]);
    }
    let series = vec![
        Series::band("nine tenths", palette::BLUE, 30, low_edge, high_edge),
        Series::new("median", SeriesMark::Line, palette::BLUE, middle),
    ];
    Some(Panel {
        id: format!("turbined-head-{id}"),
        title: format!("Turbined flow of {name} against head"),
        about: "Every block of every scenario: the median and the middle nine tenths of the flow at each head.".to_owned(),
        pick: String::new(),
        x: "net head (m)".to_owned(),
        at: Positions::Numbers(at),
        views: vec![View::scaled("", "turbined flow", "m³/s", series)],
    })
}
