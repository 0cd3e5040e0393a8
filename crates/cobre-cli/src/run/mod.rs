//! `cobre run`: trains a policy, alone or as the ranks of a job.

mod progress;
mod report;
mod show;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::mem::take;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cobre_case::{Case, Options, output_inside};
use cobre_comm::{BackendKind, CommBackend, Communicator, ErrorKind, cpus, create_communicator};
use cobre_launch::{Bind, FailureCause, Interrupt, Launch, LaunchError, Outcome};
use cobre_results::layout::POLICY;
use cobre_sddp::{
    About, Cadence, DEFAULT_BASIS_MEMORY, MAX_PASSES, MAX_PATHS, MAX_THREADS, Overrides, Policy,
    Risk, SddpError, Selection, Settings, Solver, Start, StopRule, Stopping, read_policy, run_from,
    simulate,
};

use self::report::{Failure, Voice};
use self::show::{OutputChoices, Show};
use crate::{aborts, exit, job, launch};

/// In front of every message.
const NAME: &str = "cobre run";
/// The grace period in which ranks that are asked to end finish an iteration and save.
const GRACE: Duration = Duration::from_secs(60);

/// Trains a policy for a problem under uncertainty, and tells what it is worth.
///
/// PATH is the directory of a hydrothermal case, or a StochOptFormat file (*.sof.json). A case says
/// in its config.json how it wants to be trained and simulated; options given here override that.
/// With -n it starts its own ranks on this machine; started as a rank of a job (cobre launch,
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

    /// Backend that connects the ranks [default: the best one for one machine]
    #[arg(long, value_name = "shm|tcp|mpi|local")]
    backend: Option<String>,

    /// Threads per rank [default: usable processors / ranks]
    #[arg(long, value_name = "K", value_parser = threads)]
    threads: Option<NonZeroUsize>,

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

    /// With -n: how often a job that has lost a rank starts again from its newest checkpoint
    #[arg(long, value_name = "N", default_value_t = 0, requires = "output")]
    retries: usize,

    /// This is a rank that `cobre run -n` has started, which tells how it ended
    #[arg(long, hide = true)]
    spoken_for: bool,

    /// Where the paths of forward passes and of the simulation come from [default: as the case says,
    /// else 0]
    #[arg(long, value_name = "S")]
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

    /// Stops also by iterations:N, time:SECONDS, stalling:WINDOW,TOLERANCE or statistical:PATHS
    #[arg(long, value_name = "RULE")]
    stop: Vec<StopRule>,

    /// Stops when all rules of --stop agree instead of any of them
    #[arg(long, requires = "stop")]
    stop_when_all: bool,

    /// Ends with one line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Prints also the ranges of numbers, and what solvers and ranks were busy with
    #[arg(long, short)]
    verbose: bool,

    /// Prints nothing but errors, and the JSON line if asked for
    #[arg(long)]
    quiet: bool,
}

/// Runs and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    if let Some(problem) = wrong_usage(args) {
        return Failure::new(ErrorKind::Usage, problem).tell(args.json);
    }
    match args.workers {
        Some(ranks)
            if ranks > 1
                || args.retries > 0
                || args.backend.as_deref().is_some_and(|name| name != "local") =>
        {
            start(ranks, args)
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
        let voice = Voice {
            spoken_for,
            first: true,
            json,
        };
        voice.fail(Failure::new(ErrorKind::Rank, message))
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
    if args.retries > 0 && args.workers.is_none() {
        return Some("--retries starts ranks again that -n has started: add -n N".to_owned());
    }
    let backend = args.backend.as_deref();
    let known = ["local", "shm", "tcp", "mpi"];
    if let Some(backend) = backend.filter(|backend| !known.contains(backend)) {
        return Some(format!(
            "--backend {backend}: one of {} is expected",
            known.join(", ")
        ));
    }
    if let Some(ranks) = args.workers {
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

/// Starts the ranks of a job: this program again, without `-n`.
fn start(ranks: usize, args: &Args) -> u8 {
    // Ranks would all find the same errors.
    if let Err(failure) = check(args, ranks) {
        return failure.tell(args.json);
    }
    let mut left = args.retries;
    let mut resume = args.resume;
    loop {
        let job = match job_of(ranks, args, resume) {
            Ok(job) => job.run(),
            Err(problem) => return Failure::new(ErrorKind::Io, problem).tell(args.json),
        };
        let lost = |outcome: &Outcome| {
            exit::of_ranks(outcome) == exit::RANKS
                && matches!(outcome.cause, Some(FailureCause::Rank { .. }))
        };
        if let (true, Ok(outcome)) = (left > 0, &job)
            && lost(outcome)
        {
            left -= 1;
            resume = true;
            report::tell_outcome(outcome, exit::RANKS, false);
            exit::note(
                NAME,
                &format!("starting again from the newest checkpoint; {left} more retries"),
            );
            continue;
        }
        let code = ended(job, args.json);
        if matches!(code, exit::RANKS | exit::STOPPED) {
            advise(args);
        }
        return code;
    }
}

fn job_of(ranks: usize, args: &Args, resume: bool) -> Result<Launch, String> {
    let threads = threads_of(args, ranks);
    let mut words: Vec<OsString> = vec!["run".into(), "--spoken-for".into()];
    if args.threads.is_none() {
        // A rank that is bound to a processor would count that one alone.
        words.push(format!("--threads={threads}").into());
    }
    if resume && !args.resume {
        words.push("--resume".into());
    }
    // The launcher sees to these.
    words.extend(job::own_arguments(&[
        "-n",
        "--workers",
        "--backend",
        "--retries",
    ]));
    let job = job::again(ranks, args.backend.as_deref(), words)?.grace(GRACE);
    let job = if !args.quiet && std::io::stderr().is_terminal() {
        job.progress(progress::of_ranks)
    } else {
        job
    };
    Ok(if threads > NonZeroUsize::MIN {
        job.bind(Bind::None)
    } else {
        job
    })
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

fn threads_of(args: &Args, ranks: usize) -> NonZeroUsize {
    let share = || NonZeroUsize::new(cpus::usable() / ranks).unwrap_or(NonZeroUsize::MIN);
    args.threads.unwrap_or_else(share)
}

/// Finds what every rank would find wrong, without building the problem.
fn check(args: &Args, ranks: usize) -> Result<(), Failure> {
    let case = cobre_case::check(&args.path, &options(args), None);
    let case = case.map_err(|error| Failure::of(&error))?;
    chosen(args, case.settings, case.risk_neutral, ranks)?;
    warm_start(args).map(|_| ())
}

fn options(args: &Args) -> Options {
    Options {
        bound: args.bound,
        risk: args.risk,
    }
}

/// The policy to begin with, if one is asked for.
fn warm_start(args: &Args) -> Result<Option<Policy>, Failure> {
    let policy = args.warm_start.as_deref();
    let policy = policy.map(|output| read_policy(&output.join(POLICY)));
    policy.transpose().map_err(|error| Failure::of_run(&error))
}

/// Runs as a rank of the job this process belongs to, or alone.
fn join(args: &Args) -> u8 {
    if args.json && !job::is_rank() {
        aborts::tell_json();
    }
    let connected = if args.workers == Some(1) {
        create_communicator(BackendKind::Local)
    } else {
        BackendKind::from_env().and_then(create_communicator)
    };
    let comm = match connected {
        Ok(comm) => comm,
        Err(error) => {
            // No rank speaks for the others yet.
            let voice = Voice {
                spoken_for: args.spoken_for,
                first: true,
                json: args.json,
            };
            return voice.fail(Failure::of(&error));
        }
    };
    let voice = Voice {
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
        return voice.fail(Failure::new(ErrorKind::Usage, problem));
    }
    solve(&comm, args, voice)
}

fn solve(comm: &CommBackend, args: &Args, voice: Voice) -> u8 {
    let start = Instant::now();
    let brought = cobre_case::load(&args.path, &options(args)).map_err(|error| Failure::of(&error));
    let brought = brought.and_then(|mut case| {
        let neutral = case.problem.is_risk_neutral();
        let settings = chosen(args, take(&mut case.settings), neutral, comm.size())?;
        Ok((case, settings, warm_start(args)?))
    });
    let (case, settings, policy) = match brought {
        Ok(brought) => brought,
        Err(failure) => return voice.fail(failure),
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
            first: voice.first,
            quiet: args.quiet,
            verbose: args.verbose,
            spoken_for: args.spoken_for,
            // StochOptFormat has no units.
            unit: if kind == "hydrothermal" { "$" } else { "" },
        },
        interrupt,
        &settings,
        problem.is_risk_neutral(),
    );
    show.header(&args.path, &problem, comm.name(), comm.size());
    show.warnings(&warnings);
    let start_from = Start {
        about: About::new(
            &*tables,
            &args.path.display().to_string(),
            kind,
            comm.name(),
        ),
        policy: policy.as_ref(),
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
            let code = voice.succeed(&line, code);
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
            voice.fail_if(voice.first || !all_know, Failure::of_run(&error))
        }
    }
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
        passes: args.forward_passes,
        selection: args.cut_selection,
        stopping: Stopping::asked(iterations, args.stop.clone(), args.stop_when_all),
        threads: Some(threads_of(args, ranks)),
        simulate: args.simulate,
        sampling: None,
        solver: Some(args.solver),
        basis_memory: Some(args.basis_memory << 20),
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
