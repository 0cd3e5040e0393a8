//! The range of every outgoing state, by propagation of bounds through the rows of linear programs.

use crate::lp::in_place;
use crate::problem::Template;
use crate::rank_work::TrainingState;
use crate::ranks::Backend;

/// The rounds of propagation: rows that hand a state on are few steps from the states they follow from.
const ROUNDS: usize = 4;
/// The margin for rounding, relative to a bound.
const MARGIN: f64 = 1e-9;

/// The most steps in which ranges grow.
const MOST_STEPS: usize = 400;
/// The margin of ranges that have grown, relative to their width.
const GROWTH: f64 = 1e-6;

/// The least and the most of a quantity.
pub(super) type Range = [f64; 2];

/// By node, the range of each of its outgoing states over all paths and openings. No state is ever outside.
pub(super) fn of_nodes<C: Backend>(shared: &TrainingState<'_, C>) -> Vec<Vec<Range>> {
    let (problem, graph) = (shared.problem, &shared.problem.graph);
    let empty = || vec![[f64::INFINITY, f64::NEG_INFINITY]; problem.states.len()];
    let mut incoming: Vec<Vec<Range>> = problem.nodes.iter().map(|_| empty()).collect();
    let mut outgoing = incoming.clone();
    let start: Vec<Range> = problem
        .initial_state()
        .into_iter()
        .map(|own| [own; 2])
        .collect();
    for edge in &graph.root {
        join(&mut incoming[edge.node], &start);
    }
    let zero = vec![0.0; problem.states.len()];
    for level in (0..graph.depth()).rev() {
        for node in (0..problem.nodes.len()).filter(|&node| graph.level(node) == level) {
            if incoming[node].iter().any(|range| range[0] > range[1]) {
                continue;
            }
            let view = shared.view(node);
            for opening in 0..problem.nodes[node].probabilities.len() {
                let lp = in_place(&view, &zero, opening);
                join(&mut outgoing[node], &left(lp, &incoming[node]));
            }
            for edge in graph.successors(node) {
                let range = outgoing[node].clone();
                join(&mut incoming[edge.node], &range);
            }
        }
    }
    outgoing
}

/// The same in a graph with cycles: first what holds whatever comes in, and then, where that has no end, ranges that grow from
/// the start of paths and that no step leaves.
pub(super) fn of_cycles<C: Backend>(shared: &TrainingState<'_, C>) -> Vec<Vec<Range>> {
    let problem = shared.problem;
    let all = vec![[f64::NEG_INFINITY, f64::INFINITY]; problem.states.len()];
    let mut outgoing = vec![all; problem.nodes.len()];
    for _ in 0..ROUNDS {
        outgoing = step(shared, &outgoing);
    }
    let is_open = |range: &Range| range.iter().any(|end| !end.is_finite());
    if outgoing.iter().flatten().any(is_open)
        && let Some(grown) = grown(shared)
    {
        for (range, grown) in outgoing.iter_mut().flatten().zip(grown.iter().flatten()) {
            *range = [range[0].max(grown[0]), range[1].min(grown[1])];
        }
    }
    outgoing
}

/// Ranges that hold the states that paths begin with, and that no step leaves, if growth ends.
fn grown<C: Backend>(shared: &TrainingState<'_, C>) -> Option<Vec<Vec<Range>>> {
    let problem = shared.problem;
    let none = vec![[f64::INFINITY, f64::NEG_INFINITY]; problem.states.len()];
    let mut ranges = vec![none; problem.nodes.len()];
    let slack = |end: f64| GROWTH * (1.0 + end.abs());
    for _ in 0..MOST_STEPS {
        let next = step(shared, &ranges);
        let stands = ends(&ranges).zip(ends(&next)).all(|(old, new)| {
            old == new || old.is_finite() && (old - new).abs() <= 0.01 * slack(old)
        });
        for (range, new) in ranges.iter_mut().zip(&next) {
            join(range, new);
        }
        if stands {
            break;
        }
    }
    for range in ranges.iter_mut().flatten().filter(|own| own[0] <= own[1]) {
        *range = [range[0] - slack(range[0]), range[1] + slack(range[1])];
    }
    // Around a cycle, if not in one step: what is handed on as it is has its margin only once.
    let mut next = ranges.clone();
    let mut around = (0..=ranges.len()).map(|_| {
        next = step(shared, &next);
        let mut pairs = ranges.iter().flatten().zip(next.iter().flatten());
        pairs.all(|(own, next)| next[0] >= own[0] && next[1] <= own[1])
    });
    around.any(|holds| holds).then_some(ranges)
}

/// The ends of all ranges, one after the other.
fn ends(ranges: &[Vec<Range>]) -> impl Iterator<Item = f64> {
    ranges.iter().flatten().flatten().copied()
}

/// The ranges that each node leaves, where its predecessors leave these.
fn step<C: Backend>(shared: &TrainingState<'_, C>, left_in: &[Vec<Range>]) -> Vec<Vec<Range>> {
    let (problem, graph) = (shared.problem, &shared.problem.graph);
    let empty = || vec![[f64::INFINITY, f64::NEG_INFINITY]; problem.states.len()];
    let mut incoming: Vec<Vec<Range>> = problem.nodes.iter().map(|_| empty()).collect();
    let start = problem.initial_state().into_iter();
    let start: Vec<Range> = start.map(|own| [own; 2]).collect();
    for edge in &graph.root {
        join(&mut incoming[edge.node], &start);
    }
    for (node, ranges) in left_in.iter().enumerate() {
        for edge in graph.successors(node) {
            join(&mut incoming[edge.node], ranges);
        }
    }
    let zero = vec![0.0; problem.states.len()];
    let of_node = |(node, incoming): (usize, &Vec<Range>)| {
        let mut outgoing = empty();
        if incoming.iter().all(|range| range[0] <= range[1]) {
            let view = shared.view(node);
            for opening in 0..problem.nodes[node].probabilities.len() {
                join(
                    &mut outgoing,
                    &left(in_place(&view, &zero, opening), incoming),
                );
            }
        }
        outgoing
    };
    incoming.iter().enumerate().map(of_node).collect()
}

/// Extends ranges by others.
fn join(ranges: &mut [Range], others: &[Range]) {
    for (range, other) in ranges.iter_mut().zip(others) {
        *range = [range[0].min(other[0]), range[1].max(other[1])];
    }
}

/// The ranges of the outgoing states of a linear program, given those of the incoming ones.
fn left(mut lp: Template, incoming: &[Range]) -> Vec<Range> {
    let states = std::mem::take(&mut lp.states);
    for (state, range) in states.iter().zip(incoming) {
        let column = &mut lp.columns[state.incoming];
        (column.lower, column.upper) = (range[0], range[1]);
    }
    let given: Vec<Range> = lp
        .columns
        .iter()
        .map(|own| [own.lower, own.upper])
        .collect();
    let mut ranges = given.clone();
    for _ in 0..ROUNDS {
        for row in &lp.rows {
            propagate(&row.terms, [row.lower, row.upper], &mut ranges);
        }
    }
    let wide = |column: usize| {
        let ([least, most], [low, high]) = (ranges[column], given[column]);
        let margin = |bound: f64| MARGIN * (1.0 + bound.abs());
        // Bounds of columns are exact.
        [
            (least - margin(least)).max(low),
            (most + margin(most)).min(high),
        ]
    };
    states.iter().map(|state| wide(state.outgoing)).collect()
}

/// Narrows the ranges of the columns of a row.
fn propagate(terms: &[(usize, f64)], row: Range, ranges: &mut [Range]) {
    let of_term = |&(column, factor): &(usize, f64), ranges: &[Range]| {
        let [one, other] = ranges[column].map(|bound| factor * bound);
        [one.min(other), one.max(other)]
    };
    let terms = || terms.iter().filter(|term| term.1 != 0.0);
    // On either side, the sum of what is finite and the count of what is not.
    let mut sums = [(0.0, 0_usize); 2];
    for term in terms() {
        for (sum, bound) in sums.iter_mut().zip(of_term(term, ranges)) {
            if bound.is_finite() {
                sum.0 += bound;
            } else {
                sum.1 += 1;
            }
        }
    }
    for &(column, factor) in terms() {
        let own = of_term(&(column, factor), ranges);
        let without = |side: usize| match (sums[side], own[side].is_finite()) {
            ((sum, 0), true) => sum - own[side],
            ((sum, 1), false) => sum,
            _ => [f64::NEG_INFINITY, f64::INFINITY][side],
        };
        let others = [without(0), without(1)];
        let [one, other] = [(row[0] - others[1]) / factor, (row[1] - others[0]) / factor];
        let (least, most) = if factor > 0.0 {
            (one, other)
        } else {
            (other, one)
        };
        let range = &mut ranges[column];
        // The sums of this row stay those of the ranges before: wider, and so still right.
        if least.is_finite() && least > range[0] {
            range[0] = least;
        }
        if most.is_finite() && most < range[1] {
            range[1] = most;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_narrows_the_ranges_of_its_columns() {
        let mut ranges = [[0.0, 10.0], [f64::NEG_INFINITY, f64::INFINITY], [1.0, 2.0]];
        // Column 1 follows from the others: c1 = c0 / 2 + c2.
        propagate(&[(0, -0.5), (1, 1.0), (2, -1.0)], [0.0, 0.0], &mut ranges);
        assert_eq!(ranges[1], [1.0, 7.0]);
        propagate(
            &[(0, 1.0), (2, -1.0)],
            [f64::NEG_INFINITY, 0.0],
            &mut ranges,
        );
        assert_eq!(ranges[0], [0.0, 2.0]);
    }
}
