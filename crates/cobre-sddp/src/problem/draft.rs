//! A problem in the making.

use std::collections::{HashMap, HashSet};

use super::error::{ProblemError, ProblemErrors};
use super::fictitious::{Fictitious, Lift};
use super::graph::{Edge, Graph};
use super::limits::{
    MOST_OPENING_NUMBERS, check_bounds, check_coefficient, check_number, check_small,
};
use super::paths::{GivenPath, PathSources};
use super::places::Places;
use super::sizes::NumberSizes;
use super::template::{ColumnId, RowId, StateColumns, Template};
use super::{Node, Problem, Sense, State, ValidationStep};
use crate::risk::Risk;

/// The tolerance of sums of probabilities.
const PROBABILITY_TOLERANCE: f64 = 1e-6;

/// A linear program of a [`Draft`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateId(usize);

/// A node of a [`Draft`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeId(usize);

/// A change that an opening makes to the template.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Other bounds of a row.
    RowBounds {
        /// The row.
        row: RowId,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
    },
    /// Other bounds of a column.
    ColumnBounds {
        /// The column.
        column: ColumnId,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
    },
    /// Another cost of a column.
    Cost {
        /// The column.
        column: ColumnId,
        /// Its cost.
        value: f64,
    },
    /// Another coefficient of a column in a row.
    Coefficient {
        /// The row.
        row: RowId,
        /// The column.
        column: ColumnId,
        /// The coefficient.
        value: f64,
    },
    /// Another constant of the objective.
    Constant(f64),
}

/// A step of a path to be evaluated: a node, and what happens there.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The node.
    pub node: NodeId,
    /// The changes, as in an opening.
    pub changes: Vec<Change>,
}

/// A step of a path that is simulated in the place of a sampled one.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenStep {
    /// One of the openings of a node, by number.
    Opening(NodeId, usize),
    /// Values of its own.
    Values(Step),
}

/// A path in the making: steps by node, with the opening or the changes there.
#[derive(Debug)]
struct DraftPath {
    /// The place that errors name.
    place: String,
    /// The name of a given path; none of a validation scenario.
    label: Option<String>,
    steps: Vec<(usize, Option<usize>, Vec<Change>)>,
}

impl DraftPath {
    /// The steps with changes, by node.
    fn changes(&self) -> impl Iterator<Item = (usize, &[Change])> {
        let own = self.steps.iter().filter(|step| step.1.is_none());
        own.map(|(node, _, changes)| (*node, changes.as_slice()))
    }
}

#[derive(Debug)]
struct DraftNode {
    name: String,
    template: usize,
    openings: Vec<(f64, Vec<Change>)>,
    ranges: Vec<Vec<Change>>,
    successors: Vec<Edge>,
    risk: Option<Risk>,
    stage: Option<i64>,
    start_date: String,
}

/// A problem in the making; [`build`](Self::build) checks it.
#[derive(Debug)]
pub struct Draft {
    sense: Sense,
    future_bound: f64,
    states: Vec<State>,
    templates: Vec<Template>,
    nodes: Vec<DraftNode>,
    root: Vec<Edge>,
    risk: Risk,
    validation: Vec<DraftPath>,
    sources: PathSources,
    fictitious: Fictitious,
    /// The count of numbers that openings and validation scenarios change, and of those that were
    /// announced.
    numbers: usize,
    announced: usize,
}

impl Draft {
    /// A problem without anything in it. The cost to go after any node is never below
    /// `future_bound`; a revenue to go is never above it.
    pub fn new(sense: Sense, future_bound: f64) -> Self {
        Self {
            sense,
            future_bound,
            states: Vec::new(),
            templates: Vec::new(),
            nodes: Vec::new(),
            root: Vec::new(),
            risk: Risk::EXPECTATION,
            validation: Vec::new(),
            sources: PathSources::default(),
            fictitious: Fictitious::default(),
            numbers: 0,
            announced: 0,
        }
    }

    /// True if openings change more numbers than a problem can have: [`build`](Self::build) refuses
    /// it, and openings that are added have no effect.
    pub fn is_too_large(&self) -> bool {
        self.numbers.max(self.announced) > MOST_OPENING_NUMBERS
    }

    /// Says that so many openings of so many changes each are to come, so that too many need not be made first:
    /// whether they may come is [`is_too_large`](Self::is_too_large).
    pub fn announce(&mut self, openings: usize, changes: usize) {
        let numbers = openings.saturating_mul(changes.saturating_mul(2).saturating_add(1));
        self.announced = self.announced.saturating_add(numbers);
    }

    /// Counts the numbers of changes; none are kept of a problem that is too large.
    fn counted(&mut self, changes: Vec<Change>) -> Vec<Change> {
        self.numbers = self.numbers.saturating_add(2 * changes.len() + 1);
        if self.is_too_large() {
            return Vec::new();
        }
        changes
    }

    /// Adds a state variable.
    pub fn state(&mut self, name: impl Into<String>, initial: f64) {
        self.states.push(State {
            name: name.into(),
            initial,
        });
    }

    /// Adds a linear program that nodes can use.
    pub fn template(&mut self, template: Template) -> TemplateId {
        self.templates.push(template);
        TemplateId(self.templates.len() - 1)
    }

    /// Adds a node. Without openings it has one, which changes nothing.
    pub fn node(&mut self, name: impl Into<String>, template: TemplateId) -> NodeId {
        self.nodes.push(DraftNode {
            name: name.into(),
            template: template.0,
            openings: Vec::new(),
            ranges: Vec::new(),
            successors: Vec::new(),
            risk: None,
            stage: None,
            start_date: String::new(),
        });
        NodeId(self.nodes.len() - 1)
    }

    /// Says which stage a node is of, by the modeller's number, and its first day as YYYY-MM-DD: results have both.
    pub fn node_stage(&mut self, node: NodeId, number: i64, start_date: String) {
        let node = &mut self.nodes[node.0];
        (node.stage, node.start_date) = (Some(number), start_date);
    }

    /// Adds an opening to a node.
    pub fn opening(&mut self, node: NodeId, probability: f64, changes: Vec<Change>) {
        let changes = self.counted(changes);
        self.nodes[node.0].openings.push((probability, changes));
    }

    /// Lets `to` follow `from` with this probability.
    pub fn edge(&mut self, from: NodeId, to: NodeId, probability: f64) {
        self.nodes[from.0].successors.push(Edge {
            node: to.0,
            probability,
        });
    }

    /// Lets paths start at `to` with this probability.
    pub fn start(&mut self, to: NodeId, probability: f64) {
        self.root.push(Edge {
            node: to.0,
            probability,
        });
    }

    /// Sets the risk measure; the expectation if not set.
    pub fn risk(&mut self, risk: Risk) {
        self.risk = risk;
    }

    /// Sets the mean of the cost that nobody pays, which no decision changes: bounds are told without it, as paths
    /// are told without their own ([`Template::fictitious`]).
    pub fn fictitious(&mut self, mean: Fictitious) {
        self.fictitious = mean;
    }

    /// Sets the risk measure of what follows `node`.
    pub fn node_risk(&mut self, node: NodeId, risk: Risk) {
        self.nodes[node.0].risk = Some(risk);
    }

    /// Adds a path to be evaluated by the finished policy.
    pub fn validate(&mut self, path: Vec<Step>) {
        let validation = self.validation.iter().filter(|path| path.label.is_none());
        let place = format!("validation scenario {}", validation.count() + 1);
        self.add_path(
            place,
            None,
            path.into_iter().map(GivenStep::Values).collect(),
        );
    }

    /// Adds a path that is simulated in the place of a sampled one, with its name.
    pub fn given(&mut self, label: String, path: Vec<GivenStep>) {
        let given = self.validation.iter().filter(|path| path.label.is_some());
        let place = format!("path {}", given.count() + 1);
        self.add_path(place, Some(label), path);
    }

    fn add_path(&mut self, place: String, label: Option<String>, path: Vec<GivenStep>) {
        let steps = path.into_iter().map(|step| match step {
            GivenStep::Opening(node, opening) => (node.0, Some(opening), Vec::new()),
            GivenStep::Values(step) => (step.node.0, None, self.counted(step.changes)),
        });
        let steps = steps.collect();
        self.validation.push(DraftPath {
            place,
            label,
            steps,
        });
    }

    /// Sets the sources of paths that are not drawn from openings.
    pub fn paths(&mut self, sources: PathSources) {
        self.sources = sources;
    }

    /// Adds an end of the range of values that a source of paths gives at a node: no path puts a bound of a column
    /// beyond its ranges and openings, and a number that all of them have in common is the same on every path.
    pub fn range(&mut self, node: NodeId, changes: Vec<Change>) {
        let changes = self.counted(changes);
        self.nodes[node.0].ranges.push(changes);
    }

    /// The problem, if it makes sense.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn build(mut self) -> Result<Problem, ProblemErrors> {
        let mut errors = Vec::new();
        self.check_whole(&mut errors);
        if let Some(error) = self.check_size() {
            errors.push(error);
            return Err(ProblemErrors(errors));
        }
        let sizes = self.sizes();
        self.check_templates(&sizes, &mut errors);
        self.check_nodes(&sizes, &mut errors);
        self.check_validation(&sizes, &mut errors);
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        let successors = self
            .nodes
            .iter()
            .map(|node| node.successors.clone())
            .collect();
        let graph = match Graph::new(self.root.clone(), successors, &names) {
            Ok(graph) if errors.is_empty() => graph,
            Ok(_) => return Err(ProblemErrors(errors)),
            Err(error) => {
                errors.push(error);
                return Err(ProblemErrors(errors));
            }
        };
        self.drop_rests(&sizes);
        Ok(self.assemble(graph))
    }

    /// The sizes of the numbers of each linear program.
    fn sizes(&self) -> Vec<NumberSizes> {
        let mut sizes: Vec<NumberSizes> = self.templates.iter().map(NumberSizes::of).collect();
        let openings = self.nodes.iter().flat_map(|node| {
            let changes = node.openings.iter().flat_map(|(_, changes)| changes);
            let changes = changes.chain(node.ranges.iter().flatten());
            changes.map(|change| (node.template, *change))
        });
        let steps = self.validation.iter().flat_map(DraftPath::changes);
        let steps = steps.flat_map(|(node, changes)| {
            let template = self.nodes[node].template;
            changes.iter().map(move |change| (template, *change))
        });
        for (template, change) in openings.chain(steps) {
            if let Change::ColumnBounds {
                column,
                lower,
                upper,
            } = change
            {
                sizes[template].extend(column.0, lower, upper);
            }
        }
        // What a node is given is what another has left, or the value at the start.
        let initial = |state: &State| (state.name.clone(), state.initial.abs());
        let mut states: HashMap<String, f64> = self.states.iter().map(initial).collect();
        let named = || self.templates.iter().map(|template| &template.named_states);
        for (template, sizes) in named().zip(&sizes) {
            for (name, columns) in template {
                let left = sizes.reach.get(columns.outgoing).copied();
                let most = states.entry(name.clone()).or_insert(0.0);
                *most = most.max(left.unwrap_or(f64::INFINITY));
            }
        }
        for (template, sizes) in named().zip(&mut sizes) {
            for (name, columns) in template {
                if let Some(most) = sizes.reach.get_mut(columns.incoming) {
                    *most = states[name];
                }
            }
        }
        sizes
    }

    /// Sets to zero what rounding left of sums, in a problem that is checked.
    fn drop_rests(&mut self, sizes: &[NumberSizes]) {
        for node in &mut self.nodes {
            let changes = node.openings.iter_mut().flat_map(|(_, changes)| changes);
            let changes = changes.chain(node.ranges.iter_mut().flatten());
            changes.for_each(|change| sizes[node.template].drop_rest(change));
        }
        for (node, _, changes) in self.validation.iter_mut().flat_map(|path| &mut path.steps) {
            let template = self.nodes[*node].template;
            let changes = changes.iter_mut();
            changes.for_each(|change| sizes[template].drop_rest(change));
        }
        for (template, sizes) in self.templates.iter_mut().zip(sizes) {
            sizes.drop_rests(template);
        }
    }

    /// Puts the checked parts together, as a problem to be minimised.
    fn assemble(mut self, graph: Graph) -> Problem {
        let sign = self.sense.sign();
        for template in &mut self.templates {
            template.constant *= sign;
            for column in &mut template.columns {
                column.cost *= sign;
            }
        }
        let mut validation = ValidationPaths::new(&self.validation, self.nodes.len());
        let mut values = Vec::new();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (number, mut node) in self.nodes.into_iter().enumerate() {
            if node.openings.is_empty() {
                node.openings.push((1.0, Vec::new()));
            }
            let changes = node.openings.iter().map(|(_, changes)| changes.as_slice());
            let changes = changes.chain(validation.changes(number));
            let changes = changes.chain(node.ranges.iter().map(Vec::as_slice));
            let places = Places::of(changes.clone().flatten());
            let (values_start, mut value_rows) = (values.len(), 0);
            for changes in changes {
                places.values(&self.templates[node.template], changes, sign, &mut values);
                value_rows += 1;
            }
            validation.place(number, node.openings.len());
            let probabilities = node.openings.iter().map(|(probability, _)| *probability);
            nodes.push(Node {
                name: node.name,
                template: node.template,
                probabilities: probabilities.collect(),
                places,
                values_start,
                value_rows,
                future_bound: sign * self.future_bound,
                risk: node.risk.unwrap_or(self.risk),
                terminal: Vec::new(),
                stage: node.stage,
                start_date: node.start_date,
            });
        }
        let (validation, given) = validation.placed();
        Problem {
            given,
            paths: self.sources,
            fictitious: self.fictitious,
            lifts: self.templates.iter().map(Lift::of).collect(),
            sense: self.sense,
            states: self.states,
            templates: self.templates,
            nodes,
            graph,
            risk: self.risk,
            values,
            validation,
        }
    }

    /// Every opening of a node has a value for each place that any of them changes.
    fn check_size(&self) -> Option<ProblemError> {
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

    fn check_whole(&self, errors: &mut Vec<ProblemError>) {
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

    fn check_templates(&mut self, sizes: &[NumberSizes], errors: &mut Vec<ProblemError>) {
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

    fn check_nodes(&self, sizes: &[NumberSizes], errors: &mut Vec<ProblemError>) {
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

    fn check_validation(&self, sizes: &[NumberSizes], errors: &mut Vec<ProblemError>) {
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

/// The paths while nodes get their values: each step with changes is one more opening of its node.
struct ValidationPaths<'a> {
    /// By node: the path, the number of its step, and the changes there.
    steps: Vec<Vec<(usize, usize, &'a [Change])>>,
    /// The paths as a problem has them, with the names of given ones.
    placed: Vec<(Option<&'a str>, Vec<ValidationStep>)>,
}

impl<'a> ValidationPaths<'a> {
    fn new(paths: &'a [DraftPath], nodes: usize) -> Self {
        let mut steps = vec![Vec::new(); nodes];
        let mut placed = Vec::new();
        for (path, of_path) in paths.iter().enumerate() {
            let mut own = Vec::new();
            for (at, (node, opening, changes)) in of_path.steps.iter().enumerate() {
                if opening.is_none() {
                    steps[*node].push((path, at, changes.as_slice()));
                }
                own.push(ValidationStep {
                    node: *node,
                    opening: opening.unwrap_or_default(),
                });
            }
            placed.push((of_path.label.as_deref(), own));
        }
        Self { steps, placed }
    }

    /// The changes of the steps at a node.
    fn changes(&self, node: usize) -> impl Iterator<Item = &'a [Change]> + Clone {
        self.steps[node].iter().map(|(_, _, changes)| *changes)
    }

    /// Notes that the steps at a node come after its `openings` openings.
    fn place(&mut self, node: usize, openings: usize) {
        for (place, &(path, at, _)) in self.steps[node].iter().enumerate() {
            let opening = openings + place;
            self.placed[path].1[at] = ValidationStep { node, opening };
        }
    }

    /// The validation scenarios, and the given paths.
    fn placed(self) -> (Vec<Vec<ValidationStep>>, Vec<GivenPath>) {
        let (mut validation, mut given) = (Vec::new(), Vec::new());
        for (label, steps) in self.placed {
            match label {
                None => validation.push(steps),
                Some(label) => given.push(GivenPath {
                    label: label.to_owned(),
                    steps,
                }),
            }
        }
        (validation, given)
    }
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

#[cfg(test)]
mod tests;
