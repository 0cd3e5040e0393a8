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

/// Waits until `holds`, or panics with `what` after `limit`; how long it took.
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}
