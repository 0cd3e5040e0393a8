//! `cobre run`: trains a policy, alone or as the ranks of a job.

mod report;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cobre_case::Options;
use cobre_comm::{BackendKind, CommBackend, Communicator, cpus, create_communicator};
use cobre_launch::{Bind, Interrupt, LaunchError, Outcome};
use cobre_sddp::SddpError;
use cobre_sddp::policy::Selection;
use cobre_sddp::problem::Problem;
use cobre_sddp::risk::Risk;
use cobre_sddp::run::{Settings, Solver};
use cobre_sddp::simulation::Sampling;
use cobre_sddp::training::{Rule, StopReason, Stopping};

use self::report::Failure;
use self::show::Show;
use crate::{exit, job, launch};

/// In front of every message.
const NAME: &str = "cobre run";
/// How long ranks that are asked to end may take to finish an iteration and save.
const GRACE: Duration = Duration::from_secs(60);

/// Trains a policy for a problem under uncertainty, and tells what it is worth.
///
/// PATH is a StochOptFormat file (*.sof.json). With -n it starts its own ranks on this machine;
/// started as a rank of a job (cobre launch, mpiexec, srun) it joins that job. The results are the
/// same bits for any number of ranks and threads.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The problem
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Number of ranks to start [default: join the job this is a rank of, else one process]
    #[arg(short = 'n', long = "workers", value_name = "N", value_parser = launch::ranks)]
    workers: Option<usize>,

    /// Backend that connects the ranks [default: the best one for one machine]
    #[arg(long, value_name = "shm|tcp|mpi|local")]
    backend: Option<String>,

    /// Threads per rank [default: usable processors / ranks]
    #[arg(long, value_name = "K", value_parser = positive)]
    threads: Option<usize>,

    /// Directory for results: policy, convergence, simulation
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Where all chance comes from
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Number of iterations [default: until the bound stalls, 1000 at most]
    #[arg(long, value_name = "K", value_parser = positive)]
    iterations: Option<usize>,

    /// Forward passes per iteration
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = positive)]
    forward_passes: usize,

    /// Simulates the trained policy on N new paths
    #[arg(long, value_name = "N", default_value_t = 0)]
    simulate: usize,

    /// Solver of the linear programs
    #[arg(long, value_name = "highs", default_value = "highs")]
    solver: Solver,

    /// A bound that the cost to go is never below (for a revenue: above)
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = finite)]
    bound: Option<f64>,

    /// Risk measure: expectation, or cvar:LAMBDA,ALPHA
    #[arg(long, value_name = "R", default_value = "expectation")]
    risk: Risk,

    /// Cuts in use: none (all of them), level1 or lml1, with :CAP for at most CAP per node
    #[arg(long, value_name = "RULE", default_value = "none", value_parser = selection)]
    cut_selection: CutRule,

    /// Stops also by iterations:N, time:SECONDS, stalling:WINDOW,TOLERANCE or statistical:PATHS
    #[arg(long, value_name = "RULE", value_parser = stop_rule)]
    stop: Vec<StopRule>,

    /// Stops when all rules of --stop agree instead of any of them
    #[arg(long, requires = "stop")]
    stop_when_all: bool,

    /// Ends with one line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Prints nothing but errors, and the JSON line if asked for
    #[arg(long)]
    quiet: bool,
}

/// A rule with the text it was read from, which other ranks are given.
#[derive(Debug, Clone)]
struct CutRule(Selection, String);

#[derive(Debug, Clone)]
struct StopRule(Rule, String);

/// Runs and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    if let Some(problem) = wrong_usage(args) {
        let error = Failure::new("usage", problem);
        return error.tell(exit::USAGE, args.json);
    }
    match args.workers {
        Some(ranks) if ranks > 1 || args.backend.as_deref().is_some_and(|name| name != "local") => {
            start(ranks, args)
        }
        _ => join(args),
    }
}

/// What is wrong with how ranks are asked for.
fn wrong_usage(args: &Args) -> Option<String> {
    let backend = args.backend.as_deref();
    if let Some(ranks) = args.workers {
        return job::refusal(ranks, backend).map(str::to_owned);
    }
    let backend = backend?;
    let known = ["local", "shm", "tcp", "mpi"];
    if !known.contains(&backend) {
        return Some(format!(
            "--backend {backend}: one of {} is expected",
            known.join(", ")
        ));
    }
    (backend != "local" && !job::is_rank())
        .then(|| format!("--backend {backend} connects several ranks: add -n N to start them"))
}

/// Starts the ranks of a job: this program again, without `-n`.
fn start(ranks: usize, args: &Args) -> u8 {
    // Ranks would all find the same errors.
    if let Err(error) = read(args) {
        return Failure::of_case(&error).tell(exit::of_case(&error), args.json);
    }
    let threads = threads(args, ranks);
    let job = match job::again(ranks, args.backend.as_deref(), arguments(args, threads)) {
        Ok(job) => job.grace(GRACE),
        Err(problem) => return Failure::new("io", problem).tell(exit::IO, args.json),
    };
    let job = if threads > 1 {
        job.bind(Bind::None)
    } else {
        job
    };
    ended(job.run(), args.json)
}

/// Says how the job ended, and returns the code to exit with.
fn ended(job: Result<Outcome, LaunchError>, json: bool) -> u8 {
    match job {
        Ok(outcome) => {
            let code = exit::of_ranks(&outcome);
            report::tell_outcome(&outcome, code, json, NAME);
            code
        }
        Err(error) => {
            Failure::new("launch", exit::told(&error)).tell(exit::of_launch(&error), json)
        }
    }
}

/// The arguments of a rank.
fn arguments(args: &Args, threads: usize) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["run".into(), args.path.clone().into()];
    let mut option = |name: &str, value: OsString| {
        // Together, so that a value may begin with a dash.
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        words.push(word);
    };
    option("threads", threads.to_string().into());
    option("seed", args.seed.to_string().into());
    option("forward-passes", args.forward_passes.to_string().into());
    option("simulate", args.simulate.to_string().into());
    option("risk", args.risk.to_string().into());
    option("cut-selection", args.cut_selection.1.clone().into());
    if let Some(iterations) = args.iterations {
        option("iterations", iterations.to_string().into());
    }
    if let Some(bound) = args.bound {
        option("bound", format!("{bound:?}").into());
    }
    if let Some(output) = &args.output {
        option("output", output.clone().into());
    }
    for rule in &args.stop {
        option("stop", rule.1.clone().into());
    }
    let flags = [
        (args.stop_when_all, "--stop-when-all"),
        (args.json, "--json"),
        (args.quiet, "--quiet"),
    ];
    words.extend(
        flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, flag)| flag.into()),
    );
    words
}

fn threads(args: &Args, ranks: usize) -> usize {
    args.threads
        .unwrap_or_else(|| (cpus::usable() / ranks).max(1))
}

fn read(args: &Args) -> Result<Problem, cobre_case::CaseError> {
    let options = Options {
        bound: args.bound,
        risk: args.risk,
    };
    cobre_case::read(&args.path, &options)
}

/// Runs as a rank of the job this process belongs to, or alone.
fn join(args: &Args) -> u8 {
    let connected = if args.workers == Some(1) {
        create_communicator(BackendKind::Local)
    } else {
        BackendKind::from_env().and_then(create_communicator)
    };
    let comm = match connected {
        Ok(comm) => comm,
        Err(error) => {
            let failure = Failure::new("communication", exit::told(&error));
            return failure.tell(exit::RANKS, args.json);
        }
    };
    if let Some(asked) = &args.backend
        && asked != comm.name()
    {
        let problem = format!(
            "--backend {asked}, but this process is a rank of a {} job",
            comm.name()
        );
        return Failure::new("usage", problem).tell_if(comm.rank() == 0, exit::USAGE, args.json);
    }
    solve(&comm, args)
}

fn solve(comm: &CommBackend, args: &Args) -> u8 {
    let first = comm.rank() == 0;
    let start = Instant::now();
    let problem = match read(args) {
        Ok(problem) => problem,
        Err(error) => {
            return Failure::of_case(&error).tell_if(first, exit::of_case(&error), args.json);
        }
    };
    let load = start.elapsed().as_secs_f64();
    let settings = settings(args, comm.size());
    let sense = problem.sense;
    let interrupt = Interrupt::catch().ok().flatten();
    let mut show = Show::new(first && !args.quiet, interrupt, &settings);
    show.header(&args.path, &problem, comm.name(), comm.size());
    match cobre_sddp::run::run(comm, problem, &settings, &mut show) {
        Ok(results) => {
            show.summary(sense, &results);
            if first && args.json {
                let total = start.elapsed().as_secs_f64();
                report::tell_results(sense, &results, load, total);
            }
            if results.trained.reason == StopReason::Interrupted {
                exit::STOPPED
            } else {
                exit::DONE
            }
        }
        Err(error) => {
            show.clear();
            // The rank that failed knows most; rank 0 speaks for the job in any case.
            let all_know = matches!(
                error,
                SddpError::Communication(_) | SddpError::Disagreement { .. }
            );
            let speaks = first || !all_know;
            Failure::of_run(&error).tell_if(speaks, exit::of_run(&error), args.json && first)
        }
    }
}

fn settings(args: &Args, ranks: usize) -> Settings {
    let rules = args.stop.iter().map(|rule| rule.0).collect();
    Settings {
        seed: args.seed,
        passes: args.forward_passes,
        selection: args.cut_selection.0,
        stopping: Stopping::asked(args.iterations, rules, args.stop_when_all),
        threads: threads(args, ranks),
        simulate: args.simulate,
        sampling: Sampling::Fresh,
        solver: args.solver,
        output: args.output.clone(),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a positive whole number is expected".to_owned())
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a finite number is expected".to_owned())
}

fn selection(text: &str) -> Result<CutRule, String> {
    text.parse().map(|rule| CutRule(rule, text.to_owned()))
}

fn stop_rule(text: &str) -> Result<StopRule, String> {
    text.parse().map(|rule| StopRule(rule, text.to_owned()))
}
