//! The five collectives over Cobre: packed bytes for any type, numbers for reductions.
//!
//! Each function returns MPI's code, or `None` for a call that is MPICH's. The decision reads what MPI
//! wants equal on all ranks: the kind of communicator, the operator, and for reductions the type. A call
//! with arguments that MPI refuses (a negative count, no such root) is MPICH's to refuse.
#![expect(unsafe_code, reason = "reads and writes buffers of an MPI program")]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, LazyLock};

use cobre_comm::{CommBackend, CommError, Communicator};

use crate::communicators;
use crate::counts::{Kind, Way, count};
use crate::mpich::{self, Comm, Count, Datatype, Op};
use crate::numbers;

/// Elements of an MPI type in memory.
#[derive(Clone, Copy)]
pub struct Block {
    start: *mut c_void,
    count: Count,
    datatype: Datatype,
}

impl Block {
    /// The elements from `start` on, which the caller of MPI vouches for.
    pub fn new(start: *mut c_void, count: Count, datatype: Datatype) -> Self {
        Self {
            start,
            count,
            datatype,
        }
    }

    /// Their bytes when packed; `None` if MPI refuses the count or the type.
    fn bytes(&self) -> Option<usize> {
        let count = usize::try_from(self.count).ok()?;
        Some(count * mpich::type_size(self.datatype)?)
    }

    fn pack(&self, comm: Comm) -> Option<Vec<u8>> {
        let mut packed = vec![0; self.bytes()?];
        // SAFETY: the caller of MPI vouches for the elements.
        unsafe { mpich::pack(self.start, self.count, self.datatype, &mut packed, comm) }?;
        Some(packed)
    }

    fn unpack(&self, packed: &[u8], comm: Comm) -> Option<()> {
        // SAFETY: the caller of MPI vouches for the room.
        unsafe { mpich::unpack(packed, self.start, self.count, self.datatype, comm) }
    }

    /// `count` elements that begin `displacement` elements after this one's.
    fn at(&self, displacement: Count, count: Count) -> Option<Self> {
        let offset = displacement * mpich::extent(self.datatype)?;
        let start = self.start.wrapping_byte_offset(offset as isize);
        Some(Self::new(start, count, self.datatype))
    }

    fn is_plain(&self) -> bool {
        numbers::number(self.datatype).is_some()
    }
}

/// The blocks of all ranks in a receive buffer.
#[derive(Clone, Copy)]
pub enum Blocks {
    /// One after another, each as large as this one.
    Equal(Block),
    /// By the counts and displacements of MPI 4.
    Long(Block, *const Count, *const Count),
    /// By counts and displacements that are `int`.
    Short(Block, *const c_int, *const c_int),
}

impl Blocks {
    fn first(&self) -> Block {
        match self {
            Self::Equal(first) | Self::Long(first, ..) | Self::Short(first, ..) => *first,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Equal(_) => Kind::Allgather,
            _ => Kind::Allgatherv,
        }
    }

    fn of_rank(&self, rank: usize) -> Option<Block> {
        let (displacement, count) = match self {
            Self::Equal(first) => (rank.cast_signed() as Count * first.count, first.count),
            Self::Long(_, counts, displs) => (entry(*displs, rank), entry(*counts, rank)),
            Self::Short(_, counts, displs) => (entry(*displs, rank), entry(*counts, rank)),
        };
        self.first().at(displacement, count)
    }
}

/// The entry of a rank in a list that MPI asks for.
fn entry<T: Copy + Into<Count>>(list: *const T, rank: usize) -> Count {
    // SAFETY: MPI asks for an entry per rank.
    unsafe { list.wrapping_add(rank).read() }.into()
}

/// The fault that the layer makes on purpose.
static MUTANT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("PMPI_MUTANT").ok());

/// Flips a bit of what was received, if the mutant is the one of this collective. On every rank: else one test fails on
/// one rank alone, which goes on to the next, and the others wait for it.
pub fn spoil(collective: &str, comm: &CommBackend, received: &mut [u8]) {
    if MUTANT.as_deref() == Some(collective)
        && comm.size() > 1
        && let Some(last) = received.last_mut()
    {
        *last ^= 1;
    }
}

/// A call on a communicator with one group; `None` with the call counted as MPICH's for others.
fn of_one_group(kind: Kind, plain: bool, comm: Comm) -> Option<()> {
    match mpich::is_inter(comm) {
        Some(false) => Some(()),
        Some(true) => left(kind, Way::Intercommunicator, plain),
        None => left(kind, Way::Refused, plain),
    }
}

/// Counts a call that MPICH refuses or carries.
fn left<T>(kind: Kind, way: Way, plain: bool) -> Option<T> {
    count(kind, way, plain);
    None
}

/// Cobre's communicator for a call that it carries.
///
/// A rank that does not get one ends the job: the others wait for it in Cobre, and MPICH would wait for them.
fn carrier(kind: Kind, plain: bool, comm: Comm) -> Arc<CommBackend> {
    count(kind, Way::Carried, plain);
    communicators::of(comm).unwrap_or_else(|| std::process::abort())
}

/// MPI's code for an outcome; the error itself goes to standard error.
fn code(outcome: Result<(), CommError>) -> c_int {
    match outcome {
        Ok(()) => mpich::SUCCESS,
        Err(error) => {
            eprintln!("pmpi: {error}");
            mpich::ERR_OTHER
        }
    }
}

/// Meets all ranks.
pub fn barrier(comm: Comm) -> Option<c_int> {
    of_one_group(Kind::Barrier, true, comm)?;
    Some(code(carrier(Kind::Barrier, true, comm).barrier()))
}

/// Broadcasts the root's elements as packed bytes.
pub fn broadcast(block: Block, root: c_int, comm: Comm) -> Option<c_int> {
    let plain = block.is_plain();
    of_one_group(Kind::Broadcast, plain, comm)?;
    let root = usize::try_from(root).ok();
    let root = root.filter(|root| Some(*root) < mpich::size(comm));
    let (Some(root), Some(bytes)) = (root, block.bytes()) else {
        return left(Kind::Broadcast, Way::Refused, plain);
    };
    let cobre = carrier(Kind::Broadcast, plain, comm);
    let mut packed = vec![0; bytes];
    if cobre.rank() == root {
        packed = block.pack(comm).unwrap_or(packed);
    }
    let outcome = code(cobre.broadcast(&mut packed, root));
    spoil("broadcast", &cobre, &mut packed);
    Some(placed(outcome, || block.unpack(&packed, comm)))
}

/// The code after a received message was put into its place, if it was received.
fn placed(outcome: c_int, place: impl FnOnce() -> Option<()>) -> c_int {
    match outcome {
        mpich::SUCCESS => place().map_or(mpich::ERR_OTHER, |()| mpich::SUCCESS),
        failure => failure,
    }
}

/// Gathers the ranks' elements to all ranks as packed bytes.
pub fn allgatherv(mine: Block, all: Blocks, comm: Comm) -> Option<c_int> {
    let in_place = mpich::in_place(mine.start);
    let plain = all.first().is_plain() && (in_place || mine.is_plain());
    of_one_group(all.kind(), plain, comm)?;
    let blocks: Option<Vec<Block>> = (0..mpich::size(comm)?)
        .map(|rank| all.of_rank(rank))
        .collect();
    let mine = if in_place {
        blocks
            .as_ref()
            .and_then(|blocks| Some(blocks[mpich::rank(comm)?]))
    } else {
        Some(mine)
    };
    let counts = blocks
        .as_ref()
        .and_then(|blocks| blocks.iter().map(Block::bytes).collect());
    let send = mine.and_then(|mine| mine.pack(comm));
    let (Some(blocks), Some(counts), Some(send)) = (blocks, counts, send) else {
        return left(all.kind(), Way::Refused, plain);
    };
    let counts: Vec<usize> = counts;
    let displs: Vec<usize> = (0..counts.len())
        .map(|rank| counts[..rank].iter().sum())
        .collect();
    let mut recv = vec![0; counts.iter().sum()];
    let cobre = carrier(all.kind(), plain, comm);
    let outcome = code(cobre.allgatherv(&send, &mut recv, &counts, &displs));
    spoil("allgatherv", &cobre, &mut recv);
    let each = || {
        let places = blocks.iter().zip(displs.iter().zip(&counts));
        let unpack = |(block, (&start, &bytes)): (&Block, (&usize, &usize))| {
            block.unpack(&recv[start..start + bytes], comm)
        };
        places.map(unpack).collect()
    };
    Some(placed(outcome, each))
}

/// Reduces numbers that Cobre reduces; the rest is MPICH's.
pub fn allreduce(send: *const c_void, recv: Block, op: Op, comm: Comm) -> Option<c_int> {
    let number = numbers::number(recv.datatype);
    let plain = number.is_some();
    of_one_group(Kind::Allreduce, plain, comm)?;
    let number = number.filter(|number| number.is_reducible());
    let (Some(number), Some(operator)) = (number, numbers::operator(op)) else {
        let way = number.map_or(Way::Datatype, |_| Way::Operator);
        return left(Kind::Allreduce, way, plain);
    };
    let Ok(count) = usize::try_from(recv.count) else {
        return left(Kind::Allreduce, Way::Refused, plain);
    };
    let cobre = carrier(Kind::Allreduce, plain, comm);
    let mut from = send;
    if mpich::in_place(send) {
        from = recv.start;
    }
    // SAFETY: the caller of MPI vouches for so many numbers of this type.
    let outcome = unsafe { numbers::reduce(&cobre, number, (from, recv.start), count, operator) };
    Some(code(outcome))
}
