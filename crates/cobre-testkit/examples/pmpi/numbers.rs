//! The plain number types of MPI, and reductions of those that Cobre has.
#![expect(unsafe_code, reason = "reads and writes buffers of an MPI program")]

use std::ffi::c_void;

use cobre_comm::{CommBackend, CommError, Communicator, ReduceOp, Reducible};

use crate::collectives::spoil;
use crate::mpich::{self, Datatype, Op};

/// A number type by its representation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// A number that Cobre moves as bytes and does not reduce: characters, bytes, `long double`.
    Other,
}

impl Number {
    /// True if Cobre reduces it.
    pub fn is_reducible(self) -> bool {
        self != Self::Other
    }
}

/// MPICH's handles of integers and real numbers.
const PLAIN: [(Datatype, Number); 25] = [
    (0x4c00_0101, Number::Other), // MPI_CHAR
    (0x4c00_010d, Number::Other), // MPI_BYTE
    (0x4c00_100c, Number::Other), // MPI_LONG_DOUBLE
    (0x4c00_0118, Number::I8),    // MPI_SIGNED_CHAR
    (0x4c00_0137, Number::I8),    // MPI_INT8_T
    (0x4c00_0102, Number::U8),    // MPI_UNSIGNED_CHAR
    (0x4c00_013b, Number::U8),    // MPI_UINT8_T
    (0x4c00_0203, Number::I16),   // MPI_SHORT
    (0x4c00_0238, Number::I16),   // MPI_INT16_T
    (0x4c00_0204, Number::U16),   // MPI_UNSIGNED_SHORT
    (0x4c00_023c, Number::U16),   // MPI_UINT16_T
    (0x4c00_0405, Number::I32),   // MPI_INT
    (0x4c00_0439, Number::I32),   // MPI_INT32_T
    (0x4c00_0406, Number::U32),   // MPI_UNSIGNED
    (0x4c00_043d, Number::U32),   // MPI_UINT32_T
    (0x4c00_0807, Number::I64),   // MPI_LONG
    (0x4c00_0809, Number::I64),   // MPI_LONG_LONG
    (0x4c00_083a, Number::I64),   // MPI_INT64_T
    (0x4c00_0843, Number::I64),   // MPI_AINT
    (0x4c00_0845, Number::I64),   // MPI_COUNT
    (0x4c00_0808, Number::U64),   // MPI_UNSIGNED_LONG
    (0x4c00_0819, Number::U64),   // MPI_UNSIGNED_LONG_LONG
    (0x4c00_083e, Number::U64),   // MPI_UINT64_T
    (0x4c00_040a, Number::F32),   // MPI_FLOAT
    (0x4c00_080b, Number::F64),   // MPI_DOUBLE
];

/// The number that the type is, if it is a plain one.
pub fn number(datatype: Datatype) -> Option<Number> {
    let found = PLAIN.iter().find(|(handle, _)| *handle == datatype);
    found.map(|(_, number)| *number)
}

/// Cobre's operator for MPI's.
pub fn operator(op: Op) -> Option<ReduceOp> {
    match op {
        mpich::SUM => Some(ReduceOp::Sum),
        mpich::MIN => Some(ReduceOp::Min),
        mpich::MAX => Some(ReduceOp::Max),
        _ => None,
    }
}

/// Reduces `count` numbers at `send` into those at `recv`.
///
/// # Panics
/// If the type is not reducible.
///
/// # Safety
/// Both hold so many numbers of the type.
pub unsafe fn reduce(
    comm: &CommBackend,
    number: Number,
    buffers: (*const c_void, *mut c_void),
    count: usize,
    op: ReduceOp,
) -> Result<(), CommError> {
    macro_rules! of {
        ($type:ty) => {
            // SAFETY: the caller vouches for numbers of this representation.
            unsafe { reduce_as::<$type>(comm, buffers, count, op) }
        };
    }
    match number {
        Number::I8 => of!(i8),
        Number::I16 => of!(i16),
        Number::I32 => of!(i32),
        Number::I64 => of!(i64),
        Number::U8 => of!(u8),
        Number::U16 => of!(u16),
        Number::U32 => of!(u32),
        Number::U64 => of!(u64),
        Number::F32 => of!(f32),
        Number::F64 => of!(f64),
        Number::Other => unreachable!("left to MPICH"),
    }
}

/// # Safety
/// Both buffers hold `count` numbers, at any alignment.
unsafe fn reduce_as<T: Reducible>(
    comm: &CommBackend,
    (from, to): (*const c_void, *mut c_void),
    count: usize,
    op: ReduceOp,
) -> Result<(), CommError> {
    let mut send = vec![T::zeroed(); count];
    let mut recv = send.clone();
    if count > 0 {
        // SAFETY: the caller vouches for the source; the copy is as long, and another object.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.cast::<u8>(),
                send.as_mut_ptr().cast(),
                count * size_of::<T>(),
            );
        }
    }
    comm.allreduce(&send, &mut recv, op)?;
    spoil("allreduce", comm, bytemuck::cast_slice_mut(&mut recv));
    if count > 0 {
        // SAFETY: the caller vouches for the target; the source is as long, and another object.
        unsafe {
            std::ptr::copy_nonoverlapping(
                recv.as_ptr().cast::<u8>(),
                to.cast(),
                count * size_of::<T>(),
            );
        }
    }
    Ok(())
}
