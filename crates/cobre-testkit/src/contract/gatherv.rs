//! Every rank's elements land in the root's blocks, and nowhere else on any rank.

use cobre_comm::{CommData, Communicator};

use super::border;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::element::{Element, Visitor, samples};
use crate::layout::{BlockLayout, Shape, even};

/// Every root, with blocks of every shape, of nothing and of one rank alone.
pub fn roots<C: Communicator>(comm: &C, budget: &Budget) {
    let size = comm.size();
    for root in 0..size {
        for shape in Shape::ALL {
            for unit in [1, 13, 1000] {
                let counts = shape.counts(size, unit);
                gather::<f64, C>(comm, budget, &BlockLayout::packed(&counts), root);
                gather::<u16, C>(comm, budget, &BlockLayout::reversed(&counts, 2), root);
            }
        }
        gather::<f64, C>(comm, budget, &BlockLayout::spaced(&vec![0; size], 3), root);
        for sender in 0..size {
            let mut counts = vec![0; size];
            counts[sender] = 3;
            gather::<u8, C>(comm, budget, &BlockLayout::packed(&counts), root);
        }
    }
}

/// Blocks a byte or an element below, at and above the sizes at which backends are likely to change their way.
pub fn borders<C: Communicator>(comm: &C, budget: &Budget) {
    let size = comm.size();
    for (turn, bytes) in border::around(1).into_iter().enumerate() {
        let (root, mut alone) = (turn % size, vec![0; size]);
        alone[(turn + 1) % size] = bytes;
        gather::<u8, C>(comm, budget, &BlockLayout::packed(&alone), root);
        gather::<u8, C>(comm, budget, &BlockLayout::packed(&even(size, bytes)), root);
        if bytes * size <= budget.bytes() {
            let counts = vec![bytes; size];
            gather::<u8, C>(comm, budget, &BlockLayout::spaced(&counts, 1), root);
        }
    }
}

/// Blocks with gaps, in reverse and in any order, at a root that changes.
pub fn layouts<C: Communicator>(comm: &C, budget: &Budget) {
    let mut random = budget.random("layouts");
    let mut own = budget.random_on(comm.rank(), "layouts");
    for _ in 0..budget.share(100).max(20) {
        let counts: Vec<usize> = (0..comm.size()).map(|_| random.below(40)).collect();
        let root = random.below(comm.size());
        gather::<u16, C>(
            comm,
            budget,
            &BlockLayout::spaced(&counts, random.below(5)),
            root,
        );
        gather::<u16, C>(
            comm,
            budget,
            &BlockLayout::shuffled(&counts, &mut random),
            root,
        );
        gather::<f64, C>(
            comm,
            budget,
            &BlockLayout::shuffled(&counts, &mut own),
            root,
        );
    }
}

/// Elements of every size and alignment.
pub fn types<C: Communicator>(comm: &C, budget: &Budget) {
    struct Gather<'a, C>(&'a C, &'a Budget, usize);
    impl<C: Communicator> Visitor for Gather<'_, C> {
        type Output = ();
        fn visit<T: CommData>(self) {
            let Self(comm, budget, root) = self;
            for unit in [1, 7, 500] {
                let counts = Shape::Regular.counts(comm.size(), unit);
                gather::<T, C>(comm, budget, &BlockLayout::packed(&counts), root);
            }
        }
    }
    for (turn, element) in Element::ALL.iter().enumerate() {
        element.visit(Gather(comm, budget, turn % comm.size()));
    }
}

/// The other ranks have no room and no displacements.
pub fn nothing_elsewhere<C: Communicator>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    for root in 0..size {
        for count in [0, 1, 5000, 40_000] {
            let layout = BlockLayout::packed(&vec![count; size]);
            let sent = |sender: usize| samples::<u64>(&[budget.seed, sender as u64], count);
            let (mut recv, displs) = if rank == root {
                (vec![0; layout.len], &layout.displs[..])
            } else {
                (Vec::new(), &[][..])
            };
            let outcome = comm.gatherv(&sent(rank), &mut recv, &layout.counts, displs, root);
            let what = format_args!("gatherv of {count} u64 at {root} alone");
            succeeded(rank, what, outcome);
            if rank == root {
                let expected: Vec<u64> = (0..size).flat_map(sent).collect();
                let what = format_args!("gatherv of {count} u64 at {root} alone");
                same_bits(rank, what, &recv, &expected);
            }
        }
    }
}

/// One gather in this rank's `layout`: the root's blocks hold what each rank sent, and nothing else has changed.
fn gather<T: CommData, C: Communicator>(
    comm: &C,
    budget: &Budget,
    layout: &BlockLayout,
    root: usize,
) {
    let rank = comm.rank();
    let key = |sender: usize| [budget.seed, layout.counts[sender] as u64, sender as u64];
    let send = samples::<T>(&key(rank), layout.counts[rank]);
    let mut recv = samples::<T>(&[budget.seed, rank as u64], layout.len);
    let mut expected = recv.clone();
    if rank == root {
        for sender in 0..comm.size() {
            let block = samples(&key(sender), layout.counts[sender]);
            expected[layout.block(sender)].copy_from_slice(&block);
        }
    }
    let outcome = comm.gatherv(&send, &mut recv, &layout.counts, &layout.displs, root);
    let name = std::any::type_name::<T>();
    let BlockLayout { counts, displs, .. } = layout;
    let what = format!("gatherv of {name} at {root}, counts {counts:?} at {displs:?}");
    succeeded(rank, format_args!("{what}"), outcome);
    same_bits(rank, format_args!("{what}"), &recv, &expected);
}
