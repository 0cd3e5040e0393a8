//! Several hosts on one machine: network namespaces, joined by a router.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cobre_comm::env::{TCP_BIND, TCP_COORDINATOR, TCP_HOST, TCP_SECRET_FILE, TCP_SHARED_MEMORY};
use cobre_testkit::hosts::{HOSTS as TESTKIT_HOSTS, HOSTS_IN_A_ROW};

use crate::sockets::{self, skip, start};

/// Hosts of a network, and ranks of most jobs on it.
pub const HOSTS: usize = 4;
/// The secret of its jobs.
pub const SECRET: &str = "a secret that only these hosts have";
const PORT: u16 = 29_471;

static NETWORKS: AtomicU32 = AtomicU32::new(0);

/// Four hosts and the router between them; everything goes when it is dropped.
pub struct Network {
    name: String,
    secret: tempfile::NamedTempFile,
}

pub fn ip(arguments: &str) -> bool {
    let words = arguments.split_whitespace();
    let status = Command::new("ip").args(words).output();
    status.is_ok_and(|output| output.status.success())
}

impl Network {
    /// `None`, with a message, where the kernel or the user's rights forbid it.
    pub fn new() -> Option<Self> {
        let number = NETWORKS.fetch_add(1, Relaxed);
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), SECRET).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(secret.path(), private).unwrap();
        let name = format!("cb{}x{number}", std::process::id());
        let network = Self { name, secret };
        if network.build() {
            return Some(network);
        }
        skip("network namespaces are not permitted here, or there is no ip command");
        None
    }

    pub fn host(&self, number: usize) -> String {
        format!("{}h{number}", self.name)
    }

    pub fn router(&self) -> String {
        format!("{}r", self.name)
    }

    fn build(&self) -> bool {
        let router = self.router();
        let forward = format!("netns exec {router} sysctl -qw net.ipv4.ip_forward=1");
        ip(&format!("netns add {router}")) && ip(&forward) && (0..HOSTS).all(|number| {
            let host = self.host(number);
            let commands = [
                format!("netns add {host}"),
                format!(
                    "link add up{number} netns {host} type veth peer name down{number} netns {router}"
                ),
                format!("-n {host} link set lo up"),
                format!("-n {host} addr add 10.77.{number}.2/24 dev up{number}"),
                format!("-n {host} link set up{number} up"),
                format!("-n {router} addr add 10.77.{number}.1/24 dev down{number}"),
                format!("-n {router} link set down{number} up"),
                format!("-n {host} route add default via 10.77.{number}.1"),
            ];
            commands.iter().all(|command| ip(command))
        })
    }

    /// A rank of a job of `size` ranks on host `number`, whose rank 0 is on host 0; the program is its first argument.
    pub fn rank(&self, number: usize, rank: usize, size: usize) -> Command {
        let mut command = sockets::rank("ip", PORT, rank, size);
        command
            .args(["netns", "exec", &self.host(number)])
            .env(TCP_COORDINATOR, "10.77.0.2")
            .env(TCP_BIND, "10.77.0.2")
            .env(TCP_SECRET_FILE, self.secret.path());
        command
    }

    /// Starts four ranks, two on each of two hosts by `arrangement`, which share memory there.
    pub fn two_by_two(
        &self,
        arrangement: &str,
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Vec<Child> {
        let started = (0..HOSTS).map(|rank| {
            let host = match arrangement {
                HOSTS_IN_A_ROW => rank / 2,
                _ => rank % 2,
            };
            let mut command = self.rank(host, rank, HOSTS);
            command
                .args(program)
                .env(TESTKIT_HOSTS, arrangement)
                .envs(settings.iter().copied());
            start(&mut command)
        });
        started.collect()
    }

    /// Starts so many ranks on each of so many hosts, numbered host by host or in turn, which must share memory there.
    pub fn ranks_on(
        &self,
        hosts: usize,
        per_host: usize,
        is_in_a_row: bool,
        program: &[&str],
    ) -> Vec<Child> {
        let size = hosts * per_host;
        let started = (0..size).map(|rank| {
            let host = if is_in_a_row {
                rank / per_host
            } else {
                rank % hosts
            };
            let mut command = self.rank(host, rank, size);
            command
                .args(program)
                .env(TCP_SHARED_MEMORY, "on")
                .env(TCP_HOST, format!("host-{host}"));
            start(&mut command)
        });
        started.collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for number in 0..HOSTS {
            ip(&format!("netns del {}", self.host(number)));
        }
        ip(&format!("netns del {}", self.router()));
    }
}
