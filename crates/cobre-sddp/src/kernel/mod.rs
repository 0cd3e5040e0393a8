//! The kernel: a dual simplex method for stage problems, with a dense inverse for small ones and sparse factors for large ones. It warm-starts from the best basis
//! that its work unit has cached, and adds inequalities and cuts when they are violated.
//!
//! Reading order: [`BasisCache`] (warm starts), `simplex`, `ratio` (the ratio test), `basis`,
//! `inverse`; and from the model down: `presolve`, `reduced_lp`, `curve`, `cut_table`, `instance`;
//! and back up: `postsolve`.

mod affine;
mod basis;
mod basis_cache;
mod cached_basis;
mod curve;
mod cut_table;
mod factorization;
#[cfg(test)]
mod fault;
mod instance;
mod inverse;
mod lu;
mod postsolve;
mod presolve;
mod ratio;
mod reduced_lp;
mod simplex;
mod sparse;
mod sparse_pricing;
mod tolerance;

pub(crate) use basis_cache::BasisCache;
#[cfg(test)]
pub(crate) use fault::{Fault, with_sparse_factors};

use self::basis::Basis;
use self::instance::Instance;
use self::reduced_lp::{ColumnSource, ReducedLp};
use self::simplex::SolveError;
use crate::lp::{Detail, HighsNode, LpFailure, LpStatistics, NodeSolution, NodeView, Visit};

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
        equalities: 150,
        rows: 600,
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
    basis: Basis,
    /// The entry of the cache that `basis` was loaded from.
    loaded: Option<usize>,
    answer: NodeSolution,
    values: Vec<f64>,
    fallback: Option<HighsNode>,
    statistics: LpStatistics,
    /// The bytes that a cache may take per basis that it keeps at most.
    basis_bytes: usize,
}

impl KernelNode {
    /// A solver of this node, without any cuts yet; `None` if openings change costs or
    /// coefficients, or the node exceeds the limits.
    pub(crate) fn new(view: &NodeView<'_>, limits: SizeLimits, basis_bytes: usize) -> Option<Self> {
        let lp = ReducedLp::new(view, limits)?;
        Some(Self {
            basis: Basis::new(&lp),
            instance: Instance::new(lp),
            loaded: None,
            answer: NodeSolution::default(),
            values: Vec::new(),
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
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        cache: &mut BasisCache,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        self.start_visit(view, visit.incoming, cache);
        for opening in visit.openings.clone() {
            self.statistics.solves += 1;
            self.instance.start_opening(view, opening);
            let cached = cache.len();
            match self.solve_with_recovery(cache) {
                Ok(entry) => {
                    self.statistics.remembered += u64::from(entry < cached);
                    self.read_answer(cache, entry, visit.detail);
                    each(opening, &self.answer);
                }
                Err(_) => self.fall_back(view, visit, opening, each)?,
            }
        }
        cache.end_visit(visit.openings.len(), self.basis_bytes);
        Ok(())
    }

    pub(crate) fn statistics(&self) -> LpStatistics {
        let highs = self.fallback.as_ref().map(HighsNode::statistics);
        let highs = highs.unwrap_or_default();
        LpStatistics {
            highs: highs.solves,
            fallbacks: highs.solves,
            retries: highs.retries,
            pivots: self.basis.pivots,
            refactored: self.statistics.refactored + self.basis.refactored,
            ..self.statistics
        }
    }

    fn start_visit(&mut self, view: &NodeView<'_>, incoming: &[f64], cache: &mut BasisCache) {
        let instance = &mut self.instance;
        instance.start_visit(&view.cuts, incoming);
        cache.start_visit(&instance.lp, &instance.cuts, &instance.parameters);
        self.loaded = None;
    }

    /// Solves the instance: from the best cached basis, then after a refactorisation, then from a
    /// cold start. Returns the entry of the optimal basis.
    fn solve_with_recovery(&mut self, cache: &mut BasisCache) -> Result<usize, SolveError> {
        self.instance.check_feasibility()?;
        let started = self.warm_start(cache);
        let mut result = started.and_then(|()| self.solve_and_check(cache));
        if result.is_err() {
            self.statistics.refactored += 1;
            let again = self.basis.refactor(self.instance.input());
            let again = again.map_err(SolveError::from);
            result = again.and_then(|()| self.solve_and_check(cache));
        }
        if result.is_err() {
            self.statistics.cold_starts += 1;
            self.basis.start_cold(&self.instance.lp);
            result = self.solve_and_check(cache);
        }
        result
    }

    /// Loads the best cached basis, or starts cold if there is none.
    #[inline]
    fn warm_start(&mut self, cache: &mut BasisCache) -> Result<(), SolveError> {
        let instance = &self.instance;
        let best = cache.best(&instance.lp, &instance.parameters);
        let Some(best) = best else {
            self.basis.start_cold(&instance.lp);
            return Ok(());
        };
        if self.loaded != Some(best) || self.basis.stale {
            self.loaded = None;
            let parameters = &instance.parameters;
            cache.load(best, instance.input(), &mut self.basis, parameters)?;
            self.loaded = Some(best);
        }
        Ok(())
    }

    /// Solves from the working basis, and checks the solution.
    #[inline]
    fn solve_and_check(&mut self, cache: &mut BasisCache) -> Result<usize, SolveError> {
        let (instance, basis) = (&self.instance, &mut self.basis);
        let input = instance.input();
        let (before, pivots) = (self.loaded.take(), basis.solve(input)?);
        let kept = before.filter(|_| pivots == 0);
        let entry = match kept {
            Some(entry) => entry,
            None => cache.add(input, basis, &instance.parameters)?,
        };
        let (dual, slopes) = cache.value(entry, &instance.lp, &instance.parameters);
        let primal = basis.value();
        // NaN exceeds any tolerance.
        let close = (primal - dual).abs() <= tolerance::GAP * (1.0 + primal.abs());
        if !close || !instance.prices_hold(slopes) {
            if kept.is_none() {
                cache.drop_latest();
            }
            return Err(SolveError::CheckFailed);
        }
        cache.used(entry, basis);
        self.loaded = Some(entry);
        Ok(entry)
    }

    fn read_answer(&mut self, cache: &BasisCache, entry: usize, detail: Detail) {
        let (instance, answer) = (&self.instance, &mut self.answer);
        let lp = &instance.lp;
        let (value, slopes) = cache.value(entry, lp, &instance.parameters);
        let fixed_cost = lp.fixed_cost.value(&instance.parameters);
        answer.bound = value + fixed_cost;
        instance.gradient(slopes, &mut answer.gradient);
        if detail == Detail::Cut {
            return;
        }
        answer.future = self.basis.future;
        answer.cost = self.basis.value() + fixed_cost - answer.future;
        answer.outgoing.clear();
        answer.outgoing.resize(lp.states, 0.0);
        for (&(state, column), &value) in lp.free_states.iter().zip(&self.basis.state) {
            // A value within the tolerance of a bound counts as on it.
            let value = value.max(lp.lower[column]).min(lp.upper[column]);
            answer.outgoing[state] = value;
        }
        for (state, value) in &lp.fixed_states {
            answer.outgoing[*state] = value.value(&instance.parameters);
        }
        if detail == Detail::Full {
            self.basis.column_values(lp, &mut self.values);
            let values = lp.column_sources.iter().map(|source| match source {
                ColumnSource::Kept(column) => self.values[*column]
                    .max(lp.lower[*column])
                    .min(lp.upper[*column]),
                ColumnSource::Removed(value) => value.value(&instance.parameters),
            });
            answer.columns.clear();
            answer.columns.extend(values);
            postsolve::row_duals(instance, &self.basis, &mut answer.duals);
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
