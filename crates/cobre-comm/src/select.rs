//! Selection of the backend that a process uses, with the reason.

use crate::backends::{self, CommBackend};
use crate::communicator::Communicator;
use crate::env::{self, BackendRequest, Environment, ShmConfig, TcpConfig};
use crate::error::BackendError;
use crate::process_managers::{self, ManagedJob};
use crate::status_page::StatusPage;

/// A backend and what it needs to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendKind {
    /// Whatever the environment calls for: MPI under an MPI launcher, else TCP or shared memory where
    /// their settings are present or a process manager started the ranks, else local.
    Auto,
    /// One process.
    Local,
    /// Processes of one machine.
    Shm(ShmConfig),
    /// Processes of several hosts, over sockets.
    Tcp(TcpConfig),
    /// Processes that an MPI launcher started.
    Mpi,
    /// Processes that find each other through their process manager, over shared memory or sockets.
    Managed(ManagedJob),
}

impl BackendKind {
    /// The backend that [`env::COMM_BACKEND`] asks for, with its settings; `Auto` if unset.
    ///
    /// # Errors
    /// A name that is no backend, and settings that are missing or make no sense.
    pub fn from_env() -> Result<Self, BackendError> {
        Self::from_environment(&Environment::process())
    }

    /// As [`from_env`](Self::from_env), reading from `env`.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env).
    pub fn from_environment(env: &Environment<'_>) -> Result<Self, BackendError> {
        Self::asked_for(&backends::available(), env)
    }

    fn asked_for(available: &[&'static str], env: &Environment<'_>) -> Result<Self, BackendError> {
        let request = env.request()?;
        let why = format!("{}={}", env::COMM_BACKEND, request.name());
        Self::configured(available, request, &why, env)
    }

    /// The backend with its settings. One that is not there is refused before they are asked for.
    fn configured(
        available: &[&'static str],
        request: BackendRequest,
        why: &str,
        env: &Environment<'_>,
    ) -> Result<Self, BackendError> {
        if request != BackendRequest::Auto && !available.contains(&request.name()) {
            return Err(not_available(available, request.name(), why.to_owned()));
        }
        if matches!(request, BackendRequest::Shm | BackendRequest::Tcp)
            && let Some(job) = process_managers::find(env)?
        {
            return job.kind(request, env);
        }
        Ok(match request {
            BackendRequest::Auto => Self::Auto,
            BackendRequest::Local => Self::Local,
            BackendRequest::Shm => Self::Shm(env.shm()?),
            BackendRequest::Tcp => Self::Tcp(env.tcp()?),
            BackendRequest::Mpi => Self::Mpi,
        })
    }

    /// The name by which the backend is asked for.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Shm(_) => "shm",
            Self::Tcp(_) => "tcp",
            Self::Mpi => "mpi",
            Self::Managed(job) => job.backend,
        }
    }
}

/// A backend that is part of this build, and the reason for taking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendSelection {
    /// Never [`BackendKind::Auto`].
    pub kind: BackendKind,
    /// The reason, for people.
    pub reason: String,
}

impl BackendSelection {
    /// The backend that [`create_communicator`] would start for `kind` in the environment `env`.
    ///
    /// # Errors
    /// As for [`create_communicator`], short of starting anything.
    pub fn new(kind: BackendKind, env: &Environment<'_>) -> Result<Self, BackendError> {
        Self::among(&backends::available(), kind, env)
    }

    fn among(
        available: &[&'static str],
        kind: BackendKind,
        env: &Environment<'_>,
    ) -> Result<Self, BackendError> {
        if kind == BackendKind::Auto {
            let (request, reason) = automatic(available, env)?;
            let kind = BackendKind::configured(available, request, &reason, env)?;
            return Ok(Self { kind, reason });
        }
        let reason = format!("the {} backend was asked for", kind.name());
        if available.contains(&kind.name()) {
            Ok(Self { kind, reason })
        } else {
            Err(not_available(available, kind.name(), reason))
        }
    }
}

/// MPI under an MPI launcher, else TCP or shared memory where their settings are present or a process
/// manager can connect the ranks, else local. What a launcher or a setting calls for is named even if it is not available: falling
/// back to local would run N unconnected copies of one job over each other's results.
fn automatic(
    available: &[&'static str],
    env: &Environment<'_>,
) -> Result<(BackendRequest, String), BackendError> {
    let launcher = env.mpi_launcher();
    if let Some(launcher) = &launcher
        && available.contains(&"mpi")
    {
        let reason = format!("an MPI launcher set {}", launcher.variable);
        return Ok((BackendRequest::Mpi, reason));
    }
    let managed = process_managers::find(env)?;
    if let Some(job) = managed
        && let Some(request) = job.backend(available)
    {
        return Ok((request, job.reason()));
    }
    let found = process_managers::SETTINGS
        .into_iter()
        .find(|(variable, _)| env.is_set(variable));
    if let Some((variable, request)) = found {
        return Ok((request, format!("{variable} is set")));
    }
    Ok(match launcher.and_then(|launcher| launcher.step) {
        Some((variable, ranks)) if ranks > 1 => {
            let reason = format!("an MPI launcher started {ranks} ranks ({variable}={ranks})");
            (BackendRequest::Mpi, reason)
        }
        _ => (
            BackendRequest::Local,
            "nothing asks for other ranks".to_owned(),
        ),
    })
}

fn not_available(available: &[&'static str], requested: &'static str, why: String) -> BackendError {
    BackendError::BackendNotAvailable {
        requested,
        why,
        available: available.to_vec(),
    }
}

/// The names of the backends in this build.
pub fn available_backends() -> Vec<&'static str> {
    backends::available()
}

/// Starts the backend that `kind` stands for and joins the other ranks.
///
/// # Errors
/// [`BackendError::BackendNotAvailable`] if it is not part of this build or, for
/// [`BackendKind::Auto`], if a launcher started several ranks that nothing can connect, which
/// would otherwise run as so many unconnected jobs; missing or senseless settings; and whatever
/// keeps the backend from starting.
pub fn create_communicator(kind: BackendKind) -> Result<CommBackend, BackendError> {
    let env = Environment::process();
    let BackendSelection { kind, reason } = BackendSelection::new(kind, &env)?;
    let name = kind.name();
    // Rank 0's file lasts until the ranks have met.
    let (kind, _file) = match kind {
        BackendKind::Managed(job) => job.settle(&env)?,
        kind => (kind, None),
    };
    let comm = backends::start(kind)
        .unwrap_or_else(|| Err(not_available(&backends::available(), name, reason)))?;
    show(&comm);
    Ok(comm)
}

/// Makes it visible to `cobre top` which collective this rank is in. A job without it is only harder to look at.
fn show(comm: &CommBackend) {
    let (rank, size) = (comm.rank(), comm.size());
    if let Some(lock) = comm.call_lock().filter(|_| size > 1)
        && let Ok(page) = StatusPage::new(rank, size, comm.name())
    {
        lock.publish(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn choose(
        available: &[&'static str],
        pairs: &[(&str, &str)],
    ) -> Result<BackendSelection, String> {
        let env = Environment::from_lookup(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        });
        BackendKind::asked_for(available, &env)
            .and_then(|kind| BackendSelection::among(available, kind, &env))
            .map_err(|error| error.to_string())
    }

    fn name(available: &[&'static str], pairs: &[(&str, &str)]) -> &'static str {
        choose(available, pairs).unwrap().kind.name()
    }

    const ALL: &[&str] = &["local", "shm", "tcp", "mpi"];
    const NO_MPI: &[&str] = &["local", "shm", "tcp"];
    const SHM: [(&str, &str); 3] = [
        (env::SHM_NAME, "/x"),
        (env::SHM_RANK, "0"),
        (env::SHM_SIZE, "2"),
    ];
    const TCP: [(&str, &str); 2] = [(env::TCP_RANK, "0"), (env::TCP_SIZE, "2")];
    const HYDRA: [(&str, &str); 2] = [("PMI_RANK", "1"), ("PMI_SIZE", "4")];

    #[test]
    fn auto_prefers_mpi_then_tcp_then_shm_then_local() {
        let everything = [&SHM[..], &TCP[..], &HYDRA[..]].concat();
        assert_eq!(name(ALL, &everything), "mpi");
        assert_eq!(name(NO_MPI, &everything), "tcp");
        assert_eq!(name(ALL, &SHM), "shm");
        assert_eq!(name(ALL, &[]), "local");
    }

    #[test]
    fn an_explicit_choice_beats_every_detection() {
        let pairs = [&HYDRA[..], &TCP[..], &[(env::COMM_BACKEND, "local")]].concat();
        assert_eq!(name(ALL, &pairs), "local");
    }

    #[test]
    fn several_mpi_ranks_of_a_build_without_mpi_are_refused() {
        for size in ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"] {
            let error = choose(NO_MPI, &[(size, "4")]).unwrap_err();
            assert!(
                error.contains(size) && error.contains("local, shm, tcp"),
                "{error}"
            );
        }
        let srun = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert!(choose(NO_MPI, &srun).is_err());
    }

    #[test]
    fn ranks_of_a_process_manager_are_connected_without_mpi() {
        let hydra = [&HYDRA[..], &[("PMI_FD", "8"), ("MPI_LOCALNRANKS", "4")]].concat();
        assert_eq!(name(ALL, &hydra), "mpi");
        let found = choose(NO_MPI, &hydra).unwrap();
        assert_eq!(found.kind.name(), "shm");
        assert!(found.reason.contains("PMI-1"), "{}", found.reason);
        assert_eq!(name(&["local", "tcp"], &hydra), "tcp");
        assert!(choose(&["local"], &hydra).is_err());
        let asked = [&hydra[..], &[(env::COMM_BACKEND, "tcp")]].concat();
        assert_eq!(name(ALL, &asked), "tcp");
    }

    #[test]
    fn half_of_a_jobs_settings_is_no_job_of_its_own() {
        let error = choose(ALL, &[(env::SHM_RANK, "0"), (env::SHM_SIZE, "4")]).unwrap_err();
        assert!(error.contains(env::SHM_NAME), "{error}");
    }

    #[test]
    fn a_batch_script_or_a_step_of_one_rank_is_no_trap() {
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")];
        assert_eq!(name(NO_MPI, &batch), "local");
        assert_eq!(name(ALL, &batch), "local");
        assert_eq!(
            name(NO_MPI, &[("PMI_RANK", "0"), ("PMI_SIZE", "1")]),
            "local"
        );
    }

    #[test]
    fn settings_for_a_backend_that_was_not_built_are_refused() {
        assert!(
            choose(&["local"], &SHM)
                .unwrap_err()
                .contains(env::SHM_NAME)
        );
        assert!(
            choose(&["local"], &TCP)
                .unwrap_err()
                .contains(env::TCP_RANK)
        );
        let lone = choose(&["local"], &[(env::TCP_COORDINATOR, "x")]).unwrap_err();
        assert!(lone.contains("has local alone"), "{lone}");
        let asked = choose(&["local"], &[(env::COMM_BACKEND, "mpi")]).unwrap_err();
        assert!(asked.contains("mpi") && asked.contains("local"), "{asked}");
    }

    #[test]
    fn a_backend_that_was_not_built_is_refused_before_its_settings_are_asked_for() {
        let error = choose(&["local"], &[(env::COMM_BACKEND, "shm")]).unwrap_err();
        assert!(error.contains("feature `shm`"), "{error}");
        assert!(!error.contains(env::SHM_NAME), "{error}");
    }

    #[test]
    fn a_chosen_backend_without_its_settings_says_what_to_set() {
        let error = choose(ALL, &[(env::COMM_BACKEND, "shm")]).unwrap_err();
        assert!(error.contains(env::SHM_NAME), "{error}");
    }
}
