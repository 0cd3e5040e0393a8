//! The shutdown policy: when the launcher ends ranks, which, and how. Time and
//! events come in, orders go out; nothing here touches a process.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cobre_comm::report::RootCause;

use crate::outcome::Status;
use crate::protocol::{Exit, Order};
use crate::root_cause::{RankEnd, root};
use crate::signals::SAME_SIGNAL;

/// After the first failure, how long reports of its cause may take before ranks are ended.
const SETTLE: Duration = Duration::from_millis(50);
/// A killed process that is still there after this long will not go away soon.
const UNKILLABLE: Duration = Duration::from_secs(10);
/// Reports kept; only the first that holds is needed.
const MOST_ROOT_CAUSES: usize = 1024;

/// The reason for which the launcher ends a job in which no rank has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndReason {
    Deadline {
        after: Duration,
        running: Vec<usize>,
    },
    Signal(i32),
    Output(i32),
}

enum Phase {
    Running,
    /// A rank failed; who caused it may still be reported.
    Settling {
        until: Instant,
    },
    /// Ranks were asked to end.
    Ending {
        since: Instant,
        until: Instant,
    },
    /// Ranks were killed.
    Killed {
        until: Instant,
    },
}

/// The state of a job and the launcher's decisions about it.
pub(crate) struct ShutdownPolicy {
    size: usize,
    /// Ranks not yet collected.
    running: BTreeSet<usize>,
    deadline: Option<(Duration, Instant)>,
    grace: Duration,
    phase: Phase,
    pub(crate) ends: Vec<RankEnd>,
    pub(crate) root_causes: Vec<RootCause>,
    /// A reported rank that may end by itself, so that its own end is seen.
    spared: Option<usize>,
    pub(crate) stop: Option<EndReason>,
}

impl ShutdownPolicy {
    pub(crate) fn new(
        size: usize,
        timeout: Option<Duration>,
        grace: Duration,
        now: Instant,
    ) -> Self {
        // A deadline beyond what the clock can tell is none.
        let deadline = timeout.and_then(|after| Some((after, now.checked_add(after)?)));
        Self {
            size,
            running: (0..size).collect(),
            deadline,
            grace,
            phase: Phase::Running,
            ends: Vec::new(),
            root_causes: Vec::new(),
            spared: None,
            stop: None,
        }
    }

    /// The supervisor collected a rank.
    pub(crate) fn exited(&mut self, exit: Exit, now: Instant) {
        let Exit {
            rank,
            status,
            batch,
            ended,
        } = exit;
        if !self.running.remove(&rank) {
            return;
        }
        let status = Status::from_wait(status);
        self.ends.push(RankEnd {
            rank,
            status,
            batch,
            ended,
        });
        if matches!(self.phase, Phase::Running) && !status.success() {
            self.phase = Phase::Settling {
                until: now + SETTLE,
            };
        }
    }

    /// A rank reported a cause.
    pub(crate) fn reported(&mut self, root_cause: RootCause) {
        let known = root_cause.rank < self.size && root_cause.from < self.size;
        if known && self.root_causes.len() < MOST_ROOT_CAUSES {
            self.root_causes.push(root_cause);
        }
    }

    /// The launcher got a signal: it is passed on, and the next one kills.
    pub(crate) fn signalled(&mut self, signal: i32, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Running => Some(self.stop(EndReason::Signal(signal), signal, now)),
            Phase::Settling { .. } => Some(self.end(signal, None, now)),
            Phase::Ending { since, .. } if now < since + SAME_SIGNAL => None,
            Phase::Ending { .. } => Some(self.kill(now)),
            Phase::Killed { .. } => None,
        }
    }

    /// The ranks' output cannot be written any more.
    pub(crate) fn output_failed(&mut self, errno: i32, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Running => Some(self.stop(EndReason::Output(errno), libc::SIGTERM, now)),
            _ => None,
        }
    }

    /// The action that is due at this time.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Running => {
                let (after, at) = self.deadline?;
                if now < at || self.running.is_empty() {
                    return None;
                }
                let running = self.running();
                Some(self.stop(EndReason::Deadline { after, running }, libc::SIGTERM, now))
            }
            Phase::Settling { until } if now >= until => {
                let suspect = root(&self.ends, &self.root_causes, None).map(|(rank, _)| rank);
                let spared = suspect.filter(|rank| self.running.contains(rank));
                Some(self.end(libc::SIGTERM, spared, now))
            }
            Phase::Ending { until, .. } if now >= until => Some(self.kill(now)),
            _ => None,
        }
    }

    /// The time at which [`ShutdownPolicy::due`] or [`ShutdownPolicy::hopeless`] may next change.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running if self.running.is_empty() => None,
            Phase::Running => self.deadline.map(|(_, at)| at),
            Phase::Settling { until } | Phase::Ending { until, .. } | Phase::Killed { until } => {
                Some(until)
            }
        }
    }

    /// True if ranks were killed long ago and some are still there.
    pub(crate) fn hopeless(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Killed { until } if now >= until)
    }

    /// True if the user, or a limit the user set, ended the job: then nothing may hold it up.
    pub(crate) fn cut_short(&self) -> bool {
        self.stop.is_some()
    }

    /// The rank that failed first and the report that names it. A rank that aborted has failed
    /// even if every rank exited with code 0.
    pub(crate) fn root(&self) -> Option<(usize, Option<&RootCause>)> {
        root(&self.ends, &self.root_causes, self.spared)
    }

    /// The ranks not yet collected.
    pub(crate) fn running(&self) -> Vec<usize> {
        self.running.iter().copied().collect()
    }

    fn stop(&mut self, stop: EndReason, signal: i32, now: Instant) -> Order {
        self.stop = Some(stop);
        self.end(signal, None, now)
    }

    fn end(&mut self, signal: i32, except: Option<usize>, now: Instant) -> Order {
        self.spared = except;
        self.phase = Phase::Ending {
            since: now,
            until: later(now, self.grace),
        };
        Order { signal, except }
    }

    fn kill(&mut self, now: Instant) -> Order {
        self.phase = Phase::Killed {
            until: now + UNKILLABLE,
        };
        Order {
            signal: libc::SIGKILL,
            except: None,
        }
    }
}

/// `now + wait`, or a time nobody waits for if the clock cannot tell it.
fn later(now: Instant, wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now + wait.min(YEAR)
}

#[cfg(test)]
mod tests;
