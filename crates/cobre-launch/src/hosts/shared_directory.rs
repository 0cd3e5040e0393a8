//! Questions to hosts outside a job: if they answer, and if all of them see the same directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

use super::connection::HostConnection;
use super::frame::{FromHost, ToHost};
use super::start::{START, connect, coordinator};
use super::{BEAT, HostList, Hosts, NO_AGENT, VERSION};
use crate::error::LaunchError;
use crate::link::SupervisorLink;

/// Agents of hosts that have no ranks to start.
struct IdleAgents {
    /// The remote shells, which end with this.
    _shells: SupervisorLink,
    connections: Vec<HostConnection>,
    /// The frames of each host that nobody has asked for yet.
    heard: Vec<VecDeque<FromHost>>,
}

/// True if this host, one of those that are gone, could take part in a job again: it has an agent of this version that
/// begins within a time, it sees the working directory and what the others write to `output`, which may be mounted later than it
/// answers, and its ranks would meet those of the hosts that are left.
pub fn answers(
    hosts: &Hosts,
    gone: &[String],
    name: &str,
    output: Option<&Path>,
    within: Duration,
) -> bool {
    let only = |kept: &[&str]| {
        let names = hosts.list.hosts().iter().map(|host| host.name.clone());
        let others: Vec<String> = names.filter(|other| !kept.contains(&&**other)).collect();
        hosts.list.without(&others)
    };
    // Those that are left are asked only if there is something to ask.
    let ready = IdleAgents::begin(&only(&[name]), hosts, within)
        .and_then(|mut conversation| conversation.sees_this_directory());
    if ready.is_err() {
        return false;
    }
    let mut others = hosts.list.hosts().iter();
    let Some(other) = others.find(|host| host.name != name && !gone.contains(&host.name)) else {
        return true;
    };
    let pair = Hosts {
        list: only(&[name, &other.name]),
        ..hosts.clone()
    };
    let talk = || {
        let mut conversation = IdleAgents::begin(&pair.list, &pair, within)?;
        conversation.meet(&pair)?;
        // A host that is not ready yet would write below the place where the output belongs.
        let mut hosts = pair.list.hosts().iter();
        let writer = hosts.position(|host| host.name == other.name);
        match (output, writer) {
            (Some(output), Some(writer)) => conversation.see_same(writer, output),
            _ => Ok(()),
        }
    };
    talk().is_ok()
}

/// Finds out if all hosts see one directory: the first writes a file that the others look for.
///
/// # Errors
/// [`LaunchError::HostRefused`] with the host that does not see it; [`LaunchError::HostLost`] with one that does not answer.
pub fn check_shared(hosts: &Hosts, directory: &Path) -> Result<(), LaunchError> {
    IdleAgents::begin(&hosts.list, hosts, START)?.see_same(0, directory)
}

fn here() -> Result<PathBuf, LaunchError> {
    std::env::current_dir().map_err(LaunchError::system("find this directory"))
}

impl IdleAgents {
    fn begin(list: &HostList, hosts: &Hosts, within: Duration) -> Result<Self, LaunchError> {
        let (shells, connections) = connect(list, &hosts.shell, getrlimit(Resource::Nofile))?;
        let mut conversation = Self {
            _shells: shells,
            heard: connections.iter().map(|_| VecDeque::new()).collect(),
            connections,
        };
        for number in 0..conversation.connections.len() {
            match conversation.answer(number, within)? {
                FromHost::Hello { version } if version == VERSION => {}
                FromHost::Hello { version } => {
                    return Err(LaunchError::HostRefused {
                        host: conversation.connections[number].name.clone(),
                        reason: format!("its cobre is version {version}, this one {VERSION}"),
                    });
                }
                _ => {
                    return Err(
                        conversation.lost(number, "its agent does not say which version it is")
                    );
                }
            }
        }
        Ok(conversation)
    }

    /// Finds out if the first host has a directory of the name of this one.
    fn sees_this_directory(&mut self) -> Result<(), LaunchError> {
        let path = here()?.into();
        self.ask(0, &ToHost::FindMark { path }, "does not see this directory")
    }

    /// Finds out if all hosts see one directory: one of them writes a file that the others look for.
    fn see_same(&mut self, writer: usize, directory: &Path) -> Result<(), LaunchError> {
        let unique = cobre_comm::env::fresh_shm_name().replace('/', "");
        let path: OsString = here()?.join(directory).join(format!(".{unique}")).into();
        let request = ToHost::WriteMark { path: path.clone() };
        self.ask(writer, &request, "cannot write there")?;
        let mut others = (0..self.connections.len()).filter(|number| *number != writer);
        let found = others.try_for_each(|number| {
            let request = ToHost::FindMark { path: path.clone() };
            self.ask(
                number,
                &request,
                "does not see what the first host wrote there",
            )
        });
        self.ask(writer, &ToHost::RemoveMark, "cannot remove a file there")?;
        found.map_err(|error| match error {
            LaunchError::HostRefused { host, reason } => LaunchError::HostRefused {
                host,
                reason: format!(
                    "{}: {reason}; a job that starts again on other hosts reads its checkpoints there, so all must see the same directory",
                    directory.display()
                ),
            },
            other => other,
        })
    }

    /// Finds out if the second host reaches the first.
    fn meet(&mut self, hosts: &Hosts) -> Result<(), LaunchError> {
        let name = coordinator(hosts)?;
        self.connections[0].send(&ToHost::Listen { name });
        let FromHost::Listening { address, port } = self.answer(0, START)? else {
            return Err(self.lost(0, "it has no address at which ranks could meet"));
        };
        self.ask(1, &ToHost::Reach { address, port }, "cannot take part")
    }

    fn ask(&mut self, number: usize, request: &ToHost, refusal: &str) -> Result<(), LaunchError> {
        self.connections[number].send(request);
        match self.answer(number, START)? {
            FromHost::Failed { reason } => Err(LaunchError::HostRefused {
                host: self.connections[number].name.clone(),
                reason: format!("{refusal}: {reason}"),
            }),
            _ => Ok(()),
        }
    }

    /// The next answer of a host that is no heartbeat. All are kept alive meanwhile.
    fn answer(&mut self, number: usize, within: Duration) -> Result<FromHost, LaunchError> {
        let until = Instant::now() + within;
        loop {
            let Ok(frames) = self.connections[number].receive() else {
                return Err(self.lost(number, NO_AGENT));
            };
            let news = frames
                .into_iter()
                .filter(|frame| *frame != FromHost::Heartbeat);
            self.heard[number].extend(news);
            if let Some(frame) = self.heard[number].pop_front() {
                return Ok(frame);
            }
            let Some(source) = &self.connections[number].answers else {
                return Err(self.lost(number, "no agent answers there"));
            };
            if Instant::now() > until {
                let reason = format!("no agent answered within {} s", within.as_secs());
                return Err(self.lost(number, &reason));
            }
            let mut polled = [PollFd::new(source, PollFlags::IN)];
            let _ = poll(&mut polled, Timespec::try_from(BEAT).ok().as_ref());
            for host in &mut self.connections {
                host.send(&ToHost::Heartbeat);
            }
        }
    }

    fn lost(&mut self, number: usize, reason: &str) -> LaunchError {
        let host = &mut self.connections[number];
        LaunchError::HostLost {
            host: host.name.clone(),
            reason: reason.to_owned(),
            tail: host.last_words(),
        }
    }
}
