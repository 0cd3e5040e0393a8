//! The root's elements reach every rank and stay as they are on the root.

use cobre_comm::{CommData, Communicator};

use super::border;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::element::{Element, Visitor, samples};

/// Every root, with nothing, one element and several.
pub fn roots<C: Communicator>(comm: &C, budget: &Budget) {
    for root in 0..comm.size() {
        for length in [0, 1, 2, 5, 100, 3001] {
            broadcast::<f64, C>(comm, budget, length, root);
            broadcast::<u8, C>(comm, budget, length, root);
        }
    }
}

/// One element below, at and above the sizes at which backends are likely to change their way.
pub fn borders<C: Communicator>(comm: &C, budget: &Budget) {
    let mut root = 0;
    for length in border::around(size_of::<u8>()) {
        broadcast::<u8, C>(comm, budget, length, root);
        root = (root + 1) % comm.size();
    }
    for length in border::around(size_of::<f64>()) {
        broadcast::<f64, C>(comm, budget, length, root);
        root = (root + 1) % comm.size();
    }
}

/// More than a mebibyte, odd in bytes, from every root.
pub fn large<C: Communicator>(comm: &C, budget: &Budget) {
    for root in 0..comm.size() {
        broadcast::<u8, C>(comm, budget, (1 << 20) + 3, root);
    }
    broadcast::<f64, C>(comm, budget, (1 << 18) + 1, comm.size() - 1);
    broadcast::<u8, C>(comm, budget, budget.bytes() - 1, 0);
}

/// Elements of every size and alignment.
pub fn types<C: Communicator>(comm: &C, budget: &Budget) {
    struct Broadcast<'a, C>(&'a C, &'a Budget, usize);
    impl<C: Communicator> Visitor for Broadcast<'_, C> {
        type Output = ();
        fn visit<T: CommData>(self) {
            for length in [1, 7, 1001] {
                broadcast::<T, C>(self.0, self.1, length, self.2);
            }
        }
    }
    for (turn, element) in Element::ALL.iter().enumerate() {
        element.visit(Broadcast(comm, budget, turn % comm.size()));
    }
}

/// One broadcast into buffers that hold something else on every rank but the root.
fn broadcast<T: CommData, C: Communicator>(comm: &C, budget: &Budget, length: usize, root: usize) {
    let rank = comm.rank();
    let key = |sender: usize| [budget.seed, length as u64, sender as u64];
    let expected = samples::<T>(&key(root), length);
    let mut buf = samples::<T>(&key(rank), length);
    let outcome = comm.broadcast(&mut buf, root);
    let name = std::any::type_name::<T>();
    succeeded(
        rank,
        format_args!("broadcast of {length} {name} from {root}"),
        outcome,
    );
    same_bits(
        rank,
        format_args!("broadcast of {length} {name} from {root}"),
        &buf,
        &expected,
    );
}
