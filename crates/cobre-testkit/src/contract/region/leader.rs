//! Leader regions: each node's leader writes its node's copy, and every rank of the node reads it.

use cobre_comm::{CommData, Communicator, SharedRegion};

use super::{fence, led};
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::contract::World;
use crate::element::{Element, Visitor, samples};

/// Elements of every size and alignment, in regions of several lengths.
pub fn types<C: World>(comm: &C, budget: &Budget) {
    struct Led<'a, C>(&'a C, &'a Budget);
    impl<C: World> Visitor for Led<'_, C> {
        type Output = ();
        fn visit<T: CommData>(self) {
            for count in [1, 7, 4097] {
                write_and_read::<T, C>(self.0, count, self.1.seed);
            }
        }
    }
    for element in Element::ALL {
        element.visit(Led(comm, budget));
    }
}

/// More than a mebibyte.
pub fn large<C: World>(comm: &C, budget: &Budget) {
    write_and_read::<f64, C>(comm, (1 << 18) + 1, budget.seed);
    write_and_read::<u8, C>(comm, (1 << 20) + 3, budget.seed);
}

/// The leader writes everything, the others nothing; all read what the leader wrote.
fn write_and_read<T: CommData, C: World>(comm: &C, count: usize, seed: u64) {
    let rank = comm.rank();
    let name = std::any::type_name::<T>();
    let mut region = led::<T, C>(comm, count);
    let expected = samples::<T>(&[seed, count as u64], count);
    let writable = region.as_mut_slice();
    let writes = if comm.is_leader() { count } else { 0 };
    assert_eq!(
        writable.len(),
        writes,
        "rank {rank}: elements that it may write of a leader region of {count} {name}"
    );
    writable.copy_from_slice(&expected[..writes]);
    fence(rank, &mut region);
    let what = format_args!("leader region of {count} {name}");
    same_bits(rank, what, region.as_slice(), &expected);
}

/// Each node has its own copy: a rank finds its own leader's number in it, on every node.
pub fn one_copy_per_node<C: World>(comm: &C, _: &Budget) {
    let rank = comm.rank();
    let local = succeeded(rank, format_args!("split_local"), comm.split_local());
    let my_leader = leaders_rank(&local, rank, comm.is_leader());
    let mut region = led::<u64, C>(comm, 3);
    region.as_mut_slice().fill(rank as u64);
    fence(rank, &mut region);
    let expected = [my_leader as u64; 3];
    let what = format_args!("this node's copy of a leader region");
    same_bits(rank, what, region.as_slice(), &expected);
}

/// The rank, in the whole communicator, of the leader of this node; there must be exactly one.
pub(in crate::contract) fn leaders_rank<L: Communicator>(
    local: &L,
    rank: usize,
    leads: bool,
) -> usize {
    let size = local.size();
    let counts = vec![2; size];
    let displs: Vec<usize> = (0..size).map(|sender| 2 * sender).collect();
    let mut said = vec![0; 2 * size];
    let mine = [rank, usize::from(leads)];
    let outcome = local.allgatherv(&mine, &mut said, &counts, &displs);
    succeeded(rank, format_args!("gathering who leads"), outcome);
    let leaders: Vec<usize> = said
        .chunks(2)
        .filter(|said| said[1] == 1)
        .map(|said| said[0])
        .collect();
    let [leader] = leaders[..] else {
        panic!("rank {rank}: expected one leader on its node, found {leaders:?}");
    };
    leader
}
