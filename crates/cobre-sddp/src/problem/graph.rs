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

/// An acyclic graph of nodes, in levels.
///
/// A node's level is the number of steps of the longest path from it to an end. A path visits at
/// most one node of a level, so all nodes of a level can be treated at once in a backward pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    /// The edges from the root.
    pub root: Vec<Edge>,
    successors: Vec<Vec<Edge>>,
    levels: Vec<usize>,
    depth: usize,
}

impl Graph {
    /// The graph of these edges, or the cycle in it.
    pub(crate) fn new(
        root: Vec<Edge>,
        successors: Vec<Vec<Edge>>,
        names: &[String],
    ) -> Result<Self, ProblemError> {
        let levels = levels(&successors).map_err(|cycle| ProblemError::Cyclic {
            path: cycle.into_iter().map(|node| names[node].clone()).collect(),
        })?;
        let depth = levels.iter().map(|level| level + 1).max().unwrap_or(0);
        Ok(Self {
            root,
            successors,
            levels,
            depth,
        })
    }

    /// The steps from `node`.
    pub fn successors(&self, node: usize) -> &[Edge] {
        &self.successors[node]
    }

    /// The longest path from `node` to an end, in steps.
    pub fn level(&self, node: usize) -> usize {
        self.levels[node]
    }

    /// The number of levels: the most nodes a path can visit.
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
    fn a_cycle_is_found_and_shown() {
        assert_eq!(levels(&edges(&[&[1], &[2], &[1]])), Err(vec![1, 2, 1]));
        assert_eq!(levels(&edges(&[&[0]])), Err(vec![0, 0]));
    }
}
