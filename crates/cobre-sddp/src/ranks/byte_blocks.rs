//! Blocks of bytes that ranks exchange.

use serde::Serialize;

/// One block of bytes per item, stored one after the other.
#[derive(Debug, Default)]
pub(crate) struct ByteBlocks {
    /// The length of each block.
    pub(crate) lengths: Vec<u64>,
    /// The bytes of all blocks.
    pub(crate) bytes: Vec<u8>,
}

impl ByteBlocks {
    /// Adds the block of an item.
    pub(crate) fn push(&mut self, item: &impl Serialize) {
        let before = self.bytes.len();
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(item, bytes).expect("plain data can be written to memory");
        self.lengths.push((self.bytes.len() - before) as u64);
    }

    /// Removes all blocks, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.bytes.clear();
    }
}

/// The blocks of these lengths, in order, as far as there are bytes.
pub(crate) fn split<'a>(lengths: &'a [u64], mut bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    lengths.iter().map_while(move |&length| {
        let (own, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        Some(own)
    })
}
