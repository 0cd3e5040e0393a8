//! Room for the launcher's descriptors: the soft limit of open files is raised while jobs need it.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LaunchError;

/// The needs of all launches of this process at the moment; the limit belongs to the whole process.
struct SharedLimit {
    launches: usize,
    reserved: u64,
    /// The limit to go back to, once it was raised.
    original: Option<Rlimit>,
}

static SHARED: Mutex<SharedLimit> = Mutex::new(SharedLimit {
    launches: 0,
    reserved: 0,
    original: None,
});

/// Raised limit of open files for one launch, until dropped.
pub(crate) struct DescriptorLimit {
    reserved: u64,
    /// The limit the ranks get: the one that was in force before any launch.
    pub(crate) original: Rlimit,
}

/// Makes room for a launch of `ranks` ranks that opens `needed` descriptors.
pub(crate) fn reserve_descriptors(
    ranks: usize,
    needed: u64,
) -> Result<DescriptorLimit, LaunchError> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let current = getrlimit(Resource::Nofile);
    let needed_in_all = open_now() + shared.reserved + needed;
    if current.current.is_some_and(|soft| soft < needed_in_all) {
        if let Some(limit) = current.maximum.filter(|hard| *hard < needed_in_all) {
            return Err(LaunchError::Descriptors {
                ranks,
                needed: needed_in_all,
                limit,
            });
        }
        let raised = Rlimit {
            current: current.maximum,
            maximum: current.maximum,
        };
        setrlimit(Resource::Nofile, raised)
            .map_err(LaunchError::system("raise the limit of open files"))?;
        shared.original.get_or_insert(current);
    }
    shared.launches += 1;
    shared.reserved += needed;
    let original = shared.original.unwrap_or(current);
    Ok(DescriptorLimit {
        reserved: needed,
        original,
    })
}

impl Drop for DescriptorLimit {
    fn drop(&mut self) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.launches -= 1;
        shared.reserved -= self.reserved;
        if shared.launches == 0
            && let Some(original) = shared.original.take()
        {
            // Lowering a soft limit needs no right and cannot fail.
            let _ = setrlimit(Resource::Nofile, original);
        }
    }
}

/// Descriptors this process has open.
fn open_now() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count() as u64)
}
