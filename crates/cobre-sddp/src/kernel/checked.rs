//! Every linear program solved twice: by the kernel, and by HiGHS with tight tolerances.

use std::ops::Range;

use super::{Memory, Rules, StageKernel};
use crate::lp::{
    Answer, Basis, Counts, Failure, FailureKind, HighsNode, Kernel, NodeView, Want, in_place,
};

/// The largest difference of two optimal values, relative to them, that is none.
const TOLERANCE: f64 = 1e-7;

/// The kernel with HiGHS beside it: answers are the kernel's, and a run ends at the first that
/// differs.
#[derive(Debug)]
pub struct Checked<R> {
    kernel: StageKernel<R>,
    highs: HighsNode,
    solves: u64,
    difference: f64,
}

/// An opening with its answer.
type Answered = (usize, Answer);

impl<R: Rules> Kernel for Checked<R> {
    type Memory = (Memory, Basis);

    const NAME: &'static str = "check";
    const OPENINGS_PER_BLOCK: usize = StageKernel::<R>::OPENINGS_PER_BLOCK;

    fn load(view: &NodeView<'_>) -> Result<Self, Box<Failure>> {
        Ok(Self {
            kernel: StageKernel::load(view)?,
            highs: HighsNode::load_tight(view)?,
            solves: 0,
            difference: 0.0,
        })
    }

    fn solve(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        openings: Range<usize>,
        want: Want,
        memory: &mut Self::Memory,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>> {
        let mut found: Vec<Answered> = Vec::new();
        let kernel = &mut self.kernel;
        let mut keep = |opening: usize, answer: &Answer| found.push((opening, answer.clone()));
        kernel.solve(
            view,
            incoming,
            openings.clone(),
            want,
            &mut memory.0,
            &mut keep,
        )?;
        let mut expected: Vec<Answered> = Vec::new();
        let mut keep = |opening: usize, answer: &Answer| expected.push((opening, answer.clone()));
        let highs = &mut self.highs;
        highs.solve(view, incoming, openings, want, &mut memory.1, &mut keep)?;
        for ((opening, answer), (_, expected)) in found.iter().zip(&expected) {
            self.solves += 1;
            let mut difference = difference(answer, expected, want);
            if want == Want::All {
                difference = difference.max(unexplained(view, *opening, answer));
            }
            self.difference = self.difference.max(difference);
            if difference > TOLERANCE {
                return Err(Box::new(failure(
                    view, incoming, *opening, want, answer, expected,
                )));
            }
            each(*opening, answer);
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        Counts {
            checked: self.solves,
            difference: self.difference,
            ..self.kernel.counts()
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
    incoming: &[f64],
    opening: usize,
    want: Want,
    answer: &Answer,
    expected: &Answer,
) -> Failure {
    let problem = view.problem;
    let values = problem.states.iter().zip(incoming);
    let decided = match want {
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
