//! Jobs on several hosts. A remote shell starts an agent on each; [`relay`] connects them with the launcher's loop, which
//! sees one supervisor with all ranks. The secret of the job goes to the agents through the standard input of the remote
//! shells: no command line and no environment has it.

mod agent;
mod connection;
mod frame;
mod job;
mod list;
mod relay;
mod shared_directory;
mod start;
mod status_board;
mod stream;

use std::ffi::OsString;
use std::time::Duration;

pub use agent::host_agent;
pub use list::{Host, HostList};
pub use shared_directory::{answers, check_shared};
pub(crate) use start::{HostProgram, RelayedOutput, start};
pub use status_board::{StatusOfHost, this_machine};

/// The interval of heartbeats between launcher and agents.
const BEAT: Duration = Duration::from_secs(1);
/// The silence after which the launcher gives a host up.
const HOST_SILENCE: Duration = Duration::from_secs(8);
/// The silence after which an agent gives the launcher up, which somebody may have suspended for a moment.
const LAUNCHER_SILENCE: Duration = Duration::from_secs(30);
/// The sentence about a host whose answers are none.
const NO_AGENT: &str = "what comes from there is not from an agent of this version, or something else writes in between, \
                        such as a start-up file of the shell";
/// The version of launcher and agents, which must be the same.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The remote shell that is taken if none is given. It never asks for a password: nobody could type one.
pub const DEFAULT_REMOTE_SHELL: &str = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=20";

/// The way to hosts.
#[derive(Debug, Clone)]
pub struct RemoteShell {
    words: Vec<OsString>,
    /// The command `cobre` on the hosts.
    command: OsString,
}

impl RemoteShell {
    /// A command such as `ssh -p 2222`, which gets the name of a host and a command line for the shell there; and the path
    /// of `cobre` on the hosts.
    ///
    /// # Errors
    /// If there is no word in it.
    pub fn new(text: &str, command: impl Into<OsString>) -> Result<Self, String> {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let command = command.into();
        if words.is_empty() {
            return Err("a command is expected, such as ssh".to_owned());
        }
        Ok(Self { words, command })
    }

    /// The words behind the remote shell's own: the host, and the command line of its agent.
    fn arguments(&self, host: &str) -> Vec<OsString> {
        let mut line = OsString::from("exec ");
        line.push(quoted(&self.command));
        line.push(" host-agent");
        vec![host.into(), line]
    }
}

/// A word as every shell takes it.
fn quoted(word: &std::ffi::OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend_from_slice(br"'\''"),
            other => bytes.push(*other),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

/// The hosts of a launch.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// The hosts and their ranks.
    pub list: HostList,
    /// The way to them.
    pub shell: RemoteShell,
    /// The address at which the ranks of the first host are reached; else found by its agent.
    pub coordinator: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_agent_is_one_word_for_a_shell() {
        let shell = RemoteShell::new("ssh -p 22", "/a b/it's").unwrap();
        let words = shell.arguments("me@host");
        assert_eq!(words[0], "me@host");
        assert_eq!(words[1], r"exec '/a b/it'\''s' host-agent");
        assert!(RemoteShell::new("  ", "cobre").is_err());
    }
}
