//! The name of this machine and of a rank's process, as every backend reports them.

/// The name of this machine, as reports of every backend have it.
pub fn name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// A rank's process: `rank 2 (pid 41 on node-7)`.
#[allow(
    dead_code,
    reason = "reports of `local` and `shm`, which have one host, do not name it"
)]
pub(super) fn process(rank: usize, pid: u32, host: &str) -> String {
    format!("rank {rank} (pid {pid} on {host})")
}
