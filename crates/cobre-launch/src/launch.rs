//! The builder of a launch.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cobre_comm::MAX_RANKS;

use crate::binding::Bind;
use crate::error::LaunchError;
use crate::hosts::{self, HostProgram, Hosts, RelayedOutput};
use crate::interrupt::ASKS;
use crate::limits::reserve_descriptors;
use crate::link::SupervisorLink;
use crate::mpi_ranks::MpiRanks;
use crate::mpiexec::Mpiexec;
use crate::outcome::Outcome;
use crate::output::{Console, Feed, Output};
use crate::plan::{self, Plan, RankPlan};
use crate::program::Executable;
use crate::reports::{Reports, Statements};
use crate::settings;
use crate::shutdown_policy::ShutdownPolicy;
use crate::signals::SignalCatcher;
use crate::topology::Topology;
use crate::watch::{Ending, JobWatch, SupervisorState};

/// Between asking a rank to end and killing it, unless set otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// Descriptors of a launch beside those of its ranks.
const OWN_DESCRIPTORS: u64 = 32;

/// A job to be: a program and the number of its ranks.
#[derive(Debug, Clone)]
pub struct Launch {
    program: OsString,
    args: Vec<OsString>,
    ranks: usize,
    extra_environment: Vec<(OsString, OsString)>,
    backend: Option<String>,
    timeout: Option<Duration>,
    grace: Duration,
    bind: Bind,
    output: Output,
    own_stdin: bool,
    own_signals: bool,
    /// This process got a signal while the job ran.
    signalled: Arc<AtomicBool>,
    /// Signals to be passed on are read from here.
    caller_signals: Option<Arc<OwnedFd>>,
    inherited: Vec<Arc<OwnedFd>>,
    progress: Option<fn(Option<&str>)>,
    /// The launcher of an MPI library that `program` is, and that starts the ranks.
    through: Option<&'static str>,
    hosts: Option<Hosts>,
}

/// The launcher's ends of what it watches.
struct Connections {
    link: SupervisorLink,
    catch: Option<SignalCatcher>,
    reports: Reports,
    /// The address of the report pipe.
    address: String,
    feeds: Vec<Feed>,
}

impl Launch {
    /// `ranks` processes of `program`, which is looked up as a shell does.
    pub fn new(program: impl Into<OsString>, ranks: usize) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            ranks,
            extra_environment: Vec::new(),
            backend: None,
            timeout: None,
            grace: DEFAULT_GRACE,
            bind: Bind::None,
            output: Output::Forward,
            own_stdin: false,
            own_signals: false,
            signalled: Arc::default(),
            caller_signals: None,
            inherited: Vec::new(),
            progress: None,
            through: None,
            hosts: None,
        }
    }

    /// Runs the ranks on these hosts, as many on each as the list says, in place of this machine. They are found by
    /// `tcp`, on a single host by `shm`; their standard input is empty.
    #[must_use]
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.ranks = hosts.list.slots();
        self.hosts = Some(hosts);
        self
    }

    /// Replaces the program.
    #[must_use]
    pub fn program(mut self, program: impl Into<OsString>) -> Self {
        self.program = program.into();
        self
    }

    /// Adds arguments of the program.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable in the environment of every rank. Ranks get the variables of this process
    /// too, except those of the communication layer: they may belong to an outer job. What the
    /// launcher itself sets wins.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.extra_environment.push((name.into(), value.into()));
        self
    }

    /// The backend that connects the ranks; else the best one for one machine.
    #[must_use]
    pub fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// Ends the job if it takes longer than this.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the grace period: the time that ranks that are asked to end may take before they are killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets what shows the progress that ranks tell ([`cobre_comm::report::progress`]): called with each message, and
    /// with none before lines are written to the terminal, on the thread of [`run`](Self::run).
    #[must_use]
    pub fn progress(mut self, show: fn(Option<&str>)) -> Self {
        self.progress = Some(show);
        self
    }

    /// Sets the processors that ranks run on.
    #[must_use]
    pub fn bind(mut self, bind: Bind) -> Self {
        self.bind = bind;
        self
    }

    /// Sets the destination of the ranks' output.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Lets rank 0 read this process's standard input, unless that is a terminal. Without it, and
    /// for all other ranks, standard input is empty.
    #[must_use]
    pub fn pass_stdin(mut self) -> Self {
        self.own_stdin = true;
        self
    }

    /// Passes SIGINT, SIGTERM, SIGHUP and SIGUSR1 that this process gets on to the ranks, while the
    /// job runs. Handlers that were there before are called as well.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.own_signals = true;
        self
    }

    /// True if this process got such a signal during [`run`](Self::run), however the job ended: whoever sent it wants no
    /// other attempt.
    pub fn was_signalled(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// Passes on to the ranks the signals whose numbers come out of `pipe`, a byte each, as if this
    /// process had got them: for a program that handles signals itself, or ends jobs without any.
    ///
    /// # Errors
    /// When the pipe cannot be made not to block.
    pub fn signals_from(mut self, pipe: OwnedFd) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK)?;
        self.caller_signals = Some(Arc::new(pipe));
        Ok(self)
    }

    /// Gives every rank this descriptor, under the number that is returned.
    ///
    /// # Errors
    /// When there is no number for it that is not a standard stream's.
    pub fn inherit(&mut self, descriptor: OwnedFd) -> io::Result<RawFd> {
        let descriptor = Arc::new(cobre_comm::secret_memory::above_stdio(descriptor)?);
        let number = descriptor.as_raw_fd();
        self.inherited.push(descriptor);
        Ok(number)
    }

    /// Runs the job to its end. Whatever the result, and also if this process is killed, no
    /// process of the job is left. Several launches may run at the same time, each on a thread of
    /// its own.
    ///
    /// # Errors
    /// When the job could not be started or watched. A job in which ranks failed is `Ok`, with an
    /// outcome that says so.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(LaunchError::RankCount { asked: self.ranks });
        }
        let available = cobre_comm::available_backends();
        if let Some(hosts) = &self.hosts {
            let several = hosts.list.hosts().len() > 1;
            let backend = settings::host_backend(self.backend.as_deref(), several, &available)?;
            return self.job_on_hosts(hosts, backend);
        }
        let backend = settings::backend(self.backend.as_deref(), &available)?;
        match cobre_comm::mpi_library() {
            Some(library) if backend == "mpi" => self.through_mpiexec(&library)?.job(backend),
            _ => self.job(backend),
        }
    }

    /// This launch as one process, the launcher of the MPI library, which starts the ranks.
    fn through_mpiexec(&self, library: &str) -> Result<Self, LaunchError> {
        let mpiexec = Mpiexec::find(library)?;
        let mut args = mpiexec.arguments(self.ranks, self.bind, &self.output);
        args.push(self.program.clone());
        args.extend_from_slice(&self.args);
        Ok(Self {
            program: mpiexec.name.into(),
            args,
            ranks: 1,
            bind: Bind::None,
            output: match &self.output {
                // It has put the ranks in front of their lines itself.
                Output::Forward => Output::Plain,
                other => other.clone(),
            },
            through: Some(mpiexec.name),
            ..self.clone()
        })
    }

    fn job(&self, backend: &'static str) -> Result<Outcome, LaunchError> {
        let room = reserve_descriptors(self.ranks, self.descriptors())?;
        let catch = self.catch_signals()?;
        let (reports, report_writer, address) = plan::report_pipe()?;
        let mut job = settings::JobSettings::new(backend, self.ranks, &address)?;
        let (ranks, feeds) = self.rank_plans(&job)?;
        let mut inherited = self.inherited.clone();
        inherited.push(Arc::new(report_writer));
        inherited.extend(job.inherited.drain(..).map(Arc::new));
        let environment = plan::environment(&self.extra_environment);
        let start = Instant::now();
        let link = SupervisorLink::start(Plan {
            program: self.program.clone(),
            args: self.args.clone(),
            environment: environment.clone(),
            inherited,
            open_files: room.original,
            ranks,
        })?;
        let connections = Connections {
            link,
            catch,
            reports,
            address,
            feeds,
        };
        let watch = self.watch(connections, start);
        self.ended(watch.run()?, &environment)
    }

    fn ended(
        &self,
        ending: Ending,
        environment: &[(OsString, OsString)],
    ) -> Result<Outcome, LaunchError> {
        let program = Executable {
            name: &self.program,
            environment,
        };
        match ending {
            Ending::Outcome(outcome) => Ok(outcome),
            Ending::NotStarted { rank, errno } => Err(program.not_started(rank, errno)),
        }
    }

    fn watch(&self, connections: Connections, start: Instant) -> JobWatch<'_> {
        let hosts = self.hosts.iter().flat_map(|hosts| hosts.list.hosts());
        let hosts = hosts.flat_map(|host| std::iter::repeat_n(host.name.clone(), host.slots));
        JobWatch {
            link: connections.link,
            catch: connections.catch,
            signalled: &self.signalled,
            caller_signals: self.caller_signals.clone(),
            reports: connections.reports,
            address: connections.address,
            output: &self.output,
            feeds: connections.feeds,
            console: Console::new(),
            progress: self.progress,
            policy: ShutdownPolicy::new(self.ranks, self.timeout, self.grace, start),
            supervisor_state: SupervisorState::nothing(self.ranks),
            mpi_ranks: MpiRanks::new(self.through),
            statements: Statements::default(),
            hosts: hosts.collect(),
        }
    }

    fn job_on_hosts(&self, hosts: &Hosts, backend: &'static str) -> Result<Outcome, LaunchError> {
        let room = reserve_descriptors(
            self.ranks,
            self.descriptors() + 8 * hosts.list.hosts().len() as u64,
        )?;
        let catch = self.catch_signals()?;
        let (reports, report_writer, address) = plan::report_pipe()?;
        self.make_log_directory()?;
        let mut feeds = Vec::new();
        let mut streams = Vec::new();
        for rank in 0..self.ranks {
            let (stdout, stderr, rank_feeds) = plan::streams(rank, &self.output)?;
            feeds.extend(rank_feeds);
            streams.extend([stdout, stderr]);
        }
        let mut environment: Vec<_> = std::env::vars_os().collect();
        environment.retain(|(name, _)| cobre_comm::env::is_setting(name));
        environment.extend(self.extra_environment.iter().cloned());
        let program = HostProgram {
            program: self.program.clone(),
            args: self.args.clone(),
            environment,
            bind: self.bind.to_string(),
            settings: settings::JobSettings::on_hosts(backend, self.ranks),
        };
        let output = RelayedOutput {
            streams,
            reports: report_writer,
        };
        let start = Instant::now();
        let link = hosts::start(hosts, program, output, room.original)?;
        let connections = Connections {
            link,
            catch,
            reports,
            address,
            feeds,
        };
        self.ended(self.watch(connections, start).run()?, &[])
    }

    /// The plan of each rank, and the launcher's ends of its streams.
    fn rank_plans(
        &self,
        job: &settings::JobSettings,
    ) -> Result<(Vec<RankPlan>, Vec<Feed>), LaunchError> {
        self.make_log_directory()?;
        let masks = self.bind.masks(self.ranks, &Topology::of_machine())?;
        let mut stdin = self.own_stdin.then(plan::own_stdin).flatten();
        let mut feeds = Vec::new();
        let mut ranks = Vec::new();
        for (rank, processors) in masks.into_iter().enumerate() {
            let (stdout, stderr, rank_feeds) = plan::streams(rank, &self.output)?;
            feeds.extend(rank_feeds);
            ranks.push(RankPlan {
                args: Vec::new(),
                settings: job.rank(rank),
                // The first takes it.
                stdin: stdin.take(),
                stdout,
                stderr,
                processors,
            });
        }
        Ok((ranks, feeds))
    }

    fn make_log_directory(&self) -> Result<(), LaunchError> {
        let Some(directory) = self.log_directory() else {
            return Ok(());
        };
        std::fs::create_dir_all(directory).map_err(|source| LaunchError::Log {
            path: directory.to_owned(),
            source,
        })
    }

    fn log_directory(&self) -> Option<&Path> {
        match &self.output {
            Output::Logs(directory) => Some(directory),
            Output::Forward | Output::Plain | Output::Diagnostics | Output::Capture { .. } => None,
        }
    }

    fn catch_signals(&self) -> Result<Option<SignalCatcher>, LaunchError> {
        if !self.own_signals {
            return Ok(None);
        }
        let caught = SignalCatcher::new(&ASKS).map_err(LaunchError::system("catch signals"))?;
        caught.map(Some).ok_or(LaunchError::SignalsTaken)
    }

    /// Descriptors the launcher opens: until the fork, both ends of every pipe.
    fn descriptors(&self) -> u64 {
        let per_rank = if self.log_directory().is_some() { 2 } else { 4 };
        OWN_DESCRIPTORS + per_rank * self.ranks as u64
    }
}
