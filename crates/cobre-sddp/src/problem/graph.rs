//! The policy graph.

use serde::Serialize;

use super::error::ProblemError;

/// A step from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Edge {
    /// The node it leads to.
    pub node: usize,
    /// Its probability. Those of one node may sum to less than 1, which discounts the future.
    pub probability: f64,
}

/// A graph of nodes, in levels.
///
/// Without cycles, a node's level is the number of steps of the longest path from it to an end. A path visits at
/// most one node of a level, so all nodes of a level can be treated at once in a backward pass. With cycles there
/// are two levels, of nodes that nothing follows and of all others, and a backward pass follows paths instead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    /// The edges from the root.
    pub root: Vec<Edge>,
    successors: Vec<Vec<Edge>>,
    levels: Vec<usize>,
    depth: usize,
    /// The edges tell it.
    #[serde(skip)]
    cyclic: bool,
}

/// The most that a sum of probabilities of 1 may lack by rounding.
const ROUNDING: f64 = 1e-6;

/// The sum of the probabilities of edges, which discounts what follows.
pub(crate) fn discount(edges: &[Edge]) -> f64 {
    let sum: f64 = edges.iter().map(|edge| edge.probability).sum();
    // Thirds do not sum to 1 exactly, and mean no discount.
    if (sum - 1.0).abs() < ROUNDING {
        1.0
    } else {
        sum
    }
}

impl Graph {
    /// The graph of these edges, or a cycle in it that paths cannot leave.
    pub(crate) fn new(
        root: Vec<Edge>,
        successors: Vec<Vec<Edge>>,
        names: &[String],
    ) -> Result<Self, ProblemError> {
        if let Some(cycle) = endless_cycle(&successors) {
            let path = cycle.into_iter().map(|node| names[node].clone()).collect();
            return Err(ProblemError::Endless { path });
        }
        let found = levels(&successors);
        let cyclic = found.is_err();
        let levels = found.unwrap_or_else(|_| {
            let level = |edges: &Vec<Edge>| usize::from(!edges.is_empty());
            successors.iter().map(level).collect()
        });
        let depth = levels.iter().map(|level| level + 1).max().unwrap_or(0);
        Ok(Self {
            root,
            successors,
            levels,
            depth,
            cyclic,
        })
    }

    /// The graph of one node.
    pub(crate) fn single() -> Self {
        let first = Edge {
            node: 0,
            probability: 1.0,
        };
        Self {
            root: vec![first],
            successors: vec![Vec::new()],
            levels: vec![0],
            depth: 1,
            cyclic: false,
        }
    }

    /// True if a path can visit a node again.
    pub fn is_cyclic(&self) -> bool {
        self.cyclic
    }

    /// The stages of the graph: the most nodes that a path visits, or with cycles the steps until every node can
    /// have been visited.
    pub fn stages(&self) -> usize {
        if !self.cyclic {
            return self.depth;
        }
        let mut seen = vec![false; self.successors.len()];
        let (mut next, mut count) = (self.root.clone(), 0);
        loop {
            next.retain(|edge| !std::mem::replace(&mut seen[edge.node], true));
            if next.is_empty() {
                return count;
            }
            count += 1;
            let edges = next.iter().flat_map(|edge| &self.successors[edge.node]);
            next = edges.copied().collect();
        }
    }

    /// The probability that a path ends by chance or at a leaf only after more than `stages` stages.
    pub(crate) fn survival(&self, stages: usize) -> f64 {
        let share = |edges: &[Edge]| edges.iter().map(|edge| edge.probability).sum::<f64>();
        let mut at = vec![0.0; self.successors.len()];
        for edge in &self.root {
            at[edge.node] += edge.probability / share(&self.root);
        }
        for _ in 0..stages {
            let mut next = vec![0.0; at.len()];
            for (edges, probability) in self.successors.iter().zip(&at) {
                for edge in edges {
                    next[edge.node] += probability * edge.probability;
                }
            }
            at = next;
        }
        at.iter().sum()
    }

    /// The steps from `node`.
    pub fn successors(&self, node: usize) -> &[Edge] {
        &self.successors[node]
    }

    /// The level of `node`: without cycles the longest path from it to an end, in steps.
    pub fn level(&self, node: usize) -> usize {
        self.levels[node]
    }

    /// The number of levels: without cycles the most nodes a path can visit.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The nodes that follow some node of `level`, in ascending order.
    pub fn followers_of_level(&self, level: usize) -> Vec<usize> {
        let nodes = (0..self.levels.len()).filter(|&node| self.levels[node] == level);
        let mut followers: Vec<usize> = nodes
            .flat_map(|node| self.successors[node].iter().map(|edge| edge.node))
            .collect();
        followers.sort_unstable();
        followers.dedup();
        followers
    }
}

/// A cycle among nodes from which no path ends: neither at a leaf nor by probabilities that sum to less than 1.
fn endless_cycle(successors: &[Vec<Edge>]) -> Option<Vec<usize>> {
    let mut before = vec![Vec::new(); successors.len()];
    for (node, edges) in successors.iter().enumerate() {
        for edge in edges {
            before[edge.node].push(node);
        }
    }
    let may_end = |node: &usize| discount(&successors[*node]) < 1.0;
    let mut ends: Vec<bool> = vec![false; successors.len()];
    let mut found: Vec<usize> = (0..successors.len()).filter(may_end).collect();
    while let Some(node) = found.pop() {
        if !std::mem::replace(&mut ends[node], true) {
            found.extend_from_slice(&before[node]);
        }
    }
    let of_endless = successors.iter().enumerate().map(|(node, edges)| {
        let inside = |edge: &&Edge| !ends[node] && !ends[edge.node];
        edges.iter().filter(inside).copied().collect()
    });
    levels(&of_endless.collect::<Vec<_>>()).err()
}

/// The state of a node in the depth-first search.
#[derive(Clone, Copy, PartialEq)]
enum SearchState {
    Unvisited,
    OnPath,
    Done(usize),
}

/// The level of every node, or a cycle. Without recursion: a graph may be thousands of nodes deep.
fn levels(successors: &[Vec<Edge>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut states = vec![SearchState::Unvisited; successors.len()];
    for start in 0..successors.len() {
        if states[start] != SearchState::Unvisited {
            continue;
        }
        states[start] = SearchState::OnPath;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(edge) = successors[node].get(*next) {
                *next += 1;
                match states[edge.node] {
                    SearchState::Done(_) => {}
                    SearchState::Unvisited => {
                        states[edge.node] = SearchState::OnPath;
                        path.push((edge.node, 0));
                    }
                    SearchState::OnPath => {
                        let entered = path.iter().position(|(node, _)| *node == edge.node);
                        let round = path[entered.unwrap_or(0)..].iter().map(|(node, _)| *node);
                        return Err(round.chain([edge.node]).collect());
                    }
                }
            } else {
                let below = successors[node].iter().map(|edge| match states[edge.node] {
                    SearchState::Done(level) => level + 1,
                    SearchState::Unvisited | SearchState::OnPath => 0,
                });
                states[node] = SearchState::Done(below.max().unwrap_or(0));
                path.pop();
            }
        }
    }
    let level = |state: &SearchState| match state {
        SearchState::Done(level) => *level,
        SearchState::Unvisited | SearchState::OnPath => 0,
    };
    Ok(states.iter().map(level).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(lists: &[&[usize]]) -> Vec<Vec<Edge>> {
        let edge = |&node: &usize| Edge {
            node,
            probability: 1.0,
        };
        lists
            .iter()
            .map(|list| list.iter().map(edge).collect())
            .collect()
    }

    #[test]
    fn a_level_is_the_longest_way_to_an_end() {
        let found = levels(&edges(&[&[1, 3], &[2], &[3], &[]]));
        assert_eq!(found, Ok(vec![3, 2, 1, 0]));
    }

    #[test]
    fn a_cycle_must_have_a_way_out() {
        let edge = |node, probability| Edge { node, probability };
        // Every cycle of this chain has a product below 1, and no path ends.
        let closed = vec![
            vec![edge(1, 1.0)],
            vec![edge(1, 0.5), edge(2, 0.5)],
            vec![edge(1, 0.5), edge(2, 0.5)],
        ];
        assert_eq!(endless_cycle(&closed), Some(vec![1, 1]));
        let mut open = closed;
        open[2][0].probability = 0.4;
        assert_eq!(endless_cycle(&open), None);
        let names = ["a", "b", "c"].map(str::to_owned);
        let graph = Graph::new(vec![edge(0, 1.0)], open, &names).expect("it ends");
        assert!(graph.is_cyclic());
        assert_eq!((graph.depth(), graph.stages()), (2, 3));
        assert!((graph.survival(3) - 0.95).abs() < 1e-12);
    }

    #[test]
    fn a_cycle_is_found_and_shown() {
        assert_eq!(levels(&edges(&[&[1], &[2], &[1]])), Err(vec![1, 2, 1]));
        assert_eq!(levels(&edges(&[&[0]])), Err(vec![0, 0]));
    }
}
