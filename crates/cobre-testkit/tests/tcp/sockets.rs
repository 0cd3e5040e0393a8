//! Ranks of a job over sockets, started by hand.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cobre_comm::env::{
    COMM_BACKEND, JOB, TCP_COORDINATOR, TCP_PORT, TCP_RANK, TCP_SHARED_MEMORY, TCP_SIZE,
    TCP_TIMEOUT_SECS,
};

/// A rank of a job at `port` of this machine.
pub fn rank(program: &str, port: u16, rank: usize, size: usize) -> Command {
    let mut command = Command::new(program);
    for variable in JOB {
        command.env_remove(variable);
    }
    command
        .env(COMM_BACKEND, "tcp")
        .env(TCP_RANK, rank.to_string())
        .env(TCP_SIZE, size.to_string())
        .env(TCP_PORT, port.to_string())
        .env(TCP_COORDINATOR, "127.0.0.1")
        .env(TCP_TIMEOUT_SECS, "60")
        // Unless a test is about it.
        .env(TCP_SHARED_MEMORY, "off")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn start(command: &mut Command) -> Child {
    command
        .spawn()
        .expect("the programs are built with the tests")
}

/// Starts all at once and waits for each.
pub fn run(commands: impl IntoIterator<Item = Command>) -> Vec<Output> {
    let children: Vec<Child> = commands.into_iter().map(|mut c| start(&mut c)).collect();
    finish(children)
}

pub fn finish(children: impl IntoIterator<Item = Child>) -> Vec<Output> {
    children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect()
}

pub fn errors(outputs: &[Output]) -> Vec<String> {
    outputs.iter().map(|output| text(&output.stderr)).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
pub fn all_well(outputs: &[Output]) {
    let well = outputs.iter().all(|output| output.status.success());
    assert!(well, "{:?}", errors(outputs));
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// True if some process of this machine listens on `port`.
pub fn is_open(port: u16) -> bool {
    sockets_at(port, "0A") > 0
}

/// Connections to `port`, taken up by its process or not.
pub fn connections(port: u16) -> usize {
    sockets_at(port, "01")
}

/// Sockets with this port that are in a state of the kernel's table. Reading that disturbs nobody, unlike a connection.
fn sockets_at(port: u16, state: &str) -> usize {
    let local = format!(":{port:04X}");
    let of_table = |table: &str| {
        let lines = std::fs::read_to_string(table).unwrap_or_default();
        let there = |line: &&str| {
            let mut fields = line.split_whitespace().skip(1);
            let is_local = fields.next().is_some_and(|field| field.ends_with(&local));
            is_local && fields.nth(1) == Some(state)
        };
        lines.lines().skip(1).filter(there).count()
    };
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .map(of_table)
        .sum()
}

/// In CI a test that cannot run is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "skipped in CI: {reason}");
    println!("skipped: {reason}");
}
