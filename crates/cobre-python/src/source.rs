//! Sources of problems: a file, or a problem built in Python. The one place that loads either.

use std::path::PathBuf;
use std::sync::Arc;

use cobre_case::{Case, Checked, Options};
use cobre_sddp::{
    Change, ColumnId, Draft, NodeId, Overrides, PlainTables, Problem, Risk, RowId, Sense, Settings,
    Template, TemplateId,
};
use pyo3::prelude::*;

use crate::errors;

/// Where a problem comes from.
#[derive(FromPyObject)]
pub(crate) enum ProblemSource {
    /// The contents of a `cobre.Problem`.
    Built(Built),
    /// A file or a directory.
    Path(PathBuf),
}

/// A problem as `cobre.Problem` hands it over: columns, rows, programs and nodes by number.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Built {
    sense: String,
    bound: f64,
    states: Vec<(String, f64)>,
    programs: Vec<GivenProgram>,
    nodes: Vec<Node>,
    start: Vec<(usize, f64)>,
    edges: Vec<(usize, usize, f64)>,
}

/// Name, lower and upper bound, and terms by column.
type Row = (String, f64, f64, Vec<(usize, f64)>);
/// Kind, column or row, column, number, number.
type Changed = (String, usize, usize, f64, f64);

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenProgram {
    columns: Vec<(String, f64, f64, f64)>,
    rows: Vec<Row>,
    states: Vec<(String, usize, usize)>,
    constant: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Node {
    name: String,
    program: usize,
    /// Probability, and what changes.
    openings: Vec<(f64, Vec<Changed>)>,
}

/// Options of the caller that change the problem of a file.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    source: ProblemSource,
    bound: Option<f64>,
    risk: Option<String>,
    /// Overrides of values in a case's `config.json`, as JSON.
    overrides: Option<String>,
}

/// Parses a setting; the error names it.
pub(crate) fn parse<T: std::str::FromStr<Err = String>>(name: &str, text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|expected| errors::invalid(&[format!("{name}={text:?}: {expected}")]))
}

impl Given {
    /// Where it comes from.
    pub(crate) fn name(&self) -> String {
        match &self.source {
            ProblemSource::Path(path) => path.display().to_string(),
            ProblemSource::Built(_) => "built in Python".to_owned(),
        }
    }

    /// The settings that it asks for, if its files make sense. A file's problem is not built.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<Checked> {
        if let ProblemSource::Path(path) = &self.source {
            let options = self.options()?;
            let checked =
                py.detach(|| cobre_case::check(path, &options, self.overrides.as_deref()));
            return checked.map_err(|error| errors::of(&error));
        }
        let case = self.load(py)?;
        Ok(Checked {
            risk_neutral: case.problem.is_risk_neutral(),
            settings: case.settings,
        })
    }

    fn options(&self) -> PyResult<Options> {
        let risk = self.risk.as_deref();
        Ok(Options {
            bound: self.bound,
            risk: risk.map(|risk| parse("risk", risk)).transpose()?,
        })
    }

    /// The problem, if it makes sense, and how it wants to be solved.
    pub(crate) fn load(self, py: Python<'_>) -> PyResult<Case> {
        let options = self.options()?;
        py.detach(|| match self.source {
            ProblemSource::Path(path) => {
                cobre_case::load_with(&path, &options, self.overrides.as_deref())
                    .map_err(|error| errors::of(&error))
            }
            ProblemSource::Built(built) => {
                let problem =
                    built.problem(options.bound, options.risk.unwrap_or(Risk::EXPECTATION))?;
                Ok(Case {
                    kind: "problem",
                    tables: Arc::new(PlainTables::new(&problem)),
                    problem,
                    settings: Overrides::default(),
                    warnings: Vec::new(),
                })
            }
        })
    }
}

impl Built {
    fn problem(self, bound: Option<f64>, risk: Risk) -> PyResult<Problem> {
        let sense = match self.sense.as_str() {
            "min" => Sense::Minimize,
            "max" => Sense::Maximize,
            other => {
                let finding = format!("sense={other:?}: \"min\" or \"max\" is expected");
                return Err(errors::invalid(&[finding]));
            }
        };
        let mut draft = Draft::new(sense, bound.unwrap_or(self.bound));
        draft.risk(risk);
        for (name, initial) in self.states {
            draft.state(name, initial);
        }
        let programs: Vec<Placed> = self
            .programs
            .into_iter()
            .map(|program| program.place(&mut draft))
            .collect();
        let nodes: Vec<NodeId> = self
            .nodes
            .into_iter()
            .map(|node| node.place(&mut draft, &programs))
            .collect();
        for (to, probability) in self.start {
            draft.start(nodes[to], probability);
        }
        for (from, to, probability) in self.edges {
            draft.edge(nodes[from], nodes[to], probability);
        }
        let findings = |found: cobre_sddp::ProblemErrors| {
            let texts: Vec<String> = found.0.iter().map(ToString::to_string).collect();
            errors::invalid(&texts)
        };
        draft.build().map_err(findings)
    }
}

/// A program of a draft, with what the numbers in it stand for.
struct Placed {
    id: TemplateId,
    columns: Vec<ColumnId>,
    rows: Vec<RowId>,
}

impl GivenProgram {
    fn place(self, draft: &mut Draft) -> Placed {
        let mut template = Template::new();
        let columns: Vec<ColumnId> = self
            .columns
            .into_iter()
            .map(|(name, cost, lower, upper)| template.column(name, cost, lower, upper))
            .collect();
        let rows = self.rows.into_iter().map(|(name, lower, upper, terms)| {
            let terms: Vec<(ColumnId, f64)> = terms
                .into_iter()
                .map(|(column, value)| (columns[column], value))
                .collect();
            template.row(name, lower, upper, &terms)
        });
        let rows = rows.collect();
        for (name, incoming, outgoing) in self.states {
            template.state(name, columns[incoming], columns[outgoing]);
        }
        template.add_constant(self.constant);
        Placed {
            id: draft.template(template),
            columns,
            rows,
        }
    }
}

impl Node {
    fn place(self, draft: &mut Draft, programs: &[Placed]) -> NodeId {
        let program = &programs[self.program];
        let id = draft.node(self.name, program.id);
        for (probability, changes) in self.openings {
            let changes =
                changes
                    .into_iter()
                    .map(|(kind, at, column, one, other)| match kind.as_str() {
                        "row" => Change::RowBounds {
                            row: program.rows[at],
                            lower: one,
                            upper: other,
                        },
                        "column" => Change::ColumnBounds {
                            column: program.columns[at],
                            lower: one,
                            upper: other,
                        },
                        "cost" => Change::Cost {
                            column: program.columns[at],
                            value: one,
                        },
                        "coefficient" => Change::Coefficient {
                            row: program.rows[at],
                            column: program.columns[column],
                            value: one,
                        },
                        _ => Change::Constant(one),
                    });
            draft.opening(id, probability, changes.collect());
        }
        id
    }
}

/// The description of a problem by `cobre.load`.
#[derive(IntoPyObject)]
pub(crate) struct Described {
    sense: &'static str,
    risk: String,
    stages: usize,
    columns: usize,
    rows: usize,
    openings: usize,
    states: Vec<(String, f64)>,
    nodes: Vec<DescribedNode>,
    start: Vec<(String, f64)>,
    validation_scenarios: usize,
    settings: Option<Asked>,
    warnings: Vec<String>,
}

/// Settings of training and simulation in a case.
#[derive(IntoPyObject)]
struct Asked {
    forward_passes: usize,
    seed: u64,
    simulate: usize,
}

#[derive(IntoPyObject)]
struct DescribedNode {
    name: String,
    columns: Vec<String>,
    rows: Vec<String>,
    probabilities: Vec<f64>,
    successors: Vec<(String, f64)>,
}

/// Loads a problem and tells what is in it.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, given: Given) -> PyResult<Described> {
    let Case {
        problem,
        settings,
        warnings,
        ..
    } = given.load(py)?;
    let summary = problem.summary();
    let steps = |edges: &[cobre_sddp::Edge]| {
        let named = edges
            .iter()
            .map(|edge| (problem.nodes[edge.node].name.clone(), edge.probability));
        named.collect()
    };
    let nodes = problem.nodes.iter().enumerate().map(|(number, node)| {
        let template = problem.template(number);
        let columns = template.columns.iter();
        DescribedNode {
            name: node.name.clone(),
            columns: columns.map(|column| column.name.clone()).collect(),
            rows: template.rows.iter().map(|row| row.name.clone()).collect(),
            probabilities: node.probabilities.clone(),
            successors: steps(problem.graph.successors(number)),
        }
    });
    Ok(Described {
        sense: problem.sense.name(),
        risk: problem.risk_name(),
        stages: summary.stages,
        columns: summary.columns,
        rows: summary.rows,
        openings: summary.openings,
        states: problem
            .states
            .iter()
            .map(|state| (state.name.clone(), state.initial))
            .collect(),
        nodes: nodes.collect(),
        start: steps(&problem.graph.root),
        validation_scenarios: problem.validation.len(),
        settings: (settings != Overrides::default()).then(|| {
            let settings = Settings::default().with(settings);
            Asked {
                forward_passes: settings.passes.get(),
                seed: settings.seed,
                simulate: settings.simulate,
            }
        }),
        warnings: warnings.iter().map(ToString::to_string).collect(),
    })
}

/// The number of processors that this process can use.
#[pyfunction]
pub(crate) fn usable_processors() -> usize {
    cobre_comm::cpus::usable()
}
