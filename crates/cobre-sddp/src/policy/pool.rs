//! All cuts, and those of each node that are in use.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cobre_comm::CommError;
use serde::{Deserialize, Serialize};

use super::cuts::{Cuts, record_width};
use super::records::CutRecords;
use super::selection::{Selection, SelectionRule, SelectionState};
use super::stored::{Policy, PolicyHasher, StoredCut};
use crate::problem::{LARGEST_OF_CUT, Problem};
use crate::ranks::{Backend, Ranks};

/// A cut to be put into the pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewCut {
    /// The forward pass whose trial point it was made at.
    pub pass: usize,
    /// The node whose cost to go it is below.
    pub node: usize,
    /// The value at state zero.
    pub intercept: f64,
    /// The gradient by state.
    pub gradient: Vec<f64>,
    /// The trial point.
    pub point: Vec<f64>,
}

/// The cuts of a pool as they were put in, by level and then by slot.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedCuts {
    /// The node of each cut; `None` where a pass was not at the level.
    nodes: Vec<Vec<Option<u32>>>,
    /// Their numbers.
    records: Vec<Numbers>,
}

impl SavedCuts {
    /// Checks that cuts that were read belong to so many iterations on this problem.
    pub(crate) fn fits(&self, problem: &Problem, passes: usize, iterations: usize) -> bool {
        let width = record_width(problem.states.len());
        let depth = problem.graph.depth();
        let of_level =
            |(level, (nodes, Numbers(records))): (usize, (&Vec<Option<u32>>, &Numbers))| {
                // A level that has never had cuts has no records.
                let there = records.len() / width;
                let is_cut = |(slot, node): (usize, &Option<u32>)| {
                    node.is_none_or(|node| {
                        let node = node as usize;
                        slot < there
                            && node < problem.nodes.len()
                            && problem.graph.level(node) == level
                            && problem.has_future(node)
                    })
                };
                nodes.len() == iterations * passes
                    && records.len().is_multiple_of(width)
                    && there <= nodes.len()
                    && nodes.iter().enumerate().all(is_cut)
                    && records.iter().all(|number| number.abs() <= LARGEST_OF_CUT)
            };
        let mut levels = self.nodes.iter().zip(&self.records).enumerate();
        self.nodes.len() == depth && self.records.len() == depth && levels.all(of_level)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Numbers(#[serde(with = "crate::packing")] Vec<f64>);

/// The cuts of one node.
#[derive(Debug, Default)]
struct NodeCuts {
    /// All that were put in.
    all: Vec<u32>,
    /// In use, in the order of rows.
    used: Vec<u32>,
    /// The number of these that were given before training: they stay.
    given: usize,
    selection_state: SelectionState,
    /// Slots of different cuts by the hash of their numbers.
    known: HashMap<u64, Vec<u32>>,
}

/// All cuts of a policy. Cuts of one level of the graph share slots: the slot of a cut is
/// iteration × passes + pass, whichever node of the level the pass has visited. Cuts that were given before
/// training come first, as if earlier iterations had made them.
pub(crate) struct CutPool<C: Backend> {
    passes: usize,
    selection: Selection,
    /// Iterations whose slots hold the cuts that were given before training.
    given: usize,
    records: CutRecords<C>,
    nodes: Vec<NodeCuts>,
    /// A hash of all cuts in the order in which they came, and of how many each left in use.
    hash: u64,
}

impl<C: Backend> CutPool<C> {
    /// A pool without cuts, for this many passes per iteration.
    pub fn new(problem: &Problem, passes: usize, selection: Selection) -> Self {
        Self {
            passes,
            selection,
            given: 0,
            records: CutRecords::new(problem, passes),
            nodes: problem.nodes.iter().map(|_| NodeCuts::default()).collect(),
            hash: 0,
        }
    }

    /// The cuts in use at `node`.
    pub fn cuts<'a>(&'a self, problem: &'a Problem, node: usize) -> Cuts<'a> {
        self.view(problem, node, &self.nodes[node].used)
    }

    fn view<'a>(&'a self, problem: &'a Problem, node: usize, slots: &'a [u32]) -> Cuts<'a> {
        let place = (self.records.layout(), problem.graph.level(node));
        let states = &problem.template(node).states;
        Cuts::new(slots, place, self.records.segments(), states)
    }

    /// Cuts in use, over all nodes.
    pub fn used(&self) -> usize {
        self.nodes.iter().map(|node| node.used.len()).sum()
    }

    /// Bytes of all cuts.
    pub fn bytes(&self) -> usize {
        self.records.bytes()
    }

    /// A hash of all cuts so far: ranks whose cuts differ have different ones.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Publishes cuts to the ranks of a node, if it is time. Between iterations; at most one collective.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(crate) fn publish(&mut self, ranks: &Ranks<'_, C>) -> Result<(), CommError> {
        self.records.publish(ranks)
    }

    /// Puts in the cuts that one iteration makes at one level. Every rank does, with the same cuts.
    pub fn insert(&mut self, problem: &Problem, level: usize, iteration: usize, cuts: &[NewCut]) {
        let iteration = self.given + iteration;
        self.records.write(level, iteration, cuts);
        let mut nodes: Vec<usize> = cuts.iter().map(|cut| cut.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let here = cuts.iter().filter(|cut| cut.node == node);
            let slots: Vec<u32> = here
                .map(|cut| (iteration * self.passes + cut.pass) as u32)
                .collect();
            self.enter(problem, node, &slots);
        }
    }

    /// Puts the cuts of a policy that fits the problem into an empty pool. Selection leaves them alone, as
    /// nobody knows their trial points. Collective; ranks agree on the policy.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(crate) fn give(
        &mut self,
        ranks: &Ranks<'_, C>,
        problem: &Problem,
        policy: &Policy,
    ) -> Result<(), CommError> {
        let nowhere = vec![0.0; problem.states.len()];
        for level in 1..problem.graph.depth() {
            let nodes =
                || (0..problem.nodes.len()).filter(|&node| problem.graph.level(node) == level);
            let cuts =
                nodes().flat_map(|node| policy.cuts[node].iter().map(move |cut| (node, cut)));
            let cuts = cuts.enumerate().map(|(number, (node, cut))| NewCut {
                pass: number % self.passes,
                node,
                intercept: cut.intercept,
                gradient: cut.gradient.clone(),
                point: nowhere.clone(),
            });
            let cuts: Vec<NewCut> = cuts.collect();
            for (iteration, cuts) in cuts.chunks(self.passes).enumerate() {
                self.records.write(level, iteration, cuts);
                self.given = self.given.max(iteration + 1);
            }
            let mut slots = 0..;
            for node in nodes() {
                let mut own = std::mem::take(&mut self.nodes[node]);
                own.given = policy.cuts[node].len();
                own.used = slots.by_ref().take(own.given).collect();
                let all = self.view(problem, node, &[]);
                for &slot in &own.used {
                    own.known.entry(hash(&all, slot)).or_default().push(slot);
                }
                self.nodes[node] = own;
            }
        }
        self.publish(ranks)?;
        self.publish(ranks)
    }

    /// Lets new cuts of a node compete with those it has. A cut that it has already is no new row.
    fn enter(&mut self, problem: &Problem, node: usize, slots: &[u32]) {
        let mut own = std::mem::take(&mut self.nodes[node]);
        own.all.extend_from_slice(slots);
        let all = self.view(problem, node, &[]);
        let mut new = Vec::new();
        for &slot in slots {
            let same = own.known.entry(hash(&all, slot)).or_default();
            // Without selection, a cut that was dropped counts for nothing until it is made again.
            let forgets = self.selection.rule == SelectionRule::All;
            let has =
                |&other: &u32| equal(&all, slot, other) && (!forgets || own.used.contains(&other));
            if !same.iter().any(has) {
                same.push(slot);
                new.push(slot);
            }
        }
        let (given, others) = own.used.split_at(own.given);
        let others = own
            .selection_state
            .select(self.selection, &all, slots, &new, others);
        own.used = given.iter().copied().chain(others).collect();
        let hash = slots.iter().fold(self.hash, |sum, &slot| {
            let numbers = bits(&all, slot).chain(all.point(slot).iter().map(|at| at.to_bits()));
            numbers.fold(mix(sum, u64::from(slot)), mix)
        });
        self.hash = mix(hash, own.used.len() as u64);
        self.nodes[node] = own;
    }

    /// The cuts of the first `iterations`, to be put in again after those that were given.
    pub(crate) fn saved(&self, problem: &Problem, iterations: usize) -> SavedCuts {
        let (first, slots) = (self.given * self.passes, iterations * self.passes);
        let depth = problem.graph.depth();
        let mut nodes: Vec<Vec<Option<u32>>> = vec![vec![None; slots]; depth];
        for (number, node) in self.nodes.iter().enumerate() {
            let level = &mut nodes[problem.graph.level(number)];
            for &slot in &node.all {
                level[slot as usize - first] = Some(number as u32);
            }
        }
        let (layout, (segments, places)) = (self.records.layout(), self.records.segments());
        let end = (self.given + iterations).min(self.records.iterations());
        let records = (0..depth).map(|level| {
            let mut numbers = Vec::new();
            // Nothing follows a leaf.
            for iteration in (self.given..end).filter(|_| level > 0) {
                let (start, records) = segments[usize::from(places[iteration])];
                let at = layout.place(iteration - start, level, 0);
                numbers.extend_from_slice(&records[at..at + layout.passes * layout.width]);
            }
            Numbers(numbers)
        });
        let records = records.collect();
        SavedCuts { nodes, records }
    }

    /// Puts saved cuts into a pool without others than given ones, in the order in which they came, so that selection finds
    /// what it found. Collective.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub(crate) fn restore(
        &mut self,
        ranks: &Ranks<'_, C>,
        problem: &Problem,
        saved: &SavedCuts,
    ) -> Result<(), CommError> {
        let (states, passes) = (problem.states.len(), self.passes);
        let width = record_width(states);
        let iterations = saved.nodes.first().map_or(0, Vec::len) / passes;
        for iteration in 0..iterations {
            for (level, (nodes, Numbers(records))) in
                saved.nodes.iter().zip(&saved.records).enumerate().skip(1)
            {
                let slots = iteration * passes..(iteration + 1) * passes;
                let cut = |slot: usize| {
                    let record = records.get(slot * width..(slot + 1) * width)?;
                    Some(NewCut {
                        pass: slot - iteration * passes,
                        node: nodes[slot]? as usize,
                        intercept: record[0],
                        gradient: record[1..=states].to_vec(),
                        point: record[1 + states..].to_vec(),
                    })
                };
                let cuts: Vec<NewCut> = slots.filter_map(cut).collect();
                self.insert(problem, level, iteration, &cuts);
            }
            self.publish(ranks)?;
        }
        Ok(())
    }

    /// A fingerprint of the policy: nodes and states by name, and every bit of the cuts in use.
    pub fn sha256(&self, problem: &Problem) -> String {
        let states = problem.states.iter().map(|state| state.name.as_str());
        let nodes = problem.nodes.iter().map(|node| node.name.as_str());
        let mut fingerprint = PolicyHasher::new(problem.sense.name(), states.chain(nodes));
        for node in 0..problem.nodes.len() {
            let cuts = self.cuts(problem, node);
            fingerprint.node(cuts.slots().len());
            for &slot in cuts.slots() {
                fingerprint.cut(slot, cuts.intercept(slot), cuts.gradient(slot));
            }
        }
        fingerprint.finish()
    }

    /// The cuts in use, by node, apart from this pool.
    pub(crate) fn stored(&self, problem: &Problem) -> Vec<Vec<StoredCut>> {
        let of_node = |node: usize| {
            let cuts = self.cuts(problem, node);
            let stored = cuts.slots().iter().map(|&slot| StoredCut {
                slot,
                intercept: cuts.intercept(slot),
                gradient: cuts.gradient(slot).to_vec(),
            });
            stored.collect()
        };
        (0..problem.nodes.len()).map(of_node).collect()
    }
}

/// The bits of a cut.
fn bits<'a>(cuts: &Cuts<'a>, slot: u32) -> impl Iterator<Item = u64> + use<'a> {
    let numbers = std::iter::once(cuts.intercept(slot)).chain(cuts.gradient(slot).iter().copied());
    numbers.map(f64::to_bits)
}

/// A hash with one more word.
fn mix(hash: u64, word: u64) -> u64 {
    // The multiplier of FNV; the rotation brings high bits down.
    (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
}

fn equal(cuts: &Cuts<'_>, one: u32, other: u32) -> bool {
    bits(cuts, one).eq(bits(cuts, other))
}

fn hash(cuts: &Cuts<'_>, slot: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    for number in bits(cuts, slot) {
        number.hash(&mut hasher);
    }
    hasher.finish()
}
