//! The job that this process is a rank of: found in the environment or told by code, and joined once.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cobre_comm::{
    BackendError, BackendKind, BackendSelection, CommBackend, CommError, Communicator as _,
    Environment, ReduceOp, create_communicator, env, secret_memory,
};
use pyo3::prelude::*;

use crate::errors;

/// The jobs that the environment has made this process a rank of, which every `cobre.Communicator` of them shares. A
/// rank can join only once, and stays until the interpreter ends.
static JOINED: Mutex<Vec<(BackendKind, Arc<CommBackend>)>> = Mutex::new(Vec::new());

fn joined() -> MutexGuard<'static, Vec<(BackendKind, Arc<CommBackend>)>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The backend that the environment calls for, with its settings; never `Auto`.
fn called_for() -> Result<BackendKind, BackendError> {
    let env = Environment::process();
    let asked = BackendKind::from_environment(&env)?;
    Ok(BackendSelection::new(asked, &env)?.kind)
}

/// The backend of the job that the environment makes this process a rank of; `None` if it is alone. With
/// `chosen`, a backend that the caller asks for by name, ranks of an MPI launcher are taken for processes of their
/// own: the package cannot join them.
#[pyfunction]
pub(crate) fn job_backend(chosen: bool) -> PyResult<Option<&'static str>> {
    match called_for() {
        Ok(BackendKind::Local) => Ok(None),
        Ok(kind) => Ok(Some(kind.name())),
        Err(BackendError::BackendNotAvailable {
            requested: "mpi", ..
        }) if chosen => Ok(None),
        Err(error) => Err(errors::of(&error)),
    }
}

/// Leaves all jobs: the others learn that this rank has ended, not that it is lost.
#[pyfunction]
pub(crate) fn leave_jobs(py: Python<'_>) {
    let jobs = std::mem::take(&mut *joined());
    py.detach(|| drop(jobs));
}

/// Joins the job that the environment makes this process a rank of, unless it has; else it is alone.
pub(crate) fn join(py: Python<'_>) -> PyResult<Arc<CommBackend>> {
    let start = || -> Result<(Arc<CommBackend>, bool), BackendError> {
        let kind = called_for()?;
        if kind == BackendKind::Local {
            return Ok((Arc::new(create_communicator(kind)?), false));
        }
        let mut jobs = joined();
        if let Some((_, job)) = jobs.iter().find(|(known, _)| *known == kind) {
            return Ok((Arc::clone(job), false));
        }
        let job = Arc::new(create_communicator(kind.clone())?);
        jobs.push((kind, Arc::clone(&job)));
        Ok((job, true))
    };
    let (job, first) = py.detach(start).map_err(|error| errors::of(&error))?;
    if first {
        let leave = py.import("cobre._native")?.getattr("leave_jobs")?;
        py.import("atexit")?.call_method1("register", (leave,))?;
    }
    Ok(job)
}

/// A rank of a job, as code tells it.
pub(crate) struct NamedJob {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) name: Option<OsString>,
    pub(crate) coordinator: Option<OsString>,
    pub(crate) port: Option<u16>,
    pub(crate) bind: Option<OsString>,
    pub(crate) secret_file: Option<PathBuf>,
    /// The secret itself, in place of its file.
    pub(crate) secret: Option<Vec<u8>>,
    /// The socket on which rank 0 listens, `descriptor:device:inode`, which the job takes over.
    pub(crate) listener: Option<OsString>,
    pub(crate) timeout_secs: Option<f64>,
}

impl NamedJob {
    /// The variables that say the same.
    fn variables(self) -> std::io::Result<HashMap<&'static str, OsString>> {
        let (rank, size) = (self.rank.to_string(), self.size.to_string());
        let timeout = self.timeout_secs.map(|secs| secs.to_string());
        let mut found: Vec<(&'static str, Option<OsString>)> = match self.name {
            Some(name) => vec![
                (env::COMM_BACKEND, Some("shm".into())),
                (env::SHM_NAME, Some(name)),
                (env::SHM_RANK, Some(rank.into())),
                (env::SHM_SIZE, Some(size.into())),
                (env::SHM_TIMEOUT_SECS, timeout.map(OsString::from)),
            ],
            None => vec![
                (env::COMM_BACKEND, Some("tcp".into())),
                (env::TCP_RANK, Some(rank.into())),
                (env::TCP_SIZE, Some(size.into())),
                (env::TCP_COORDINATOR, self.coordinator),
                (env::TCP_PORT, self.port.map(|port| port.to_string().into())),
                (env::TCP_TIMEOUT_SECS, timeout.map(OsString::from)),
            ],
        };
        found.push((env::TCP_BIND, self.bind));
        found.push((env::TCP_SECRET_FILE, self.secret_file.map(Into::into)));
        found.push((env::TCP_LISTENER, self.listener));
        if let Some(secret) = self.secret {
            let memory = secret_memory::hold(&secret)?;
            let address = secret_memory::address(&memory)?;
            found.push((env::TCP_SECRET, Some(address.into())));
            // The backend takes it over by this address.
            let _ = memory.into_raw_fd();
        }
        let given = found
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Ok(given.collect())
    }

    /// Joins that job. Settings that the position does not have are those of the environment.
    pub(crate) fn join(self, py: Python<'_>) -> PyResult<Arc<CommBackend>> {
        let variables = self.variables()?;
        let env = Environment::from_lookup(|name| match variables.get(name) {
            Some(value) => Some(value.clone()),
            // Of another job than the one meant.
            None if env::JOB.contains(&name) => None,
            None => std::env::var_os(name),
        });
        let kind = BackendKind::from_environment(&env).map_err(|error| errors::of(&error));
        let kind = kind?;
        py.detach(|| create_communicator(kind))
            .map(Arc::new)
            .map_err(|error| errors::of(&error))
    }
}

/// The first rank for which `own` is true, on every rank. Collective.
pub(crate) fn first_rank(comm: &CommBackend, own: bool) -> Result<Option<usize>, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut least = [size as u64];
    let mine = [if own { rank } else { size } as u64];
    comm.allreduce(&mine, &mut least, ReduceOp::Min)?;
    Ok((least[0] < size as u64).then_some(least[0] as usize))
}
