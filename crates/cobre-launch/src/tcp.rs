//! Listener and secret that the ranks of a TCP job inherit: a socket that already listens, so that nobody
//! can take the port before rank 0 does, and a secret that nobody else can read.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use cobre_comm::{env, secret_memory};

use crate::settings::Settings;

/// The settings that all ranks share, and the descriptors they name.
pub(crate) fn hand_on() -> io::Result<(Settings, Vec<OwnedFd>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let listener = secret_memory::above_stdio(listener.into())?;
    let secret = secret_memory::hold(&secret_memory::fresh()?)?;
    let settings = vec![
        (env::TCP_COORDINATOR, Ipv4Addr::LOCALHOST.to_string()),
        (env::TCP_PORT, port.to_string()),
        (env::TCP_LISTENER, secret_memory::address(&listener)?),
        (env::TCP_SECRET, secret_memory::address(&secret)?),
    ];
    Ok((settings, vec![listener, secret]))
}
