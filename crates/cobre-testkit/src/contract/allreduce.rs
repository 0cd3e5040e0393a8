//! Every rank gets the numbers of all ranks combined in rank order, to the last bit.

use cobre_comm::{Communicator, ReduceOp, Reducible};

use super::border;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::number::{Number, NumberKind, NumberVisitor, from_bits, numbers};
use crate::oracle::{self, OPERATORS};

/// Each number type under each operator.
pub fn types<C: Communicator>(comm: &C, budget: &Budget) {
    struct Reduce<'a, C>(&'a C, &'a Budget);
    impl<C: Communicator> NumberVisitor for Reduce<'_, C> {
        type Output = ();
        fn visit<T: Reducible>(self) {
            let Self(comm, budget) = self;
            for op in OPERATORS {
                for length in [1, 3, 64, 1000, 5000] {
                    reduce_drawn::<T, C>(comm, budget, length, op);
                }
            }
        }
    }
    for number in Number::ALL {
        number.visit(Reduce(comm, budget));
    }
}

/// No element, one, about as many as ranks, and prime numbers of them.
pub fn lengths<C: Communicator>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let around_size = [0, 1, size - 1, size, size + 1, 2 * size + 1];
    let primes = [
        2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021, 4093, 8191,
    ];
    for length in around_size.into_iter().chain(primes) {
        for op in OPERATORS {
            reduce_drawn::<f64, C>(comm, budget, length, op);
        }
        reduce_drawn::<u8, C>(comm, budget, length, ReduceOp::Sum);
    }
}

/// One element below, at and above the sizes at which backends are likely to change their way;
/// 131,072 numbers of eight bytes are the last of them.
pub fn borders<C: Communicator>(comm: &C, budget: &Budget) {
    for length in border::around(size_of::<f64>()) {
        reduce_drawn::<f64, C>(comm, budget, length, ReduceOp::Sum);
    }
    for length in border::around(size_of::<u8>()) {
        // Every rank computes what all ranks send.
        if length * comm.size() <= budget.bytes() {
            reduce_drawn::<u8, C>(comm, budget, length, ReduceOp::Sum);
        }
    }
}

/// A big number, its opposite and small ones between them, at every pair of ranks: the sum depends
/// on the order at each of them. Alone, and within vectors of middling and of great length.
pub fn rank_order<C: Communicator>(comm: &C, budget: &Budget) {
    /// The send buffer of `rank`: one element per ordered pair of ranks, `1` unless it is in the pair.
    fn column<T: Copy>(rank: usize, size: usize, [big, one, minus]: [T; 3]) -> Vec<T> {
        let pairs = (0..size * size).map(|pair| (pair / size, pair % size));
        pairs
            .map(|(first, second)| match rank {
                _ if rank == first => big,
                _ if rank == second => minus,
                _ => one,
            })
            .collect()
    }
    let size = comm.size();
    let double: Vec<Vec<f64>> = (0..size)
        .map(|rank| column(rank, size, [1e16, 1.0, -1e16]))
        .collect();
    let single: Vec<Vec<f32>> = (0..size)
        .map(|rank| column(rank, size, [3e7, 1.0, -3e7]))
        .collect();
    for op in OPERATORS {
        reduce(comm, &double, op);
        reduce(comm, &single, op);
    }
    for pair in 0..size * size {
        let alone: Vec<Vec<f64>> = double.iter().map(|sent| vec![sent[pair]]).collect();
        reduce(comm, &alone, ReduceOp::Sum);
    }
    for length in [1000, 131_072 / 8 + 1, budget.bytes().min(1 << 20) / 8 + 1] {
        let repeat = |sent: &Vec<f64>| sent.iter().copied().cycle().take(length).collect();
        let long: Vec<Vec<f64>> = double.iter().map(repeat).collect();
        reduce(comm, &long, ReduceOp::Sum);
    }
}

/// NaNs, zeros of both signs, infinities, subnormal and extreme numbers; extreme integers that wrap:
/// each against each at every pair of ranks, with zeros of either sign or ones elsewhere.
pub fn special_values<C: Communicator>(comm: &C, _: &Budget) {
    struct Specials<'a, C>(&'a C);
    impl<C: Communicator> NumberVisitor for Specials<'_, C> {
        type Output = ();
        fn visit<T: Reducible>(self) {
            let sent = specials_at_every_pair::<T>(self.0.size());
            for op in OPERATORS {
                reduce(self.0, &sent, op);
            }
        }
    }
    for number in Number::ALL {
        number.visit(Specials(comm));
    }
}

fn specials_at_every_pair<T: Reducible>(size: usize) -> Vec<Vec<T>> {
    let specials = NumberKind::of::<T>().specials();
    let mut sent = vec![Vec::new(); size];
    for pair in 0..size * size {
        let (first, second) = (pair / size, pair % size);
        for (index, &special) in specials.iter().enumerate() {
            for &other in &specials {
                // Of the fillers, the first two are zero and, for floats, minus zero, and the
                // third is one, for floats as well.
                let filler = specials[index % 3];
                for (rank, elements) in sent.iter_mut().enumerate() {
                    let bits = match rank {
                        _ if rank == first => special,
                        _ if rank == second => other,
                        _ => filler,
                    };
                    elements.push(from_bits(bits));
                }
            }
        }
    }
    sent
}

/// Every rank shows its result to every other: the same bits.
pub fn same_everywhere<C: Communicator>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    for length in [1, 5, 300, 10_007] {
        for op in OPERATORS {
            let mine = reduce_drawn::<f64, C>(comm, budget, length, op);
            let counts = vec![length; size];
            let displs: Vec<usize> = (0..size).map(|sender| sender * length).collect();
            let mut all = vec![0.0; length * size];
            let outcome = comm.allgatherv(&mine, &mut all, &counts, &displs);
            succeeded(rank, format_args!("gathering the results"), outcome);
            for (sender, theirs) in all.chunks(length).enumerate() {
                let what = format_args!("allreduce({op:?}) of {length} f64 as on rank {sender}");
                same_bits(rank, what, theirs, &mine);
            }
        }
    }
}

/// One reduction of drawn numbers; gives the result.
fn reduce_drawn<T: Reducible, C: Communicator>(
    comm: &C,
    budget: &Budget,
    length: usize,
    op: ReduceOp,
) -> Vec<T> {
    let sent: Vec<Vec<T>> = (0..comm.size() as u64)
        .map(|rank| numbers(&[budget.seed, length as u64, rank], length))
        .collect();
    reduce(comm, &sent, op)
}

/// One reduction of what each rank is known to send, against the serial one.
fn reduce<T: Reducible, C: Communicator>(comm: &C, sent: &[Vec<T>], op: ReduceOp) -> Vec<T> {
    let rank = comm.rank();
    let expected = oracle::reduce(op, sent);
    // Poison: whatever is not written shows.
    let mut recv: Vec<T> = sent[rank]
        .iter()
        .map(|_| from_bits(0x5a5a_5a5a_5a5a_5a5a))
        .collect();
    let outcome = comm.allreduce(&sent[rank], &mut recv, op);
    let (length, name) = (expected.len(), std::any::type_name::<T>());
    succeeded(
        rank,
        format_args!("allreduce({op:?}) of {length} {name}"),
        outcome,
    );
    same_bits(
        rank,
        format_args!("allreduce({op:?}) of {length} {name}"),
        &recv,
        &expected,
    );
    recv
}
