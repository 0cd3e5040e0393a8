//! From zeroed memory to the drop: many regions at once and one after the other, dropped by each
//! rank when it likes.

use cobre_comm::{CommData, CommError, SharedRegion};

use super::{fence, led, parted};
use crate::budget::Budget;
use crate::check::{failed, same_bits, succeeded, told};
use crate::contract::World;
use crate::element::{Dozen, SampleRecord, Triple, samples};
use crate::layout::even;

/// New regions hold zeros, also where one that was written has just been dropped.
pub fn begin_zeroed<C: World>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    for round in 0..budget.share(300).max(10) {
        let count = [1, 300, 20_000][round % 3];
        let counts = even(comm.size(), count);
        zeroed(rank, led(comm, count), count);
        zeroed(rank, parted(comm, &counts), count);
    }
}

/// Zeros to the writer and to every reader; leaves something else behind.
fn zeroed(rank: usize, mut region: impl SharedRegion<u64>, count: usize) {
    let what = format_args!("own part of a new region");
    let part = vec![0; region.as_mut_slice().len()];
    same_bits(rank, what, region.as_mut_slice(), &part);
    fence(rank, &mut region);
    let what = format_args!("new region of {count}");
    same_bits(rank, what, region.as_slice(), &vec![0; count]);
    fence(rank, &mut region);
    region.as_mut_slice().fill(u64::MAX);
    fence(rank, &mut region);
}

/// Regions without any element, and parts without any on some ranks or on all.
pub fn empty<C: World>(comm: &C, _: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let every_second: Vec<usize> = (0..size).map(|owner| owner % 2).collect();
    for counts in [vec![0; size], every_second] {
        let mut region = parted::<f64, C>(comm, &counts);
        for _ in 0..3 {
            assert_eq!(region.as_mut_slice().len(), counts[rank], "rank {rank}");
            fence(rank, &mut region);
            let total: usize = counts.iter().sum();
            assert_eq!(region.as_slice().len(), total, "rank {rank}");
            fence(rank, &mut region);
        }
    }
    let mut region = led::<SampleRecord, C>(comm, 0);
    assert!(region.as_mut_slice().is_empty(), "rank {rank}");
    fence(rank, &mut region);
    assert!(region.as_slice().is_empty(), "rank {rank}");
}

/// Several regions of different types at once, in different epochs, fenced crosswise.
pub fn several_at_once<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let counts = even(size, 100);
    let mut a = parted::<f64, C>(comm, &counts);
    let mut b = led::<Triple, C>(comm, 77);
    let mut c = parted::<Dozen, C>(comm, &counts);
    for round in 0..budget.share(300).max(4) as u64 {
        write_part(&mut a, round, rank);
        fence(rank, &mut a);
        write_part(&mut c, round, rank);
        let all = samples::<Triple>(&[round], 77);
        let writable = b.as_mut_slice();
        let writes = writable.len();
        writable.copy_from_slice(&all[..writes]);
        fence(rank, &mut c);
        read_parts(&a, &counts, round, rank);
        fence(rank, &mut b);
        fence(rank, &mut a);
        read_parts(&c, &counts, round, rank);
        same_bits(rank, format_args!("leader region"), b.as_slice(), &all);
        fence(rank, &mut b);
        fence(rank, &mut c);
    }
}

fn write_part<T: CommData>(region: &mut impl SharedRegion<T>, round: u64, rank: usize) {
    let part = region.as_mut_slice();
    part.copy_from_slice(&samples(&[round, rank as u64], part.len()));
}

fn read_parts<T: CommData>(
    region: &impl SharedRegion<T>,
    counts: &[usize],
    round: u64,
    rank: usize,
) {
    let parts = counts.iter().enumerate();
    let expected: Vec<T> = parts
        .flat_map(|(owner, &count)| samples(&[round, owner as u64], count))
        .collect();
    let name = std::any::type_name::<T>();
    let what = format_args!("region of {name} in round {round}");
    same_bits(rank, what, region.as_slice(), &expected);
}

/// Each rank drops its regions in an order of its own, in either epoch; those that stay still work.
pub fn dropped_in_any_order<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let mut own = budget.random_on(rank, "drops");
    let counts = even(size, 2 * size + 1);
    for round in 0..budget.share(200).max(4) as u64 {
        let mut regions = Vec::new();
        for number in 0..9 {
            let mut region = parted::<u32, C>(comm, &counts);
            write_part(&mut region, round + number, rank);
            if number % 3 > 0 {
                fence(rank, &mut region);
            }
            regions.push(Some(region));
        }
        // The last one stays on all ranks; each drops some of the others now and the rest later.
        for index in own.order(8) {
            if own.once_in(2) {
                regions[index] = None;
            }
        }
        let kept = regions[8].as_ref().expect("never dropped above");
        read_parts(kept, &counts, round + 8, rank);
        succeeded(rank, format_args!("barrier among drops"), comm.barrier());
        for index in own.order(9) {
            regions[index] = None;
        }
    }
    let mut region = parted::<u32, C>(comm, &counts);
    write_part(&mut region, 0, rank);
    fence(rank, &mut region);
    read_parts(&region, &counts, 0, rank);
}

/// Thousands created and dropped: nothing runs out.
pub fn thousands<C: World>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    let counts = even(comm.size(), 600);
    for round in 0..budget.share(5000) as u64 {
        let mut region = parted::<u64, C>(comm, &counts);
        if round % 16 == 0 {
            write_part(&mut region, round, rank);
            fence(rank, &mut region);
            read_parts(&region, &counts, round, rank);
        }
        drop(led::<u8, C>(comm, 1000));
    }
}

/// A region larger than memory is an error on every rank, not a crash.
pub fn more_than_memory<C: World>(comm: &C, _: &Budget) {
    let rank = comm.rank();
    let created = comm.create_shared_region::<u8>(isize::MAX as usize - 4096);
    let error = failed(rank, format_args!("region of all addresses"), created);
    assert!(
        matches!(
            error,
            CommError::AllocationFailed { .. } | CommError::CollectiveFailed { .. }
        ),
        "rank {rank}: expected that memory cannot be had, found: {}",
        told(&error)
    );
}
