//! Listener and secret that the ranks of a TCP job inherit: a socket that already listens, so that nobody
//! can take the port before rank 0 does, and a secret that nobody else can read.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use cobre_comm::{env, report};
use rustix::fs::MemfdFlags;

use crate::plan::above_stdio;
use crate::settings::Settings;

/// Bytes of a secret.
const SECRET: u64 = 32;

/// The settings that all ranks share, and the descriptors they name.
pub(crate) fn hand_on() -> io::Result<(Settings, Vec<OwnedFd>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let listener = above_stdio(listener.into())?;
    let secret = above_stdio(secret()?)?;
    let settings = vec![
        (env::TCP_COORDINATOR, Ipv4Addr::LOCALHOST.to_string()),
        (env::TCP_PORT, port.to_string()),
        (env::TCP_LISTENER, address(&listener)?),
        (env::TCP_SECRET, address(&secret)?),
    ];
    Ok((settings, vec![listener, secret]))
}

/// Random bytes in memory without a name.
fn secret() -> io::Result<OwnedFd> {
    let mut secret = Vec::new();
    File::open("/dev/urandom")?
        .take(SECRET)
        .read_to_end(&mut secret)?;
    let memory = rustix::fs::memfd_create("cobre-secret", MemfdFlags::CLOEXEC)?;
    let mut memory = File::from(memory);
    memory.write_all(&secret)?;
    memory.rewind()?;
    Ok(memory.into())
}

fn address(descriptor: &OwnedFd) -> io::Result<String> {
    let stat = rustix::fs::fstat(descriptor.as_fd())?;
    let number = descriptor.as_raw_fd();
    Ok(report::address(number, stat.st_dev, stat.st_ino))
}
