//! The exit codes of `cobre`: the only place that maps errors to numbers.

use std::error::Error;

use cobre_comm::{ClassifiedError, ErrorKind, FieldValue, Fields, terminal};
use cobre_files::FileError;
use cobre_launch::{FailureCause, LaunchError, Outcome, RankOutcome, Status};
use cobre_results::ResultsError;
use serde_json::{Value, json};

/// All went well.
pub(crate) const DONE: u8 = 0;
/// The request cannot be fulfilled.
pub(crate) const INVALID_INPUT: u8 = 1;
/// Two results differ.
pub(crate) const DIFFERENT: u8 = 1;
/// The system refused something.
pub(crate) const IO: u8 = 2;
/// A linear program could not be solved.
pub(crate) const SOLVER: u8 = 3;
/// Ranks could not communicate, be watched or be ended.
pub(crate) const RANKS: u8 = 4;
/// A signal ended the run.
pub(crate) const STOPPED: u8 = 5;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// As shells have it: the program exists but cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As shells have it: there is no such program.
const NOT_FOUND: u8 = 127;

/// Prints a line on standard output. Without a reader there is nobody to tell.
macro_rules! say {
    ($($argument:tt)*) => {{
        let _ = cobre_comm::terminal::say(format_args!($($argument)*));
    }};
}
pub(crate) use say;

/// Prints a line of JSON on standard output. Without a reader there is nobody to tell.
pub(crate) fn say_json(value: &Value) {
    let _ = terminal::say_json(&value.to_string());
}

/// An error as JSON: kind, message and the fields that are known.
pub(crate) fn error_json(kind: ErrorKind, message: &str, fields: Fields) -> Value {
    let mut json = json!({ "kind": kind.name(), "message": message });
    for (name, value) in fields {
        json[name.name()] = match value {
            FieldValue::Text(text) => text.into(),
            FieldValue::Texts(texts) => texts.into(),
            FieldValue::Number(number) => number.into(),
            FieldValue::Numbers(numbers) => numbers.into(),
        };
    }
    json
}

/// Says something of `command` on standard error. Lines after the first are indented: none passes for another message.
pub(crate) fn note(command: &str, text: &str) {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    terminal::complain(&format!("{command}: {}", lines.join("\n  ")));
}

/// Prints the lines of a message on standard error; nothing if it is empty.
pub(crate) fn complain(message: &str) {
    if !message.is_empty() {
        terminal::complain(message);
    }
}

/// Says on standard error what `command` could not do, and returns `code`.
pub(crate) fn fail(code: u8, command: &str, problem: &str) -> u8 {
    note(command, problem);
    code
}

/// The error and what caused it, on one line of bounded length.
pub(crate) fn told(error: &dyn Error) -> String {
    terminal::bounded(&match error.source() {
        Some(cause) => format!("{error}: {}", told(cause)),
        None => error.to_string(),
    })
}

/// The code for a kind of error.
pub(crate) fn of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Usage => USAGE,
        ErrorKind::Input => INVALID_INPUT,
        ErrorKind::Io | ErrorKind::Memory => IO,
        ErrorKind::Solver => SOLVER,
        ErrorKind::Stopped => STOPPED,
        _ => RANKS,
    }
}

/// The code for a job that could not be run; one that ran has a code of its own.
pub(crate) fn of_launch(error: &LaunchError) -> u8 {
    match error {
        LaunchError::ProgramNotFound { .. } => NOT_FOUND,
        LaunchError::ProgramNotExecutable { .. } => NOT_EXECUTABLE,
        _ => of(error.kind()),
    }
}

/// The code for results that cannot be shown.
pub(crate) fn of_results(error: &ResultsError) -> u8 {
    match error {
        ResultsError::Io { .. } => IO,
        _ => INVALID_INPUT,
    }
}

/// The code for a file that is not written.
pub(crate) fn of_file(error: &FileError) -> u8 {
    match error {
        FileError::Io { .. } => IO,
        _ => INVALID_INPUT,
    }
}

/// The code for a run whose ranks this process has started: that of the rank that failed first if
/// it is one of a run's codes, else that a rank has failed.
pub(crate) fn of_ranks(outcome: &Outcome) -> u8 {
    let of_rank = |rank: &RankOutcome| match rank.status {
        Status::Exited(code) => u8::try_from(code).unwrap_or(RANKS),
        Status::Killed(_) => RANKS,
    };
    match &outcome.cause {
        None => DONE,
        Some(FailureCause::Rank { rank, .. }) => match of_rank(&outcome.ranks[*rank]) {
            code @ (INVALID_INPUT | IO | SOLVER | RANKS | STOPPED | USAGE)
                if !outcome.ranks[*rank].ended =>
            {
                code
            }
            _ => RANKS,
        },
        Some(FailureCause::Signal(_)) => STOPPED,
        Some(FailureCause::Output(_)) => IO,
        Some(_) => RANKS,
    }
}
