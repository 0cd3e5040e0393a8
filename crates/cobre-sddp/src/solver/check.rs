//! Mode check: every linear program solved by the kernel, and again by HiGHS with tight tolerances.

use crate::lp::{
    Detail, HighsBasis, HighsNode, LpFailure, LpFailureKind, LpStatistics, NodeSolution, NodeView,
    Visit, in_place,
};

/// The tolerated difference of two optimal values, relative to them.
const TOLERANCE: f64 = 1e-7;

/// HiGHS with tight tolerances, beside another solver of the same node.
#[derive(Debug)]
pub(super) struct Reference {
    highs: HighsNode,
    solves: u64,
    difference: f64,
}

impl Reference {
    pub(super) fn load(view: &NodeView<'_>) -> Result<Self, Box<LpFailure>> {
        Ok(Self {
            highs: HighsNode::load_tight(view)?,
            solves: 0,
            difference: 0.0,
        })
    }

    /// Solves the visit again and compares with the solutions `found`.
    ///
    /// # Errors
    /// For the first opening whose solution differs or that HiGHS cannot solve.
    pub(super) fn compare(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        found: &[(usize, NodeSolution)],
        basis: &mut HighsBasis,
    ) -> Result<(), Box<LpFailure>> {
        let mut expected: Vec<NodeSolution> = Vec::new();
        let keep = &mut |_: usize, answer: &NodeSolution| expected.push(answer.clone());
        self.highs.solve(view, visit, basis, keep)?;
        for ((opening, answer), expected) in found.iter().zip(&expected) {
            self.solves += 1;
            let mut difference = difference(answer, expected, visit.detail);
            if visit.detail == Detail::Full {
                difference = difference.max(unexplained(view, *opening, answer));
            }
            self.difference = self.difference.max(difference);
            if difference > TOLERANCE {
                return Err(Box::new(failure(view, visit, *opening, answer, expected)));
            }
        }
        Ok(())
    }

    /// The statistics of the other solver with those of the comparison.
    pub(super) fn add_to(&self, statistics: LpStatistics) -> LpStatistics {
        LpStatistics {
            checked: self.solves,
            difference: self.difference,
            ..statistics
        }
    }
}

/// The difference of a solution from that of HiGHS: of its bound, and of the cost of its decisions
/// if they were asked for.
fn difference(answer: &NodeSolution, expected: &NodeSolution, detail: Detail) -> f64 {
    let of_bound = distance(answer.bound, expected);
    if detail == Detail::Cut {
        return of_bound;
    }
    of_bound.max(distance(answer.cost + answer.future, expected))
}

/// The distance of a value from the interval of HiGHS's primal and dual value, relative to it. They
/// enclose the optimum; on badly scaled linear programs they differ.
fn distance(value: f64, expected: &NodeSolution) -> f64 {
    if value.is_nan() {
        return f64::INFINITY;
    }
    let primal = expected.cost + expected.future;
    let (low, high) = (expected.bound.min(primal), expected.bound.max(primal));
    (low - value).max(value - high).max(0.0) / (1.0 + expected.bound.abs())
}

/// The difference of the gradient from the dual values of rows: the derivative by an incoming state
/// is the reduced cost of its column. Relative to the largest term of the sum.
fn unexplained(view: &NodeView<'_>, opening: usize, answer: &NodeSolution) -> f64 {
    let lp = in_place(view, &vec![0.0; answer.gradient.len()], opening);
    let mut most: f64 = 0.0;
    for (state, slope) in lp.states.iter().zip(&answer.gradient) {
        let mut rest = lp.columns[state.incoming].cost - slope;
        let mut scale = 1.0 + slope.abs();
        for (row, dual) in lp.rows.iter().zip(&answer.duals) {
            let own = row.terms.iter().filter(|term| term.0 == state.incoming);
            for (_, value) in own {
                rest -= value * dual;
                scale = (value * dual).abs().max(scale);
            }
        }
        most = most.max(rest.abs() / scale);
    }
    most
}

fn failure(
    view: &NodeView<'_>,
    visit: &Visit<'_>,
    opening: usize,
    answer: &NodeSolution,
    expected: &NodeSolution,
) -> LpFailure {
    let problem = view.problem;
    let values = problem.states.iter().zip(visit.incoming);
    let decided = match visit.detail {
        Detail::Cut => String::new(),
        _ => format!(" (its decisions cost {})", answer.cost + answer.future),
    };
    LpFailure {
        kind: LpFailureKind::NotSolved("two solvers differ".to_owned()),
        node: problem.nodes[view.node].name.clone(),
        opening: view.given.is_none().then_some(opening + 1),
        incoming: values
            .map(|(state, value)| (state.name.clone(), *value))
            .collect(),
        explanation: format!(
            "the kernel finds {}{decided}, HiGHS {} ({})",
            answer.bound,
            expected.bound,
            expected.cost + expected.future
        ),
        file: None,
    }
}
