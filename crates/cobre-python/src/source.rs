//! Sources of problems: a file, or a problem built in Python. The one place that loads either.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cobre_case::{Boundary, Case, Checked, Options, Scenarios};
use cobre_sddp::{
    Change, ColumnId, Draft, GivenStep, NodeId, Overrides, PlainTables, Problem, Risk, RowId,
    Sense, Settings, Step, Template, TemplateId,
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

/// The outcome at a node on a path: the number of the node, and changes of its program.
type GivenChanges = (usize, Vec<Changed>);

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
    /// The source of a terminal value: its path, and the stage there.
    boundary: Option<(PathBuf, Option<String>)>,
    paths: Option<FixedPaths>,
}

/// The paths that a policy is simulated on, as the caller gives them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FixedPaths {
    labels: Vec<String>,
    files: Vec<PathBuf>,
    /// By path, stage and plant.
    inflows: Option<Vec<Vec<Vec<f64>>>>,
    /// By path and stage.
    openings: Option<Vec<Vec<usize>>>,
    /// By path and stage of a built problem: the node, and what happens there.
    steps: Option<Vec<Vec<GivenChanges>>>,
}

impl FixedPaths {
    /// The scenarios of a case or a file.
    fn scenarios(&self) -> Option<Scenarios> {
        let inflows = self.inflows.as_ref().map(|values| Scenarios::Inflows {
            labels: self.labels.clone(),
            values: values.clone(),
        });
        let files = (!self.files.is_empty()).then(|| Scenarios::Files(self.files.clone()));
        inflows.or(files)
    }
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

    /// Refuses an output directory inside of a case.
    pub(crate) fn check_output(&self, output: Option<&Path>) -> PyResult<()> {
        let (ProblemSource::Path(case), Some(output)) = (&self.source, output) else {
            return Ok(());
        };
        match cobre_case::output_inside(case, output) {
            Some(problem) => Err(errors::invalid(&[problem])),
            None => Ok(()),
        }
    }

    /// The settings that it asks for, if its files make sense. A file's problem is not built.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<Checked> {
        if let ProblemSource::Path(path) = &self.source {
            let options = self.options()?;
            let overrides = self.config(path);
            let checked = py.detach(|| cobre_case::check(path, &options, overrides.as_deref()));
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
            scenarios: self.paths.as_ref().and_then(FixedPaths::scenarios),
        })
    }

    /// The terminal value of the caller.
    fn boundary(&self) -> Option<Boundary> {
        self.boundary
            .clone()
            .map(|(path, source_stage)| Boundary { path, source_stage })
    }

    /// The overrides of a case's `config.json`, with the terminal value among them.
    fn config(&self, path: &Path) -> Option<String> {
        match self.boundary().filter(|_| path.is_dir()) {
            Some(boundary) => Some(boundary.merged(self.overrides.as_deref())),
            None => self.overrides.clone(),
        }
    }

    /// The problem, if it makes sense, and how it wants to be solved.
    pub(crate) fn load(self, py: Python<'_>) -> PyResult<Case> {
        let (options, boundary) = (self.options()?, self.boundary());
        let config = match &self.source {
            ProblemSource::Path(path) => self.config(path),
            ProblemSource::Built(_) => None,
        };
        let bounded = |mut problem: Problem| {
            let applied = boundary.as_ref().map(|own| own.apply(&mut problem));
            let applied = applied.transpose().map(|_| problem);
            applied.map_err(|findings| errors::invalid(&findings))
        };
        let mut case = py.detach(|| match self.source {
            ProblemSource::Path(path) => {
                let case = cobre_case::load_with(&path, &options, config.as_deref());
                let mut case = case.map_err(|error| errors::of(&error))?;
                if !path.is_dir() {
                    case.problem = bounded(case.problem)?;
                }
                Ok(case)
            }
            ProblemSource::Built(_) if options.scenarios.is_some() => {
                let finding =
                    "paths: a Problem has no inflows and no files; give openings by path and stage, or pairs of node and Opening";
                Err(errors::invalid(&[finding.to_owned()]))
            }
            ProblemSource::Built(built) => {
                let risk = options.risk.unwrap_or(Risk::EXPECTATION);
                let problem = built.problem(options.bound, risk, self.paths.as_ref())?;
                let problem = bounded(problem)?;
                Ok(Case {
                    kind: "problem",
                    tables: Arc::new(PlainTables::new(&problem)),
                    problem,
                    settings: Overrides::default(),
                    warnings: Vec::new(),
                })
            }
        })?;
        if let Some(paths) = self.paths
            && let Some(openings) = &paths.openings
        {
            let given = case.problem.give_openings(openings, &paths.labels);
            given.map_err(|problem| errors::invalid(&[format!("paths: {problem}")]))?;
        }
        Ok(case)
    }
}

impl Built {
    fn problem(
        self,
        bound: Option<f64>,
        risk: Risk,
        paths: Option<&FixedPaths>,
    ) -> PyResult<Problem> {
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
        let of_node: Vec<usize> = self.nodes.iter().map(|node| node.program).collect();
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
        if let Some(paths) = paths {
            for (number, path) in paths.steps.iter().flatten().enumerate() {
                let steps = path.iter().map(|(node, changes)| {
                    let program = &programs[of_node[*node]];
                    let changes = changes.iter().map(|change| program.change(change));
                    GivenStep::Values(Step {
                        node: nodes[*node],
                        changes: changes.collect(),
                    })
                });
                let label = paths.labels.get(number).cloned();
                let label = label.unwrap_or_else(|| (number + 1).to_string());
                draft.given(label, steps.collect());
            }
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

impl Placed {
    /// A change of its numbers.
    fn change(&self, (kind, at, column, one, other): &Changed) -> Change {
        match kind.as_str() {
            "row" => Change::RowBounds {
                row: self.rows[*at],
                lower: *one,
                upper: *other,
            },
            "column" => Change::ColumnBounds {
                column: self.columns[*at],
                lower: *one,
                upper: *other,
            },
            "cost" => Change::Cost {
                column: self.columns[*at],
                value: *one,
            },
            "coefficient" => Change::Coefficient {
                row: self.rows[*at],
                column: self.columns[*column],
                value: *one,
            },
            _ => Change::Constant(*one),
        }
    }
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
            let changes = changes.iter().map(|change| program.change(change));
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
    settings: Option<CaseSettings>,
    warnings: Vec<String>,
}

/// Settings of training and simulation in a case.
#[derive(IntoPyObject)]
struct CaseSettings {
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
            CaseSettings {
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
