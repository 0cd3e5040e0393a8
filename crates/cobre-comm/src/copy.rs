#![expect(
    unsafe_code,
    reason = "vector loads and stores, also to memory other processes map"
)]
//! Copies by explicit vectors. The library's `memcpy` is up to fifteen times slower where source
//! and destination lie at the same place in their pages, and three to eight times on memory that
//! another core has just written.

/// Cached or streaming stores: streaming bypasses the cache, which pays when the destination is larger than the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreMode {
    Cached,
    Streaming,
}

impl StoreMode {
    /// The choice that pays for a result of `bytes` that is written once.
    #[inline]
    pub(crate) fn of(bytes: usize) -> Self {
        const LARGER_THAN_CACHE: usize = 16_000_000;
        if bytes < LARGER_THAN_CACHE {
            Self::Cached
        } else {
            Self::Streaming
        }
    }

    /// Orders streaming stores before whatever this thread does next, such as telling another
    /// thread; ordinary stores need no help.
    #[inline]
    pub(crate) fn settle(self) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Streaming {
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}

/// Up to this number of bytes, copies go word by word.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 64;

/// Copies `from` into `into`, which is as long.
#[inline]
pub(crate) fn copy(from: &[u8], into: &mut [u8], store: StoreMode) {
    assert_eq!(from.len(), into.len());
    let len = from.len();
    // SAFETY: both are `len` bytes long and, one being borrowed exclusively, do not overlap.
    unsafe { raw(into.as_mut_ptr(), from.as_ptr(), len, store) };
    store.settle();
}

/// Copies `len` bytes; [`StoreMode::settle`] follows the last of several.
///
/// # Safety
/// `to` is valid for writing and `from` for reading `len` bytes, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn raw(to: *mut u8, from: *const u8, len: usize, store: StoreMode) {
    if len <= FEW {
        // SAFETY: this function's own condition.
        unsafe { x86::few(to, from, len) }
    } else if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; the rest is this function's own condition.
        unsafe { x86::copy_avx2(to, from, len, store) }
    } else {
        // SAFETY: this function's own condition.
        unsafe { x86::copy_sse2(to, from, len, store) }
    }
}

/// Copies `len` bytes; [`StoreMode::settle`] follows the last of several.
///
/// # Safety
/// `to` is valid for writing and `from` for reading `len` bytes, and they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) unsafe fn raw(to: *mut u8, from: *const u8, len: usize, _: StoreMode) {
    // SAFETY: this function's own condition.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    clippy::cast_ptr_alignment,
    reason = "four loads and stores are one step; unaligned ones need no alignment"
)]
mod x86 {
    use super::StoreMode;
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128, _mm256_loadu_si256,
        _mm256_storeu_si256, _mm256_stream_si256,
    };

    /// One copy loop for a vector type: a head up to alignment for streaming, four vectors a
    /// step, single vectors, a tail of bytes.
    macro_rules! copy_loop {
        ($to:ident, $from:ident, $len:ident, $store:ident, $vector:ty, $load:ident, $put:ident, $stream:ident) => {{
            const WIDTH: usize = size_of::<$vector>();
            let mut at = 0;
            if $store == StoreMode::Streaming {
                at = $to.align_offset(WIDTH).min($len);
                // SAFETY: `at` is at most `len`.
                unsafe { few($to, $from, at) };
                while at + 4 * WIDTH <= $len {
                    // SAFETY: four vectors from `at` end within `len`; `to + at` is aligned.
                    unsafe {
                        let (to, from) = ($to.add(at).cast::<$vector>(), $from.add(at).cast());
                        let (a, b) = ($load(from), $load(from.add(1)));
                        let (c, d) = ($load(from.add(2)), $load(from.add(3)));
                        $stream(to, a);
                        $stream(to.add(1), b);
                        $stream(to.add(2), c);
                        $stream(to.add(3), d);
                    }
                    at += 4 * WIDTH;
                }
            }
            while at + 4 * WIDTH <= $len {
                // SAFETY: four vectors from `at` end within `len`.
                unsafe {
                    let (to, from) = ($to.add(at).cast::<$vector>(), $from.add(at).cast());
                    let (a, b) = ($load(from), $load(from.add(1)));
                    let (c, d) = ($load(from.add(2)), $load(from.add(3)));
                    $put(to, a);
                    $put(to.add(1), b);
                    $put(to.add(2), c);
                    $put(to.add(3), d);
                }
                at += 4 * WIDTH;
            }
            while at + WIDTH <= $len {
                // SAFETY: one vector from `at` ends within `len`.
                unsafe { $put($to.add(at).cast::<$vector>(), $load($from.add(at).cast())) };
                at += WIDTH;
            }
            // SAFETY: what is left ends at `len`.
            unsafe { few($to.add(at), $from.add(at), $len - at) };
        }};
    }

    /// # Safety
    /// As for [`super::copy`], on a processor with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_avx2(to: *mut u8, from: *const u8, len: usize, store: StoreMode) {
        copy_loop!(
            to,
            from,
            len,
            store,
            __m256i,
            _mm256_loadu_si256,
            _mm256_storeu_si256,
            _mm256_stream_si256
        );
    }

    /// # Safety
    /// As for [`super::copy`].
    #[target_feature(enable = "sse2")]
    pub(super) unsafe fn copy_sse2(to: *mut u8, from: *const u8, len: usize, store: StoreMode) {
        copy_loop!(
            to,
            from,
            len,
            store,
            __m128i,
            _mm_loadu_si128,
            _mm_storeu_si128,
            _mm_stream_si128
        );
    }

    /// Words, then bytes: in line, for what is hardly worth a call.
    ///
    /// # Safety
    /// As for [`super::copy`].
    #[inline]
    pub(super) unsafe fn few(to: *mut u8, from: *const u8, len: usize) {
        let mut at = 0;
        while at + 8 <= len {
            // SAFETY: eight bytes from `at` end within `len`.
            unsafe {
                let word = from.add(at).cast::<u64>().read_unaligned();
                to.add(at).cast::<u64>().write_unaligned(word);
            }
            at += 8;
        }
        while at < len {
            // SAFETY: `at` is below `len`.
            unsafe { to.add(at).write(from.add(at).read()) };
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_is_copied_exactly() {
        let source: Vec<u8> = (0..2100).map(|i| (i * 7 + 3) as u8).collect();
        for len in (0..300).chain([511, 512, 513, 1024, 1999]) {
            for (skew, shift) in [(0, 0), (1, 0), (0, 1), (7, 5), (31, 33)] {
                for store in [StoreMode::Cached, StoreMode::Streaming] {
                    let mut into = vec![0xaa; shift + len + 1];
                    let from = &source[skew..skew + len];
                    copy(from, &mut into[shift..shift + len], store);
                    assert_eq!(&into[shift..shift + len], from);
                    assert!(into[..shift].iter().all(|&byte| byte == 0xaa));
                    assert_eq!(into[shift + len], 0xaa);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn processors_without_wide_vectors_copy_the_same() {
        let source: Vec<u8> = (0..1000).map(|i| (i * 13) as u8).collect();
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 1000] {
            for store in [StoreMode::Cached, StoreMode::Streaming] {
                let mut into = vec![0; len + 1];
                // SAFETY: `into` and `source` are at least `len` bytes long and distinct.
                unsafe { x86::copy_sse2(into.as_mut_ptr(), source.as_ptr(), len, store) };
                assert_eq!(into[..len], source[..len]);
                assert_eq!(into[len], 0);
            }
        }
    }
}
