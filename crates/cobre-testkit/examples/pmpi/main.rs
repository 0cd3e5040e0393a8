//! A layer on MPI's profiling interface that carries a program's collectives over `shm` or `tcp`.
//!
//! `LD_PRELOAD=target/release/examples/libpmpi.so mpiexec.mpich -n 3 program`: barriers, broadcasts,
//! gathers to all and reductions to all of the program go to a backend of Cobre, everything else to
//! MPICH. So test suites that others wrote for MPI judge the backends. `ci/judges/mpi4py.py` runs
//! mpi4py's.
//!
//! - A communicator of MPI gets one of Cobre at its first call ([`communicators`]).
//! - A call goes to the backend or to MPICH by arguments alone that MPI wants equal on all ranks, so
//!   all ranks take the same way ([`collectives`]).
//! - A rank that waits in MPICH sleeps between looks ([`ucp_worker_progress`]).
//! - `MPI_Finalize` writes the number of calls that went each way ([`counts`]).
//!
//! Variables: `PMPI_BACKEND` (`shm` or `tcp`), `PMPI_COUNTS` (the file for the numbers; standard error
//! without it), `PMPI_MUTANT` (a fault on purpose: `broadcast`, `allgatherv` or `allreduce`).
#![expect(
    unsafe_code,
    reason = "defines functions of MPI, which pass buffers as pointers"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "MPI's standard says what each function asks of its caller"
)]
#![allow(non_snake_case, reason = "the names are MPI's")]
#![allow(unreachable_pub, reason = "the linker is the caller")]

mod collectives;
mod communicators;
mod counts;
mod mpich;
mod numbers;

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::time::Duration;

use collectives::{Block, Blocks, allgatherv, allreduce, barrier, broadcast};
use mpich::{Comm, Count, Datatype, Op};

/// Looks without news after which a rank sleeps between looks, and for how long.
const LOOKS: u32 = 100;
const SLEEP: Duration = Duration::from_micros(20);

thread_local! {
    static WITHOUT_NEWS: Cell<u32> = const { Cell::new(0) };
}

/// A look of UCX for news, which MPICH repeats as long as a rank waits. It keeps its processor meanwhile; here it sleeps, as
/// there may be more ranks than processors, and other work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    // SAFETY: the argument is the caller's.
    let news = unsafe { mpich::ucp_worker_progress(worker) };
    let looks = if news > 0 { 0 } else { WITHOUT_NEWS.get() + 1 };
    WITHOUT_NEWS.set(looks.min(LOOKS));
    if looks >= LOOKS {
        std::thread::sleep(SLEEP);
    }
    news
}

/// Completes when all ranks have called it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Comm) -> c_int {
    // SAFETY: the arguments are the caller's, as MPI asks.
    barrier(comm).unwrap_or_else(|| unsafe { mpich::PMPI_Barrier(comm) })
}

/// Broadcasts from `root`, with a count of MPI 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast_c(
    buffer: *mut c_void,
    count: Count,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
) -> c_int {
    let block = Block::new(buffer, count, datatype);
    broadcast(block, root, comm)
        // SAFETY: the arguments are the caller's, as MPI asks.
        .unwrap_or_else(|| unsafe { mpich::PMPI_Bcast_c(buffer, count, datatype, root, comm) })
}

/// Broadcasts from `root`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast(
    buffer: *mut c_void,
    count: c_int,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are the caller's, as MPI asks.
    unsafe { MPI_Bcast_c(buffer, count.into(), datatype, root, comm) }
}

/// Gathers blocks of one size to all ranks, with counts of MPI 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allgather_c(
    send: *const c_void,
    send_count: Count,
    send_type: Datatype,
    recv: *mut c_void,
    recv_count: Count,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    let mine = Block::new(send.cast_mut(), send_count, send_type);
    let all = Block::new(recv, recv_count, recv_type);
    allgatherv(mine, Blocks::Equal(all), comm).unwrap_or_else(|| {
        // SAFETY: the arguments are the caller's, as MPI asks.
        unsafe {
            mpich::PMPI_Allgather_c(
                send, send_count, send_type, recv, recv_count, recv_type, comm,
            )
        }
    })
}

/// Gathers blocks of one size to all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allgather(
    send: *const c_void,
    send_count: c_int,
    send_type: Datatype,
    recv: *mut c_void,
    recv_count: c_int,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are the caller's, as MPI asks.
    unsafe {
        MPI_Allgather_c(
            send,
            send_count.into(),
            send_type,
            recv,
            recv_count.into(),
            recv_type,
            comm,
        )
    }
}

/// Gathers blocks of several sizes to all ranks, with counts of MPI 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allgatherv_c(
    send: *const c_void,
    send_count: Count,
    send_type: Datatype,
    recv: *mut c_void,
    counts: *const Count,
    displs: *const Count,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    let mine = Block::new(send.cast_mut(), send_count, send_type);
    let all = Blocks::Long(Block::new(recv, 0, recv_type), counts, displs);
    allgatherv(mine, all, comm).unwrap_or_else(|| {
        // SAFETY: the arguments are the caller's, as MPI asks.
        unsafe {
            mpich::PMPI_Allgatherv_c(
                send, send_count, send_type, recv, counts, displs, recv_type, comm,
            )
        }
    })
}

/// Gathers blocks of several sizes to all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allgatherv(
    send: *const c_void,
    send_count: c_int,
    send_type: Datatype,
    recv: *mut c_void,
    counts: *const c_int,
    displs: *const c_int,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    let mine = Block::new(send.cast_mut(), send_count.into(), send_type);
    let all = Blocks::Short(Block::new(recv, 0, recv_type), counts, displs);
    allgatherv(mine, all, comm).unwrap_or_else(|| {
        // SAFETY: the arguments are the caller's, as MPI asks.
        unsafe {
            mpich::PMPI_Allgatherv(
                send, send_count, send_type, recv, counts, displs, recv_type, comm,
            )
        }
    })
}

/// Combines elements of all ranks for all ranks, with a count of MPI 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allreduce_c(
    send: *const c_void,
    recv: *mut c_void,
    count: Count,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> c_int {
    allreduce(send, Block::new(recv, count, datatype), op, comm)
        // SAFETY: the arguments are the caller's, as MPI asks.
        .unwrap_or_else(|| unsafe {
            mpich::PMPI_Allreduce_c(send, recv, count, datatype, op, comm)
        })
}

/// Combines elements of all ranks for all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allreduce(
    send: *const c_void,
    recv: *mut c_void,
    count: c_int,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are the caller's, as MPI asks.
    unsafe { MPI_Allreduce_c(send, recv, count.into(), datatype, op, comm) }
}

/// Frees a communicator, and Cobre's first: MPICH may use the handle again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Comm_free(comm: *mut Comm) -> c_int {
    // SAFETY: MPI asks for a handle here.
    communicators::forget(unsafe { *comm });
    // SAFETY: the argument is the caller's, as MPI asks.
    unsafe { mpich::PMPI_Comm_free(comm) }
}

/// Frees a communicator after its pending communication, and Cobre's first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Comm_disconnect(comm: *mut Comm) -> c_int {
    // SAFETY: MPI asks for a handle here.
    communicators::forget(unsafe { *comm });
    // SAFETY: the argument is the caller's, as MPI asks.
    unsafe { mpich::PMPI_Comm_disconnect(comm) }
}

/// Leaves every communicator of Cobre, writes the numbers of calls, and ends MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    communicators::forget_all();
    counts::write();
    // SAFETY: the caller's call, as MPI asks.
    unsafe { mpich::PMPI_Finalize() }
}
