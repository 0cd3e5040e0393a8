//! `cobre run`: trains a policy, alone or as the ranks of a job.

mod attempts;
mod progress;
mod report;
mod show;
mod trace;

use std::ffi::OsString;
use std::mem::take;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cobre_case::{Boundary, Case, Options, Scenarios, output_inside};
use cobre_comm::{
    BackendKind, CommBackend, Communicator, Environment, ErrorKind, SharedMemoryProvider, cpus,
    create_communicator,
};
use cobre_launch::{Bind, Interrupt, LaunchError, Outcome};
use cobre_results::layout::POLICY;
use cobre_sddp::{
    About, Cadence, ClassifiedError, DEFAULT_BASIS_MEMORY, GivenPolicy, MAX_PASSES,
    MAX_PATH_STAGES, MAX_PATHS, MAX_THREADS, MAX_UPPER_BOUND_STATES, Manifest, Overrides,
    PolicyFile, Risk, SddpError, Selection, Settings, Solver, Start, StopRule, Stopping,
    read_policy_manifest, run_from, simulate,
};

use self::report::{Failure, ReportChannel};
use self::show::{OutputChoices, Show};
use self::trace::TraceFile;
use crate::hosts::HostArgs;
use crate::placement::Placement;
use crate::{aborts, exit, job, launch};

/// In front of every message.
const NAME: &str = "cobre run";

/// Trains a policy for a problem under uncertainty, and reports its bound and its cost.
///
/// PATH is the directory of a hydrothermal case, or a StochOptFormat file (*.sof.json). A case says
/// in its config.json how it wants to be trained and simulated; options given here override that.
/// With -n it starts its own ranks on this machine, with --hosts on several; started as a rank of a job (cobre launch,
/// mpiexec, srun) it joins that job. The results are the same bits for any number of ranks and
/// threads.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Args {
    /// The problem
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Number of ranks to start [default: join the job this is a rank of, else one process]
    #[arg(short = 'n', long = "workers", value_name = "N", value_parser = launch::ranks)]
    workers: Option<usize>,

    #[command(flatten)]
    hosts: HostArgs,

    /// Fewest and most ranks on --hosts: after the loss of a host --retries goes on with those that are left, and with more
    /// once it is back [default: all that the hosts take]
    #[arg(long = "ranks", value_name = "MIN:MAX", conflicts_with = "workers", value_parser = attempts::RankRange::parse)]
    rank_range: Option<attempts::RankRange>,

    /// Backend that connects the ranks [default: the best one for one machine; tcp between hosts]
    #[arg(long, value_name = "shm|tcp|mpi|local")]
    backend: Option<String>,

    /// Threads per rank [default: usable processors / ranks]
    #[arg(long, value_name = "K", value_parser = threads)]
    threads: Option<NonZeroUsize>,

    /// Where the ranks of -n run: none (anywhere), core (a processor each), cores (one per thread), cores:K, socket or numa
    /// (one each, shared out among its ranks) [default: core if ranks have one thread and there are enough, else none]
    #[arg(long, value_name = "WHERE", value_parser = Placement::parse)]
    bind: Option<Placement>,

    /// Prints the processors of each rank before it starts
    #[arg(long)]
    report_bindings: bool,

    /// Directory for results: policy, convergence, simulation
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Writes every table as CSV as well
    #[arg(long, requires = "output")]
    csv: bool,

    /// Keeps the state of training in the output directory: iterations:K, minutes:M or none [default: minutes:1 if there
    /// is one]
    #[arg(long, value_name = "RULE")]
    checkpoint: Option<Cadence>,

    /// Goes on from the newest checkpoint in the output directory
    #[arg(long, requires = "output")]
    resume: bool,

    /// Begins with the cuts of the policy that another run has left in its output directory
    #[arg(long, value_name = "DIR")]
    warm_start: Option<PathBuf>,

    /// Trains nothing: simulates the policy of --warm-start
    #[arg(long, requires = "warm_start", conflicts_with_all = ["resume", "iterations", "stop"])]
    simulate_only: bool,

    /// Value after the last stage: the cuts of another run's output directory, or of a JSON file of SDDP.jl [default: as
    /// the case says, else none]
    #[arg(long, value_name = "PATH")]
    boundary: Option<PathBuf>,

    /// Stage or node of --boundary whose cost to go it is [default: that of the same date, or of the same name]
    #[arg(long, value_name = "STAGE", requires = "boundary")]
    boundary_stage: Option<String>,

    /// With -n or --hosts: how often a job that has lost a rank or a host starts again from its newest checkpoint
    #[arg(long, value_name = "N", default_value_t = 0, requires = "output")]
    retries: usize,

    /// This is a rank that `cobre run -n` has started, which tells how it ended
    #[arg(long, hide = true)]
    spoken_for: bool,

    /// Seed of the random paths of forward passes and of the simulation [default: as the case says, else 0]
    #[arg(long, value_name = "S", value_parser = seed)]
    seed: Option<u64>,

    /// Number of iterations [default: as the case says, else until the bound stalls, 1000 at most]
    #[arg(long, value_name = "K", value_parser = positive)]
    iterations: Option<NonZeroUsize>,

    /// Forward passes per iteration [default: as the case says, else 1]
    #[arg(long, value_name = "M", value_parser = passes)]
    forward_passes: Option<NonZeroUsize>,

    /// Simulates the trained policy on N new paths [default: as the case says, else 0]
    #[arg(long, value_name = "N", value_parser = paths)]
    simulate: Option<usize>,

    /// Stages of the simulated paths through a cyclic graph, whose costs are discounted [default: as the case says, else
    /// paths end by chance]
    #[arg(long, value_name = "T", value_parser = path_stages)]
    simulate_stages: Option<NonZeroUsize>,

    /// The most stages of a path through a cyclic graph [default: as the case says, else 10000]
    #[arg(long, value_name = "T", value_parser = path_stages)]
    path_stages: Option<NonZeroUsize>,

    /// Simulates the scenarios of a file in place of drawn paths: of a case, a table (Parquet or CSV) such as its
    /// external_inflow_scenarios; of a StochOptFormat file, a JSON list such as its validation_scenarios. May be repeated
    #[arg(long, value_name = "FILE")]
    scenarios: Vec<PathBuf>,

    /// Simulates past years of the case's inflow history in place of drawn paths: 1953, 1950-1959, 1953,1971 or all
    #[arg(long, value_name = "YEARS", conflicts_with = "scenarios", value_parser = years)]
    years: Option<Years>,

    /// Solver of the linear programs
    #[arg(long, value_name = "auto|kernel|highs|check", default_value = "auto")]
    solver: Solver,

    /// Memory for the bases that all ranks remember, in MiB; results depend on it
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_BASIS_MEMORY >> 20, value_parser = mebibytes)]
    basis_memory: u64,

    /// A bound that the cost to go is never below (for a revenue: above) [default: a case has its own]
    #[arg(long, value_name = "B", allow_hyphen_values = true, value_parser = finite)]
    bound: Option<f64>,

    /// Risk measure: expectation, or cvar:LAMBDA,ALPHA [default: as the case says, else expectation]
    #[arg(long, value_name = "R")]
    risk: Option<Risk>,

    /// Cuts in use: none (all of them), level1 or lml1, with :CAP for at most CAP per node [default: as
    /// the case says, else none]
    #[arg(long, value_name = "RULE")]
    cut_selection: Option<Selection>,

    /// Stops also by iterations:N, time:SECONDS, stalling:WINDOW,TOLERANCE, statistical:PATHS, gap:TOLERANCE,
    /// absolute_gap:DIFFERENCE, first_stage:WINDOW,TOLERANCE or simulation:PERIOD,PATHS,TOLERANCE
    #[arg(long, value_name = "RULE")]
    stop: Vec<StopRule>,

    /// Stops when all rules of --stop agree instead of any of them
    #[arg(long, requires = "stop")]
    stop_when_all: bool,

    /// Computes a deterministic bound from the other side every K iterations, and after the last
    #[arg(long, value_name = "K", value_parser = positive)]
    upper_bound: Option<NonZeroUsize>,

    /// Visited states of a node that --upper-bound uses at most, the latest ones [default: 100]
    #[arg(long, value_name = "N", requires = "upper_bound", value_parser = upper_bound_states)]
    upper_bound_states: Option<NonZeroUsize>,

    /// Writes a timeline of every rank: forward, backward, waiting; a JSON file that Perfetto and Chrome show
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Ends with one line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Prints also the ranges of numbers, the counters of the solvers and the parts of the time
    #[arg(long, short)]
    verbose: bool,

    /// Prints nothing but errors, and the JSON line if asked for
    #[arg(long)]
    quiet: bool,
}

/// Runs and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    aborts::catch(args.json && job::is_first(), args.spoken_for);
    if let Some(problem) = wrong_usage(args) {
        return Failure::new(ErrorKind::Usage, problem).tell(args.json);
    }
    match args.workers {
        _ if args.hosts.are_given() => unwound(false, args.json, || attempts::on_hosts(args)),
        Some(ranks)
            if ranks > 1
                || args.retries > 0
                || args.backend.as_deref().is_some_and(|name| name != "local") =>
        {
            unwound(false, args.json, || attempts::on_this_machine(ranks, args))
        }
        _ => unwound(args.spoken_for, args.json, || join(args)),
    }
}

/// The code that `work` returns; a panic in it is an error that is told like any other.
fn unwound(spoken_for: bool, json: bool, work: impl FnOnce() -> u8) -> u8 {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("internal error: panicked: {}", text.unwrap_or("no message"));
        let channel = ReportChannel {
            spoken_for,
            first: job::is_first(),
            json,
        };
        channel.fail_if(true, Failure::new(ErrorKind::Rank, message))
    })
}

/// Tells as JSON of a command line that is wrong, if it is one of `cobre run --json`.
pub(crate) fn tell_usage(message: &str) {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = words.first().is_some_and(|word| word == "run");
    if first && words.iter().any(|word| word == "--json") {
        // The usage follows after an empty line.
        let lines = message.lines().take_while(|line| !line.is_empty());
        let lines: Vec<&str> = lines.map(str::trim).collect();
        let message = lines.join(" ");
        Failure::new(ErrorKind::Usage, message.trim_start_matches("error: ")).tell_json();
    }
}

/// The error in the options that ask for ranks, if there is one.
fn wrong_usage(args: &Args) -> Option<String> {
    let keeps = args.checkpoint.is_some_and(|rule| rule != Cadence::Never);
    if args.output.is_none() && keeps {
        return Some(
            "--checkpoint keeps the state of training in the output directory: add --output DIR"
                .to_owned(),
        );
    }
    if let Some(inside) = args.output.as_deref()
        && let Some(problem) = output_inside(&args.path, inside)
    {
        return Some(problem);
    }
    if let (Some(output), Some(policy)) = (&args.output, &args.warm_start)
        && is_same(&output.join(POLICY), &policy.join(POLICY))
    {
        return Some(
            "--output is where the policy of --warm-start is, which would be lost: give another --output"
                .to_owned(),
        );
    }
    if let Some(path) = &args.trace
        && let Err(problem) = trace::check(path)
    {
        return Some(problem);
    }
    let on_hosts = args.hosts.are_given();
    if args.retries > 0 && args.workers.is_none() && !on_hosts {
        return Some(
            "--retries starts ranks again that -n or --hosts has started: add one of them"
                .to_owned(),
        );
    }
    if args.retries > 0 && args.checkpoint == Some(Cadence::Never) {
        return Some("--retries goes on from checkpoints: leave out --checkpoint none".to_owned());
    }
    if args.bind.is_some() && args.workers.is_none() && !on_hosts {
        return Some("--bind places the ranks of -n or --hosts: add one of them".to_owned());
    }
    if args.report_bindings && args.workers.is_none() && !on_hosts {
        return Some(
            "--report-bindings prints the processors of the ranks of -n: add it".to_owned(),
        );
    }
    if args.rank_range.is_some() && !on_hosts {
        return Some(
            "--ranks is for several hosts: add --hosts LIST; on one machine, -n N".to_owned(),
        );
    }
    let backend = args.backend.as_deref();
    let known = ["local", "shm", "tcp", "mpi"];
    if let Some(backend) = backend.filter(|backend| !known.contains(backend)) {
        return Some(format!(
            "--backend {backend}: one of {} is expected",
            known.join(", ")
        ));
    }
    if let Err(problem) = args.hosts.hosts(args.workers) {
        return Some(problem);
    }
    if let Some(ranks) = args.workers.or(on_hosts.then_some(2)) {
        return job::refusal(ranks, backend).map(str::to_owned);
    }
    let backend = backend?;
    (backend != "local" && !job::is_rank())
        .then(|| format!("--backend {backend} connects several ranks: add -n N to start them"))
}

/// True if two paths lead to the same existing file or directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    file(one).is_some_and(|found| Some(found) == file(other))
}

/// The binding that is asked for; else a processor for each rank of one thread, if there are enough.
fn bind_of(args: &Args, ranks: usize) -> Bind {
    let threads = threads_of(args, ranks);
    match args.bind {
        Some(placement) => placement.bind(threads),
        None if threads == NonZeroUsize::MIN => job::own_processor(ranks),
        None => Bind::None,
    }
}

/// Says how to go on, if something is there to go on from.
fn advise(args: &Args) {
    let kept = args
        .output
        .as_deref()
        .is_some_and(cobre_sddp::has_checkpoint);
    if !kept {
        return;
    }
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    if !args.resume {
        // After `run`: at the end it might come after `--`.
        words.insert(2, "--resume".to_owned());
    }
    exit::note(
        NAME,
        &format!("to go on from the newest checkpoint: {}", words.join(" ")),
    );
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Says how the job ended, and returns the code to exit with.
fn ended(job: Result<Outcome, LaunchError>, json: bool) -> u8 {
    match job {
        Ok(outcome) => {
            let code = exit::of_ranks(&outcome);
            report::tell_outcome(&outcome, code, json)
        }
        Err(error) => Failure::of_launch(&error).tell(json),
    }
}

/// Threads of each of so many ranks; those of a job on several hosts share the processors of their own.
fn threads_of(args: &Args, ranks: usize) -> NonZeroUsize {
    let here = Environment::process().host_ranks().unwrap_or(ranks);
    let share = || NonZeroUsize::new(cpus::usable() / here).unwrap_or(NonZeroUsize::MIN);
    args.threads.unwrap_or_else(share)
}

/// Finds what every rank would find wrong, without building the problem.
fn check(args: &Args, ranks: usize) -> Result<(), Failure> {
    let overrides = boundary(args).filter(|_| args.path.is_dir());
    let overrides = overrides.map(|boundary| boundary.overrides());
    let case = cobre_case::check(&args.path, &options(args), overrides.as_deref());
    let case = case.map_err(|error| Failure::of(&error))?;
    chosen(args, case.settings, case.risk_neutral, ranks)?;
    match policy_directory(args) {
        Some(directory) => PolicyFile::open(&directory)
            .map(|_| ())
            .map_err(|error| Failure::of_run(&error)),
        None => Ok(()),
    }
}

/// The terminal value that is asked for.
fn boundary(args: &Args) -> Option<Boundary> {
    args.boundary.as_ref().map(|path| Boundary {
        path: path.clone(),
        source_stage: args.boundary_stage.clone(),
    })
}

fn options(args: &Args) -> Options {
    Options {
        bound: args.bound,
        risk: args.risk,
        scenarios: scenarios(args),
    }
}

/// The scenarios to simulate, if some are asked for.
fn scenarios(args: &Args) -> Option<Scenarios> {
    if let Some(Years(years)) = &args.years {
        return Some(Scenarios::Years(years.clone()));
    }
    (!args.scenarios.is_empty()).then(|| Scenarios::Files(args.scenarios.clone()))
}

/// Years of a history; all if empty.
#[derive(Clone)]
struct Years(Vec<i32>);

fn years(text: &str) -> Result<Years, String> {
    if text == "all" {
        return Ok(Years(Vec::new()));
    }
    let mut years = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = first
            .trim()
            .parse::<u16>()
            .ok()
            .zip(last.trim().parse::<u16>().ok());
        let ends = ends.filter(|(first, last)| first <= last && *last < 10_000);
        let expected = "years are expected, such as 1953, 1950-1959 or all";
        let (first, last) = ends.ok_or_else(|| expected.to_owned())?;
        years.extend((first..=last).map(i32::from));
    }
    Ok(Years(years))
}

/// The directory of the policy of a warm start.
fn policy_directory(args: &Args) -> Option<PathBuf> {
    let output = args.warm_start.as_deref()?;
    Some(output.join(POLICY))
}

/// The policy of a warm start, as far as a rank reads it.
enum PolicyRead {
    Stored(PolicyFile),
    Elsewhere(Manifest),
}

impl PolicyRead {
    fn given(&self) -> GivenPolicy<'_> {
        match self {
            Self::Stored(file) => GivenPolicy::Stored(file),
            Self::Elsewhere(manifest) => GivenPolicy::Elsewhere(manifest),
        }
    }
}

/// The policy to begin with, if one is asked for. The leaders of nodes read its cuts, for all ranks of theirs.
fn warm_start(args: &Args, comm: &CommBackend) -> Result<Option<PolicyRead>, Failure> {
    let Some(directory) = policy_directory(args) else {
        return Ok(None);
    };
    let found = if comm.is_leader() {
        PolicyFile::open(&directory).map(PolicyRead::Stored)
    } else {
        read_policy_manifest(&directory).map(PolicyRead::Elsewhere)
    };
    found.map(Some).map_err(|error| {
        // The ranks that have read their part wait for this one.
        comm.abort(error.kind(), &error.to_string());
        Failure::of_run(&error)
    })
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
            let channel = ReportChannel {
                spoken_for: args.spoken_for,
                first: job::is_first(),
                json: args.json,
            };
            // No rank knows what another one met.
            return channel.fail_if(true, Failure::of_start(&error));
        }
    };
    let channel = ReportChannel {
        spoken_for: args.spoken_for,
        first: comm.rank() == 0,
        json: args.json,
    };
    if let Some(asked) = &args.backend
        && asked != comm.name()
    {
        let problem = format!(
            "--backend {asked}, but this process is a rank of a {} job",
            comm.name()
        );
        return channel.fail(Failure::new(ErrorKind::Usage, problem));
    }
    solve(&comm, args, channel)
}

fn solve(comm: &CommBackend, args: &Args, channel: ReportChannel) -> u8 {
    let start = Instant::now();
    let brought = cobre_case::load_bounded(&args.path, &options(args), boundary(args).as_ref());
    let brought = brought.map_err(|error| Failure::of(&error));
    let brought = brought.and_then(|mut case| {
        let neutral = case.problem.is_risk_neutral();
        let settings = chosen(args, take(&mut case.settings), neutral, comm.size())?;
        Ok((case, settings, warm_start(args, comm)?))
    });
    let (case, settings, policy) = match brought {
        Ok(brought) => brought,
        Err(failure) => return channel.fail(failure),
    };
    let trace = match trace_file(args, comm) {
        Ok(trace) => trace,
        Err(problem) => return channel.fail_if(true, Failure::new(ErrorKind::Io, problem)),
    };
    let Case {
        kind,
        problem,
        tables,
        warnings,
        ..
    } = case;
    let load = start.elapsed().as_secs_f64();
    let sense = problem.sense;
    let interrupt = Interrupt::catch().ok().flatten();
    let mut show = Show::new(
        &OutputChoices {
            first: channel.first,
            quiet: args.quiet,
            verbose: args.verbose,
            spoken_for: args.spoken_for,
            only_simulates: args.simulate_only,
            // StochOptFormat has no units.
            unit: if kind == "hydrothermal" { "$" } else { "" },
        },
        interrupt,
        &settings,
        problem.is_risk_neutral(),
    )
    .traced(trace);
    show.header(&args.path, &problem, comm.name(), comm.size());
    show.warnings(&warnings);
    let start_from = Start {
        about: About::new(
            &*tables,
            &args.path.display().to_string(),
            kind,
            comm.name(),
        ),
        policy: policy.as_ref().map(PolicyRead::given),
    };
    let perform = if args.simulate_only {
        simulate
    } else {
        run_from
    };
    match perform(comm, problem, &settings, &start_from, &mut show) {
        Ok(results) => {
            show.summary(sense, &results, args);
            let code = if results.interrupted {
                exit::STOPPED
            } else {
                exit::DONE
            };
            let total = start.elapsed().as_secs_f64();
            let line = report::results(sense, &results, load, total);
            let code = channel.succeed(&line, code);
            if results.interrupted && !args.spoken_for && comm.size() == 1 {
                advise(args);
            }
            code
        }
        Err(error) => {
            show.clear();
            // The rank that failed knows most; rank 0 speaks for the job in any case.
            let all_know = matches!(
                error,
                SddpError::Communication(_)
                    | SddpError::Disagreement { .. }
                    | SddpError::Divergence { .. }
            );
            channel.fail_if(channel.first || !all_know, Failure::of_run(&error))
        }
    }
}

/// The trace of this rank, if one is asked for; that of a job of one process has no rank in its name.
fn trace_file(args: &Args, comm: &CommBackend) -> Result<Option<TraceFile>, String> {
    let Some(path) = &args.trace else {
        return Ok(None);
    };
    let alone = comm.size() == 1 && !args.spoken_for;
    let made = if alone {
        TraceFile::create(path, 0)
    } else {
        TraceFile::create(&trace::part_of(path, comm.rank()), comm.rank())
    };
    made.map(Some).inspect_err(|problem| {
        // The others would wait for this one.
        comm.abort(ErrorKind::Io, problem);
    })
}

/// The settings of the command line, else of the case, else the defaults.
fn chosen(
    args: &Args,
    case: Overrides,
    risk_neutral: bool,
    ranks: usize,
) -> Result<Settings, Failure> {
    let iterations = args.iterations.map(NonZeroUsize::get);
    let settings = Settings::default().with(case).with(Overrides {
        seed: args.seed,
        simulate_seed: args.seed.map(|_| None),
        passes: args.forward_passes,
        selection: args.cut_selection,
        stopping: Stopping::asked(iterations, args.stop.clone(), args.stop_when_all),
        threads: Some(threads_of(args, ranks)),
        simulate: args.simulate,
        path_stages: args.path_stages,
        simulate_stages: args.simulate_stages.map(Some),
        sampling: None,
        solver: Some(args.solver),
        basis_memory: Some(args.basis_memory << 20),
        upper_bound: args.upper_bound.map(NonZeroUsize::get),
        upper_bound_states: args.upper_bound_states,
        checkpoints: args.checkpoint,
        resume: Some(args.resume),
        output: Some(args.output.clone()),
        csv: Some(args.csv),
    });
    settings
        .check(risk_neutral)
        .map_err(|error| Failure::of_run(&error))?;
    if args.simulate_only && settings.simulate == 0 {
        let problem = "--simulate-only: there is nothing to simulate; add --simulate N";
        return Err(Failure::new(ErrorKind::Usage, problem));
    }
    Ok(settings)
}

fn seed(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| format!("a whole number from 0 to {} is expected", u64::MAX))
}

fn positive(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse();
    number.map_err(|_| "a positive whole number is expected".to_owned())
}

/// Mebibytes that can be counted in bytes.
fn mebibytes(text: &str) -> Result<u64, String> {
    let most = 1 << 24;
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("a whole number of MiB from 0 to {most} is expected"))
}

/// A positive number that is not out of all proportion.
fn at_most(most: usize, text: &str) -> Result<NonZeroUsize, String> {
    let number = positive(text).ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("a whole number from 1 to {most} is expected"))
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    at_most(MAX_THREADS, text)
}

fn passes(text: &str) -> Result<NonZeroUsize, String> {
    at_most(MAX_PASSES, text)
}

fn upper_bound_states(text: &str) -> Result<NonZeroUsize, String> {
    at_most(MAX_UPPER_BOUND_STATES, text)
}

fn path_stages(text: &str) -> Result<NonZeroUsize, String> {
    at_most(MAX_PATH_STAGES, text)
}

fn paths(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_PATHS);
    number.ok_or_else(|| format!("a whole number from 0 to {MAX_PATHS} is expected"))
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a finite number is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_failure_of_a_rank() {
        assert_eq!(unwound(false, false, || 3), 3);
        let panics = || panic!("{} cuts", 7);
        assert_eq!(unwound(false, false, panics), exit::RANKS);
    }
}
