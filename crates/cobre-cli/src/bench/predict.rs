//! `cobre bench sddp --predict`: the time of an iteration on other numbers of ranks, computed from the times of work
//! units on one rank, the lengths of messages, and the latency and bandwidth of a network.

use cobre_sddp::{Iteration, Observer, UnitTimes};

use crate::exit::{self, say};

/// The most ranks of a forecast.
pub(super) const MOST: usize = 1024;

/// The network of a forecast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Network {
    pub(super) backend: NetworkBackend,
    /// Seconds from the start of a short call of two ranks to its end.
    pub(super) latency: f64,
    /// Bytes per second that a rank receives.
    pub(super) bandwidth: f64,
    /// Seconds of processor time per message of a rank.
    pub(super) message: f64,
}

/// The algorithm that moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkBackend {
    Shm,
    Tcp,
    Mpi,
}

/// The backends with rounded figures of two ranks on one machine: an allgatherv of 32 bytes, one of 3.2 MB, and an
/// estimate of what a further rank adds to a short call. `cobre bench collectives -n 2` measures the first two.
pub(super) const NETWORKS: [Network; 3] = [
    Network {
        backend: NetworkBackend::Shm,
        latency: 0.2e-6,
        bandwidth: 15e9,
        message: 0.05e-6,
    },
    Network {
        backend: NetworkBackend::Tcp,
        latency: 10e-6,
        bandwidth: 8e9,
        message: 2e-6,
    },
    Network {
        backend: NetworkBackend::Mpi,
        latency: 0.3e-6,
        bandwidth: 15e9,
        message: 0.2e-6,
    },
];

/// Bytes up to which `tcp` goes through rank 0.
const STAR: usize = 64 << 10;

impl NetworkBackend {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::Mpi => "mpi",
        }
    }
}

impl Network {
    /// Seconds of an allgatherv of `bytes` in all by `ranks` ranks.
    fn allgatherv(&self, bytes: usize, ranks: usize) -> f64 {
        if ranks == 1 {
            return 0.0;
        }
        let (peers, steps) = ((ranks - 1) as f64, (ranks as f64).log2().ceil());
        // Every rank receives what the others send.
        let transfer = bytes as f64 * peers / ranks as f64 / self.bandwidth;
        match self.backend {
            // Rank 0 takes everything and gives everything to everyone.
            NetworkBackend::Tcp if bytes <= STAR && ranks > 2 => {
                2.0 * self.latency + 2.0 * (peers - 1.0) * self.message + transfer * (1.0 + peers)
            }
            NetworkBackend::Shm | NetworkBackend::Tcp => {
                self.latency + (peers - 1.0) * self.message + transfer
            }
            NetworkBackend::Mpi => steps * self.latency + (steps - 1.0) * self.message + transfer,
        }
    }

    /// Seconds of the exchanges of an iteration.
    fn iteration(&self, messages: &[usize], counts: usize, ranks: usize) -> f64 {
        let all = messages.iter().copied().chain([counts * ranks]);
        all.map(|bytes| self.allgatherv(bytes, ranks)).sum()
    }
}

/// The times of a run on one rank, iteration by iteration.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    iterations: Vec<UnitTimes>,
    /// Seconds since training began, after each iteration.
    totals: Vec<f64>,
}

impl Observer for Recorder {
    fn iteration(&mut self, iteration: &Iteration) {
        self.totals.push(iteration.time.total);
    }

    fn unit_times(&mut self, times: &UnitTimes) {
        self.iterations.push(times.clone());
    }
}

/// 1, 2, 4 and so on, up to `most`.
fn rank_counts(most: usize) -> impl Iterator<Item = usize> {
    (0..)
        .map(|power| 1 << power)
        .take_while(move |&ranks| ranks <= most)
}

/// Times the median from which on a unit was interrupted by other processes.
const INTERRUPTED: f64 = 4.0;

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The parts of an iteration on one rank: averages over those of a run, without interruptions by other processes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Profile {
    /// Seconds of all units.
    units: f64,
    /// Seconds of what every rank does.
    on_every_rank: f64,
    /// Seconds of the slowest ranks, for 1, 2, 4 … ranks.
    critical_paths: Vec<f64>,
    messages: Vec<usize>,
    counts: usize,
    /// Units of the backward pass at the level with the most.
    most_units: usize,
}

impl Profile {
    /// The profile of a run, for forecasts up to `most` ranks; `None` without an iteration.
    pub(super) fn new(recorder: Recorder, most: usize) -> Option<Self> {
        let Recorder {
            mut iterations,
            totals,
        } = recorder;
        let starts = [0.0].iter().chain(&totals);
        let rest = totals.iter().zip(starts).zip(&iterations);
        let rest = rest.map(|((end, start), times)| (end - start - times.total()).max(0.0));
        let on_every_rank = median(rest);
        clip(&mut iterations);
        let mean = |of: &dyn Fn(&UnitTimes) -> f64| {
            iterations.iter().map(of).sum::<f64>() / iterations.len() as f64
        };
        let slowest = |ranks| mean(&|times: &UnitTimes| times.critical_path(ranks));
        let last = iterations.last()?;
        Some(Self {
            units: mean(&UnitTimes::total),
            on_every_rank,
            critical_paths: rank_counts(most).map(slowest).collect(),
            messages: last.messages.clone(),
            counts: last.counts,
            most_units: last.backward.iter().map(Vec::len).max().unwrap_or(0),
        })
    }
}

/// Bounds the time of each unit by [`INTERRUPTED`] times its median.
fn clip(iterations: &mut [UnitTimes]) {
    fn units(times: &UnitTimes) -> impl Iterator<Item = f64> {
        times
            .backward
            .iter()
            .flatten()
            .chain(&times.forward)
            .copied()
    }
    let count = iterations.first().map_or(0, |first| units(first).count());
    let mut columns = vec![Vec::with_capacity(iterations.len()); count];
    for times in iterations.iter() {
        columns
            .iter_mut()
            .zip(units(times))
            .for_each(|(column, time)| column.push(time));
    }
    let limits = columns
        .into_iter()
        .map(|column| INTERRUPTED * median(column.into_iter()));
    let limits: Vec<f64> = limits.collect();
    for times in iterations {
        let units = times
            .backward
            .iter_mut()
            .flatten()
            .chain(&mut times.forward);
        units
            .zip(&limits)
            .for_each(|(time, limit)| *time = time.min(*limit));
    }
}

/// The time of an iteration on a number of ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Forecast {
    ranks: usize,
    seconds: f64,
    communication: f64,
    /// The share of the ranks' time that goes into what one rank would do.
    efficiency: f64,
}

impl Profile {
    /// Seconds of an iteration on one rank.
    fn seconds(&self) -> f64 {
        self.units + self.on_every_rank
    }

    /// Forecasts for 1, 2, 4 … ranks; they share `processors`, if given.
    fn forecasts(&self, network: &Network, processors: Option<usize>) -> Vec<Forecast> {
        let of = |(power, slowest): (usize, &f64)| {
            let ranks = 1 << power;
            let slots = processors.unwrap_or(ranks).min(ranks) as f64;
            // Ranks that have no processor of their own take turns, also in what every rank does.
            let turns = ranks as f64 / slots;
            let busy = slowest.max(self.units / slots) + self.on_every_rank * turns;
            let communication = network.iteration(&self.messages, self.counts, ranks) * turns;
            let seconds = busy + communication;
            Forecast {
                ranks,
                seconds,
                communication,
                efficiency: self.seconds() / (ranks as f64 * seconds),
            }
        };
        self.critical_paths.iter().enumerate().map(of).collect()
    }
}

/// The fewest ranks whose iteration takes at most a twentieth longer than the fastest.
fn last_useful(forecasts: &[Forecast]) -> usize {
    let best = forecasts
        .iter()
        .map(|one| one.seconds)
        .fold(f64::INFINITY, f64::min);
    let useful = forecasts.iter().find(|one| one.seconds <= 1.05 * best);
    useful.map_or(1, |one| one.ranks)
}

/// Prints the forecasts of the problem `name`.
pub(super) fn print(
    name: &str,
    profile: &Profile,
    networks: &[Network],
    processors: Option<usize>,
    json: bool,
) {
    if !json {
        let bytes: usize = profile.messages.iter().sum();
        say!(
            "{name}: {:.3} ms per iteration on one rank, {:.3} of it in units that ranks share (at most {} at a level); \
             {} exchanges of {bytes} bytes in all",
            1e3 * profile.seconds(),
            1e3 * profile.units,
            profile.most_units,
            profile.messages.len() + 1
        );
        say!(
            "{:<8} {:>6} {:>14} {:>16} {:>11}",
            "network",
            "ranks",
            "ms/iteration",
            "communication ms",
            "efficiency"
        );
    }
    for network in networks {
        let forecasts = profile.forecasts(network, processors);
        for one in &forecasts {
            if json {
                exit::say_json(&serde_json::json!({
                    "problem": name,
                    "network": network.backend.name(),
                    "ranks": one.ranks,
                    "seconds_per_iteration": one.seconds,
                    "communication_seconds": one.communication,
                    "efficiency": one.efficiency,
                }));
                continue;
            }
            say!(
                "{:<8} {:>6} {:>14.3} {:>16.3} {:>10.0}%",
                network.backend.name(),
                one.ranks,
                1e3 * one.seconds,
                1e3 * one.communication,
                1e2 * one.efficiency
            );
        }
        if !json {
            let ranks = last_useful(&forecasts);
            say!(
                "{}: more than {ranks} ranks gain less than 5 %",
                network.backend.name()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Gbit/s of which half is lost to the protocol, as the plan assumes.
    const CLUSTER: Network = Network {
        backend: NetworkBackend::Tcp,
        latency: 30e-6,
        bandwidth: 6.25e9,
        message: 2e-6,
    };

    /// Nine equal iterations of 2 s, 0.4 of which every rank does, and one that was interrupted.
    fn profile() -> Profile {
        let times = UnitTimes {
            forward: vec![0.1; 4],
            backward: vec![vec![], vec![0.2; 4], vec![0.4]],
            messages: vec![4096, 1000, 500],
            counts: 96,
        };
        let mut interrupted = times.clone();
        interrupted.backward[1][2] += 5.0;
        let mut recorder = Recorder {
            iterations: vec![times; 9],
            totals: (1..10).map(|number| 2.0 * f64::from(number)).collect(),
        };
        recorder.unit_times(&interrupted);
        recorder.totals.push(18.0 + 7.0);
        Profile::new(recorder, 8).unwrap()
    }

    #[test]
    fn interruptions_do_not_count_beyond_a_limit() {
        // The last iteration's unit counts with 0.8 s instead of 5.2.
        assert!((profile().units - 1.66).abs() < 1e-9);
        assert!((profile().on_every_rank - 0.4).abs() < 1e-9);
        assert_eq!(Profile::new(Recorder::default(), 8), None);
    }

    #[test]
    fn one_rank_takes_what_was_measured() {
        let forecasts = profile().forecasts(&NETWORKS[1], None);
        assert_eq!(forecasts[0].seconds, profile().seconds());
        assert_eq!(
            (forecasts[0].communication, forecasts[0].efficiency),
            (0.0, 1.0)
        );
    }

    #[test]
    fn scaling_stops_where_units_run_out() {
        let forecasts = profile().forecasts(&NETWORKS[0], None);
        let milliseconds = forecasts
            .iter()
            .map(|one| (1e3 * one.seconds).round() as u64);
        // 0.4 s of every rank, 0.4 s of the bound, and what four units leave, 0.06 of it from the interruption.
        assert_eq!(milliseconds.collect::<Vec<u64>>(), [2060, 1460, 1160, 1160]);
        assert_eq!(last_useful(&forecasts), 4);
    }

    #[test]
    fn ranks_without_processors_of_their_own_gain_nothing() {
        let forecasts = profile().forecasts(&NETWORKS[0], Some(1));
        assert!(
            forecasts
                .windows(2)
                .all(|pair| pair[1].seconds > pair[0].seconds)
        );
    }

    /// 192 passes of 120 stages, 160 reservoirs with six lags, 20 openings in four units of each pass, 16 ranks.
    #[test]
    fn production_size_on_tcp_stays_below_the_goal_of_the_plan() {
        let (passes, levels, states, units) = (192, 120, 160 * 7, 4 * 192);
        let mut messages = vec![8 * passes * levels * (4 + states)];
        messages.extend(vec![8 * units * (1 + states); levels]);
        let seconds = CLUSTER.iteration(&messages, 96, 16);
        assert!((0.1..0.2).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn a_star_is_slower_than_messages_from_rank_to_rank() {
        let [shm, tcp, mpi] = NETWORKS.map(|network| network.allgatherv(1000, 64));
        assert!(shm < tcp && mpi < tcp);
        assert_eq!(NETWORKS[1].allgatherv(1000, 1), 0.0);
    }
}
