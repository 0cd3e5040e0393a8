#![expect(
    unsafe_code,
    reason = "calls code compiled for AVX2 on processors that report AVX2"
)]
//! Loops compiled for the vector instructions of the processor they run on.
//!
//! [`vectorized`] is the one function. Element-wise work gives the same bits with either set of
//! instructions: AVX2 without fused multiply-add, as the compiler never contracts `a * b + c`.
//!
//! ```
//! let (a, b) = (vec![1.5; 1000], vec![2.0; 1000]);
//! let mut sum = vec![0.0; 1000];
//! cobre_simd::vectorized(
//!     #[inline(always)]
//!     || {
//!         for (sum, (a, b)) in sum.iter_mut().zip(a.iter().zip(&b)) {
//!             *sum = a + b;
//!         }
//!     },
//! );
//! assert_eq!(sum, vec![3.5; 1000]);
//! ```

/// Runs `work`, compiled for AVX2 where the processor has it, else for the baseline of the target.
/// `work` and all it calls must be `#[inline(always)]` to profit.
#[inline]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
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
