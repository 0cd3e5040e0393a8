//! The kernel: a dual simplex method for stage problems, with a dense inverse for small ones and sparse factors for large ones. It warm-starts from the best basis
//! that its work unit has cached, and adds inequalities and cuts when they are violated.
//!
//! Reading order: [`BasisCache`] (warm starts), `simplex`, `ratio` (the ratio test), `basis`,
//! `inverse`; and from the model down: `presolve`, `reduced_lp`, `curve`, `cut_table`, `instance`;
//! and back up: `postsolve`.

mod affine;
mod basis;
mod basis_cache;
mod basis_rows;
mod basis_values;
mod cached_basis;
mod curve;
mod cut_table;
mod factorization;
#[cfg(test)]
mod fault;
mod hyperplanes;
mod index_list;
mod instance;
mod inverse;
mod lane_search;
mod lu;
mod outside_rows;
mod postsolve;
mod presolve;
mod presolved_nodes;
mod ratio;
mod reduced_lp;
mod refinement;
mod row_blocks;
mod simplex;
mod solve_vector;
mod sparse;
mod sparse_basis;
mod sparse_pricing;
mod tolerance;
mod workspace;

pub(crate) use basis_cache::BasisCache;
#[cfg(test)]
pub(crate) use fault::{Fault, with_sparse_factors};
pub(crate) use presolved_nodes::PresolvedNodes;
pub(crate) use workspace::Workspace;

use self::instance::Instance;
use self::reduced_lp::ColumnSource;
use self::simplex::{SolveError, SolveState};
use crate::lp::{Detail, HighsNode, LpFailure, LpStatistics, NodeSolution, NodeView, Visit};
use crate::policy::Cuts;

/// The largest nodes that the kernel takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    /// Equality rows: the least size of a basis.
    equalities: usize,
    /// Rows, which a basis has room for.
    rows: usize,
}

impl SizeLimits {
    /// Nodes on which a dense inverse is faster than sparse factors.
    const DENSE: Self = Self {
        equalities: 60,
        rows: 250,
    };
    /// Nodes on which the kernel is faster than HiGHS.
    pub(crate) const FASTER_THAN_HIGHS: Self = Self {
        equalities: 3_000,
        rows: 12_000,
    };
    /// Nodes that sparse factors have room for.
    pub(crate) const ANY: Self = Self {
        equalities: usize::MAX,
        rows: usize::MAX,
    };

    /// True if a node has a dense inverse.
    fn is_dense(equalities: usize, rows: usize) -> bool {
        #[cfg(test)]
        if fault::is_always_sparse() {
            return false;
        }
        Self::DENSE.hold(equalities, rows)
    }

    fn hold(self, equalities: usize, rows: usize) -> bool {
        equalities <= self.equalities && rows <= self.rows
    }
}

/// A node that the kernel solves.
#[derive(Debug)]
pub(crate) struct KernelNode {
    instance: Instance,
    /// The entry of the cache that the working basis was loaded from.
    loaded: Option<usize>,
    fallback: Option<HighsNode>,
    statistics: LpStatistics,
    /// The bytes that a cache may take per basis that it keeps at most.
    basis_bytes: usize,
}

impl KernelNode {
    /// A solver of this node, without any cuts yet; `None` if openings change costs or
    /// coefficients, or the node exceeds the limits.
    pub(crate) fn new(
        view: &NodeView<'_>,
        presolved: &PresolvedNodes,
        limits: SizeLimits,
        basis_bytes: usize,
    ) -> Option<Self> {
        Some(Self {
            instance: Instance::new(presolved.get(view, limits)?),
            loaded: None,
            fallback: None,
            statistics: LpStatistics::default(),
            basis_bytes,
        })
    }

    /// Solves the openings of a visit in turn; HiGHS solves those that the kernel gives up.
    ///
    /// # Errors
    /// For the first opening that HiGHS could not solve either.
    pub(crate) fn solve(
        &mut self,
        work: &mut Workspace,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        cache: &mut BasisCache,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        self.start_visit(work, view, visit, cache);
        let before = (work.basis.pivots, work.basis.refactored);
        for opening in visit.openings.clone() {
            self.statistics.solves += 1;
            let heights = &mut work.heights;
            self.instance.start_opening(view, heights, opening);
            let cached = cache.len();
            match self.solve_with_recovery(work, &view.cuts, cache) {
                Ok(entry) => {
                    self.statistics.remembered += u64::from(entry < cached);
                    self.read_answer(work, &view.cuts, cache, (entry, visit.detail));
                    each(opening, &work.answer);
                }
                Err(_) => self.fall_back(view, visit, opening, each)?,
            }
        }
        self.statistics.pivots += work.basis.pivots - before.0;
        self.statistics.refactored += work.basis.refactored - before.1;
        cache.end_visit(&mut work.cache, self.basis_bytes);
        Ok(())
    }

    pub(crate) fn statistics(&self) -> LpStatistics {
        let highs = self.fallback.as_ref().map(HighsNode::statistics);
        let highs = highs.unwrap_or_default();
        LpStatistics {
            highs: highs.solves,
            fallbacks: highs.solves,
            retries: highs.retries,
            ..self.statistics
        }
    }

    fn start_visit(
        &mut self,
        work: &mut Workspace,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        cache: &mut BasisCache,
    ) {
        let (instance, heights) = (&mut self.instance, &mut work.heights);
        instance.start_visit(&view.cuts, heights, visit.incoming);
        work.basis.fit(&instance.lp);
        let input = instance.input(&view.cuts, heights);
        let (parameters, openings) = (&instance.parameters, visit.openings.len());
        cache.start_visit(&mut work.cache, input, parameters, openings);
        self.loaded = None;
    }

    /// Solves the instance: from the best cached basis, then after a refactorisation, then from a
    /// cold start. Returns the entry of the optimal basis.
    fn solve_with_recovery(
        &mut self,
        work: &mut Workspace,
        cuts: &Cuts<'_>,
        cache: &mut BasisCache,
    ) -> Result<usize, SolveError> {
        self.instance.check_feasibility()?;
        let started = self.warm_start(work, cuts, cache);
        let mut result = started.and_then(|()| self.solve_and_check(work, cuts, cache));
        if result.is_err() {
            self.statistics.refactored += 1;
            let input = self.instance.input(cuts, &work.heights);
            let again = work.basis.refactor(input).map_err(SolveError::from);
            result = again.and_then(|()| self.solve_and_check(work, cuts, cache));
        }
        if result.is_err() {
            self.statistics.cold_starts += 1;
            self.start_cold(work);
            result = self.solve_and_check(work, cuts, cache);
        }
        result
    }

    /// Loads the best cached basis, or starts cold if there is none.
    #[inline]
    fn warm_start(
        &mut self,
        work: &mut Workspace,
        cuts: &Cuts<'_>,
        cache: &mut BasisCache,
    ) -> Result<(), SolveError> {
        let (instance, basis) = (&mut self.instance, &mut work.basis);
        let best = cache.best(&work.cache, &instance.lp, &instance.parameters);
        let Some(best) = best else {
            self.start_cold(work);
            return Ok(());
        };
        if self.loaded != Some(best) || basis.stale {
            self.loaded = None;
            instance.refer(cache.references(best));
            let input = instance.input(cuts, &work.heights);
            cache.load(&mut work.cache, best, input, basis, &instance.parameters)?;
            self.loaded = Some(best);
        } else {
            instance.transform_rhs();
        }
        Ok(())
    }

    fn start_cold(&mut self, work: &mut Workspace) {
        self.instance.refer_to_first();
        work.basis.start_cold(&self.instance.lp);
    }

    /// Solves from the working basis, and checks the solution.
    #[inline]
    fn solve_and_check(
        &mut self,
        work: &mut Workspace,
        cuts: &Cuts<'_>,
        cache: &mut BasisCache,
    ) -> Result<usize, SolveError> {
        let (before, pivots) = (self.loaded.take(), self.iterate(work, cuts)?);
        let (instance, basis) = (&self.instance, &mut work.basis);
        let input = instance.input(cuts, &work.heights);
        let kept = before.filter(|_| pivots == 0);
        let entry = match kept {
            Some(entry) => entry,
            None => cache.add(&mut work.cache, input, basis, &instance.parameters)?,
        };
        let (dual, slopes) = cache.value(entry, &instance.lp, &instance.parameters);
        let primal = basis.value();
        // NaN exceeds any tolerance.
        let close = (primal - dual).abs() <= tolerance::GAP * (1.0 + primal.abs());
        if !close || !instance.prices_hold(slopes) {
            if kept.is_none() {
                cache.drop_latest(&mut work.cache);
            }
            return Err(SolveError::CheckFailed);
        }
        cache.used(entry, &instance.lp, basis);
        self.loaded = Some(entry);
        Ok(entry)
    }

    /// Pivots to the optimum; returns the number of pivots. Where factors are computed anew, tight hyperplanes become
    /// references.
    #[inline]
    fn iterate(&mut self, work: &mut Workspace, cuts: &Cuts<'_>) -> Result<usize, SolveError> {
        let (instance, basis, heights) = (&mut self.instance, &mut work.basis, &work.heights);
        let mut pivots = 0;
        while basis.solve(instance.input(cuts, heights), &mut pivots)? == SolveState::Long {
            if instance.has_references() {
                let references = basis.refer_to_tight(&instance.lp);
                instance.refer(&references);
            }
            basis.refactor(instance.input(cuts, heights))?;
        }
        Ok(pivots)
    }

    fn read_answer(
        &self,
        work: &mut Workspace,
        cuts: &Cuts<'_>,
        cache: &BasisCache,
        (entry, detail): (usize, Detail),
    ) {
        let instance = &self.instance;
        let input = instance.input(cuts, &work.heights);
        let (lp, basis, answer) = (input.lp, &work.basis, &mut work.answer);
        let (value, slopes) = cache.value(entry, lp, &instance.parameters);
        let fixed_cost = lp.fixed_cost.value(&instance.parameters);
        answer.bound = value + fixed_cost;
        instance.gradient(slopes, &mut answer.gradient);
        if detail == Detail::Cut {
            return;
        }
        answer.future = basis.future;
        answer.cost = basis.value() + fixed_cost - answer.future;
        answer.outgoing.clear();
        answer.outgoing.resize(lp.states, 0.0);
        for (&(state, column), &value) in lp.free_states.iter().zip(&basis.state) {
            // A value within the tolerance of a bound counts as on it.
            let value = value.max(lp.lower[column]).min(lp.upper[column]);
            answer.outgoing[state] = value;
        }
        for (state, value) in &lp.fixed_states {
            answer.outgoing[*state] = value.value(&instance.parameters);
        }
        if detail == Detail::Full {
            let kept = &mut work.values;
            basis.column_values(lp, kept);
            let hyperplanes = &lp.hyperplanes;
            hyperplanes.restore(&lp.rhs, &instance.parameters, kept);
            let values = lp.column_sources.iter().map(|source| match source {
                ColumnSource::Kept(column) if hyperplanes.has(*column) => kept[*column],
                ColumnSource::Kept(column) => {
                    kept[*column].max(lp.lower[*column]).min(lp.upper[*column])
                }
                ColumnSource::Removed(value) => value.value(&instance.parameters),
            });
            answer.columns.clear();
            answer.columns.extend(values);
            postsolve::row_duals(instance, input, basis, &mut answer.duals);
        }
    }

    /// Solves an opening with HiGHS, from a cold start.
    fn fall_back(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        opening: usize,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        self.loaded = None;
        let highs = match &mut self.fallback {
            Some(highs) => highs,
            empty => empty.insert(HighsNode::load(view)?),
        };
        let basis = &mut crate::lp::HighsBasis::default();
        let visit = Visit {
            openings: opening..opening + 1,
            ..visit.clone()
        };
        highs.solve(view, &visit, basis, each)
    }
}
