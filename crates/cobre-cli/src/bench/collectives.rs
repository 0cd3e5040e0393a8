//! The cases of `cobre bench collectives` and how each is measured.
//!
//! Bytes are per rank for allreduce, in all for allgatherv, of the message for broadcast. Calls
//! follow each other back to back and are timed on rank 0; a broadcast is as slow as its slowest
//! rank, and ranks begin it at the same moment of the machine's clock, after an untimed barrier.
//! Buffers are touched before and reused. The first and the last result of every case are checked
//! on every rank.

use std::time::Instant;

use clap::ValueEnum;
use cobre_comm::{CommError, Communicator, ReduceOp};

use super::samples::{Samples, next_tick};
use crate::exit::told;

/// Values of `--op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    Barrier,
    Allreduce,
    Allgatherv,
    Broadcast,
    /// A partitioned region in place of an allgatherv; measured only when asked for
    Region,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
            Self::Allgatherv => "allgatherv",
            Self::Broadcast => "broadcast",
            Self::Region => "region",
        }
    }
}

/// The collective of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    Barrier,
    Allreduce(ReduceOp),
    Allgatherv,
    Broadcast,
    Region,
}

impl CollectiveKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Allreduce(ReduceOp::Sum) => "allreduce_sum",
            Self::Allreduce(ReduceOp::Min) => "allreduce_min",
            Self::Allreduce(ReduceOp::Max) => "allreduce_max",
            Self::Allgatherv => "allgatherv",
            Self::Broadcast => "broadcast",
            Self::Region => "partitioned_region",
        }
    }

    fn operation(self) -> Operation {
        match self {
            Self::Barrier => Operation::Barrier,
            Self::Allreduce(_) => Operation::Allreduce,
            Self::Allgatherv => Operation::Allgatherv,
            Self::Broadcast => Operation::Broadcast,
            Self::Region => Operation::Region,
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BenchCase {
    pub(crate) kind: CollectiveKind,
    pub(crate) bytes: usize,
}

const SUM: CollectiveKind = CollectiveKind::Allreduce(ReduceOp::Sum);
const MIN: CollectiveKind = CollectiveKind::Allreduce(ReduceOp::Min);

/// The sizes at which the peers were measured.
const TABLE: [(CollectiveKind, &[usize]); 6] = [
    (CollectiveKind::Barrier, &[0]),
    (SUM, &[8, 32, 256, 8192, 1 << 20]),
    (MIN, &[32]),
    (
        CollectiveKind::Allgatherv,
        &[32, 4096, 65_536, 3_200_000, 32_000_000, 206_000_000],
    ),
    (CollectiveKind::Broadcast, &[4096, 1 << 20, 20 << 20]),
    (CollectiveKind::Region, &[3_200_000]),
];

/// The cases that the options leave; `bytes` takes the place of each operation's sizes.
pub(crate) fn cases(operation: Option<Operation>, bytes: Option<usize>) -> Vec<BenchCase> {
    let chosen = TABLE.into_iter().filter(|(kind, _)| match operation {
        Some(operation) => kind.operation() == operation,
        None => *kind != CollectiveKind::Region,
    });
    chosen
        .flat_map(|(kind, sizes)| {
            let sizes = match bytes {
                Some(bytes) if kind != CollectiveKind::Barrier => vec![bytes],
                _ => sizes.to_vec(),
            };
            sizes
                .into_iter()
                .map(move |bytes| BenchCase { kind, bytes })
        })
        .collect()
}

/// Measurements of one case.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) iterations: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// A case with its buffers, ready to be called.
struct Bench<'a, C> {
    comm: &'a C,
    case: BenchCase,
    send: Vec<f64>,
    recv: Vec<f64>,
    counts: Vec<usize>,
    displs: Vec<usize>,
}

const ROOT: usize = 0;
pub(super) const FEWEST: usize = 5;
pub(super) const MOST: usize = 1 << 20;

/// Runs `case` for about `seconds` and checks its results. Collective.
pub(crate) fn measure<C: Communicator>(
    comm: &C,
    case: BenchCase,
    seconds: f64,
) -> Result<Measured, String> {
    let mut bench = Bench::new(comm, case);
    bench.check("first")?;
    let iterations = bench.calibrate(seconds).map_err(|error| told(&error))?;
    let mut samples = bench.run(iterations).map_err(|error| told(&error))?;
    bench.check("last")?;
    Ok(Measured {
        iterations,
        p50_us: samples.quantile_us(0.5),
        p99_us: samples.quantile_us(0.99),
    })
}

impl<'a, C: Communicator> Bench<'a, C> {
    fn new(comm: &'a C, case: BenchCase) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        let elements = case.bytes / size_of::<f64>();
        let counts = unequal_counts(elements, size);
        let displs = counts
            .iter()
            .scan(0, |next, count| {
                *next += count;
                Some(*next - count)
            })
            .collect();
        let sent = match case.kind {
            CollectiveKind::Barrier | CollectiveKind::Region => 0,
            CollectiveKind::Allgatherv => counts[rank],
            CollectiveKind::Allreduce(_) | CollectiveKind::Broadcast => elements,
        };
        Self {
            comm,
            case,
            send: (0..sent).map(|i| element(rank, i)).collect(),
            recv: vec![f64::NAN; elements],
            counts,
            displs,
        }
    }

    /// The one call that is measured. `send` is the source, except that a broadcast works in
    /// place, as its buffer is the message.
    #[inline]
    fn call(&mut self) -> Result<(), CommError> {
        match self.case.kind {
            CollectiveKind::Barrier | CollectiveKind::Region => self.comm.barrier(),
            CollectiveKind::Allreduce(op) => self.comm.allreduce(&self.send, &mut self.recv, op),
            CollectiveKind::Allgatherv => {
                self.comm
                    .allgatherv(&self.send, &mut self.recv, &self.counts, &self.displs)
            }
            CollectiveKind::Broadcast => self.comm.broadcast(&mut self.recv, ROOT),
        }
    }

    /// Makes one call into poisoned buffers and compares every element on every rank.
    fn check(&mut self, which: &str) -> Result<(), String> {
        self.recv.fill(f64::NAN);
        if self.case.kind == CollectiveKind::Broadcast && self.comm.rank() == ROOT {
            self.recv.copy_from_slice(&self.send);
        }
        self.call().map_err(|error| told(&error))?;
        let wrong = (0..self.recv.len()).find(|&i| self.recv[i].to_bits() != self.expected(i));
        let mut worst = [0.0];
        let mine = [f64::from(wrong.is_some())];
        self.comm
            .allreduce(&mine, &mut worst, ReduceOp::Max)
            .map_err(|error| told(&error))?;
        if worst[0] == 0.0 {
            return Ok(());
        }
        let (name, bytes) = (self.case.kind.name(), self.case.bytes);
        Err(format!(
            "{name} of {bytes} bytes: the {which} result is wrong"
        ))
    }

    /// The bits of element `i` of the result, made without any communication.
    fn expected(&self, i: usize) -> u64 {
        let ranks = 0..self.comm.size();
        let value = match self.case.kind {
            CollectiveKind::Barrier | CollectiveKind::Region => f64::NAN,
            CollectiveKind::Broadcast => element(ROOT, i),
            CollectiveKind::Allreduce(ReduceOp::Sum) => {
                // In rank order from rank 0's element, as the contract says.
                ranks
                    .map(|rank| element(rank, i))
                    .reduce(|a, b| a + b)
                    .unwrap_or(f64::NAN)
            }
            CollectiveKind::Allreduce(ReduceOp::Min) => {
                ranks.map(|r| element(r, i)).fold(f64::MAX, f64::min)
            }
            CollectiveKind::Allreduce(ReduceOp::Max) => {
                ranks.map(|r| element(r, i)).fold(f64::MIN, f64::max)
            }
            CollectiveKind::Allgatherv => {
                let rank = self.displs.partition_point(|&start| start <= i) - 1;
                element(rank, i - self.displs[rank])
            }
        };
        value.to_bits()
    }

    /// Before a broadcast, all ranks wait for each other; other calls follow back to back.
    #[inline]
    fn start_together(&self) -> Result<(), CommError> {
        if self.case.kind == CollectiveKind::Broadcast {
            self.comm.barrier()?;
            next_tick();
        }
        Ok(())
    }

    /// The number of calls that fit into `seconds`, agreed on by all ranks.
    fn calibrate(&mut self, seconds: f64) -> Result<usize, CommError> {
        let mut calls = 1;
        loop {
            let start = Instant::now();
            for _ in 0..calls {
                self.start_together()?;
                self.call()?;
            }
            let mut elapsed = [start.elapsed().as_secs_f64()];
            self.comm.broadcast(&mut elapsed, ROOT)?;
            if elapsed[0] > seconds / 10.0 || calls >= MOST {
                let per_call = elapsed[0] / f64::from(calls as u32);
                let fitting = (seconds / per_call.max(1e-9)) as usize;
                return Ok(fitting.clamp(FEWEST, MOST));
            }
            calls *= 2;
        }
    }

    fn run(&mut self, iterations: usize) -> Result<Samples, CommError> {
        let mut samples = Samples::with_room_for(iterations);
        if self.case.kind != CollectiveKind::Broadcast {
            for _ in 0..iterations {
                samples.time(|| self.call())?;
            }
            return Ok(samples);
        }
        for _ in 0..iterations {
            self.start_together()?;
            samples.time(|| self.call())?;
        }
        let size = self.comm.size();
        let mut all = vec![0; size * iterations];
        let displs: Vec<usize> = (0..size).map(|rank| rank * iterations).collect();
        self.comm.allgatherv(
            samples.nanoseconds(),
            &mut all,
            &vec![iterations; size],
            &displs,
        )?;
        Ok(Samples::slowest_of(&all, iterations))
    }
}

/// Element `i` of what `rank` contributes; sums of these are exact in no particular order, so a
/// reduction in the wrong order shows.
pub(super) fn element(rank: usize, i: usize) -> f64 {
    0.1 + (rank * 31 + i % 1009) as f64 * 1.7
}

/// Counts that add up to `elements`: an eighth more on even ranks, an eighth less on odd ones, and
/// what is left over one by one from rank 0.
pub(super) fn unequal_counts(elements: usize, size: usize) -> Vec<usize> {
    let base = elements / size;
    let mut counts: Vec<usize> = (0..size)
        .map(|rank| match rank {
            _ if rank % 2 == 1 => base - base / 8,
            _ if rank + 1 < size => base + base / 8,
            _ => base,
        })
        .collect();
    let left = elements - counts.iter().sum::<usize>();
    counts.iter_mut().take(left).for_each(|count| *count += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use cobre_comm::LocalBackend;

    #[test]
    fn counts_add_up_and_differ() {
        for size in 1..=17 {
            for elements in [0, 1, 4, 8, 512, 400_000] {
                let counts = unequal_counts(elements, size);
                assert_eq!(counts.iter().sum::<usize>(), elements, "{size} ranks");
            }
        }
        assert_eq!(unequal_counts(16, 2), [9, 7]);
    }

    #[test]
    fn the_options_narrow_the_table() {
        assert_eq!(cases(None, None).len(), 16);
        let broadcast = cases(Some(Operation::Broadcast), Some(24));
        assert_eq!(
            broadcast,
            [BenchCase {
                kind: CollectiveKind::Broadcast,
                bytes: 24
            }]
        );
        assert_eq!(cases(Some(Operation::Allreduce), None).len(), 6);
    }

    #[test]
    fn every_small_case_runs_and_verifies() {
        for case in cases(None, None)
            .into_iter()
            .filter(|case| case.bytes < 1 << 20)
        {
            let measured = measure(&LocalBackend, case, 0.001).unwrap();
            assert!(measured.iterations >= FEWEST);
        }
    }

    /// A communicator that loses the last element of what it should deliver.
    struct Lossy;

    impl Communicator for Lossy {
        fn allgatherv<T: cobre_comm::CommData>(
            &self,
            send: &[T],
            recv: &mut [T],
            _: &[usize],
            _: &[usize],
        ) -> Result<(), CommError> {
            let kept = send.len().saturating_sub(1);
            recv[..kept].copy_from_slice(&send[..kept]);
            Ok(())
        }

        fn gatherv<T: cobre_comm::CommData>(
            &self,
            send: &[T],
            recv: &mut [T],
            counts: &[usize],
            displs: &[usize],
            _: usize,
        ) -> Result<(), CommError> {
            self.allgatherv(send, recv, counts, displs)
        }

        fn allreduce<T: cobre_comm::Reducible>(
            &self,
            send: &[T],
            recv: &mut [T],
            op: ReduceOp,
        ) -> Result<(), CommError> {
            LocalBackend.allreduce(send, recv, op)
        }

        fn broadcast<T: cobre_comm::CommData>(
            &self,
            _: &mut [T],
            _: usize,
        ) -> Result<(), CommError> {
            Ok(())
        }

        fn barrier(&self) -> Result<(), CommError> {
            Ok(())
        }

        fn abort(&self, _: cobre_comm::ErrorKind, _: &str) {}

        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            1
        }
    }

    #[test]
    fn a_wrong_result_is_reported() {
        let case = BenchCase {
            kind: CollectiveKind::Allgatherv,
            bytes: 64,
        };
        let error = measure(&Lossy, case, 0.001).unwrap_err();
        assert!(error.contains("first result is wrong"), "{error}");
    }
}
