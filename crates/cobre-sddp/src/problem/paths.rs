//! Paths that are not drawn from openings: given by the modeller, or by a source of values.

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::draft::Change;
use super::{Node, Problem, ValidationStep};
use crate::noise::Purpose;

/// A stage of a path at which values are asked for. Values are a function of it alone, so paths have the same bits on
/// any ranks and threads, and after a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathPoint {
    /// The seed of the run.
    pub seed: u64,
    /// Training, or simulation.
    pub purpose: Purpose,
    /// The number of the path, from 0: forward passes count through all iterations.
    pub path: usize,
    /// The place of the stage on the path, from 0.
    pub stage: usize,
    /// The node that the path visits there.
    pub node: usize,
    /// The opening that was drawn there.
    pub opening: usize,
}

/// A source of the values on paths.
pub trait PathSource: Debug + Send + Sync {
    /// The kind of the paths, in one word of results.
    fn kind(&self) -> &str;

    /// The number of different paths; `None` if there are as many as are asked for.
    fn count(&self) -> Option<usize>;

    /// The modeller's name of a path; empty if it has none.
    fn label(&self, seed: u64, purpose: Purpose, path: usize) -> String;

    /// The changes of the template there; a number that no opening changes is in a [range](super::Draft::range) of the
    /// node.
    fn changes(&self, at: &PathPoint) -> Vec<Change>;

    /// The data that paths depend on, in a form that differs if they do.
    fn identity(&self) -> String;
}

/// The sources of the paths of forward passes and of simulated paths; openings where there is none.
#[derive(Debug, Clone, Default)]
pub struct PathSources {
    /// The source of forward passes.
    pub training: Option<Arc<dyn PathSource>>,
    /// The source of simulated paths.
    pub simulation: Option<Arc<dyn PathSource>>,
}

impl PathSources {
    /// The source of paths of a purpose.
    pub fn of(&self, purpose: Purpose) -> Option<&dyn PathSource> {
        match purpose {
            Purpose::Training => self.training.as_deref(),
            _ => self.simulation.as_deref(),
        }
    }
}

/// The identity of the forward passes, which training depends on; nothing where they are drawn from openings.
impl Serialize for PathSources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.training {
            Some(source) => serializer.serialize_str(&source.identity()),
            None => serializer.serialize_unit(),
        }
    }
}

/// A path that the modeller gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPath {
    /// Its name; may be empty.
    pub label: String,
    /// Its steps.
    pub steps: Vec<ValidationStep>,
}

impl Problem {
    /// Gives paths by their openings, by path and stage from 0, with their names; numbers where there are none.
    ///
    /// # Errors
    /// A problem with a choice of nodes, a path of another length, and an opening that is none.
    pub fn give_openings(&mut self, paths: &[Vec<usize>], labels: &[String]) -> Result<(), String> {
        let mut nodes = Vec::new();
        let mut edges = &self.graph.root[..];
        while let [edge] = edges {
            nodes.push(edge.node);
            edges = self.graph.successors(edge.node);
        }
        if !edges.is_empty() {
            return Err("a stage has several nodes: openings alone are no path".to_owned());
        }
        let mut given = Vec::with_capacity(paths.len());
        for (number, path) in paths.iter().enumerate() {
            let name = number + 1;
            if path.len() != nodes.len() {
                let (found, stages) = (path.len(), nodes.len());
                return Err(format!(
                    "path {name} has {found} openings for {stages} stages"
                ));
            }
            let mut steps = Vec::with_capacity(nodes.len());
            for (&node, &opening) in nodes.iter().zip(path) {
                let Node {
                    name: stage,
                    probabilities,
                    ..
                } = &self.nodes[node];
                let last = probabilities.len() - 1;
                if opening > last {
                    return Err(format!(
                        "path {name}, node {stage}: there is no opening {opening}; they are 0 to {last}"
                    ));
                }
                steps.push(ValidationStep { node, opening });
            }
            let label = labels
                .get(number)
                .cloned()
                .unwrap_or_else(|| name.to_string());
            given.push(GivenPath { label, steps });
        }
        self.given = given;
        Ok(())
    }

    /// The number of simulated paths where `asked` are asked for.
    pub fn simulated_paths(&self, asked: usize) -> usize {
        if !self.given.is_empty() {
            return asked.min(self.given.len());
        }
        let source = self.paths.simulation.as_ref();
        let count = source.and_then(|source| source.count());
        count.map_or(asked, |count| asked.min(count))
    }

    /// The kind of the paths of a purpose: that of their source.
    pub fn path_kind(&self, purpose: Purpose) -> Option<&str> {
        if purpose == Purpose::Simulation && !self.given.is_empty() {
            return Some("given");
        }
        self.paths.of(purpose).map(PathSource::kind)
    }

    /// The name of a simulated path; empty if it has none.
    pub(crate) fn path_label(&self, seed: u64, purpose: Purpose, path: usize) -> String {
        if purpose == Purpose::Simulation
            && let Some(given) = self.given.get(path)
        {
            return given.label.clone();
        }
        let source = self.paths.of(purpose);
        source.map_or(String::new(), |source| source.label(seed, purpose, path))
    }

    /// The values at a point of a path, in place of those of an opening.
    pub(crate) fn values_at(&self, source: &dyn PathSource, at: &PathPoint) -> Vec<f64> {
        let places = &self.nodes[at.node].places;
        let mut values = Vec::with_capacity(places.width());
        let changes = source.changes(at);
        places.values(
            self.template(at.node),
            &changes,
            self.sense.sign(),
            &mut values,
        );
        values
    }
}
