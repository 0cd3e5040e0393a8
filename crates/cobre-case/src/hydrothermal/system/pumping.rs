//! Pumping stations.

use super::bounds::{check_order, with_bounds};
use super::index::Index;
use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::{self, PumpingBounds};
use crate::hydrothermal::table::Row;

/// A pumping station.
#[derive(Debug)]
pub(crate) struct Pumping {
    pub(crate) label: String,
    pub(crate) bus: usize,
    /// The plants that water is taken from and brought to.
    pub(crate) source: usize,
    pub(crate) destination: usize,
    /// MW/(m³/s).
    pub(crate) consumption: f64,
    /// By stage and block, m³/s: the least and the most.
    pub(crate) limits: Vec<Vec<[f64; 2]>>,
}

pub(super) fn resolve(
    files: &Files,
    (buses, hydros): (&Index, &Index),
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<Pumping>, Index) {
    let list = Place::file(equipment::PUMPING).key("pumping_stations");
    let stations = files.pumping.iter().flat_map(|file| &file.pumping_stations);
    let things = stations.clone().map(|station| {
        let flow = [station.flow.min_m3s.0, station.flow.max_m3s.0];
        (station.id, station.name.as_str(), flow)
    });
    let (index, limits) = with_bounds(
        ("pumping station", &list),
        things,
        (stages, stage_index),
        &files.pumping_bounds,
        |row: &PumpingBounds| (row.station_id, row.stage_id, row.block_id),
        |[least, most], row| {
            *least = row.min_m3s.map_or(*least, |value| value.0);
            *most = row.max_m3s.map_or(*most, |value| value.0);
        },
        findings,
    );
    let mut found = Vec::new();
    for (place, (station, mut limits)) in stations.zip(limits).enumerate() {
        let at = list.index(place);
        let bus = buses.find(station.bus_id, &at.key("bus_id"), findings);
        let source = hydros.find(
            station.source_hydro_id,
            &at.key("source_hydro_id"),
            findings,
        );
        let key = at.key("destination_hydro_id");
        let destination = hydros.find(station.destination_hydro_id, &key, findings);
        if source.is_some() && source == destination {
            findings.wrong(&key, "it is the source plant as well");
        }
        let (least, most) = (station.flow.min_m3s.0, station.flow.max_m3s.0);
        if least > most {
            let message = format!("{least} is above max_m3s, {most}");
            findings.wrong(&at.key("flow.min_m3s"), message);
        } else {
            let what = format!("pumping station {}", station.id);
            let range = |limits: &[f64; 2]| (limits[0], limits[1]);
            check_order(PumpingBounds::FILE, &what, &limits, stages, range, findings);
        }
        let window = StageWindow::new(station.entry_stage_id, station.exit_stage_id, &at, findings);
        window.close(stages, &mut limits, |limits| *limits = [0.0; 2]);
        found.push(Pumping {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            source: source.unwrap_or(0),
            destination: destination.unwrap_or(0),
            consumption: station.consumption_mw_per_m3s.0,
            limits,
        });
    }
    (found, index)
}
