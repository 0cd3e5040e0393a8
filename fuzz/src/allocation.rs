//! An allocator that ends the process when an input makes a reader take more memory than its size allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that any input may take, and those per byte of it.
const BASE: usize = 64 << 20;
const PER_BYTE: usize = 1000;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed).saturating_add(bytes);
    if live > LIMIT.load(Relaxed) {
        LIMIT.store(usize::MAX, Relaxed);
        // No panic: a reader may catch that.
        eprintln!(
            "{bytes} bytes more make {live}: an input of this size may not take so much memory"
        );
        std::process::abort();
    }
}

// SAFETY: memory is the system allocator's; counting changes none of it.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs a reader within the memory that the size of its input allows.
pub(crate) fn bounded(input: &[u8], read: impl FnOnce()) {
    LIMIT.store(LIVE.load(Relaxed) + BASE + PER_BYTE * input.len(), Relaxed);
    read();
    LIMIT.store(usize::MAX, Relaxed);
}
