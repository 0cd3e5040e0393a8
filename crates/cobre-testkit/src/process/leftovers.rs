//! Leftovers of a job: named shared memory, processes, its directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time for things that end by themselves: processes that were killed, other jobs on this machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The machine before a job.
#[derive(Debug)]
pub struct Surroundings {
    shared_memory: BTreeSet<OsString>,
}

impl Surroundings {
    /// The machine as it is.
    pub fn now() -> Self {
        Self {
            shared_memory: shared_memory(),
        }
    }

    /// The leftovers of a job whose processes carry `marker` in their arguments or environment.
    pub fn left_behind(&self, marker: &str) -> Vec<String> {
        let start = Instant::now();
        // What comes later is another job's: only a name that stays was left.
        let mut names = self.new_names();
        loop {
            let found = described(&names, marker);
            if found.is_empty() || start.elapsed() > TIMEOUT {
                return found;
            }
            thread::sleep(Duration::from_millis(10));
            names = names.intersection(&shared_memory()).cloned().collect();
        }
    }

    fn new_names(&self) -> BTreeSet<OsString> {
        let now = shared_memory();
        now.difference(&self.shared_memory).cloned().collect()
    }
}

/// These names, and the processes with `marker`, in words.
fn described(names: &BTreeSet<OsString>, marker: &str) -> Vec<String> {
    let name = |name: &OsString| format!("shared memory {}", name.display());
    [names.iter().map(name).collect(), processes(marker)].concat()
}

/// Names in `/dev/shm` that are ours; other programs come and go there as well.
fn shared_memory() -> BTreeSet<OsString> {
    let Ok(entries) = fs::read_dir("/dev/shm") else {
        return BTreeSet::new();
    };
    entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("cobre"))
        .collect()
}

fn processes(marker: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let carries = |path: &Path| {
        ["cmdline", "environ"].iter().any(|file| {
            // Processes that are gone by now, or another user's, cannot be read.
            let bytes = fs::read(path.join(file)).unwrap_or_default();
            bytes
                .windows(marker.len())
                .any(|part| part == marker.as_bytes())
        })
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter(|entry| carries(&entry.path()))
        .map(|entry| format!("process {}", entry.file_name().display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_its_arguments_and_by_its_environment() {
        let before = Surroundings::now();
        let mut by_argument = Command::new("sleep").arg("1000.0625").spawn().unwrap();
        let mut by_environment = Command::new("sleep")
            .arg("1000")
            .env("TESTKIT_JOB", "leftover-marker-625")
            .spawn()
            .unwrap();
        for (child, marker) in [
            (&mut by_argument, "1000.0625"),
            (&mut by_environment, "leftover-marker-625"),
        ] {
            let expected = format!("process {}", child.id());
            // The child's own arguments appear only when it has become `sleep`.
            let start = Instant::now();
            while !processes(marker).contains(&expected) {
                assert!(start.elapsed() < TIMEOUT, "{marker} not found");
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(before.left_behind(marker), Vec::<String>::new());
        }
    }

    #[test]
    fn a_segment_left_behind_is_named() {
        let before = Surroundings::now();
        let path = format!("/dev/shm/cobre-testkit-left-{}", std::process::id());
        fs::write(&path, "x").unwrap();
        let found = described(&before.new_names(), "no such process");
        fs::remove_file(&path).unwrap();
        assert!(
            found.iter().any(|text| path.ends_with(&text[14..])),
            "{found:?}"
        );
    }
}
