//! All cuts, and those of each node that are in use.

use std::collections::HashSet;

use cobre_comm::CommError;
use serde::{Deserialize, Serialize};

use super::cut_tables::CutTables;
use super::cuts::{Cuts, record_width};
use super::given::GivenPolicy;
use super::known::{KnownCuts, bits};
use super::records::CutRecords;
use super::selection::{Selection, SelectionRule, SelectionState};
use super::stored::{PolicyHasher, StoredCut};
use super::terminal::TerminalRecords;
use crate::error::SddpError;
use crate::problem::{LARGEST_OF_CUT, Node, Problem};
use crate::ranks::{Backend, Ranks};

/// A cut to be put into the pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewCut {
    /// The forward pass whose trial point it was made at.
    pub pass: usize,
    /// The place of the trial point on its path through a cyclic graph, from 0; 0 in others.
    pub visit: usize,
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
    /// The origins of cuts in a cyclic graph.
    origins: Vec<CutOrigin>,
}

/// The origin of a cut in a cyclic graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CutOrigin {
    iteration: u32,
    pass: u32,
    visit: u32,
}

impl CutOrigin {
    /// The place of the insertion that it came with: iterations ascend, and visits descend.
    fn insertion(self) -> (u32, std::cmp::Reverse<u32>) {
        (self.iteration, std::cmp::Reverse(self.visit))
    }
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
                            && problem.has_successors(node)
                    })
                };
                let slots = if problem.graph.is_cyclic() && level > 0 {
                    self.origins.len()
                } else {
                    iterations * passes
                };
                nodes.len() == slots
                    && records.len().is_multiple_of(width)
                    && there <= nodes.len()
                    && nodes.iter().enumerate().all(is_cut)
                    && records.iter().all(|number| number.abs() <= LARGEST_OF_CUT)
            };
        let mut levels = self.nodes.iter().zip(&self.records).enumerate();
        self.nodes.len() == depth
            && self.records.len() == depth
            && levels.all(of_level)
            && self.origins_fit(problem, passes, iterations)
    }

    /// The cut of a level at a slot, of a pass and a visit.
    fn cut(
        &self,
        states: usize,
        (level, slot): (usize, usize),
        (pass, visit): (usize, usize),
    ) -> Option<NewCut> {
        let width = record_width(states);
        let Numbers(records) = &self.records[level];
        let record = records.get(slot * width..(slot + 1) * width)?;
        Some(NewCut {
            pass,
            visit,
            node: self.nodes[level][slot]? as usize,
            intercept: record[0],
            gradient: record[1..=states].to_vec(),
            point: record[1 + states..].to_vec(),
        })
    }

    /// Checks the origins of the cuts in a cyclic graph; in others there are none.
    fn origins_fit(&self, problem: &Problem, passes: usize, iterations: usize) -> bool {
        let known = |origin: &CutOrigin| {
            (origin.iteration as usize) < iterations && (origin.pass as usize) < passes
        };
        let in_order = |two: &[CutOrigin]| {
            let order = two[0].insertion().cmp(&two[1].insertion());
            order.is_lt() || (order.is_eq() && two[0].pass < two[1].pass)
        };
        (self.origins.is_empty() || problem.graph.is_cyclic())
            && self.origins.iter().all(known)
            && self.origins.windows(2).all(in_order)
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
    known: KnownCuts,
}

impl NodeCuts {
    /// No cuts but those of the terminal value.
    fn new(node: &Node) -> Self {
        let given = node.terminal.len();
        Self {
            used: (0..given as u32).collect(),
            given,
            ..Self::default()
        }
    }
}

/// All cuts of a policy. Cuts of one level of the graph share slots: the slot of a cut is
/// iteration × passes + pass, whichever node of the level the pass has visited. In a cyclic graph, where a pass visits
/// a node again, it is the number of the cut in the order of (iteration, visit, pass), visits from the last. Cuts that
/// were given before training come first, as if earlier iterations had made them.
pub(crate) struct CutPool<C: Backend> {
    passes: usize,
    selection: Selection,
    /// Iterations whose slots hold the cuts that were given before training.
    given: usize,
    records: CutRecords<C>,
    /// By node, the terminal value.
    terminal: Vec<TerminalRecords>,
    nodes: Vec<NodeCuts>,
    /// The cuts in use, as solvers look them up.
    tables: CutTables<C>,
    /// By slot, the origin of the cut, in a cyclic graph; iterations include those of given cuts.
    origins: Option<Vec<CutOrigin>>,
    /// A hash of all cuts in the order in which they came, and of how many each left in use.
    hash: u64,
}

impl<C: Backend> CutPool<C> {
    /// A pool without cuts, for this many passes per iteration.
    pub fn new(problem: &Problem, passes: usize, selection: Selection) -> Self {
        let mut pool = Self {
            passes,
            selection,
            given: 0,
            records: CutRecords::new(problem, passes),
            terminal: problem.nodes.iter().map(TerminalRecords::of).collect(),
            nodes: problem.nodes.iter().map(NodeCuts::new).collect(),
            tables: CutTables::new(problem.nodes.len(), problem.states.len()),
            origins: problem.graph.is_cyclic().then(Vec::new),
            hash: 0,
        };
        for node in (0..problem.nodes.len()).filter(|&node| !problem.has_successors(node)) {
            pool.tabulate(problem, node);
        }
        pool
    }

    /// The cuts in use at `node`, with the table to look them up in.
    pub fn cuts<'a>(&'a self, problem: &'a Problem, node: usize) -> Cuts<'a> {
        let cuts = self.view(problem, node, &self.nodes[node].used);
        cuts.with_blocks(self.tables.view(node))
    }

    fn view<'a>(&'a self, problem: &'a Problem, node: usize, slots: &'a [u32]) -> Cuts<'a> {
        view((&self.records, &self.terminal[node]), problem, node, slots)
    }

    /// Changes the table of a node to the cuts in use.
    fn tabulate(&mut self, problem: &Problem, node: usize) {
        let mut table = self.tables.take(node);
        table.update(&self.view(problem, node, &self.nodes[node].used));
        self.tables.put(node, table);
    }

    /// Different trial points of a node, the newest first, `most` at most.
    pub(crate) fn trial_points(
        &self,
        problem: &Problem,
        node: usize,
        most: usize,
    ) -> impl Iterator<Item = Vec<f64>> + use<C> {
        let all = self.view(problem, node, &[]);
        let mut seen = HashSet::new();
        let points = self.nodes[node].all.iter().rev();
        let points = points.map(|&slot| all.point(slot).to_vec());
        let is_new = |point: &Vec<f64>| {
            // Zero has two signs.
            let bits = point.iter().map(|value| (value + 0.0).to_bits());
            seen.insert(bits.collect::<Vec<u64>>())
        };
        let points: Vec<Vec<f64>> = points.filter(is_new).take(most).collect();
        points.into_iter()
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
        if self.records.publish(ranks)? {
            return Ok(());
        }
        self.tables.publish(ranks)
    }

    /// Puts in the cuts that one iteration makes at one level, or at one place of paths through a cyclic graph. Every
    /// rank does, with the same cuts.
    pub fn insert(&mut self, problem: &Problem, level: usize, iteration: usize, cuts: &[NewCut]) {
        let iteration = self.given + iteration;
        if self.origins.is_none() {
            self.records.reserve(iteration);
        }
        let slots = cuts.iter().map(|cut| {
            let slot = self.slot(iteration, cut);
            self.records.write(level, slot, cut);
            slot
        });
        let slots: Vec<u32> = slots.collect();
        let mut nodes: Vec<usize> = cuts.iter().map(|cut| cut.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let here = cuts.iter().zip(&slots).filter(|(cut, _)| cut.node == node);
            let slots: Vec<u32> = here.map(|(_, slot)| *slot).collect();
            self.enter(problem, node, &slots);
        }
    }

    /// The slot of a cut that comes in.
    fn slot(&mut self, iteration: usize, cut: &NewCut) -> u32 {
        match &mut self.origins {
            None => (iteration * self.passes + cut.pass) as u32,
            Some(origins) => {
                origins.push(CutOrigin {
                    iteration: iteration as u32,
                    pass: cut.pass as u32,
                    visit: cut.visit as u32,
                });
                (origins.len() - 1) as u32
            }
        }
    }

    /// The slot as a policy has it: iteration × passes + pass.
    fn stored_slot(&self, slot: u32) -> u32 {
        let Some(origins) = &self.origins else {
            return slot;
        };
        let origin = origins[slot as usize];
        (origin.iteration as usize * self.passes) as u32 + origin.pass
    }

    /// Puts the cuts of a policy that fits the problem into an empty pool, which the leader of each node of the machine
    /// has. Selection leaves them alone, as nobody knows their trial points. Collective; ranks agree on the policy.
    ///
    /// # Errors
    /// When shared memory cannot be had, another rank is gone, or files of the policy cannot be read.
    pub(crate) fn give(
        &mut self,
        ranks: &Ranks<'_, C>,
        problem: &Problem,
        policy: GivenPolicy<'_>,
    ) -> Result<(), SddpError> {
        let nodes = problem.nodes.len();
        let counts = ranks.share_table(nodes, |shared| {
            for (node, count) in shared.iter_mut().enumerate() {
                *count = policy.count(node) as f64;
            }
        })?;
        // Other cuts are those of a terminal value.
        let inner = |node: &usize| problem.has_successors(*node);
        let mut ends = vec![0; problem.graph.depth()];
        for node in (0..nodes).filter(inner) {
            let (own, end) = (&mut self.nodes[node], &mut ends[problem.graph.level(node)]);
            own.given = counts.read()[node] as usize;
            own.used = (*end..*end + own.given as u32).collect();
            *end += own.given as u32;
        }
        let slots = ends.into_iter().max().unwrap_or(0) as usize;
        if slots == 0 {
            return Ok(());
        }
        self.given = slots.div_ceil(self.passes);
        let number = |slot: usize| CutOrigin {
            iteration: (slot / self.passes) as u32,
            pass: (slot % self.passes) as u32,
            visit: 0,
        };
        if let Some(origins) = &mut self.origins {
            origins.extend((0..slots).map(number));
        }
        let (mut read, all) = (Ok::<(), SddpError>(()), &self.nodes);
        self.records.give(ranks, slots, |write| {
            read = (0..nodes).filter(inner).try_for_each(|node| {
                let (level, cuts) = (problem.graph.level(node), policy.cuts(node)?);
                for (&slot, cut) in all[node].used.iter().zip(&*cuts) {
                    write(level, slot, cut);
                }
                Ok(())
            });
        })?;
        read?;
        Ok(self.tabulate_given(ranks, problem)?)
    }

    /// Makes the tables of the cuts in use, and learns which cuts there are. Collective.
    fn tabulate_given(&mut self, ranks: &Ranks<'_, C>, problem: &Problem) -> Result<(), CommError> {
        let (records, terminal, nodes) = (&self.records, &self.terminal, &self.nodes);
        let cuts = |node: usize| view((records, &terminal[node]), problem, node, &nodes[node].used);
        self.tables = CutTables::new(nodes.len(), problem.states.len());
        self.tables.give(ranks, cuts)?;
        for node in (0..self.nodes.len()).filter(|&node| problem.has_successors(node)) {
            let mut known = std::mem::take(&mut self.nodes[node].known);
            let all = self.view(problem, node, &self.nodes[node].used);
            known.reserve(all.slots().len());
            for &slot in all.slots() {
                known.add(&all, slot, |_| true);
            }
            self.nodes[node].known = known;
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
            // Without selection, a cut that was dropped counts for nothing until it is made again.
            let forgets = self.selection.rule == SelectionRule::All;
            let counts = |other: u32| !forgets || own.used.contains(&other);
            if own.known.add(&all, slot, counts) {
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
        self.tabulate(problem, node);
    }

    /// The slots of so many iterations after those of cuts that were given.
    fn trained_slots(&self, iterations: usize) -> std::ops::Range<usize> {
        match &self.origins {
            None => self.given * self.passes..(self.given + iterations) * self.passes,
            Some(origins) => {
                let is_given = |origin: &CutOrigin| (origin.iteration as usize) < self.given;
                origins.partition_point(is_given)..origins.len()
            }
        }
    }

    /// The cuts of all `iterations`, to be put in again after those that were given.
    pub(crate) fn saved(&self, problem: &Problem, iterations: usize) -> SavedCuts {
        let slots = self.trained_slots(iterations);
        let depth = problem.graph.depth();
        let count = |level: usize| match &self.origins {
            Some(_) if level == 0 => iterations * self.passes,
            _ => slots.len(),
        };
        let mut nodes: Vec<Vec<Option<u32>>> =
            (0..depth).map(|level| vec![None; count(level)]).collect();
        for (number, node) in self.nodes.iter().enumerate() {
            let level = &mut nodes[problem.graph.level(number)];
            for &slot in &node.all {
                level[slot as usize - slots.start] = Some(number as u32);
            }
        }
        let (layout, (segments, places)) = (self.records.layout(), self.records.segments());
        let first = slots.start / layout.passes;
        let end = (slots.end / layout.passes).min(self.records.iterations());
        let records = (0..depth).map(|level| {
            let mut numbers = Vec::new();
            // Nothing follows a leaf.
            for iteration in (first..end).filter(|_| level > 0) {
                let (start, records) = segments[usize::from(places[iteration])];
                let at = layout.place(iteration - start, level, 0);
                numbers.extend_from_slice(&records[at..at + layout.passes * layout.width]);
            }
            Numbers(numbers)
        });
        let given = self.given as u32;
        let origins = self
            .origins
            .iter()
            .flat_map(|origins| &origins[slots.clone()]);
        let origins = origins.map(|origin| CutOrigin {
            iteration: origin.iteration - given,
            ..*origin
        });
        SavedCuts {
            nodes,
            records: records.collect(),
            origins: origins.collect(),
        }
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
        iterations: usize,
    ) -> Result<(), CommError> {
        let passes = self.passes;
        let states = problem.states.len();
        let levels = 1..self.origins.as_ref().map_or(saved.nodes.len(), |_| 1);
        let mut first = 0;
        for iteration in 0..iterations {
            // Of a cyclic graph: one insertion after the other.
            let here = saved.origins[first..].iter();
            let here = here.take_while(|origin| origin.iteration as usize == iteration);
            let here = &saved.origins[first..first + here.count()];
            for visit in here.chunk_by(|one, other| one.visit == other.visit) {
                let cuts = (first..).zip(visit).filter_map(|(slot, origin)| {
                    let place = (origin.pass as usize, origin.visit as usize);
                    saved.cut(states, (1, slot), place)
                });
                self.insert(problem, 1, iteration, &cuts.collect::<Vec<_>>());
                first += visit.len();
            }
            for level in levels.clone() {
                let slots = iteration * passes..(iteration + 1) * passes;
                let cuts =
                    slots.filter_map(|slot| saved.cut(states, (level, slot), (slot % passes, 0)));
                self.insert(problem, level, iteration, &cuts.collect::<Vec<_>>());
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
                fingerprint.cut(
                    self.stored_slot(slot),
                    cuts.intercept(slot),
                    cuts.gradient(slot),
                );
            }
        }
        fingerprint.finish()
    }

    /// The cuts in use, by node, apart from this pool.
    pub(crate) fn stored(&self, problem: &Problem) -> Vec<Vec<StoredCut>> {
        let of_node = |node: usize| {
            let cuts = self.cuts(problem, node);
            let stored = cuts.slots().iter().map(|&slot| StoredCut {
                slot: self.stored_slot(slot),
                intercept: cuts.intercept(slot),
                gradient: cuts.gradient(slot).to_vec(),
            });
            stored.collect()
        };
        (0..problem.nodes.len()).map(of_node).collect()
    }
}

/// The cuts of a node at these slots.
fn view<'a, C: Backend>(
    (records, terminal): (&'a CutRecords<C>, &'a TerminalRecords),
    problem: &'a Problem,
    node: usize,
    slots: &'a [u32],
) -> Cuts<'a> {
    let states = &problem.template(node).states;
    if !problem.has_successors(node) {
        return terminal.view(slots, states);
    }
    let place = (records.layout(), problem.graph.level(node));
    Cuts::new(slots, place, records.segments(), states)
}

/// A hash with one more word.
fn mix(hash: u64, word: u64) -> u64 {
    // The multiplier of FNV; the rotation brings high bits down.
    (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
}
