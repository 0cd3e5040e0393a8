//! The contract, held against the outcome of a job. Each rule names the promise it stands for, by its number in the
//! book (`reference/simulation.md`).

use std::time::Duration;

use super::job::{CallResult, JobOutcome, REASON, RankRecord};
use super::plan::{Act, JobFault, JobPlan};
use super::world::{Process, WorldEnd};
use crate::env::DEFAULT_STALL;
use crate::error::{Cause, Loss};

/// Bounds on the time between a fault, or the call after it, and the error.
const DEATH: Duration = Duration::from_millis(1_000);
const BROKEN: Duration = Duration::from_millis(2_500);
const PARTITION: Duration = Duration::from_millis(3_500);
const LOST_BYTES: Duration = Duration::from_secs(16);
/// A stop or a partition in the start of a job may end that from this length on.
const LONG_IN_START: Duration = Duration::from_secs(1);
/// A wait that is long enough for a report of a stall, with what the heartbeat takes.
const SURELY_STALLED: Duration = Duration::from_secs(32);

/// The failure of a rank: its cause, and when its call began and ended.
#[derive(Debug, Clone)]
struct RankFailure {
    rank: usize,
    cause: Cause,
    begin: Duration,
    end: Duration,
}

/// Judge of one job.
pub(super) struct Judge<'a> {
    plan: &'a JobPlan,
    outcome: &'a JobOutcome,
    failures: Vec<RankFailure>,
    breaches: Vec<String>,
}

/// The breaches of the contract in this job.
pub(super) fn breaches(plan: &JobPlan, outcome: &JobOutcome) -> Vec<String> {
    let failures = (0..plan.size).filter_map(|rank| first_failure(rank, &outcome.ranks[rank]));
    let mut judge = Judge {
        plan,
        outcome,
        failures: failures.collect(),
        breaches: Vec::new(),
    };
    judge.always();
    judge.after_faults();
    judge.breaches
}

fn first_failure(rank: usize, record: &RankRecord) -> Option<RankFailure> {
    record.calls.iter().find_map(|(begin, end, result)| {
        let CallResult::Failed(cause) = result else {
            return None;
        };
        Some(RankFailure {
            rank,
            cause: (**cause).clone(),
            begin: *begin,
            end: *end,
        })
    })
}

impl Judge<'_> {
    fn breach(&mut self, text: String) {
        self.breaches.push(text);
    }

    fn is_alive(&self, rank: usize) -> bool {
        self.outcome.processes[rank] != Process::Dead
    }

    /// Checks the promises that hold whatever happens.
    fn always(&mut self) {
        if let WorldEnd::Hung(left) = &self.outcome.end {
            self.breach(format!("1: these wait for ever: {left:?}"));
        }
        for (rank, text) in &self.outcome.panics {
            self.breaches
                .push(format!("1: rank {rank} panicked: {text}"));
        }
        for rank in 0..self.plan.size {
            self.results(rank);
            let open = self.outcome.open[rank];
            if self.is_alive(rank) && self.outcome.end == WorldEnd::Finished && open > 0 {
                self.breach(format!("6: rank {rank} leaves {open} sockets open"));
            }
        }
        self.one_topology();
        self.nobody_runs_ahead();
        self.stalls();
    }

    /// Part of promise 4: ranks that start send small messages the same way.
    fn one_topology(&mut self) {
        let ranks = self.outcome.ranks.iter();
        let mut taken: Vec<&String> = ranks.filter_map(|it| it.topology.as_ref()).collect();
        taken.dedup();
        if taken.len() > 1 {
            let text = format!("4: ranks differ in their topology: {taken:?}");
            self.breach(text);
        }
    }

    /// Promises 2 and 3: results that are right, or errors that stay.
    fn results(&mut self, rank: usize) {
        let mut failed: Option<&CallResult> = None;
        for (number, (_, _, result)) in self.outcome.ranks[rank].calls.iter().enumerate() {
            let text = match (result, failed) {
                (CallResult::Wrong(text) | CallResult::Refused(text), _) => text.clone(),
                (result, Some(before)) if result != before => {
                    format!("it failed before ({before:?}) and now is {result:?}")
                }
                _ => {
                    if matches!(result, CallResult::Failed(_)) {
                        failed = Some(result);
                    }
                    continue;
                }
            };
            self.breaches
                .push(format!("2: rank {rank}, call {number}: {text}"));
        }
    }

    /// Promise 4: a call succeeds only if all ranks make it.
    fn nobody_runs_ahead(&mut self) {
        let is_right = |(_, _, result): &(_, _, CallResult)| *result == CallResult::Right;
        let done = |record: &RankRecord| record.calls.iter().filter(|call| is_right(call)).count();
        let most = self.outcome.ranks.iter().map(done).max().unwrap_or(0);
        for (rank, record) in self.outcome.ranks.iter().enumerate() {
            let entered = record.calls.len() + usize::from(record.pending.is_some());
            let made = match self.plan.act {
                Some((before, who, Act::OtherCall | Act::Abort)) if who == rank => {
                    entered.min(before)
                }
                _ => entered,
            };
            if most > made {
                self.breaches.push(format!(
                    "4: call {} succeeded, and rank {rank} has made {made} that fit",
                    most - 1
                ));
            }
        }
    }

    /// Promise 5: long waits are reported, and nothing else is.
    fn stalls(&mut self) {
        let waits = |rank: usize| {
            let was_stopped = |begin: Duration, end: Duration| {
                let mut faults = self.outcome.happened.iter();
                faults.any(|(at, fault, _)| {
                    matches!(fault, JobFault::Stop(who, _) if *who == rank)
                        && *at < end
                        && *at + Duration::from_secs(200) > begin
                })
            };
            let waits = self.outcome.ranks[rank].waits.iter();
            let waits = waits.filter(|(begin, end)| !was_stopped(*begin, *end));
            waits.map(|(begin, end)| end.saturating_sub(*begin)).max()
        };
        let alive = (0..self.plan.size).filter(|&rank| self.is_alive(rank));
        let longest = alive.filter_map(waits).max().unwrap_or_default();
        let is_reported = !self.outcome.reports.is_empty();
        // A rank that is stopped for less reports nothing meanwhile, and need not be reported.
        let stops = self
            .outcome
            .happened
            .iter()
            .map(|(_, fault, _)| match fault {
                JobFault::Stop(_, time) if *time < SURELY_STALLED => *time,
                _ => Duration::ZERO,
            });
        let surely = SURELY_STALLED + stops.sum::<Duration>();
        if longest >= surely && !is_reported && self.is_harmless() {
            self.breach(format!(
                "5: a collective took {longest:?}, and nobody said so"
            ));
        }
        let ends = self.outcome.now;
        if is_reported && ends < DEFAULT_STALL {
            let reports = &self.outcome.reports;
            self.breach(format!("5: reports in a short job: {reports:?}"));
        }
    }

    /// True if all that has happened is slow, and nothing is lost.
    fn is_harmless(&self) -> bool {
        let mut faults = self.outcome.happened.iter();
        self.plan.act.is_none()
            && faults.all(|(_, fault, _)| {
                matches!(
                    fault,
                    JobFault::Stop(..) | JobFault::Block(_, _, _, Some(_)) | JobFault::Unblock(..)
                )
            })
    }

    /// The time at which the last rank had started; `None` if one has not.
    fn all_started(&self) -> Option<Duration> {
        let started = self
            .outcome
            .ranks
            .iter()
            .map(|record| match record.started {
                Some(Ok(time)) => Some(time),
                _ => None,
            });
        let started: Option<Vec<Duration>> = started.collect();
        started.and_then(|times| times.into_iter().max())
    }

    fn after_faults(&mut self) {
        if self.plan.timeout.is_some() {
            self.after_deadline();
            return;
        }
        if self.is_harmless() {
            self.after_nothing();
            return;
        }
        // Errors in the start say what was known then; nobody may wait for ever, which is checked.
        let Some(started) = self.all_started() else {
            return;
        };
        if let Some((_, rank, act)) = self.plan.act {
            self.after_act(rank, act);
            return;
        }
        let faults: Vec<_> = self.outcome.happened.clone();
        match faults[..] {
            [(at, fault, broken)] => self.after_one(at.max(started), fault, broken),
            [(_, one, _), (at, other, _)] if is_death(one) && is_death(other) => {
                self.after_two_deaths(at.max(started), [one, other]);
            }
            // Of two faults ranks may learn in different order.
            _ => {}
        }
    }

    fn after_one(&mut self, since: Duration, fault: JobFault, broken: Option<(usize, usize)>) {
        match fault {
            JobFault::Kill(rank) => self.all_name(&[rank], since, DEATH),
            JobFault::LoseHost(rank) => {
                let lost = self.neighbours(rank);
                self.all_name(&lost, since, PARTITION);
            }
            JobFault::Block(one, other, ..) => {
                let sides = [one, other].map(|rank| self.neighbours(rank));
                if let Some(side) = sides.iter().position(|ranks| ranks.contains(&0)) {
                    self.cut_off(&sides[1 - side], since, PARTITION);
                } else {
                    self.all_agree(since, LOST_BYTES);
                    self.is_io();
                }
            }
            JobFault::Break(_) => match broken {
                Some((one, other)) if one.min(other) == 0 => {
                    self.cut_off(&[one.max(other)], since, BROKEN);
                }
                _ => {
                    self.all_agree(since, BROKEN);
                    self.is_io();
                }
            },
            JobFault::Stop(..) | JobFault::Unblock(..) | JobFault::Mark(_) => {}
        }
    }

    /// Rank 0 decides which of two deaths it is; without it, ranks know what they saw.
    fn after_two_deaths(&mut self, since: Duration, faults: [JobFault; 2]) {
        let lost = faults.map(|fault| match fault {
            JobFault::LoseHost(rank) => self.neighbours(rank),
            JobFault::Kill(rank) => vec![rank],
            _ => Vec::new(),
        });
        let lost = lost.concat();
        let is_lost_host = |fault: &JobFault| matches!(fault, JobFault::LoseHost(_));
        let bound = if faults.iter().any(is_lost_host) {
            PARTITION
        } else {
            DEATH
        };
        if !lost.contains(&0) {
            self.all_agree(since, bound);
        }
        self.names_one_of(&lost);
        self.in_time(since, bound);
    }

    fn shares_host(&self, one: usize, other: usize) -> bool {
        self.plan.shares_memory && self.plan.hosts[one] == self.plan.hosts[other]
    }

    /// The ranks of a rank's host.
    fn neighbours(&self, rank: usize) -> Vec<usize> {
        let hosts = &self.plan.hosts;
        (0..hosts.len())
            .filter(|&other| hosts[other] == hosts[rank])
            .collect()
    }

    /// Promise 5: slow is not dead.
    fn after_nothing(&mut self) {
        let is_long = |(at, fault, _): &(Duration, JobFault, _)| match fault {
            JobFault::Stop(_, time) | JobFault::Block(_, _, _, Some(time)) => {
                let in_start = self.all_started().is_none_or(|started| *at <= started);
                in_start && *time >= LONG_IN_START
            }
            _ => false,
        };
        let is_excused = self.outcome.happened.iter().any(is_long);
        for (rank, record) in self.outcome.ranks.iter().enumerate() {
            if let Some(Err(text)) = &record.started
                && !is_excused
            {
                self.breaches
                    .push(format!("5: rank {rank} does not start: {text}"));
            }
        }
        if self.all_started().is_none() {
            return;
        }
        for failure in &self.failures {
            self.breaches
                .push(format!("5: nothing is lost, but {failure:?}"));
        }
    }

    /// Promise 1: the same record on all ranks, in time.
    fn all_agree(&mut self, since: Duration, bound: Duration) {
        let alive = self.failures.iter().filter(|it| self.is_alive(it.rank));
        let alive: Vec<RankFailure> = alive.cloned().collect();
        for failure in &alive {
            if failure.cause != alive[0].cause {
                let text = format!("1: {:?} differs from {failure:?}", alive[0]);
                self.breach(text);
            }
        }
        self.in_time(since, bound);
    }

    fn in_time(&mut self, since: Duration, bound: Duration) {
        let bound = bound + 12 * self.plan.properties.delay + self.plan.transfer_time();
        for failure in self.failures.clone() {
            let took = failure.end.saturating_sub(since.max(failure.begin));
            // A verdict waits for the calls of others, which may compute.
            if self.is_alive(failure.rank) && took > bound && !self.others_computed(&failure) {
                self.breach(format!("1: took {took:?}, not {bound:?}: {failure:?}"));
            }
        }
    }

    /// True if a rank computed while this one waited: what broke may have been needed only after that.
    fn others_computed(&self, failure: &RankFailure) -> bool {
        let number = self.outcome.ranks[failure.rank].calls.iter();
        let number = number
            .take_while(|(begin, _, _)| *begin < failure.begin)
            .count();
        let mut pauses = self.plan.pauses.iter();
        pauses.any(|(before, rank, _)| *rank != failure.rank && *before >= number)
    }

    fn all_name(&mut self, lost: &[usize], since: Duration, bound: Duration) {
        self.all_agree(since, bound);
        self.names_one_of(lost);
    }

    fn names_one_of(&mut self, lost: &[usize]) {
        for failure in self.failures.clone() {
            if self.is_alive(failure.rank) && !is_lost(&failure.cause, lost) {
                self.breach(format!("1: {lost:?} were lost, but {failure:?}"));
            }
        }
    }

    /// Ranks that rank 0 does not reach: they name rank 0, the others name one of them. Or only a data connection broke.
    fn cut_off(&mut self, cut: &[usize], since: Duration, bound: Duration) {
        for failure in self.failures.clone() {
            let is_cut = cut.contains(&failure.rank);
            let is_broken = matches!(&failure.cause, Cause::Io { message, .. }
                if message.contains("both"));
            let is_left = matches!(
                &failure.cause,
                Cause::RankLost {
                    how: Loss::Left,
                    ..
                }
            );
            // A host waits for what its leader does not get from a rank 0 that has finished.
            let waits_for_cut = || cut.iter().any(|&rank| self.shares_host(rank, failure.rank));
            let names_rank_0 =
                is_lost(&failure.cause, &[0]) && (is_cut || is_left && waits_for_cut());
            if !names_rank_0 && !is_lost(&failure.cause, cut) && !is_broken {
                self.breach(format!("1: {cut:?} were cut off, but {failure:?}"));
            }
        }
        self.in_time(since, bound);
        let others = self.failures.iter().filter(|it| !cut.contains(&it.rank));
        let others: Vec<RankFailure> = others.cloned().collect();
        for failure in &others {
            if failure.cause != others[0].cause {
                self.breach(format!("1: {:?} differs from {failure:?}", others[0]));
            }
        }
    }

    fn is_io(&mut self) {
        for failure in self.failures.clone() {
            if !matches!(failure.cause, Cause::Io { .. }) {
                self.breach(format!("1: a connection was lost, but {failure:?}"));
            }
        }
    }

    fn after_act(&mut self, acting: usize, act: Act) {
        let Some(since) = self.outcome.ranks[acting].acted else {
            return;
        };
        self.all_agree(since, DEATH);
        for failure in self.failures.clone() {
            let fits = match (act, &failure.cause) {
                (Act::OtherCall, Cause::Mismatch { left, right }) => {
                    left.rank == acting || right.rank == acting
                }
                (Act::Abort, Cause::Aborted { rank, reason, .. }) => {
                    *rank == acting && reason == REASON
                }
                (Act::Panic, Cause::RankLost { rank, how, .. }) => {
                    *rank == acting && matches!(how, Loss::Panic(_))
                }
                (Act::Leave, Cause::RankLost { rank, how, .. }) => {
                    *rank == acting && *how == Loss::Left
                }
                _ => false,
            };
            if !fits {
                self.breach(format!("4: rank {acting} did {act:?}, but {failure:?}"));
            }
        }
        let must_fail = act != Act::Panic && act != Act::Leave;
        if must_fail && self.failures.len() < self.plan.size {
            let failed: Vec<usize> = self.failures.iter().map(|it| it.rank).collect();
            self.breach(format!(
                "4: rank {acting} did {act:?}, and only {failed:?} fail"
            ));
        }
    }

    /// With a deadline of the user's: only that ends the job, and all ranks agree.
    fn after_deadline(&mut self) {
        if self.all_started().is_none() {
            return;
        }
        for failure in self.failures.clone() {
            if !matches!(failure.cause, Cause::Deadline { .. })
                || failure.cause != self.failures[0].cause
            {
                let first = self.failures[0].clone();
                self.breach(format!("5: with a deadline, {first:?} and {failure:?}"));
            }
        }
    }
}

fn is_death(fault: JobFault) -> bool {
    matches!(fault, JobFault::Kill(_) | JobFault::LoseHost(_))
}

/// True if the cause is the loss of one of these ranks.
fn is_lost(cause: &Cause, lost: &[usize]) -> bool {
    let is_gone = |how: &Loss| matches!(how, Loss::Vanished | Loss::Left);
    matches!(cause, Cause::RankLost { rank, how, .. } if lost.contains(rank) && is_gone(how))
}
