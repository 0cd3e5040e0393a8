//! Bytes that ranks hand to each other.

use serde::Serialize;

/// Some bytes per thing, one after the other.
#[derive(Debug, Default)]
pub struct ByteBlocks {
    /// How many bytes each thing has.
    pub lengths: Vec<usize>,
    /// The bytes of all.
    pub bytes: Vec<u8>,
}

impl ByteBlocks {
    /// Adds a thing.
    pub fn push(&mut self, thing: &impl Serialize) {
        let before = self.bytes.len();
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes =
            postcard::to_extend(thing, bytes).expect("plain data can be written to warm_start");
        self.lengths.push(self.bytes.len() - before);
    }

    /// Keeps the room for other things.
    pub fn clear(&mut self) {
        self.lengths.clear();
        self.bytes.clear();
    }

    /// The bytes of each thing, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        split(&self.lengths, &self.bytes)
    }
}

/// The bytes of each thing, in order, as far as there are any.
pub(crate) fn split<'a>(
    lengths: &'a [usize],
    mut bytes: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    lengths.iter().map_while(move |&length| {
        let (own, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(own)
    })
}
