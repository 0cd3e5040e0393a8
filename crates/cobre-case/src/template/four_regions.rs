//! Four regions with lines between them.

use super::files::CaseFiles;
use super::parts::{self, Months, TemplateHydro};

/// Name, load in MW, mean inflow in m³/s, storage in hm³, wet month.
const REGIONS: [(&str, f64, f64, f64, f64); 4] = [
    ("south", 1200.0, 900.0, 3000.0, 7.0),
    ("centre", 2600.0, 1900.0, 14_000.0, 1.0),
    ("coast", 900.0, 500.0, 4000.0, 2.0),
    ("north", 700.0, 1400.0, 2500.0, 3.0),
];

pub(super) fn make(files: &mut CaseFiles) {
    let months = Months {
        count: 12,
        blocks: vec![("peak", 0.2), ("rest", 0.8)],
        openings: 10,
        discount: 0.1,
        cvar: Some((0.3, 0.4)),
        before: 1,
    };
    files.schemas();
    files.json("config.json", parts::config(4, 60, 200, "bounded_noise"));
    files.json("penalties.json", parts::penalties());
    months.write(files);
    let buses: Vec<(&str, f64)> = REGIONS
        .iter()
        .map(|(name, load, ..)| (*name, *load))
        .collect();
    let lines = [
        (0, 1, 700.0, 700.0, 2.0),
        (1, 2, 600.0, 400.0, 3.0),
        (3, 1, 900.0, 400.0, 4.0),
        (3, 2, 300.0, 200.0, 3.0),
    ];
    parts::buses(&buses, &lines, &months, &[1.15, 0.9625], files);
    let mut thermals = Vec::new();
    for (bus, (name, load, ..)) in REGIONS.iter().enumerate() {
        let cost = 40.0 + 10.0 * bus as f64;
        thermals.push((format!("{name} gas"), bus, parts::round(0.2 * load), cost));
        thermals.push((
            format!("{name} coal"),
            bus,
            parts::round(0.15 * load),
            cost + 35.0,
        ));
        thermals.push((
            format!("{name} oil"),
            bus,
            parts::round(0.2 * load),
            cost + 160.0,
        ));
    }
    parts::thermals(&thermals, files);
    parts::wind(&[("coast wind", 2, 500.0, 0.4)], &months, files);
    let plants = REGIONS
        .iter()
        .enumerate()
        .map(
            |(bus, (name, _, inflow, storage, wet_month))| TemplateHydro {
                name: format!("{name} reservoir"),
                bus,
                downstream: None,
                max_storage: *storage,
                initial_storage: parts::round(0.55 * storage),
                productivity: 0.9,
                max_turbined: parts::round(1.6 * inflow),
                min_outflow: parts::round(0.1 * inflow),
                inflow: *inflow,
                spread: 0.3,
                wet_month: *wet_month,
                memory: vec![0.55],
            },
        );
    parts::hydros(&plants.collect::<Vec<_>>(), &months, files);
    parts::correlation(4, |a, b| if a == 0 || b == 0 { -0.2 } else { 0.4 }, files);
}
