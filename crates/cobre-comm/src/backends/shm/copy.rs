#![expect(
    unsafe_code,
    reason = "copies between private memory and memory other processes map"
)]
//! Copies in and out of shared memory, between areas that [`SharedBytes`] and the caller's slice
//! prove to be there. Whoever streams calls [`StoreMode::settle`] when it is done.

use super::segment::SharedBytes;
use crate::copy::{StoreMode, raw};

/// The size of the blocks that are copied to two places at a time.
const PIECE: usize = 16 * 1024;

/// Copies shared bytes into `into`, which is as long.
#[inline]
pub(super) fn read(from: SharedBytes<'_>, into: &mut [u8], store: StoreMode) {
    assert_eq!(from.len(), into.len());
    // SAFETY: both areas are `into.len()` bytes long; one is private and borrowed exclusively, so
    // they do not overlap. The writer of the shared area has published it and leaves it alone.
    unsafe { raw(into.as_mut_ptr(), from.as_ptr(), into.len(), store) }
}

/// Copies `from` into shared bytes, which are as long.
#[inline]
pub(super) fn write(from: &[u8], into: SharedBytes<'_>) {
    assert_eq!(from.len(), into.len());
    // SAFETY: as in `read`; the shared area is this rank's own to write until it publishes it.
    unsafe { raw(into.as_ptr(), from.as_ptr(), from.len(), StoreMode::Cached) }
}

/// Copies `from` into shared bytes and into `own` in one pass; all three are as long.
pub(super) fn write_both(from: &[u8], into: SharedBytes<'_>, own: &mut [u8], store: StoreMode) {
    assert_eq!(from.len(), into.len());
    assert_eq!(from.len(), own.len());
    // In pieces that stay in the first-level cache, the second read of `from` is free.
    let mut at = 0;
    while at < from.len() {
        let end = (at + PIECE).min(from.len());
        write(&from[at..end], into.part(at..end));
        let (to, from) = (own[at..end].as_mut_ptr(), from[at..end].as_ptr());
        // SAFETY: `own[at..end]` and `from[at..end]` are in bounds and, one being borrowed
        // exclusively, do not overlap.
        unsafe { raw(to, from, end - at, store) };
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::Mapping;
    use super::*;

    #[test]
    fn every_length_and_alignment_is_copied_exactly() {
        let mapping = Mapping::anonymous(4096);
        let source: Vec<u8> = (0..2000).map(|i| (i * 7 + 3) as u8).collect();
        for len in (0..300).chain([511, 512, 513, 1024, 1999]) {
            for offset in [0, 1, 7, 8, 31, 33] {
                let shared = mapping.bytes(offset..offset + len);
                write(&source[..len], shared);
                for store in [StoreMode::Cached, StoreMode::Streaming] {
                    for shift in [0, 1, 5] {
                        let mut back = vec![0xaa; len + shift + 1];
                        read(shared, &mut back[shift..shift + len], store);
                        assert_eq!(back[shift..shift + len], source[..len]);
                        assert_eq!(back[shift + len], 0xaa);
                    }
                    let mut own = vec![0; len];
                    write_both(&source[..len], shared, &mut own, store);
                    assert_eq!(own, source[..len]);
                }
            }
        }
    }
}
