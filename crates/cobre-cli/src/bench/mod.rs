//! `cobre bench`: measures what this machine and this build reach.

mod against_highs;
mod collectives;
mod peers;
mod predict;
mod region;
mod samples;
mod sddp;
mod systems;

use std::ffi::OsString;

use clap::Subcommand;
use cobre_comm::{BackendKind, CommBackend, Communicator, create_communicator};
use serde_json::Value;

use self::collectives::{BenchCase, CollectiveKind, Measured, Operation, cases, measure};
use self::region::measure_region;
use crate::exit::{self, say};
use crate::{job, launch};

/// In front of every message.
const NAME: &str = "cobre bench";

/// Measures training and collectives on this machine
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    Collectives(CollectivesArgs),
    Peers(peers::Args),
    Sddp(sddp::Args),
}

/// Times every collective at the sizes at which other libraries were measured.
///
/// Bytes are per rank for allreduce, in all for allgatherv, of the message for broadcast. With -n
/// it launches its own ranks, each bound to a core if there are enough; started as a rank of a job
/// it joins that job. Every case's first and last result are verified.
#[derive(clap::Args)]
struct CollectivesArgs {
    /// Number of ranks to launch [default: join the job this is a rank of, else one rank]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = launch::ranks)]
    ranks: Option<usize>,

    /// Backend that connects the launched ranks [default: the best one for one machine]
    #[arg(long, value_name = "shm|tcp|mpi|local", requires = "ranks")]
    backend: Option<String>,

    /// Measures this operation only
    #[arg(long, value_enum)]
    op: Option<Operation>,

    /// Measures at this size only, a multiple of 8; a barrier has none
    #[arg(long, value_name = "B", value_parser = whole_elements)]
    bytes: Option<usize>,

    /// About how long each case runs
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = positive)]
    seconds: f64,

    /// Prints one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark and returns the code to exit with.
pub(crate) fn run(args: Args) -> u8 {
    match args.measurement {
        Measurement::Collectives(args)
            if args.op == Some(Operation::Barrier) && args.bytes.is_some() =>
        {
            exit::fail(
                exit::USAGE,
                NAME,
                "a barrier has no size: leave out --bytes",
            )
        }
        Measurement::Collectives(args) => match args.ranks {
            Some(ranks) => start(ranks, &args),
            None => join(&args),
        },
        Measurement::Peers(args) => peers::run(&args),
        Measurement::Sddp(args) => sddp::run(&args),
    }
}

/// Starts the ranks of a job: this program again, without `-n`.
fn start(ranks: usize, args: &CollectivesArgs) -> u8 {
    if let Some(problem) = job::refusal(ranks, args.backend.as_deref()) {
        return exit::fail(exit::USAGE, NAME, problem);
    }
    let mut command: Vec<OsString> = vec!["bench".into(), "collectives".into()];
    if let Some(op) = args.op {
        command.extend(["--op".into(), op.name().into()]);
    }
    if let Some(bytes) = args.bytes {
        command.extend(["--bytes".into(), bytes.to_string().into()]);
    }
    command.extend(["--seconds".into(), args.seconds.to_string().into()]);
    if args.json {
        command.push("--json".into());
    }
    match job::again(ranks, args.backend.as_deref(), command) {
        Ok(job) => launch::finish(job.run(), NAME),
        Err(problem) => exit::fail(exit::IO, NAME, &problem),
    }
}

/// Measures as a rank of the job this process belongs to.
fn join(args: &CollectivesArgs) -> u8 {
    let comm = match BackendKind::from_env().and_then(create_communicator) {
        Ok(comm) => comm,
        Err(error) => return exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    };
    let talks = comm.rank() == 0;
    if talks && !args.json {
        let ranks = if comm.size() == 1 { "rank" } else { "ranks" };
        let topology = comm.topology();
        let topology = topology.map(|it| format!("; small messages: {it}"));
        let topology = topology.unwrap_or_default();
        say!("{} {ranks} on {}{topology}", comm.size(), comm.name());
        say!(
            "{:<14} {:>10} {:>9} {:>12} {:>12}",
            "op",
            "bytes",
            "calls",
            "p50 us",
            "p99 us"
        );
    }
    for case in cases(args.op, args.bytes) {
        let measured = match case.kind {
            CollectiveKind::Region => measure_region(&comm, case.bytes, args.seconds),
            _ => measure(&comm, case, args.seconds),
        };
        match measured {
            Ok(measured) if talks && args.json => {
                exit::say_json(&json_line(&comm, case, &measured));
            }
            Ok(measured) if talks => say!("{}", line(case, &measured)),
            Ok(_) => {}
            Err(error) => return exit::fail(exit::RANKS, NAME, &error),
        }
    }
    exit::DONE
}

fn json_line(comm: &CommBackend, case: BenchCase, measured: &Measured) -> Value {
    let mut line = serde_json::json!({
        "backend": comm.name(),
        "op": case.kind.name(),
        "ranks": comm.size(),
        "bytes": case.bytes,
        "iterations": measured.iterations,
        "p50_us": measured.p50_us,
        "p99_us": measured.p99_us,
    });
    if let Some(topology) = comm.topology() {
        line["topology"] = topology.into();
    }
    line
}

fn line(case: BenchCase, measured: &Measured) -> String {
    let (op, bytes) = (case.kind.name(), case.bytes);
    let Measured {
        iterations,
        p50_us,
        p99_us,
    } = measured;
    format!("{op:<14} {bytes:>10} {iterations:>9} {p50_us:>12.3} {p99_us:>12.3}")
}

fn whole_elements(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|bytes: &usize| bytes.is_multiple_of(8));
    number.ok_or_else(|| "a multiple of 8 is expected: elements are f64".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|secs: &f64| secs.is_finite() && *secs > 0.0);
    number.ok_or_else(|| "a positive number of seconds is expected".to_owned())
}
