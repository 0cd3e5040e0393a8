//! Complete cases to start from, and what it takes to write others.

mod brazil_like;
mod cascade;
mod files;
mod four_regions;
mod grown;
mod history;
mod hyperplanes;
mod one_reservoir;
mod parts;
mod wet_and_dry;

pub use self::brazil_like::BRAZIL_LIKE_HYDROS;
pub use self::files::{CaseFiles, TemplateColumn};

/// A case to start from.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// The name it is asked for by.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    make: fn(&mut CaseFiles),
}

/// All of them.
pub const TEMPLATES: [Template; 8] = [
    Template {
        name: "one-reservoir",
        about: "one reservoir and two thermal plants, 12 monthly stages",
        make: one_reservoir::make,
    },
    Template {
        name: "wet-and-dry",
        about: "the same reservoir with wet and dry regimes of inflow that follow each other by chance",
        make: wet_and_dry::make,
    },
    Template {
        name: "cascade",
        about: "two reservoirs on one river, two blocks per stage, PAR(1) inflows",
        make: cascade::make,
    },
    Template {
        name: "history",
        about: "the same river with 60 years of inflows in place of a model, which is estimated from them",
        make: history::make,
    },
    Template {
        name: "four-regions",
        about: "four regions with lines between them, wind, correlated inflows, CVaR",
        make: four_regions::make,
    },
    Template {
        name: "five-years",
        about: "60 monthly stages, 8 hydro plants on 4 rivers, 16 thermal plants, 4 regions: the demo",
        make: grown::five_years,
    },
    Template {
        name: "large",
        about: "100 hydro and 120 thermal plants, 24 stages of 3 blocks: to see how things scale",
        make: grown::large,
    },
    Template {
        name: "brazil-like",
        about: "an invented system of the shape of Brazil's, with everything a case can have; --hydros 20 to 160",
        make: |files| brazil_like::make(brazil_like::USUAL_HYDROS, files),
    },
];

impl Template {
    /// The template of this name.
    pub fn find(name: &str) -> Option<Self> {
        TEMPLATES.into_iter().find(|template| template.name == name)
    }

    /// The files of the template brazil-like with so many hydro plants, a number of [`BRAZIL_LIKE_HYDROS`].
    pub fn brazil_like(hydros: usize) -> CaseFiles {
        let mut files = CaseFiles::default();
        let (least, most) = (BRAZIL_LIKE_HYDROS.start(), BRAZIL_LIKE_HYDROS.end());
        brazil_like::make(hydros.clamp(*least, *most), &mut files);
        files
    }

    /// The files of a case like the template large, with so many hydro plants; with hyperplane production functions for
    /// all of them if `hyperplanes` is set.
    pub fn grown(hydros: usize, hyperplanes: bool) -> CaseFiles {
        let mut files = CaseFiles::default();
        let plants = grown::of_hydros(hydros, &mut files);
        if hyperplanes {
            hyperplanes::add(&plants, &mut files);
        }
        files
    }

    /// Its files, by path below the case.
    pub fn files(self) -> CaseFiles {
        let mut files = CaseFiles::default();
        (self.make)(&mut files);
        files
    }
}
