//! Process managers that start ranks without telling them Cobre's settings: a row each in the table below, tried
//! in order. A row finds its job by variables; rank 0 then offers a place to meet, and the others take it.

mod descriptor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod meeting_place;
mod pmi;
mod pmix;
mod pmix_library;
mod pods;
mod shared_file;

use std::fmt::Write as _;
use std::os::fd::RawFd;
use std::time::Instant;

use crate::env::{self, BackendRequest, Environment};
use crate::error::BackendError;
use crate::fnv::{self, fnv_1a};
use crate::select::BackendKind;
use meeting_place::{MeetingPlace, shm_settings};
use pmi::PmiClient;
use pmix::PmixJob;
pub(crate) use shared_file::PublishedFile;

/// The way in which the offer of rank 0 reaches the other ranks.
enum Exchange {
    /// Through the pairs of key and value that the manager keeps; the variable holds the descriptor of its socket.
    Pmi(&'static str),
    /// Through the pairs of key and value that the manager keeps, by its library, which knows the number of ranks too.
    Pmix,
    /// On one host through a name that these variables make; between hosts by a file of that name.
    Name(&'static [&'static str]),
    /// Through the name that a service gives rank 0's pod.
    Pods,
}

/// A process manager, as its variables show it.
struct Scheme {
    name: &'static str,
    rank: &'static str,
    /// The variable with the number of ranks; without it the manager is asked.
    size: Option<&'static str>,
    /// Variables without which it is none.
    needs: &'static [&'static str],
    /// Settings of Cobre that may be there beside it; others are the user's own and come first.
    beside: &'static [&'static str],
    /// The variable with the number of ranks on this host.
    on_this_host: Option<&'static str>,
    /// The variable with the number of hosts, where that one is not set.
    hosts: Option<&'static str>,
    exchange: Exchange,
}

const SCHEMES: [Scheme; 5] = [
    Scheme {
        name: "PMI-1",
        rank: "PMI_RANK",
        size: Some("PMI_SIZE"),
        needs: &[env::PMI_DESCRIPTOR],
        beside: &[],
        on_this_host: Some("MPI_LOCALNRANKS"),
        hosts: Some("SLURM_STEP_NUM_NODES"),
        exchange: Exchange::Pmi(env::PMI_DESCRIPTOR),
    },
    Scheme {
        name: "PMIx",
        rank: pmix::RANK,
        size: None,
        needs: &[pmix::NAMESPACE],
        beside: &[],
        on_this_host: None,
        hosts: None,
        exchange: Exchange::Pmix,
    },
    Scheme {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: Some("OMPI_COMM_WORLD_SIZE"),
        needs: &["PMIX_NAMESPACE"],
        beside: &[],
        on_this_host: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        hosts: None,
        exchange: Exchange::Name(&["OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE"]),
    },
    Scheme {
        name: "Slurm",
        rank: env::SLURM_RANK,
        size: Some(env::SLURM_SIZE),
        needs: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        beside: &[],
        on_this_host: None,
        hosts: Some("SLURM_STEP_NUM_NODES"),
        exchange: Exchange::Name(&[
            "SLURM_CLUSTER_NAME",
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
            "SLURM_RESTART_COUNT",
        ]),
    },
    Scheme {
        name: "Kubernetes",
        rank: env::KUBERNETES_RANK,
        size: Some(env::TCP_SIZE),
        needs: &[],
        beside: &[env::TCP_SIZE, env::TCP_COORDINATOR],
        on_this_host: None,
        hosts: None,
        exchange: Exchange::Pods,
    },
];

/// The settings of Cobre that make a process a rank, with the backend that they call for.
pub(crate) const SETTINGS: [(&str, BackendRequest); 6] = [
    (env::TCP_COORDINATOR, BackendRequest::Tcp),
    (env::TCP_RANK, BackendRequest::Tcp),
    (env::TCP_SIZE, BackendRequest::Tcp),
    (env::SHM_NAME, BackendRequest::Shm),
    (env::SHM_RANK, BackendRequest::Shm),
    (env::SHM_SIZE, BackendRequest::Shm),
];

impl Scheme {
    /// The reason why this is not the manager of the process.
    fn refused(&self, env: &Environment<'_>) -> Option<String> {
        self.hidden(env).or_else(|| self.unasked())
    }

    /// The reason why it is not, as far as variables show it.
    fn hidden(&self, env: &Environment<'_>) -> Option<String> {
        let mut all = self.needs.iter().chain([&self.rank]).chain(&self.size);
        if let Some(name) = all.find(|name| !env.is_set(name)) {
            return Some(format!("{name} is not set"));
        }
        let mut set = SETTINGS.iter().filter(|(name, _)| env.is_set(name));
        let first = set.find(|(name, _)| !self.beside.contains(name));
        first.map(|(name, _)| format!("{name} is set, which comes first"))
    }

    /// The reason why the manager cannot be asked for its job, where that is necessary.
    fn unasked(&self) -> Option<String> {
        if self.size.is_some() {
            return None;
        }
        let beside = |path| format!("{path} is in this process and speaks with it");
        let library = || pmix::version().err().map(str::to_owned);
        other_mpi_library().map(beside).or_else(library)
    }

    /// The error of a rank that has others, by its number, whose manager cannot be asked for them.
    fn lost(&self, env: &Environment<'_>) -> Option<BackendError> {
        let several = env.number(self.rank).is_some_and(|rank| rank > 0);
        if !several || self.hidden(env).is_some() {
            return None;
        }
        Some(self.failed(&format!("its ranks cannot be found: {}", self.unasked()?)))
    }

    /// The error of a manager that does not give its job.
    fn failed(&self, why: &str) -> BackendError {
        BackendError::InitializationFailed {
            backend: "auto",
            reason: format!(
                "{} started this process ({}): {why}; {}=local runs it by itself",
                self.name,
                self.rank,
                env::COMM_BACKEND
            ),
        }
    }

    /// The job that this manager has made the process a rank of, if it has several ranks or is one of pods.
    fn job(&'static self, env: &Environment<'_>) -> Result<Option<FoundJob>, BackendError> {
        let (size, one_host) = if let Some(name) = self.size {
            let size = env.require("auto", name, "the number of ranks, at least 1")?;
            (size, self.is_one_host(env))
        } else {
            let PmixJob { size, one_host, .. } = self.asked(env)?;
            (size, one_host)
        };
        // A pod that is alone in its job has the settings of a rank all the same.
        let has_ranks = size > 1 || matches!(self.exchange, Exchange::Pods);
        Ok(has_ranks.then_some(FoundJob {
            scheme: self,
            size,
            one_host,
        }))
    }

    /// The job as the manager tells it.
    fn asked(&self, env: &Environment<'_>) -> Result<PmixJob, BackendError> {
        let rank = env.require("auto", self.rank, "this process's rank, from 0")?;
        let namespace = env.raw(pmix::NAMESPACE).unwrap_or_default();
        let deadline = Instant::now() + env.rendezvous()?;
        pmix::job(rank, &namespace.to_string_lossy(), deadline).map_err(|why| self.failed(&why))
    }

    /// True if the variables of the manager say that all ranks are on this host.
    fn is_one_host(&self, env: &Environment<'_>) -> bool {
        let number = |name: Option<&str>| name.and_then(|name| env.number(name));
        match number(self.on_this_host) {
            Some(here) => number(self.size) == Some(here),
            None => number(self.hosts) == Some(1),
        }
    }
}

/// A job of ranks that a process manager started.
pub(crate) struct FoundJob {
    scheme: &'static Scheme,
    size: usize,
    one_host: bool,
}

/// The job that a process manager has made this process a rank of, if it has; a job of one rank is none.
///
/// # Errors
/// A manager that must be asked and does not answer, or cannot be asked although it has other ranks.
pub(crate) fn find(env: &Environment<'_>) -> Result<Option<FoundJob>, BackendError> {
    for scheme in &SCHEMES {
        if scheme.refused(env).is_none()
            && let Some(job) = scheme.job(env)?
        {
            return Ok(Some(job));
        }
    }
    match SCHEMES.iter().find_map(|scheme| scheme.lost(env)) {
        Some(error) => Err(error),
        None => Ok(None),
    }
}

impl FoundJob {
    /// The backend for it, of those in this build: shared memory on one host, else sockets.
    pub(crate) fn backend(&self, available: &[&'static str]) -> Option<BackendRequest> {
        if self.one_host && available.contains(&"shm") {
            Some(BackendRequest::Shm)
        } else {
            available.contains(&"tcp").then_some(BackendRequest::Tcp)
        }
    }

    /// The reason for taking it: the manager, the variables that show it, and where the ranks are.
    pub(crate) fn reason(&self) -> String {
        let Scheme { name, rank, .. } = self.scheme;
        let library = || pmix::version().unwrap_or_default();
        let source = self.scheme.size.unwrap_or_else(library);
        let place = if self.one_host {
            ", all on this host"
        } else {
            ""
        };
        format!("{name} started the ranks{place} ({rank}, {source})")
    }

    /// The rank on a backend, with its settings as far as they are known before the ranks meet.
    pub(crate) fn kind(
        &self,
        backend: BackendRequest,
        env: &Environment<'_>,
    ) -> Result<BackendKind, BackendError> {
        let scheme = self.scheme;
        let (rank, size) = if let Some(size) = scheme.size {
            env.position(backend.name(), scheme.rank, size)?
        } else {
            let PmixJob { rank, size, .. } = scheme.asked(env)?;
            (rank, size)
        };
        if backend == BackendRequest::Shm && !self.one_host {
            return Err(BackendError::InvalidConfiguration {
                variable: env::COMM_BACKEND.to_owned(),
                value: backend.name().to_owned(),
                expected: format!(
                    "auto or tcp: {} does not say that all ranks are on this host",
                    scheme.name
                ),
            });
        }
        match (&scheme.exchange, backend) {
            (Exchange::Pods, _) => {
                let settings = pods::settings(rank, env)?;
                Ok(BackendKind::Tcp(env.with(settings).tcp()?))
            }
            (Exchange::Name(variables), BackendRequest::Shm) => {
                let [high, low] = digest(scheme, variables, env);
                let name = env::shm_name(high, low);
                let settings = shm_settings(name, rank.to_string(), size.to_string());
                Ok(BackendKind::Shm(env.with(settings).shm()?))
            }
            (Exchange::Pmi(_) | Exchange::Pmix | Exchange::Name(_), _) => {
                Ok(BackendKind::Managed(ManagedJob {
                    manager: scheme.name,
                    backend: backend.name(),
                    rank,
                    size,
                    one_host: self.one_host,
                }))
            }
        }
    }
}

/// A rank whose process manager tells it where the others are once it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedJob {
    /// The name of the process manager, as `cobre doctor` has it.
    pub(crate) manager: &'static str,
    /// The backend that rank 0 offers.
    pub(crate) backend: &'static str,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// True if all ranks are on one host.
    pub(crate) one_host: bool,
}

impl ManagedJob {
    /// Asks the process manager, or waits for rank 0's file. The file, on rank 0, must last until the ranks have met.
    pub(crate) fn settle(
        &self,
        env: &Environment<'_>,
    ) -> Result<(BackendKind, Option<PublishedFile>), BackendError> {
        let deadline = Instant::now() + env.rendezvous()?;
        let failed = |reason: String| BackendError::InitializationFailed {
            backend: self.backend,
            reason: format!("{}: {reason}", self.manager),
        };
        let own = (self.rank == 0)
            .then(|| MeetingPlace::new(self, env))
            .transpose()?;
        let text = own.as_ref().map(MeetingPlace::text);
        let (text, file) = self
            .exchange(text.as_deref(), env, deadline)
            .map_err(failed)?;
        let offer = own.or_else(|| MeetingPlace::parse(text.trim()));
        let offer =
            offer.ok_or_else(|| failed("rank 0 runs another version of Cobre".to_owned()))?;
        let shm = matches!(offer, MeetingPlace::Shm { .. });
        let settings = offer
            .settings(self)
            .map_err(|error| failed(error.to_string()))?;
        let env = env.with(settings);
        let kind = if shm {
            BackendKind::Shm(env.shm()?)
        } else {
            BackendKind::Tcp(env.tcp()?)
        };
        Ok((kind, file))
    }

    /// Rank 0's text on every rank.
    fn exchange(
        &self,
        own: Option<&str>,
        env: &Environment<'_>,
        deadline: Instant,
    ) -> Result<(String, Option<PublishedFile>), String> {
        let scheme = SCHEMES.iter().find(|scheme| scheme.name == self.manager);
        let scheme = scheme.ok_or("this build does not know it")?;
        match scheme.exchange {
            Exchange::Pmix => Ok((pmix::share(own, deadline)?, None)),
            Exchange::Pmi(variable) => {
                refuse_beside_mpi()?;
                let number = env
                    .number(variable)
                    .and_then(|number| RawFd::try_from(number).ok());
                let number = number.ok_or_else(|| format!("{variable} is no descriptor"))?;
                let socket =
                    descriptor::take(number).map_err(|why| format!("{variable}: {why}"))?;
                Ok((PmiClient::new(socket, deadline).share(own)?, None))
            }
            Exchange::Name(variables) => {
                let directory = shared_file::directory(env.job_directory())?;
                let [high, low] = digest(scheme, variables, env);
                let job = format!("{high:016x}{low:016x}");
                match own {
                    Some(text) => {
                        let file = shared_file::publish(&directory, &job, text)?;
                        Ok((text.to_owned(), Some(file)))
                    }
                    None => Ok((shared_file::find(&directory, &job, deadline)?, None)),
                }
            }
            Exchange::Pods => Err("its ranks have nothing to ask".to_owned()),
        }
    }
}

/// Fails if an MPI library that is no part of this build is in the process: the socket is its own, and two clients
/// would read each other's answers.
fn refuse_beside_mpi() -> Result<(), String> {
    match other_mpi_library() {
        None => Ok(()),
        Some(path) => Err(format!(
            "{path} is in this process and speaks with the process manager itself: join by code (rank, size, address \
             and secret by MPI), or do not load it"
        )),
    }
}

/// The MPI library in this process that is no part of this build.
fn other_mpi_library() -> Option<String> {
    if crate::mpi_library().is_some() {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let library = |line: &&str| {
        line.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("libmpi"))
    };
    let line = maps.lines().find(library)?;
    line.split_whitespace().last().map(str::to_owned)
}

/// Words that no other job of this manager and this user has: a digest of what names the job.
fn digest(scheme: &Scheme, variables: &[&str], env: &Environment<'_>) -> [u64; 2] {
    let own = rustix::process::geteuid().as_raw();
    let mut words = format!("{} {own}", scheme.name);
    for name in variables {
        let value = env.raw(name).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(words, " {name}={}", value.to_string_lossy());
    }
    [fnv::BASIS, 0x6c62_272e_07bb_0142].map(|basis| fnv_1a(basis, words.bytes()))
}

/// The process manager that started this process, and the variables that show it; or why there is none.
pub fn process_manager(env: &Environment<'_>) -> String {
    let found = match find(env) {
        Ok(found) => found,
        Err(error) => return format!("none ({error})"),
    };
    let before = found.as_ref().map(|job| job.scheme.name);
    // Managers that were tried before the one that was found, and show themselves by their ranks.
    let tried = SCHEMES
        .iter()
        .take_while(|scheme| Some(scheme.name) != before);
    let reasons = tried
        .filter(|scheme| env.is_set(scheme.rank))
        .map(|scheme| {
            let one = || format!("{} is one rank", scheme.size.unwrap_or("its job"));
            format!(
                "{}: {}",
                scheme.name,
                scheme.refused(env).unwrap_or_else(one)
            )
        });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    match found {
        Some(job) => {
            let rank = env.number(job.scheme.rank).unwrap_or_default();
            let after = if reasons.is_empty() { "" } else { "; not " };
            format!(
                "rank {rank} of {}: {}{after}{reasons}",
                job.size,
                job.reason()
            )
        }
        None if reasons.is_empty() => "none".to_owned(),
        None => format!("none ({reasons})"),
    }
}

#[cfg(test)]
mod tests;
