//! Ports for jobs that are told which one to use.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The lowest port to give out.
const LOWEST: u32 = 10_000;
/// The lowest port that Linux chooses itself, unless it says another.
const CHOSEN: u32 = 32_768;

/// A port that nobody listens on. It is none that the system chooses by itself: no listener and no connection of another
/// process gets it before the job does, and no connection to it can be one of a socket with itself.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range
        .unwrap_or_default()
        .split_whitespace()
        .next()
        .map(str::parse);
    let end = first.and_then(Result::ok).unwrap_or(CHOSEN);
    let count = end.saturating_sub(LOWEST).max(1);
    // Processes begin at places of their own, and give each port out once.
    let start = std::process::id().wrapping_mul(257);
    let ports = (0..count).map(|_| {
        let number = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        (LOWEST + number % count) as u16
    });
    let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().expect("a port that nobody listens on")
}
