//! `cobre bench sddp`: how fast training goes.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use cobre_comm::{
    BackendKind, ClassifiedError, CommBackend, Communicator, LocalBackend, create_communicator,
};
use cobre_launch::Bind;
use cobre_sddp::{Cadence, Settings, Solver, StopRule, Stopping, run as run_job};

use super::against_highs::Comparison;
use super::predict::{self, NETWORKS, Network, Profile, Recorder};
use super::systems::{BenchProblem, BenchSystem, own_problem, system};
use crate::exit::{self, say};
use crate::{job, launch};

/// In front of every message.
const NAME: &str = "cobre bench sddp";

/// Times training on made-up hydrothermal systems, or on a problem of one's own.
///
/// `10x4` and `82x1`, measured unless --system names others, have 12 stages, 4 reservoirs and 126
/// thermal plants. `10x4` has 10 openings per stage and 4 forward passes per iteration; `82x1` has
/// 82 openings and one pass. `par1` and `par6` are `10x4` with inflows that depend on one and on six
/// before. `60r3b` has 60 reservoirs in cascades and 3 blocks, 20 openings and one pass. `large30`,
/// `large60`, `large100` and `large160` are cases like that of `cobre init large` with so many hydro
/// plants and 4 passes; `planes30` to `planes160` are the same with hyperplane production functions
/// for every plant. With -n it launches its own ranks; each uses one thread unless --threads says
/// more.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Number of ranks to launch [default: join the job this is a rank of, else one rank]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = launch::ranks)]
    ranks: Option<usize>,

    /// Backend that connects the launched ranks [default: the best one for one machine]
    #[arg(long, value_name = "shm|tcp|mpi|local", requires = "ranks")]
    backend: Option<String>,

    /// Solver of the linear programs
    #[arg(long, value_name = "auto|kernel|highs|check", default_value = "auto")]
    solver: Solver,

    /// Threads per rank
    #[arg(long, value_name = "K", default_value_t = NonZeroUsize::MIN)]
    threads: NonZeroUsize,

    /// Iterations
    #[arg(long, value_name = "K", default_value = "256")]
    iterations: NonZeroUsize,

    /// Measures this system; may be given several times
    #[arg(long, value_name = "NAME", value_parser = system)]
    system: Vec<BenchSystem>,

    /// Measures this case, or StochOptFormat file whose cost to go is never below 0, instead
    #[arg(long, value_name = "PATH", conflicts_with = "system")]
    problem: Option<PathBuf>,

    /// Forward passes per iteration on a problem of one's own
    #[arg(long, value_name = "M", default_value_t = NonZeroUsize::MIN, requires = "problem")]
    forward_passes: NonZeroUsize,

    /// Computes what an iteration would take on 1, 2, 4 … up to R ranks, from the times of work units on one rank
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..=predict::MOST as i64), conflicts_with = "ranks")]
    predict: Option<u16>,

    /// Network of the forecast [default: all three, with the figures of two ranks on one machine]
    #[arg(long, value_name = "shm|tcp|mpi", requires = "predict", value_parser = network)]
    network: Option<Network>,

    /// Microseconds of a short call of two ranks of that network
    #[arg(long, value_name = "US", requires = "network", value_parser = positive)]
    latency: Option<f64>,

    /// Gigabytes per second that a rank of that network receives
    #[arg(long, value_name = "GB", requires = "network", value_parser = positive)]
    bandwidth: Option<f64>,

    /// Processors that the ranks of the forecast share [default: one each]
    #[arg(long, value_name = "P", requires = "predict")]
    processors: Option<NonZeroUsize>,

    /// Trains with HiGHS as well, and compares processor time at iterations 5, 20 and 50
    #[arg(long, conflicts_with = "ranks")]
    against_highs: bool,

    /// Compares the time until the bound reaches this value instead; may be given several times
    #[arg(long, value_name = "VALUE", requires = "against_highs", allow_negative_numbers = true, value_parser = finite)]
    to_bound: Vec<f64>,

    /// Trains so often with each of the two solvers, in turn; figures are medians
    #[arg(long, value_name = "K", default_value_t = NonZeroUsize::MIN, requires = "against_highs")]
    rounds: NonZeroUsize,

    /// Prints one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark and returns the code to exit with.
pub(super) fn run(args: &Args) -> u8 {
    match (args.predict, args.ranks) {
        (Some(most), _) => forecast(most.into(), args),
        (None, Some(ranks)) => start(ranks, args),
        (None, None) => join(args),
    }
}

fn start(ranks: usize, args: &Args) -> u8 {
    if let Some(problem) = job::refusal(ranks, args.backend.as_deref()) {
        return exit::fail(exit::USAGE, NAME, problem);
    }
    let mut words: Vec<OsString> = vec!["bench".into()];
    words.extend(job::own_arguments(&["-n", "--ranks", "--backend"]));
    match job::again(ranks, args.backend.as_deref(), words) {
        Ok(job) if args.threads > NonZeroUsize::MIN => {
            launch::finish(job.bind(Bind::None).run(), NAME)
        }
        Ok(job) => launch::finish(job.run(), NAME),
        Err(problem) => exit::fail(exit::IO, NAME, &problem),
    }
}

fn network(name: &str) -> Result<Network, String> {
    let found = NETWORKS
        .into_iter()
        .find(|network| network.backend.name() == name);
    found.ok_or_else(|| "shm, tcp or mpi is expected".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a positive number is expected".to_owned())
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a number is expected".to_owned())
}

/// The networks to forecast for.
fn networks(args: &Args) -> Vec<Network> {
    let Some(network) = args.network else {
        return NETWORKS.to_vec();
    };
    vec![Network {
        latency: args.latency.map_or(network.latency, |us| 1e-6 * us),
        bandwidth: args.bandwidth.map_or(network.bandwidth, |gb| 1e9 * gb),
        ..network
    }]
}

/// Measures the problems on one rank, and prints their forecasts.
fn forecast(most: usize, args: &Args) -> u8 {
    let problems = match problems(args) {
        Ok(problems) => problems,
        Err(problem) => return exit::fail(exit::INVALID_INPUT, NAME, &problem),
    };
    let networks = networks(args);
    let processors = args.processors.map(NonZeroUsize::get);
    for BenchProblem {
        name,
        problem,
        passes,
    } in problems
    {
        let mut recorder = Recorder::default();
        let settings = Settings {
            threads: NonZeroUsize::MIN,
            ..settings(passes, args)
        };
        if let Err(error) = run_job(&LocalBackend, problem, &settings, &mut recorder) {
            return exit::fail(exit::of(error.kind()), NAME, &exit::told(&error));
        }
        if let Some(profile) = Profile::new(recorder, most) {
            predict::print(&name, &profile, &networks, processors, args.json);
        }
    }
    exit::DONE
}

/// The problems that were asked for.
fn problems(args: &Args) -> Result<Vec<BenchProblem>, String> {
    match &args.problem {
        Some(path) => Ok(vec![own_problem(path, args.forward_passes)?]),
        None => BenchSystem::asked(&args.system)
            .iter()
            .map(BenchSystem::make)
            .collect(),
    }
}

fn settings(passes: NonZeroUsize, args: &Args) -> Settings {
    Settings {
        seed: 1,
        passes,
        stopping: Stopping::any(vec![StopRule::Iterations(args.iterations.get())]),
        threads: args.threads,
        solver: args.solver,
        checkpoints: Cadence::Never,
        ..Settings::default()
    }
}

fn join(args: &Args) -> u8 {
    let comm = match BackendKind::from_env().and_then(create_communicator) {
        Ok(comm) => comm,
        Err(error) => return exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    };
    let problems = match problems(args) {
        Ok(problems) => problems,
        Err(problem) => return exit::fail(exit::INVALID_INPUT, NAME, &problem),
    };
    if args.against_highs {
        let settings = |passes| settings(passes, args);
        let comparison = Comparison {
            rounds: args.rounds,
            to_bounds: &args.to_bound,
            as_json: args.json,
        };
        return match comparison.run(&comm, &problems, settings) {
            Ok(()) => exit::DONE,
            Err(error) => exit::fail(exit::of(error.kind()), NAME, &exit::told(&error)),
        };
    }
    let talks = comm.rank() == 0;
    if talks && !args.json {
        let (ranks, threads) = (comm.size(), args.threads);
        say!(
            "{} on {}: {ranks} × {threads} (ranks × threads)",
            args.solver.name(),
            comm.name()
        );
        let heads = [
            "problem",
            "LPs",
            "seconds",
            "LP/s",
            "ms/iteration",
            "communication",
            "bound",
        ];
        say!(
            "{:<34} {:>9} {:>9} {:>9} {:>13} {:>14} {:>16}",
            heads[0],
            heads[1],
            heads[2],
            heads[3],
            heads[4],
            heads[5],
            heads[6]
        );
    }
    for problem in problems {
        if let Err(error) = measure(&comm, problem, args) {
            return exit::fail(exit::of(error.kind()), NAME, &exit::told(&error));
        }
    }
    exit::DONE
}

fn measure(
    comm: &CommBackend,
    BenchProblem {
        name,
        problem,
        passes,
    }: BenchProblem,
    args: &Args,
) -> Result<(), cobre_sddp::SddpError> {
    let settings = settings(passes, args);
    let results = run_job(comm, problem, &settings, &mut ())?;
    let Some(last) = results
        .trained
        .iterations
        .last()
        .filter(|_| comm.rank() == 0)
    else {
        return Ok(());
    };
    let seconds = last.time.total;
    let per_second = last.lp.solves as f64 / seconds;
    let per_iteration = seconds / last.number as f64;
    let communication = last.time.communication / seconds;
    if args.json {
        let line = serde_json::json!({
            "problem": name,
            "backend": comm.name(),
            "ranks": comm.size(),
            "threads": settings.threads,
            "iterations": last.number,
            "lp_solves": last.lp.solves,
            "solver": settings.solver.name(),
            "lp": last.lp.json(),
            "seconds": seconds,
            "lp_per_second": per_second,
            "seconds_per_iteration": per_iteration,
            "communication_share": communication,
            "bound": last.bound,
            "policy_sha256": results.policy_sha256,
        });
        exit::say_json(&line);
    } else {
        say!(
            "{name:<34} {:>9} {seconds:>9.2} {per_second:>9.0} {:>13.2} {:>13.1}% {:>16.8e}",
            last.lp.solves,
            1000.0 * per_iteration,
            100.0 * communication,
            last.bound
        );
    }
    Ok(())
}
