//! Contracts by which energy is imported or exported.

use super::bounds::{check_order, with_bounds};
use super::index::Index;
use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::{self, ContractBounds, ContractKind};
use crate::hydrothermal::table::Row;

/// A contract.
#[derive(Debug)]
pub(crate) struct ResolvedContract {
    pub(crate) label: String,
    pub(crate) bus: usize,
    pub(crate) kind: ContractKind,
    /// By stage and block.
    pub(crate) terms: Vec<Vec<ContractTerms>>,
}

/// Terms of a contract in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContractTerms {
    /// MW.
    pub(crate) min: f64,
    /// MW.
    pub(crate) max: f64,
    /// $/MWh; below 0 for revenue.
    pub(crate) price: f64,
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<ResolvedContract>, Index) {
    let list = Place::file(equipment::CONTRACTS).key("contracts");
    let contracts = files.contracts.iter().flat_map(|file| &file.contracts);
    let things = contracts.clone().map(|contract| {
        let terms = ContractTerms {
            min: contract.limits.min_mw.0,
            max: contract.limits.max_mw.0,
            price: contract.price_per_mwh.0,
        };
        (contract.id, contract.name.as_str(), terms)
    });
    let (index, terms) = with_bounds(
        ("contract", &list),
        things,
        (stages, stage_index),
        &files.contract_bounds,
        |row: &ContractBounds| (row.contract_id, row.stage_id, row.block_id),
        |terms, row| {
            terms.min = row.min_mw.map_or(terms.min, |value| value.0);
            terms.max = row.max_mw.map_or(terms.max, |value| value.0);
            terms.price = row.price_per_mwh.map_or(terms.price, |value| value.0);
        },
        findings,
    );
    let mut found = Vec::new();
    for (place, (contract, mut terms)) in contracts.zip(terms).enumerate() {
        let at = list.index(place);
        let bus = buses.find(contract.bus_id, &at.key("bus_id"), findings);
        let (least, most) = (contract.limits.min_mw.0, contract.limits.max_mw.0);
        if least > most {
            let message = format!("{least} is above max_mw, {most}");
            findings.wrong(&at.key("limits.min_mw"), message);
        } else {
            let what = format!("contract {}", contract.id);
            let range = |terms: &ContractTerms| (terms.min, terms.max);
            check_order(ContractBounds::FILE, &what, &terms, stages, range, findings);
        }
        let window = StageWindow::new(
            contract.entry_stage_id,
            contract.exit_stage_id,
            &at,
            findings,
        );
        window.close(stages, &mut terms, |terms| {
            (terms.min, terms.max) = (0.0, 0.0);
        });
        found.push(ResolvedContract {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            kind: contract.r#type,
            terms,
        });
    }
    (found, index)
}
