#![expect(
    unsafe_code,
    reason = "calls code compiled for a processor that was asked first"
)]
//! Runs a loop with the widest vectors this processor has. Element-wise work gives the same bits
//! either way; only its speed differs.

/// Runs `work`, compiled for wide vectors where the processor has them. `work` and all it calls
/// must be `#[inline(always)]` to profit.
#[inline]
pub fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}
