//! The offer of rank 0: where the ranks of a job meet, and the secret that lets them in, as one word.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::{IntoRawFd, OwnedFd};

use super::ManagedJob;
use crate::env::{self, Environment};
use crate::error::BackendError;
use crate::{host_name, secret_memory};

/// The first part of every offer; another version of Cobre has another one.
const VERSION: &str = "cobre-job-1";
/// Bytes of the longest host name.
const LONGEST_HOST: usize = 255;

/// A place to meet.
#[derive(Debug)]
pub(super) enum MeetingPlace {
    Shm {
        name: String,
    },
    Tcp {
        host: String,
        port: u16,
        secret: [u8; secret_memory::LENGTH],
        /// On rank 0: the socket that listens there.
        listener: Option<OwnedFd>,
    },
}

impl MeetingPlace {
    /// Rank 0's offer.
    pub(super) fn new(job: &ManagedJob, env: &Environment<'_>) -> Result<Self, BackendError> {
        if job.backend == "shm" {
            let name = env::fresh_shm_name();
            return Ok(Self::Shm { name });
        }
        let bind = env.tcp_bind()?;
        let port = env.tcp_port()?;
        Self::listening(job, bind, port).map_err(|error| BackendError::InitializationFailed {
            backend: "tcp",
            reason: format!("cannot listen on port {port} ({}): {error}", env::TCP_PORT),
        })
    }

    /// An offer with a socket that listens: nobody can take the port before the others come.
    fn listening(job: &ManagedJob, bind: Option<IpAddr>, port: u16) -> io::Result<Self> {
        let (listener, host) = match bind {
            Some(address) => (TcpListener::bind((address, port))?, address.to_string()),
            None if job.one_host => {
                let loopback = Ipv4Addr::LOCALHOST;
                (TcpListener::bind((loopback, port))?, loopback.to_string())
            }
            None => {
                let any = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
                let any = any.or_else(|_| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))?;
                (any, host_name())
            }
        };
        Ok(Self::Tcp {
            host,
            port: listener.local_addr()?.port(),
            secret: secret_memory::fresh()?,
            listener: Some(secret_memory::above_stdio(listener.into())?),
        })
    }

    /// The offer as one word.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Shm { name } => format!("{VERSION}:shm:{name}"),
            Self::Tcp {
                host, port, secret, ..
            } => {
                let mut text = format!("{VERSION}:tcp:{host}:{port}:");
                for byte in secret {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{byte:02x}");
                }
                text
            }
        }
    }

    /// The offer that a word stands for; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(VERSION)?.strip_prefix(':')?;
        let (backend, place) = rest.split_once(':')?;
        if backend == "shm" {
            let name = place.to_owned();
            return env::is_fresh_shm_name(&name).then_some(Self::Shm { name });
        }
        let (place, secret) = place.rsplit_once(':').filter(|_| backend == "tcp")?;
        let (host, port) = place.rsplit_once(':')?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        if !(1..=LONGEST_HOST).contains(&host.len()) || !host.bytes().all(letter) {
            return None;
        }
        Some(Self::Tcp {
            host: host.to_owned(),
            port: port.parse().ok().filter(|port| *port != 0)?,
            secret: bytes(secret)?,
            listener: None,
        })
    }

    /// The settings of a rank that takes the offer.
    pub(super) fn settings(self, job: &ManagedJob) -> io::Result<Vec<(&'static str, String)>> {
        let (rank, size) = (job.rank.to_string(), job.size.to_string());
        match self {
            Self::Shm { name } => Ok(shm_settings(name, rank, size)),
            Self::Tcp {
                host,
                port,
                secret,
                listener,
            } => {
                let mut settings = vec![
                    (env::TCP_RANK, rank),
                    (env::TCP_SIZE, size),
                    (env::TCP_COORDINATOR, host),
                    (env::TCP_PORT, port.to_string()),
                ];
                let held = [
                    (env::TCP_SECRET, Some(secret_memory::hold(&secret)?)),
                    (env::TCP_LISTENER, listener),
                ];
                for (name, descriptor) in held {
                    let Some(descriptor) = descriptor else {
                        continue;
                    };
                    settings.push((name, secret_memory::address(&descriptor)?));
                    // The backend takes it over by this address.
                    let _ = descriptor.into_raw_fd();
                }
                Ok(settings)
            }
        }
    }
}

/// The settings of a rank that meets the others in the segment of this name.
pub(super) fn shm_settings(
    name: String,
    rank: String,
    size: String,
) -> Vec<(&'static str, String)> {
    vec![
        (env::SHM_JOB, name.clone()),
        (env::SHM_NAME, name),
        (env::SHM_RANK, rank),
        (env::SHM_SIZE, size),
    ]
}

fn bytes(digits: &str) -> Option<[u8; secret_memory::LENGTH]> {
    let mut secret = [0; secret_memory::LENGTH];
    if digits.len() != 2 * secret.len() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(backend: &'static str, one_host: bool) -> ManagedJob {
        ManagedJob {
            manager: "PMI-1",
            backend,
            rank: 0,
            size: 2,
            one_host,
        }
    }

    #[test]
    fn an_offer_survives_its_text() {
        let env = Environment::from_lookup(|_| None);
        for (backend, one_host) in [("shm", true), ("tcp", true), ("tcp", false)] {
            let offer = MeetingPlace::new(&job(backend, one_host), &env).unwrap();
            let text = offer.text();
            assert!(
                text.len() < 1024 && !text.contains([' ', '=', '\n']),
                "{text}"
            );
            assert_eq!(MeetingPlace::parse(&text).unwrap().text(), text);
        }
    }

    #[test]
    fn an_address_of_ipv6_survives_too() {
        let text = format!("{VERSION}:tcp:fe80::1%eth0:4711:{}", "0f".repeat(32));
        assert_eq!(MeetingPlace::parse(&text).unwrap().text(), text);
    }

    #[test]
    fn words_that_are_no_offer_are_refused() {
        let secret = "0f".repeat(32);
        let words = [
            String::new(),
            "hello".to_owned(),
            format!("cobre-job-2:tcp:a:1:{secret}"),
            format!("{VERSION}:tcp:a:0:{secret}"),
            format!("{VERSION}:tcp::1:{secret}"),
            format!("{VERSION}:tcp:a b:1:{secret}"),
            format!("{VERSION}:tcp:{}:1:{secret}", "a".repeat(256)),
            format!("{VERSION}:tcp:a:65536:{secret}"),
            format!("{VERSION}:tcp:a:1:{}", &secret[1..]),
            format!("{VERSION}:tcp:a:1:{}é", &secret[2..]),
            format!("{VERSION}:udp:a:1:{secret}"),
            format!("{VERSION}:shm:/etc/passwd"),
            format!("{VERSION}:shm:/cobre-../../x"),
        ];
        for word in words {
            assert!(MeetingPlace::parse(&word).is_none(), "{word}");
        }
    }
}
