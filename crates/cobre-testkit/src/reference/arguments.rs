//! The argument checks, in the plainest form.

use cobre_comm::{BufferProblem, Collective, CommError};

fn problem(operation: Collective, problem: BufferProblem) -> CommError {
    CommError::InvalidBufferSize { operation, problem }
}

fn length(argument: &'static str, actual: usize, expected: usize) -> Result<(), BufferProblem> {
    let fine = actual == expected;
    fine.then_some(()).ok_or(BufferProblem::Length {
        argument,
        expected,
        actual,
    })
}

pub(super) fn blocks<T>(
    operation: Collective,
    (rank, size): (usize, usize),
    send: &[T],
    recv: &[T],
    (counts, displs): (&[usize], &[usize]),
) -> Result<(), CommError> {
    let fault = |found| problem(operation, found);
    length("counts", counts.len(), size).map_err(fault)?;
    length("displs", displs.len(), size).map_err(fault)?;
    length("send", send.len(), counts[rank]).map_err(fault)?;
    let mut owner = vec![None; recv.len()];
    for rank in 0..size {
        let (displacement, count) = (displs[rank], counts[rank]);
        let end = displacement.checked_add(count);
        let block = end.and_then(|end| owner.get_mut(displacement..end));
        let Some(block) = block else {
            return Err(fault(BufferProblem::BlockOutside {
                rank,
                displacement,
                count,
                len: recv.len(),
            }));
        };
        if let Some(first) = block.iter().find_map(|owner| *owner) {
            let second = rank;
            return Err(fault(BufferProblem::BlocksOverlap { first, second }));
        }
        block.fill(Some(rank));
    }
    Ok(())
}

pub(super) fn rooted_blocks<T>(
    (rank, size): (usize, usize),
    send: &[T],
    recv: &[T],
    (counts, displs): (&[usize], &[usize]),
    root: usize,
) -> Result<(), CommError> {
    let operation = Collective::Gatherv;
    self::root(operation, root, size)?;
    if rank == root {
        return blocks(operation, (rank, size), send, recv, (counts, displs));
    }
    let fault = |found| problem(operation, found);
    length("counts", counts.len(), size).map_err(fault)?;
    length("send", send.len(), counts[rank]).map_err(fault)?;
    let each = counts
        .iter()
        .map(|count| addressable::<T>([count].into_iter()));
    let fits = each.collect::<Option<Vec<()>>>();
    fits.map(drop).ok_or_else(|| fault(BufferProblem::TooLarge))
}

pub(super) fn equal_lengths<T>(send: &[T], recv: &[T]) -> Result<(), CommError> {
    length("recv", recv.len(), send.len()).map_err(|found| problem(Collective::Allreduce, found))
}

pub(super) fn root(operation: Collective, root: usize, size: usize) -> Result<(), CommError> {
    let fine = root < size;
    fine.then_some(()).ok_or(CommError::InvalidRoot {
        operation,
        root,
        size,
    })
}

pub(super) fn region_length<T>(count: usize) -> Result<(), CommError> {
    let fault = || problem(Collective::CreateSharedRegion, BufferProblem::TooLarge);
    addressable::<T>([count].iter()).ok_or_else(fault)
}

pub(super) fn parts<T>(size: usize, counts: &[usize]) -> Result<(), CommError> {
    let fault = |found| problem(Collective::CreatePartitionedRegion, found);
    length("counts", counts.len(), size).map_err(fault)?;
    addressable::<T>(counts.iter()).ok_or_else(|| fault(BufferProblem::TooLarge))
}

fn addressable<'a, T>(counts: impl Iterator<Item = &'a usize>) -> Option<()> {
    let bytes: u128 = counts
        .map(|&count| count as u128 * size_of::<T>() as u128)
        .sum();
    (bytes <= isize::MAX as u128).then_some(())
}
