//! Inflows in the regimes of a Markov chain.

use super::buses::spread;
use super::index::Index;
use super::inflow::Inflow;
use super::nodes::RegimeNode;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::scenarios::{InflowRegimes, InflowStats};
use crate::hydrothermal::table::Row;

/// Gives inflows the means and deviations of regimes; says what names nothing, or comes twice.
///
/// A regime shifts the mean and scales the noise of a stage. Coefficients of past inflows stay, and are those of
/// deviations from the means without a regime: the regime of the past is not known.
pub(super) fn resolve(
    files: &Files,
    (plants, stages): (&Index, &Index),
    nodes: &[RegimeNode],
    inflows: &mut [Inflow],
    findings: &mut Findings,
) {
    for (number, row) in files.inflow_regimes.iter().enumerate() {
        let at = Place::file(InflowRegimes::FILE).row(number);
        let plant = plants.find(row.hydro_id, &at, findings);
        let stage = stages.find(row.stage_id, &at, findings);
        let regime = row.scenario_id;
        if !nodes.iter().any(|node| node.regime == Some(regime)) {
            let message =
                format!("no node of policy_graph in stages.json has scenario_id {regime}");
            findings.wrong(&at, message);
        }
        let (Some(plant), Some(stage)) = (plant, stage) else {
            continue;
        };
        let inflow = &mut inflows[plant];
        let Some(usual) = inflow.stages[stage].overall else {
            if !inflow.known {
                let message = format!(
                    "hydro plant {} has no row in {}, which says its inflows without a regime",
                    row.hydro_id,
                    InflowStats::FILE
                );
                findings.wrong(&at, message);
            }
            continue;
        };
        let own = spread(row.mean_m3s.0, row.std_m3s.0);
        let mut model = inflow.stages[stage].clone();
        model.constant += own.mean - usual.mean;
        model.deviation = own.deviation * model.residual;
        model.overall = Some(own);
        if inflow.regimes.insert((regime, stage), model).is_some() {
            let message = format!(
                "there is a row of regime {regime}, hydro plant {}, stage {} already",
                row.hydro_id, row.stage_id
            );
            findings.wrong(&at, message);
        }
    }
    unused(files, nodes, findings);
}

/// Warns of regimes that the table does not have.
fn unused(files: &Files, nodes: &[RegimeNode], findings: &mut Findings) {
    let rows = &files.inflow_regimes;
    let mut regimes: Vec<i32> = nodes.iter().filter_map(|node| node.regime).collect();
    regimes.sort_unstable();
    regimes.dedup();
    for regime in regimes {
        if !rows.iter().any(|row| row.scenario_id == regime) {
            let message = format!(
                "it has no row of scenario_id {regime}: inflows of that regime are those without one"
            );
            findings.doubtful(&Place::file(InflowRegimes::FILE), message);
        }
    }
}
