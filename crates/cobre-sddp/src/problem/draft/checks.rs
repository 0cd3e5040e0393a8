//! The checks of a problem in the making.

use std::collections::{HashMap, HashSet};

use super::paths::DraftPath;
use super::{Change, Draft};
use crate::problem::error::ProblemError;
use crate::problem::graph::Edge;
use crate::problem::limits::{
    MOST_OPENING_NUMBERS, check_bounds, check_coefficient, check_number, check_small,
};
use crate::problem::places::Places;
use crate::problem::sizes::NumberSizes;
use crate::problem::template::{ColumnId, RowId, StateColumns, Template};

/// The tolerance of sums of probabilities.
const PROBABILITY_TOLERANCE: f64 = 1e-6;

impl Draft {
    /// Every opening of a node has a value for each place that any of them changes.
    pub(super) fn check_size(&self) -> Option<ProblemError> {
        let mut steps = vec![Vec::new(); self.nodes.len()];
        for (node, changes) in self.validation.iter().flat_map(DraftPath::changes) {
            steps[node].push(changes);
        }
        for (node, steps) in self.nodes.iter().zip(&mut steps) {
            steps.extend(node.ranges.iter().map(Vec::as_slice));
        }
        let numbers = self.nodes.iter().zip(&steps).map(|(node, steps)| {
            let openings = node.openings.iter().map(|(_, changes)| changes.as_slice());
            let changes = openings.chain(steps.iter().copied());
            let width = Places::of(changes.flatten()).width();
            width.saturating_mul(node.openings.len().max(1) + steps.len())
        });
        let numbers = numbers.fold(0, usize::saturating_add);
        let numbers = numbers.max(self.numbers).max(self.announced);
        (numbers > MOST_OPENING_NUMBERS).then(|| {
            ProblemError::Whole(format!(
                "its openings put {numbers} numbers in place or more; at most {MOST_OPENING_NUMBERS} are possible: \
                 give fewer openings"
            ))
        })
    }

    pub(super) fn check_whole(&self, errors: &mut Vec<ProblemError>) {
        let mut wrong = |problem: String| errors.push(ProblemError::Whole(problem));
        let what = "the bound on the cost to go";
        check_number(what, self.future_bound)
            .into_iter()
            .for_each(&mut wrong);
        if self.nodes.is_empty() {
            wrong("there is no node".to_owned());
        }
        let mut names = HashSet::new();
        for state in &self.states {
            let what = format!("the initial value of state {}", state.name);
            check_number(&what, state.initial)
                .into_iter()
                .for_each(&mut wrong);
            if !names.insert(&state.name) {
                wrong(format!("two states are called {}", state.name));
            }
        }
        let mut names = HashSet::new();
        for node in &self.nodes {
            if !names.insert(&node.name) {
                wrong(format!("two nodes are called {}", node.name));
            }
        }
        let measures = self.nodes.iter().filter_map(|node| node.risk);
        for risk in measures.chain([self.risk]) {
            if let Err(problem) = risk.check() {
                wrong(problem);
            }
        }
    }

    pub(super) fn check_templates(
        &mut self,
        sizes: &[NumberSizes],
        errors: &mut Vec<ProblemError>,
    ) {
        let mut places: Vec<Option<String>> = vec![None; self.templates.len()];
        for node in &self.nodes {
            let place = &mut places[node.template];
            place.get_or_insert_with(|| format!("node {}", node.name));
        }
        for (number, place) in places.into_iter().enumerate() {
            let place = place.unwrap_or_else(|| format!("linear program {number}"));
            self.templates[number].check(&place, &sizes[number], errors);
            self.order_states(number, &place, errors);
        }
    }

    /// Brings a template's state columns into the problem's order.
    fn order_states(&mut self, number: usize, place: &str, errors: &mut Vec<ProblemError>) {
        let mut wrong = |problem: String| {
            errors.push(ProblemError::Program {
                place: place.to_owned(),
                problem,
            });
        };
        let template = &mut self.templates[number];
        let named = &template.named_states;
        let mut by_name: HashMap<&str, (StateColumns, usize)> = HashMap::new();
        for (name, columns) in named {
            by_name.entry(name).or_insert((*columns, 0)).1 += 1;
        }
        let mut ordered = Vec::with_capacity(self.states.len());
        for state in &self.states {
            match by_name.get(state.name.as_str()) {
                Some((columns, 1)) => ordered.push(*columns),
                Some(_) => wrong(format!("state {} is given twice", state.name)),
                None => wrong(format!("state {} has no columns here", state.name)),
            }
        }
        let known: HashSet<&str> = self
            .states
            .iter()
            .map(|state| state.name.as_str())
            .collect();
        for (name, _) in named {
            if !known.contains(name.as_str()) {
                wrong(format!("{name} is no state variable of the problem"));
            }
        }
        let mut used = vec![false; template.columns.len()];
        for (name, columns) in named {
            for column in [columns.incoming, columns.outgoing] {
                match used.get_mut(column) {
                    None => wrong(format!("state {name} names a column that does not exist")),
                    Some(used) if *used => wrong(format!(
                        "column {} stands for more than one state value",
                        template.columns[column].name
                    )),
                    Some(used) => *used = true,
                }
            }
        }
        template.states = ordered;
    }

    pub(super) fn check_nodes(&self, sizes: &[NumberSizes], errors: &mut Vec<ProblemError>) {
        let columns = (&self.incoming()[..], sizes);
        check_edges("root", &self.root, true, errors);
        for node in &self.nodes {
            let place = format!("node {}", node.name);
            check_edges(&place, &node.successors, false, errors);
            let sum: f64 = node
                .openings
                .iter()
                .map(|(probability, _)| probability)
                .sum();
            if !node.openings.is_empty() && (sum - 1.0).abs() > PROBABILITY_TOLERANCE {
                errors.push(ProblemError::Graph {
                    place,
                    problem: format!("the probabilities of its openings sum to {sum}, not 1"),
                });
            }
            for (number, (probability, changes)) in node.openings.iter().enumerate() {
                let place = format!("node {}, opening {}", node.name, number + 1);
                if !(*probability >= 0.0 && *probability <= 1.0 + PROBABILITY_TOLERANCE) {
                    errors.push(ProblemError::Opening {
                        place: place.clone(),
                        problem: format!("its probability is {probability}"),
                    });
                }
                self.check_changes(&place, (node.template, columns), changes, errors);
            }
            let place = format!("node {}, range of paths", node.name);
            for changes in &node.ranges {
                self.check_changes(&place, (node.template, columns), changes, errors);
            }
        }
    }

    pub(super) fn check_validation(&self, sizes: &[NumberSizes], errors: &mut Vec<ProblemError>) {
        let columns = (&self.incoming()[..], sizes);
        // By node the nodes that may follow it, and after those the nodes that may come first.
        let known: Vec<HashSet<usize>> = if self.validation.is_empty() {
            Vec::new()
        } else {
            let edges = self.nodes.iter().map(|node| &node.successors);
            let nodes = |edges: &Vec<Edge>| edges.iter().map(|edge| edge.node).collect();
            edges.chain([&self.root]).map(nodes).collect()
        };
        for path in &self.validation {
            let mut before = self.nodes.len();
            for (number, opening, changes) in &path.steps {
                let node = &self.nodes[*number];
                let place = format!("{}, node {}", path.place, node.name);
                let mut wrong = |problem: String| {
                    let place = place.clone();
                    errors.push(ProblemError::Opening { place, problem });
                };
                if !known[before].contains(number) {
                    wrong("it does not follow the node before it in the graph".to_owned());
                }
                let count = node.openings.len().max(1);
                if let Some(opening) = opening.filter(|opening| *opening >= count) {
                    let opening = opening + 1;
                    wrong(format!(
                        "it has no opening {opening}; they are 1 to {count}"
                    ));
                }
                self.check_changes(&place, (node.template, columns), changes, errors);
                before = *number;
            }
        }
    }

    /// By linear program, the columns whose values the node before has left.
    fn incoming(&self) -> Vec<HashSet<usize>> {
        let states = self.templates.iter().map(|template| &template.named_states);
        states
            .map(|states| states.iter().map(|(_, state)| state.incoming).collect())
            .collect()
    }

    fn check_changes(
        &self,
        place: &str,
        (template, (incoming, sizes)): (usize, (&[HashSet<usize>], &[NumberSizes])),
        changes: &[Change],
        errors: &mut Vec<ProblemError>,
    ) {
        let (incoming, sizes) = (&incoming[template], &sizes[template]);
        let template = &self.templates[template];
        let mut wrong = |problem: String| {
            errors.push(ProblemError::Opening {
                place: place.to_owned(),
                problem,
            });
        };
        let missing = "it changes something that the linear program of the node does not have";
        for change in changes {
            let (row, column, value) = match *change {
                Change::RowBounds { row, lower, upper } => {
                    let name = template.rows.get(row.0).map_or("?", |row| &row.name);
                    check_bounds(&format!("row {name}"), lower, upper, &mut wrong);
                    (Some(row), None, 0.0)
                }
                Change::ColumnBounds {
                    column,
                    lower,
                    upper,
                } => {
                    let name = template
                        .columns
                        .get(column.0)
                        .map_or("?", |column| &column.name);
                    check_bounds(&format!("column {name}"), lower, upper, &mut wrong);
                    if incoming.contains(&column.0) {
                        wrong(format!(
                            "it bounds column {name}, which is given by the node before"
                        ));
                    }
                    (None, Some(column), 0.0)
                }
                Change::Cost { column, value } => (None, Some(column), value),
                Change::Coefficient { row, column, value } => (Some(row), Some(column), value),
                Change::Constant(value) => (None, None, value),
            };
            if row.is_some_and(|row| row.0 >= template.rows.len())
                || column.is_some_and(|column| column.0 >= template.columns.len())
            {
                wrong(missing.to_owned());
            }
            let what = || changed(template, *change);
            let problem = check_changed(what, (row, column), value, sizes);
            problem.into_iter().for_each(&mut wrong);
        }
    }
}

/// The problem of a number that a change puts in place.
fn check_changed(
    what: impl Fn() -> String + Copy,
    place: (Option<RowId>, Option<ColumnId>),
    value: f64,
    sizes: &NumberSizes,
) -> Option<String> {
    match place {
        (Some(row), Some(column)) => {
            let beside = sizes.beside_coefficient(row.0, column.0);
            check_coefficient(what, value, beside)
        }
        (None, Some(column)) => check_number_of(what, value)
            .or_else(|| check_small(what, value, sizes.beside_cost(column.0))),
        _ => check_number_of(what, value),
    }
}

/// As [`check_number`]; the words are made if they are needed.
fn check_number_of(what: impl Fn() -> String, value: f64) -> Option<String> {
    check_number("", value).and_then(|_| check_number(&what(), value))
}

/// The number that a change puts in place, by the modeller's names.
fn changed(template: &Template, change: Change) -> String {
    let column = |column: ColumnId| template.columns.get(column.0).map_or("?", |own| &own.name);
    let row = |row: RowId| template.rows.get(row.0).map_or("?", |own| &own.name);
    match change {
        Change::Cost { column: at, .. } => format!("the cost of column {}", column(at)),
        Change::Coefficient {
            row: of,
            column: at,
            ..
        } => {
            format!(
                "the coefficient of column {} in row {}",
                column(at),
                row(of)
            )
        }
        _ => "the constant of the objective".to_owned(),
    }
}

/// Checks the steps from one place; some must exist if `needed`.
fn check_edges(place: &str, edges: &[Edge], needed: bool, errors: &mut Vec<ProblemError>) {
    let mut wrong = |problem: String| {
        errors.push(ProblemError::Graph {
            place: place.to_owned(),
            problem,
        });
    };
    if needed && edges.is_empty() {
        wrong("no node follows it".to_owned());
    }
    let sum: f64 = edges.iter().map(|edge| edge.probability).sum();
    if sum > 1.0 + PROBABILITY_TOLERANCE {
        wrong(format!(
            "the probabilities of what follows sum to {sum}, more than 1"
        ));
    }
    let mut seen = HashSet::new();
    for edge in edges {
        if !(edge.probability > 0.0 && edge.probability.is_finite()) {
            wrong(format!("a successor has probability {}", edge.probability));
        }
        if !seen.insert(edge.node) {
            wrong("a successor is given twice".to_owned());
        }
    }
}
