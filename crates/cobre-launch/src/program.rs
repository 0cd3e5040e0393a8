//! Explanations of a program that could not be started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::LaunchError;

/// A program as the user named it, and the environment it was looked up in.
pub(crate) struct Executable<'a> {
    pub(crate) name: &'a OsStr,
    pub(crate) environment: &'a [(OsString, OsString)],
}

impl Executable<'_> {
    /// The error for a rank that the system did not start because of `errno`.
    pub(crate) fn not_started(&self, rank: usize, errno: i32) -> LaunchError {
        let program = self.name.to_string_lossy().into_owned();
        let source = io::Error::from_raw_os_error(errno);
        match errno {
            libc::ENOENT => LaunchError::ProgramNotFound {
                program,
                looked: self.missing(),
            },
            libc::EACCES | libc::ENOEXEC | libc::ENOTDIR => {
                let looked = self.place();
                LaunchError::ProgramNotExecutable {
                    program,
                    looked,
                    source,
                }
            }
            _ => {
                let hint = match errno {
                    libc::EAGAIN => " (too many processes? see ulimit -u)",
                    libc::EMFILE | libc::ENFILE => " (too many open files? see ulimit -n)",
                    _ => "",
                };
                LaunchError::NotStarted {
                    rank,
                    program,
                    hint,
                    source,
                }
            }
        }
    }

    fn missing(&self) -> String {
        if self.is_path() && Path::new(self.name).exists() {
            return "the file is there, but not the interpreter or loader it asks for".to_owned();
        }
        format!("no such file {}", self.place())
    }

    /// The places where the name was looked up.
    fn place(&self) -> String {
        if Path::new(self.name).is_absolute() {
            return "at that path".to_owned();
        }
        if self.is_path() {
            let directory = std::env::current_dir().unwrap_or_default();
            return format!("as seen from {}", directory.display());
        }
        // The last one wins, as in the rank's environment.
        match self.environment.iter().rfind(|(name, _)| name == "PATH") {
            Some((_, path)) => format!("in the directories of PATH ({})", path.display()),
            None => "in the system's default directories (PATH is not set)".to_owned(),
        }
    }

    /// A name with a slash is not looked up in PATH.
    fn is_path(&self) -> bool {
        self.name.as_bytes().contains(&b'/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, errno: i32) -> String {
        let environment = [("PATH".into(), "/nowhere".into())];
        let program = Executable {
            name: OsStr::new(name),
            environment: &environment,
        };
        program.not_started(3, errno).to_string()
    }

    #[test]
    fn the_error_says_where_a_program_was_looked_for() {
        let text = text("prog", libc::ENOENT);
        assert!(
            text.contains("prog") && text.contains("PATH (/nowhere)"),
            "{text}"
        );
    }

    #[test]
    fn a_path_is_not_looked_up_in_path() {
        let text = text("./prog", libc::EACCES);
        assert!(text.contains("./prog") && !text.contains("PATH"), "{text}");
    }

    #[test]
    fn a_missing_interpreter_is_not_a_missing_program() {
        let text = text("/proc/self/exe", libc::ENOENT);
        assert!(text.contains("interpreter"), "{text}");
    }
}
