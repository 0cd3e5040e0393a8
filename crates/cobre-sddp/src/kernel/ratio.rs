//! The dual ratio test with bound flips.

/// Variables whose reduced cost shrinks as the leaving variable moves to its bound.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    ids: Vec<u32>,
    /// The rate at which the reduced cost shrinks.
    sizes: Vec<f64>,
    /// The distance between the bounds.
    ranges: Vec<f64>,
    /// The step at which the reduced cost is zero, and at which it is beyond zero by the tolerance.
    steps: Vec<f64>,
    relaxed: Vec<f64>,
    count: usize,
}

/// A candidate for entering the basis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) id: usize,
    /// The reduced cost, negative if it is beyond zero already.
    pub(super) reduced: f64,
    pub(super) size: f64,
    pub(super) range: f64,
}

/// Steps per vector.
const LANES: usize = 4;

impl Candidates {
    /// Makes room for this many candidates.
    pub(super) fn fit(&mut self, most: usize) {
        let most = most.next_multiple_of(LANES);
        self.ids.resize(most, 0);
        for list in [
            &mut self.sizes,
            &mut self.ranges,
            &mut self.steps,
            &mut self.relaxed,
        ] {
            list.resize(most, 0.0);
        }
        self.count = 0;
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a candidate.
    #[inline]
    pub(super) fn push(&mut self, candidate: Candidate, tolerance: f64) {
        self.put(self.count, candidate, tolerance);
        self.count += 1;
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is called for every candidate")]
    fn put(&mut self, at: usize, candidate: Candidate, tolerance: f64) {
        let Candidate {
            id,
            reduced,
            size,
            range,
        } = candidate;
        let reduced = if reduced > 0.0 { reduced } else { 0.0 };
        let factor = 1.0 / size;
        self.ids[at] = id as u32;
        self.sizes[at] = size;
        self.ranges[at] = range;
        self.steps[at] = reduced * factor;
        self.relaxed[at] = (reduced + tolerance) * factor;
    }

    /// Chooses the entering variable. Those before it, in the order of steps, flip to their other
    /// bound as long as the leaving variable stays `infeasible`. Among steps within the tolerance
    /// the largest pivot wins, then the first. `after` gives the candidate that takes the place of
    /// one that is passed.
    #[inline]
    pub(super) fn choose(
        &mut self,
        mut infeasible: f64,
        tolerance: f64,
        flips: &mut Vec<u32>,
        after: impl Fn(usize) -> Option<Candidate>,
    ) -> Option<usize> {
        flips.clear();
        let mut left = self.count;
        let end = left.next_multiple_of(LANES);
        self.steps[left..end].fill(f64::INFINITY);
        self.relaxed[left..end].fill(f64::INFINITY);
        while left > 0 {
            let limit = least(&self.relaxed[..end]);
            let (mut best, mut size) = (0, 0.0);
            let steps = self.steps[..end].chunks_exact(LANES);
            for (group, (steps, sizes)) in steps.zip(self.sizes.chunks_exact(LANES)).enumerate() {
                let within = |lane: usize| steps[lane] <= limit;
                if within(0) | within(1) | within(2) | within(3) {
                    for (lane, &other) in sizes.iter().enumerate() {
                        if within(lane) && other > size {
                            (best, size) = (group * LANES + lane, other);
                        }
                    }
                }
            }
            let id = self.ids[best];
            infeasible -= size * self.ranges[best];
            if infeasible < 0.0 {
                return Some(id as usize);
            }
            let next = after(id as usize);
            if left == 1 && next.is_none() {
                return Some(id as usize);
            }
            flips.push(id);
            if let Some(next) = next {
                self.put(best, next, tolerance);
            } else {
                (self.steps[best], self.relaxed[best]) = (f64::INFINITY, f64::INFINITY);
                left -= 1;
            }
        }
        None
    }
}

/// The least of these numbers, a multiple of [`LANES`] of them.
#[inline]
fn least(numbers: &[f64]) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    for group in numbers.chunks_exact(LANES) {
        for lane in 0..LANES {
            if group[lane] < least[lane] {
                least[lane] = group[lane];
            }
        }
    }
    least.into_iter().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(list: &[(f64, f64, f64)], infeasible: f64) -> (Option<usize>, Vec<u32>) {
        let mut candidates = Candidates::default();
        candidates.fit(list.len());
        for (id, &(reduced, size, range)) in list.iter().enumerate() {
            let candidate = Candidate {
                id,
                reduced,
                size,
                range,
            };
            candidates.push(candidate, 1e-9);
        }
        let mut flips = Vec::new();
        let chosen = candidates.choose(infeasible, 1e-9, &mut flips, |_| None);
        (chosen, flips)
    }

    #[test]
    fn the_shortest_step_enters() {
        let list = [(3.0, 1.0, f64::INFINITY), (1.0, 1.0, f64::INFINITY)];
        assert_eq!(choose(&list, 5.0), (Some(1), vec![]));
    }

    #[test]
    fn a_bound_that_is_passed_is_changed() {
        let list = [(3.0, 1.0, f64::INFINITY), (1.0, 1.0, 2.0)];
        assert_eq!(choose(&list, 5.0), (Some(0), vec![1]));
        assert_eq!(choose(&list, 1.0), (Some(1), vec![]));
    }

    #[test]
    fn among_ties_the_largest_enters() {
        let list = [(0.0, 0.1, f64::INFINITY), (1e-10, 2.0, f64::INFINITY)];
        assert_eq!(choose(&list, 1.0), (Some(1), vec![]));
    }
}
