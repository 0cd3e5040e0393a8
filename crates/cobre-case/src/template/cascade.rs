//! Two reservoirs on one river.

use super::files::CaseFiles;
use super::parts::{self, Months, TemplateHydro};

pub(super) fn make(files: &mut CaseFiles) {
    let months = Months {
        count: 12,
        blocks: vec![("peak", 0.25), ("rest", 0.75)],
        openings: 10,
        discount: 0.08,
        cvar: None,
        before: 1,
    };
    files.schemas();
    files.json("config.json", parts::config(4, 60, 200, "truncation"));
    files.json("penalties.json", parts::penalties());
    months.write(files);
    parts::buses(&[("city", 260.0)], &[], &months, &[1.2, 0.9333], files);
    let plants = [
        ("coal".to_owned(), 0, 80.0, 45.0),
        ("gas".to_owned(), 0, 80.0, 90.0),
        ("oil".to_owned(), 0, 120.0, 200.0),
    ];
    parts::thermals(&plants, files);
    let upper = TemplateHydro {
        name: "upper lake".to_owned(),
        bus: 0,
        downstream: Some(1),
        max_storage: 900.0,
        initial_storage: 500.0,
        productivity: 0.7,
        max_turbined: 180.0,
        min_outflow: 15.0,
        inflow: 110.0,
        spread: 0.35,
        wet_month: 1.0,
        memory: vec![0.5],
    };
    let lower = TemplateHydro {
        name: "lower lake".to_owned(),
        downstream: None,
        max_storage: 200.0,
        initial_storage: 120.0,
        productivity: 0.5,
        max_turbined: 240.0,
        min_outflow: 25.0,
        inflow: 40.0,
        memory: vec![0.4],
        ..upper.clone()
    };
    parts::hydros(&[upper, lower], &months, files);
    parts::correlation(2, |_, _| 0.7, files);
}
