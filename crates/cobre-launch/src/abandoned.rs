//! Ends the processes of a job whose supervisor died. The ranks die with their supervisor; what they have
//! started is found by the report address in its environment, which no other job shares.

use std::fs;
use std::time::{Duration, Instant};

use cobre_comm::env::LAUNCH_REPORT;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const LIMIT: Duration = Duration::from_secs(2);

/// Kills the process groups of `ranks`, and what carries `address`, until none is left.
pub(crate) fn end(ranks: &[i32], address: &str) {
    for group in ranks.iter().copied().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let until = Instant::now() + LIMIT;
    loop {
        let found = carriers(address);
        if found.is_empty() || Instant::now() > until {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes with this report address in their environment; the dead have none.
fn carriers(address: &str) -> Vec<Pid> {
    let mark = format!("{LAUNCH_REPORT}={address}").into_bytes();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let carriers = entries.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark);
        Pid::from_raw(pid).filter(|_| marked)
    });
    carriers.collect()
}
