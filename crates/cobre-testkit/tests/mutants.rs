//! Every mutant, in the smallest world in which it shows, on every backend that has that many ranks:
//! the contracts that are there to notice it must fail.

use std::path::Path;
use std::process::ExitCode;

use cobre_testkit::budget::Budget;
use cobre_testkit::mutant::Fault;
use cobre_testkit::process::{BACKENDS, BackendRow, ContractJob, TestCell, Verdict, run_cells};

fn main() -> ExitCode {
    let cells = Fault::ALL.iter().flat_map(|fault| cells(*fault)).collect();
    run_cells(cells)
}

fn cells(fault: Fault) -> Vec<TestCell<'static>> {
    let (name, ranks) = (fault.name(), fault.min_size());
    let rows: Vec<&BackendRow> = BACKENDS
        .iter()
        // A fault lies above the backend; those of every build show it.
        .filter(|row| !row.opt_in && row.excuse_from_ranks(ranks).is_none())
        .collect();
    if rows.is_empty() {
        let text = format!("no backend runs with {ranks} ranks; the unit tests of this crate do");
        return vec![TestCell::new(name.to_owned(), || Verdict::Excused(text))];
    }
    let pairs = rows.into_iter().flat_map(|row| {
        fault
            .caught_by()
            .iter()
            .map(move |contract| (row, *contract))
    });
    pairs
        .map(|(row, contract)| {
            let backend = row.backend;
            let cell = format!("{name} on {backend}/{ranks}/{contract}");
            TestCell::new(cell, move || judge(row, fault, contract))
        })
        .collect()
}

fn judge(row: &'static BackendRow, fault: Fault, contract: &str) -> Verdict {
    let backend = row.backend;
    if let Some(verdict) = row.verdict_if_absent() {
        return verdict;
    }
    if let Some(reason) = row.excuse_from(contract) {
        return Verdict::Excused(format!("{backend} is excused from {contract}: {reason}"));
    }
    let job = ContractJob {
        program: Path::new(env!("CARGO_BIN_EXE_rank")),
        row,
        ranks: fault.min_size(),
        contract,
        seed: 0,
        calls: Budget::FOR_MUTANTS,
        fault: Some(fault),
    };
    let report = job.run();
    if report.found_broken && report.leftovers.is_empty() {
        Verdict::Held(format!("noticed, {:.0?}", report.took))
    } else {
        let left = report.leftovers.join(", ");
        let (command, text) = (job.command(), report.text);
        Verdict::Broken(format!(
            "{command}\n  not noticed\n{text}  left behind: {left}"
        ))
    }
}
