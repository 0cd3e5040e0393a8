//! The start of a job on several hosts: remote shells below a supervisor, and the relay between them and the launcher.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use cobre_comm::secret_memory;
use rustix::process::Rlimit;

use super::connection::HostConnection;
use super::job::RemoteJob;
use super::relay::Relay;
use super::stream::ByteQueue;
use super::{Hosts, RemoteShell};
use crate::error::LaunchError;
use crate::hosts::HostList;
use crate::link::{SupervisorLink, pair};
use crate::plan::{self, Plan, RankPlan};
use crate::settings::JobSettings;

/// The time in which the agents of all hosts must begin.
pub(super) const START: Duration = Duration::from_secs(60);

/// The program of a job and its surroundings, as every host gets them.
pub(crate) struct HostProgram {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) bind: String,
    pub(crate) settings: JobSettings,
}

/// The launcher's ends for what ranks say: their streams, two each, and the report pipe.
pub(crate) struct RelayedOutput {
    pub(crate) streams: Vec<OwnedFd>,
    pub(crate) reports: OwnedFd,
}

/// Starts the remote shells and the relay, which the result leads to as to a supervisor.
pub(crate) fn start(
    hosts: &Hosts,
    program: HostProgram,
    output: RelayedOutput,
    open_files: Rlimit,
) -> Result<SupervisorLink, LaunchError> {
    let action = "connect to the hosts";
    let directory = std::env::current_dir().map_err(LaunchError::system("find this directory"))?;
    let secret = if program.settings.backend() == "tcp" {
        let secret = secret_memory::fresh();
        let secret = secret.map_err(LaunchError::system("make the secret of the job"))?;
        secret.to_vec()
    } else {
        Vec::new()
    };
    let coordinator = coordinator(hosts)?;
    let (shells, connections) = connect(&hosts.list, &hosts.shell, open_files)?;
    let job = RemoteJob {
        program: program.program,
        args: program.args,
        directory: directory.into(),
        environment: program.environment,
        bind: program.bind,
        settings: program.settings,
        secret,
        coordinator,
        shell: hosts.shell.words[0].clone(),
        shell_environment: plan::environment(&[]),
    };
    let queues = output.streams.into_iter().map(ByteQueue::new);
    let streams = queues
        .collect::<Result<_, _>>()
        .map_err(LaunchError::system(action))?;
    let reports = ByteQueue::new(output.reports).map_err(LaunchError::system(action))?;
    let (ours, theirs) = pair().map_err(LaunchError::system(action))?;
    let relay = Relay::new(theirs, shells, connections, job, streams, reports);
    let thread = std::thread::Builder::new().name("hosts".to_owned());
    let thread = thread
        .spawn(move || relay.run())
        .map_err(LaunchError::system("start a thread"))?;
    Ok(SupervisorLink::of_relay(ours, thread))
}

/// The name or address by which the other hosts reach the first.
pub(super) fn coordinator(hosts: &Hosts) -> Result<String, LaunchError> {
    if let Some(given) = &hosts.coordinator {
        return Ok(given.clone());
    }
    let loopback = |name: &str| name == "localhost" || name.starts_with("127.") || name == "::1";
    let list = hosts.list.hosts();
    let first = list[0].address();
    if loopback(first) && list.iter().any(|host| !loopback(host.address())) {
        return Err(LaunchError::HostRefused {
            host: list[0].name.clone(),
            reason: "other hosts cannot reach it by this name: give the one they know, or --coordinator ADDRESS".to_owned(),
        });
    }
    Ok(first.to_owned())
}

/// Starts a remote shell per host.
pub(super) fn connect(
    list: &HostList,
    shell: &RemoteShell,
    open_files: Rlimit,
) -> Result<(SupervisorLink, Vec<HostConnection>), LaunchError> {
    let mut plans = Vec::new();
    let mut connections = Vec::new();
    let mut first = 0;
    for host in list.hosts() {
        let (stdin, requests) = plan::input_pipe()?;
        let (answers, stdout) = plan::output_pipe()?;
        let (errors, stderr) = plan::output_pipe()?;
        plans.push(RankPlan {
            args: shell.arguments(&host.name),
            settings: Vec::new(),
            stdin: Some(stdin),
            stdout,
            stderr,
            processors: Vec::new(),
        });
        let requests = ByteQueue::new(requests);
        let requests = requests.map_err(LaunchError::system("connect to the hosts"))?;
        let ranks = (first, host.slots);
        connections.push(HostConnection::new(
            host.name.clone(),
            ranks,
            requests,
            answers,
            errors,
        ));
        first += host.slots;
    }
    let shells = SupervisorLink::start(Plan {
        program: shell.words[0].clone(),
        args: shell.words[1..].to_vec(),
        environment: plan::environment(&[]),
        inherited: Vec::new(),
        open_files,
        ranks: plans,
    })?;
    Ok((shells, connections))
}
