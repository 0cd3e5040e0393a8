//! One reservoir and two thermal plants.

use super::files::CaseFiles;
use super::parts::{self, Months, TemplateHydro};

/// A year.
pub(super) fn months() -> Months {
    Months {
        count: 12,
        blocks: vec![("all", 1.0)],
        openings: 10,
        discount: 0.08,
        cvar: None,
        before: 0,
    }
}

/// The reservoir.
pub(super) fn lake() -> TemplateHydro {
    TemplateHydro {
        name: "lake".to_owned(),
        bus: 0,
        downstream: None,
        max_storage: 500.0,
        initial_storage: 300.0,
        productivity: 0.8,
        max_turbined: 120.0,
        min_outflow: 10.0,
        inflow: 80.0,
        spread: 0.3,
        wet_month: 1.0,
        memory: vec![],
    }
}

pub(super) fn make(files: &mut CaseFiles) {
    let months = months();
    files.schemas();
    files.json("config.json", parts::config(4, 60, 200, "truncation"));
    files.json("penalties.json", parts::penalties());
    months.write(files);
    parts::buses(&[("city", 100.0)], &[], &months, &[1.0], files);
    let plants = [
        ("gas".to_owned(), 0, 50.0, 60.0),
        ("oil".to_owned(), 0, 50.0, 180.0),
    ];
    parts::thermals(&plants, files);
    parts::hydros(&[lake()], &months, files);
}
