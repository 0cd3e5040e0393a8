//! Pods of an indexed job of Kubernetes: with a headless service, rank 0's has a name that follows from one's own.

use std::net::IpAddr;

use crate::env::{self, Environment};
use crate::error::BackendError;
use crate::host_name;

/// The port of rank 0 if none is set: a pod has an address of its own, so no other program has taken it.
const PORT: u16 = 29_500;

/// The settings of the pod with this index, as far as the user has not set them.
pub(super) fn settings(
    rank: usize,
    env: &Environment<'_>,
) -> Result<Vec<(&'static str, String)>, BackendError> {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    derived(rank, &host_name(), &hosts, env)
}

fn derived(
    rank: usize,
    own: &str,
    hosts: &str,
    env: &Environment<'_>,
) -> Result<Vec<(&'static str, String)>, BackendError> {
    let mut settings = vec![(env::TCP_RANK, rank.to_string())];
    if !env.is_set(env::TCP_PORT) {
        settings.push((env::TCP_PORT, PORT.to_string()));
    }
    let entry = entry(own, hosts);
    if rank == 0 {
        if let Some((address, _)) = entry
            && !env.is_set(env::TCP_BIND)
        {
            settings.push((env::TCP_BIND, address.to_string()));
        }
    } else if !env.is_set(env::TCP_COORDINATOR) {
        let job = own.strip_suffix(&format!("-{rank}"));
        let rank_0 = job
            .zip(entry)
            .map(|(job, (_, domain))| format!("{job}-0.{domain}"));
        let rank_0 = rank_0.ok_or_else(|| BackendError::MissingConfiguration {
            backend: "tcp",
            variable: env::TCP_COORDINATOR.to_owned(),
            expected: format!(
                "host name of rank 0's pod; with a headless service, and its name as `subdomain` of the pods, it \
                 follows from that of this one, which is {own}"
            ),
        })?;
        settings.push((env::TCP_COORDINATOR, rank_0));
    }
    Ok(settings)
}

/// The address of the host `own`, and the domain that the table of hosts gives it.
fn entry<'a>(own: &str, hosts: &'a str) -> Option<(IpAddr, &'a str)> {
    hosts.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let domain = |name: &'a str| name.strip_prefix(own)?.strip_prefix('.');
        words.find_map(domain).map(|domain| (address, domain))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    const HOSTS: &str = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n\
        10.1.2.3\tcobre-2.ranks.default.svc.cluster.local\tcobre-2\n";

    fn of<'a>(found: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
        let found = found.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn rank_0_is_found_by_the_name_of_another_pod() {
        let env = Environment::from_lookup(|_| None);
        let found = derived(2, "cobre-2", HOSTS, &env).unwrap();
        let expected = "cobre-0.ranks.default.svc.cluster.local";
        assert_eq!(of(&found, env::TCP_COORDINATOR), Some(expected));
        assert_eq!(of(&found, env::TCP_RANK), Some("2"));
        assert_eq!(of(&found, env::TCP_PORT), Some("29500"));
        assert_eq!(of(&found, env::TCP_BIND), None);
    }

    #[test]
    fn rank_0_listens_on_the_address_of_its_pod() {
        let hosts = HOSTS.replace("cobre-2", "cobre-0");
        let env = Environment::from_lookup(|_| None);
        let found = derived(0, "cobre-0", &hosts, &env).unwrap();
        assert_eq!(of(&found, env::TCP_BIND), Some("10.1.2.3"));
    }

    #[test]
    fn settings_of_the_user_stay() {
        let env = Environment::from_lookup(|name| {
            [env::TCP_COORDINATOR, env::TCP_PORT]
                .contains(&name)
                .then(|| OsString::from("1"))
        });
        let found = derived(2, "cobre-2", "", &env).unwrap();
        assert_eq!(found, [(env::TCP_RANK, "2".to_owned())]);
    }

    #[test]
    fn a_pod_without_a_service_says_what_to_add() {
        let env = Environment::from_lookup(|_| None);
        for (own, hosts) in [("cobre-2", ""), ("cobre", HOSTS)] {
            let error = derived(2, own, hosts, &env).unwrap_err().to_string();
            assert!(error.contains("subdomain"), "{error}");
        }
    }
}
