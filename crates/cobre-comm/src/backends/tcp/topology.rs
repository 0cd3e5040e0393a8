//! The way of small messages. By a star they take two trips, through rank 0; directly they take one, and each rank
//! sends as many as there are others. Which is faster depends on network, processors and number of ranks, so it is
//! measured when a job starts: the ranks that exchange messages greet each other both ways in turn.

use std::time::Duration;

use super::collectives;
use super::group::RunningCall;
use super::hierarchy::HostCall;
use super::host_group::HostTable;
use super::system::Instant;
use crate::communicator::ReduceOp;
use crate::transport::TransportFault;

/// Greetings in a row: ranks do not end one of them together.
const BURST: u32 = 4;
/// Bursts of each way, at least and at most; the first is of ranks that have just started.
const LEAST: u32 = 3;
const MOST: u32 = 9;
/// The time after which the least is enough.
const ENOUGH: Duration = Duration::from_millis(100);

/// The way of small messages, as rank 0 announces it when all connections are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmallMessages {
    Star,
    Direct,
    /// Ranks are connected, and measure.
    Measured,
}

impl SmallMessages {
    const ALL: [Self; 3] = [Self::Star, Self::Direct, Self::Measured];

    pub(super) fn of_figure(figure: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u64 == figure)
    }
}

/// True if small messages go directly from now on: the same on all ranks. Collective.
pub(super) fn is_direct_faster(
    run: &RunningCall<'_>,
    hosts: Option<&HostTable>,
) -> Result<bool, TransportFault> {
    let Some(hosts) = hosts else {
        return measure(run);
    };
    let call = HostCall {
        run,
        hosts,
        is_of_job: true,
    };
    call.begin()?;
    let mut is_direct = [0];
    call.between(|run| {
        is_direct = [u8::from(measure(run)?)];
        Ok(())
    })?;
    call.inside(|group| group.broadcast(run.signature, &mut is_direct, 0))?;
    Ok(is_direct == [1])
}

/// Greets by both ways in turn. Each time rank 0 finds the slowest rank's figures and gives them to all, which draw the
/// same conclusion.
fn measure(run: &RunningCall<'_>) -> Result<bool, TransportFault> {
    let begun = Instant::now();
    let mut best = [u64::MAX; 2];
    for pair in 1..=MOST {
        let own = [
            burst(run, collectives::meet_by_star)?,
            burst(run, collectives::meet_directly)?,
            begun.elapsed(),
        ];
        let own = own.map(|time| time.as_nanos() as u64);
        let mut slowest = [0; 3];
        collectives::allreduce(run, &own, &mut slowest, ReduceOp::Max)?;
        let [star, direct, elapsed] = slowest;
        best = [best[0].min(star), best[1].min(direct)];
        if pair >= LEAST && Duration::from_nanos(elapsed) >= ENOUGH {
            break;
        }
    }
    Ok(saves_a_quarter(best))
}

/// The time of some greetings, which all ranks begin together.
fn burst(
    run: &RunningCall<'_>,
    greet: impl Fn(&RunningCall<'_>) -> Result<(), TransportFault>,
) -> Result<Duration, TransportFault> {
    collectives::meet_directly(run)?;
    let begun = Instant::now();
    for _ in 0..BURST {
        greet(run)?;
    }
    Ok(begun.elapsed())
}

/// The direct way is taken if it saves a quarter of the time: what is near may be the other way round in the next job.
/// The best bursts are compared, as whatever else the machine does only adds to them.
fn saves_a_quarter([star, direct]: [u64; 2]) -> bool {
    u128::from(direct) * 4 < u128::from(star) * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direct_way_must_save_a_quarter() {
        assert!(saves_a_quarter([100, 74]));
        assert!(!saves_a_quarter([100, 75]));
        assert!(!saves_a_quarter([100, 300]));
        assert!(!saves_a_quarter([u64::MAX; 2]));
    }

    #[test]
    fn figures_are_read_as_they_are_written() {
        for way in SmallMessages::ALL {
            assert_eq!(SmallMessages::of_figure(way as u64), Some(way));
        }
        assert_eq!(SmallMessages::of_figure(3), None);
    }
}
