//! Suspicious water values after the last stage.

use std::collections::BTreeMap;

use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::terminal::TerminalWaterValues;
use crate::hydrothermal::model;
use crate::hydrothermal::system::System;
use crate::hydrothermal::table::Row;

/// hm³ of 1 m³/s for an hour.
const HM3: f64 = 3600.0 / 1e6;

/// Says which water values cannot be what was meant.
pub(super) fn find(files: &Files, system: &System, findings: &mut Findings) {
    let at = Place::file(TerminalWaterValues::FILE);
    // By cut: its largest value where reservoirs are empty, and its first row.
    let mut cuts: BTreeMap<Option<i32>, (f64, usize)> = BTreeMap::new();
    for (number, row) in files.terminal_water_values.iter().enumerate() {
        let ids = system.indices.hydros.numbers();
        let Some(place) = ids.iter().position(|id| *id == row.hydro_id) else {
            continue;
        };
        let limits = system.hydros[place].limits.last();
        let most = limits.map_or(0.0, |limits| limits.max_storage);
        let storage = row.storage_hm3.map_or(most, |storage| storage.0);
        let value = row.water_value.0;
        cuts.entry(row.cut_id).or_insert((0.0, number)).0 += value * storage;
        if storage > most && value > 0.0 {
            let message = format!(
                "storage_hm3, {storage}, is above the most storage, {most}: the cost at the end is {} $ or more, whatever \
                 is done",
                value * (storage - most)
            );
            findings.doubtful(&at.row(number), message);
        }
        // What water can save has the terminal value in it.
        let saving = model::saving(system, place) / HM3 - value;
        if value > saving {
            let message = format!(
                "water_value, {value} $/hm³, is more than water can save, {saving:.0}: is it the value of more than 1 hm³?"
            );
            findings.doubtful(&at.row(number), message);
        }
    }
    for (cut, (most, number)) in cuts {
        if most <= 0.0 {
            let cut = cut.map_or("the cut".to_owned(), |cut| format!("cut {cut}"));
            let message =
                format!("{cut} is above 0 at no storage, and changes nothing: see storage_hm3");
            findings.doubtful(&at.row(number), message);
        }
    }
}
