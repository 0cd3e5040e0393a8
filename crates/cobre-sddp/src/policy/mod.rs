//! The policy: cuts below the cost to go of every node.

mod cuts;
mod pool;
mod records;
mod selection;
mod stored;

pub use cuts::Cuts;
pub(crate) use pool::SavedCuts;
pub(crate) use pool::{CutPool, NewCut};
pub use selection::{Selection, SelectionRule};
pub use stored::{InitialState, Manifest, Policy, StoredCut};
