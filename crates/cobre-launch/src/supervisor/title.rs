//! Gives guard and supervisor names of their own. They are forks of the launcher and would look like it: who
//! then kills "all the launchers" by name kills those who clean up after them.

use std::ffi::CStr;
use std::fs::{File, OpenOptions, read_to_string};
use std::os::unix::fs::FileExt;

/// The name of a process, and its command line.
pub(super) type Title = (&'static CStr, &'static [u8]);

pub(super) const GUARD: Title = (c"guard", b"guard of a supervisor");
pub(super) const SUPERVISOR: Title = (c"supervisor", b"supervisor of ranks");

/// Sets both names of this process, as far as the system lets it.
pub(super) fn set((name, line): Title) {
    let _ = rustix::thread::set_name(name);
    let _ = set_command_line(line);
}

/// Overwrites the arguments in this process's memory, where the system reads the command line
/// from. Only for a forked process that does not use its arguments.
fn set_command_line(line: &[u8]) -> Option<()> {
    let text = read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    // The fields after the name start with number 3; the arguments' bounds are 48 and 49.
    let mut bounds = fields.split_ascii_whitespace().skip(45);
    let start: u64 = bounds.next()?.parse().ok()?;
    let end: u64 = bounds.next()?.parse().ok()?;
    let mut title = vec![0; end.checked_sub(start)? as usize];
    // The last byte stays zero: without it the system reads on.
    let length = line.len().min(title.len().checked_sub(1)?);
    title[..length].copy_from_slice(&line[..length]);
    let memory: File = OpenOptions::new().write(true).open("/proc/self/mem").ok()?;
    memory.write_all_at(&title, start).ok()
}
