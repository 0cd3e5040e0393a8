//! The secret that the ranks of a job share: from the user's file, from the launcher, or one that
//! ranks of one user on one machine make and find by themselves.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::inherited;
use super::session::SessionSecret;
use super::system::Instant;
use crate::env::{self, TcpConfig};

/// Shorter ones can be guessed.
const SHORTEST: usize = 16;
const LONGEST: u64 = 4096;

/// A job's secret.
pub(super) enum Secret {
    /// From the user or the launcher.
    Given(Vec<u8>),
    /// From a file of this user's session.
    Session(SessionSecret),
}

impl Secret {
    /// The secret of the job that `config` describes. One rank needs none.
    pub(super) fn load(config: &TcpConfig, deadline: Instant) -> Result<Self, String> {
        if let Some(address) = &config.secret_descriptor {
            let file = inherited::reopen(address).ok_or_else(|| {
                format!(
                    "the launcher's secret ({}) is closed: a program between launcher and rank \
                     does not pass descriptors on; set {} instead",
                    env::TCP_SECRET,
                    env::TCP_SECRET_FILE
                )
            })?;
            return read(file, "the launcher's secret").map(Self::Given);
        }
        match &config.secret_file {
            Some(path) => from_file(path).map(Self::Given).map_err(|problem| {
                let (variable, path) = (env::TCP_SECRET_FILE, path.display());
                format!("{variable}={path}: {problem}")
            }),
            None if config.size == 1 => Ok(Self::Given(Vec::new())),
            None => SessionSecret::share(config.runtime_directory.as_deref(), deadline)
                .map(Self::Session)
                .map_err(|problem| {
                    format!(
                        "no secret is given, and none can be made that only this user's ranks \
                         find: {problem}; set {} to a file that all ranks have, with mode 600",
                        env::TCP_SECRET_FILE
                    )
                }),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Session(secret) => secret.bytes(),
        }
    }

    /// True if only ranks of this machine can have found it.
    pub(super) fn is_of_this_machine(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

/// Reads the secret; the descriptor of the launcher's secret is checked by what lies behind it.
fn from_file(path: &Path) -> Result<Vec<u8>, String> {
    // What is no file is refused below, and must not block until then.
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = file.map_err(|error| error.to_string())?;
    // Of the file that is open: what has the name may change meanwhile.
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no plain file".to_owned());
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "it has mode {mode:o}, so other users can read or change it: chmod 600"
        ));
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        let owner = metadata.uid();
        return Err(format!("it belongs to user {owner}, not to this user"));
    }
    let secret = read(file, "it")?;
    if secret.len() < SHORTEST {
        let length = secret.len();
        return Err(format!(
            "it has {length} bytes, fewer than {SHORTEST}: head -c 32 /dev/urandom makes a good one"
        ));
    }
    Ok(secret)
}

fn read(file: File, what: &str) -> Result<Vec<u8>, String> {
    let mut secret = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut secret)
        .map_err(|error| format!("{what} cannot be read: {error}"))?;
    if secret.len() as u64 > LONGEST {
        return Err(format!("{what} is longer than {LONGEST} bytes"));
    }
    Ok(secret)
}
