//! Ranks of one machine as ranks of several hosts: each has a word for its host, by its number.

use std::ffi::OsString;

use cobre_comm::Environment;
use cobre_comm::env::{TCP_HOST, TCP_RANK, TCP_SHARED_MEMORY};

/// The variable that says how the ranks of a job on `tcp` are spread over hosts: one of the constants below.
pub const HOSTS: &str = "TESTKIT_HOSTS";

/// All ranks on one host.
pub const ONE_HOST: &str = "one-host";
/// Two ranks on each host, numbered host by host.
pub const HOSTS_IN_A_ROW: &str = "hosts-in-a-row";
/// Two hosts, with even and with odd ranks.
pub const HOSTS_INTERLEAVED: &str = "hosts-interleaved";
/// Host 0 with ranks 0, 3 and 4, and ranks that are alone.
pub const HOSTS_UNEVEN: &str = "hosts-uneven";

/// The host of `rank`.
fn host(arrangement: &str, rank: usize) -> Option<usize> {
    match arrangement {
        ONE_HOST => Some(0),
        HOSTS_IN_A_ROW => Some(rank / 2),
        HOSTS_INTERLEAVED => Some(rank % 2),
        HOSTS_UNEVEN => Some(if [0, 3, 4].contains(&rank) { 0 } else { rank }),
        _ => None,
    }
}

/// The variables of this process, with those that put it on its host.
pub fn environment() -> Environment<'static> {
    Environment::from_lookup(|name| match name {
        TCP_SHARED_MEMORY if own_host().is_some() => Some(OsString::from("on")),
        TCP_HOST if own_host().is_some() => {
            own_host().map(|host| OsString::from(format!("host-{host}")))
        }
        name => std::env::var_os(name),
    })
}

fn own_host() -> Option<usize> {
    let arrangement = std::env::var(HOSTS).ok()?;
    let rank = std::env::var(TCP_RANK).ok()?.parse().ok()?;
    let host = host(&arrangement, rank);
    assert!(host.is_some(), "{HOSTS}={arrangement} is no arrangement");
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_put_ranks_where_they_say() {
        let hosts = |name| -> Vec<usize> { (0..5).filter_map(|rank| host(name, rank)).collect() };
        assert_eq!(hosts(HOSTS_IN_A_ROW), [0, 0, 1, 1, 2]);
        assert_eq!(hosts(HOSTS_INTERLEAVED), [0, 1, 0, 1, 0]);
        assert_eq!(hosts(HOSTS_UNEVEN), [0, 1, 2, 0, 0]);
        assert_eq!(hosts("nowhere"), []);
    }
}
