//! The memory of the bases that work units remember: a setting of the run, divided by problem and passes alone, so
//! that results depend neither on the machine nor on the number of ranks.

use crate::problem::Problem;
use crate::rank_work::shared_levels;
use crate::settings::Settings;
use crate::solver::most_bases;
use crate::training::backward::UnitKey;

/// The most bytes of all remembered bases, unless a run asks for another number.
pub const DEFAULT: u64 = 1 << 30;

/// The bytes per basis that units keep at most; `units` are those of the backward pass, by level.
pub(crate) fn per_basis(problem: &Problem, units: &[Vec<UnitKey>], settings: &Settings) -> usize {
    let shared = shared_levels(units, settings.passes.get()).len();
    let own_nodes = problem.nodes.len() - shared;
    let forward = settings.passes.get() * own_nodes * most_bases(1);
    let backward = units.iter().flatten();
    let backward: usize = backward.map(|unit| most_bases(unit.openings.len())).sum();
    let share = settings.basis_memory / (forward + backward).max(1) as u64;
    usize::try_from(share).unwrap_or(usize::MAX)
}
