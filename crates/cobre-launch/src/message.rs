//! Messages to the user about a job that did not succeed.

use std::collections::BTreeMap;

use cobre_comm::report::RootCause;
use cobre_comm::terminal;

use crate::outcome::{FailureCause, Outcome, RankOutcome, Status};
use crate::signal_name::describe;

/// Lines of a rank's standard error that are shown.
pub(crate) const TAIL_LINES: usize = 10;

/// The whole message; empty if there is nothing to say.
pub(crate) fn message(outcome: &Outcome, name: &str) -> String {
    let mut text = String::new();
    let mut line = |start: &str, content: &str| {
        text.extend([start, &terminal::one_line(content), "\n"]);
    };
    let prefix = format!("{name}: ");
    match &outcome.cause {
        None | Some(FailureCause::Output(libc::EPIPE)) => {}
        Some(FailureCause::Rank {
            rank,
            root_cause,
            tail,
        }) => {
            let failed = &outcome.ranks[*rank];
            let words = match outcome.through {
                None => root(*rank, failed, root_cause.as_ref()),
                Some(launcher) => root_through(launcher, failed, root_cause.as_ref()),
            };
            line(&prefix, &words);
            for last in tail {
                line("    ", last);
            }
            if let Some(rest) = rest(outcome, *rank) {
                line(&prefix, &rest);
            }
        }
        Some(FailureCause::Deadline { after, running }) => {
            let after = after.as_secs_f64();
            let ranks = outcome.through.map_or(ranks(running), str::to_owned);
            line(
                &prefix,
                &format!("the deadline of {after} s passed with {ranks} still running"),
            );
        }
        Some(FailureCause::Signal(signal)) => {
            let ended = outcome
                .ranks
                .iter()
                .enumerate()
                .filter(|(_, rank)| rank.ended);
            let ended: Vec<_> = ended.map(|(number, _)| number).collect();
            let signal = describe(*signal);
            let words = match &ended[..] {
                [] => format!("stopped by {signal}"),
                [_] if outcome.through.is_some() => {
                    format!("stopped by {signal}; all ranks were ended")
                }
                some => format!("stopped by {signal}; {} {} ended", ranks(some), were(some)),
            };
            line(&prefix, &words);
        }
        Some(FailureCause::Output(errno)) => {
            let error = std::io::Error::from_raw_os_error(*errno);
            line(&prefix, &format!("cannot write the ranks' output: {error}"));
        }
    }
    if outcome.survivors {
        line(
            &prefix,
            "some processes of the job are left: they do not die, although they were killed",
        );
    }
    text
}

/// The first line: which rank, which process, what happened.
fn root(rank: usize, outcome: &RankOutcome, root_cause: Option<&RootCause>) -> String {
    let who = match &outcome.host {
        Some(host) => format!("rank {rank} (host {host}, pid {})", outcome.pid),
        None => format!("rank {rank} (pid {})", outcome.pid),
    };
    let end = if outcome.ended {
        "did not end by itself and was killed".to_owned()
    } else {
        ended(outcome.status)
    };
    match root_cause {
        None => format!("{who} {end}"),
        Some(RootCause { from, reason, .. }) if *from == rank => {
            format!("{who} aborted: {reason} ({end})")
        }
        Some(RootCause { from, reason, .. }) => {
            format!("{who} {end}; rank {from} reported: {reason}")
        }
    }
}

/// The first line of a job that an MPI launcher ran: what ranks reported, else how that ended.
fn root_through(launcher: &str, outcome: &RankOutcome, root_cause: Option<&RootCause>) -> String {
    let end = ended(outcome.status);
    let end = format!("{launcher} (pid {}) {end}", outcome.pid);
    match root_cause {
        None => format!("{end}; see its output and that of the ranks"),
        Some(RootCause { reason, .. }) => format!("{reason} ({end})"),
    }
}

pub(crate) fn ended(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("exited with code {code}"),
        Status::Killed(signal) => format!("was killed by {}", describe(signal)),
    }
}

/// One line for all ranks but `root`; `None` if it was alone.
fn rest(outcome: &Outcome, root: usize) -> Option<String> {
    let mut ended_by_us = Vec::new();
    let mut ended_alone = BTreeMap::<String, Vec<usize>>::new();
    let mut finished = Vec::new();
    for (number, rank) in outcome
        .ranks
        .iter()
        .enumerate()
        .filter(|(number, _)| *number != root)
    {
        match rank {
            rank if rank.ended => ended_by_us.push(number),
            rank if rank.status.success() => finished.push(number),
            rank => ended_alone
                .entry(ended(rank.status))
                .or_default()
                .push(number),
        }
    }
    let mut parts = Vec::new();
    if !ended_by_us.is_empty() {
        let (ranks, were) = (ranks(&ended_by_us), were(&ended_by_us));
        parts.push(format!("{ranks} {were} ended because of it"));
    }
    for (how, mpi_ranks) in ended_alone {
        let how = if mpi_ranks.len() > 1 {
            how.replacen("was ", "were ", 1)
        } else {
            how
        };
        parts.push(format!("{} {how}", ranks(&mpi_ranks)));
    }
    if !finished.is_empty() {
        parts.push(format!("{} had finished", ranks(&finished)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn were(ranks: &[usize]) -> &'static str {
    if ranks.len() == 1 { "was" } else { "were" }
}

/// `rank 3`, `ranks 0, 2-5`.
fn ranks(numbers: &[usize]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!("rank{plural} {}", list(numbers))
}

/// Ascending numbers with runs of three and more drawn together: `0, 1, 4-7`.
pub(crate) fn list(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|left, right| left + 1 == *right);
    let words = runs.flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first}-{last}")],
        short => short.iter().map(ToString::to_string).collect(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
