//! MPICH's functions behind the profiling interface, and the handles that the layer knows.
//!
//! They are looked up in the library that the program has loaded, so that the layer is built without an
//! MPI library, and a machine without one builds it too.
#![expect(unsafe_code, reason = "calls C functions by their address")]

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// A communicator; MPICH's handles are integers.
pub type Comm = c_int;
/// A datatype.
pub type Datatype = c_int;
/// A reduction operator.
pub type Op = c_int;
/// `MPI_Count` and `MPI_Aint`.
pub type Count = i64;

/// The communicator of all ranks.
pub const WORLD: Comm = 0x4400_0000;
/// Bytes.
pub const BYTE: Datatype = 0x4c00_010d;
/// Sums.
pub const SUM: Op = 0x5800_0003;
/// Minima.
pub const MIN: Op = 0x5800_0002;
/// Maxima.
pub const MAX: Op = 0x5800_0001;
/// The code of success.
pub const SUCCESS: c_int = 0;
/// The code of an error that has no other.
pub const ERR_OTHER: c_int = 15;

/// True if the address stands for "my data are in the receive buffer".
pub fn in_place(send: *const c_void) -> bool {
    send.addr() == usize::MAX
}

/// The address of a function of the MPI library that the program has loaded.
fn address(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero; nothing is loaded, only found.
    let library = unsafe {
        libc::dlopen(
            c"libmpich.so.12".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    assert!(!library.is_null(), "pmpi: the program has no MPICH loaded");
    // SAFETY: the library is open, and the name ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "pmpi: MPICH has no function {name:?}");
    found
}

/// A look for news by UCX, which carries MPICH's messages: the number of things that happened.
///
/// # Safety
/// As UCX asks.
pub unsafe fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    static ADDRESS: OnceLock<usize> = OnceLock::new();
    let found = *ADDRESS.get_or_init(|| {
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"ucp_worker_progress".as_ptr()) };
        assert!(!found.is_null(), "pmpi: called by UCX, which is not there");
        found.expose_provenance()
    });
    let found = std::ptr::with_exposed_provenance::<c_void>(found);
    // SAFETY: UCX gives the function of this name this type.
    let call: unsafe extern "C" fn(*mut c_void) -> c_uint = unsafe { std::mem::transmute(found) };
    // SAFETY: the caller of this function keeps to what UCX asks.
    unsafe { call(worker) }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "MPI's arguments")]
        pub unsafe fn $name($($argument: $type),*) -> c_int {
            static ADDRESS: OnceLock<usize> = OnceLock::new();
            let found = *ADDRESS.get_or_init(|| {
                let name = concat!(stringify!($name), "\0");
                let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("one zero, at the end");
                address(name).expose_provenance()
            });
            let found = std::ptr::with_exposed_provenance::<c_void>(found);
            // SAFETY: MPI's standard gives the function of this name this type.
            let call: unsafe extern "C" fn($($type),*) -> c_int = unsafe { std::mem::transmute(found) };
            // SAFETY: the caller of this function keeps to what MPI asks.
            unsafe { call($($argument),*) }
        }
    )*};
}

functions! {
    PMPI_Barrier(comm: Comm);
    PMPI_Bcast_c(buffer: *mut c_void, count: Count, datatype: Datatype, root: c_int, comm: Comm);
    PMPI_Allgather_c(send: *const c_void, send_count: Count, send_type: Datatype, recv: *mut c_void, recv_count: Count, recv_type: Datatype, comm: Comm);
    PMPI_Allgatherv_c(send: *const c_void, send_count: Count, send_type: Datatype, recv: *mut c_void, counts: *const Count, displs: *const Count, recv_type: Datatype, comm: Comm);
    PMPI_Allgatherv(send: *const c_void, send_count: c_int, send_type: Datatype, recv: *mut c_void, counts: *const c_int, displs: *const c_int, recv_type: Datatype, comm: Comm);
    PMPI_Allreduce_c(send: *const c_void, recv: *mut c_void, count: Count, datatype: Datatype, op: Op, comm: Comm);
    PMPI_Reduce_c(send: *const c_void, recv: *mut c_void, count: Count, datatype: Datatype, op: Op, root: c_int, comm: Comm);
    PMPI_Comm_free(comm: *mut Comm);
    PMPI_Comm_disconnect(comm: *mut Comm);
    PMPI_Finalize();
    PMPI_Comm_test_inter(comm: Comm, flag: *mut c_int);
    PMPI_Comm_rank(comm: Comm, rank: *mut c_int);
    PMPI_Comm_size(comm: Comm, size: *mut c_int);
    PMPI_Type_size_c(datatype: Datatype, size: *mut Count);
    PMPI_Type_get_extent_c(datatype: Datatype, lower: *mut Count, extent: *mut Count);
    PMPI_Pack_c(from: *const c_void, count: Count, datatype: Datatype, into: *mut c_void, bytes: Count, position: *mut Count, comm: Comm);
    PMPI_Unpack_c(from: *const c_void, bytes: Count, position: *mut Count, into: *mut c_void, count: Count, datatype: Datatype, comm: Comm);
}

/// The answer of a function that writes one number, or `None` if it fails.
fn answer<T: Default>(ask: impl FnOnce(&mut T) -> c_int) -> Option<T> {
    let mut value = T::default();
    (ask(&mut value) == SUCCESS).then_some(value)
}

/// True for a communicator of two groups; `None` for no communicator.
pub fn is_inter(comm: Comm) -> Option<bool> {
    // SAFETY: MPICH checks the handle; the answer is written to a local.
    answer(|flag| unsafe { PMPI_Comm_test_inter(comm, flag) }).map(|flag: c_int| flag != 0)
}

/// The rank of this process in `comm`.
pub fn rank(comm: Comm) -> Option<usize> {
    // SAFETY: MPICH checks the handle; the answer is written to a local.
    answer(|rank| unsafe { PMPI_Comm_rank(comm, rank) }).map(|rank: c_int| rank as usize)
}

/// The number of ranks of `comm`.
pub fn size(comm: Comm) -> Option<usize> {
    // SAFETY: MPICH checks the handle; the answer is written to a local.
    answer(|size| unsafe { PMPI_Comm_size(comm, size) }).map(|size: c_int| size as usize)
}

/// The bytes that an element of the type has when packed.
pub fn type_size(datatype: Datatype) -> Option<usize> {
    // SAFETY: MPICH checks the handle; the answer is written to a local.
    answer(|size| unsafe { PMPI_Type_size_c(datatype, size) })
        .and_then(|size: Count| usize::try_from(size).ok())
}

/// The bytes from one element of the type to the next.
pub fn extent(datatype: Datatype) -> Option<Count> {
    let mut lower = 0;
    // SAFETY: MPICH checks the handle; the answers are written to locals.
    answer(|extent| unsafe { PMPI_Type_get_extent_c(datatype, &raw mut lower, extent) })
}

/// Packs `count` elements at `from` into `into`, which they fill.
///
/// # Safety
/// `from` holds so many elements.
pub unsafe fn pack(
    from: *const c_void,
    count: Count,
    datatype: Datatype,
    into: &mut [u8],
    comm: Comm,
) -> Option<()> {
    let mut position = 0;
    let bytes = into.len().cast_signed() as Count;
    let into = into.as_mut_ptr().cast();
    // SAFETY: the caller vouches for `from`; MPICH writes at most `bytes`.
    let code = unsafe { PMPI_Pack_c(from, count, datatype, into, bytes, &raw mut position, comm) };
    (code == SUCCESS && position == bytes).then_some(())
}

/// Unpacks `count` elements that fill `from` to `into`.
///
/// # Safety
/// `into` has room for so many elements.
pub unsafe fn unpack(
    from: &[u8],
    into: *mut c_void,
    count: Count,
    datatype: Datatype,
    comm: Comm,
) -> Option<()> {
    let mut position = 0;
    let bytes = from.len().cast_signed() as Count;
    let from = from.as_ptr().cast();
    // SAFETY: the caller vouches for `into`; MPICH reads at most `bytes`.
    let code =
        unsafe { PMPI_Unpack_c(from, bytes, &raw mut position, into, count, datatype, comm) };
    (code == SUCCESS && position == bytes).then_some(())
}

/// Broadcasts rank 0's bytes to all ranks of `comm`.
pub fn introduce(bytes: &mut [u8], comm: Comm) -> Option<()> {
    let count = bytes.len().cast_signed() as Count;
    // SAFETY: the buffer has so many bytes.
    let code = unsafe { PMPI_Bcast_c(bytes.as_mut_ptr().cast(), count, BYTE, 0, comm) };
    (code == SUCCESS).then_some(())
}

/// The sums over all ranks of `mine`, on rank 0 of the world.
pub fn sum_of_world(mine: &[u64]) -> Vec<u64> {
    const UNSIGNED_LONG: Datatype = 0x4c00_0808;
    let mut sums = vec![0; mine.len()];
    let (send, recv) = (mine.as_ptr().cast(), sums.as_mut_ptr().cast());
    let count = mine.len().cast_signed() as Count;
    // SAFETY: both buffers have so many numbers.
    let code = unsafe { PMPI_Reduce_c(send, recv, count, UNSIGNED_LONG, SUM, 0, WORLD) };
    assert_eq!(code, SUCCESS, "pmpi: the numbers of calls are not summed");
    sums
}
