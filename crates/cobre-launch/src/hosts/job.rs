//! A job on several hosts: what each host is told of it.

use std::ffi::OsString;

use cobre_comm::env;

use super::frame::HostJob;
use crate::settings::JobSettings;

pub(super) struct RemoteJob {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) directory: OsString,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) bind: String,
    pub(super) settings: JobSettings,
    /// Empty if the backend has none.
    pub(super) secret: Vec<u8>,
    /// The name or address by which hosts reach the first of them.
    pub(super) coordinator: String,
    /// The remote shell and the environment it was looked up in, for messages.
    pub(super) shell: OsString,
    pub(super) shell_environment: Vec<(OsString, OsString)>,
}

impl RemoteJob {
    /// True if ranks meet at an address of the first host.
    pub(super) fn meets_by_address(&self) -> bool {
        !self.secret.is_empty()
    }

    /// Sets the address at which ranks meet.
    pub(super) fn meet_at(&mut self, address: &str, port: u16) {
        self.settings.push(env::TCP_COORDINATOR, address.to_owned());
        self.settings.push(env::TCP_PORT, port.to_string());
    }

    /// The part of the host with these ranks.
    pub(super) fn of_host(&self, first: usize, ranks: usize) -> HostJob {
        let settings = |rank: usize| {
            let mut settings = self.settings.rank(rank);
            settings.push((env::LAUNCH_HOST_SIZE, ranks.to_string()));
            let owned = settings.into_iter();
            owned
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        };
        HostJob {
            program: self.program.clone(),
            args: self.args.clone(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            bind: self.bind.clone(),
            secret: self.secret.clone(),
            ranks: (first..first + ranks).map(settings).collect(),
        }
    }
}
