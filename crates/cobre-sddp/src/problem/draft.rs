//! A problem in the making.

mod checks;
mod paths;

use std::collections::HashMap;

use self::paths::{DraftPath, ValidationPaths};
use super::error::ProblemErrors;
use super::fictitious::{Fictitious, Lift};
use super::graph::{Edge, Graph};
use super::limits::MOST_OPENING_NUMBERS;
use super::paths::PathSources;
use super::places::Places;
use super::sizes::NumberSizes;
use super::template::{ColumnId, RowId, Template};
use super::{Node, Problem, Sense, State};
use crate::risk::Risk;

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
}

#[cfg(test)]
mod tests;
