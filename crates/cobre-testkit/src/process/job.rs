//! One job: the ranks of one contract, started as processes.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use cobre_launch::{FailureCause, Launch, Outcome, Output, RankOutcome, Status};

use super::leftovers::Surroundings;
use super::table::BackendRow;
use crate::mutant::Fault;
use crate::program::DIGEST;

/// Bytes kept of what each rank writes.
const OUTPUT: usize = 256 << 10;

/// Exit code of a Rust program whose main thread panicked.
const PANICKED: Status = Status::Exited(101);

/// A job of the program `rank`: backend, ranks, contract.
#[derive(Debug, Clone, Copy)]
pub struct ContractJob<'a> {
    /// The program `rank`.
    pub program: &'a Path,
    /// The backend, and how it is run.
    pub row: &'a BackendRow,
    /// Ranks.
    pub ranks: usize,
    /// The contract's name.
    pub contract: &'a str,
    /// See [`Budget::seed`](crate::budget::Budget::seed).
    pub seed: u64,
    /// See [`Budget::calls`](crate::budget::Budget::calls).
    pub calls: usize,
    /// The fault that the communicator has on purpose.
    pub fault: Option<Fault>,
}

/// The outcome of a job.
#[derive(Debug)]
pub struct JobReport {
    /// Every rank kept the contract.
    pub kept: bool,
    /// A rank found the contract broken, rather than hanging or being killed.
    pub found_broken: bool,
    /// The rank that the launcher holds responsible; also where a rank aborted and all exited with 0.
    pub named_rank: Option<usize>,
    /// Objects, processes and files that were left behind.
    pub leftovers: Vec<String>,
    /// The digests that ranks printed.
    pub digests: Vec<String>,
    /// The output of every rank, and its end.
    pub text: String,
    /// Wall-clock time of the job.
    pub took: Duration,
}

impl ContractJob<'_> {
    /// Runs the job to its end.
    pub fn run(&self) -> JobReport {
        let surroundings = Surroundings::now();
        let scratch = tempfile::Builder::new()
            .prefix("cobre-testkit-")
            .tempdir()
            .expect("a temporary directory");
        let marker = scratch.path().display().to_string();
        let start = Instant::now();
        let outcome = self.launch(&marker);
        let took = start.elapsed();
        let mut leftovers = surroundings.left_behind(&marker);
        let path = scratch.path().to_owned();
        if scratch.close().is_err() || path.exists() {
            leftovers.push(format!("directory {}", path.display()));
        }
        match outcome {
            Err(error) => JobReport {
                kept: false,
                found_broken: false,
                named_rank: None,
                leftovers,
                digests: Vec::new(),
                text: format!("  not launched: {}\n", crate::check::told(&error)),
                took,
            },
            Ok(outcome) => JobReport {
                kept: outcome.ranks.iter().all(finished_well) && !outcome.survivors,
                found_broken: outcome.ranks.iter().any(|rank| rank.status == PANICKED),
                named_rank: match outcome.cause {
                    Some(FailureCause::Rank { rank, .. }) => Some(rank),
                    _ => None,
                },
                leftovers,
                digests: digests(&outcome),
                text: written(&outcome),
                took,
            },
        }
    }

    fn launch(&self, scratch: &str) -> Result<Outcome, cobre_launch::LaunchError> {
        let mut launch = Launch::new(self.program, self.ranks)
            .backend(self.row.backend)
            .timeout(self.row.deadline)
            .output(Output::Capture { limit: OUTPUT })
            .env("TESTKIT_JOB", scratch)
            .env("RUST_BACKTRACE", "0")
            .args([self.contract, "--scratch", scratch])
            .args(["--seed".to_owned(), self.seed.to_string()])
            .args(["--calls".to_owned(), self.calls.to_string()]);
        for (variable, value) in self.row.setting.into_iter().chain(self.row.also) {
            launch = launch.env(variable, value);
        }
        if let Some(fault) = self.fault {
            launch = launch.args(["--mutant", fault.name()]);
        }
        launch.run()
    }

    /// As a user would run one rank of it.
    pub fn command(&self) -> String {
        let Self {
            contract,
            seed,
            calls,
            ..
        } = self;
        let fault = self
            .fault
            .map_or(String::new(), |f| format!(" --mutant {}", f.name()));
        format!("rank {contract} --seed {seed} --calls {calls} --scratch DIR{fault}")
    }
}

impl JobReport {
    /// The differences from a job that keeps its contract; `None` if there are none.
    pub fn trouble(&self) -> Option<String> {
        let mut text = String::new();
        if !self.kept {
            text.push_str(&self.text);
        }
        for left in &self.leftovers {
            let _ = writeln!(text, "  left behind: {left}");
        }
        (!text.is_empty()).then_some(text)
    }
}

fn finished_well(rank: &RankOutcome) -> bool {
    rank.status.success() && !rank.ended
}

fn digests(outcome: &Outcome) -> Vec<String> {
    // An MPI launcher prints those of all its ranks.
    let of_process = |rank: &RankOutcome| {
        let text = String::from_utf8_lossy(&rank.stdout).into_owned();
        let digest = |line: &str| Some(line.strip_prefix(DIGEST)?.strip_prefix(' ')?.to_owned());
        text.lines().filter_map(digest).collect::<Vec<_>>()
    };
    outcome.ranks.iter().flat_map(of_process).collect()
}

fn written(outcome: &Outcome) -> String {
    let mut text = outcome.message("  launcher");
    for (number, rank) in outcome.ranks.iter().enumerate() {
        let ended = if rank.ended { ", told to end" } else { "" };
        let _ = writeln!(text, "  rank {number}: {:?}{ended}", rank.status);
        for (name, bytes) in [("out", &rank.stdout), ("err", &rank.stderr)] {
            for line in String::from_utf8_lossy(bytes).lines() {
                let _ = writeln!(text, "    {name}: {line}");
            }
        }
    }
    text
}
