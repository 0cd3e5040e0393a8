//! The backends: one row each in the table at the foot of this file, which is the only place that
//! knows which of them are part of a build.

#[cfg(all(feature = "tcp", not(target_os = "linux")))]
compile_error!(
    "the backend tcp needs Linux: build cobre-comm with --no-default-features --features shm"
);

/// The first items where unit tests simulate jobs (`tcp/simulation/`), the second ones in all other builds.
#[cfg(all(test, feature = "tcp"))]
macro_rules! if_simulated {
    ({ $($simulated:item)* } else { $($real:item)* }) => { $($simulated)* };
}
#[cfg(not(all(test, feature = "tcp")))]
#[allow(unused_macros, reason = "only `shm` has such items")]
macro_rules! if_simulated {
    ({ $($simulated:item)* } else { $($real:item)* }) => { $($real)* };
}

#[cfg(any(feature = "shm", feature = "tcp", feature = "mpi"))]
mod fork_guard;
mod heap;
mod host;
pub(crate) mod local;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "shm", feature = "tcp"))]
#[cfg_attr(
    not(all(feature = "shm", feature = "tcp")),
    allow(
        dead_code,
        unused_imports,
        reason = "tcp uses a part of it inside a host, which shm alone does not need"
    )
)]
mod shm;
#[cfg(any(feature = "shm", feature = "tcp"))]
mod spin;
#[cfg(feature = "tcp")]
mod tcp;
#[cfg(any(feature = "shm", feature = "tcp", feature = "mpi"))]
mod wire;

pub use heap::HeapRegion;
pub use host::name as host_name;
pub use local::LocalBackend;
#[cfg(feature = "mpi")]
pub use mpi::{FerrompiBackend, FerrompiRegion};
#[cfg(feature = "shm")]
pub use shm::{ShmBackend, ShmRegion};
#[cfg(feature = "tcp")]
pub use tcp::{TcpBackend, TcpRegion};

/// The MPI library of this build, as it calls itself; `None` without the `mpi` backend.
#[cfg(feature = "mpi")]
pub fn mpi_library() -> Option<String> {
    Some(mpi::library())
}

/// The MPI library of this build, as it calls itself; `None` without the `mpi` backend.
#[cfg(not(feature = "mpi"))]
pub fn mpi_library() -> Option<String> {
    None
}

impl CommBackend {
    /// The topology of small messages, on `tcp`; `None` on backends that have no choice.
    pub fn topology(&self) -> Option<String> {
        match self {
            #[cfg(feature = "tcp")]
            Self::Tcp(backend) => Some(backend.topology()),
            _ => None,
        }
    }
}

/// The failure detector that `shm` has on this machine; `None` without the `shm` backend.
#[cfg(feature = "shm")]
pub fn shm_detector() -> Option<Detector> {
    Some(shm::detector())
}

/// The failure detector that `shm` has on this machine; `None` without the `shm` backend.
#[cfg(not(feature = "shm"))]
pub fn shm_detector() -> Option<Detector> {
    None
}

/// The fuzz targets of the backends in this build.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_targets() -> Vec<crate::fuzzing::Target> {
    let backends: Vec<&[crate::fuzzing::Target]> = vec![
        #[cfg(feature = "shm")]
        shm::fuzzing::TARGETS,
        #[cfg(feature = "tcp")]
        tcp::fuzzing::TARGETS,
    ];
    backends.concat()
}

/// Most ranks of a job on `shm` or `tcp`, and of one launch; MPI has limits of its own.
pub const MAX_RANKS: usize = 256;

use crate::communicator::{Communicator, ReduceOp};
use crate::data::{CommData, Reducible};
use crate::detector::Detector;
use crate::error::{BackendError, CommError};
use crate::error_kind::ErrorKind;
use crate::region::{SharedMemoryProvider, SharedRegion};
use crate::select::BackendKind;
use crate::transport::CallLock;

/// From one row per backend: the enum over the backends, the enum over their regions, the list of
/// names, and the one `match` that passes calls on. A row is
/// `Variant(Backend, Region<T>) = "name", pattern of its BackendKind => how to start it, #[cfg(…)];`.
macro_rules! backends {
    ($(
        $variant:ident($backend:ty, $region:ty) = $name:literal,
        $kind:pat => $start:expr
        $(, #[$condition:meta])?;
    )*) => {
        /// A communicator of whichever backend was selected. A call costs one `match`.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum CommBackend {
            $(
                #[doc = concat!("The `", $name, "` backend.")]
                $(#[$condition])?
                $variant($backend),
            )*
        }

        /// A region of whichever backend was selected.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum CommRegion<T: CommData> {
            $(
                #[doc = concat!("A region of the `", $name, "` backend.")]
                $(#[$condition])?
                $variant($region),
            )*
        }

        /// The names of all backends of this version, built or not.
        pub(crate) const KNOWN: &[&str] = &[$($name,)*];

        /// The names of the backends in this build.
        pub(crate) fn available() -> Vec<&'static str> {
            vec![$($(#[$condition])? $name,)*]
        }

        /// Starts the backend that `kind` stands for; `None` if it is not in this build.
        pub(crate) fn start(kind: BackendKind) -> Option<Result<CommBackend, BackendError>> {
            match kind {
                $($(#[$condition])? $kind => Some($start.map(CommBackend::$variant)),)*
                _ => None,
            }
        }

        impl CommBackend {
            /// The backend's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[$condition])? Self::$variant(_) => $name,)*
                }
            }

            /// The call lock of the communicator; `None` where there is nothing to protect.
            pub(crate) fn call_lock(&self) -> Option<&CallLock> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => crate::transport::Transport::call_lock(backend),)*
                }
            }
        }

        impl SharedMemoryProvider for CommBackend {
            type Region<T: CommData> = CommRegion<T>;
            type Local = Self;

            fn create_shared_region<T: CommData>(
                &self,
                count: usize,
            ) -> Result<CommRegion<T>, CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => {
                        backend.create_shared_region(count).map(CommRegion::$variant)
                    })*
                }
            }

            fn create_partitioned_region<T: CommData>(
                &self,
                counts: &[usize],
            ) -> Result<CommRegion<T>, CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => {
                        backend.create_partitioned_region(counts).map(CommRegion::$variant)
                    })*
                }
            }

            fn split_local(&self) -> Result<Self, CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => {
                        backend.split_local().map(Into::into)
                    })*
                }
            }

            fn is_leader(&self) -> bool {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.is_leader(),)*
                }
            }
        }

        impl Communicator for CommBackend {
            #[inline]
            fn allgatherv<T: CommData>(
                &self,
                send: &[T],
                recv: &mut [T],
                counts: &[usize],
                displs: &[usize],
            ) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.allgatherv(send, recv, counts, displs),)*
                }
            }

            #[inline]
            fn gatherv<T: CommData>(
                &self,
                send: &[T],
                recv: &mut [T],
                counts: &[usize],
                displs: &[usize],
                root: usize,
            ) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.gatherv(send, recv, counts, displs, root),)*
                }
            }

            #[inline]
            fn allreduce<T: Reducible>(
                &self,
                send: &[T],
                recv: &mut [T],
                op: ReduceOp,
            ) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.allreduce(send, recv, op),)*
                }
            }

            #[inline]
            fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.broadcast(buf, root),)*
                }
            }

            #[inline]
            fn barrier(&self) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => backend.barrier(),)*
                }
            }

            fn abort(&self, kind: ErrorKind, reason: &str) {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => Communicator::abort(backend, kind, reason),)*
                }
            }

            #[inline]
            fn rank(&self) -> usize {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => Communicator::rank(backend),)*
                }
            }

            #[inline]
            fn size(&self) -> usize {
                match self {
                    $($(#[$condition])? Self::$variant(backend) => Communicator::size(backend),)*
                }
            }
        }

        impl<T: CommData> SharedRegion<T> for CommRegion<T> {
            #[inline]
            fn as_slice(&self) -> &[T] {
                match self {
                    $($(#[$condition])? Self::$variant(region) => region.as_slice(),)*
                }
            }

            #[inline]
            fn as_mut_slice(&mut self) -> &mut [T] {
                match self {
                    $($(#[$condition])? Self::$variant(region) => region.as_mut_slice(),)*
                }
            }

            fn fence(&mut self) -> Result<(), CommError> {
                match self {
                    $($(#[$condition])? Self::$variant(region) => region.fence(),)*
                }
            }
        }

        $(
            $(#[$condition])?
            impl From<$backend> for CommBackend {
                fn from(backend: $backend) -> Self {
                    Self::$variant(backend)
                }
            }
        )*
    };
}

backends! {
    Local(LocalBackend, HeapRegion<T, LocalBackend>) = "local",
        BackendKind::Local => Ok(LocalBackend);
    Shm(shm::ShmBackend, shm::ShmRegion<T>) = "shm",
        BackendKind::Shm(config) => shm::ShmBackend::connect(&config),
        #[cfg(feature = "shm")];
    Tcp(tcp::TcpBackend, tcp::TcpRegion<T>) = "tcp",
        BackendKind::Tcp(config) => tcp::TcpBackend::connect(&config),
        #[cfg(feature = "tcp")];
    Mpi(mpi::FerrompiBackend, mpi::FerrompiRegion<T>) = "mpi",
        BackendKind::Mpi => mpi::FerrompiBackend::connect(),
        #[cfg(feature = "mpi")];
}
