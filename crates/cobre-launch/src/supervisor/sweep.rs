//! Ends every descendant of this process. As it adopts orphans, none can get away, not even one
//! that has a session of its own or whose parent is dead.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// A killed process that is still there after this long will not go away soon.
const LIMIT: Duration = Duration::from_secs(5);

/// Kills and collects until no child is left; `false` if some survive.
pub(super) fn end_descendants() -> bool {
    let until = Instant::now() + LIMIT;
    while !childless() {
        if Instant::now() > until {
            return false;
        }
        for pid in descendants(rustix::process::getpid()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        // Killed processes need a moment to become collectable.
        if !childless() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    true
}

/// Collects what has ended; whether that was all.
fn childless() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// The children of `ancestor`, their children, and so on.
fn descendants(ancestor: Pid) -> Vec<Pid> {
    let mut children = BTreeMap::<i32, Vec<i32>>::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&ancestor.as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Every process with its parent.
fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbered = entries.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // The name may hold any byte, so the file need not be text.
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parent(&stat)?))
    });
    numbered.collect()
}

/// The parent in the text of a `stat` file: the second field after the name, which stands in
/// parentheses and may hold some itself.
fn parent(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = str::from_utf8(&stat[name_end + 1..]).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent(b"12 (a) S 9 (\xff) b) R 7 12"), Some(7));
        assert_eq!(parent(b"nonsense"), None);
    }

    #[test]
    fn this_process_is_among_the_descendants_of_its_parent() {
        let parent = rustix::process::getppid().unwrap();
        assert!(descendants(parent).contains(&rustix::process::getpid()));
    }
}
