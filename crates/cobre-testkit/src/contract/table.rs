//! Every contract: its name, what to run, and what it needs.

use super::region::{epochs, leader, lifetime, partitioned};
use super::{
    World, abort, allgatherv, allreduce, barrier, broadcast, gatherv, identity, mismatch, refused,
    sequence, split, threads,
};
use crate::budget::Budget;
use crate::program;

/// A promise that every communicator keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// By which it is asked for.
    pub name: &'static str,
    /// Ranks without which there is nothing to see.
    pub min_size: usize,
    /// True if one rank, which the seed picks, does something else than the others. With a second
    /// rank, such a contract ends its communicator.
    pub odd_one_out: bool,
}

/// From one row per contract: the list, and the function to a name. Only who asks for functions of
/// a communicator gets them compiled.
macro_rules! contracts {
    ($($odd_one_out:literal from $min_size:literal: { $($name:literal => $function:path,)* })*) => {
        /// Every contract.
        pub const CONTRACTS: &[Contract] = &[$($(
            Contract {
                name: $name,
                min_size: $min_size,
                odd_one_out: $odd_one_out,
            },
        )*)*];

        /// The function that every rank runs, with the same budget, to prove the contract `name`; it panics if
        /// the promise is broken.
        pub fn function<C: World>(name: &str) -> Option<fn(&C, &Budget)> {
            match name {
                $($($name => Some($function),)*)*
                _ => None,
            }
        }
    };
}

contracts! {
    false from 1: {
        "identity" => identity::ranks_are_numbered,
        "allgatherv/uneven" => allgatherv::uneven,
        "allgatherv/empty" => allgatherv::empty,
        "allgatherv/single" => allgatherv::single,
        "allgatherv/shapes" => allgatherv::shapes,
        "allgatherv/doubling" => allgatherv::doubling,
        "allgatherv/borders" => allgatherv::borders,
        "allgatherv/layouts" => allgatherv::layouts,
        "allgatherv/types" => allgatherv::types,
        "gatherv/roots" => gatherv::roots,
        "gatherv/borders" => gatherv::borders,
        "gatherv/layouts" => gatherv::layouts,
        "gatherv/types" => gatherv::types,
        "gatherv/nothing-elsewhere" => gatherv::nothing_elsewhere,
        "allreduce/types" => allreduce::types,
        "allreduce/lengths" => allreduce::lengths,
        "allreduce/borders" => allreduce::borders,
        "allreduce/rank-order" => allreduce::rank_order,
        "allreduce/special-values" => allreduce::special_values,
        "allreduce/same-everywhere" => allreduce::same_everywhere,
        "broadcast/roots" => broadcast::roots,
        "broadcast/borders" => broadcast::borders,
        "broadcast/large" => broadcast::large,
        "broadcast/types" => broadcast::types,
        "barrier/holds" => barrier::holds,
        "barrier/waits-for-the-late" => barrier::waits_for_the_late,
        "barrier/in-a-row" => barrier::in_a_row,
        "sequence/back-to-back" => sequence::back_to_back,
        "sequence/mixed" => sequence::mixed,
        "sequence/rotating-roots" => sequence::rotating_roots,
        "sequence/large-and-small" => sequence::large_and_small,
        "region/leader-types" => leader::types,
        "region/leader-large" => leader::large,
        "region/one-copy-per-node" => leader::one_copy_per_node,
        "region/partitioned-shapes" => partitioned::shapes,
        "region/partitioned-types" => partitioned::types,
        "region/partitioned-large" => partitioned::large,
        "region/epochs" => epochs::many,
        "region/contents-stay" => epochs::contents_stay,
        "region/misuse-panics" => epochs::misuse_panics,
        "region/begin-zeroed" => lifetime::begin_zeroed,
        "region/empty" => lifetime::empty,
        "region/several-at-once" => lifetime::several_at_once,
        "region/dropped-in-any-order" => lifetime::dropped_in_any_order,
        "region/thousands" => lifetime::thousands,
        "region/more-than-memory" => lifetime::more_than_memory,
        "split/nodes-partition-the-ranks" => split::nodes_partition_the_ranks,
        "split/own-sequence" => split::own_sequence,
        "split/beside-the-parent" => split::beside_the_parent,
        "threads/never-mixed-up" => threads::never_mixed_up,
        "program" => program::keeps_to_the_oracle,
    }
    false from 2: {
        "threads/second-is-turned-away" => threads::second_is_turned_away,
    }
    true from 1: {
        "refused/short-recv" => refused::short_recv,
        "refused/block-past-all-addresses" => refused::block_past_all_addresses,
        "refused/send-length" => refused::send_length,
        "refused/counts-length" => refused::counts_length,
        "refused/displs-length" => refused::displs_length,
        "refused/reduce-lengths" => refused::reduce_lengths,
        "refused/root" => refused::root,
        "refused/largest-root" => refused::largest_root,
        "refused/gather-root" => refused::gather_root,
        "refused/gather-short-recv" => refused::gather_short_recv,
        "refused/gather-send-length" => refused::gather_send_length,
        "refused/region-length" => refused::region_length,
        "refused/parts-length" => refused::parts_length,
        "refused/parts-count" => refused::parts_count,
        "abort/later-calls" => abort::later_calls,
    }
    true from 2: {
        "refused/overlapping-blocks" => refused::overlapping_blocks,
        "mismatch/collective" => mismatch::collective,
        "mismatch/large-collective" => mismatch::large_collective,
        "mismatch/reduce-length" => mismatch::reduce_length,
        "mismatch/broadcast-length" => mismatch::broadcast_length,
        "mismatch/counts" => mismatch::counts,
        "mismatch/gather-root" => mismatch::gather_root,
        "mismatch/gather-counts" => mismatch::gather_counts,
        "mismatch/gathers" => mismatch::gathers,
        "mismatch/element-type" => mismatch::element_type,
        "mismatch/operator" => mismatch::operator,
        "mismatch/root" => mismatch::root,
        "mismatch/fence" => mismatch::fence,
        "mismatch/fence-and-barrier" => mismatch::fence_and_barrier,
        "mismatch/region-length" => mismatch::region_length,
        "mismatch/region-counts" => mismatch::region_counts,
        "mismatch/region-type" => mismatch::region_type,
        "mismatch/split" => mismatch::split,
        "mismatch/regions-stay-readable" => mismatch::regions_stay_readable,
        "abort/barrier" => abort::barrier,
        "abort/allreduce" => abort::allreduce,
        "abort/long-allreduce" => abort::long_allreduce,
        "abort/broadcast" => abort::broadcast,
        "abort/allgatherv" => abort::allgatherv,
        "abort/gatherv" => abort::gatherv,
        "abort/fence" => abort::fence,
        "abort/create-region" => abort::create_region,
        "abort/split-local" => abort::split_local,
    }
}

impl Contract {
    /// The contract that prints a digest.
    pub const PROGRAM: &str = "program";

    /// The contract called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        CONTRACTS.iter().find(|contract| contract.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = CONTRACTS.iter().map(|contract| contract.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_program_is_a_contract() {
        assert!(Contract::find(Contract::PROGRAM).is_some());
    }
}
