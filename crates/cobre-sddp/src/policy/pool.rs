//! All cuts, in warm_start that the ranks of a node share.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cobre_comm::CommError;
use serde::{Deserialize, Serialize};

use super::cuts::{Cuts, record_width};
use super::selection::{Selection, SelectionRule, SelectionState};
use super::stored::{Policy, PolicyHasher, StoredCut};
use crate::problem::{LARGEST_OF_CUT, Problem};
use crate::ranks::{Backend, Ranks, SharedTable};

/// About how many bytes of cuts of a level are allocated at a time.
const CHUNK_BYTES: usize = 1 << 18;

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
    iterations_per_chunk: usize,
    selection: Selection,
    /// Iterations whose slots hold the cuts that were given before training.
    given: usize,
    levels: Vec<Vec<SharedTable<C>>>,
    nodes: Vec<NodeCuts>,
}

impl<C: Backend> CutPool<C> {
    /// A pool without cuts, for this many passes per iteration.
    pub fn new(problem: &Problem, passes: usize, selection: Selection) -> Self {
        let bytes_per_iteration = passes * record_width(problem.states.len()) * size_of::<f64>();
        Self {
            passes,
            iterations_per_chunk: (CHUNK_BYTES / bytes_per_iteration).max(1),
            selection,
            given: 0,
            levels: (0..problem.graph.depth()).map(|_| Vec::new()).collect(),
            nodes: problem.nodes.iter().map(|_| NodeCuts::default()).collect(),
        }
    }

    fn slots_per_chunk(&self) -> usize {
        self.iterations_per_chunk * self.passes
    }

    /// The cuts in use at `node`.
    pub fn cuts<'a>(&'a self, problem: &'a Problem, node: usize) -> Cuts<'a> {
        self.view(problem, node, &self.nodes[node].used)
    }

    fn view<'a>(&'a self, problem: &'a Problem, node: usize, slots: &'a [u32]) -> Cuts<'a> {
        let chunks = &self.levels[problem.graph.level(node)];
        let chunks = chunks.iter().map(SharedTable::read).collect();
        let states = &problem.template(node).states;
        Cuts::new(slots, chunks, self.slots_per_chunk(), states)
    }

    /// Cuts in use, over all nodes.
    pub fn used(&self) -> usize {
        self.nodes.iter().map(|node| node.used.len()).sum()
    }

    /// Bytes of all cuts.
    pub fn bytes(&self) -> usize {
        let chunks = self.levels.iter().flatten();
        chunks.map(|chunk| size_of_val(chunk.read())).sum()
    }

    /// Puts in the cuts that one iteration makes at one level. Collective; ranks agree on all of
    /// them.
    ///
    /// # Errors
    /// When shared memory cannot be had or another rank is gone.
    pub fn insert(
        &mut self,
        ranks: &Ranks<'_, C>,
        problem: &Problem,
        level: usize,
        iteration: usize,
        cuts: &[NewCut],
    ) -> Result<(), CommError> {
        let iteration = self.given + iteration;
        self.write(ranks, problem, level, iteration, cuts)?;
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
        Ok(())
    }

    /// Writes the numbers of cuts to the slots of an iteration, those of given cuts counted.
    fn write(
        &mut self,
        ranks: &Ranks<'_, C>,
        problem: &Problem,
        level: usize,
        iteration: usize,
        cuts: &[NewCut],
    ) -> Result<(), CommError> {
        let width = record_width(problem.states.len());
        let chunk = iteration / self.iterations_per_chunk;
        let count = self.slots_per_chunk() * width;
        while self.levels[level].len() <= chunk {
            self.levels[level].push(ranks.share_table(count, |_| {})?);
        }
        let (passes, first) = (self.passes, chunk * self.slots_per_chunk());
        ranks.update(&mut self.levels[level][chunk], |records| {
            for cut in cuts {
                let at = (iteration * passes + cut.pass - first) * width;
                let record = &mut records[at..at + width];
                record[0] = cut.intercept;
                record[1..=cut.gradient.len()].copy_from_slice(&cut.gradient);
                record[1 + cut.gradient.len()..].copy_from_slice(&cut.point);
            }
        })
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
        for level in 0..self.levels.len() {
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
                self.write(ranks, problem, level, iteration, cuts)?;
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
        Ok(())
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
        self.nodes[node] = own;
    }

    /// The cuts of the first `iterations`, to be put in again after those that were given.
    pub(crate) fn saved(&self, problem: &Problem, iterations: usize) -> SavedCuts {
        let (first, slots) = (self.given * self.passes, iterations * self.passes);
        let width = record_width(problem.states.len());
        let mut nodes: Vec<Vec<Option<u32>>> =
            self.levels.iter().map(|_| vec![None; slots]).collect();
        for (number, node) in self.nodes.iter().enumerate() {
            let level = &mut nodes[problem.graph.level(number)];
            for &slot in &node.all {
                level[slot as usize - first] = Some(number as u32);
            }
        }
        let records = self.levels.iter().map(|chunks| {
            let numbers = chunks.iter().flat_map(SharedTable::read);
            let own = numbers.skip(first * width).take(slots * width);
            Numbers(own.copied().collect())
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
        for (level, (nodes, records)) in saved.nodes.iter().zip(&saved.records).enumerate() {
            let records = records.0.chunks(width * passes);
            for (iteration, (nodes, records)) in nodes.chunks(passes).zip(records).enumerate() {
                let cut = |(pass, (node, record)): (usize, (&Option<u32>, &[f64]))| {
                    node.map(|node| NewCut {
                        pass,
                        node: node as usize,
                        intercept: record[0],
                        gradient: record[1..=states].to_vec(),
                        point: record[1 + states..].to_vec(),
                    })
                };
                let cuts = nodes.iter().zip(records.chunks(width)).enumerate();
                let cuts: Vec<NewCut> = cuts.filter_map(cut).collect();
                self.insert(ranks, problem, level, iteration, &cuts)?;
            }
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
