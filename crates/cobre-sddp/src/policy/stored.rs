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
    /// The first day of each node's stage, as YYYY-MM-DD; empty if stages have no dates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_dates: Vec<String>,
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
    /// Iteration × passes + pass. In a cyclic graph a pass can make several cuts of a node.
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
        let manifest = &self.manifest;
        manifest.check_counts(self.cuts.iter().map(Vec::len))?;
        let mut nodes = self.cuts.iter().enumerate();
        nodes.try_for_each(|(node, cuts)| manifest.check_cuts(node, cuts))
    }

    /// Checks that this policy is one of `problem`.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn fits(&self, problem: &Problem) -> Result<(), String> {
        self.check()?;
        self.manifest.fits(problem)?;
        let mut nodes = self.cuts.iter().enumerate();
        nodes.try_for_each(|(node, cuts)| terminal_fits(problem, node, cuts))
    }

    /// The fingerprint that its names and cuts have.
    pub fn sha256(&self) -> String {
        let mut fingerprint = PolicyHasher::of(&self.manifest);
        for cuts in &self.cuts {
            fingerprint.node_cuts(cuts);
        }
        fingerprint.finish()
    }
}

/// Checks that the cuts of a node that nothing follows are its terminal value in `problem`.
pub(super) fn terminal_fits(
    problem: &Problem,
    node: usize,
    cuts: &[StoredCut],
) -> Result<(), String> {
    if problem.has_successors(node) {
        return Ok(());
    }
    let (name, terminal) = (&problem.nodes[node].name, &problem.nodes[node].terminal);
    if !cuts.is_empty() && terminal.is_empty() {
        return Err(format!("it has cuts at node {name}, which nothing follows"));
    }
    let pairs = cuts.iter().zip(terminal);
    let mut pairs =
        pairs.map(|(cut, own)| cut.intercept == own.intercept && cut.gradient == own.gradient);
    if cuts.len() != terminal.len() || !pairs.all(|same| same) {
        return Err(format!(
            "its terminal value after node {name} is another than that of the problem"
        ));
    }
    Ok(())
}

impl Manifest {
    /// The version of the layout that this version writes and reads.
    pub const FORMAT: u32 = 1;

    /// Checks that a policy with so many cuts of each node is the one that this is the manifest of.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub(crate) fn check_counts(
        &self,
        counts: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), String> {
        let (nodes, passes) = (counts.len(), self.forward_passes);
        if nodes != self.nodes.len() {
            let own = self.nodes.len();
            return Err(format!("it has the cuts of {nodes} nodes, not of {own}"));
        }
        if !(1..=MAX_PASSES).contains(&passes) {
            return Err(format!(
                "forward_passes is {passes}; a whole number from 1 to {MAX_PASSES} is expected"
            ));
        }
        let (found, cuts) = (counts.sum::<usize>(), self.cuts);
        if found != cuts {
            return Err(format!("it has {found} cuts, and its manifest says {cuts}"));
        }
        Ok(())
    }

    /// Checks that every number of the cuts of a node can be meant.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub(crate) fn check_cuts(&self, node: usize, cuts: &[StoredCut]) -> Result<(), String> {
        let (node, states) = (&self.nodes[node], self.states.len());
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
        Ok(())
    }

    /// Checks that this is the manifest of a policy of `problem`.
    ///
    /// # Errors
    /// The first difference, in words.
    pub(super) fn fits(&self, problem: &Problem) -> Result<(), String> {
        let differs = |what: &str, here: &str, there: &str| {
            Err(format!("its {what} is {here}, that of the problem {there}"))
        };
        if self.sense != problem.sense.name() {
            return differs("sense", &self.sense, problem.sense.name());
        }
        let states: Vec<&str> = problem
            .states
            .iter()
            .map(|state| state.name.as_str())
            .collect();
        let own: Vec<&str> = self
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
        let pairs = self.nodes.iter().zip(&nodes);
        if self.nodes.len() != nodes.len() || pairs.clone().any(|(own, node)| own != node) {
            return differs("list of nodes", &self.nodes.join(", "), &nodes.join(", "));
        }
        Ok(())
    }

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
pub(crate) struct PolicyHasher(Sha256);

impl PolicyHasher {
    /// One with the names of a policy.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let names = manifest.states.iter().map(|state| state.name.as_str());
        let nodes = manifest.nodes.iter().map(String::as_str);
        Self::new(&manifest.sense, names.chain(nodes))
    }

    /// Adds the cuts of the next node.
    pub(crate) fn node_cuts(&mut self, cuts: &[StoredCut]) {
        self.node(cuts.len());
        for cut in cuts {
            self.cut(cut.slot, cut.intercept, &cut.gradient);
        }
    }

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

    pub(crate) fn finish(self) -> String {
        Fingerprint::from(self.0).to_string()
    }
}
