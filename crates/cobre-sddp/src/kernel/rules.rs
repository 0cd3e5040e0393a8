//! What is fixed when the kernel is compiled.

/// How large a node the kernel takes, and the places at which tests break it on purpose.
pub trait Rules: Send + 'static {
    /// The name by which the kernel with these rules is asked for.
    const NAME: &'static str;
    /// The most equality rows of a node: the least size of a basis.
    const MOST_EQUALITIES: usize;
    /// The most rows of a node, which a basis has room for.
    const MOST_ROWS: usize = 2000;
    /// What a reduced cost at an upper bound is multiplied by in the ratio test.
    const AT_UPPER: f64 = -1.0;
    /// Whether columns that the ratio test passes go to their other bound.
    const FLIPS: bool = true;
    /// Whether cuts that are violated come in.
    const CUTS: bool = true;
}

/// Nodes on which the kernel is the faster solver.
#[derive(Debug)]
pub struct Auto;

impl Rules for Auto {
    const NAME: &'static str = "auto";
    const MOST_EQUALITIES: usize = 150;
    const MOST_ROWS: usize = 600;
}

/// Nodes of any size at which a dense inverse is sound.
#[derive(Debug)]
pub struct Always;

impl Rules for Always {
    const NAME: &'static str = "kernel";
    const MOST_EQUALITIES: usize = 400;
}
