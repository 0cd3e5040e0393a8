//! What training makes: cuts below the cost to go of every node.

mod cuts;
mod pool;
mod selection;

pub use cuts::Cuts;
pub use pool::{CutPool, NewCut};
pub use selection::{Rule, Selection};
