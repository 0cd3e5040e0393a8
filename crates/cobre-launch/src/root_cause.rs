//! The rank that failed first: by causality where ranks report it, else by the order of their ends.

use cobre_comm::report::RootCause;

use crate::outcome::Status;

/// A rank's end as the supervisor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankEnd {
    pub(crate) rank: usize,
    pub(crate) status: Status,
    /// Ranks with the same number ended at times that cannot be told apart.
    pub(crate) batch: u32,
    /// The launcher had told it to end.
    pub(crate) ended: bool,
}

/// The root cause: a rank, and the report that names it.
///
/// `ends` and `root_causes` are in order of arrival. A report is the better evidence: a rank that lost a
/// peer often exits before the peer has finished dying. What the launcher ended itself is no
/// cause, except `spared`: a reported rank that was given time to end by itself and did not.
pub(crate) fn root<'a>(
    ends: &[RankEnd],
    root_causes: &'a [RootCause],
    spared: Option<usize>,
) -> Option<(usize, Option<&'a RootCause>)> {
    let ended = |rank| ends.iter().any(|end| end.rank == rank && end.ended);
    let reported =
        |root_cause: &&RootCause| spared == Some(root_cause.rank) || !ended(root_cause.rank);
    if let Some(root_cause) = root_causes.iter().find(reported) {
        return Some((root_cause.rank, Some(root_cause)));
    }
    let failed = || {
        ends.iter()
            .filter(|end| !end.ended && !end.status.success())
    };
    let batch = failed().next()?.batch;
    failed()
        .filter(|end| end.batch == batch)
        .min_by_key(|end| (matches!(end.status, Status::Exited(_)), end.rank))
        .map(|end| (end.rank, None))
}

#[cfg(test)]
mod tests;
