//! `cobre bench sddp`: how fast training goes.

use std::ffi::OsString;
use std::path::PathBuf;

use cobre_case::Options;
use cobre_case::sample::{Hydrothermal, hydrothermal};
use cobre_comm::{BackendKind, CommBackend, Communicator, create_communicator};
use cobre_launch::Bind;
use cobre_sddp::{
    Cadence, DEFAULT_BASIS_MEMORY, Problem, Sampling, Selection, Settings, Solver, StopRule,
    Stopping, run as run_job,
};

use crate::exit::{self, say};
use crate::{job, launch};

/// In front of every message.
const NAME: &str = "cobre bench sddp";

/// Times training on made-up hydrothermal systems, or on a problem of one's own.
///
/// `10x4` and `82x1`, measured unless --system names others, have 12 stages, 4 reservoirs and 126
/// thermal plants. `10x4` has 10 openings per stage and 4 forward passes per iteration; `82x1` has
/// 82 openings and one pass. `par1` and `par6` are `10x4` with inflows that depend on one and on six
/// before. `60r3b` has 60 reservoirs in cascades and 3 blocks, 20 openings and one pass. With -n it
/// launches its own ranks; each uses one thread unless --threads says more.
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
    #[arg(long, value_name = "K", default_value_t = 1)]
    threads: usize,

    /// Iterations
    #[arg(long, value_name = "K", default_value_t = 256)]
    iterations: usize,

    /// Measures this system; may be given several times
    #[arg(long, value_name = "NAME", value_parser = system)]
    system: Vec<BenchSystem>,

    /// Measures this case, or StochOptFormat file whose cost to go is never below 0, instead
    #[arg(long, value_name = "PATH", conflicts_with = "system")]
    problem: Option<PathBuf>,

    /// Forward passes per iteration on a problem of one's own
    #[arg(long, value_name = "M", default_value_t = 1, requires = "problem")]
    forward_passes: usize,

    /// Prints one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark and returns the code to exit with.
pub(super) fn run(args: &Args) -> u8 {
    match args.ranks {
        Some(ranks) => start(ranks, args),
        None => join(args),
    }
}

fn start(ranks: usize, args: &Args) -> u8 {
    if let Some(problem) = job::refusal(ranks, args.backend.as_deref()) {
        return exit::fail(exit::USAGE, NAME, problem);
    }
    let mut words: Vec<OsString> = vec!["bench".into(), "sddp".into()];
    words.push(format!("--threads={}", args.threads.max(1)).into());
    words.push(format!("--solver={}", args.solver.name()).into());
    words.push(format!("--iterations={}", args.iterations.max(1)).into());
    if let Some(problem) = &args.problem {
        words.extend(["--problem".into(), problem.clone().into()]);
        words.push(format!("--forward-passes={}", args.forward_passes.max(1)).into());
    }
    for system in &args.system {
        words.push(format!("--system={}", system.name).into());
    }
    if args.json {
        words.push("--json".into());
    }
    match job::again(ranks, args.backend.as_deref(), words) {
        Ok(job) if args.threads > 1 => launch::finish(job.bind(Bind::None).run(), NAME),
        Ok(job) => launch::finish(job.run(), NAME),
        Err(problem) => exit::fail(exit::IO, NAME, &problem),
    }
}

/// A benchmark: a name, a problem, and its forward passes.
type Case = (String, Problem, usize);

fn cases(args: &Args) -> Result<Vec<Case>, String> {
    if let Some(path) = &args.problem {
        let options = Options {
            bound: Some(0.0),
            risk: None,
        };
        let problem = cobre_case::read(path, &options).map_err(|error| exit::told(&error))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        return Ok(vec![(name, problem, args.forward_passes.max(1))]);
    }
    let asked = if args.system.is_empty() {
        &SYSTEMS[..2]
    } else {
        &args.system[..]
    };
    let made = |system: &BenchSystem| -> Result<Case, String> {
        let problem = hydrothermal(system.size).map_err(|errors| errors.to_string())?;
        Ok((system.name.to_owned(), problem, system.passes))
    };
    asked.iter().map(made).collect()
}

/// A made-up system.
#[derive(Debug, Clone, Copy)]
struct BenchSystem {
    name: &'static str,
    size: Hydrothermal,
    passes: usize,
}

/// Four regions with a reservoir each.
const SMALL: Hydrothermal = Hydrothermal {
    stages: 12,
    regions: 4,
    reservoirs: 4,
    thermals: 126,
    blocks: 1,
    lags: 0,
    openings: 10,
    known_start: false,
};

/// The systems of the benchmark; the first two by default.
const SYSTEMS: [BenchSystem; 5] = [
    BenchSystem {
        name: "10x4",
        size: SMALL,
        passes: 4,
    },
    BenchSystem {
        name: "82x1",
        size: Hydrothermal {
            openings: 82,
            known_start: true,
            ..SMALL
        },
        passes: 1,
    },
    BenchSystem {
        name: "par1",
        size: Hydrothermal { lags: 1, ..SMALL },
        passes: 4,
    },
    BenchSystem {
        name: "par6",
        size: Hydrothermal { lags: 6, ..SMALL },
        passes: 4,
    },
    BenchSystem {
        name: "60r3b",
        size: Hydrothermal {
            reservoirs: 60,
            thermals: 40,
            blocks: 3,
            openings: 20,
            ..SMALL
        },
        passes: 1,
    },
];

fn system(name: &str) -> Result<BenchSystem, String> {
    let found = SYSTEMS.into_iter().find(|system| system.name == name);
    let names = SYSTEMS.map(|system| system.name).join(", ");
    found.ok_or_else(|| format!("one of {names} is expected"))
}

fn join(args: &Args) -> u8 {
    let comm = match BackendKind::from_env().and_then(create_communicator) {
        Ok(comm) => comm,
        Err(error) => return exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    };
    let cases = match cases(args) {
        Ok(cases) => cases,
        Err(problem) => return exit::fail(exit::INVALID_INPUT, NAME, &problem),
    };
    let talks = comm.rank() == 0;
    if talks && !args.json {
        let (ranks, threads) = (comm.size(), args.threads.max(1));
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
    for case in cases {
        if let Err(error) = measure(&comm, case, args) {
            return exit::fail(exit::of_run(&error), NAME, &exit::told(&error));
        }
    }
    exit::DONE
}

fn measure(
    comm: &CommBackend,
    (name, problem, passes): Case,
    args: &Args,
) -> Result<(), cobre_sddp::SddpError> {
    let settings = Settings {
        seed: 1,
        passes,
        selection: Selection::ALL,
        stopping: Stopping::any(vec![StopRule::Iterations(args.iterations.max(1))]),
        threads: args.threads.max(1),
        simulate: 0,
        sampling: Sampling::Fresh,
        solver: args.solver,
        basis_memory: DEFAULT_BASIS_MEMORY,
        checkpoints: Cadence::Never,
        resume: false,
        output: None,
        csv: false,
    };
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
