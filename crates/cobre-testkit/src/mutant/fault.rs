//! The faults: what each does wrong, the smallest world in which that shows, and the contracts that
//! must notice.

use std::str::FromStr;

/// From one row per fault: the enum and its table.
macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $min_size:literal, [$($contract:literal),+];)*) => {
        /// One thing that a communicator does wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $variant,)*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// By which it is asked for.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The smallest number of ranks with which it shows.
            pub fn min_size(self) -> usize {
                match self {
                    $(Self::$variant => $min_size,)*
                }
            }

            /// The contracts that must notice it.
            pub fn caught_by(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($contract),+],)*
                }
            }
        }
    };
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|fault| fault.name() == name);
        found
            .copied()
            .ok_or_else(|| format!("no mutant is called {name:?}"))
    }
}

faults! {
    /// Numbers itself one too high.
    RankTooHigh = "rank-too-high", 1, ["identity"];
    /// Sees one rank that does not exist.
    SizeTooLarge = "size-too-large", 1, ["identity"];
    /// Two ranks have the number 0.
    RankTwice = "rank-twice", 2, ["identity"];

    /// Puts the last block one element too far, where there is room.
    GatherShifted = "gather-shifted", 1, ["allgatherv/layouts", "program"];
    /// Writes one element past the last block, where there is room.
    GatherPastBlock = "gather-past-block", 1, ["allgatherv/layouts", "allgatherv/empty", "program"];
    /// Packs the blocks, whatever the displacements.
    GatherPacked = "gather-packed", 1, ["allgatherv/layouts", "allgatherv/types"];
    /// Moves whole words of eight bytes only.
    GatherWholeWords = "gather-whole-words", 1, ["allgatherv/types", "allgatherv/uneven"];
    /// Moves the first 64 KiB of a block.
    GatherTruncated = "gather-truncated", 1, ["allgatherv/borders"];
    /// Loses the last byte of a block of exactly one page.
    GatherLosesAtBorder = "gather-loses-at-border", 1, ["allgatherv/borders"];
    /// Exchanges the first two blocks where they are of one length.
    GatherExchanged = "gather-exchanged", 2, ["allgatherv/single", "sequence/large-and-small"];

    /// Gathers at rank 0, whatever the root.
    RootedAtZero = "rooted-at-zero", 2, ["gatherv/roots", "mismatch/gather-root"];
    /// Does not write the root's own block.
    RootedOwnLost = "rooted-own-lost", 1, ["gatherv/roots", "gatherv/types", "program"];
    /// Writes to the first element of the other ranks' buffers.
    RootedSpills = "rooted-spills", 2, ["gatherv/roots", "program"];
    /// Moves the first 64 KiB of a block to the root.
    RootedTruncated = "rooted-truncated", 1, ["gatherv/borders"];
    /// Gives the root the gather before once in ten times.
    RootedRarelyStale = "rooted-rarely-stale", 1, ["sequence/rotating-roots"];

    /// Adds from +0.0, which makes a zero of −0.0.
    SumFromZero = "sum-from-zero", 1, ["allreduce/special-values"];
    /// Makes the one NaN of any NaN, alone too.
    NanAlone = "nan-alone", 1, ["allreduce/special-values"];
    /// Combines in reverse rank order.
    SumReversed = "sum-reversed", 3, ["allreduce/rank-order", "program"];
    /// Combines in pairs, as a tree does.
    SumInPairs = "sum-in-pairs", 4, ["allreduce/rank-order", "program"];
    /// Sums single precision in double and rounds once.
    SumWide = "sum-wide", 3, ["allreduce/rank-order"];
    /// Integers stop at their limits.
    SumSaturates = "sum-saturates", 2, ["allreduce/special-values"];
    /// The minimum of a number and NaN is the number.
    MinSkipsNan = "min-skips-nan", 2, ["allreduce/special-values"];
    /// A NaN keeps its payload.
    NanKept = "nan-kept", 2, ["allreduce/special-values"];
    /// The maximum of two zeros is the first.
    ZerosEqual = "zeros-equal", 2, ["allreduce/special-values"];
    /// Signed integers are compared as unsigned.
    SignsIgnored = "signs-ignored", 2, ["allreduce/special-values", "allreduce/types"];
    /// Does not write the last element of several.
    ReduceTailLost = "reduce-tail-lost", 1, ["allreduce/lengths"];
    /// Spoils one element of more than 65,536.
    ReduceLongSpoiled = "reduce-long-spoiled", 1, ["allreduce/borders"];
    /// Gives the last rank another last bit.
    ReduceDiffers = "reduce-differs", 2, ["allreduce/same-everywhere"];
    /// Gives the result before, where it has the same length.
    ReduceStale = "reduce-stale", 1, ["sequence/back-to-back"];
    /// Gives the result before once in fifty times.
    ReduceRarelyStale = "reduce-rarely-stale", 1, ["sequence/back-to-back"];

    /// Does not reach the last rank.
    BroadcastLost = "broadcast-lost", 2, ["broadcast/roots", "program"];
    /// Sends what rank 0 has.
    BroadcastFromZero = "broadcast-from-zero", 2, ["broadcast/roots", "mismatch/root"];
    /// Spoils the root's own last element.
    BroadcastSpoilsRoot = "broadcast-spoils-root", 1, ["broadcast/roots", "program"];
    /// Sends the first 64 KiB.
    BroadcastTruncated = "broadcast-truncated", 2, ["broadcast/large", "broadcast/borders"];
    /// Delivers the broadcast before once in ten times.
    BroadcastRarelyStale = "broadcast-rarely-stale", 2, ["sequence/rotating-roots"];

    /// Returns at once.
    BarrierAbsent = "barrier-absent", 2, ["barrier/waits-for-the-late", "barrier/holds"];
    /// Returns at once every third time.
    BarrierNowAndThen = "barrier-now-and-then", 2, ["barrier/holds"];

    /// Regions begin with ones.
    RegionNotZeroed = "region-not-zeroed", 1, ["region/begin-zeroed"];
    /// A region of more than a page begins with a one at its end.
    RegionEndNotZeroed = "region-end-not-zeroed", 1, ["region/begin-zeroed"];
    /// A fence does nothing.
    FenceIdle = "fence-idle", 1, ["region/epochs"];
    /// Shows what was there in the read epoch before.
    RegionStale = "region-stale", 1, ["region/epochs", "program"];
    /// Forgets this rank's part when writing begins again.
    RegionForgets = "region-forgets", 1, ["region/contents-stay", "program"];
    /// Lets itself be read in a write epoch.
    ReadAnyTime = "read-any-time", 1, ["region/misuse-panics"];
    /// Lets itself be written in a read epoch.
    WriteAnyTime = "write-any-time", 1, ["region/misuse-panics"];
    /// Gives each rank the next one's part.
    PartsRotated = "parts-rotated", 2, ["region/partitioned-shapes"];
    /// Lets itself be read after a fence that failed.
    PoisonIgnored = "poison-ignored", 2, ["mismatch/fence"];
    /// Nobody leads.
    NobodyLeads = "nobody-leads", 1, ["split/nodes-partition-the-ranks", "region/leader-types"];
    /// The node's communicator numbers its ranks one too high.
    LocalRankTooHigh = "local-rank-too-high", 1, ["split/nodes-partition-the-ranks"];

    /// Ranks that disagree are told that all went well.
    MismatchSwallowed = "mismatch-swallowed", 2, ["mismatch/collective", "mismatch/fence", "refused/root"];
    /// Rank 0 is not told that ranks disagree.
    MismatchMissedByOne = "mismatch-missed-by-one", 2, ["mismatch/operator"];
    /// Does not look at the type of what it broadcasts.
    TypeIgnored = "type-ignored", 2, ["mismatch/element-type"];
    /// Does not look at the operator.
    OperatorIgnored = "operator-ignored", 2, ["mismatch/operator"];
    /// Goes on after a failure.
    FailureForgotten = "failure-forgotten", 2, ["mismatch/counts", "abort/barrier"];
    /// Gives another cause for later failures.
    CauseForgotten = "cause-forgotten", 2, ["mismatch/counts"];
    /// Takes arguments that do not fit.
    RefusalSwallowed = "refusal-swallowed", 1, ["refused/short-recv", "refused/root", "refused/region-length"];
    /// Is finished after a refused argument, with nobody to disagree.
    RefusalEndsAlone = "refusal-ends-alone", 1, ["refused/root"];

    /// Does not tell anybody that it gives up.
    AbortSwallowed = "abort-swallowed", 2, ["abort/barrier", "abort/allreduce", "abort/later-calls"];
    /// Does not say why.
    AbortReasonLost = "abort-reason-lost", 2, ["abort/fence"];
    /// Names another rank.
    AbortNamesAnother = "abort-names-another", 2, ["abort/broadcast"];
    /// Tells the last rank of another process.
    AbortRecordDiffers = "abort-record-differs", 2, ["abort/later-calls"];

    /// Lets a second thread wait.
    ThreadsQueue = "threads-queue", 2, ["threads/second-is-turned-away"];
    /// A fence that met another thread ends its region.
    BusyPoisons = "busy-poisons", 2, ["threads/second-is-turned-away"];
    /// Tells a second thread that all went well.
    BusySwallowed = "busy-swallowed", 2, ["threads/second-is-turned-away"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Contract;

    #[test]
    fn every_fault_is_caught_by_contracts_that_exist_and_run_at_its_size() {
        for fault in Fault::ALL {
            for name in fault.caught_by() {
                let contract = Contract::find(name).expect(name);
                assert!(contract.min_size <= fault.min_size(), "{fault:?}: {name}");
            }
        }
    }

    #[test]
    fn a_fault_is_found_by_its_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(*fault));
        }
        assert!("bogus".parse::<Fault>().is_err());
    }
}
