//! The policy: cuts below the cost to go of every node.

mod cut_tables;
mod cuts;
mod given;
mod known;
mod node_table;
mod pool;
mod records;
mod selection;
mod stored;
mod terminal;

pub use cuts::Cuts;
pub use given::GivenPolicy;
pub(crate) use node_table::{CutBlocks, LANES, NO_CUT};
pub(crate) use pool::SavedCuts;
pub(crate) use pool::{CutPool, NewCut};
pub use selection::{Selection, SelectionRule};
pub(crate) use stored::PolicyHasher;
pub use stored::{InitialState, Manifest, Policy, StoredCut};

#[cfg(test)]
mod tests;
