//! Long reductions where the ranks of each host follow one another: the first leader reduces its host's vectors and hands the
//! result so far to the next, which goes on with those of its own host. The last has the result, and it goes back the same
//! way. Between two hosts one vector crosses in each direction, however many ranks they have, and elements are combined in rank
//! order all the same. Vectors go in pieces, so that all leaders are at work.

use std::ops::Range;

use super::collectives::{STAR, goes_direct_among};
use super::frame::FrameKind;
use super::group::RunningCall;
use super::hierarchy::HostCall;
use super::host_group::HostTable;
use super::link::{Incoming, Outgoing};
use super::system;
use crate::backends::shm::HostGroup;
use crate::communicator::ReduceOp;
use crate::data::{Reducible, reduce, reduce_onto};
use crate::transport::TransportFault;

/// A leader among those that hand vectors on, and what a block of so many pieces asks of it at each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChainPlace {
    /// This leader's number, and the last one's.
    own: usize,
    last: usize,
    pieces: usize,
}

/// The piece that goes in each direction at a step, if any.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct StepPieces {
    /// So far: from the leader before, combined here, and to the next.
    taken: Option<usize>,
    combined: Option<usize>,
    handed_on: Option<usize>,
    /// Results: from the next leader, and to the one before.
    result: Option<usize>,
    handed_back: Option<usize>,
}

impl ChainPlace {
    /// Steps in which the last piece has come back to the first leader.
    fn steps(self) -> usize {
        self.pieces + 2 * self.last - 1
    }

    /// A piece moves on by one leader at each step, to the last one and back.
    fn at(self, step: usize) -> StepPieces {
        let Self { own, last, pieces } = self;
        let begun_before = |steps: usize| step.checked_sub(steps).filter(|&it| it < pieces);
        let is_last = own == last;
        let combined = begun_before(own);
        StepPieces {
            taken: own.checked_sub(1).and_then(begun_before),
            combined,
            handed_on: combined.filter(|_| !is_last),
            result: (2 * last - own)
                .checked_sub(1)
                .filter(|_| !is_last)
                .and_then(begun_before),
            handed_back: begun_before(2 * last - own).filter(|_| own > 0),
        }
    }
}

impl HostCall<'_> {
    /// True if vectors of so many bytes are handed on from leader to leader: no small ones, and those of so many pieces that the
    /// wait for the first and the last of them is shorter than sending the vectors of all ranks of a host.
    pub(super) fn can_chain(&self, bytes: usize) -> bool {
        let (leaders, ranks) = (self.hosts.leaders.len(), self.hosts.ranks());
        let pieces = bytes.min(block_bytes(self.hosts)) / system::chain_piece();
        let way = 2 * (leaders - 1);
        bytes.saturating_mul(leaders - 1) > STAR
            && pieces * (ranks - leaders) >= 2 * way * leaders
            && follow_one_another(&self.hosts.members)
            && goes_direct_among(self.run.group, leaders, bytes)
    }

    /// Reduces vectors for which [`can_chain`](Self::can_chain) holds, block by block.
    pub(super) fn reduce_in_chain<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        let block = block_bytes(self.hosts) / size_of::<T>();
        for (send, recv) in send.chunks(block).zip(recv.chunks_mut(block)) {
            let signature = self.run.signature;
            self.inside(|group| group.offer_to_leader(signature, send))?;
            self.between(|run| hand_on(run, self.hosts, (send, recv), op))?;
            self.inside(|group| group.hand_out_result(signature, recv))?;
        }
        Ok(())
    }
}

/// Bytes that are reduced at a time: what every host has room for.
fn block_bytes(hosts: &HostTable) -> usize {
    let largest = hosts.members.iter().map(Vec::len).max();
    HostGroup::most_offered(largest.unwrap_or(1))
}

/// True if the ranks of each host have numbers in a row.
fn follow_one_another(members: &[Vec<usize>]) -> bool {
    let in_a_row = |ranks: &Vec<usize>| ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    members.iter().all(in_a_row)
}

/// On a leader: reduces the vectors of all hosts, of which its own is `send`, into `recv`.
fn hand_on<T: Reducible>(
    run: &RunningCall<'_>,
    hosts: &HostTable,
    (send, recv): (&[T], &mut [T]),
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let elements = system::chain_piece() / size_of::<T>();
    let place = ChainPlace {
        own: run.rank(),
        last: run.size() - 1,
        pieces: recv.len().div_ceil(elements),
    };
    let first = run.next_round();
    run.skip_rounds(place.steps() as u64);
    let mut pieces: Vec<&mut [T]> = recv.chunks_mut(elements).collect();
    for step in 0..place.steps() {
        let moves = place.at(step);
        if let Some(number) = moves.combined {
            let start = number * elements;
            let range = start..start + pieces[number].len();
            combine_own(hosts, send, (pieces[number], range), (op, place.own == 0));
        }
        let round = first + step as u64;
        let header = run.header(FrameKind::Direct, round);
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for (number, piece) in pieces.iter_mut().enumerate() {
            let number = Some(number);
            if number == moves.taken {
                let bytes = bytemuck::cast_slice_mut(piece);
                incoming.push(Incoming::new(place.own - 1, vec![bytes]));
            } else if number == moves.result {
                let bytes = bytemuck::cast_slice_mut(piece);
                incoming.push(Incoming::new(place.own + 1, vec![bytes]));
            } else if number == moves.handed_on {
                let bytes: &[u8] = bytemuck::cast_slice(piece);
                outgoing.push(Outgoing::new(place.own + 1, &header, &[bytes]));
            } else if number == moves.handed_back {
                let bytes: &[u8] = bytemuck::cast_slice(piece);
                outgoing.push(Outgoing::new(place.own - 1, &header, &[bytes]));
            }
        }
        let kind = FrameKind::Direct;
        run.exchange((kind, round), &mut outgoing, &mut incoming, || false)?;
    }
    Ok(())
}

/// Combines the vectors of this host, on its leader, with those before; the first leader begins.
fn combine_own<T: Reducible>(
    hosts: &HostTable,
    send: &[T],
    (so_far, range): (&mut [T], Range<usize>),
    (op, is_first): (ReduceOp, bool),
) {
    let vector = |rank: usize| match &hosts.group {
        Some(group) if rank > 0 => group.offered(rank, range.clone()),
        _ => &send[range.clone()],
    };
    let vectors = (0..hosts.here().len()).map(vector);
    if is_first {
        reduce(so_far, vectors, op);
    } else {
        reduce_onto(so_far, vectors, op);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of all leaders side by side: what one gives is what its neighbour takes, in the same step.
    #[test]
    fn every_piece_goes_to_the_last_leader_and_back() {
        for (last, pieces) in [(1, 1), (1, 5), (2, 1), (2, 4), (3, 3), (5, 9)] {
            let places = (0..=last).map(|own| ChainPlace { own, last, pieces });
            let places: Vec<ChainPlace> = places.collect();
            let (mut combined, mut results) = (vec![0; pieces], vec![last; pieces]);
            for step in 0..places[0].steps() {
                let moves: Vec<StepPieces> = places.iter().map(|it| it.at(step)).collect();
                for (own, it) in moves.iter().enumerate() {
                    if let Some(piece) = it.combined {
                        assert_eq!(combined[piece], own, "in the order of the hosts");
                        combined[piece] += 1;
                    }
                    if let Some(piece) = it.handed_back {
                        assert_eq!((combined[piece], results[piece]), (last + 1, own));
                        results[piece] -= 1;
                    }
                    let next = moves.get(own + 1).copied().unwrap_or_default();
                    assert_eq!((it.handed_on, it.result), (next.taken, next.handed_back));
                    let touched = [it.taken, it.result, it.handed_on, it.handed_back];
                    let mut touched: Vec<usize> = touched.into_iter().flatten().collect();
                    let count = touched.len();
                    touched.sort_unstable();
                    touched.dedup();
                    assert_eq!(touched.len(), count, "one direction for each piece");
                }
                assert_eq!((moves[0].taken, moves[0].handed_back), (None, None));
            }
            assert_eq!(combined, vec![last + 1; pieces]);
            assert_eq!(results, vec![0; pieces]);
        }
    }

    #[test]
    fn hosts_hand_on_if_their_ranks_are_numbered_in_a_row() {
        assert!(follow_one_another(&[vec![0, 1], vec![2], vec![3, 4, 5]]));
        assert!(!follow_one_another(&[vec![0, 2], vec![1]]));
    }
}
