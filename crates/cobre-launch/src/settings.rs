//! The environment of each rank, by backend.

use std::os::fd::OwnedFd;

use cobre_comm::env;

use crate::error::LaunchError;
use crate::tcp;

/// Settings of one rank: names and values of environment variables.
pub(crate) type Settings = Vec<(&'static str, String)>;

/// Backends that connect ranks, the best for one machine first.
const CONNECTING: [&str; 3] = ["shm", "tcp", "mpi"];

/// The backend to run on: the one asked for if this build has it, else the best for one machine.
/// `local` comes last: its ranks do not know of each other.
pub(crate) fn backend(
    asked: Option<&str>,
    available: &[&'static str],
) -> Result<&'static str, LaunchError> {
    let best = CONNECTING.iter().find(|name| available.contains(name));
    let wanted = asked.unwrap_or(best.copied().unwrap_or("local"));
    let found = available.iter().find(|name| **name == wanted);
    found
        .copied()
        .ok_or_else(|| LaunchError::BackendNotAvailable {
            asked: wanted.to_owned(),
            available: available.to_vec(),
        })
}

/// The backend for ranks on hosts: the one asked for, else `tcp`, and `shm` if there is one host alone.
pub(crate) fn host_backend(
    asked: Option<&str>,
    several: bool,
    available: &[&'static str],
) -> Result<&'static str, LaunchError> {
    let fitting: &[&'static str] = if several {
        &["tcp", "local"]
    } else {
        &["shm", "tcp", "local"]
    };
    let fits = |name: &&&'static str| available.contains(*name);
    let best = fitting.iter().find(fits).copied().unwrap_or("local");
    let wanted = asked.unwrap_or(if several { "tcp" } else { best });
    let found = fitting.iter().find(|name| **name == wanted);
    match found {
        Some(name) if available.contains(name) => Ok(name),
        Some(_) => Err(LaunchError::BackendNotAvailable {
            asked: wanted.to_owned(),
            available: available.to_vec(),
        }),
        None => Err(LaunchError::BackendNotOnHosts {
            asked: wanted.to_owned(),
        }),
    }
}

/// The settings that the ranks of one job share.
pub(crate) struct JobSettings {
    backend: &'static str,
    size: usize,
    common: Settings,
    /// Descriptors that the settings speak of.
    pub(crate) inherited: Vec<OwnedFd>,
}

impl JobSettings {
    /// A new job of `size` ranks that may report to the pipe at `report`.
    pub(crate) fn new(
        backend: &'static str,
        size: usize,
        report: &str,
    ) -> Result<Self, LaunchError> {
        let mut common = vec![
            (env::COMM_BACKEND, backend.to_owned()),
            (env::LAUNCH_SIZE, size.to_string()),
            (env::LAUNCH_REPORT, report.to_owned()),
        ];
        let mut inherited = Vec::new();
        match backend {
            // Every rank of `local` is a world of its own; those of `mpi` are found by MPI.
            "local" | "mpi" => {}
            "shm" => {
                let name = env::fresh_shm_name();
                common.push((env::SHM_JOB, name.clone()));
                common.push((env::SHM_NAME, name));
            }
            "tcp" => {
                let handed = tcp::hand_on().map_err(LaunchError::system("make ready for tcp"))?;
                common.extend(handed.0);
                inherited.extend(handed.1);
            }
            _ => return Err(LaunchError::BackendNotLaunched { backend }),
        }
        Ok(Self {
            backend,
            size,
            common,
            inherited,
        })
    }

    /// A new job of `size` ranks on several hosts, whose agents add what they make themselves.
    pub(crate) fn on_hosts(backend: &'static str, size: usize) -> Self {
        let mut common = vec![
            (env::COMM_BACKEND, backend.to_owned()),
            (env::LAUNCH_SIZE, size.to_string()),
        ];
        if backend == "shm" {
            let name = env::fresh_shm_name();
            common.push((env::SHM_JOB, name.clone()));
            common.push((env::SHM_NAME, name));
        }
        Self {
            backend,
            size,
            common,
            inherited: Vec::new(),
        }
    }

    /// The backend that connects the ranks.
    pub(crate) fn backend(&self) -> &'static str {
        self.backend
    }

    /// Adds a setting of all ranks.
    pub(crate) fn push(&mut self, name: &'static str, value: String) {
        self.common.push((name, value));
    }

    /// The settings of `rank`.
    pub(crate) fn rank(&self, rank: usize) -> Settings {
        let mut settings = self.common.clone();
        if self.backend != "mpi" {
            // The launcher of MPI numbers its ranks itself.
            settings.push((env::LAUNCH_RANK, rank.to_string()));
        }
        let position = match self.backend {
            "shm" => Some((env::SHM_RANK, env::SHM_SIZE)),
            "tcp" => Some((env::TCP_RANK, env::TCP_SIZE)),
            _ => None,
        };
        if let Some((rank_name, size_name)) = position {
            settings.push((rank_name, rank.to_string()));
            settings.push((size_name, self.size.to_string()));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_preferred_where_it_exists() {
        assert_eq!(backend(None, &["local", "tcp", "shm"]).unwrap(), "shm");
        assert_eq!(backend(None, &["local", "tcp", "mpi"]).unwrap(), "tcp");
        assert_eq!(backend(None, &["local", "mpi"]).unwrap(), "mpi");
        assert_eq!(backend(None, &["local"]).unwrap(), "local");
    }

    #[test]
    fn two_jobs_never_share_a_segment() {
        let name = || {
            let job = JobSettings::new("shm", 2, "9:1:1").unwrap();
            let settings = job.rank(1);
            let found = settings.iter().find(|(name, _)| *name == env::SHM_NAME);
            found.unwrap().1.clone()
        };
        assert_ne!(name(), name());
    }

    #[test]
    fn a_backend_that_was_not_built_is_refused_with_the_list() {
        let text = backend(Some("mpi"), &["local", "tcp"])
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("mpi") && text.contains("local, tcp"),
            "{text}"
        );
    }
}
