//! A policy apart from the run that made it: what its files hold.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fingerprint::Fingerprint;
use crate::problem::{LARGEST_OF_CUT, Problem};
use crate::settings::MAX_PASSES;

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
    /// Checks that its parts belong together and that every number in it can be meant: whoever hands in a policy, a
    /// file or a caller.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let (nodes, states) = (&self.manifest.nodes, self.manifest.states.len());
        if self.cuts.len() != nodes.len() {
            let count = self.cuts.len();
            return Err(format!(
                "it has the cuts of {count} nodes, not of {}",
                nodes.len()
            ));
        }
        if !(1..=MAX_PASSES).contains(&self.manifest.forward_passes) {
            let passes = self.manifest.forward_passes;
            return Err(format!(
                "forward_passes is {passes}; a whole number from 1 to {MAX_PASSES} is expected"
            ));
        }
        let found: usize = self.cuts.iter().map(Vec::len).sum();
        if found != self.manifest.cuts {
            let cuts = self.manifest.cuts;
            return Err(format!("it has {found} cuts, and its manifest says {cuts}"));
        }
        for (node, cuts) in nodes.iter().zip(&self.cuts) {
            for (number, cut) in cuts.iter().enumerate() {
                let wrong = |what: String| Err(format!("cut {} of node {node} {what}", number + 1));
                if cut.gradient.len() != states {
                    return wrong(format!(
                        "has {} slopes for {states} states",
                        cut.gradient.len()
                    ));
                }
                let mut numbers = cut.gradient.iter().chain([&cut.intercept]);
                if let Some(number) = numbers.find(|number| !number.is_finite()) {
                    return wrong(format!("has {number} where a finite number is needed"));
                }
                let mut numbers = cut.gradient.iter().chain([&cut.intercept]);
                if let Some(number) = numbers.find(|number| number.abs() > LARGEST_OF_CUT) {
                    return wrong(format!("has {number:?}, beyond ±{LARGEST_OF_CUT:e}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that this policy is one of `problem`.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn fits(&self, problem: &Problem) -> Result<(), String> {
        self.check()?;
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

    /// The slot of the cut that a pass of an iteration has made, both from 1; none if there is no such pass.
    pub(crate) fn slot(&self, iteration: i64, pass: i64) -> Option<u32> {
        let passes = u32::try_from(self.forward_passes).ok()?;
        let (iteration, pass) = (u32::try_from(iteration).ok()?, u32::try_from(pass).ok()?);
        let before = iteration.checked_sub(1)?.checked_mul(passes)?;
        let pass = pass.checked_sub(1).filter(|pass| *pass < passes)?;
        before.checked_add(pass)
    }

    /// The iteration and the pass that have made a cut, both from 1.
    pub(crate) fn iteration_and_pass(&self, slot: u32) -> (i64, i64) {
        let passes = i64::try_from(self.forward_passes)
            .unwrap_or(i64::MAX)
            .max(1);
        let slot = i64::from(slot);
        (slot / passes + 1, slot % passes + 1)
    }
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
