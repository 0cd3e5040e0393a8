//! The element types that the contracts move: sizes and alignments that a backend could get wrong.

use bytemuck::{Pod, Zeroable};
use cobre_comm::CommData;

use crate::random::Random;

/// Three bytes without alignment: no power of two divides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Triple(pub [u8; 3]);

/// Twelve bytes, aligned to four: as large as one and a half words.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Dozen {
    /// A whole number.
    pub id: u32,
    /// A number with a point.
    pub weight: f32,
    /// Bytes.
    pub flags: [u8; 4],
}

/// Nine bytes, of which the last eight lie at odd addresses.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct Loose {
    /// One byte.
    pub tag: u8,
    /// Eight bytes right behind it.
    pub value: u64,
}

/// Forty bytes: a record as a program would send it.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct SampleRecord {
    /// Which one.
    pub id: u64,
    /// Its values.
    pub values: [f64; 4],
}

/// `count` elements of any bit pattern, determined by `key`.
pub fn samples<T: CommData>(key: &[u64], count: usize) -> Vec<T> {
    let mut elements = vec![T::zeroed(); count];
    let mut random = Random::new(key);
    for piece in bytemuck::cast_slice_mut::<T, u8>(&mut elements).chunks_mut(8) {
        piece.copy_from_slice(&random.bits().to_le_bytes()[..piece.len()]);
    }
    elements
}

/// From one row per type: the enum over the types, and the switch from a value to its type.
macro_rules! element_types {
    ($($variant:ident = $t:ty,)*) => {
        /// An element type, as a value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Element {
            $(
                #[doc = concat!("`", stringify!($t), "`")]
                $variant,
            )*
        }

        impl Element {
            /// Every element type.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Calls `visitor` with the type that this value stands for.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => visitor.visit::<$t>(),)*
                }
            }
        }
    };
}

/// A function over element types.
pub trait Visitor {
    /// Its result.
    type Output;
    /// Does it with elements of type `T`.
    fn visit<T: CommData>(self) -> Self::Output;
}

element_types! {
    U8 = u8,
    I8 = i8,
    U16 = u16,
    I32 = i32,
    F32 = f32,
    U64 = u64,
    F64 = f64,
    Usize = usize,
    U128 = u128,
    Triple = Triple,
    Dozen = Dozen,
    Loose = Loose,
    SampleRecord = SampleRecord,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_types_have_the_sizes_they_are_for() {
        assert_eq!((size_of::<Triple>(), align_of::<Triple>()), (3, 1));
        assert_eq!((size_of::<Dozen>(), align_of::<Dozen>()), (12, 4));
        assert_eq!((size_of::<Loose>(), align_of::<Loose>()), (9, 1));
    }

    #[test]
    fn samples_of_one_key_begin_alike_whatever_their_number() {
        let (few, many) = (samples::<Triple>(&[7], 5), samples::<Triple>(&[7], 50));
        assert_eq!(few, many[..5]);
        assert_ne!(few, samples::<Triple>(&[8], 5));
    }
}
