//! The paths of a problem in the making: validation scenarios and given ones.

use super::Change;
use crate::problem::ValidationStep;
use crate::problem::paths::GivenPath;

/// A path in the making: steps by node, with the opening or the changes there.
#[derive(Debug)]
pub(super) struct DraftPath {
    /// The place that errors name.
    pub(super) place: String,
    /// The name of a given path; none of a validation scenario.
    pub(super) label: Option<String>,
    pub(super) steps: Vec<(usize, Option<usize>, Vec<Change>)>,
}

impl DraftPath {
    /// The steps with changes, by node.
    pub(super) fn changes(&self) -> impl Iterator<Item = (usize, &[Change])> {
        let own = self.steps.iter().filter(|step| step.1.is_none());
        own.map(|(node, _, changes)| (*node, changes.as_slice()))
    }
}

/// The paths while nodes get their values: each step with changes is one more opening of its node.
pub(super) struct ValidationPaths<'a> {
    /// By node: the path, the number of its step, and the changes there.
    steps: Vec<Vec<(usize, usize, &'a [Change])>>,
    /// The paths as a problem has them, with the names of given ones.
    placed: Vec<(Option<&'a str>, Vec<ValidationStep>)>,
}

impl<'a> ValidationPaths<'a> {
    pub(super) fn new(paths: &'a [DraftPath], nodes: usize) -> Self {
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
    pub(super) fn changes(&self, node: usize) -> impl Iterator<Item = &'a [Change]> + Clone {
        self.steps[node].iter().map(|(_, _, changes)| *changes)
    }

    /// Notes that the steps at a node come after its `openings` openings.
    pub(super) fn place(&mut self, node: usize, openings: usize) {
        for (place, &(path, at, _)) in self.steps[node].iter().enumerate() {
            let opening = openings + place;
            self.placed[path].1[at] = ValidationStep { node, opening };
        }
    }

    /// The validation scenarios, and the given paths.
    pub(super) fn placed(self) -> (Vec<Vec<ValidationStep>>, Vec<GivenPath>) {
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
