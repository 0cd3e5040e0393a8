//! Memory of training, estimated before it begins: work units, bases and cuts, which grow with the forward passes.

use crate::error::SddpError;
use crate::problem::{Node, Problem, Template};
use crate::settings::Settings;
use crate::training::{StopRule, Stopping};

/// Memory that is worth a word whatever the machine has.
const NOTABLE: u64 = 4 << 30;
/// Memory of an iteration that any machine has.
const SMALL: u64 = 64 << 20;
/// The factor by which an estimate may be too large.
const MARGIN: u64 = 2;
/// Bytes of the work units of a pass at a node, beside solutions and bases.
const UNIT_BYTES: usize = 600;
/// Bytes of a basis without its numbers.
const BASIS_BYTES: usize = 300;
/// Rows that cuts add to a basis.
const CUTS_IN_BASIS: usize = 3;
/// Bytes of a cut beside its numbers: its places in the lists of its node and in the table of known cuts.
const CUT_BYTES: usize = 200;

/// The memory of training on all ranks together, as far as it depends on the forward passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Bytes of work units and their bases, from the first iteration on.
    pub units: u64,
    /// Bytes of the cuts that each iteration adds.
    pub per_iteration: u64,
    /// The most iterations, if a rule says so.
    iterations: Option<u64>,
    passes: u64,
}

impl MemoryEstimate {
    /// The estimate for a problem, by the sizes of its linear programs.
    pub fn of(problem: &Problem, settings: &Settings) -> Self {
        let states = problem.states.len();
        let (mut units, mut factors) = (0, 0);
        for (number, node) in problem.nodes.iter().enumerate() {
            let [of_units, of_factors] = per_pass(node, problem.template(number), states);
            units += of_units as u64;
            factors += of_factors as u64;
        }
        let passes = settings.passes.get() as u64;
        let all = |bytes: u64| bytes.saturating_mul(passes);
        // Records and tables are kept twice while the latest are not published.
        let cut = CUT_BYTES + 12 * (2 + 3 * states);
        Self {
            units: all(units).saturating_add(all(factors).min(settings.basis_memory)),
            per_iteration: all((problem.nodes.len() * cut) as u64),
            iterations: most_iterations(&settings.stopping),
            passes,
        }
    }

    /// True if any machine has it.
    pub(crate) fn is_small(self) -> bool {
        self.units.saturating_add(self.per_iteration) < SMALL
    }

    /// Refuses what `available` bytes certainly do not hold, on one of so many `hosts`; else the warning that is due.
    ///
    /// # Errors
    /// When not even the first iteration fits.
    pub(crate) fn check(self, available: u64, hosts: u64) -> Result<Option<String>, SddpError> {
        if self.iterations == Some(0) {
            return Ok(None);
        }
        let first = self.units / hosts.max(1) + self.per_iteration;
        if first / MARGIN > available {
            return Err(SddpError::OutOfMemory {
                bytes: first,
                detail: self.told(first, "", available),
            });
        }
        Ok(self.warning(available, hosts))
    }

    /// The warning about memory that `available` bytes on one of so many `hosts` may not hold, or that is much anyway.
    pub fn warning(self, available: u64, hosts: u64) -> Option<String> {
        let iterations = self.iterations.unwrap_or(1);
        let grown = self.per_iteration.saturating_mul(iterations);
        let all = (self.units / hosts.max(1)).saturating_add(grown);
        let is_much = iterations > 0 && all > NOTABLE.min(available / MARGIN);
        is_much.then(|| {
            let by = match iterations {
                1 => String::new(),
                number => format!(" by iteration {number}"),
            };
            self.told(all, &by, available)
        })
    }

    fn told(self, bytes: u64, by: &str, available: u64) -> String {
        format!(
            "training with {} forward passes takes about {} of memory{by}, and {} are available; {REMEDY}",
            self.passes,
            size(bytes),
            size(available)
        )
    }
}

/// Bytes of the work units of a pass at a node with their bases, and of what the bases have computed.
fn per_pass(node: &Node, template: &Template, states: usize) -> [usize; 2] {
    let (rows, columns) = (template.rows.len(), template.columns.len());
    let openings = node.probabilities.len();
    let numbers = openings * (1 + states) + 2 * states;
    // About half of the openings have a basis of their own, and the forward pass has one.
    let kept = 2 + openings / 2;
    let parameters = states + node.places.width();
    let basis = BASIS_BYTES + 8 * rows + columns + 8 * parameters;
    let size = rows + CUTS_IN_BASIS;
    [
        UNIT_BYTES + 8 * numbers + kept * basis,
        kept * 8 * (size * size + size + columns),
    ]
}

/// The settings that bound the memory of training.
const REMEDY: &str =
    "ask for fewer forward passes (forward_passes) or less memory for bases (--basis-memory)";

/// The iteration after which training ends in any case.
fn most_iterations(stopping: &Stopping) -> Option<u64> {
    let limits = stopping.rules.iter().filter_map(|rule| match rule {
        StopRule::Iterations(number) => Some(*number as u64),
        _ => None,
    });
    limits.min()
}

/// A number of bytes for a reader.
fn size(bytes: u64) -> String {
    match bytes {
        0..=0x3fff_ffff => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAINING: MemoryEstimate = MemoryEstimate {
        units: 6 << 30,
        per_iteration: 1 << 30,
        iterations: Some(11),
        passes: 5,
    };

    #[test]
    fn memory_that_cannot_be_had_is_refused() {
        let error = TRAINING.check(3 << 30, 1).expect_err("it does not fit");
        let text = "training with 5 forward passes takes about 7.0 GiB of memory, and 3.0 GiB are available; ";
        assert!(error.to_string().contains(text), "{error}");
        // Half of it may do, and so may a half on each of two hosts.
        assert!(TRAINING.check(4 << 30, 1).is_ok());
        assert!(TRAINING.check(3 << 30, 2).is_ok());
        let nothing = MemoryEstimate {
            iterations: Some(0),
            ..TRAINING
        };
        assert!(matches!(nothing.check(0, 1), Ok(None)));
    }

    #[test]
    fn memory_that_may_be_short_or_is_much_is_told() {
        let warning = TRAINING.warning(30 << 30, 1).expect("it is much");
        let text = "about 17.0 GiB of memory by iteration 11, and 30.0 GiB are available; ";
        assert!(warning.contains(text), "{warning}");
        let small = MemoryEstimate {
            units: 100 << 20,
            per_iteration: 1 << 20,
            ..TRAINING
        };
        assert_eq!(small.warning(1 << 30, 1), None);
        assert!(small.warning(200 << 20, 1).is_some());
    }
}
