//! Partitioned regions: each rank writes its part, and after the fence every rank reads them all.

use cobre_comm::{CommData, SharedRegion};

use super::{fence, parted};
use crate::budget::Budget;
use crate::check::same_bits;
use crate::contract::World;
use crate::element::{Element, Visitor, samples};
use crate::layout::{BlockLayout, Shape, even};

/// Parts of every shape, in three scales, and parts that are all empty but one.
pub fn shapes<C: World>(comm: &C, budget: &Budget) {
    for shape in Shape::ALL {
        for unit in [1, 13, 1000] {
            let counts = shape.counts(comm.size(), unit);
            shared::<f64, C>(comm, &counts, budget.seed);
        }
    }
    for owner in 0..comm.size() {
        let mut counts = vec![0; comm.size()];
        counts[owner] = 5;
        shared::<u8, C>(comm, &counts, budget.seed);
    }
}

/// Elements of every size and alignment.
pub fn types<C: World>(comm: &C, budget: &Budget) {
    struct Shared<'a, C>(&'a C, &'a Budget);
    impl<C: World> Visitor for Shared<'_, C> {
        type Output = ();
        fn visit<T: CommData>(self) {
            let Self(comm, budget) = self;
            shared::<T, C>(comm, &Shape::Linear.counts(comm.size(), 3), budget.seed);
            shared::<T, C>(comm, &even(comm.size(), 4099), budget.seed);
        }
    }
    for element in Element::ALL {
        element.visit(Shared(comm, budget));
    }
}

/// More than a mebibyte in all.
pub fn large<C: World>(comm: &C, budget: &Budget) {
    shared::<f64, C>(comm, &even(comm.size(), (1 << 18) + 1), budget.seed);
    shared::<u8, C>(comm, &even(comm.size(), (1 << 20) + 3), budget.seed);
}

fn shared<T: CommData, C: World>(comm: &C, counts: &[usize], seed: u64) {
    let rank = comm.rank();
    let mut region = parted::<T, C>(comm, counts);
    for round in 0..2 {
        let part = |owner: usize| samples::<T>(&[seed, round, owner as u64], counts[owner]);
        let writable = region.as_mut_slice();
        assert_eq!(
            writable.len(),
            counts[rank],
            "rank {rank}: elements that it may write of a region with counts {counts:?}"
        );
        writable.copy_from_slice(&part(rank));
        fence(rank, &mut region);
        let layout = BlockLayout::packed(counts);
        assert_eq!(
            region.as_slice().len(),
            layout.len,
            "rank {rank}: elements of a region with counts {counts:?}"
        );
        for owner in 0..comm.size() {
            let what = format_args!("rank {owner}'s part of a region with counts {counts:?}");
            let found = &region.as_slice()[layout.block(owner)];
            same_bits(rank, what, found, &part(owner));
        }
        fence(rank, &mut region);
    }
}
