//! The memory of windows, and what the system calls when the process ends.

#![expect(
    unsafe_code,
    reason = "windows are memory that other processes write; a handler is registered in C"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytemuck::Pod;
use ferrompi::{Communicator as Comm, Error, Win};

/// A window whose memory is the leader's, seen by all ranks of a node. Freed collectively.
pub(super) struct Window {
    /// Held to be freed; its views are never used again.
    _handle: Win<u8>,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: MPI is started with full support of threads, so that any thread may free the window; this
// process reaches the memory by `Memory` alone, which lends it by the rules of borrowing; and the
// handle itself is used only to be freed.
unsafe impl Send for Window {}
// SAFETY: as above; nothing can be done to the window through a shared reference.
unsafe impl Sync for Window {}

impl Window {
    /// Makes a window of `len` zeros, the first of which lies at a multiple of `align`, on all
    /// ranks of `node`. Collective.
    pub(super) fn allocate(node: &Comm, len: usize, align: usize) -> Result<Self, Error> {
        // Memory of MPI is aligned for its own types; every process maps it at some page.
        let own = if node.rank() == 0 { len + align } else { 0 };
        let window = Win::<u8>::allocate_shared(node, own)?;
        let base = {
            let mut view = window.remote(0)?;
            // SAFETY: no process has this window yet: creating it ends with a barrier after the
            // zeros are written, and the slice is gone before the creating call returns.
            let bytes = unsafe { view.as_mut_slice() };
            NonNull::from(bytes).cast::<u8>()
        };
        let offset = base.align_offset(align);
        let fits = Self::same_everywhere(node, offset)? && offset <= align;
        if !fits {
            return Err(Error::NotSupported(format!(
                "this MPI aligns windows to less than {align} bytes"
            )));
        }
        // SAFETY: at most `align` bytes further, which is how much longer the memory is than `len`.
        let base = unsafe { base.add(offset) };
        Ok(Self {
            _handle: window,
            base,
            len,
        })
    }

    /// True if the offset is the leader's, so that all ranks mean the same bytes.
    fn same_everywhere(node: &Comm, offset: usize) -> Result<bool, Error> {
        let mut leaders = [offset as u64];
        node.broadcast(&mut leaders, 0)?;
        let (own, mut all) = ([u64::from(leaders[0] == offset as u64)], [0]);
        node.allreduce(&own, &mut all, ferrompi::ReduceOp::Min)?;
        Ok(all == [1])
    }
}

impl Window {
    fn checked<T>(&self, offset: usize, count: usize) -> *mut T {
        let end = count
            .checked_mul(size_of::<T>())
            .and_then(|len| offset.checked_add(len));
        assert!(end.is_some_and(|end| end <= self.len), "inside the window");
        // SAFETY: inside the window, as just checked.
        let start = unsafe { self.base.as_ptr().add(offset).cast::<T>() };
        assert!(start.is_aligned());
        start
    }

    /// The word at `index`, which ranks write and read as they like.
    #[inline]
    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        let word = self.checked::<u64>(index * size_of::<u64>(), 1);
        // SAFETY: inside the window and aligned, as checked; mapped as long as the window lives;
        // and nobody touches these bytes but as atomics, as no region is made of this window.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

/// A region's hold on a window: its bytes, and not its handle.
pub(super) struct Memory(Arc<Window>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of a window", self.0.len)
    }
}

impl Memory {
    /// The one hold of this process on `window`.
    pub(super) fn new(window: Arc<Window>) -> Self {
        Self(window)
    }

    /// `count` elements at `offset`, read in place.
    ///
    /// The caller is a point of the protocol where every rank that may write these bytes has
    /// published them and writes them again only after this rank has moved on.
    #[inline]
    pub(super) fn published<T: Pod>(&self, offset: usize, count: usize) -> &[T] {
        let start = self.0.checked::<T>(offset, count);
        // SAFETY: inside the window and aligned, as checked; any bits are a `T`; no rank writes
        // them while the slice lives, by the protocol.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// `count` elements at `offset`, written in place.
    ///
    /// The caller is a point of the protocol where these bytes are this rank's alone, and the
    /// exclusive borrow of this hold keeps the process from a second slice.
    #[inline]
    pub(super) fn owned<T: Pod>(&mut self, offset: usize, count: usize) -> &mut [T] {
        let start = self.0.checked::<T>(offset, count);
        // SAFETY: as in `published`; no other rank reads or writes these bytes, by the protocol,
        // and this process has one hold on the window, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }
}

/// Orders what this process wrote before what it tells others, and what others told it before what it
/// reads: what `MPI_Win_sync` is on memory that all processors see alike. Pairs with itself in the
/// other processes, with a collective between the two.
pub(super) fn synchronise() {
    fence(Ordering::SeqCst);
}

/// Calls `handler` when the process ends by `exit` or by returning from `main`.
pub(super) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a function of this program, which is there until its end.
    let _ = unsafe { libc::atexit(handler) };
}

/// Ends the process at once, with nothing run in between.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; there is nothing to keep.
    unsafe { libc::_exit(code) }
}
