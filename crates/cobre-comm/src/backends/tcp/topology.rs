//! The way of small messages. By a star they take two trips, through rank 0; directly they take one, and each rank
//! sends as many as there are others. Which is faster depends on network, processors and number of ranks, so it is
//! measured when a job starts: the ranks that exchange messages greet each other both ways in turn.

use std::time::Duration;

use super::collectives;
use super::group::{Group, RunningCall};
use super::hierarchy::HostCall;
use super::host_group::HostTable;
use super::system::Instant;
use crate::call_signature::{CallSignature, Collective};
use crate::communicator::ReduceOp;
use crate::transport::TransportFault;

/// Greetings in a row: ranks do not end one of them together.
const BURST: u32 = 4;
/// Bursts of each way, at most: the first ones are of ranks that have just started.
const MOST: u32 = 9;
/// The time after which no more are made: where greetings take long, the first bursts tell enough.
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

/// The ranks that choose: all of them, or the leaders of hosts while the others of their hosts wait.
#[derive(Clone, Copy)]
struct Choice<'a> {
    group: &'a Group,
    hosts: Option<&'a HostTable>,
    signature: &'a CallSignature,
}

/// True if small messages go directly from now on: the same on all ranks. Collective.
pub(super) fn is_direct_faster(
    group: &Group,
    hosts: Option<&HostTable>,
) -> Result<bool, TransportFault> {
    let choice = Choice {
        group,
        hosts,
        signature: &CallSignature::new(Collective::Barrier),
    };
    let begun = Instant::now();
    let mut best = [u64::MAX; 2];
    for _ in 0..MOST {
        let own = [
            choice.burst(collectives::meet_by_star)?,
            choice.burst(collectives::meet_directly)?,
            begun.elapsed(),
        ];
        let own = own.map(|time| time.as_nanos() as u64);
        let [star, direct, elapsed] = choice.slowest(own)?;
        best = [best[0].min(star), best[1].min(direct)];
        if Duration::from_nanos(elapsed) >= ENOUGH {
            break;
        }
    }
    Ok(saves_a_quarter(best))
}

impl<'a> Choice<'a> {
    /// The time of some greetings, which all begin together; none on a rank that does not lead its host. A call of
    /// its own, as each has the deadline that the user set.
    fn burst(
        &self,
        greet: impl Fn(&RunningCall<'_>) -> Result<(), TransportFault>,
    ) -> Result<Duration, TransportFault> {
        let run = self.group.begin(self.signature)?;
        let timed = |run: &RunningCall<'_>| {
            collectives::meet_directly(run)?;
            let begun = Instant::now();
            for _ in 0..BURST {
                greet(run)?;
            }
            Ok(begun.elapsed())
        };
        let Some(call) = self.by_hosts(&run) else {
            return timed(&run);
        };
        call.begin()?;
        let mut time = Duration::ZERO;
        call.between(|run| {
            time = timed(run)?;
            Ok(())
        })?;
        call.meet()?;
        Ok(time)
    }

    /// The slowest rank's figures, which all get from one rank and so draw the same conclusion from.
    fn slowest(&self, own: [u64; 3]) -> Result<[u64; 3], TransportFault> {
        let run = self.group.begin(self.signature)?;
        let mut slowest = [0; 3];
        match self.by_hosts(&run) {
            None => collectives::allreduce(&run, &own, &mut slowest, ReduceOp::Max)?,
            Some(call) => {
                call.begin()?;
                call.allreduce(&own, &mut slowest, ReduceOp::Max)?;
            }
        }
        Ok(slowest)
    }

    fn by_hosts<'b>(&self, run: &'b RunningCall<'b>) -> Option<HostCall<'b>>
    where
        'a: 'b,
    {
        let hosts = self.hosts?;
        Some(HostCall {
            run,
            hosts,
            is_of_job: true,
        })
    }
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
