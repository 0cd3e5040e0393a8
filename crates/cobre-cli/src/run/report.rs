//! The one line of JSON, and what is said when there is no result.

use std::collections::BTreeMap;

use cobre_comm::{BackendError, ClassifiedError, ErrorKind, FieldName, Fields, report, terminal};
use cobre_launch::{FailureCause, LaunchError, Outcome, Status};
use cobre_sddp::{Results, SddpError, Sense};
use serde_json::{Value, json};

use super::NAME;
use crate::exit::{self, error_json, say_json};

/// A failure: the reason why there is no result.
pub(super) struct Failure {
    kind: ErrorKind,
    message: String,
    fields: Fields,
    /// True if another rank has failed, and this one has learned of it.
    second_hand: bool,
    /// The code to exit with, which is that of the kind with few exceptions.
    code: u8,
}

impl Failure {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            fields: Fields::default(),
            second_hand: false,
            code: exit::of(kind),
        }
    }

    pub(super) fn of(error: &impl ClassifiedError) -> Self {
        Self {
            fields: error.fields(),
            ..Self::new(error.kind(), exit::told(error))
        }
    }

    /// A communicator that could not be created: often because of another rank.
    pub(super) fn of_start(error: &BackendError) -> Self {
        Self {
            second_hand: matches!(error, BackendError::InitializationFailed { .. }),
            ..Self::of(error)
        }
    }

    pub(super) fn of_run(error: &SddpError) -> Self {
        Self {
            second_hand: matches!(error, SddpError::Communication(_)),
            ..Self::of(error)
        }
    }

    pub(super) fn of_launch(error: &LaunchError) -> Self {
        Self {
            code: exit::of_launch(error),
            ..Self::of(error)
        }
    }

    /// Says it on standard error, and as JSON if asked for; returns the code to exit with.
    pub(super) fn tell(self, json: bool) -> u8 {
        exit::note(NAME, &self.message);
        let code = self.code;
        if json {
            self.tell_json();
        }
        code
    }

    /// Prints it as one line of JSON.
    pub(super) fn tell_json(self) {
        say_json(&json!({ ERROR: self.json() }));
    }

    fn json(self) -> Value {
        error_json(self.kind, &self.message, self.fields)
    }
}

/// The key of a line that tells of a failure, and that of a statement that has the results.
const ERROR: &str = "error";
const RESULTS: &str = "results";
/// The key of a statement that tells of the failure of another rank.
const SECOND_HAND: &str = "second_hand";

/// The channel on which a process reports its end: to the command that started it as one of its ranks and reports for all of
/// them, else itself.
#[derive(Clone, Copy)]
pub(super) struct ReportChannel {
    /// True if `cobre run -n` has started this process.
    pub(super) spoken_for: bool,
    /// True on the first rank of a job, which reports for the others.
    pub(super) first: bool,
    pub(super) json: bool,
}

impl ReportChannel {
    /// Tells of a failure that all ranks know of; returns the code to exit with.
    pub(super) fn fail(self, failure: Failure) -> u8 {
        self.fail_if(self.first, failure)
    }

    /// Tells of a failure on a rank that speaks; returns the code to exit with.
    pub(super) fn fail_if(self, speaks: bool, failure: Failure) -> u8 {
        let code = failure.code;
        if self.spoken_for {
            let message = failure.message.clone();
            let second_hand = failure.second_hand;
            let statement = json!({ SECOND_HAND: second_hand, ERROR: failure.json() });
            // What cannot be delivered is at least said; the one who listens tells it as JSON.
            if !report::state(&statement.to_string()) && speaks {
                exit::note(NAME, &message);
            }
        } else if speaks {
            failure.tell(self.json && self.first);
        }
        code
    }

    /// Tells the results, which are a line of JSON; returns `code` unless that fails.
    pub(super) fn succeed(self, line: &Value, code: u8) -> u8 {
        if !self.first || !self.json {
            return code;
        }
        if self.spoken_for && report::state(&json!({ RESULTS: line }).to_string()) {
            return code;
        }
        print(line, code)
    }
}

fn print(line: &Value, code: u8) -> u8 {
    match terminal::say_json(&line.to_string()) {
        Ok(()) => code,
        Err(error) => exit::fail(exit::IO, NAME, &format!("standard output: {error}")),
    }
}

/// Tells how ranks that this process has started ended, once and for all of them; returns the code to exit with.
pub(super) fn tell_outcome(outcome: &Outcome, code: u8, json: bool) -> u8 {
    let statements = outcome.statements.iter();
    let statements = statements.map(|(rank, text)| {
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        (*rank, said)
    });
    let statements: BTreeMap<usize, Value> = statements.collect();
    let results = statements.get(&0).and_then(|said| said.get(RESULTS));
    if let (exit::DONE | exit::STOPPED, Some(results)) = (code, results) {
        return if json { print(results, code) } else { code };
    }
    let Some(cause) = &outcome.cause else {
        return code;
    };
    let error = the_error(cause, &statements);
    match (explained(outcome, cause), error) {
        // The rank that failed first says why.
        (true, Some((rank, error))) => {
            let message = error["message"].as_str().unwrap_or_default();
            let who = if rank == 0 {
                String::new()
            } else {
                format!("rank {rank}: ")
            };
            exit::note(NAME, &format!("{who}{message}"));
            if json {
                say_json(&json!({ ERROR: error }));
            }
        }
        // It has said so itself, as this process could not hear it; or it can say nothing any more.
        (explained, error) => {
            let message = outcome.message(NAME);
            let quiet =
                explained || matches!(cause, FailureCause::Signal(_)) && code == exit::STOPPED;
            if !quiet {
                exit::complain(&message);
            }
            if json && code != exit::DONE {
                let line = message.lines().next().unwrap_or_default();
                let line = line.strip_prefix(NAME).unwrap_or(line);
                let told = error.and_then(|(_, error)| error["kind"].as_str()?.parse().ok());
                let kind = match code {
                    exit::RANKS => told.unwrap_or(ErrorKind::Rank),
                    exit::STOPPED => ErrorKind::Stopped,
                    exit::IO => ErrorKind::Io,
                    _ => ErrorKind::Rank,
                };
                Failure {
                    fields: fields_of(outcome, cause),
                    ..Failure::new(kind, line.trim_start_matches(": "))
                }
                .tell_json();
            }
        }
    }
    code
}

/// The fields of a failure that no rank has explained.
fn fields_of(outcome: &Outcome, cause: &FailureCause) -> Fields {
    let fields = Fields::default();
    match cause {
        FailureCause::Rank { rank, .. } => {
            let ended = &outcome.ranks[*rank];
            let fields = fields.with(FieldName::Rank, *rank);
            let fields = fields.with(FieldName::Pid, u64::from(ended.pid.unsigned_abs()));
            match ended.status {
                Status::Exited(code) => {
                    fields.with(FieldName::ExitCode, u64::from(code.unsigned_abs()))
                }
                Status::Killed(signal) => {
                    fields.with(FieldName::Signal, u64::from(signal.unsigned_abs()))
                }
            }
        }
        FailureCause::Signal(signal) => {
            fields.with(FieldName::Signal, u64::from(signal.unsigned_abs()))
        }
        FailureCause::Deadline { running, .. } => fields.with(FieldName::Ranks, &running[..]),
        FailureCause::Output(_) => fields,
    }
}

/// True if the rank that failed first ended by itself and with a code of a run, so that it has reported why.
fn explained(outcome: &Outcome, cause: &FailureCause) -> bool {
    let FailureCause::Rank { rank, .. } = cause else {
        return false;
    };
    let first = &outcome.ranks[*rank];
    matches!(first.status, Status::Exited(1..=5 | 64)) && !first.ended
}

/// The error that tells most, and the rank that has it: that of the rank that failed first, unless it has only
/// learned of another one's.
fn the_error<'s>(
    cause: &FailureCause,
    statements: &'s BTreeMap<usize, Value>,
) -> Option<(usize, &'s Value)> {
    let errors = || statements.iter().filter(|(_, said)| !said[ERROR].is_null());
    let first_hand = |said: &Value| said[SECOND_HAND] == false;
    let failed = match cause {
        FailureCause::Rank { rank, .. } => Some(*rank),
        _ => None,
    };
    let root = || errors().find(|(rank, _)| Some(**rank) == failed);
    let found = root()
        .filter(|(_, said)| first_hand(said))
        .or_else(|| errors().find(|(_, said)| first_hand(said)))
        .or_else(root)
        .or_else(|| errors().next());
    found.map(|(rank, said)| (*rank, &said[ERROR]))
}

/// The results as one line.
pub(super) fn results(sense: Sense, results: &Results, load: f64, total: f64) -> Value {
    let (estimate, source) = match results.simulated {
        Some(estimate) => (estimate, "simulation"),
        None => (results.trained.estimate, "training"),
    };
    let seconds = results.seconds;
    json!({
            "sense": sense.name(),
            "bound": results.trained.bound,
            "bound_half_width_95": results.bound_half_width_95(),
            "upper_bound": results.trained.upper_bound,
            "estimate": {
                "mean": estimate.mean,
                "half_width_95": estimate.half_width_95,
                "paths": estimate.paths,
                "source": source,
            },
            "fictitious_cost": results.fictitious.mean,
            "interrupted": results.interrupted_in(),
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
    })
}

#[cfg(test)]
mod tests {
    use cobre_launch::RankOutcome;

    use super::*;

    fn outcome(statuses: &[Status], rank: usize) -> Outcome {
        let ranks = statuses.iter().map(|status| RankOutcome {
            pid: 1,
            host: None,
            status: *status,
            ended: false,
            stdout: Vec::new(),
            stderr: Vec::new(),
        });
        let (root_cause, tail) = (None, Vec::new());
        Outcome {
            ranks: ranks.collect(),
            cause: Some(FailureCause::Rank {
                rank,
                root_cause,
                tail,
            }),
            survivors: false,
            through: None,
            root: None,
            statements: BTreeMap::new(),
        }
    }

    #[test]
    fn a_rank_that_panics_or_is_killed_has_explained_nothing() {
        for (status, expected) in [
            (Status::Exited(2), true),
            (Status::Exited(64), true),
            (Status::Exited(101), false),
            (Status::Exited(0), false),
            (Status::Killed(9), false),
        ] {
            let outcome = outcome(&[Status::Exited(4), status], 1);
            let cause = outcome.cause.as_ref().expect("a cause");
            assert_eq!(explained(&outcome, cause), expected, "{status:?}");
        }
    }

    #[test]
    fn the_error_is_that_of_a_rank_that_knows() {
        let said = |second_hand: bool, message: &str| json!({ SECOND_HAND: second_hand, ERROR: {"message": message} });
        let outcome = outcome(&[Status::Exited(3); 3], 1);
        let cause = outcome.cause.as_ref().expect("a cause");
        let found = |statements: &[(usize, Value)]| {
            let statements: BTreeMap<usize, Value> = statements.iter().cloned().collect();
            let found = the_error(cause, &statements);
            found.map(|(rank, error)| (rank, error["message"].to_string()))
        };
        let (own, heard) = (said(false, "own"), said(true, "heard"));
        let all = [(0, heard.clone()), (1, heard.clone()), (2, own.clone())];
        assert_eq!(found(&all), Some((2, "\"own\"".to_owned())));
        assert_eq!(
            found(&[(0, own.clone()), (1, own)]),
            Some((1, "\"own\"".to_owned()))
        );
        assert_eq!(found(&all[..2]), Some((1, "\"heard\"".to_owned())));
        assert_eq!(found(&all[..1]), Some((0, "\"heard\"".to_owned())));
        assert_eq!(found(&[(0, json!({ RESULTS: {} }))]), None);
    }
}
