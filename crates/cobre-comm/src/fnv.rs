//! The hash FNV-1a.

/// The usual first value.
pub(crate) const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of `bytes`, from a first value.
pub(crate) fn fnv_1a(basis: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
