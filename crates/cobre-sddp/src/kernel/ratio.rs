//! The ratio test: which variable enters the basis, and which go to their other bound.

/// Variables whose reduced cost shrinks as the leaving one moves to its bound.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    ids: Vec<u32>,
    /// How fast the reduced cost shrinks.
    sizes: Vec<f64>,
    /// How far the other bound is.
    ranges: Vec<f64>,
    /// The step at which the reduced cost is zero, and at which it is beyond by the tolerance.
    steps: Vec<f64>,
    relaxed: Vec<f64>,
}

impl Candidates {
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        for list in [
            &mut self.sizes,
            &mut self.ranges,
            &mut self.steps,
            &mut self.relaxed,
        ] {
            list.clear();
        }
    }

    /// Adds a variable with this reduced cost, negative if it is beyond zero already.
    #[inline]
    pub(super) fn push(&mut self, id: usize, reduced: f64, size: f64, range: f64, tolerance: f64) {
        let reduced = reduced.max(0.0);
        let factor = 1.0 / size;
        self.ids.push(id as u32);
        self.sizes.push(size);
        self.ranges.push(range);
        self.steps.push(reduced * factor);
        self.relaxed.push((reduced + tolerance) * factor);
    }

    /// The variable that enters. Those before it, in the order of steps, go to their other bound
    /// as long as the leaving variable stays `infeasible`. Among steps that the tolerance does not
    /// tell apart, the largest size wins, and then the first.
    #[inline]
    pub(super) fn choose(&mut self, mut infeasible: f64, flips: &mut Vec<u32>) -> Option<usize> {
        flips.clear();
        while !self.ids.is_empty() {
            let limit =
                self.relaxed.iter().fold(
                    f64::INFINITY,
                    |least, &step| {
                        if step < least { step } else { least }
                    },
                );
            let (mut best, mut size) = (0, 0.0);
            for (at, (&step, &other)) in self.steps.iter().zip(&self.sizes).enumerate() {
                if step <= limit && other > size {
                    (best, size) = (at, other);
                }
            }
            let id = self.ids[best];
            infeasible -= size * self.ranges[best];
            if infeasible < 0.0 || self.ids.len() == 1 {
                return Some(id as usize);
            }
            flips.push(id);
            self.ids.remove(best);
            for list in [
                &mut self.sizes,
                &mut self.ranges,
                &mut self.steps,
                &mut self.relaxed,
            ] {
                list.remove(best);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(list: &[(f64, f64, f64)], infeasible: f64) -> (Option<usize>, Vec<u32>) {
        let mut candidates = Candidates::default();
        for (id, &(reduced, size, range)) in list.iter().enumerate() {
            candidates.push(id, reduced, size, range, 1e-9);
        }
        let mut flips = Vec::new();
        (candidates.choose(infeasible, &mut flips), flips)
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
