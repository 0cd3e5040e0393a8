//! The one line of JSON, and what is said when there is no result.

use cobre_case::CaseError;
use cobre_comm::terminal;
use cobre_launch::{Cause, Outcome, RankOutcome, Status};
use cobre_sddp::SddpError;
use cobre_sddp::problem::Sense;
use cobre_sddp::run::Results;
use serde_json::{Map, Value, json};

use super::NAME;
use crate::exit::{self, say_json};

/// Why there is no result.
pub(super) struct Failure {
    kind: &'static str,
    message: String,
    more: Map<String, Value>,
}

impl Failure {
    pub(super) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            more: Map::new(),
        }
    }

    pub(super) fn of_case(error: &CaseError) -> Self {
        let kind = if exit::of_case(error) == exit::IO {
            "io"
        } else {
            "input"
        };
        let mut failure = Self::new(kind, exit::told(error));
        let errors = error.errors();
        if !errors.is_empty() {
            failure.more.insert("errors".to_owned(), json!(errors));
        }
        failure
    }

    pub(super) fn of_run(error: &SddpError) -> Self {
        let mut failure = Self::new(error.kind(), exit::told(error));
        if let SddpError::Solver {
            failure: solver, ..
        } = error
        {
            let more = [
                ("node", json!(solver.node)),
                ("opening", json!(solver.opening)),
                (
                    "file",
                    json!(solver.file.as_ref().map(|file| file.to_string_lossy())),
                ),
            ];
            failure
                .more
                .extend(more.map(|(name, value)| (name.to_owned(), value)));
        }
        failure
    }

    /// Says it on standard error, and as JSON if asked for; returns `code`.
    pub(super) fn tell(self, code: u8, json: bool) -> u8 {
        self.tell_if(true, code, json)
    }

    /// As [`tell`](Self::tell) on a rank that speaks; returns `code` on every rank.
    pub(super) fn tell_if(self, speaks: bool, code: u8, json: bool) -> u8 {
        if !speaks {
            return code;
        }
        exit::fail(code, NAME, &self.message);
        if json {
            self.tell_json();
        }
        code
    }

    /// Prints it as one line of JSON.
    pub(super) fn tell_json(mut self) {
        self.more.insert("kind".to_owned(), json!(self.kind));
        self.more.insert("message".to_owned(), json!(self.message));
        say_json(&json!({ "error": self.more }));
    }
}

/// Says how ranks that this process has started ended. Rank 0 has told the result or the error
/// itself, unless it was killed.
pub(super) fn tell_outcome(outcome: &Outcome, code: u8, json: bool, name: &str) {
    let Some(cause) = &outcome.cause else {
        return;
    };
    let first = &outcome.ranks[0];
    let spoke =
        matches!(first.status, Status::Exited(status) if (1..=5).contains(&status) || status == 64);
    let told = match cause {
        // What such a rank wrote is there already.
        Cause::Rank { rank, .. } => matches!(
            outcome.ranks[*rank],
            RankOutcome {
                status: Status::Exited(1..=5 | 64),
                ended: false,
                ..
            }
        ),
        Cause::Signal(_) => code == exit::STOPPED,
        _ => false,
    };
    let message = outcome.message(name);
    if !told {
        exit::complain(&message);
    }
    if json && !spoke && code != exit::DONE {
        let line = message.lines().next().unwrap_or_default();
        say_json(&json!({"error": {"kind": "rank", "message": line}}));
    }
}

/// Prints the results on one line.
///
/// # Errors
/// When standard output does not take them.
pub(super) fn tell_results(
    sense: Sense,
    results: &Results,
    load: f64,
    total: f64,
) -> std::io::Result<()> {
    let (estimate, source) = match results.simulated {
        Some(estimate) => (estimate, "simulation"),
        None => (results.trained.estimate, "training"),
    };
    let seconds = results.seconds;
    let line = json!({
            "sense": sense.name(),
            "bound": results.trained.bound,
            "estimate": {
                "mean": estimate.mean,
                "half_width_95": estimate.half_width_95,
                "paths": estimate.paths,
                "source": source,
            },
            "iterations": results.trained.iterations.len(),
            "stop_reason": results.trained.reason.to_string(),
            "lp_solves": results.lp.solves,
            "lp": results.lp.json(),
            "seconds": {
                "load": load,
                "train": seconds.train,
                "simulate": seconds.simulate,
                "write": seconds.write,
                "total": total,
            },
            "validation": results.validation,
            "policy_sha256": results.policy_sha256,
    });
    terminal::say_json(&line.to_string())
}
