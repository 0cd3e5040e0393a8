//! Regions in memory that all ranks of the group map: one physical copy.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use bytemuck::{Pod, Zeroable};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::ShmBackend;
use super::collectives;
use super::group::Group;
use super::object::{self, Created};
use super::segment::Mapping;
use crate::copy::Store;
use crate::data::CommData;
use crate::error::CommError;
use crate::region::{Epoch, SharedRegion};
use crate::stamp::{Collective, Stamp};
use crate::transport::{self, Fault};

/// A region of a shared-memory job.
#[derive(Debug)]
pub struct ShmRegion<T> {
    mapping: Mapping,
    count: usize,
    /// The elements this rank may write.
    own: Range<usize>,
    epoch: Epoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    backend: ShmBackend,
    element: std::marker::PhantomData<T>,
}

impl<T: CommData> ShmRegion<T> {
    /// Creates a region of `count` elements of which this rank writes `own`.
    pub(super) fn new(
        backend: &ShmBackend,
        stamp: &Stamp,
        count: usize,
        own: Range<usize>,
    ) -> Result<Self, Fault> {
        let group = backend.group();
        let bytes = own.start * size_of::<T>()..own.end * size_of::<T>();
        let mapping = share(group, stamp, count * size_of::<T>(), bytes)?;
        Ok(Self {
            mapping,
            count,
            own,
            epoch: Epoch::Write,
            id: stamp.sequence(),
            backend: backend.clone(),
            element: std::marker::PhantomData,
        })
    }
}

impl<T: CommData> SharedRegion<T> for ShmRegion<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        self.epoch.assert_readable();
        self.mapping.published(0, self.count)
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        self.epoch.assert_writable();
        self.mapping
            .owned(self.own.start * size_of::<T>(), self.own.len())
    }

    fn fence(&mut self) -> Result<(), CommError> {
        let stamp = Stamp::new(Collective::Fence).subject(self.id);
        let outcome = match &self.epoch {
            Epoch::Poisoned(error) => Err(error.clone()),
            _ => transport::collective(&self.backend, stamp, Ok(()), |stamp, ()| {
                self.backend.group().begin()?;
                collectives::barrier(self.backend.group(), stamp)
            }),
        };
        self.epoch.advance(outcome)
    }
}

/// Rank 0's invitation: where its process holds the memory.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Ticket {
    pid: u64,
    /// Negative if rank 0 has no anonymous memory to offer.
    descriptor: i64,
    /// Not 0 if the machine cannot hold the region: reserving it would wake the out-of-memory
    /// killer. Rank 0 alone looks, before anyone reserves anything.
    too_large: u64,
    device: u64,
    inode: u64,
}

/// How far a rank got: 0 if it holds its part, else the error number, and whether waiting for
/// memory or reaching rank 0's was the trouble.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Progress {
    errno: u32,
    unreachable: u32,
}

impl Progress {
    const DONE: Self = Self {
        errno: 0,
        unreachable: 0,
    };

    fn no_memory(error: Errno) -> Self {
        Self {
            errno: error.raw_os_error().cast_unsigned(),
            unreachable: 0,
        }
    }

    fn unreachable(error: Errno) -> Self {
        Self {
            unreachable: 1,
            ..Self::no_memory(error)
        }
    }
}

/// Memory of `len` bytes that all ranks map, each having reserved `own`. First by an anonymous
/// object of rank 0, which no `/dev/shm` limit binds and no death leaves behind; where ranks cannot
/// reach it (other process namespaces), by a name that is removed at once.
pub(super) fn share(
    group: &Group,
    stamp: &Stamp,
    len: usize,
    own: Range<usize>,
) -> Result<Mapping, Fault> {
    let offered = if group.rank == 0 {
        anonymous(len).ok()
    } else {
        None
    };
    let ticket = offered.as_ref().and_then(ticket).unwrap_or(Ticket {
        pid: 0,
        descriptor: -1,
        too_large: 0,
        device: 0,
        inode: 0,
    });
    let too_large = u64::from(group.rank == 0 && !fits(len));
    let ticket = exchange(
        group,
        stamp,
        Ticket {
            too_large,
            ..ticket
        },
    )?[0];
    if ticket.too_large != 0 {
        return Err(no_memory(len, Errno::NOMEM));
    }
    let reached = match &offered {
        Some(file) => rustix::io::fcntl_dupfd_cloexec(file, 0),
        None => redeem(&ticket),
    };
    let (reached, progress) = take_part(reached, &own);
    let everyone = exchange(group, stamp, progress)?;
    if everyone.iter().any(|progress| progress.unreachable == 1) {
        return share_by_name(group, stamp, len, own);
    }
    finish(reached, len, &everyone)
}

/// A job's regions by name: rank 0 creates, all open, and the name goes.
fn share_by_name(
    group: &Group,
    stamp: &Stamp,
    len: usize,
    own: Range<usize>,
) -> Result<Mapping, Fault> {
    let nonce = group.job.header.word64(super::layout::header::NONCE);
    let nonce = nonce.load(std::sync::atomic::Ordering::Relaxed);
    let name = format!("{}{nonce:x}-region", crate::env::SHM_PREFIX);
    let created = if group.rank == 0 {
        Created::new(&name)
            .ok()
            .filter(|created| rustix::fs::ftruncate(created, len as u64).is_ok())
    } else {
        None
    };
    exchange(group, stamp, Progress::DONE)?;
    let reached = match &created {
        Some(created) => rustix::io::fcntl_dupfd_cloexec(created, 0),
        None => object::open(&name).map_err(|refusal| match refusal {
            object::Refusal::System(error) => error,
            _ => Errno::ACCESS,
        }),
    };
    let (reached, progress) = take_part(reached, &own);
    let everyone = exchange(group, stamp, progress)?;
    drop(created);
    finish(reached, len, &everyone)
}

/// Reserves this rank's part of what it reached.
fn take_part(reached: Result<OwnedFd, Errno>, own: &Range<usize>) -> (Option<OwnedFd>, Progress) {
    match reached {
        Err(error) => (None, Progress::unreachable(error)),
        Ok(file) => match object::reserve(file.as_fd(), own.clone()) {
            Ok(()) => (Some(file), Progress::DONE),
            Err(error) => (None, Progress::no_memory(error)),
        },
    }
}

/// Maps the memory if every rank holds its part, else fails on every rank alike.
fn finish(file: Option<OwnedFd>, len: usize, everyone: &[Progress]) -> Result<Mapping, Fault> {
    let failed = everyone.iter().position(|progress| progress.errno != 0);
    let outcome = match (failed, file) {
        (None, Some(file)) => Mapping::new(file.as_fd(), len),
        (rank, _) => {
            let errno = everyone[rank.unwrap_or(0)].errno.cast_signed();
            Err(Errno::from_raw_os_error(errno))
        }
    };
    outcome.map_err(|error| no_memory(len, error))
}

/// `/dev/shm` bounds regions only where they have names.
fn no_memory(len: usize, error: Errno) -> Fault {
    let detail = if error == Errno::NOSPC {
        object::no_room(len, error)
    } else {
        format!(
            "the machine has {} MiB available ({error})",
            available() >> 20
        )
    };
    Fault::NoMemory { bytes: len, detail }
}

/// Every rank's value, in rank order.
pub(super) fn exchange<V: Pod>(group: &Group, stamp: &Stamp, value: V) -> Result<Vec<V>, Fault> {
    group.arrive(stamp, bytemuck::bytes_of(&value));
    let mut values = vec![value; group.size];
    for peer in group.peers() {
        group.meet(peer, stamp)?;
        let into = bytemuck::bytes_of_mut(&mut values[peer]);
        super::copy::read(group.payload(peer, into.len()), into, Store::Cached);
    }
    Ok(values)
}

fn fits(len: usize) -> bool {
    len <= available()
}

/// Bytes that can be had without pushing other programs out of memory.
fn available() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let figure = text.lines().find_map(|line| {
        let kibibytes = line
            .strip_prefix("MemAvailable:")?
            .trim()
            .strip_suffix(" kB")?;
        kibibytes.parse::<usize>().ok()?.checked_mul(1024)
    });
    // Where the system does not say, reserving will tell.
    figure.unwrap_or(usize::MAX)
}

#[cfg(target_os = "linux")]
fn anonymous(len: usize) -> Result<OwnedFd, Errno> {
    use rustix::fs::MemfdFlags;
    let file = rustix::fs::memfd_create("cobre-region", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, len as u64)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn anonymous(_: usize) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn ticket(file: &OwnedFd) -> Option<Ticket> {
    let stat = rustix::fs::fstat(file).ok()?;
    Some(Ticket {
        pid: std::process::id().into(),
        descriptor: file.as_raw_fd().into(),
        too_large: 0,
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Opens rank 0's memory through its process, and makes sure that it is that memory.
fn redeem(ticket: &Ticket) -> Result<OwnedFd, Errno> {
    if ticket.descriptor < 0 {
        return Err(Errno::NOSYS);
    }
    let path = format!("/proc/{}/fd/{}", ticket.pid, ticket.descriptor);
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if (stat.st_dev, stat.st_ino) == (ticket.device, ticket.inode) {
        Ok(file)
    } else {
        Err(Errno::STALE)
    }
}
