//! The whole scenario tree of a problem as one linear program.

use cobre_comm::LocalBackend;
use cobre_sddp::{
    Cadence, ColumnId, Draft, Edge, Problem, Sense, Settings, Solver, StopRule, Stopping, Template,
    run,
};

/// A column that has a given value, at no cost, after these openings: by name.
pub type Given<'g> = dyn Fn(&[usize], &str) -> Option<f64> + 'g;

/// The optimal cost of the problem.
#[allow(dead_code, reason = "another test gives columns")]
pub fn optimum(problem: &Problem) -> f64 {
    optimum_given(problem, &|_, _| None)
}

/// The optimal cost of the problem with columns that are given.
pub fn optimum_given(problem: &Problem, given: &Given<'_>) -> f64 {
    let mut tree = Tree {
        problem,
        given,
        path: Vec::new(),
        lp: Template::new(),
        ids: Vec::new(),
    };
    let root = tree.risk_adjusted(&problem.graph.root, None);
    tree.lp.columns[root].cost = 1.0;
    solve(tree.lp)
}

/// The optimal cost of a linear program, as a problem of one stage that HiGHS solves.
fn solve(lp: Template) -> f64 {
    let mut draft = Draft::new(Sense::Minimize, 0.0);
    let lp = draft.template(lp);
    let only = draft.node("only", lp);
    draft.start(only, 1.0);
    let settings = Settings {
        stopping: Stopping::any(vec![StopRule::Iterations(1)]),
        solver: Solver::Highs,
        checkpoints: Cadence::Never,
        ..Settings::default()
    };
    let problem = draft.build().expect("a tree is a problem");
    let results = run(&LocalBackend, problem, &settings, &mut ());
    results
        .expect("a random problem has an optimum")
        .trained
        .bound
}

struct Tree<'p> {
    problem: &'p Problem,
    given: &'p Given<'p>,
    /// Openings so far.
    path: Vec<usize>,
    lp: Template,
    ids: Vec<ColumnId>,
}

impl Tree<'_> {
    fn column(&mut self, lower: f64, upper: f64) -> usize {
        let id = self.lp.column("", 0.0, lower, upper);
        self.ids.push(id);
        self.ids.len() - 1
    }

    fn row(&mut self, lower: f64, upper: f64, terms: &[(usize, f64)]) {
        let terms: Vec<_> = terms
            .iter()
            .map(|&(column, value)| (self.ids[column], value))
            .collect();
        self.lp.row("", lower, upper, &terms);
    }

    /// A column for the risk-adjusted cost of what follows over `edges`, given the columns of the
    /// state before, if there is a stage before.
    fn risk_adjusted(&mut self, edges: &[Edge], before: Option<&[usize]>) -> usize {
        let risk = self.problem.risk;
        let value = self.column(f64::NEG_INFINITY, f64::INFINITY);
        let tail = self.column(f64::NEG_INFINITY, f64::INFINITY);
        let discount: f64 = edges.iter().map(|edge| edge.probability).sum();
        let mut terms = vec![(value, -1.0)];
        if !risk.is_expectation() {
            terms.push((tail, risk.lambda * discount));
        }
        for edge in edges {
            let probabilities = &self.problem.nodes[edge.node].probabilities;
            for (opening, probability) in probabilities.iter().enumerate() {
                let probability = edge.probability * probability;
                self.path.push(opening);
                let outcome = self.outcome(edge.node, opening, before);
                self.path.pop();
                if risk.is_expectation() {
                    terms.push((outcome, probability));
                    continue;
                }
                terms.push((outcome, (1.0 - risk.lambda) * probability));
                if risk.alpha == 0.0 {
                    self.row(0.0, f64::INFINITY, &[(tail, 1.0), (outcome, -1.0)]);
                } else {
                    let excess = self.column(0.0, f64::INFINITY);
                    let above = [(excess, 1.0), (tail, 1.0), (outcome, -1.0)];
                    self.row(0.0, f64::INFINITY, &above);
                    terms.push((excess, risk.lambda * probability / risk.alpha));
                }
            }
        }
        self.row(0.0, 0.0, &terms);
        value
    }

    /// A column for the cost of `node` under `opening` and all that follows.
    fn outcome(&mut self, node: usize, opening: usize, before: Option<&[usize]>) -> usize {
        let problem = self.problem;
        let template = problem.template(node);
        let places = &problem.nodes[node].places;
        let parts = places.split(problem.opening(&problem.values, node, opening));
        let at = |list: &[usize], index: usize| list.iter().position(|&other| other == index);
        let mut columns = Vec::new();
        let mut costs = Vec::new();
        for (number, column) in template.columns.iter().enumerate() {
            if let Some(value) = (self.given)(&self.path, &column.name) {
                columns.push(self.column(value, value));
                costs.push(0.0);
                continue;
            }
            let place = at(&places.columns, number);
            let lower = place.map_or(column.lower, |place| parts.column_lower[place]);
            let upper = place.map_or(column.upper, |place| parts.column_upper[place]);
            columns.push(self.column(lower, upper));
            let place = at(&places.costs, number);
            costs.push(place.map_or(column.cost, |place| parts.costs[place]));
        }
        for (number, row) in template.rows.iter().enumerate() {
            let place = at(&places.rows, number);
            let lower = place.map_or(row.lower, |place| parts.row_lower[place]);
            let upper = place.map_or(row.upper, |place| parts.row_upper[place]);
            let mut terms = row.terms.clone();
            for (&(column, changed), &value) in places.coefficients.iter().zip(parts.coefficients) {
                if changed == number {
                    terms.retain(|term| term.0 != column);
                    terms.push((column, value));
                }
            }
            let terms: Vec<_> = terms
                .iter()
                .map(|&(column, value)| (columns[column], value))
                .collect();
            self.row(lower, upper, &terms);
        }
        for (number, state) in template.states.iter().enumerate() {
            let incoming = columns[state.incoming];
            if let Some(before) = before {
                self.row(0.0, 0.0, &[(incoming, 1.0), (before[number], -1.0)]);
            } else {
                let initial = problem.states[number].initial;
                self.row(initial, initial, &[(incoming, 1.0)]);
            }
        }
        let outgoing: Vec<usize> = template
            .states
            .iter()
            .map(|state| columns[state.outgoing])
            .collect();
        let value = self.column(f64::NEG_INFINITY, f64::INFINITY);
        let mut terms = vec![(value, -1.0)];
        terms.extend(columns.iter().copied().zip(costs));
        let successors = problem.graph.successors(node);
        if !successors.is_empty() {
            terms.push((self.risk_adjusted(successors, Some(&outgoing)), 1.0));
        } else if !problem.nodes[node].terminal.is_empty() {
            let after = self.column(problem.nodes[node].future_bound, f64::INFINITY);
            for cut in &problem.nodes[node].terminal {
                let slopes = outgoing.iter().zip(&cut.gradient);
                let mut row = vec![(after, 1.0)];
                row.extend(slopes.map(|(&state, slope)| (state, -slope)));
                self.row(cut.intercept, f64::INFINITY, &row);
            }
            terms.push((after, 1.0));
        }
        self.row(-parts.constant, -parts.constant, &terms);
        value
    }
}
