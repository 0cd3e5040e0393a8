//! Faults of what a call delivers: a right result goes in, a wrong one comes out.

use std::sync::atomic::Ordering;

use cobre_comm::{CommData, Communicator, Reducible};

use super::{Fault, Mutant};
use crate::layout::BlockLayout;

/// Bytes that a fault moves of a message that is larger.
const TRUNCATED: usize = 64 << 10;

impl<C: Communicator> Mutant<C> {
    /// Spoils what a gather in `layout` wrote to `recv`, which held `before`.
    pub(super) fn spoil_gather<T: CommData>(
        &self,
        recv: &mut [T],
        before: &[T],
        layout: &BlockLayout,
    ) {
        let size = layout.counts.len();
        let last = layout.block(size - 1);
        match self.fault {
            Some(Fault::GatherShifted) if last.end < recv.len() => {
                recv.copy_within(last.clone(), last.start + 1);
            }
            Some(Fault::GatherPastBlock) if last.end < recv.len() => recv[last.end] = T::zeroed(),
            Some(Fault::GatherPacked) => {
                let blocks: Vec<T> = (0..size)
                    .flat_map(|rank| recv[layout.block(rank)].to_vec())
                    .collect();
                recv.copy_from_slice(before);
                recv[..blocks.len()].copy_from_slice(&blocks);
            }
            Some(Fault::GatherExchanged) if layout.counts[0] == layout.counts[1] => {
                let first = recv[layout.block(0)].to_vec();
                recv.copy_within(layout.block(1), layout.displs[0]);
                recv[layout.block(1)].copy_from_slice(&first);
            }
            _ => {}
        }
        for rank in 0..size {
            let block = layout.block(rank);
            let written: &mut [u8] = bytemuck::cast_slice_mut(&mut recv[block.clone()]);
            let kept = match self.fault {
                Some(Fault::GatherWholeWords) => written.len() / 8 * 8,
                Some(Fault::GatherTruncated) => written.len().min(TRUNCATED),
                Some(Fault::GatherLosesAtBorder) if written.len() == 4096 => 4095,
                _ => continue,
            };
            written[kept..].copy_from_slice(&bytemuck::cast_slice(&before[block])[kept..]);
        }
    }

    /// Spoils what a gather at the root wrote to `recv`, which held `before`.
    pub(super) fn spoil_rooted_gather<T: CommData>(
        &self,
        recv: &mut [T],
        before: &[T],
        layout: &BlockLayout,
    ) {
        let own = layout.block(self.inner.rank());
        match self.fault {
            Some(Fault::RootedOwnLost) => recv[own.clone()].copy_from_slice(&before[own]),
            Some(Fault::RootedTruncated) => {
                for rank in 0..layout.counts.len() {
                    let block = layout.block(rank);
                    let written: &mut [u8] = bytemuck::cast_slice_mut(&mut recv[block.clone()]);
                    let kept = written.len().min(TRUNCATED);
                    written[kept..].copy_from_slice(&bytemuck::cast_slice(&before[block])[kept..]);
                }
            }
            Some(Fault::RootedRarelyStale) => {
                let stale = self.every(10);
                self.remember(recv, stale);
            }
            _ => {}
        }
    }

    /// Spoils the result of a reduction in `recv`, which held `before`.
    pub(super) fn spoil_reduction<T: Reducible>(&self, recv: &mut [T], before: &[T]) {
        let length = recv.len();
        let last_rank = self.inner.rank() + 1 == self.inner.size();
        match self.fault {
            Some(Fault::ReduceTailLost) if length > 1 => recv[length - 1] = before[length - 1],
            Some(Fault::ReduceLongSpoiled) if length > 65_536 => flip(&mut recv[length / 2]),
            Some(Fault::ReduceDiffers) if last_rank && length > 0 => flip(&mut recv[0]),
            Some(Fault::ReduceStale) => self.remember(recv, true),
            Some(Fault::ReduceRarelyStale) => self.remember(recv, self.every(50)),
            _ => {}
        }
    }

    /// Spoils what a broadcast left in `buf`, which held `before`.
    pub(super) fn spoil_broadcast<T: CommData>(&self, buf: &mut [T], before: &[T], root: usize) {
        let rank = self.inner.rank();
        match self.fault {
            Some(Fault::BroadcastLost) if rank + 1 == self.inner.size() => {
                buf.copy_from_slice(before);
            }
            Some(Fault::BroadcastSpoilsRoot) if rank == root && !buf.is_empty() => {
                flip(&mut buf[before.len() - 1]);
            }
            Some(Fault::BroadcastTruncated) => {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(buf);
                let kept = bytes.len().min(TRUNCATED);
                bytes[kept..].copy_from_slice(&bytemuck::cast_slice(before)[kept..]);
            }
            Some(Fault::BroadcastRarelyStale) => {
                let stale = self.every(10) && rank != root;
                self.remember(buf, stale);
            }
            _ => {}
        }
    }

    /// True in every `period`-th call.
    pub(super) fn every(&self, period: usize) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % period == period - 1
    }

    /// Replaces `result` by the one before if that has the same length and `stale` says so.
    fn remember<T: CommData>(&self, result: &mut [T], stale: bool) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(result);
        let right = bytes.to_vec();
        let mut previous = self.previous.lock().expect("nobody panics in here");
        if stale && previous.len() == bytes.len() {
            bytes.copy_from_slice(&previous);
        }
        *previous = right;
    }
}

/// Changes the lowest bit of an element's first byte.
fn flip<T: CommData>(element: &mut T) {
    bytemuck::bytes_of_mut(element)[0] ^= 1;
}
