//! Write epoch, fence, read epoch, fence: what one writes the others see after the fence and not
//! after the next writing has begun, and using a region in the wrong epoch is a panic.

use cobre_comm::SharedRegion;

use super::{fence, led, parted};
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::contract::{World, dawdle, panics};
use crate::element::samples;
use crate::layout::even;

/// Many epochs of both kinds of region; slow readers and slow writers on random ranks.
pub fn many<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let mut delays = budget.random_on(rank, "epochs");
    let counts = even(size, 3 * size + 1);
    let mut parts = parted::<u64, C>(comm, &counts);
    let mut whole = led::<u64, C>(comm, 5);
    for epoch in 0..budget.share(3000) as u64 {
        let part = |owner: usize| samples::<u64>(&[epoch, owner as u64], counts[owner]);
        parts.as_mut_slice().copy_from_slice(&part(rank));
        whole.as_mut_slice().fill(epoch);
        dawdle(&mut delays);
        fence(rank, &mut parts);
        fence(rank, &mut whole);
        dawdle(&mut delays);
        let expected: Vec<u64> = (0..size).flat_map(part).collect();
        let what = format_args!("partitioned region in epoch {epoch}");
        same_bits(rank, what, parts.as_slice(), &expected);
        let what = format_args!("leader region in epoch {epoch}");
        same_bits(rank, what, whole.as_slice(), &[epoch; 5]);
        fence(rank, &mut parts);
        fence(rank, &mut whole);
    }
}

/// Written elements stay: a rank finds its own part in the next write epoch, changes one element,
/// and all see that change alone.
pub fn contents_stay<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let counts = vec![3; size];
    let mut region = parted::<u32, C>(comm, &counts);
    let mut expected = vec![0u32; 3 * size];
    for round in 0..budget.share(300).max(6) {
        let mine = 3 * rank..3 * rank + 3;
        let what = format_args!("own part in write epoch {round}");
        same_bits(rank, what, region.as_mut_slice(), &expected[mine]);
        let changed = round % 3;
        for owner in 0..size {
            expected[3 * owner + changed] = (round * size + owner + 1) as u32;
        }
        region.as_mut_slice()[changed] = (round * size + rank + 1) as u32;
        fence(rank, &mut region);
        let what = format_args!("region in read epoch {round}");
        same_bits(rank, what, region.as_slice(), &expected);
        fence(rank, &mut region);
    }
}

/// Reading in a write epoch and writing in a read epoch are panics, on both kinds of region, empty
/// ones included; region and communicator are unharmed when the panic is caught.
pub fn misuse_panics<C: World>(comm: &C, _: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    for count in [0, 4] {
        misuse(rank, led(comm, count));
        misuse(rank, parted(comm, &vec![count; size]));
    }
    succeeded(rank, format_args!("barrier after misuse"), comm.barrier());
}

fn misuse(rank: usize, mut region: impl SharedRegion<f64>) {
    for epoch in 0..2 {
        let text = panics(rank, "reading in a write epoch", || region.as_slice().len());
        speaks_of_the_epoch(rank, &text);
        region.as_mut_slice().fill(f64::from(epoch));
        fence(rank, &mut region);
        let text = panics(rank, "writing in a read epoch", || {
            region.as_mut_slice().len()
        });
        speaks_of_the_epoch(rank, &text);
        let _ = region.as_slice();
        fence(rank, &mut region);
    }
}

fn speaks_of_the_epoch(rank: usize, text: &str) {
    assert!(
        text.contains("epoch"),
        "rank {rank}: expected a panic that speaks of the epoch, found {text:?}"
    );
}
