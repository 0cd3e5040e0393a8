//! A subproblem as a linear program, and what its random variables do to it.

use std::collections::{HashMap, HashSet};

use cobre_sddp::{Change, ColumnId, RowId, Sense, Template, sum_of};
use serde_json::Value;

use super::Errors;
use super::entries::Entries;
use super::file::{Constraint, Function, Product, Subproblem, Term};

/// The meaning of a name in a subproblem.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Decision(ColumnId),
    /// A random variable, by number.
    Random(usize),
}

/// A sum of terms, sorted by what random variables do in it.
#[derive(Debug, Default)]
struct Sum {
    terms: Vec<(ColumnId, f64)>,
    constant: f64,
    /// Random variable and factor of the sum's constant.
    random_constant: Vec<(usize, f64)>,
    /// Columns whose coefficient is random.
    random_terms: Vec<RandomTerm>,
}

/// A column whose coefficient is random: what it has in any case, and random variables with their factors.
#[derive(Debug)]
struct RandomTerm {
    column: ColumnId,
    fixed: Vec<f64>,
    factors: Vec<(usize, f64)>,
}

/// A row of which something is random.
#[derive(Debug)]
struct RandomRow {
    row: RowId,
    lower: f64,
    upper: f64,
    sum: Sum,
}

/// A subproblem as a linear program.
#[derive(Debug)]
pub(super) struct SubproblemTemplate {
    pub(super) lp: Template,
    /// `None` if any point will do.
    pub(super) sense: Option<Sense>,
    pub(super) random: Vec<String>,
    /// The number of each random variable.
    random_numbers: HashMap<String, usize>,
    objective: Sum,
    rows: Vec<RandomRow>,
}

/// Reads names and functions of one subproblem.
struct SubproblemReader<'s> {
    place: String,
    names: HashMap<&'s str, Meaning>,
    /// Columns whose value the node before has left.
    incoming: HashSet<ColumnId>,
}

impl SubproblemTemplate {
    /// The linear program of a subproblem, or `None` after saying what is wrong.
    pub(super) fn new(name: &str, from: &Subproblem, errors: &mut Errors) -> Option<Self> {
        let before = errors.len();
        let model = &from.model;
        let place = format!("subproblems.{name}");
        let sense = match model.objective.sense.as_str() {
            "min" => Some(Sense::Minimize),
            "max" => Some(Sense::Maximize),
            "feasibility" => None,
            other => {
                errors.push(format!(
                    "{place}.subproblem.objective.sense: {other} is none of min, max, feasibility"
                ));
                None
            }
        };
        let mut lp = Template::new();
        let mut reader = SubproblemReader {
            place,
            names: HashMap::new(),
            incoming: HashSet::new(),
        };
        reader.declare(from, &mut lp, errors);
        let objective = match &model.objective.function {
            Some(function) if sense.is_some() => reader.objective(function, errors),
            _ => Sum::default(),
        };
        let mut costs: Vec<(ColumnId, f64)> = objective.terms.clone();
        costs.sort_by_key(|(column, _)| *column);
        for terms in costs.chunk_by(|left, right| left.0 == right.0) {
            lp.add_cost(terms[0].0, sum_of(terms.iter().map(|term| term.1)));
        }
        lp.add_constant(objective.constant);
        let mut program = Self {
            lp,
            sense,
            random: from.random_variables.clone(),
            random_numbers: from.random_variables.iter().cloned().zip(0..).collect(),
            objective,
            rows: Vec::new(),
        };
        for (number, constraint) in model.constraints.iter().enumerate() {
            program.constrain(&reader, number, constraint, errors);
        }
        (errors.len() == before).then_some(program)
    }

    fn constrain(
        &mut self,
        reader: &SubproblemReader<'_>,
        number: usize,
        constraint: &Value,
        errors: &mut Errors,
    ) {
        let place = format!("{}.subproblem.constraints[{number}]", reader.place);
        let constraint: Constraint = match serde_path_to_error::deserialize(constraint) {
            Ok(constraint) => constraint,
            Err(error) => {
                errors.push(format!("{place}.{}: {}", error.path(), error.inner()));
                return;
            }
        };
        let (lower, upper) = constraint.set.bounds();
        let name = constraint
            .name
            .unwrap_or_else(|| format!("constraint {}", number + 1));
        if let Function::Variable { name: variable } = &constraint.function {
            match reader.meaning(&place, variable, errors) {
                Some(Meaning::Decision(column)) if reader.incoming.contains(&column) => {
                    // Its value is given, so a bound on it is a condition on what came before.
                    self.lp.row(name, lower, upper, &[(column, 1.0)]);
                }
                Some(Meaning::Decision(column)) => self.lp.tighten(column, lower, upper),
                Some(Meaning::Random(_)) => errors.push(format!(
                    "{place}.function: {variable} is random and cannot be constrained"
                )),
                None => {}
            }
            return;
        }
        let sum = reader.sum(&place, &constraint.function, errors);
        let (lower, upper) = (lower - sum.constant, upper - sum.constant);
        let row = self.lp.row(name, lower, upper, &sum.terms);
        if !sum.random_constant.is_empty() || !sum.random_terms.is_empty() {
            self.rows.push(RandomRow {
                row,
                lower,
                upper,
                sum,
            });
        }
    }

    /// The largest number of changes that an opening makes.
    pub(super) fn changes_of_opening(&self) -> usize {
        let rows = self.rows.iter().map(|row| 1 + row.sum.random_terms.len());
        rows.sum::<usize>() + self.objective.random_terms.len() + 1
    }

    /// The changes that these values of the random variables make.
    pub(super) fn changes(
        &self,
        place: &str,
        support: &Entries<f64>,
        errors: &mut Errors,
    ) -> Vec<Change> {
        let mut given = vec![None; self.random.len()];
        for (name, value) in &support.0 {
            match self.random_numbers.get(name) {
                Some(number) => given[*number] = Some(*value),
                None => errors.push(format!(
                    "{place}.support: {name} is no random variable here"
                )),
            }
        }
        let mut values = Vec::with_capacity(self.random.len());
        for (name, value) in self.random.iter().zip(given) {
            if value.is_none() {
                errors.push(format!("{place}.support: {name} has no value"));
            }
            values.push(value.unwrap_or(0.0));
        }
        let mut changes = Vec::new();
        for random in &self.rows {
            let shift: f64 = shift(&random.sum, &values);
            if !random.sum.random_constant.is_empty() {
                changes.push(Change::RowBounds {
                    row: random.row,
                    lower: random.lower - shift,
                    upper: random.upper - shift,
                });
            }
            for (column, value) in coefficients(&random.sum, &values) {
                changes.push(Change::Coefficient {
                    row: random.row,
                    column,
                    value,
                });
            }
        }
        for (column, value) in coefficients(&self.objective, &values) {
            changes.push(Change::Cost { column, value });
        }
        if !self.objective.random_constant.is_empty() {
            let constant = self.objective.constant + shift(&self.objective, &values);
            changes.push(Change::Constant(constant));
        }
        changes
    }
}

/// The amount that random variables add to a sum's constant.
fn shift(sum: &Sum, values: &[f64]) -> f64 {
    let terms = sum.random_constant.iter();
    terms.map(|&(random, factor)| factor * values[random]).sum()
}

/// The columns whose coefficient is random, with its value.
fn coefficients(sum: &Sum, values: &[f64]) -> impl Iterator<Item = (ColumnId, f64)> {
    sum.random_terms.iter().map(|term| {
        let factors = term.factors.iter();
        let random = factors.map(|&(random, factor)| factor * values[random]);
        (
            term.column,
            sum_of(term.fixed.iter().copied().chain(random)),
        )
    })
}

impl Sum {
    /// Makes the coefficient of a column depend on a random variable.
    fn randomise(
        &mut self,
        places: &mut HashMap<ColumnId, usize>,
        column: ColumnId,
        factor: (usize, f64),
    ) {
        let at = *places.entry(column).or_insert_with(|| {
            self.random_terms.push(RandomTerm {
                column,
                fixed: Vec::new(),
                factors: Vec::new(),
            });
            self.random_terms.len() - 1
        });
        self.random_terms[at].factors.push(factor);
    }
}

impl<'s> SubproblemReader<'s> {
    /// Gives every variable its meaning: a column, or a random variable.
    fn declare(&mut self, from: &'s Subproblem, lp: &mut Template, errors: &mut Errors) {
        let random = &from.random_variables;
        for (number, name) in random.iter().enumerate() {
            if self.names.insert(name, Meaning::Random(number)).is_some() {
                errors.push(format!(
                    "{}.random_variables: {name} is given twice",
                    self.place
                ));
            }
        }
        let mut declared = HashSet::new();
        for variable in &from.model.variables {
            let name = variable.name.as_str();
            if !declared.insert(name) {
                errors.push(format!(
                    "{}.subproblem.variables: {name} is given twice",
                    self.place
                ));
            } else if !self.names.contains_key(name) {
                let column = lp.column(name, 0.0, f64::NEG_INFINITY, f64::INFINITY);
                self.names.insert(name, Meaning::Decision(column));
            }
        }
        for name in random
            .iter()
            .filter(|name| !declared.contains(name.as_str()))
        {
            errors.push(format!(
                "{}.random_variables: {name} is no variable of the subproblem",
                self.place
            ));
        }
        for (state, columns) in &from.state_variables.0 {
            let place = format!("{}.state_variables.{state}", self.place);
            let incoming = self.decision(&place, &columns.incoming, errors);
            let outgoing = self.decision(&place, &columns.outgoing, errors);
            if let (Some(incoming), Some(outgoing)) = (incoming, outgoing) {
                lp.state(state, incoming, outgoing);
                self.incoming.insert(incoming);
            }
        }
    }

    fn decision(&self, place: &str, name: &str, errors: &mut Errors) -> Option<ColumnId> {
        match self.meaning(place, name, errors)? {
            Meaning::Decision(column) => Some(column),
            Meaning::Random(_) => {
                errors.push(format!("{place}: {name} is random and cannot be a state"));
                None
            }
        }
    }

    fn meaning(&self, place: &str, name: &str, errors: &mut Errors) -> Option<Meaning> {
        let found = self.names.get(name).copied();
        if found.is_none() {
            errors.push(format!("{place}: there is no variable {name}"));
        }
        found
    }

    fn objective(&self, function: &Value, errors: &mut Errors) -> Sum {
        let place = format!("{}.subproblem.objective", self.place);
        match serde_path_to_error::deserialize::<_, Function>(function) {
            Ok(function) => self.sum(&place, &function, errors),
            Err(error) => {
                errors.push(format!(
                    "{place}.function.{}: {}",
                    error.path(),
                    error.inner()
                ));
                Sum::default()
            }
        }
    }

    fn sum(&self, place: &str, function: &Function, errors: &mut Errors) -> Sum {
        let mut sum = Sum::default();
        let one;
        let (terms, products, constant): (&[Term], &[Product], f64) = match function {
            Function::Variable { name } => {
                one = [Term {
                    variable: name.clone(),
                    coefficient: 1.0,
                }];
                (&one, &[], 0.0)
            }
            Function::Affine { terms, constant } => (terms, &[], *constant),
            Function::Quadratic {
                affine_terms,
                quadratic_terms,
                constant,
            } => (affine_terms, quadratic_terms, *constant),
        };
        sum.constant = constant;
        for term in terms {
            match self.meaning(place, &term.variable, errors) {
                Some(Meaning::Decision(column)) => sum.terms.push((column, term.coefficient)),
                Some(Meaning::Random(random)) => {
                    sum.random_constant.push((random, term.coefficient));
                }
                None => {}
            }
        }
        let mut places = HashMap::new();
        for product in products {
            let (one, other) = (&product.variable_1, &product.variable_2);
            let meanings = (
                self.meaning(place, one, errors),
                self.meaning(place, other, errors),
            );
            match meanings {
                (Some(Meaning::Decision(column)), Some(Meaning::Random(random)))
                | (Some(Meaning::Random(random)), Some(Meaning::Decision(column))) => {
                    sum.randomise(&mut places, column, (random, product.coefficient));
                }
                (None, _) | (_, None) => {}
                _ => errors.push(format!(
                    "{place}: the product of {one} and {other} is not linear; one of them must be random and the other not"
                )),
            }
        }
        for (column, value) in &sum.terms {
            if let Some(at) = places.get(column) {
                sum.random_terms[*at].fixed.push(*value);
            }
        }
        sum
    }
}
