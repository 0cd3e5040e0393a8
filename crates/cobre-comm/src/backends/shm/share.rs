//! Memory that all ranks of a group map: rank 0 offers it, every rank takes its
//! part, and either all of them have it or none.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bytemuck::{Pod, Zeroable};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::group::Group;
use super::object::{self, Created, ObjectDraft, ObjectError};
use super::segment::Mapping;
use crate::call_signature::CallSignature;
use crate::copy::StoreMode;
use crate::env::{random_words, shm_name};
use crate::file_status;
use crate::memory;
use crate::transport::TransportFault;

/// Less than this is reserved without asking first whether the machine has it.
const HARMLESS: usize = 16 << 20;

/// The location of rank 0's memory, and the marks by which to recognise it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Offer {
    /// One of the constants below.
    way: u64,
    /// Process and descriptor, or the two halves of the name; of a failure, its error number.
    place: [u64; 2],
    device: u64,
    inode: u64,
}

const FAILED: u64 = 0;
/// An open file of rank 0's process: no `/dev/shm` limit binds it, and no death leaves it behind.
const ANONYMOUS: u64 = 1;
/// An object with a name that goes as soon as all have it, for ranks that cannot look into each
/// other's processes.
const NAMED: u64 = 2;

/// The memory that rank 0 keeps until the others have mapped it.
enum OfferedMemory {
    Anonymous(OwnedFd),
    Named(Created),
}

impl AsFd for OfferedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Anonymous(file) => file.as_fd(),
            Self::Named(created) => created.as_fd(),
        }
    }
}

/// The result of a rank: 0 if it has mapped the memory and holds its part.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MapResult {
    errno: u32,
    /// Not 0 if it could not even reach the memory.
    unreached: u32,
}

/// Memory of `len` bytes that all ranks map, each having reserved `own`.
pub(super) fn share(
    group: &Group,
    signature: &CallSignature,
    len: usize,
    own: Range<usize>,
) -> Result<Mapping, TransportFault> {
    let mut way = if group.job.named_regions {
        NAMED
    } else {
        ANONYMOUS
    };
    loop {
        let (held, offer) = if group.rank == 0 {
            make(way, len)
        } else {
            (None, Offer::zeroed())
        };
        let offer = exchange(group, signature, offer)?[0];
        if offer.way == FAILED {
            return Err(no_memory(
                len,
                Errno::from_raw_os_error(offer.place[0] as i32),
            ));
        }
        let (mapping, result) = take_part(held.as_ref(), &offer, len, &own);
        let everyone = exchange(group, signature, result)?;
        if offer.way == ANONYMOUS && everyone.iter().any(|result| result.unreached != 0) {
            way = NAMED;
            continue;
        }
        let failure = everyone.iter().find(|result| result.errno != 0);
        return match (failure, mapping) {
            (None, Some(mapping)) => Ok(mapping),
            (failure, _) => {
                let errno = failure.map_or(0, |result| result.errno.cast_signed());
                Err(no_memory(len, Errno::from_raw_os_error(errno)))
            }
        };
    }
}

/// Rank 0's memory and its offer; where the system has no anonymous memory, by name at once. What
/// the machine cannot hold is not even begun: reserving it would wake the out-of-memory killer.
fn make(way: u64, len: usize) -> (Option<OfferedMemory>, Offer) {
    if len > HARMLESS && len > memory::available() {
        return failure(Errno::NOMEM);
    }
    if way == ANONYMOUS
        && let Ok(file) = anonymous(len)
    {
        let place = [std::process::id().into(), file.as_raw_fd() as u64];
        return offer(OfferedMemory::Anonymous(file), ANONYMOUS, place);
    }
    let place = random_words();
    match named(len, &name(place)) {
        Ok(created) => offer(OfferedMemory::Named(created), NAMED, place),
        Err(error) => failure(error),
    }
}

/// An object of `len` bytes behind its identity.
fn named(len: usize, name: &str) -> Result<Created, Errno> {
    let draft = ObjectDraft::new()?;
    rustix::fs::ftruncate(&draft, (object::DATA + len) as u64)?;
    draft.publish(name).map_err(|refusal| errno(&refusal))
}

/// The offset of the memory in what is offered `way`.
fn start(way: u64) -> usize {
    if way == NAMED { object::DATA } else { 0 }
}

fn offer(held: OfferedMemory, way: u64, place: [u64; 2]) -> (Option<OfferedMemory>, Offer) {
    match rustix::fs::fstat(&held) {
        Ok(stat) => {
            let (device, inode) = file_status::identity(&stat);
            let offer = Offer {
                way,
                place,
                device,
                inode,
            };
            (Some(held), offer)
        }
        Err(error) => failure(error),
    }
}

fn failure(error: Errno) -> (Option<OfferedMemory>, Offer) {
    let mut offer = Offer::zeroed();
    offer.place[0] = error.raw_os_error() as u64;
    (None, offer)
}

fn name(place: [u64; 2]) -> String {
    shm_name(place[0], place[1])
}

fn errno(refusal: &ObjectError) -> Errno {
    match refusal {
        ObjectError::System(error) => *error,
        _ => Errno::ACCESS,
    }
}

/// Reaches the memory, reserves this rank's part, which places it near this rank, and maps all.
fn take_part(
    held: Option<&OfferedMemory>,
    offer: &Offer,
    len: usize,
    own: &Range<usize>,
) -> (Option<Mapping>, MapResult) {
    let result = |error: Errno, unreached| MapResult {
        errno: error.raw_os_error().cast_unsigned(),
        unreached,
    };
    let reached;
    let file = match held {
        Some(held) => held.as_fd(),
        None => match reach(offer) {
            Ok(file) => {
                reached = file;
                reached.as_fd()
            }
            Err(error) => return (None, result(error, 1)),
        },
    };
    let start = start(offer.way);
    let reserved = object::reserve(file, start + own.start..start + own.end);
    match reserved.and_then(|()| Mapping::new(file, start, len)) {
        Ok(mapping) => (Some(mapping), MapResult::zeroed()),
        Err(error) => (None, result(error, 0)),
    }
}

/// Opens what rank 0 offers, and makes sure that it is that memory and no other.
fn reach(offer: &Offer) -> Result<OwnedFd, Errno> {
    let file = if offer.way == NAMED {
        object::open(&name(offer.place)).map_err(|refusal| errno(&refusal))?
    } else {
        let path = format!("/proc/{}/fd/{}", offer.place[0], offer.place[1]);
        rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?
    };
    let stat = rustix::fs::fstat(&file)?;
    if file_status::identity(&stat) == (offer.device, offer.inode) {
        Ok(file)
    } else {
        Err(Errno::STALE)
    }
}

/// `/dev/shm` bounds regions only where they have names.
fn no_memory(len: usize, error: Errno) -> TransportFault {
    let detail = if matches!(error, Errno::NOSPC | Errno::FBIG) {
        object::no_room("a shared region", len, error)
    } else {
        format!("{} MiB are available ({error})", memory::available() >> 20)
    };
    TransportFault::NoMemory { bytes: len, detail }
}

/// Every rank's value, in rank order.
fn exchange<V: Pod>(
    group: &Group,
    signature: &CallSignature,
    value: V,
) -> Result<Vec<V>, TransportFault> {
    group.arrive(signature, bytemuck::bytes_of(&value));
    let mut values = vec![value; group.size];
    for peer in group.peers() {
        group.meet(peer, signature)?;
        let into = bytemuck::bytes_of_mut(&mut values[peer]);
        super::copy::read(group.payload(peer, into.len()), into, StoreMode::Cached);
    }
    Ok(values)
}

#[cfg(not(cobre_portable))]
fn anonymous(len: usize) -> Result<OwnedFd, Errno> {
    use rustix::fs::MemfdFlags;
    let file = rustix::fs::memfd_create("cobre-region", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, len as u64)?;
    Ok(file)
}

#[cfg(cobre_portable)]
fn anonymous(_: usize) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}
