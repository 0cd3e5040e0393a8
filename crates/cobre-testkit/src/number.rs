//! The number types that ranks can reduce, and numbers of each that are hard to reduce well.

use std::any::TypeId;

use cobre_comm::Reducible;

use crate::element::samples;
use crate::random::Random;

/// The representation of a number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// Two's complement of this many bits.
    Signed(u32),
    /// Plain binary of this many bits.
    Unsigned(u32),
    /// IEEE 754 single precision.
    Single,
    /// IEEE 754 double precision.
    Double,
}

/// From one row per type: the enum over the types, its kind, and the switch to the type.
macro_rules! number_types {
    ($($variant:ident = $t:ty, $kind:expr;)*) => {
        /// A number type, as a value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Number {
            $(
                #[doc = concat!("`", stringify!($t), "`")]
                $variant,
            )*
        }

        impl Number {
            /// Every number type.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Calls `visitor` with the type that this value stands for.
            pub fn visit<V: NumberVisitor>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => visitor.visit::<$t>(),)*
                }
            }
        }

        impl NumberKind {
            /// The kind of `T`.
            pub fn of<T: Reducible>() -> Self {
                let id = TypeId::of::<T>();
                $(if id == TypeId::of::<$t>() {
                    return $kind;
                })*
                panic!("{} is a number type that the kit does not know", std::any::type_name::<T>());
            }
        }
    };
}

/// A function over number types.
pub trait NumberVisitor {
    /// Its result.
    type Output;
    /// Does it with numbers of type `T`.
    fn visit<T: Reducible>(self) -> Self::Output;
}

number_types! {
    I8 = i8, NumberKind::Signed(8);
    I16 = i16, NumberKind::Signed(16);
    I32 = i32, NumberKind::Signed(32);
    I64 = i64, NumberKind::Signed(64);
    Isize = isize, NumberKind::Signed(isize::BITS);
    U8 = u8, NumberKind::Unsigned(8);
    U16 = u16, NumberKind::Unsigned(16);
    U32 = u32, NumberKind::Unsigned(32);
    U64 = u64, NumberKind::Unsigned(64);
    Usize = usize, NumberKind::Unsigned(usize::BITS);
    F32 = f32, NumberKind::Single;
    F64 = f64, NumberKind::Double;
}

impl NumberKind {
    /// Bits of a number.
    pub fn width(self) -> u32 {
        match self {
            Self::Signed(width) | Self::Unsigned(width) => width,
            Self::Single => 32,
            Self::Double => 64,
        }
    }

    /// The bit patterns whose combinations the rules single out.
    pub fn specials(self) -> Vec<u64> {
        let ones = u64::MAX >> (64 - self.width());
        let sign = 1u64 << (self.width() - 1);
        match self {
            Self::Signed(_) | Self::Unsigned(_) => vec![0, 1, 2, ones, ones - 1, sign, sign - 1],
            Self::Single => vec![
                0,
                sign,
                1f32.to_bits().into(),
                (-1f32).to_bits().into(),
                f32::MAX.to_bits().into(),
                f32::MIN_POSITIVE.to_bits().into(),
                1,
                f32::INFINITY.to_bits().into(),
                f32::NEG_INFINITY.to_bits().into(),
                f32::NAN.to_bits().into(),
                0xffc0_beef,
                0x7f80_0001,
            ],
            Self::Double => vec![
                0,
                sign,
                1f64.to_bits(),
                (-1f64).to_bits(),
                f64::MAX.to_bits(),
                f64::MIN_POSITIVE.to_bits(),
                1,
                f64::INFINITY.to_bits(),
                f64::NEG_INFINITY.to_bits(),
                f64::NAN.to_bits(),
                0xfff8_0000_dead_beef,
                0x7ff0_0000_0000_0001,
            ],
        }
    }

    /// Of any bits, a number near one, if it has a point; the sum of such numbers depends on their
    /// order.
    fn near_one(self, bits: u64) -> u64 {
        match self {
            Self::Signed(_) | Self::Unsigned(_) => bits,
            Self::Single => {
                let exponent = 127 - 4 + (bits >> 23) % 9;
                (bits & 0x807f_ffff) | exponent << 23
            }
            Self::Double => {
                let exponent = 1023 - 8 + (bits >> 52) % 17;
                (bits & 0x800f_ffff_ffff_ffff) | exponent << 52
            }
        }
    }
}

/// The bits of `number`.
pub fn to_bits<T: Reducible>(number: T) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&number));
    // On either byte order the bytes of a narrower number fill one end of the word.
    if cfg!(target_endian = "little") {
        u64::from_le_bytes(bytes)
    } else {
        u64::from_be_bytes(bytes) >> (64 - 8 * size_of::<T>())
    }
}

/// The number with these bits, of which `T` keeps the low ones.
pub fn from_bits<T: Reducible>(bits: u64) -> T {
    let bytes = if cfg!(target_endian = "little") {
        bits.to_le_bytes()
    } else {
        (bits << (64 - 8 * size_of::<T>())).to_be_bytes()
    };
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}

/// `count` numbers determined by `key`: mostly near one, with any bits and special ones in between.
pub fn numbers<T: Reducible>(key: &[u64], count: usize) -> Vec<T> {
    let kind = NumberKind::of::<T>();
    let specials = kind.specials();
    let mut random = Random::new(&[key, &[count as u64]].concat());
    let mut numbers = samples::<T>(key, count);
    for eight in numbers.chunks_mut(8) {
        for (number, choice) in eight.iter_mut().zip(random.bits().to_le_bytes()) {
            match choice {
                0..8 => *number = from_bits(*random.pick(&specials)),
                8..32 => {}
                _ => *number = from_bits(kind.near_one(to_bits(*number))),
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_survive_the_way_there_and_back() {
        assert_eq!(to_bits(-2i16), 0xfffe);
        assert_eq!(from_bits::<i16>(0xfffe), -2);
        assert_eq!(from_bits::<f64>(to_bits(-0.0f64)).to_bits(), 1 << 63);
    }

    #[test]
    fn drawn_floats_are_mostly_near_one() {
        let near = |x: &&f64| (0.001..1000.0).contains(&x.abs());
        let drawn = numbers::<f64>(&[1], 1000);
        assert!(drawn.iter().filter(near).count() > 700);
        assert!(drawn.iter().any(|x| x.is_nan()));
    }
}
