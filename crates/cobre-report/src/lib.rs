//! The results of a run as one HTML page that needs no network, or as pictures.
//!
//! [`Report::read`] turns the tables of an output directory into a description of charts; the page and the
//! pictures are two ways to draw the same description.
//!
//! The report of a run that made two iterations, as `cobre run --output` would have left it:
//!
//! ```
//! use cobre_report::Report;
//! use cobre_results::layout::{MANIFEST, convergence, in_policy};
//! use cobre_results::{Proofs, ResultsWriter, Rows};
//! use serde_json::json;
//!
//! let directory = tempfile::tempdir()?;
//! let proofs = Proofs { is_policy: |_| false, has_checkpoint: |_| false };
//! let writer = ResultsWriter::create(directory.path(), false, &[], "localhost", &proofs)?;
//! let mut rows = Rows::new(&convergence::schema());
//! for (iteration, bound) in [(1, 80.0), (2, 95.0)] {
//!     let row = convergence::Row {
//!         iteration,
//!         bound,
//!         estimate_mean: 100.0,
//!         estimate_half_width_95: Some(4.0),
//!         estimate_paths: 4,
//!         gap: Some(5.0 / bound),
//!         cuts: 4 * iteration,
//!         cuts_added: 4,
//!         lp_solves: 100 * iteration,
//!         upper_bound: None,
//!     };
//!     rows.push(&row.cells());
//! }
//! writer.write_table(convergence::schema(), &rows)?;
//! writer.write_json(&in_policy(MANIFEST), &json!({"sense": "min", "risk": "expectation"}))?;
//! writer.finish(&json!({"cobre": "0.1.0", "case": "river", "kind": "hydrothermal"}))?;
//! drop(writer); // another run may write there now
//!
//! let page = directory.path().join("report.html");
//! Report::read(directory.path())?.write_page(&page)?;
//! assert!(std::fs::read_to_string(&page)?.contains("Bound and estimate"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chart;
mod dates;
mod gather;
mod grid;
mod inflow_models;
mod input;
mod page;
mod palette;
mod png;
mod sections;
mod simulation;
mod statistics;
mod write;

use std::path::{Path, PathBuf};

use cobre_results::ResultsError;

pub use self::inflow_models::{InflowPlant, InflowSeason};

use self::chart::Section;
use self::input::ReportInput;
use self::simulation::Single;

/// A report that can be written.
#[derive(Debug)]
pub struct Report {
    /// The directory of the run.
    results: PathBuf,
    /// The name of the case.
    name: String,
    /// The line below the name: what the page is about, and by which version.
    about: String,
    /// Figures to begin with: what they are, and what they say.
    headline: Vec<(String, String)>,
    sections: Vec<Section>,
    footnote: &'static str,
    /// The scenarios that are shown one by one.
    singles: Vec<Single>,
}

impl Report {
    /// Reads an output directory.
    ///
    /// # Errors
    /// When it holds no finished run, or a file in it is damaged or cannot be read.
    pub fn read(output: &Path) -> Result<Self, ResultsError> {
        Self::read_with(output, &[])
    }

    /// As [`read`](Self::read); charts show these scenarios, by their labels or numbers.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and a scenario that there is not.
    pub fn read_with(output: &Path, scenarios: &[String]) -> Result<Self, ResultsError> {
        let input = ReportInput::open(output, scenarios)?;
        let singles = input.simulation.as_ref().map(|of| of.single.clone());
        let version = input
            .results
            .run
            .get("cobre")
            .and_then(|found| found.as_str());
        Ok(Self {
            results: output.to_owned(),
            name: input.name(),
            about: format!("Results of a run of Cobre {}", version.unwrap_or("?")),
            headline: sections::headline(&input)?,
            singles: singles.unwrap_or_default(),
            sections: sections::all(&input)?,
            footnote: page::FOOTNOTE,
        })
    }

    /// The page about inflow models that are estimated from the history of a case in a directory.
    pub fn inflow_models(case: &Path, plants: &[InflowPlant]) -> Self {
        let name = case.file_name().unwrap_or(case.as_os_str());
        Self {
            results: case.to_owned(),
            name: name.to_string_lossy().into_owned(),
            about: format!(
                "Inflow models estimated by Cobre {}",
                env!("CARGO_PKG_VERSION")
            ),
            headline: inflow_models::headline(plants),
            singles: Vec::new(),
            sections: inflow_models::sections(plants),
            footnote: "Charts have five significant digits; the Parquet tables have them all.",
        }
    }

    /// Writes the page, all of it or nothing. A page that is there is replaced; another file is not.
    ///
    /// # Errors
    /// When another file is there, or the page cannot be written.
    pub fn write_page(&self, place: &Path) -> Result<(), ResultsError> {
        let html = page::html(self);
        write::whole(&self.results, place, page::is_own, html.as_bytes())
    }

    /// Writes the page, and a picture of each chart into a directory, which is made if need be; returns the places of
    /// the pictures. Nothing is written if something else is in the way of one of them.
    ///
    /// # Errors
    /// When a file is there that is no part of a report, and when the directory or a file cannot be written.
    pub fn write(
        &self,
        page: &Path,
        pictures: Option<&Path>,
    ) -> Result<Vec<PathBuf>, ResultsError> {
        let Some(directory) = pictures else {
            return self.write_page(page).map(|()| Vec::new());
        };
        let pictures = self.pictures(directory);
        write::check(&self.results, page, page::is_own)?;
        write::check_directory(directory)?;
        for (place, ..) in &pictures {
            write::check(&self.results, place, png::is_own)?;
        }
        self.write_page(page)?;
        write::directory(&self.results, directory)?;
        for (place, panel, view) in &pictures {
            let picture = png::picture(panel, view, &self.singles);
            write::whole(&self.results, place, png::is_own, &picture)?;
        }
        Ok(pictures.into_iter().map(|(place, ..)| place).collect())
    }

    /// The place of each picture in a directory, and its chart.
    fn pictures(&self, directory: &Path) -> Vec<(PathBuf, &chart::Panel, &chart::View)> {
        let panels = self.sections.iter().flat_map(|section| &section.panels);
        let views = panels.flat_map(|panel| {
            let views = panel.views.iter().enumerate();
            views.map(move |(number, view)| (png::file_name(panel, number), panel, view))
        });
        views
            .map(|(name, panel, view)| (directory.join(name), panel, view))
            .collect()
    }
}
