//! The terminal value of a case: water values in a table, or the cuts of another policy.

use std::collections::BTreeMap;
use std::path::Path;

use cobre_sddp::{Problem, TerminalValue};

use super::files::terminal::TerminalWaterValues;
use super::files::{Files, config};
use super::inflow_sign;
use super::system::System;
use super::table::Row;
use crate::Options;
use crate::boundary::{Boundary, LastStage};
use crate::finding::{Findings, Place};

/// The value after a node of the last stage.
#[derive(Debug)]
pub(crate) struct NodeTerminal {
    /// The place of the node; all of them if none.
    node: Option<usize>,
    value: TerminalValue,
}

/// The terminal values of a case; none if it has none. Says what is wrong with them.
pub(super) fn resolve(
    case: &Path,
    files: &Files,
    system: &System,
    options: &Options,
    findings: &mut Findings,
) -> Vec<NodeTerminal> {
    let policy = files.config.policy.as_ref();
    let boundary = policy.and_then(|policy| policy.boundary.as_ref());
    let at = Place::file(config::FILE).key("policy.boundary");
    let Some(boundary) = boundary else {
        let rows = &files.terminal_water_values;
        if rows.is_empty() {
            return Vec::new();
        }
        let value = of_table(rows, system, findings);
        return vec![NodeTerminal { node: None, value }];
    };
    if !files.terminal_water_values.is_empty() {
        let message = format!(
            "{} is there too: one of them says the terminal value",
            TerminalWaterValues::FILE
        );
        findings.wrong(&at, message);
        return Vec::new();
    }
    let Some(last) = files.stages.stages.last() else {
        return Vec::new();
    };
    let (start, end) = (last.start_date.to_string(), last.end_date.to_string());
    let source = Boundary {
        path: case.join(&boundary.path),
        source_stage: boundary.source_stage.as_ref().map(|stage| stage.0.clone()),
    };
    if source.fictitious_cost() > 0.0 {
        prices(&source, system, options, &at, findings);
    }
    let last = system.nodes.iter().enumerate();
    let last = last.filter(|(_, node)| node.stage + 1 == system.stages.len());
    // Each regime takes the cuts of its own.
    let found = last.map(|(place, node)| {
        let value = source.read(&LastStage {
            node: &node.name,
            start_date: &start,
            end_date: &end,
        })?;
        let node = Some(place);
        Ok(NodeTerminal { node, value })
    });
    let found: Result<Vec<_>, String> = found.collect();
    found.unwrap_or_else(|wrong| {
        findings.wrong(&at, wrong);
        Vec::new()
    })
}

/// Says that cuts contain prices of truncation that nobody pays: they move all figures of an expectation, and under a risk
/// measure they would decide which outcomes are the worst.
fn prices(
    source: &Boundary,
    system: &System,
    options: &Options,
    at: &Place,
    findings: &mut Findings,
) {
    let shown = source.path.display();
    let averse = inflow_sign::risk_measure(system, options);
    if let Some(risk) = averse {
        let message = format!(
            "the cuts of {shown} contain the price of truncated inflows, which nobody pays, and under {risk} that price \
             would decide which outcomes are the worst: train that study with \"bounded_noise\""
        );
        findings.wrong(at, message);
    } else {
        let message = format!(
            "the cuts of {shown} contain the price of truncated inflows after the end of this study, which nobody pays: \
             bound and estimate contain it, decisions do not depend on it; \"bounded_noise\" there has no such price"
        );
        findings.doubtful(at, message);
    }
}

/// The cuts of a table of water values, one after the other.
fn of_table(
    rows: &[TerminalWaterValues],
    system: &System,
    findings: &mut Findings,
) -> TerminalValue {
    let at = Place::file(TerminalWaterValues::FILE);
    let stores: Vec<usize> = (0..system.hydros.len())
        .filter(|&place| system.hydros[place].stores())
        .collect();
    let mut cuts: BTreeMap<Option<i32>, (f64, Vec<Option<f64>>)> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        let place = at.row(number);
        let Some(plant) = system.indices.hydros.find(row.hydro_id, &place, findings) else {
            continue;
        };
        let Some(state) = stores.iter().position(|&own| own == plant) else {
            findings.wrong(
                &place,
                format!("hydro plant {} stores nothing", row.hydro_id),
            );
            continue;
        };
        let most = system.hydros[plant]
            .limits
            .last()
            .map_or(0.0, |limits| limits.max_storage);
        let storage = row.storage_hm3.map_or(most, |storage| storage.0);
        let empty = || (0.0, vec![None; stores.len()]);
        let (intercept, slopes) = cuts.entry(row.cut_id).or_insert_with(empty);
        *intercept += row.water_value.0 * storage;
        if slopes[state].replace(-row.water_value.0).is_some() {
            let message = format!(
                "there is a row of hydro plant {} in this cut already",
                row.hydro_id
            );
            findings.wrong(&place, message);
        }
    }
    let name = |&place: &usize| format!("storage.{}", system.hydros[place].label);
    let cut = |(intercept, slopes): (f64, Vec<Option<f64>>)| {
        let slopes = slopes.into_iter().map(Option::unwrap_or_default);
        (intercept, slopes.collect())
    };
    TerminalValue {
        states: stores.iter().map(name).collect(),
        cuts: cuts.into_values().map(cut).collect(),
    }
}

/// Puts terminal values after the last stage. The other study may know nothing of past inflows: they change
/// nothing after the end then. A table has storages alone.
pub(super) fn put(
    values: &[NodeTerminal],
    is_table: bool,
    problem: &mut Problem,
) -> Result<(), Vec<String>> {
    let may_lack = |name: &str| is_table || name.starts_with("inflow_lag");
    for NodeTerminal { node, value } in values {
        let is_own = |place: usize| node.is_none_or(|node| node == place);
        problem.set_terminal_value_of(is_own, value, may_lack)?;
    }
    Ok(())
}

/// The largest slope of a state in terminal values, either way.
pub(super) fn steepest(values: &[NodeTerminal], state: &str) -> f64 {
    let slopes = values.iter().flat_map(|NodeTerminal { value, .. }| {
        let place = value.states.iter().position(|name| name == state);
        let of_cut = move |cut: &(f64, Vec<f64>)| place.map_or(0.0, |place| cut.1[place].abs());
        value.cuts.iter().map(of_cut)
    });
    slopes.fold(0.0, f64::max)
}
