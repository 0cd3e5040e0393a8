//! A policy apart from the run that made it: what its files hold.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fingerprint::Fingerprint;
use crate::problem::Problem;

/// The manifest of a policy: the problem and the run that it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the files' layout.
    pub format: u32,
    /// The modeller's sense: `min` or `max`.
    pub sense: String,
    /// The risk measure.
    pub risk: String,
    /// The seed.
    pub seed: u64,
    /// Forward passes per iteration.
    pub forward_passes: usize,
    /// Iterations of training.
    pub iterations: usize,
    /// The last bound.
    pub bound: f64,
    /// The state variables, in order.
    pub states: Vec<InitialState>,
    /// The nodes, in order.
    pub nodes: Vec<String>,
    /// Cuts of all nodes.
    pub cuts: usize,
    /// The fingerprint: names, and every bit of the cuts.
    pub sha256: String,
}

/// A state variable of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitialState {
    /// The modeller's name.
    pub name: String,
    /// Its value before the first stage.
    pub initial: f64,
}

/// A cut of a policy, to be minimised: cost to go ≥ intercept + gradient · state.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCut {
    /// Iteration × passes + pass.
    pub slot: u32,
    /// The value at state zero.
    pub intercept: f64,
    /// The gradient by state.
    pub gradient: Vec<f64>,
}

/// A policy: cuts by node, in the order of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The manifest.
    pub manifest: Manifest,
    /// One entry per node.
    pub cuts: Vec<Vec<StoredCut>>,
}

impl Policy {
    /// Checks that this policy is one of `problem`.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn fits(&self, problem: &Problem) -> Result<(), String> {
        let manifest = &self.manifest;
        let differs = |what: &str, here: &str, there: &str| {
            Err(format!("its {what} is {here}, that of the problem {there}"))
        };
        if manifest.sense != problem.sense.name() {
            return differs("sense", &manifest.sense, problem.sense.name());
        }
        let states: Vec<&str> = problem
            .states
            .iter()
            .map(|state| state.name.as_str())
            .collect();
        let own: Vec<&str> = manifest
            .states
            .iter()
            .map(|state| state.name.as_str())
            .collect();
        if own != states {
            return differs("list of states", &own.join(", "), &states.join(", "));
        }
        let nodes: Vec<&str> = problem
            .nodes
            .iter()
            .map(|node| node.name.as_str())
            .collect();
        let pairs = manifest.nodes.iter().zip(&nodes);
        if manifest.nodes.len() != nodes.len() || pairs.clone().any(|(own, node)| own != node) {
            return differs(
                "list of nodes",
                &manifest.nodes.join(", "),
                &nodes.join(", "),
            );
        }
        let strange = self.cuts.iter().zip(&nodes).enumerate();
        for (number, (cuts, name)) in strange {
            if !cuts.is_empty() && !problem.has_future(number) {
                return Err(format!("it has cuts at node {name}, which nothing follows"));
            }
        }
        Ok(())
    }

    /// The fingerprint that its names and cuts have.
    pub fn sha256(&self) -> String {
        let names = self.manifest.states.iter().map(|state| state.name.as_str());
        let nodes = self.manifest.nodes.iter().map(String::as_str);
        let mut fingerprint = PolicyHasher::new(&self.manifest.sense, names.chain(nodes));
        for cuts in &self.cuts {
            fingerprint.node(cuts.len());
            for cut in cuts {
                fingerprint.cut(cut.slot, cut.intercept, &cut.gradient);
            }
        }
        fingerprint.finish()
    }
}

impl Manifest {
    /// The version of the layout that this version writes and reads.
    pub const FORMAT: u32 = 1;
}

/// A fingerprint of a policy in the making: names, and every bit of the cuts in use.
pub(super) struct PolicyHasher(Sha256);

impl PolicyHasher {
    pub(super) fn new<'n>(sense: &'n str, names: impl Iterator<Item = &'n str>) -> Self {
        let mut hasher = Sha256::new();
        for text in std::iter::once(sense).chain(names) {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Self(hasher)
    }

    /// Begins the cuts of the next node.
    pub(super) fn node(&mut self, cuts: usize) {
        self.0.update((cuts as u64).to_le_bytes());
    }

    pub(super) fn cut(&mut self, slot: u32, intercept: f64, gradient: &[f64]) {
        self.0.update(slot.to_le_bytes());
        for number in std::iter::once(&intercept).chain(gradient) {
            self.0.update(number.to_bits().to_le_bytes());
        }
    }

    pub(super) fn finish(self) -> String {
        Fingerprint::from(self.0).to_string()
    }
}
