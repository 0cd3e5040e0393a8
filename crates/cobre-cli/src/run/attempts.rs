//! The ranks of a run, on this machine or on hosts: started, and after a loss started again from the newest checkpoint, on
//! the hosts that are left; those that come back are taken in at the next checkpoint.

use std::ffi::OsString;
use std::io::{IsTerminal, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cobre_comm::{ErrorKind, MAX_RANKS};
use cobre_launch::{
    Bind, FailureCause, Hosts, Launch, LaunchError, Outcome, Output, answers, check_shared,
};

use super::report::{self, Failure};
use super::{Args, NAME, advise, bind_of, check, ended, progress, threads_of, trace};
use crate::{exit, hosts, job, placement};

/// The grace period in which ranks that are asked to end finish an iteration and save.
const GRACE: Duration = Duration::from_secs(60);
/// The interval at which hosts that are gone are asked again.
const ASK: Duration = Duration::from_secs(2);
/// The time that such a host has to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Fewest and most ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankRange {
    least: usize,
    most: usize,
}

impl RankRange {
    /// Reads `MIN:MAX`, or one number for both.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once(':').unwrap_or((text, text));
        let both = least.parse().ok().zip(most.parse().ok());
        let both = both.filter(|(least, most)| 1 <= *least && least <= most && *most <= MAX_RANKS);
        let (least, most) = both.ok_or_else(|| {
            format!("MIN:MAX is expected, numbers from 1 to {MAX_RANKS}, the smaller one first")
        })?;
        Ok(Self { least, most })
    }
}

/// Starts the ranks on this machine: this program again, without `-n`.
pub(super) fn on_this_machine(ranks: usize, args: &Args) -> u8 {
    // Ranks would all find the same errors.
    if let Err(failure) = check(args, ranks) {
        return failure.tell(args.json);
    }
    if args.report_bindings {
        let bind = bind_of(args, ranks);
        let reported = placement::report(NAME, bind, ranks, args.backend.as_deref());
        if let Err(error) = reported {
            return ended(Err(error), args.json);
        }
    }
    Attempts::new(args).run(ranks, |resume| job_of(ranks, args, resume))
}

/// Starts the ranks on hosts.
pub(super) fn on_hosts(args: &Args) -> u8 {
    let all = match args.hosts.hosts(args.workers) {
        Ok(Some(hosts)) => hosts,
        Ok(None) => return Failure::new(ErrorKind::Usage, "there is no host").tell(args.json),
        Err(problem) => return Failure::new(ErrorKind::Usage, problem).tell(args.json),
    };
    if args.report_bindings {
        let problem = "--report-bindings is for the ranks of this machine";
        return Failure::new(ErrorKind::Usage, problem).tell(args.json);
    }
    let slots = all.list.slots();
    let range = args.rank_range.unwrap_or(RankRange {
        least: slots,
        most: slots,
    });
    if range.least > slots {
        let problem = format!(
            "--ranks: at least {} ranks, but the hosts take {slots}",
            range.least
        );
        return Failure::new(ErrorKind::Usage, problem).tell(args.json);
    }
    if let Err(failure) = check(args, slots) {
        return failure.tell(args.json);
    }
    if let Some(output) = args.output.as_deref().filter(|_| args.retries > 0)
        && all.list.hosts().len() > 1
        && let Err(error) = check_shared(&all, output)
    {
        return Failure::of_launch(&error).tell(args.json);
    }
    Attempts::new(args).run_on_hosts(&all, range)
}

/// The state of a run between its attempts.
struct Attempts<'a> {
    args: &'a Args,
    retries: usize,
    resume: bool,
    /// Hosts that were lost and have not answered since.
    gone: Vec<String>,
    /// This process was asked to end: no attempt follows.
    signalled: bool,
}

/// The result of an attempt.
enum Attempt {
    /// It is over, with this code.
    Over(u8),
    /// The ranks start again.
    Again,
}

impl<'a> Attempts<'a> {
    fn new(args: &'a Args) -> Self {
        Self {
            args,
            retries: args.retries,
            resume: args.resume,
            gone: Vec::new(),
            signalled: false,
        }
    }

    /// Makes room for the trace of this run.
    fn begin_trace(&self) -> Option<u8> {
        let problem = trace::begin(self.args.trace.as_deref()?).err()?;
        Some(Failure::new(ErrorKind::Io, problem).tell(self.args.json))
    }

    fn run(mut self, ranks: usize, job: impl Fn(bool) -> Result<Launch, String>) -> u8 {
        if let Some(code) = self.begin_trace() {
            return code;
        }
        loop {
            let result = match job(self.resume) {
                Ok(job) => self.result_of(&job),
                Err(problem) => return Failure::new(ErrorKind::Io, problem).tell(self.args.json),
            };
            merge_traces(self.args, ranks);
            if let Attempt::Over(code) = self.judge(result) {
                return code;
            }
        }
    }

    fn run_on_hosts(mut self, all: &Hosts, range: RankRange) -> u8 {
        if let Some(code) = self.begin_trace() {
            return code;
        }
        loop {
            let hosts = self.next_hosts(all, range);
            let missing = hosts.list.slots() < range.most && !self.gone.is_empty();
            let result = match self.attempt(&hosts, missing.then_some(all)) {
                Ok(result) => result,
                Err(problem) => return Failure::new(ErrorKind::Io, problem).tell(self.args.json),
            };
            merge_traces(self.args, hosts.list.slots());
            let attempt = match result {
                (result, Some(back)) => self.take_back(result, &back),
                (result, None) => self.judge(result),
            };
            if let Attempt::Over(code) = attempt {
                return code;
            }
        }
    }

    /// The hosts of the next attempt, as many as there are; waits while they are too few.
    fn next_hosts(&mut self, all: &Hosts, range: RankRange) -> Hosts {
        let mut told = false;
        loop {
            let left = all.list.without(&self.gone);
            let slots = left.slots();
            if slots >= range.least {
                return Hosts {
                    list: left.filled(range.most),
                    ..all.clone()
                };
            }
            if !told {
                told = true;
                let gone = self.gone.join(", ");
                exit::note(
                    NAME,
                    &format!(
                        "waiting for {gone}: {slots} ranks are left, {} are the fewest",
                        range.least
                    ),
                );
            }
            let gone = self.gone.clone();
            let output = self.args.output.as_deref();
            self.gone
                .retain(|host| !answers(all, &gone, host, output, ANSWER));
            if all.list.without(&self.gone).slots() < range.least {
                std::thread::sleep(ASK);
            }
        }
    }

    /// Runs once on these hosts. If some of `all` are missing, the second result is the one that came back meanwhile, for
    /// which the ranks were asked to end.
    fn attempt(
        &mut self,
        hosts: &Hosts,
        all: Option<&Hosts>,
    ) -> Result<(Result<Outcome, LaunchError>, Option<String>), String> {
        let mut job = job_of_hosts(hosts, self.args, self.resume)?;
        let watch = match all {
            Some(all) => {
                let (signals, pipe) = signal_pipe()?;
                let taken = job.signals_from(signals);
                job = taken.map_err(|error| format!("cannot pass signals on: {error}"))?;
                let lost = LostHosts {
                    all: all.clone(),
                    gone: self.gone.clone(),
                    output: self.args.output.clone(),
                };
                Some(ReturnWatch::start(lost, pipe)?)
            }
            None => None,
        };
        let result = self.result_of(&job);
        Ok((result, watch.and_then(ReturnWatch::end)))
    }

    fn result_of(&mut self, job: &Launch) -> Result<Outcome, LaunchError> {
        let result = job.run();
        self.signalled |= job.was_signalled();
        result
    }

    /// The next step after an attempt that ended by itself or by a loss.
    fn judge(&mut self, result: Result<Outcome, LaunchError>) -> Attempt {
        let lost = match &result {
            Ok(outcome) => {
                exit::of_ranks(outcome) == exit::RANKS
                    && matches!(outcome.cause, Some(FailureCause::Rank { .. }))
            }
            Err(error) => matches!(error, LaunchError::HostLost { .. }),
        };
        if self.retries == 0 || self.signalled || !lost {
            let code = ended(result, self.args.json);
            if matches!(code, exit::RANKS | exit::STOPPED) {
                advise(self.args);
            }
            return Attempt::Over(code);
        }
        self.retries -= 1;
        self.resume = true;
        match result {
            Ok(outcome) => {
                report::tell_outcome(&outcome, exit::RANKS, false);
            }
            Err(error) => {
                exit::note(NAME, &exit::told(&error));
                if let LaunchError::HostLost { host, .. } = error {
                    self.gone.push(host);
                }
            }
        }
        let left = self.retries;
        exit::note(
            NAME,
            &format!("starting again from the newest checkpoint; {left} more retries"),
        );
        Attempt::Again
    }

    /// The next step after an attempt in which a host came back.
    fn take_back(&mut self, result: Result<Outcome, LaunchError>, back: &str) -> Attempt {
        self.gone.retain(|host| host != back);
        match result {
            Ok(mut outcome)
                if matches!(outcome.cause, Some(FailureCause::Signal(RETURN)))
                    && !self.signalled =>
            {
                if outcome.ranks.iter().all(|rank| rank.status.success()) {
                    // It was over before the signal came.
                    outcome.cause = None;
                    return self.judge(Ok(outcome));
                }
                self.resume = true;
                exit::note(
                    NAME,
                    &format!("host {back} is back; starting again from the newest checkpoint"),
                );
                Attempt::Again
            }
            other => self.judge(other),
        }
    }
}

/// The signal by which ranks are asked to save and end, so that a host can be taken in.
const RETURN: i32 = 15;

/// The hosts that an attempt does without.
struct LostHosts {
    all: Hosts,
    gone: Vec<String>,
    /// The directory that they must see.
    output: Option<PathBuf>,
}

impl LostHosts {
    /// One that could take part again.
    fn find_back(&self) -> Option<&String> {
        let (all, output) = (&self.all, self.output.as_deref());
        let mut gone = self.gone.iter();
        gone.find(|host| answers(all, &self.gone, host, output, ANSWER))
    }
}

/// Asks hosts that are gone, again and again, and ends the ranks' attempt once one answers.
struct ReturnWatch {
    back: Arc<Mutex<Option<String>>>,
    /// Its end is that of the thread, once the host that is being asked has answered or not.
    _over: Sender<()>,
}

impl ReturnWatch {
    fn start(lost: LostHosts, signals: PipeWriter) -> Result<Self, String> {
        let (over, ended) = channel();
        let back = Arc::new(Mutex::new(None));
        let found = Arc::clone(&back);
        let thread = std::thread::Builder::new().name("lost hosts".to_owned());
        let thread = thread.spawn(move || watch(&lost, signals, &ended, &found));
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { back, _over: over })
    }

    /// The host that has come back, if one has. One that is still being asked is not waited for.
    fn end(self) -> Option<String> {
        lock(&self.back).take()
    }
}

fn lock(back: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    back.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(
    lost: &LostHosts,
    mut signals: PipeWriter,
    ended: &Receiver<()>,
    back: &Mutex<Option<String>>,
) {
    while ended.recv_timeout(ASK) == Err(RecvTimeoutError::Timeout) {
        if let Some(found) = lost.find_back() {
            *lock(back) = Some(found.clone());
            // An attempt that is over has closed the pipe.
            let _ = signals.write_all(&[RETURN as u8]);
            return;
        }
    }
}

/// Puts the traces of the ranks of an attempt into one file.
fn merge_traces(args: &Args, ranks: usize) {
    let Some(path) = &args.trace else {
        return;
    };
    match trace::merge(path, ranks) {
        // Ranks that found nothing to do have none.
        Ok(missing) if missing.is_empty() || missing.len() == ranks => {}
        Ok(missing) => {
            let first = trace::part_of(path, missing[0]);
            let problem = format!(
                "--trace: {} of {ranks} ranks have left none here; they may be on their hosts, as {}",
                missing.len(),
                first.display()
            );
            exit::note(NAME, &problem);
        }
        Err(problem) => exit::note(NAME, &problem),
    }
}

fn signal_pipe() -> Result<(OwnedFd, PipeWriter), String> {
    let (reader, writer): (PipeReader, PipeWriter) =
        std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    Ok((reader.into(), writer))
}

/// The words of a rank's command line: those of this one, without what the launcher sees to.
fn words_of(args: &Args, resume: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["run".into(), "--spoken-for".into()];
    if resume && !args.resume {
        words.push("--resume".into());
    }
    let own = [
        "-n",
        "--workers",
        "--ranks",
        "--backend",
        "--retries",
        "--bind",
    ];
    words.extend(job::own_arguments(&[&own[..], &hosts::OPTIONS].concat()));
    words.retain(|word| word != "--report-bindings");
    words
}

fn job_of(ranks: usize, args: &Args, resume: bool) -> Result<Launch, String> {
    let mut words = words_of(args, resume);
    if args.threads.is_none() {
        // A rank that is bound to a processor would count that one alone.
        let threads = threads_of(args, ranks);
        words.insert(1, format!("--threads={threads}").into());
    }
    let job = job::again(ranks, args.backend.as_deref(), words)?.grace(GRACE);
    Ok(shown(job, args).bind(bind_of(args, ranks)))
}

fn job_of_hosts(hosts: &Hosts, args: &Args, resume: bool) -> Result<Launch, String> {
    let words = words_of(args, resume);
    let ranks = hosts.list.slots();
    let bind = args.bind.map(|_| bind_of(args, ranks));
    let job = job::again(ranks, args.backend.as_deref(), words)?;
    let job = job.grace(GRACE).bind(bind.unwrap_or(Bind::None));
    let job = match args.hosts.command() {
        Some(command) => job.program(command),
        None => job,
    };
    Ok(shown(job, args).hosts(hosts.clone()))
}

fn shown(job: Launch, args: &Args) -> Launch {
    if args.quiet {
        // Results come by reports: what else is written, as by an MPI library, is none of them.
        job.output(Output::Diagnostics)
    } else if std::io::stderr().is_terminal() {
        job.progress(progress::of_ranks)
    } else {
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ranks_has_an_order() {
        assert_eq!(RankRange::parse("2:8"), Ok(RankRange { least: 2, most: 8 }));
        assert_eq!(RankRange::parse("4"), Ok(RankRange { least: 4, most: 4 }));
        for text in ["0:4", "5:4", ":4", "2:", "a:b", "1:257"] {
            assert!(RankRange::parse(text).is_err(), "{text}");
        }
    }
}
