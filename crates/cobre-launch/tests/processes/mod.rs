//! Starting the processes of a test, finding those of a job, and waiting for what they do.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A command whose process begins with the default action of every signal: a script's `&` and `nohup`
/// hand down that some are ignored, and a test that sends one of those would wait for nothing.
#[allow(
    dead_code,
    reason = "not every test that includes this file starts programs"
)]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

/// A number of seconds that no other process sleeps for.
#[allow(dead_code, reason = "not every test that includes this file sleeps")]
pub fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("86400.{}{number:04}", std::process::id())
}

/// The living processes with `argument` among their arguments.
pub fn with_argument(argument: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let mut arguments = line.split(|byte| *byte == 0);
        arguments
            .any(|found| found == argument.as_bytes())
            .then_some(pid)
    });
    found.collect()
}

/// The ranks that a launcher has started, by number.
#[allow(
    dead_code,
    reason = "not every test that includes this file looks for ranks"
)]
pub fn ranks_of(launcher: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    let number = |pid: &u32| -> Option<usize> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut texts = environment.split(|byte| *byte == 0);
        let text = texts.find_map(|text| text.strip_prefix(b"COBRE_LAUNCH_RANK="))?;
        str::from_utf8(text).ok()?.parse().ok()
    };
    // Below the launcher are its guard, the guard's supervisor, and the ranks.
    let guard = children(launcher).into_iter();
    let mut ranks: Vec<u32> = guard.flat_map(children).flat_map(children).collect();
    ranks.retain(|pid| number(pid).is_some());
    ranks.sort_by_key(number);
    ranks
}

/// Waits until `holds`, or panics with `what` after `limit`; how long it took.
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}
