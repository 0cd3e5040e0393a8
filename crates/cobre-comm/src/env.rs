//! Every environment variable of the communication layer: its name, and how it is read.
//!
//! Nothing else in the workspace spells a `COBRE_` name, and nothing here reads the process
//! environment except [`Environment::process`], so tests pass a closure.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::BackendError;

/// The backend: `auto`, `mpi`, `tcp`, `shm` or `local`.
pub const COMM_BACKEND: &str = "COBRE_COMM_BACKEND";

/// The time after which ranks that wait in a collective are reported as stalled; nothing is ended by it.
pub const STALL_SECS: &str = "COBRE_STALL_SECS";

/// Name of the shared-memory segment that the ranks of one job meet in.
pub const SHM_NAME: &str = "COBRE_SHM_NAME";
/// This process's rank in a shared-memory job.
pub const SHM_RANK: &str = "COBRE_SHM_RANK";
/// Number of ranks in a shared-memory job.
pub const SHM_SIZE: &str = "COBRE_SHM_SIZE";
/// Bound on the shared-memory rendezvous and, only when set, on each collective.
pub const SHM_TIMEOUT_SECS: &str = "COBRE_SHM_TIMEOUT_SECS";
/// Bytes of each rank's ring buffer; rank 0's value counts.
pub const SHM_BUFFER_BYTES: &str = "COBRE_SHM_BUFFER_BYTES";
/// The way in which waiting ranks sleep: `futex`, or `portable`, which any Unix can do.
pub const SHM_WAIT: &str = "COBRE_SHM_WAIT";
/// The way in which regions are shared: `anonymous`, or `named`, for ranks that cannot look into each other's
/// processes; rank 0's value counts.
pub const SHM_REGIONS: &str = "COBRE_SHM_REGIONS";
/// A word that tells apart jobs that use one name; all ranks of a job have the same.
pub const SHM_JOB: &str = "COBRE_SHM_JOB";

/// Host name or address of rank 0, for every other rank of a TCP job.
pub const TCP_COORDINATOR: &str = "COBRE_TCP_COORDINATOR";
/// Port that rank 0 of a TCP job listens on.
pub const TCP_PORT: &str = "COBRE_TCP_PORT";
/// This process's rank in a TCP job.
pub const TCP_RANK: &str = "COBRE_TCP_RANK";
/// Number of ranks in a TCP job.
pub const TCP_SIZE: &str = "COBRE_TCP_SIZE";
/// Bound on the TCP rendezvous and, only when set, on each collective.
pub const TCP_TIMEOUT_SECS: &str = "COBRE_TCP_TIMEOUT_SECS";
/// Address that rank 0 of a TCP job listens on; loopback if unset.
pub const TCP_BIND: &str = "COBRE_TCP_BIND";
/// File (mode 0600) with the secret that the ranks of a TCP job share.
pub const TCP_SECRET_FILE: &str = "COBRE_TCP_SECRET_FILE";
/// Topology of a TCP job: `auto`, `star` or `ring`; rank 0's value counts.
pub const TCP_TOPOLOGY: &str = "COBRE_TCP_TOPOLOGY";
/// Protection of what crosses connections within a machine: `auto`, `none`, `authentication` or `encryption`;
/// between hosts it is authentication at least.
pub const TCP_PROTECTION: &str = "COBRE_TCP_PROTECTION";
/// Sharing of memory between the ranks of a TCP job on one host: `auto`, `on` or `off`.
pub const TCP_SHARED_MEMORY: &str = "COBRE_TCP_SHARED_MEMORY";
/// A word for the part of a machine that this rank belongs to: ranks of a TCP job share memory with those of the
/// same word alone.
pub const TCP_HOST: &str = "COBRE_TCP_HOST";
/// A word that tells apart jobs that use one port; all ranks of a job have the same.
pub const TCP_JOB: &str = "COBRE_TCP_JOB";
/// The socket that rank 0 listens on, left by the launcher: `descriptor:device:inode`.
pub const TCP_LISTENER: &str = "COBRE_TCP_LISTENER";
/// The job's secret, left by the launcher: `descriptor:device:inode`.
pub const TCP_SECRET: &str = "COBRE_TCP_SECRET";

/// The user's own directory for what lives as long as a session, by the XDG base directories.
const RUNTIME_DIRECTORY: &str = "XDG_RUNTIME_DIR";

/// Directory that all hosts of a job see, where ranks that a process manager started find rank 0.
pub const JOB_DIR: &str = "COBRE_JOB_DIR";
/// The user's own directory, which hosts of a cluster usually share.
const HOME: &str = "HOME";

/// Comparison of call signatures among the ranks of an MPI job before each call: `on` or `off`.
pub const MPI_CHECK: &str = "COBRE_MPI_CHECK";

/// The launcher's number for this process; the same as its rank where the backend has ranks.
pub const LAUNCH_RANK: &str = "COBRE_LAUNCH_RANK";
/// The number of processes that the launcher started.
pub const LAUNCH_SIZE: &str = "COBRE_LAUNCH_SIZE";
/// The number of processes of a job on several hosts that the launcher started on this host.
pub const LAUNCH_HOST_SIZE: &str = "COBRE_LAUNCH_HOST_SIZE";
/// The pipe for launcher messages: `descriptor:device:inode`.
pub const LAUNCH_REPORT: &str = "COBRE_LAUNCH_REPORT";

/// The variables that make a process a certain rank of a certain job: what a launcher clears
/// before it hands a rank new ones. How a job runs (timeouts, buffers, topology) is the user's to
/// set and passes through.
pub const JOB: [&str; 16] = [
    COMM_BACKEND,
    SHM_NAME,
    SHM_JOB,
    SHM_RANK,
    SHM_SIZE,
    TCP_COORDINATOR,
    TCP_PORT,
    TCP_RANK,
    TCP_SIZE,
    TCP_JOB,
    TCP_LISTENER,
    TCP_SECRET,
    LAUNCH_RANK,
    LAUNCH_SIZE,
    LAUNCH_HOST_SIZE,
    LAUNCH_REPORT,
];

/// True for variables of Cobre's that say how a job runs, on whatever host: those that a launcher passes to other hosts.
pub fn is_setting(name: &OsStr) -> bool {
    let text = name.to_str().unwrap_or_default();
    let here = [TCP_BIND, TCP_SECRET_FILE, JOB_DIR];
    text.starts_with("COBRE_") && !JOB.contains(&text) && !here.contains(&text)
}

/// The prefix of the names of segments that a launcher makes.
pub const SHM_PREFIX: &str = "cobre-";

/// A segment name that no other job has.
pub fn fresh_shm_name() -> String {
    let [high, low] = random_words();
    shm_name(high, low)
}

/// The segment name with these digits.
pub(crate) fn shm_name(high: u64, low: u64) -> String {
    format!("/{SHM_PREFIX}{high:016x}{low:016x}")
}

/// True for names as [`fresh_shm_name`] makes them.
pub(crate) fn is_fresh_shm_name(name: &str) -> bool {
    let digits = name
        .strip_prefix('/')
        .and_then(|name| name.strip_prefix(SHM_PREFIX));
    digits.is_some_and(are_digits_of_words)
}

/// True for the digits of two words, as names of jobs have them.
pub(crate) fn are_digits_of_words(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Words that no one else has.
pub(crate) fn random_words() -> [u64; 2] {
    let mut bytes = [0; 16];
    let source = std::fs::File::open("/dev/urandom");
    if source
        .and_then(|mut file| file.read_exact(&mut bytes))
        .is_err()
    {
        // Without a source of chance, process and time tell jobs apart.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = now.map_or(0, |elapsed| elapsed.as_nanos() as u64);
        return [nanos, std::process::id().into()];
    }
    let (high, low) = bytes.split_at(8);
    [high, low].map(|half| {
        half.iter()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    })
}

/// Slurm's number of this process in its step. A batch script has it too, before any step was started.
pub(crate) const SLURM_RANK: &str = "SLURM_PROCID";
/// Number of ranks of a step of Slurm.
pub(crate) const SLURM_SIZE: &str = "SLURM_STEP_NUM_TASKS";
/// Index of a pod in an indexed job of Kubernetes.
pub(crate) const KUBERNETES_RANK: &str = "JOB_COMPLETION_INDEX";

/// Descriptor of the socket to a process manager that speaks PMI-1, as MPICH's launcher does.
pub(crate) const PMI_DESCRIPTOR: &str = "PMI_FD";

/// Variables by which an MPI launcher shows itself.
const MPI_LAUNCHER: [&str; 6] = [
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    SLURM_RANK,
];

/// Variables that say how many ranks the launcher started in this step. `SLURM_NTASKS` is not one
/// of them: a batch script has it too, before any step was started.
const MPI_STEP_SIZE: [&str; 4] = [
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS",
    SLURM_SIZE,
];

/// Variables that hold this process's number in its launcher's job: ours, and those of the MPI
/// launchers that ours runs.
const LAUNCHED_RANK: [&str; 3] = [LAUNCH_RANK, "PMI_RANK", "OMPI_COMM_WORLD_RANK"];

/// The time that ranks look for each other when no timeout is set.
pub const DEFAULT_RENDEZVOUS: Duration = Duration::from_secs(60);

/// The time after which a stall is reported when nothing else is set.
pub const DEFAULT_STALL: Duration = Duration::from_secs(30);

/// Settings with which the `shm` backend finds the other ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmConfig {
    /// Segment name, the same on all ranks of the job and on no other job.
    pub name: String,
    /// This process's rank, below `size`.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// Bounds each collective when set, and the rendezvous ([`DEFAULT_RENDEZVOUS`] if unset).
    pub timeout: Option<Duration>,
    /// Bytes of each rank's ring buffer; `None` for what measured best. Rank 0's value counts.
    pub buffer_bytes: Option<usize>,
    /// True if waiting ranks sleep in a way that any Unix knows instead of by futex.
    pub portable_wait: bool,
    /// True if regions are shared by name instead of through rank 0's process. Rank 0's value
    /// counts.
    pub named_regions: bool,
    /// A word that tells apart jobs of one name.
    pub job: Option<String>,
    /// The time after which a stall is reported ([`DEFAULT_STALL`]).
    pub stall: Duration,
}

/// Settings with which the `tcp` backend finds the other ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpConfig {
    /// This process's rank, below `size`.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// Host name or address of rank 0; rank 0 itself binds and has no use for it.
    pub coordinator: Option<String>,
    /// Port of rank 0; on rank 0 itself 0 means any free port.
    pub port: u16,
    /// Address rank 0 listens on; loopback if unset.
    pub bind: Option<IpAddr>,
    /// File with the job's secret. Without one, ranks of one user on one machine share a secret
    /// that they make and find by themselves.
    pub secret_file: Option<PathBuf>,
    /// Directory where they make it, if it is this user's own and nobody else's; else `/run/user/UID`
    /// or, where there is none, `/tmp/cobre-UID`.
    pub runtime_directory: Option<PathBuf>,
    /// Protection of what crosses connections within this machine.
    pub protection: TcpProtection,
    /// The topology of the data connections; rank 0's value counts.
    pub topology: TcpTopology,
    /// Sharing of memory with the ranks of the same host.
    pub shared_memory: TcpSharedMemory,
    /// A word for this rank's host; ranks share memory with those of the same word alone.
    pub host: Option<String>,
    /// A word that tells apart jobs that use one port.
    pub job: Option<String>,
    /// Rank 0's listening socket, left by the launcher: `descriptor:device:inode`.
    pub listener: Option<String>,
    /// The secret, left by the launcher: `descriptor:device:inode`.
    pub secret_descriptor: Option<String>,
    /// Bounds each collective when set, and the rendezvous ([`DEFAULT_RENDEZVOUS`] if unset).
    pub timeout: Option<Duration>,
    /// The time after which a stall is reported ([`DEFAULT_STALL`]).
    pub stall: Duration,
}

/// Settings of the `mpi` backend; the ranks it works with are MPI's business.
#[allow(dead_code, reason = "read by a backend that this build may not have")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MpiConfig {
    /// True if ranks compare call signatures before each call; the same on all ranks.
    pub(crate) check: bool,
    /// The time after which a stall is reported ([`DEFAULT_STALL`]).
    pub(crate) stall: Duration,
}

/// Connections between the ranks of a TCP job for large messages; the bits do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpTopology {
    /// Direct connections where peers can reach each other, else through rank 0.
    #[default]
    Auto,
    /// Everything through rank 0.
    Star,
    /// Direct connections between peers.
    Ring,
}

/// Sharing of memory between the ranks of a TCP job on one host; the bits do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpSharedMemory {
    /// With the ranks that can map the same memory; with the others, sockets.
    #[default]
    Auto,
    /// As `Auto`, and an error where ranks of one machine cannot map the same memory.
    On,
    /// Every rank is a host of its own.
    Off,
}

impl FromStr for TcpSharedMemory {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(()),
        }
    }
}

/// Protection of the connections of a TCP job within a machine, where only root could change what
/// crosses them. Of two ranks, the one that asks for more gets it. Connections between hosts are
/// always authenticated, and encrypted if a rank asks for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpProtection {
    /// Authentication, unless the launcher made the job's secret: then nothing can be between its
    /// ranks. What a user gives as a loopback address may be one end of a tunnel.
    #[default]
    Auto,
    /// None.
    None,
    /// Every byte is authenticated.
    Authentication,
    /// Every byte is encrypted and authenticated, between hosts too.
    Encryption,
}

impl FromStr for TcpProtection {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "authentication" => Ok(Self::Authentication),
            "encryption" => Ok(Self::Encryption),
            _ => Err(()),
        }
    }
}

impl FromStr for TcpTopology {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "star" => Ok(Self::Star),
            "ring" => Ok(Self::Ring),
            _ => Err(()),
        }
    }
}

/// The backend named by [`COMM_BACKEND`], before its own settings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendRequest {
    Auto,
    Local,
    Shm,
    Tcp,
    Mpi,
}

impl BackendRequest {
    /// The name by which it is asked for.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::Mpi => "mpi",
        }
    }
}

impl FromStr for BackendRequest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "local" => Ok(Self::Local),
            "shm" => Ok(Self::Shm),
            "tcp" => Ok(Self::Tcp),
            "mpi" => Ok(Self::Mpi),
            _ => Err(()),
        }
    }
}

/// An MPI launcher that left its variables in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MpiLauncher {
    /// The variable that gave it away.
    pub(crate) variable: &'static str,
    /// Ranks in the step, and the variable that says so; `None` where no variable does.
    pub(crate) step: Option<(&'static str, usize)>,
}

/// A read-only view of environment variables.
///
/// An empty value counts as unset, as shells make no difference a user can see.
pub struct Environment<'a> {
    lookup: Box<Lookup<'a>>,
}

type Lookup<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

impl Environment<'static> {
    /// The variables of this process.
    pub fn process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }
}

impl<'a> Environment<'a> {
    /// Variables as `lookup` gives them.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString> + 'a) -> Self {
        Self {
            lookup: Box::new(lookup),
        }
    }

    /// These variables, with `set` in front of them.
    pub(crate) fn with<'b>(&'b self, set: Vec<(&'static str, String)>) -> Environment<'b>
    where
        'a: 'b,
    {
        Environment::from_lookup(move |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map_or_else(|| self.raw(name), |(_, value)| Some(value.into()))
        })
    }

    pub(crate) fn raw(&self, name: &str) -> Option<OsString> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The value of `name` as a `T`; `expected` tells the user what would have been right.
    fn parse<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, BackendError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        match raw.to_str().and_then(|text| text.trim().parse().ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(self.invalid(name, expected)),
        }
    }

    fn invalid(&self, name: &str, expected: &str) -> BackendError {
        let value = self.raw(name).unwrap_or_default();
        BackendError::InvalidConfiguration {
            variable: name.to_owned(),
            value: crate::terminal::one_line(&value.to_string_lossy()),
            expected: expected.to_owned(),
        }
    }

    pub(crate) fn require<T: FromStr>(
        &self,
        backend: &'static str,
        name: &str,
        expected: &str,
    ) -> Result<T, BackendError> {
        self.parse(name, expected)?
            .ok_or_else(|| BackendError::MissingConfiguration {
                backend,
                variable: name.to_owned(),
                expected: expected.to_owned(),
            })
    }

    /// The index of the word, of two, that a variable holds; 0 if it is unset.
    fn one_of(&self, name: &str, words: [&str; 2]) -> Result<usize, BackendError> {
        let [first, second] = words;
        let expected = format!("{first} or {second}");
        match self.parse::<String>(name, &expected)? {
            None => Ok(0),
            Some(word) => words
                .iter()
                .position(|known| *known == word)
                .ok_or_else(|| self.invalid(name, &expected)),
        }
    }

    fn stall(&self) -> Result<Duration, BackendError> {
        Ok(self.timeout(STALL_SECS)?.unwrap_or(DEFAULT_STALL))
    }

    fn timeout(&self, name: &str) -> Result<Option<Duration>, BackendError> {
        let expected = "a positive number of seconds, at most 1e9";
        match self.parse::<f64>(name, expected)? {
            None => Ok(None),
            Some(secs) => match Duration::try_from_secs_f64(secs) {
                Ok(timeout) if !timeout.is_zero() && secs <= 1e9 => Ok(Some(timeout)),
                _ => Err(self.invalid(name, expected)),
            },
        }
    }

    /// The bound on finding the other ranks.
    pub(crate) fn rendezvous(&self) -> Result<Duration, BackendError> {
        let timeout = match self.timeout(TCP_TIMEOUT_SECS)? {
            None => self.timeout(SHM_TIMEOUT_SECS)?,
            set => set,
        };
        Ok(timeout.unwrap_or(DEFAULT_RENDEZVOUS))
    }

    /// The directory that all hosts of a job see; `None` if neither it nor a home directory is named.
    pub(crate) fn job_directory(&self) -> Option<PathBuf> {
        let home = || Some(PathBuf::from(self.raw(HOME)?).join(".cobre"));
        self.raw(JOB_DIR).map(PathBuf::from).or_else(home)
    }

    /// The address that rank 0 listens on, where the user names one.
    pub(crate) fn tcp_bind(&self) -> Result<Option<IpAddr>, BackendError> {
        self.parse(TCP_BIND, "an IP address of this host")
    }

    /// The port that rank 0 listens on; 0, for any free one, if unset.
    pub(crate) fn tcp_port(&self) -> Result<u16, BackendError> {
        Ok(self.parse(TCP_PORT, PORT)?.unwrap_or(0))
    }

    /// Rank and size of a job, checked against each other.
    pub(crate) fn position(
        &self,
        backend: &'static str,
        rank_name: &str,
        size_name: &str,
    ) -> Result<(usize, usize), BackendError> {
        let size: usize = self.require(backend, size_name, "the number of ranks, at least 1")?;
        let rank: usize = self.require(backend, rank_name, "this process's rank, from 0")?;
        if size == 0 {
            return Err(self.invalid(size_name, "the number of ranks, at least 1"));
        }
        if rank >= size {
            let expected = format!("a rank from 0 to {} ({size_name}={size})", size - 1);
            return Err(self.invalid(rank_name, &expected));
        }
        Ok((rank, size))
    }

    /// The backend the user asked for; `Auto` if unset.
    pub(crate) fn request(&self) -> Result<BackendRequest, BackendError> {
        let Some(raw) = self.raw(COMM_BACKEND) else {
            return Ok(BackendRequest::Auto);
        };
        raw.to_str()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| BackendError::InvalidBackend {
                requested: crate::terminal::one_line(&raw.to_string_lossy()),
                available: crate::backends::available(),
            })
    }

    /// Settings of a shared-memory rank.
    pub(crate) fn shm(&self) -> Result<ShmConfig, BackendError> {
        let name = self.require("shm", SHM_NAME, "a name like /cobre-1234")?;
        let (rank, size) = self.position("shm", SHM_RANK, SHM_SIZE)?;
        let buffer_bytes = self.parse(SHM_BUFFER_BYTES, BUFFER)?;
        if buffer_bytes.is_some_and(|bytes| !BUFFER_RANGE.contains(&bytes)) {
            return Err(self.invalid(SHM_BUFFER_BYTES, BUFFER));
        }
        Ok(ShmConfig {
            name,
            rank,
            size,
            timeout: self.timeout(SHM_TIMEOUT_SECS)?,
            buffer_bytes,
            portable_wait: self.one_of(SHM_WAIT, ["futex", "portable"])? == 1,
            named_regions: self.one_of(SHM_REGIONS, ["anonymous", "named"])? == 1,
            job: self.parse(SHM_JOB, "a word")?,
            stall: self.stall()?,
        })
    }

    /// Settings of a TCP rank.
    pub(crate) fn tcp(&self) -> Result<TcpConfig, BackendError> {
        let (rank, size) = self.position("tcp", TCP_RANK, TCP_SIZE)?;
        let (coordinator, port) = if rank == 0 {
            (None, self.tcp_port()?)
        } else {
            let coordinator = self.require("tcp", TCP_COORDINATOR, "host name of rank 0")?;
            (Some(coordinator), self.require("tcp", TCP_PORT, PORT)?)
        };
        let bind = self.tcp_bind()?;
        let topology = self.parse(TCP_TOPOLOGY, "auto, star or ring")?;
        let protection = self.parse(TCP_PROTECTION, "auto, none, authentication or encryption")?;
        let shared_memory = self.parse(TCP_SHARED_MEMORY, "auto, on or off")?;
        Ok(TcpConfig {
            rank,
            size,
            coordinator,
            port,
            bind,
            secret_file: self.raw(TCP_SECRET_FILE).map(PathBuf::from),
            runtime_directory: self.raw(RUNTIME_DIRECTORY).map(PathBuf::from),
            protection: protection.unwrap_or_default(),
            topology: topology.unwrap_or_default(),
            shared_memory: shared_memory.unwrap_or_default(),
            host: self.parse(TCP_HOST, "a word")?,
            job: self.parse(TCP_JOB, "a word")?,
            listener: self.parse(TCP_LISTENER, DESCRIPTOR)?,
            secret_descriptor: self.parse(TCP_SECRET, DESCRIPTOR)?,
            timeout: self.timeout(TCP_TIMEOUT_SECS)?,
            stall: self.stall()?,
        })
    }

    /// Settings of an MPI rank.
    #[allow(dead_code, reason = "asked by a backend that this build may not have")]
    pub(crate) fn mpi(&self) -> Result<MpiConfig, BackendError> {
        Ok(MpiConfig {
            check: self.one_of(MPI_CHECK, ["on", "off"])? == 0,
            stall: self.stall()?,
        })
    }

    /// The numbers of ranks that the launchers whose variables are set say they started.
    #[allow(dead_code, reason = "asked by a backend that this build may not have")]
    pub(crate) fn mpi_step_sizes(&self) -> Vec<(&'static str, usize)> {
        let of_step = MPI_STEP_SIZE
            .into_iter()
            .filter(|name| *name != "MPI_LOCALNRANKS");
        let size = |name| Some((name, self.number(name)?));
        of_step.filter_map(size).collect()
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.raw(name)?.to_str()?.trim().parse().ok()
    }

    /// The MPI launcher that started this process, if one did. Slurm did if this is a step of several ranks: a
    /// batch script and an interactive step are none.
    pub(crate) fn mpi_launcher(&self) -> Option<MpiLauncher> {
        let step = self.number(SLURM_SIZE).is_some_and(|ranks| ranks > 1);
        let shown = |name: &&str| self.is_set(name) && (*name != SLURM_RANK || step);
        let variable = MPI_LAUNCHER.into_iter().find(shown)?;
        let step = MPI_STEP_SIZE.into_iter().find_map(|name| {
            let ranks = self.number(name)?;
            Some((name, ranks))
        });
        Some(MpiLauncher { variable, step })
    }

    /// This process's number in its job, as far as any launcher's variable says.
    pub fn job_rank(&self) -> Option<usize> {
        let known = LAUNCHED_RANK.into_iter();
        let mut numbers = known.chain([SHM_RANK, TCP_RANK, SLURM_RANK, KUBERNETES_RANK]);
        numbers.find_map(|name| self.number(name))
    }

    /// The number of ranks that the launcher of a job on several hosts has started on this one.
    pub fn host_ranks(&self) -> Option<usize> {
        self.number(LAUNCH_HOST_SIZE).filter(|ranks| *ranks > 0)
    }

    /// This process's number in its launcher's job, and where it may report to.
    pub(crate) fn launch_report(&self) -> Option<(usize, String)> {
        let mut numbers = LAUNCHED_RANK
            .into_iter()
            .filter_map(|name| self.number(name));
        let rank = numbers.next()?;
        Some((rank, self.raw(LAUNCH_REPORT)?.into_string().ok()?))
    }

    /// The descriptor of the socket to a process manager that speaks PMI-1.
    pub(crate) fn pmi_descriptor(&self) -> Option<i32> {
        i32::try_from(self.number(PMI_DESCRIPTOR)?).ok()
    }
}

const DESCRIPTOR: &str = "a descriptor, its device and its inode";
const PORT: &str = "a port from 0 to 65535";
const BUFFER: &str = "a number of bytes from 65536 to 1073741824";
const BUFFER_RANGE: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn with<'a>(pairs: &'a [(&'a str, &'a str)]) -> Environment<'a> {
        Environment::from_lookup(move |name| {
            let found = pairs.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        })
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(
            with(&[(COMM_BACKEND, "")]).request(),
            Ok(BackendRequest::Auto)
        );
    }

    #[test]
    fn an_unknown_backend_is_refused_with_the_list() {
        let broken = with(&[(COMM_BACKEND, "x\nerror: y")])
            .request()
            .unwrap_err();
        assert!(!broken.to_string().contains('\n'), "{broken}");
        let error = with(&[(COMM_BACKEND, "bogus")]).request().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("bogus") && text.contains("local"), "{text}");
    }

    #[test]
    fn shm_settings_are_read() {
        let config = with(&[
            (SHM_NAME, "/cobre-x"),
            (SHM_RANK, " 2 "),
            (SHM_SIZE, "4"),
            (SHM_TIMEOUT_SECS, "1.5"),
        ])
        .shm()
        .unwrap();
        let expected = ShmConfig {
            name: "/cobre-x".into(),
            rank: 2,
            size: 4,
            timeout: Some(Duration::from_millis(1500)),
            buffer_bytes: None,
            portable_wait: false,
            named_regions: false,
            job: None,
            stall: DEFAULT_STALL,
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn a_missing_setting_is_named() {
        let error = with(&[(SHM_NAME, "/x"), (SHM_SIZE, "4")])
            .shm()
            .unwrap_err();
        assert!(error.to_string().contains(SHM_RANK), "{error}");
    }

    #[test]
    fn a_rank_beyond_the_size_is_refused() {
        let error = with(&[(SHM_NAME, "/x"), (SHM_RANK, "4"), (SHM_SIZE, "4")])
            .shm()
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains(SHM_RANK) && text.contains("0 to 3"), "{text}");
    }

    #[test]
    fn timeouts_that_are_no_duration_are_refused() {
        for bad in ["0", "-1", "nan", "inf", "1e19", "1e300", "soon"] {
            let pairs = [(TCP_RANK, "0"), (TCP_SIZE, "1"), (TCP_TIMEOUT_SECS, bad)];
            let error = with(&pairs).tcp().unwrap_err();
            assert!(error.to_string().contains(TCP_TIMEOUT_SECS), "{error}");
        }
    }

    #[test]
    fn only_workers_need_the_coordinator() {
        let rank0 = with(&[(TCP_RANK, "0"), (TCP_SIZE, "2")]).tcp().unwrap();
        assert_eq!((rank0.coordinator, rank0.port), (None, 0));
        let error = with(&[(TCP_RANK, "1"), (TCP_SIZE, "2")]).tcp().unwrap_err();
        assert!(error.to_string().contains(TCP_COORDINATOR), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        let env = Environment::from_lookup(|name| {
            (name == COMM_BACKEND).then(|| OsString::from_vec(vec![0xff, 0xfe]))
        });
        assert!(env.request().is_err());
    }

    #[test]
    fn the_step_size_is_found_for_each_launcher() {
        let hydra = with(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]).mpi_launcher();
        assert_eq!(hydra.unwrap().step, Some(("PMI_SIZE", 4)));
        let srun = with(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "8")]).mpi_launcher();
        assert_eq!(srun.unwrap().step, Some(("SLURM_STEP_NUM_TASKS", 8)));
        let batch = with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).mpi_launcher();
        assert_eq!(batch, None);
        let shell = with(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]).mpi_launcher();
        assert_eq!(shell, None);
        assert_eq!(with(&[]).mpi_launcher(), None);
    }
}
