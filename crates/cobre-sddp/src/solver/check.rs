//! Every linear program solved twice: by the kernel, and by HiGHS with tight tolerances.

use crate::lp::{
    Answer, Basis, Counts, Failure, FailureKind, HighsNode, NodeView, Visit, Want, in_place,
};

/// The largest difference of two optimal values, relative to them, that is none.
const TOLERANCE: f64 = 1e-7;

/// HiGHS with tight tolerances, beside another solver of the same node.
#[derive(Debug)]
pub(super) struct Reference {
    highs: HighsNode,
    solves: u64,
    difference: f64,
}

impl Reference {
    pub(super) fn load(view: &NodeView<'_>) -> Result<Self, Box<Failure>> {
        Ok(Self {
            highs: HighsNode::load_tight(view)?,
            solves: 0,
            difference: 0.0,
        })
    }

    /// Solves the visit again and compares with what was `found`.
    ///
    /// # Errors
    /// For the first opening whose solution differs or that HiGHS cannot solve.
    pub(super) fn compare(
        &mut self,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        found: &[(usize, Answer)],
        basis: &mut Basis,
    ) -> Result<(), Box<Failure>> {
        let mut expected: Vec<Answer> = Vec::new();
        let keep = &mut |_: usize, answer: &Answer| expected.push(answer.clone());
        self.highs.solve(view, visit, basis, keep)?;
        for ((opening, answer), expected) in found.iter().zip(&expected) {
            self.solves += 1;
            let mut difference = difference(answer, expected, visit.want);
            if visit.want == Want::All {
                difference = difference.max(unexplained(view, *opening, answer));
            }
            self.difference = self.difference.max(difference);
            if difference > TOLERANCE {
                return Err(Box::new(failure(view, visit, *opening, answer, expected)));
            }
        }
        Ok(())
    }

    /// The counts of the other solver with those of the comparison.
    pub(super) fn add_to(&self, counts: Counts) -> Counts {
        Counts {
            checked: self.solves,
            difference: self.difference,
            ..counts
        }
    }
}

/// How far an answer is from what HiGHS says: its bound, and what its decisions cost if they were
/// asked for.
fn difference(answer: &Answer, expected: &Answer, want: Want) -> f64 {
    let of_bound = distance(answer.bound, expected);
    if want == Want::Cut {
        return of_bound;
    }
    of_bound.max(distance(answer.cost + answer.future, expected))
}

/// How far a value is from what HiGHS says, relative to it. Its primal and its dual value enclose the
/// optimum; on badly scaled linear programs they are apart, and what is between them is no difference.
fn distance(value: f64, expected: &Answer) -> f64 {
    if value.is_nan() {
        return f64::INFINITY;
    }
    let primal = expected.cost + expected.future;
    let (low, high) = (expected.bound.min(primal), expected.bound.max(primal));
    (low - value).max(value - high).max(0.0) / (1.0 + expected.bound.abs())
}

/// How far the dual values of rows are from saying what the gradient says: the reduced cost of the column of
/// an incoming state is how the value changes with it. Relative to the largest term of the sum.
fn unexplained(view: &NodeView<'_>, opening: usize, answer: &Answer) -> f64 {
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
    answer: &Answer,
    expected: &Answer,
) -> Failure {
    let problem = view.problem;
    let values = problem.states.iter().zip(visit.incoming);
    let decided = match visit.want {
        Want::Cut => String::new(),
        _ => format!(" (its decisions cost {})", answer.cost + answer.future),
    };
    Failure {
        kind: FailureKind::NotSolved("two solvers differ".to_owned()),
        node: problem.nodes[view.node].name.clone(),
        opening: Some(opening + 1),
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
