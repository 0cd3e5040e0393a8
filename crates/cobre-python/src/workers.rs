//! Fresh interpreters as the ranks of a job: started, listened to, ended.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use cobre_launch::{Bind, FailureCause, Launch, LaunchError, MAX_RANKS, Outcome, Status};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags};
use rustix::io::Errno;

use crate::errors;

/// The longest time until a signal to this process is handled.
const LOOK: Duration = Duration::from_millis(50);
/// SIGINT: what a worker's interpreter takes as a wish to end.
const INTERRUPT: u8 = 2;
/// SIGTERM: what ends an interpreter that is still starting, without a word. An interrupted one would
/// tell where, and the others would wait for it.
const TERMINATE: u8 = 15;
/// Bytes before a message that say how long it is.
const LENGTH: usize = 8;

/// A job of interpreters.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Job {
    program: OsString,
    arguments: Vec<OsString>,
    workers: usize,
    backend: Option<String>,
    /// True if each worker gets a processor of its own.
    bind: bool,
    /// The grace period of workers that are asked to end.
    grace_secs: f64,
    /// The input of every worker.
    task: Vec<u8>,
}

/// The end of a job.
#[derive(IntoPyObject)]
pub(crate) struct Ended {
    pids: Vec<i32>,
    /// By worker: its exit code, or the signal that killed it as a negative number.
    exit_codes: Vec<i32>,
    /// The worker that failed first.
    failed: Option<usize>,
    /// The reason why the job did not succeed; empty if it did.
    message: String,
}

/// The messages of one worker, each with its length in front. The first says that it has
/// joined the others.
struct Messages {
    /// `None` after its end.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    /// True if there was a message.
    heard: bool,
}

impl Messages {
    /// Takes what is there, without waiting.
    fn read(&mut self) {
        let Some(pipe) = &self.pipe else {
            return;
        };
        let mut buffer = vec![0; 1 << 16];
        loop {
            match rustix::io::read(pipe, &mut buffer[..]) {
                Ok(length @ 1..) => self.bytes.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(0) | Err(_) => {
                    self.pipe = None;
                    return;
                }
            }
        }
    }

    /// The next whole message, if there is one.
    fn next(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.bytes.split_first_chunk::<LENGTH>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let message = rest.get(..length)?.to_vec();
        self.bytes.drain(..LENGTH + length);
        self.heard = true;
        Some(message)
    }
}

/// Starts workers and hands what they say to `hear(rank, message)`, until all of them are gone. If
/// that raises, or the handler of a signal does, the workers are asked to end, and it is raised then.
#[pyfunction]
pub(crate) fn run_workers(py: Python<'_>, job: Job, hear: Py<PyAny>) -> PyResult<Ended> {
    if !(1..=MAX_RANKS).contains(&job.workers) {
        let asked = job.workers;
        return Err(errors::of(&LaunchError::RankCount { asked }));
    }
    let mut messages = Vec::new();
    let (launch, mut stop) =
        prepare(&job, &mut messages).map_err(|error| errors::of_system(&error))?;
    let mut raised: Option<PyErr> = None;
    let outcome: Result<Outcome, LaunchError> = std::thread::scope(|scope| {
        // Its end closes this process's copies of the pipes, and with them the messages.
        let running = scope.spawn(move || launch.run());
        while messages.iter().any(|from| from.pipe.is_some()) {
            py.detach(|| wait(&messages));
            let heard = listen(py, &mut messages, raised.is_none().then_some(&hear));
            if let Err(error) = heard.and_then(|()| py.check_signals()) {
                // A second wish to end is one to end at once, which the launcher sees to.
                let _ = stop.write_all(&[wish(&mut messages)]);
                raised.get_or_insert(error);
            }
        }
        py.detach(|| {
            running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    match (raised, outcome) {
        (Some(raised), _) => Err(raised),
        (None, Err(error)) => Err(errors::of(&error)),
        (None, Ok(outcome)) => Ok(Ended::of(&outcome)),
    }
}

/// The launch, and where signals for it are written.
fn prepare(
    job: &Job,
    messages: &mut Vec<Messages>,
) -> std::io::Result<(Launch, std::io::PipeWriter)> {
    let mut launch = Launch::new(&job.program, job.workers)
        .args(job.arguments.iter().cloned())
        .grace(Duration::try_from_secs_f64(job.grace_secs).unwrap_or(Duration::MAX))
        .bind(if job.bind { Bind::Core } else { Bind::None });
    if let Some(backend) = &job.backend {
        launch = launch.backend(backend.clone());
    }
    let task = rustix::fs::memfd_create("cobre-task", MemfdFlags::CLOEXEC)?;
    let mut task = std::fs::File::from(task);
    task.write_all(&job.task)?;
    let mut numbers = vec![launch.inherit(task.into())?];
    for _ in 0..job.workers {
        let (reader, writer) = std::io::pipe()?;
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        numbers.push(launch.inherit(writer.into())?);
        messages.push(Messages {
            pipe: Some(reader.into()),
            bytes: Vec::new(),
            heard: false,
        });
    }
    let launch = launch.args(numbers.iter().map(ToString::to_string));
    let (orders, stop) = std::io::pipe()?;
    Ok((launch.signals_from(orders.into())?, stop))
}

/// The signal that asks workers to end: those that have all joined can end together.
fn wish(messages: &mut [Messages]) -> u8 {
    messages.iter_mut().for_each(Messages::read);
    let joined = |from: &Messages| from.heard || !from.bytes.is_empty();
    if messages.iter().all(joined) {
        INTERRUPT
    } else {
        TERMINATE
    }
}

/// Waits until a worker has something to say, or it is time to look for signals.
fn wait(messages: &[Messages]) {
    let pipes = messages.iter().filter_map(|from| from.pipe.as_ref());
    let mut polled: Vec<PollFd<'_>> = pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
    let look = Timespec::try_from(LOOK).ok();
    // An interrupted wait is one that has news.
    let _ = poll(&mut polled, look.as_ref());
}

/// Takes what workers have said; without a listener it is dropped.
fn listen(py: Python<'_>, messages: &mut [Messages], hear: Option<&Py<PyAny>>) -> PyResult<()> {
    for (rank, from) in messages.iter_mut().enumerate() {
        py.detach(|| from.read());
        while let Some(message) = from.next() {
            if let Some(hear) = hear {
                hear.call1(py, (rank, PyBytes::new(py, &message)))?;
            }
        }
    }
    Ok(())
}

impl Ended {
    fn of(outcome: &Outcome) -> Self {
        let code = |status: Status| match status {
            Status::Exited(code) => code,
            Status::Killed(signal) => -signal,
        };
        Self {
            pids: outcome.ranks.iter().map(|rank| rank.pid).collect(),
            exit_codes: outcome.ranks.iter().map(|rank| code(rank.status)).collect(),
            failed: match outcome.cause {
                Some(FailureCause::Rank { rank, .. }) => Some(rank),
                _ => None,
            },
            message: outcome.message("cobre").trim_end().to_owned(),
        }
    }
}
