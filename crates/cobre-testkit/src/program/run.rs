//! A program on real ranks, each result against what the seed says every rank contributed.

use std::collections::BTreeMap;
use std::fmt;

use cobre_comm::{CommData, ReduceOp, Reducible, SharedRegion};

use super::digest::Digest;
use super::step::{Extent, ProgramStep, RandomProgram};
use crate::check::{same_bits, succeeded};
use crate::contract::{World, dawdle};
use crate::element::{Visitor, samples};
use crate::layout::BlockLayout;
use crate::number::{NumberVisitor, from_bits, numbers};
use crate::oracle;
use crate::random::Random;

/// Runs `program`, and gives the digest of all results: the same on every rank and every backend.
///
/// # Panics
/// If a call fails or a result has another bit than it must.
pub fn run<C: World>(comm: &C, program: &RandomProgram) -> Digest {
    let rank = comm.rank();
    assert_eq!(comm.size(), program.size, "rank {rank}: the program's size");
    let mut run = Run {
        comm,
        program,
        own: Random::new(&[program.seed, rank as u64]),
        regions: BTreeMap::new(),
        created: 0,
        digest: Digest::default(),
    };
    for (number, step) in program.steps.iter().enumerate() {
        dawdle(&mut run.own);
        run.step(Position { rank, number, step });
    }
    run.digest
}

/// Where in a program a rank is; reads as such in messages.
#[derive(Clone, Copy)]
struct Position<'a> {
    rank: usize,
    number: usize,
    step: &'a ProgramStep,
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}, {:?}", self.number, self.step)
    }
}

impl Position<'_> {
    /// The key of the data that `sender` brings to this step.
    fn key(&self, seed: u64, sender: usize) -> [u64; 3] {
        [seed, self.number as u64, sender as u64]
    }
}

struct Run<'a, C> {
    comm: &'a C,
    program: &'a RandomProgram,
    /// Choices of this rank alone: displacements and delays.
    own: Random,
    regions: BTreeMap<usize, Box<dyn Region + 'a>>,
    created: usize,
    digest: Digest,
}

impl<'a, C: World> Run<'a, C> {
    fn step(&mut self, place: Position<'a>) {
        match place.step {
            ProgramStep::Gather { element, counts } => {
                let run = self;
                element.visit(Gather { run, place, counts });
            }
            ProgramStep::Rooted { .. } => self.rooted(place),
            ProgramStep::Reduce { number, length, op } => {
                let (length, op) = (*length, *op);
                let run = self;
                number.visit(Reduce {
                    run,
                    place,
                    length,
                    op,
                });
            }
            ProgramStep::Broadcast {
                element,
                length,
                root,
            } => {
                let (length, root) = (*length, *root);
                let run = self;
                element.visit(Broadcast {
                    run,
                    place,
                    length,
                    root,
                });
            }
            ProgramStep::Barrier => {
                succeeded(place.rank, format_args!("{place}"), self.comm.barrier());
            }
            ProgramStep::Create { element, extent } => {
                let comm = self.comm;
                let region = element.visit(Create {
                    comm,
                    place,
                    extent,
                });
                self.regions.insert(self.created, region);
                self.created += 1;
            }
            ProgramStep::Write { region, sixteenths } => {
                let seed = self.program.seed;
                self.region(*region).write(place, seed, *sixteenths);
            }
            ProgramStep::Fence { region } => {
                let mut digest = self.digest;
                self.region(*region).fence(place, &mut digest);
                self.digest = digest;
            }
            ProgramStep::Drop { region } => drop(self.regions.remove(region)),
        }
    }

    fn rooted(&mut self, place: Position<'a>) {
        if let ProgramStep::Rooted {
            element,
            counts,
            root,
        } = place.step
        {
            element.visit(Rooted {
                run: self,
                place,
                counts,
                root: *root,
            });
        }
    }

    fn region(&mut self, number: usize) -> &mut Box<dyn Region + 'a> {
        self.regions.get_mut(&number).expect("a region that lives")
    }
}

struct Gather<'r, 'a, C> {
    run: &'r mut Run<'a, C>,
    place: Position<'a>,
    counts: &'a [usize],
}

impl<C: World> Visitor for Gather<'_, '_, C> {
    type Output = ();
    fn visit<T: CommData>(self) {
        let Self { run, place, counts } = self;
        let layout = BlockLayout::shuffled(counts, &mut run.own);
        let sent = |sender| samples::<T>(&place.key(run.program.seed, sender), counts[sender]);
        let mut recv = samples::<T>(&[run.own.bits()], layout.len);
        let mut expected = recv.clone();
        for sender in 0..counts.len() {
            expected[layout.block(sender)].copy_from_slice(&sent(sender));
        }
        let outcome = run
            .comm
            .allgatherv(&sent(place.rank), &mut recv, counts, &layout.displs);
        succeeded(place.rank, format_args!("{place}"), outcome);
        same_bits(place.rank, format_args!("{place}"), &recv, &expected);
        for sender in 0..counts.len() {
            let block = &recv[layout.block(sender)];
            run.digest.absorb(bytemuck::cast_slice(block));
        }
    }
}

struct Rooted<'r, 'a, C> {
    run: &'r mut Run<'a, C>,
    place: Position<'a>,
    counts: &'a [usize],
    root: usize,
}

impl<C: World> Visitor for Rooted<'_, '_, C> {
    type Output = ();
    fn visit<T: CommData>(self) {
        let Self {
            run,
            place,
            counts,
            root,
        } = self;
        let layout = BlockLayout::shuffled(counts, &mut run.own);
        let sent = |sender| samples::<T>(&place.key(run.program.seed, sender), counts[sender]);
        let mut recv = samples::<T>(&[run.own.bits()], layout.len);
        let mut expected = recv.clone();
        for sender in (0..counts.len()).filter(|_| place.rank == root) {
            expected[layout.block(sender)].copy_from_slice(&sent(sender));
        }
        let (own, displs) = (sent(place.rank), &layout.displs);
        let outcome = run.comm.gatherv(&own, &mut recv, counts, displs, root);
        succeeded(place.rank, format_args!("{place}"), outcome);
        same_bits(place.rank, format_args!("{place}"), &recv, &expected);
        // The digest is the same on every rank, so that of what was sent.
        for sender in 0..counts.len() {
            run.digest.absorb(bytemuck::cast_slice(&sent(sender)));
        }
    }
}

struct Reduce<'r, 'a, C> {
    run: &'r mut Run<'a, C>,
    place: Position<'a>,
    length: usize,
    op: ReduceOp,
}

impl<C: World> NumberVisitor for Reduce<'_, '_, C> {
    type Output = ();
    fn visit<T: Reducible>(self) {
        let Self {
            run,
            place,
            length,
            op,
        } = self;
        let sent: Vec<Vec<T>> = (0..run.program.size)
            .map(|sender| numbers(&place.key(run.program.seed, sender), length))
            .collect();
        let expected = oracle::reduce(op, &sent);
        let mut recv: Vec<T> = vec![from_bits(run.own.bits()); length];
        let outcome = run.comm.allreduce(&sent[place.rank], &mut recv, op);
        succeeded(place.rank, format_args!("{place}"), outcome);
        same_bits(place.rank, format_args!("{place}"), &recv, &expected);
        run.digest.absorb(bytemuck::cast_slice(&recv));
    }
}

struct Broadcast<'r, 'a, C> {
    run: &'r mut Run<'a, C>,
    place: Position<'a>,
    length: usize,
    root: usize,
}

impl<C: World> Visitor for Broadcast<'_, '_, C> {
    type Output = ();
    fn visit<T: CommData>(self) {
        let Self {
            run,
            place,
            length,
            root,
        } = self;
        let sent = |sender| samples::<T>(&place.key(run.program.seed, sender), length);
        let mut buf = sent(place.rank);
        let outcome = run.comm.broadcast(&mut buf, root);
        succeeded(place.rank, format_args!("{place}"), outcome);
        same_bits(place.rank, format_args!("{place}"), &buf, &sent(root));
        run.digest.absorb(bytemuck::cast_slice(&buf));
    }
}

struct Create<'a, C> {
    comm: &'a C,
    place: Position<'a>,
    extent: &'a Extent,
}

impl<'a, C: World> Visitor for Create<'a, C> {
    type Output = Box<dyn Region + 'a>;
    fn visit<T: CommData>(self) -> Self::Output {
        let Self {
            comm,
            place,
            extent,
        } = self;
        let (created, parts) = match extent {
            Extent::Led(count) => (comm.create_shared_region::<T>(*count), None),
            Extent::Parts(counts) => (
                comm.create_partitioned_region::<T>(counts),
                Some(BlockLayout::packed(counts)),
            ),
        };
        let length = match extent {
            Extent::Led(count) => *count,
            Extent::Parts(counts) => counts.iter().sum(),
        };
        Box::new(LiveRegion {
            region: succeeded(place.rank, format_args!("{place}"), created),
            expected: vec![T::zeroed(); length],
            parts,
            readable: false,
        })
    }
}

/// A region of any type, and what must be in it.
trait Region {
    fn write(&mut self, place: Position<'_>, seed: u64, sixteenths: usize);
    fn fence(&mut self, place: Position<'_>, digest: &mut Digest);
}

struct LiveRegion<T, R> {
    region: R,
    expected: Vec<T>,
    /// `None` for a leader region, into which all leaders write the same.
    parts: Option<BlockLayout>,
    readable: bool,
}

impl<T: CommData, R: SharedRegion<T>> Region for LiveRegion<T, R> {
    fn write(&mut self, place: Position<'_>, seed: u64, sixteenths: usize) {
        let Self {
            region, expected, ..
        } = self;
        let first = |length: usize| (length * sixteenths).div_ceil(16);
        let written = |owner, length| samples::<T>(&place.key(seed, owner), first(length));
        match &self.parts {
            None => {
                let all = written(usize::MAX, expected.len());
                expected[..all.len()].copy_from_slice(&all);
                // Nothing on a rank that does not lead.
                let mine = region.as_mut_slice();
                let writes = all.len().min(mine.len());
                mine[..writes].copy_from_slice(&all[..writes]);
            }
            Some(parts) => {
                for (owner, &count) in parts.counts.iter().enumerate() {
                    let part = written(owner, count);
                    let start = parts.displs[owner];
                    expected[start..start + part.len()].copy_from_slice(&part);
                }
                let part = written(place.rank, parts.counts[place.rank]);
                region.as_mut_slice()[..part.len()].copy_from_slice(&part);
            }
        }
    }

    fn fence(&mut self, place: Position<'_>, digest: &mut Digest) {
        let outcome = self.region.fence();
        succeeded(place.rank, format_args!("{place}"), outcome);
        self.readable = !self.readable;
        if self.readable {
            let found = self.region.as_slice();
            same_bits(place.rank, format_args!("{place}"), found, &self.expected);
            digest.absorb(bytemuck::cast_slice(found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cobre_comm::LocalBackend;

    fn digest(seed: u64) -> Digest {
        run(&LocalBackend, &RandomProgram::generate(seed, 1, 300))
    }

    #[test]
    fn a_program_gives_the_same_digest_every_time_and_another_one_another() {
        assert_eq!(digest(1), digest(1));
        assert_ne!(digest(1), digest(2));
    }
}
