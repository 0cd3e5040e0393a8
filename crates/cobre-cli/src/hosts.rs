//! The options that name hosts, of every command that starts ranks.

use std::path::PathBuf;

use cobre_launch::{DEFAULT_REMOTE_SHELL, HostList, Hosts, RemoteShell};

/// The options whose values the ranks themselves do not get.
pub(crate) const OPTIONS: [&str; 5] = [
    "--hosts",
    "--hostfile",
    "--rsh",
    "--coordinator",
    "--remote-cobre",
];

#[derive(clap::Args)]
pub(crate) struct HostArgs {
    /// Hosts to run on and the ranks of each: a:8,b:8 (over ssh; see --rsh)
    #[arg(long, value_name = "LIST", value_parser = HostList::parse)]
    hosts: Option<HostList>,

    /// File with a host per line: a:8, a slots=8 or a
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    hostfile: Option<PathBuf>,

    /// Command that runs a command line on a host: gets its name and the line [default: ssh without questions]
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,

    /// Address by which all hosts reach the first one [default: as its agent finds it]
    #[arg(long, value_name = "ADDRESS")]
    coordinator: Option<String>,

    /// Path of cobre on the hosts [default: that of this one]
    #[arg(long, value_name = "PATH")]
    remote_cobre: Option<PathBuf>,
}

impl HostArgs {
    /// True if hosts are named.
    pub(crate) fn are_given(&self) -> bool {
        self.hosts.is_some() || self.hostfile.is_some()
    }

    /// The hosts for so many ranks, for all that they take if `None`; `None` if no host is named.
    pub(crate) fn hosts(&self, ranks: Option<usize>) -> Result<Option<Hosts>, String> {
        let Some(list) = self.list()? else {
            let lone = [
                (self.rsh.is_some(), "--rsh"),
                (self.coordinator.is_some(), "--coordinator"),
                (self.remote_cobre.is_some(), "--remote-cobre"),
            ];
            let lone = lone.iter().find(|(given, _)| *given);
            return match lone {
                Some((_, option)) => Err(format!(
                    "{option} is for several hosts: add --hosts LIST or --hostfile FILE"
                )),
                None => Ok(None),
            };
        };
        let slots = list.slots();
        if let Some(ranks) = ranks.filter(|ranks| *ranks > slots) {
            return Err(format!(
                "-n {ranks}, but the hosts take {slots} ranks: give them more (a:8)"
            ));
        }
        let text = self.rsh.as_deref().unwrap_or(DEFAULT_REMOTE_SHELL);
        let own = || std::env::current_exe();
        let command = self.remote_cobre.clone().map_or_else(own, Ok);
        let command = command.map_err(|error| format!("cannot find this program: {error}"))?;
        Ok(Some(Hosts {
            list: list.filled(ranks.unwrap_or(slots)),
            shell: RemoteShell::new(text, command).map_err(|why| format!("--rsh: {why}"))?,
            coordinator: self.coordinator.clone(),
        }))
    }

    fn list(&self) -> Result<Option<HostList>, String> {
        let Some(path) = &self.hostfile else {
            return Ok(self.hosts.clone());
        };
        let described = |why: String| format!("--hostfile {}: {why}", path.display());
        let text = cobre_files::read_text(path).map_err(|error| described(error.to_string()))?;
        HostList::parse_file(&text).map(Some).map_err(described)
    }

    /// The path of this command on the hosts.
    pub(crate) fn command(&self) -> Option<&PathBuf> {
        self.remote_cobre.as_ref()
    }
}
