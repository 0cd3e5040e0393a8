//! The plans of paths that files and options ask for.

use std::cell::OnceCell;

use cobre_sddp::{MAX_PASSES, MAX_PATHS};

use super::given::GivenRow;
use super::{GivenScenarios, PathPlan, PathPlans, SeriesPlan, asked, enumerated, history};
use crate::Options;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::config::{self, ScenarioSource, SchemeKind};
use crate::hydrothermal::files::scenarios::{ExternalInflow, ExternalLoad, ExternalSources};
use crate::hydrothermal::sampling::Kinds;
use crate::hydrothermal::system::System;
use crate::hydrothermal::table::Row;

/// The plans of a case; says what is wrong with them.
pub(crate) fn resolve(
    files: &Files,
    system: &System,
    options: &Options,
    findings: &mut Findings,
) -> PathPlans {
    let training = files.config.training.scenario_source.as_ref();
    let simulation = files.config.simulation.as_ref();
    let own = simulation.and_then(|simulation| simulation.scenario_source.as_ref());
    let at = |part: &str| Place::file(config::FILE).key(part).key("scenario_source");
    let cases = CaseScenarios::new(files, system);
    let planned = training.map(|source| cases.plan(source, &at("training"), findings));
    let mut training = planned.flatten();
    let mut simulation = match (&options.scenarios, own) {
        (Some(scenarios), _) => asked::plan(files, system, scenarios, findings),
        (None, Some(own)) => cases.plan(own, &at("simulation"), findings),
        (None, None) => training.clone(),
    };
    let all = |part: &str| Place::file(config::FILE).key(part).key("selection");
    if files.config.training.selection.is_some() {
        training = enumerated::plan(training, system, MAX_PASSES, &all("training"), findings);
    }
    if files.config.simulates_all() && options.scenarios.is_none() {
        simulation = enumerated::plan(simulation, system, MAX_PATHS, &all("simulation"), findings);
    }
    cases.unused(options, findings);
    for (plan, part) in [(&training, "training"), (&simulation, "simulation")] {
        let given = plan.as_ref().and_then(|plan| plan.inflows.given());
        if given.is_some() && system.has_regimes() {
            let at = match &options.scenarios {
                Some(_) if part == "simulation" => Place::file("--scenarios"),
                _ => at(part),
            };
            let message = "given inflows do not say which regime of policy_graph.nodes a path is in: use in_sample or \
                           out_of_sample";
            findings.wrong(&at, message);
            break;
        }
    }
    PathPlans {
        training,
        simulation,
    }
}

/// The external scenarios of a case, each kind read once.
struct CaseScenarios<'c> {
    files: &'c Files,
    system: &'c System,
    inflows: OnceCell<Option<GivenScenarios>>,
    loads: OnceCell<Option<GivenScenarios>>,
    sources: OnceCell<Option<GivenScenarios>>,
}

impl<'c> CaseScenarios<'c> {
    fn new(files: &'c Files, system: &'c System) -> Self {
        Self {
            files,
            system,
            inflows: OnceCell::new(),
            loads: OnceCell::new(),
            sources: OnceCell::new(),
        }
    }

    /// The plan of a source of scenarios; none if all series are those of openings.
    fn plan(
        &self,
        source: &ScenarioSource,
        at: &Place,
        findings: &mut Findings,
    ) -> Option<PathPlan> {
        let scheme = |scheme: &Option<config::Scheme>| {
            let scheme = scheme.as_ref();
            scheme.map_or(SchemeKind::InSample, |scheme| scheme.scheme)
        };
        let kinds = [&source.inflow, &source.load, &source.ncs].map(scheme);
        if source.historical_years.is_some() && kinds[0] != SchemeKind::Historical {
            let message = "inflow.scheme is not \"historical\"";
            findings.wrong(&at.key("historical_years"), message);
        }
        if kinds.iter().all(|kind| *kind == SchemeKind::InSample) {
            return None;
        }
        let [inflow, load, ncs] = kinds;
        for (key, kind) in [("load", load), ("ncs", ncs)] {
            if kind == SchemeKind::Historical {
                let message = "\"historical\" is for inflows: there is no history of these";
                findings.wrong(&at.key(key).key("scheme"), message);
            }
        }
        let inflows = match inflow {
            SchemeKind::Historical => {
                let years = source.historical_years.as_ref();
                let key = years.map_or("inflow", |_| "historical_years");
                let found = history::years(self.system, years, &at.key(key), findings);
                found.map_or(SeriesPlan::InSample, SeriesPlan::Given)
            }
            scheme => series(scheme, || self.inflows(at, findings)),
        };
        let mut plan = PathPlan {
            kinds: Kinds::of(self.system),
            inflows,
            loads: series(load, || self.loads(at, findings)),
            sources: series(ncs, || self.sources(at, findings)),
            enumerated: None,
        };
        plan.pair(at, findings);
        Some(plan)
    }

    fn inflows(&self, at: &Place, findings: &mut Findings) -> Option<GivenScenarios> {
        let (files, system) = (self.files, self.system);
        let found = self.inflows.get_or_init(|| {
            let rows = inflow_rows(&files.external_inflows, &case_file(ExternalInflow::FILE));
            needed(&rows, ExternalInflow::FILE, &at.key("inflow"), findings)?;
            inflows(&rows, system, &Place::file(ExternalInflow::FILE), findings)
        });
        found.clone()
    }

    fn loads(&self, at: &Place, findings: &mut Findings) -> Option<GivenScenarios> {
        let (files, system) = (self.files, self.system);
        let found = self.loads.get_or_init(|| {
            let rows = load_rows(&files.external_loads, &case_file(ExternalLoad::FILE));
            needed(&rows, ExternalLoad::FILE, &at.key("load"), findings)?;
            loads(&rows, system, &Place::file(ExternalLoad::FILE), findings)
        });
        found.clone()
    }

    fn sources(&self, at: &Place, findings: &mut Findings) -> Option<GivenScenarios> {
        let (files, system) = (self.files, self.system);
        let found = self.sources.get_or_init(|| {
            let rows = source_rows(&files.external_sources, &case_file(ExternalSources::FILE));
            needed(&rows, ExternalSources::FILE, &at.key("ncs"), findings)?;
            sources(&rows, system, &Place::file(ExternalSources::FILE), findings)
        });
        found.clone()
    }

    /// Warns of tables of scenarios that no source asks for.
    fn unused(&self, options: &Options, findings: &mut Findings) {
        let files = self.files;
        let tables = [
            (
                ExternalInflow::FILE,
                files.external_inflows.is_empty(),
                self.inflows.get().is_some(),
            ),
            (
                ExternalLoad::FILE,
                files.external_loads.is_empty(),
                self.loads.get().is_some(),
            ),
            (
                ExternalSources::FILE,
                files.external_sources.is_empty(),
                self.sources.get().is_some(),
            ),
        ];
        for (file, empty, used) in tables {
            if !empty && !used && options.scenarios.is_none() {
                let message = "nothing reads it: no scenario_source of config.json has the scheme \"external\" for it";
                findings.doubtful(&Place::file(file), message);
            }
        }
    }
}

fn series(scheme: SchemeKind, given: impl FnOnce() -> Option<GivenScenarios>) -> SeriesPlan {
    match scheme {
        SchemeKind::InSample | SchemeKind::Historical => SeriesPlan::InSample,
        SchemeKind::OutOfSample => SeriesPlan::OutOfSample,
        // What is wrong is said; nothing is solved.
        SchemeKind::External => given().map_or(SeriesPlan::InSample, SeriesPlan::Given),
    }
}

fn needed(rows: &[GivenRow], file: &str, at: &Place, findings: &mut Findings) -> Option<()> {
    if rows.is_empty() {
        findings.wrong(&at.key("scheme"), format!("\"external\" needs {file}"));
        return None;
    }
    Some(())
}

/// A file with scenarios: its name in messages, and the name of a scenario that has no number.
pub(super) struct ScenarioFile {
    pub(super) at: Place,
    pub(super) name: String,
}

fn case_file(file: &str) -> ScenarioFile {
    ScenarioFile {
        at: Place::file(file),
        name: "1".to_owned(),
    }
}

impl ScenarioFile {
    fn row(&self, number: usize, scenario: Option<i32>, at: (i32, i32), value: f64) -> GivenRow {
        GivenRow {
            scenario: scenario.map_or_else(|| self.name.clone(), |id| id.to_string()),
            stage: at.0,
            thing: at.1,
            value,
            at: self.at.row(number),
        }
    }
}

pub(super) fn inflow_rows(rows: &[ExternalInflow], file: &ScenarioFile) -> Vec<GivenRow> {
    let rows = rows.iter().enumerate();
    let rows = rows.map(|(number, row)| {
        let at = (row.stage_id, row.hydro_id);
        file.row(number, row.scenario_id, at, row.value_m3s.0)
    });
    rows.collect()
}

pub(super) fn load_rows(rows: &[ExternalLoad], file: &ScenarioFile) -> Vec<GivenRow> {
    let rows = rows.iter().enumerate();
    let rows = rows.map(|(number, row)| {
        let at = (row.stage_id, row.bus_id);
        file.row(number, row.scenario_id, at, row.value_mw.0)
    });
    rows.collect()
}

pub(super) fn source_rows(rows: &[ExternalSources], file: &ScenarioFile) -> Vec<GivenRow> {
    let rows = rows.iter().enumerate();
    let rows = rows.map(|(number, row)| {
        let at = (row.stage_id, row.ncs_id);
        file.row(number, row.scenario_id, at, row.value.0)
    });
    rows.collect()
}

pub(super) fn inflows(
    rows: &[GivenRow],
    system: &System,
    file: &Place,
    findings: &mut Findings,
) -> Option<GivenScenarios> {
    let indices = (&system.indices.hydros, &system.indices.stages);
    let before = findings.errors();
    let found = GivenScenarios::of_rows(rows, indices, |_| true, file, findings)?;
    (findings.errors() == before).then(|| found.of_inflows(system))
}

pub(super) fn loads(
    rows: &[GivenRow],
    system: &System,
    file: &Place,
    findings: &mut Findings,
) -> Option<GivenScenarios> {
    let varies = |bus: usize| {
        system.buses[bus]
            .load
            .iter()
            .any(|load| load.deviation > 0.0)
    };
    let indices = (&system.indices.buses, &system.indices.stages);
    GivenScenarios::of_rows(rows, indices, varies, file, findings)
}

pub(super) fn sources(
    rows: &[GivenRow],
    system: &System,
    file: &Place,
    findings: &mut Findings,
) -> Option<GivenScenarios> {
    let varies = |source: usize| {
        let mut stages = system.sources[source].availability.iter();
        stages.any(|share| share.deviation > 0.0)
    };
    let indices = (&system.indices.sources, &system.indices.stages);
    GivenScenarios::of_rows(rows, indices, varies, file, findings)
}
