//! Detection of lost ranks. Each process has a thread and a connection to rank 0 for nothing else. Rank 0
//! turns whatever goes wrong anywhere into one verdict and sends it to all; a rank that loses rank
//! 0 names rank 0.
//!
//! Only these connections have `TCP_USER_TIMEOUT` and keepalive: on a data connection they would
//! end a healthy rank that computes while a large block waits for it. Rank 0 asks, and asks again
//! only when the last question was answered: so a stopped process, whose kernel acknowledges
//! without end, never fills a buffer and so never looks dead.
//!
//! Here is the thread; `coordinator.rs` is what it does on rank 0, `follower.rs` on the others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Connection, WatchLink};
use super::coordinator::Coordinator;
use super::follower::Follower;
use super::message::{Inbox, Message};
use super::sys::CloseOnFork;
use super::system::{self, JoinHandle, PollSource, TcpStream, UnixStream};
use super::verdict::{GRACE, JobVerdict, WatchRequest};
use crate::backends::fork_guard::ForkGuard;
use crate::backends::wire;
use crate::error::{Cause, Loss};

/// The interval at which rank 0 sends each rank a heartbeat.
pub(super) const BEAT: Duration = Duration::from_millis(250);
/// The time that bytes may stay unacknowledged before the other host counts as gone.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
/// The time that a leaving rank waits for the others to take note.
pub(super) const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// The time that a panicking rank waits for the others to be told; rank 0 may be stopped.
const PANIC: Duration = Duration::from_secs(10);

/// Sets on a watching connection what finds out that the other host is gone.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    system::prepare_watch(stream, SILENCE)
}

/// This process's watch over the job. Dropping it is an orderly leave: a worker's ends when what it
/// has sent has arrived, rank 0's when all others have left, as nobody else finds out that one of
/// them is lost.
#[derive(Debug)]
pub(super) struct WatchThread {
    pub(super) job_verdict: Arc<JobVerdict>,
    thread: Option<JoinHandle<()>>,
    /// The process that watches; one forked from it has no thread.
    pub(super) fork_guard: ForkGuard,
}

/// Limits that the user has set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The time after which a stall is reported.
    pub(super) stall: Duration,
    /// The longest time for a collective.
    pub(super) timeout: Option<Duration>,
}

impl WatchThread {
    /// Begins to watch. `streams` are the watching connections by rank: to all workers on rank 0, to
    /// rank 0 on a worker.
    pub(super) fn begin(
        job_verdict: JobVerdict,
        wake_receiver: UnixStream,
        streams: Vec<Option<(Connection, Inbox)>>,
        limits: Limits,
    ) -> io::Result<Self> {
        for (connection, _) in streams.iter().flatten() {
            prepare(&connection.stream)?;
            connection.stream.set_nonblocking(true)?;
        }
        let own = |(connection, inbox)| WatchLink::new(connection, inbox);
        let mut connections = streams.into_iter().map(|stream| stream.map(own));
        let (job_verdict, wake_receiver) = (Arc::new(job_verdict), CloseOnFork::new(wake_receiver));
        let (shared, panic_guard) = (job_verdict.clone(), PanicGuard(job_verdict.clone()));
        let (name, stack) = ("cobre-watch", 256 * 1024);
        let thread = if job_verdict.rank == 0 {
            let coordinator =
                Coordinator::new(shared, wake_receiver, connections.collect(), limits)?;
            system::spawn(name, stack, move || {
                let _alarm = panic_guard;
                coordinator.run();
            })
        } else {
            let connection = connections.find_map(|connection| connection);
            let follower = Follower::new(shared, wake_receiver, connection, limits);
            system::spawn(name, stack, move || {
                let _alarm = panic_guard;
                follower.run();
            })
        }?;
        Ok(Self {
            job_verdict,
            thread: Some(thread),
            fork_guard: ForkGuard::here(),
        })
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take().filter(|_| self.fork_guard.is_here()) else {
            return;
        };
        // Unwinding is no orderly end: the others must not take it for one.
        if std::thread::panicking() && !self.job_verdict.is_stopped() {
            let how = Loss::Panic("see its standard error".to_owned());
            let cause = self
                .job_verdict
                .lost(self.job_verdict.rank, how, self.job_verdict.step());
            self.job_verdict.request(WatchRequest::Report(cause));
            self.job_verdict.await_verdict_for(PANIC);
        }
        self.job_verdict.request(WatchRequest::Leave);
        let _ = thread.join();
    }
}

/// Ends the job on this rank if the thread that watches ends by a panic: nobody else would.
struct PanicGuard(Arc<JobVerdict>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set_verdict(Cause::Io {
                action: "watching the other ranks".to_owned(),
                message: "the thread that does it panicked".to_owned(),
            });
            system::sleep(GRACE);
            self.0.alarm_host();
        }
    }
}

/// Waits until a connection or the waker is readable, one with unsent messages is writable, or `limit` has passed.
pub(super) fn listen<'a>(
    wake_receiver: &'a UnixStream,
    links: impl Iterator<Item = &'a WatchLink> + Clone,
    limit: Duration,
) {
    let wake_source = [PollSource::Wake(wake_receiver)].into_iter();
    let unsent = links.clone().filter(|link| !link.is_flushed());
    let writing = unsent.map(|link| PollSource::Write(&link.socket));
    let reading = links.clone().map(|link| PollSource::Read(&link.socket));
    system::poll(wake_source.chain(reading).chain(writing), limit);
    system::silence(wake_receiver);
    links.for_each(WatchLink::flush);
}

/// The cause that a message carries.
pub(super) fn verdict_of(message: &Message) -> Cause {
    wire::decode(&message.body).unwrap_or_else(|| Cause::Io {
        action: "reading why the job failed".to_owned(),
        message: "rank 0 sent an invalid record".to_owned(),
    })
}
