//! PMIx: the process manager keeps pairs of key and value for the ranks of a job, and is asked through a library of its own.
//! Open MPI's `mpirun`, PRRTE's `prterun` and Slurm's `srun --mpi=pmix` speak it.
//!
//! A process connects once: a manager takes the end of a connection for the end of the rank's part in the job.

use std::ffi::{CStr, CString};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::pmix_library::{PmixLibrary, at_exit};

/// The variables of this process, by which its manager shows itself.
pub(super) const RANK: &str = "PMIX_RANK";
pub(super) const NAMESPACE: &str = "PMIX_NAMESPACE";
/// The key of the job's offer.
const KEY: &CStr = c"cobre-job";
/// Keys of the manager: the number of ranks of a job, and of those on this host.
const JOB_SIZE: &CStr = c"pmix.job.size";
const LOCAL_SIZE: &CStr = c"pmix.local.size";
/// The time that disconnecting may take when the process exits.
const FAREWELL: Duration = Duration::from_secs(5);

/// The job of this process, as its manager has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PmixJob {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) one_host: bool,
}

/// The connection of this process to its manager.
enum PmixConnection {
    None,
    Open {
        namespace: CString,
        job: PmixJob,
        /// The process that opened it: a child that was forked has it too, and must not use it.
        pid: u32,
    },
    /// Closed in order: the job was found, and perhaps joined.
    Closed(PmixJob),
    /// Given up, for this reason.
    Failed(String),
}

static CONNECTION: Mutex<PmixConnection> = Mutex::new(PmixConnection::None);

fn connection() -> MutexGuard<'static, PmixConnection> {
    CONNECTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library with its version, or the reason why it cannot be used.
fn library() -> &'static Result<(PmixLibrary, String), String> {
    static LIBRARY: OnceLock<Result<(PmixLibrary, String), String>> = OnceLock::new();
    LIBRARY.get_or_init(PmixLibrary::load)
}

/// The version of the library.
pub(super) fn version() -> Result<&'static str, &'static str> {
    let version = library().as_ref().map(|(_, version)| version.as_str());
    // Standards and revisions follow in parentheses and after a comma.
    let name = |version: &'static str| version.split(['(', ',']).next().unwrap_or(version).trim();
    version.map(name).map_err(String::as_str)
}

/// The job of this process: the manager is asked once, and stays connected if there are several ranks.
pub(super) fn job(rank: usize, namespace: &str, deadline: Instant) -> Result<PmixJob, String> {
    let mut connection = connection();
    match &*connection {
        PmixConnection::None => {}
        PmixConnection::Open { job, .. } | PmixConnection::Closed(job) => return Ok(*job),
        PmixConnection::Failed(why) => return Err(why.clone()),
    }
    let library = library().as_ref().map_err(Clone::clone)?.0;
    let expected = (namespace.to_owned(), rank);
    let found = within(deadline, move || connect(&library, &expected));
    *connection = match found {
        Err(why) => PmixConnection::Failed(why),
        Ok((_, job)) if job.size == 1 => match within(deadline, move || library.finalize()) {
            Ok(()) => PmixConnection::Closed(job),
            Err(why) => PmixConnection::Failed(why),
        },
        Ok((namespace, job)) => {
            at_exit(leave);
            let pid = std::process::id();
            PmixConnection::Open {
                namespace,
                job,
                pid,
            }
        }
    };
    match &*connection {
        PmixConnection::Open { job, .. } | PmixConnection::Closed(job) => Ok(*job),
        PmixConnection::Failed(why) => Err(why.clone()),
        PmixConnection::None => Err("it was not asked".to_owned()),
    }
}

/// Connects and asks for the job, which must be the one of the variables: they and the library could belong to two managers.
fn connect(
    library: &PmixLibrary,
    expected: &(String, usize),
) -> Result<(CString, PmixJob), String> {
    let (namespace, rank) = library.init()?;
    let found = (namespace.to_string_lossy().into_owned(), rank as usize);
    if found != *expected {
        return Err(format!(
            "it has this process as rank {} of {:?}, and {NAMESPACE} and {RANK} say rank {} of {:?}: are they of a job that \
             has ended?",
            found.1, found.0, expected.1, expected.0
        ));
    }
    let size = library.number(&namespace, JOB_SIZE)? as usize;
    let here = library.number(&namespace, LOCAL_SIZE)? as usize;
    let rank = found.1;
    if rank >= size {
        return Err(format!("it has this process as rank {rank} of {size}"));
    }
    let one_host = here == size;
    let job = PmixJob {
        rank,
        size,
        one_host,
    };
    Ok((namespace, job))
}

/// The text that rank 0 offers, on every rank: rank 0 brings it in `own`. The connection is closed afterwards.
pub(super) fn share(own: Option<&str>, deadline: Instant) -> Result<String, String> {
    let mut connection = connection();
    let library = library().as_ref().map_err(Clone::clone)?.0;
    let (namespace, job) = match &*connection {
        PmixConnection::Open {
            namespace,
            job,
            pid,
        } if *pid == std::process::id() => (namespace.clone(), *job),
        PmixConnection::Failed(why) => return Err(why.clone()),
        _ => {
            let why = "this process has joined its job already: use the communicator that it has";
            return Err(why.to_owned());
        }
    };
    let own = own.map(CString::new).transpose();
    let own = own.map_err(|error| error.to_string())?;
    let shared = within(deadline, move || {
        if let Some(text) = &own {
            library.put(KEY, text)?;
        }
        library.fence(&namespace)?;
        let text = library.text_of(&namespace, 0, KEY)?;
        library.finalize()?;
        Ok(text)
    });
    *connection = match &shared {
        Ok(_) => PmixConnection::Closed(job),
        Err(why) => PmixConnection::Failed(why.clone()),
    };
    shared
}

/// Closes a connection that no communicator was made of: without it the manager takes the rank for failed.
extern "C" fn leave() {
    // A lock that is held belongs to a thread that is still asking.
    let Ok(mut connection) = CONNECTION.try_lock() else {
        return;
    };
    if let PmixConnection::Open { job, pid, .. } = &*connection
        && *pid == std::process::id()
        && let Ok((library, _)) = library()
    {
        let closed = PmixConnection::Closed(*job);
        // The process is about to end; the manager sees that too.
        let _ = within(Instant::now() + FAREWELL, || library.finalize());
        *connection = closed;
    }
}

/// The outcome of `task`, which runs in a thread of its own: the library waits without a limit. A thread that is late is
/// left behind.
fn within<T: Send + 'static>(
    deadline: Instant,
    task: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name("pmix".to_owned());
    let thread = thread.spawn(move || {
        // Nobody listens after the deadline.
        let _ = sender.send(task());
    });
    let thread = thread.map_err(|error| format!("a thread for it: {error}"))?;
    let left = deadline.saturating_duration_since(Instant::now());
    match receiver.recv_timeout(left) {
        Ok(outcome) => {
            // It has nothing left to do.
            let _ = thread.join();
            outcome
        }
        Err(RecvTimeoutError::Timeout) => {
            Err("no answer within the deadline: did all ranks start?".to_owned())
        }
        Err(RecvTimeoutError::Disconnected) => Err("the thread that asks it has ended".to_owned()),
    }
}
