//! Sizes around which backends are likely to change their way: a cache line less its header, a
//! page, rings and slots of common sizes, and the step to large messages.

/// The borders, in bytes.
const BYTES: [usize; 6] = [48, 4 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Lengths one below, at and one above each border, in elements of `width` bytes.
pub(super) fn around(width: usize) -> Vec<usize> {
    BYTES
        .into_iter()
        .flat_map(|bytes| [bytes / width - 1, bytes / width, bytes / width + 1])
        .collect()
}
