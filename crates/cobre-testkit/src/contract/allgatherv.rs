//! Every rank's elements land in every rank's blocks, and nowhere else.

use cobre_comm::{CommData, Communicator};

use super::border;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::element::{Element, Visitor, samples};
use crate::layout::{BlockLayout, Shape, even};

/// Counts that differ from rank to rank, some of them zero.
pub fn uneven<C: Communicator>(comm: &C, budget: &Budget) {
    let size = comm.size();
    for case in 0..8 {
        let counts: Vec<usize> = (0..size).map(|rank| (rank * 5 + case * 3) % 8).collect();
        gather::<u64, C>(comm, budget, &BlockLayout::packed(&counts));
        gather::<u8, C>(comm, budget, &BlockLayout::packed(&counts));
    }
}

/// Nothing from anybody, into no room and into some.
pub fn empty<C: Communicator>(comm: &C, budget: &Budget) {
    let counts = vec![0; comm.size()];
    gather::<f64, C>(comm, budget, &BlockLayout::packed(&counts));
    gather::<f64, C>(comm, budget, &BlockLayout::spaced(&counts, 3));
}

/// One element from each rank, and from one rank alone, each in turn.
pub fn single<C: Communicator>(comm: &C, budget: &Budget) {
    gather::<f64, C>(comm, budget, &BlockLayout::packed(&vec![1; comm.size()]));
    for sender in 0..comm.size() {
        let mut counts = vec![0; comm.size()];
        counts[sender] = 1;
        gather::<f64, C>(comm, budget, &BlockLayout::packed(&counts));
        gather::<u8, C>(comm, budget, &BlockLayout::spaced(&counts, 1));
    }
}

/// The count shapes that other libraries' suites have, in three scales.
pub fn shapes<C: Communicator>(comm: &C, budget: &Budget) {
    for shape in Shape::ALL {
        for unit in [1, 13, 1000] {
            let counts = shape.counts(comm.size(), unit);
            gather::<f64, C>(comm, budget, &BlockLayout::packed(&counts));
            gather::<u16, C>(comm, budget, &BlockLayout::reversed(&counts, 2));
        }
    }
}

/// 1, 2, 4 … 8192 elements from each rank.
pub fn doubling<C: Communicator>(comm: &C, budget: &Budget) {
    for power in 0..=13 {
        let counts = vec![1 << power; comm.size()];
        gather::<f64, C>(comm, budget, &BlockLayout::packed(&counts));
    }
}

/// Blocks and totals a byte or an element below, at and above the sizes at which backends are
/// likely to change their way.
pub fn borders<C: Communicator>(comm: &C, budget: &Budget) {
    let size = comm.size();
    for (turn, bytes) in border::around(1).into_iter().enumerate() {
        let mut alone = vec![0; size];
        alone[turn % size] = bytes;
        gather::<u8, C>(comm, budget, &BlockLayout::packed(&alone));
        gather::<u8, C>(comm, budget, &BlockLayout::packed(&even(size, bytes)));
        if bytes * size <= budget.bytes() {
            gather::<u8, C>(comm, budget, &BlockLayout::packed(&vec![bytes; size]));
        }
    }
    for count in border::around(size_of::<f64>()) {
        if count * size_of::<f64>() * size <= budget.bytes() {
            gather::<f64, C>(comm, budget, &BlockLayout::spaced(&vec![count; size], 1));
        }
    }
}

/// Blocks with gaps, in reverse and in any order, the same on all ranks and different on each.
pub fn layouts<C: Communicator>(comm: &C, budget: &Budget) {
    let mut random = budget.random("layouts");
    let mut own = budget.random_on(comm.rank(), "layouts");
    for _ in 0..budget.share(200).max(20) {
        let counts: Vec<usize> = (0..comm.size()).map(|_| random.below(40)).collect();
        gather::<u16, C>(comm, budget, &BlockLayout::spaced(&counts, random.below(5)));
        gather::<u16, C>(
            comm,
            budget,
            &BlockLayout::reversed(&counts, random.below(5)),
        );
        gather::<u16, C>(comm, budget, &BlockLayout::shuffled(&counts, &mut random));
        gather::<f64, C>(comm, budget, &BlockLayout::shuffled(&counts, &mut own));
    }
}

/// Elements of every size and alignment.
pub fn types<C: Communicator>(comm: &C, budget: &Budget) {
    struct Gather<'a, C>(&'a C, &'a Budget);
    impl<C: Communicator> Visitor for Gather<'_, C> {
        type Output = ();
        fn visit<T: CommData>(self) {
            let Self(comm, budget) = self;
            for unit in [1, 7, 500] {
                let counts = Shape::Linear.counts(comm.size(), unit);
                gather::<T, C>(comm, budget, &BlockLayout::packed(&counts));
                gather::<T, C>(
                    comm,
                    budget,
                    &BlockLayout::spaced(&vec![unit; comm.size()], 1),
                );
            }
        }
    }
    for element in Element::ALL {
        element.visit(Gather(comm, budget));
    }
}

/// One gather in this rank's `layout`: the blocks hold what each rank sent, the rest is untouched.
fn gather<T: CommData, C: Communicator>(comm: &C, budget: &Budget, layout: &BlockLayout) {
    let rank = comm.rank();
    let key = |sender: usize| [budget.seed, layout.counts[sender] as u64, sender as u64];
    let send = samples::<T>(&key(rank), layout.counts[rank]);
    let mut recv = samples::<T>(&[budget.seed, rank as u64], layout.len);
    let mut expected = recv.clone();
    for sender in 0..comm.size() {
        let block = samples(&key(sender), layout.counts[sender]);
        expected[layout.block(sender)].copy_from_slice(&block);
    }
    let outcome = comm.allgatherv(&send, &mut recv, &layout.counts, &layout.displs);
    let name = std::any::type_name::<T>();
    let text = Brief(layout);
    succeeded(rank, format_args!("allgatherv of {name}, {text}"), outcome);
    same_bits(
        rank,
        format_args!("allgatherv of {name}, {text}"),
        &recv,
        &expected,
    );
}

/// A layout in a message.
struct Brief<'a>(&'a BlockLayout);

impl std::fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BlockLayout { counts, displs, .. } = self.0;
        write!(f, "counts {counts:?} at {displs:?}")
    }
}
