//! Binding of ranks to processors.

/// The processors that ranks may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bind {
    /// Wherever the launcher may.
    #[default]
    None,
    /// Rank r on the (r mod n)-th of the n processors that the launcher may use.
    Core,
}

impl Bind {
    /// The one processor of `rank` out of those in `allowed`, or `None` for all of them.
    pub(crate) fn processor(self, rank: usize, allowed: &[usize]) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Core => allowed.get(rank.checked_rem(allowed.len())?).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_beyond_the_processors_start_again_at_the_first() {
        let bound: Vec<_> = (0..4)
            .map(|rank| Bind::Core.processor(rank, &[2, 5, 7]))
            .collect();
        assert_eq!(bound, [Some(2), Some(5), Some(7), Some(2)]);
    }
}
