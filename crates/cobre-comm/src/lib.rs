//! Collectives and shared regions between ranks, the same bits on every backend.
//!
//! A program is written once, generic over [`Communicator`] and [`SharedMemoryProvider`], and runs
//! unchanged as one process or as many. Which backend carries it is decided when it starts, by
//! [`create_communicator`] and the environment.
//!
//! ```
//! use cobre_comm::{BackendKind, Communicator, ReduceOp, create_communicator};
//!
//! /// Mean of one number per rank; every rank gets the same bits.
//! fn mean<C: Communicator>(comm: &C, mine: f64) -> Result<f64, cobre_comm::CommError> {
//!     let mut sum = [0.0];
//!     comm.allreduce(&[mine], &mut sum, ReduceOp::Sum)?;
//!     Ok(sum[0] / comm.size() as f64)
//! }
//!
//! let comm = create_communicator(BackendKind::from_env()?)?;
//! let mean = mean(&comm, comm.rank() as f64)?;
//! println!("rank {} of {}: mean {mean}", comm.rank(), comm.size());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds when something goes wrong
//!
//! 1. After the death, exit, panic or abort of a rank every pending and later collective on every
//!    surviving rank that needs it returns an error with the same record; no call blocks for ever.
//! 2. The error is permanent for that communicator.
//! 3. A collective may be `Ok` on one rank and `Err` on another.
//! 4. Ranks that call different collectives, lengths, types, operators or roots get an error on
//!    all ranks before any data are combined, showing both sides.
//! 5. Slow is not dead: no deadline ends a healthy job unless the user sets one.
//! 6. Output buffers after `Err` are initialised but unspecified.

mod arguments;
mod backends;
mod call_signature;
mod cgroups;
mod communicator;
mod copy;
pub mod cpus;
mod data;
mod detector;
pub mod env;
mod error;
mod error_kind;
mod file_status;
mod fnv;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod memory;
mod process_managers;
mod region;
pub mod report;
pub mod secret_memory;
mod select;
mod status_page;
pub mod terminal;
mod transport;

pub use backends::*;
pub use call_signature::{CallSignature, Collective};
pub use communicator::{Communicator, ReduceOp};
pub use data::{CommData, Reducible};
pub use detector::Detector;
pub use env::{Environment, ShmConfig, TcpConfig, TcpProtection, TcpSharedMemory, TcpTopology};
pub use error::{BackendError, BufferProblem, Call, CallPosition, Cause, CommError, Loss};
pub use error_kind::{ClassifiedError, ErrorKind, FieldName, FieldValue, Fields};
pub use process_managers::{ManagedJob, process_manager};
pub use region::{SharedMemoryProvider, SharedRegion};
pub use select::{BackendKind, BackendSelection, available_backends, create_communicator};
pub use status_page::{StatusOfRank, named_memory_of};
