//! Every backend × number of ranks × contract, on real processes.
//!
//! `cargo test -p cobre-testkit --test conformance -- shm/4` runs part of the table.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use cobre_testkit::contract::{CONTRACTS, Contract};
use cobre_testkit::process::{
    BACKENDS, BackendRow, ContractJob, RANKS, TestCell, Verdict, run_cells,
};

/// The random programs that every backend runs with every number of ranks.
const SEEDS: [u64; 4] = [1, 2, 3, 2026];

/// Collectives of a random program; the same for all backends, as their digests are compared.
const PROGRAM_CALLS: usize = 2000;

/// The digests of programs, by ranks and seed: the backend that printed it first, and the digest.
type Digests = RefCell<BTreeMap<(usize, u64), (&'static str, String)>>;

fn main() -> ExitCode {
    let digests = Digests::default();
    let cells = BACKENDS
        .iter()
        .flat_map(|row| RANKS.map(|ranks| (row, ranks)))
        .flat_map(|(row, ranks)| cells(row, ranks, &digests))
        .collect();
    run_cells(cells)
}

fn cells<'a>(row: &'static BackendRow, ranks: usize, digests: &'a Digests) -> Vec<TestCell<'a>> {
    let whole = format!("{}/{ranks}", row.name());
    if let Some(reason) = row.excuse_from_ranks(ranks) {
        let excuse = || Verdict::Excused(reason.to_owned());
        return vec![TestCell::new(whole, excuse)];
    }
    if let Some(verdict) = row.verdict_if_absent() {
        return vec![TestCell::new(whole, || verdict)];
    }
    let (possible, too_large): (Vec<&Contract>, Vec<_>) = CONTRACTS
        .iter()
        .partition(|contract| contract.min_size <= ranks);
    let mut cells = Vec::new();
    if !too_large.is_empty() {
        let text = format!("{} contracts need more ranks", too_large.len());
        cells.push(TestCell::new(format!("{whole}/…"), || {
            Verdict::Excused(text)
        }));
    }
    for contract in possible {
        let name = format!("{whole}/{}", contract.name);
        if let Some(reason) = row.excuse_from(contract.name) {
            let excuse = move || Verdict::Excused(reason.to_owned());
            cells.push(TestCell::new(name, excuse));
            continue;
        }
        for seed in seeds(contract, ranks) {
            let job = ContractJob {
                program: Path::new(env!("CARGO_BIN_EXE_rank")),
                row,
                ranks,
                contract: contract.name,
                seed,
                calls: match contract.name {
                    Contract::PROGRAM => PROGRAM_CALLS,
                    _ => row.calls,
                },
                fault: None,
            };
            cells.push(TestCell::new(format!("{name} seed {seed}"), move || {
                judge(&job, digests)
            }));
        }
    }
    cells
}

/// For a random program the seeds of all; where one rank is the odd one out, the first and the last
/// rank; else one.
fn seeds(contract: &Contract, ranks: usize) -> Vec<u64> {
    if contract.name == Contract::PROGRAM {
        SEEDS.to_vec()
    } else if contract.odd_one_out && ranks > 1 {
        vec![0, ranks as u64 - 1]
    } else {
        vec![0]
    }
}

fn judge(job: &ContractJob<'_>, digests: &Digests) -> Verdict {
    let report = job.run();
    if let Some(trouble) = report.trouble() {
        return Verdict::Broken(format!("{}\n{trouble}", job.command()));
    }
    let odd = (job.seed % job.ranks as u64) as usize;
    if job.contract.starts_with("abort/") && report.named_rank != Some(odd) {
        let (command, named_rank) = (job.command(), report.named_rank);
        return Verdict::Broken(format!(
            "{command}\n  the launcher names {named_rank:?}, not {odd}"
        ));
    }
    let took = format!("{:.0?}", report.took);
    if job.contract != Contract::PROGRAM {
        return Verdict::Held(took);
    }
    match agreed(job, &report.digests, digests) {
        Ok(digest) => Verdict::Held(format!("digest {digest}, {took}")),
        Err(difference) => Verdict::Broken(format!("{}\n  {difference}", job.command())),
    }
}

/// The digest that all ranks, and all backends so far, agree on.
fn agreed(job: &ContractJob<'_>, found: &[String], digests: &Digests) -> Result<String, String> {
    let [first, others @ ..] = found else {
        return Err("no rank printed a digest".to_owned());
    };
    if found.len() != job.ranks || others.iter().any(|digest| digest != first) {
        return Err(format!("the ranks' digests: {found:?}"));
    }
    let mut known = digests.borrow_mut();
    let (backend, digest) = known
        .entry((job.ranks, job.seed))
        .or_insert((job.row.backend, first.clone()));
    if digest == first {
        Ok(first.clone())
    } else {
        Err(format!("digest {first}, but {digest} on {backend}"))
    }
}
