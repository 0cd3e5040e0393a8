//! Coordinates of a Sobol sequence.
//!
//! A coordinate belongs to a primitive polynomial over two elements; its first direction numbers are free but for
//! being odd. Those of the first coordinates are the usual ones, the others come from a fixed hash.

/// Digits of a coordinate.
const DIGITS: u32 = 32;
/// Direction numbers of the first polynomials, by degree.
const FIRST: [&[u32]; 7] = [
    &[1],
    &[1, 3],
    &[1, 3, 1],
    &[1, 1, 1],
    &[1, 1, 3, 3],
    &[1, 3, 5, 13],
    &[1, 1, 5, 5, 17],
];

/// A coordinate.
pub(super) struct Sobol {
    /// One for each digit of the number of a point.
    directions: [u32; DIGITS as usize],
}

impl Sobol {
    /// The coordinate of a place, from 0.
    pub(super) fn new(place: usize) -> Self {
        let mut directions = [0; DIGITS as usize];
        let Some(place) = place.checked_sub(1) else {
            for (digit, direction) in directions.iter_mut().enumerate() {
                *direction = 1 << (DIGITS as usize - 1 - digit);
            }
            return Self { directions };
        };
        let polynomial = primitive(place);
        let degree = polynomial.ilog2() as usize;
        for digit in 0..DIGITS as usize {
            directions[digit] = if digit < degree {
                let odd = FIRST.get(place).map_or_else(
                    || hashed(place, digit) >> (31 - digit.min(31)) | 1,
                    |first| first[digit],
                );
                odd << (DIGITS as usize - 1 - digit)
            } else {
                let mut next = directions[digit - degree] ^ (directions[digit - degree] >> degree);
                for back in 1..degree {
                    if polynomial >> (degree - back) & 1 == 1 {
                        next ^= directions[digit - back];
                    }
                }
                next
            };
        }
        Self { directions }
    }

    /// The coordinate of a point, as a whole number of 32 bits.
    pub(super) fn point(&self, number: usize) -> u32 {
        let digits = self.directions.iter().enumerate();
        let set = digits.filter(|(digit, _)| number >> digit & 1 == 1);
        set.fold(0, |sum, (_, direction)| sum ^ direction)
    }
}

/// The primitive polynomial of a place, as the bits of its coefficients: x + 1, x² + x + 1 and so on.
fn primitive(place: usize) -> u32 {
    let odd = (3_u32..).step_by(2);
    odd.filter(|polynomial| is_primitive(*polynomial))
        .nth(place)
        .unwrap_or(3)
}

/// True if the powers of x are all elements but zero, modulo a polynomial.
fn is_primitive(polynomial: u32) -> bool {
    let degree = polynomial.ilog2();
    let order = (1_u32 << degree) - 1;
    let power = |exponent: u32| {
        let (mut result, mut base, mut rest) = (1, 2 % modulus(polynomial), exponent);
        while rest > 0 {
            if rest & 1 == 1 {
                result = multiply(result, base, polynomial);
            }
            base = multiply(base, base, polynomial);
            rest >>= 1;
        }
        result
    };
    if degree == 1 {
        return polynomial == 3;
    }
    let factors =
        (2..=order).filter(|divisor| order.is_multiple_of(*divisor) && is_prime(*divisor));
    power(order) == 1 && factors.into_iter().all(|factor| power(order / factor) != 1)
}

/// A number above all elements.
fn modulus(polynomial: u32) -> u32 {
    1 << polynomial.ilog2()
}

fn is_prime(number: u32) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    divisors.all(|divisor| !number.is_multiple_of(divisor))
}

/// The product of two polynomials modulo a third.
fn multiply(mut one: u32, mut other: u32, polynomial: u32) -> u32 {
    let top = modulus(polynomial);
    let mut product = 0;
    while other > 0 {
        if other & 1 == 1 {
            product ^= one;
        }
        one <<= 1;
        if one & top != 0 {
            one ^= polynomial;
        }
        other >>= 1;
    }
    product
}

/// A fixed number of 32 bits for a place and digit.
fn hashed(place: usize, digit: usize) -> u32 {
    let mut value = (place as u64) << 32 | digit as u64;
    for factor in [0x9E37_79B9_7F4A_7C15_u64, 0xD6E8_FEB8_6659_FD93] {
        value = (value ^ value >> 32).wrapping_mul(factor);
    }
    (value >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_primitive() {
        let first: Vec<u32> = (0..6).map(primitive).collect();
        assert_eq!(first, [0b11, 0b111, 0b1011, 0b1101, 0b10011, 0b11001]);
        // x⁴ + x³ + x² + x + 1 is irreducible, but x⁵ = 1.
        assert!(!is_primitive(0b11111));
    }

    #[test]
    fn the_first_points_are_known() {
        let points: Vec<u32> = (0..4)
            .map(|point| Sobol::new(1).point(point) >> 30)
            .collect();
        assert_eq!(points, [0, 2, 3, 1]);
    }
}
