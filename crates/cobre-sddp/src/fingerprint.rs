//! Fingerprints: SHA-256 hashes of values by their bytes.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The bytes that are hashed at a time.
const BLOCK: usize = 1 << 16;

/// A SHA-256; as text it is in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of the postcard encoding of a value: every bit of floats, lengths before lists and
    /// texts, variants by number. Names of types and fields do not matter, their order does.
    pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Self {
        let hashed = postcard::to_extend(value, Hashing::default());
        let Hashing { mut hasher, block } = hashed.expect("plain data can be encoded");
        hasher.update(&block);
        hasher.into()
    }

    /// The fingerprint of bytes in parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.into()
    }
}

impl From<Sha256> for Fingerprint {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes the bytes that are appended to it.
#[derive(Default)]
struct Hashing {
    hasher: Sha256,
    block: Vec<u8>,
}

impl Extend<u8> for Hashing {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.block.extend(bytes);
        if self.block.len() >= BLOCK {
            self.hasher.update(&self.block);
            self.block.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Change, Draft, Problem, Sense, Template};

    /// Two stages with a store, a price and two openings.
    fn problem(price: f64) -> Problem {
        let mut lp = Template::new();
        let before = lp.column("before", 0.0, f64::NEG_INFINITY, f64::INFINITY);
        let after = lp.column("after", 0.0, 0.0, 10.0);
        lp.state("store", before, after);
        let bought = lp.column("bought", price, 0.0, f64::INFINITY);
        let balance = lp.row(
            "balance",
            0.0,
            0.0,
            &[(after, 1.0), (before, -1.0), (bought, -1.0)],
        );
        let mut draft = Draft::new(Sense::Minimize, 0.0);
        draft.state("store", 1.0);
        let lp = draft.template(lp);
        let nodes = ["1", "2"].map(|name| draft.node(name, lp));
        draft.start(nodes[0], 1.0);
        draft.edge(nodes[0], nodes[1], 1.0);
        for (node, used) in [(nodes[0], 2.0), (nodes[1], 3.0)] {
            for used in [used, -0.0] {
                let change = Change::RowBounds {
                    row: balance,
                    lower: -used,
                    upper: -used,
                };
                draft.opening(node, 0.5, vec![change]);
            }
        }
        draft.build().expect("it is a problem")
    }

    /// A change of this value makes every checkpoint one of another problem: it goes with a new format of
    /// checkpoints.
    #[test]
    fn the_identity_of_a_problem_does_not_change_with_the_code() {
        let found = Fingerprint::of(&problem(2.0)).to_string();
        assert_eq!(
            found,
            "58a675cd77c13d8eec08233830d86dfc0df8b50c2608d54f698e98946fd122b4"
        );
    }

    #[test]
    fn one_bit_of_a_price_makes_another_problem() {
        let next = f64::from_bits(2.0_f64.to_bits() + 1);
        assert_ne!(
            Fingerprint::of(&problem(2.0)),
            Fingerprint::of(&problem(next))
        );
        assert_ne!(Fingerprint::of(&[0.0][..]), Fingerprint::of(&[-0.0][..]));
        assert_ne!(Fingerprint::of(&["ab", "c"]), Fingerprint::of(&["a", "bc"]));
    }
}
