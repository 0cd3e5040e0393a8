//! Communicators of Cobre for those of MPI: made at the first call, by an introduction through MPICH.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use cobre_comm::{BackendKind, CommBackend, Environment, create_communicator, env};

use crate::mpich::{self, Comm};

/// The name of the backend that carries the calls.
pub static BACKEND: LazyLock<String> =
    LazyLock::new(|| std::env::var("PMPI_BACKEND").unwrap_or_else(|_| "shm".to_owned()));

static TABLE: LazyLock<Mutex<HashMap<Comm, Arc<CommBackend>>>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, HashMap<Comm, Arc<CommBackend>>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cobre's communicator for `comm`, which has one group. All its ranks call this at the same place.
pub fn of(comm: Comm) -> Option<Arc<CommBackend>> {
    let known = table().get(&comm).cloned();
    if known.is_some() {
        return known;
    }
    let made = Arc::new(make(comm)?);
    table().insert(comm, Arc::clone(&made));
    Some(made)
}

/// Leaves Cobre's communicator for `comm`, if there is one.
pub fn forget(comm: Comm) {
    let gone = table().remove(&comm);
    drop(gone);
}

/// Leaves every communicator of Cobre.
pub fn forget_all() {
    let gone = std::mem::take(&mut *table());
    drop(gone);
}

/// Bytes of an introduction: the segment's name, or the port of rank 0.
const INTRODUCTION: usize = 64;

fn make(comm: Comm) -> Option<CommBackend> {
    let (rank, size) = (mpich::rank(comm)?, mpich::size(comm)?);
    let mut place = [0; INTRODUCTION];
    let mut listener = None;
    if rank == 0 {
        let word = if *BACKEND == "tcp" {
            let (port, address) = listen();
            listener = Some(address);
            port.to_string()
        } else {
            segment_name()
        };
        place[..word.len()].copy_from_slice(word.as_bytes());
    }
    mpich::introduce(&mut place, comm)?;
    let place = String::from_utf8_lossy(&place);
    let place = place.trim_end_matches('\0');
    let settings = settings(rank, size, place, listener);
    let lookup = |name: &str| {
        let found = settings.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| OsString::from(value))
    };
    let made = BackendKind::from_environment(&Environment::from_lookup(lookup))
        .and_then(create_communicator);
    made.inspect_err(|error| eprintln!("pmpi: rank {rank} of {size} at {place}: {error}"))
        .ok()
}

fn settings(
    rank: usize,
    size: usize,
    place: &str,
    listener: Option<String>,
) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        (env::COMM_BACKEND, BACKEND.clone()),
        (env::SHM_NAME, place.to_owned()),
        (env::SHM_RANK, rank.to_string()),
        (env::SHM_SIZE, size.to_string()),
        (env::TCP_COORDINATOR, "127.0.0.1".to_owned()),
        (env::TCP_PORT, place.to_owned()),
        (env::TCP_RANK, rank.to_string()),
        (env::TCP_SIZE, size.to_string()),
    ];
    settings.extend(listener.map(|address| (env::TCP_LISTENER, address)));
    settings
}

/// A name that no other communicator of this machine has.
fn segment_name() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    format!("/{}pmpi-{}-{number}", env::SHM_PREFIX, std::process::id())
}

/// A listening socket as a launcher leaves it to rank 0: its port, and its descriptor's address.
fn listen() -> (u16, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("pmpi: a free port");
    let port = listener.local_addr().expect("pmpi: its address").port();
    let open = std::fs::metadata(format!("/dev/fd/{}", listener.as_raw_fd()));
    let open = open.expect("pmpi: the descriptor is open");
    let address = format!("{}:{}:{}", listener.into_raw_fd(), open.dev(), open.ino());
    (port, address)
}
