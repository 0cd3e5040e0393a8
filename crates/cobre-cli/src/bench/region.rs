//! A partitioned region in place of an allgatherv: each rank writes its part where all will read
//! it, and two fences take the place of the exchange.

use std::time::Instant;

use cobre_comm::{Communicator, SharedMemoryProvider, SharedRegion};

use super::collectives::{FEWEST, MOST, Measured, element, unequal_counts};
use super::samples::Samples;
use crate::exit::told;

/// Times write, fence, fence on a region of `bytes` in all, and checks what was read between.
pub(super) fn measure_region<C: Communicator + SharedMemoryProvider>(
    comm: &C,
    bytes: usize,
    seconds: f64,
) -> Result<Measured, String> {
    let counts = unequal_counts(bytes / size_of::<f64>(), comm.size());
    let own: Vec<f64> = (0..counts[comm.rank()])
        .map(|i| element(comm.rank(), i))
        .collect();
    let mut region = comm
        .create_partitioned_region::<f64>(&counts)
        .map_err(|error| told(&error))?;
    let mut exchange = |check: bool| -> Result<(), String> {
        region.as_mut_slice().copy_from_slice(&own);
        region.fence().map_err(|error| told(&error))?;
        if check && !right(region.as_slice(), &counts) {
            return Err(format!(
                "partitioned_region of {bytes} bytes: a wrong element"
            ));
        }
        region.fence().map_err(|error| told(&error))
    };
    let start = Instant::now();
    exchange(true)?;
    exchange(false)?;
    let mut calls = [(seconds / start.elapsed().as_secs_f64().max(1e-9)) as usize];
    comm.broadcast(&mut calls, 0)
        .map_err(|error| told(&error))?;
    let iterations = calls[0].clamp(FEWEST, MOST);
    let mut samples = Samples::with_room_for(iterations);
    for _ in 0..iterations {
        samples.time(|| exchange(false))?;
    }
    exchange(true)?;
    Ok(Measured {
        iterations,
        p50_us: samples.quantile_us(0.5),
        p99_us: samples.quantile_us(0.99),
    })
}

fn right(found: &[f64], counts: &[usize]) -> bool {
    let ranks = counts.iter().enumerate();
    let expected = ranks.flat_map(|(rank, &count)| (0..count).map(move |i| element(rank, i)));
    found.iter().copied().eq(expected)
}
