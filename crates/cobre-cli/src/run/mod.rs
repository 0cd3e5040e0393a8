//! `cobre run`: trains a policy, alone or as the ranks of a job.

mod report;
mod show;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cobre_case::{Case, CaseSettings, Options, Overrides};
use cobre_comm::{BackendKind, CommBackend, Communicator, cpus, create_communicator};
use cobre_launch::{Bind, FailureCause, Interrupt, Launch, LaunchError, Outcome};
use cobre_sddp::{
    About, Cadence, DEFAULT_BASIS_MEMORY, MAX_PASSES, MAX_PATHS, MAX_THREADS, Policy, Risk,
    Sampling, SddpError, Selection, Settings, Solver, Start, StopRule, read_policy, run_from,
    simulate,
};

use self::report::{Failure, Voice};
use self::show::Show;
use crate::{exit, job, launch};

/// In front of every message.
const NAME: &str = "cobre run";
/// The policy's part of an output directory.
const POLICY: &str = "policy";
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
    #[arg(long, value_name = "K", value_parser = threads_asked)]
    threads: Option<usize>,

    /// Directory for results: policy, convergence, simulation
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Writes every table as CSV as well
    #[arg(long, requires = "output")]
    csv: bool,

    /// Keeps the state of training beside the results: iterations:K, minutes:M or none
    #[arg(long, value_name = "RULE", default_value = "minutes:1", value_parser = cadence)]
    checkpoint: Keep,

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
    iterations: Option<usize>,

    /// Forward passes per iteration [default: as the case says, else 1]
    #[arg(long, value_name = "M", value_parser = passes)]
    forward_passes: Option<usize>,

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
    #[arg(long, value_name = "RULE", value_parser = selection)]
    cut_selection: Option<CutRule>,

    /// Stops also by iterations:N, time:SECONDS, stalling:WINDOW,TOLERANCE or statistical:PATHS
    #[arg(long, value_name = "RULE", value_parser = stop_rule)]
    stop: Vec<StopArgument>,

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
struct Keep(Cadence, String);

#[derive(Debug, Clone)]
struct StopArgument(StopRule, String);

/// Runs and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    if let Some(problem) = wrong_usage(args) {
        let error = Failure::new("usage", problem);
        return error.tell(exit::USAGE, args.json);
    }
    match args.workers {
        Some(ranks)
            if ranks > 1
                || args.retries > 0
                || args.backend.as_deref().is_some_and(|name| name != "local") =>
        {
            start(ranks, args)
        }
        _ => join(args),
    }
}

/// Tells as JSON of a command line that is wrong, if it is one of `cobre run --json`.
pub(crate) fn tell_usage(message: &str) {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = words.first().is_some_and(|word| word == "run");
    if first && words.iter().any(|word| word == "--json") {
        let line = message.lines().next().unwrap_or_default();
        Failure::new("usage", line.trim_start_matches("error: ")).tell_json();
    }
}

/// The error in the options that ask for ranks, if there is one.
fn wrong_usage(args: &Args) -> Option<String> {
    let statistical = |rule: &StopArgument| matches!(rule.0, StopRule::Statistical { .. });
    if args.stop.iter().any(statistical) && args.risk.is_some_and(|risk| !risk.is_expectation()) {
        return Some(
            "--stop statistical compares the bound with a mean, and under --risk it is none on the mean"
                .to_owned(),
        );
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

/// True if two paths lead to the same existing file or directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    file(one).is_some_and(|found| Some(found) == file(other))
}

/// Starts the ranks of a job: this program again, without `-n`.
fn start(ranks: usize, args: &Args) -> u8 {
    // Ranks would all find the same errors.
    if let Err((failure, code)) = read(args) {
        return failure.tell(code, args.json);
    }
    let mut left = args.retries;
    let mut resume = args.resume;
    loop {
        let job = match job_of(ranks, args, resume) {
            Ok(job) => job.run(),
            Err(problem) => return Failure::new("io", problem).tell(exit::IO, args.json),
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
    let threads = threads(args, ranks);
    let words = arguments(args, threads, resume);
    let job = job::again(ranks, args.backend.as_deref(), words)?.grace(GRACE);
    Ok(if threads > 1 {
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
        Err(error) => {
            Failure::new("launch", exit::told(&error)).tell(exit::of_launch(&error), json)
        }
    }
}

/// The arguments of a rank.
fn arguments(args: &Args, threads: usize, resume: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["run".into()];
    let mut option = |name: &str, value: OsString| {
        // Together, so that a value may begin with a dash.
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        words.push(word);
    };
    let given = [
        ("threads", Some(threads.to_string())),
        ("basis-memory", Some(args.basis_memory.to_string())),
        ("seed", args.seed.map(|seed| seed.to_string())),
        (
            "forward-passes",
            args.forward_passes.map(|passes| passes.to_string()),
        ),
        ("simulate", args.simulate.map(|paths| paths.to_string())),
        ("solver", Some(args.solver.name().to_owned())),
        ("checkpoint", Some(args.checkpoint.1.clone())),
        ("risk", args.risk.map(|risk| risk.to_string())),
        (
            "cut-selection",
            args.cut_selection.as_ref().map(|rule| rule.1.clone()),
        ),
        (
            "iterations",
            args.iterations.map(|iterations| iterations.to_string()),
        ),
        ("bound", args.bound.map(|bound| format!("{bound:?}"))),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            option(name, value.into());
        }
    }
    if let Some(output) = &args.output {
        option("output", output.clone().into());
    }
    if let Some(policy) = &args.warm_start {
        option("warm-start", policy.clone().into());
    }
    for rule in &args.stop {
        option("stop", rule.1.clone().into());
    }
    let flags = [
        (args.stop_when_all, "--stop-when-all"),
        (args.csv, "--csv"),
        (args.json, "--json"),
        (args.quiet, "--quiet"),
        (resume, "--resume"),
        (args.simulate_only, "--simulate-only"),
        (true, "--spoken-for"),
    ];
    words.extend(
        flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, flag)| flag.into()),
    );
    // A path may begin with a dash too.
    words.extend(["--".into(), args.path.clone().into()]);
    words
}

fn threads(args: &Args, ranks: usize) -> usize {
    args.threads
        .unwrap_or_else(|| (cpus::usable() / ranks).max(1))
}

/// The case, and the policy to begin with if one is asked for; or why not, with the code to exit with.
fn read(args: &Args) -> Result<(Case, Option<Policy>), (Failure, u8)> {
    let options = Options {
        bound: args.bound,
        risk: args.risk,
    };
    let case = cobre_case::load(&args.path, &options)
        .map_err(|error| (Failure::of_case(&error), exit::of_case(&error)))?;
    let policy = args.warm_start.as_deref();
    let policy = policy.map(|output| read_policy(&output.join(POLICY)));
    let policy = policy
        .transpose()
        .map_err(|error| (Failure::of_run(&error), exit::of_run(&error)))?;
    Ok((case, policy))
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
            // No rank speaks for the others yet.
            let voice = Voice {
                spoken_for: args.spoken_for,
                first: true,
                json: args.json,
            };
            return voice.fail(failure, exit::RANKS);
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
        return voice.fail(Failure::new("usage", problem), exit::USAGE);
    }
    solve(&comm, args, voice)
}

fn solve(comm: &CommBackend, args: &Args, voice: Voice) -> u8 {
    let start = Instant::now();
    let (case, policy) = match read(args) {
        Ok(brought) => brought,
        Err((failure, code)) => return voice.fail(failure, code),
    };
    let Case {
        kind,
        problem,
        tables,
        settings,
        warnings,
    } = case;
    let load = start.elapsed().as_secs_f64();
    let settings = chosen(args, settings.as_ref(), comm.size());
    if args.simulate_only && settings.simulate == 0 {
        let problem = "--simulate-only: there is nothing to simulate; add --simulate N";
        return voice.fail(Failure::new("usage", problem), exit::USAGE);
    }
    let sense = problem.sense;
    let interrupt = Interrupt::catch().ok().flatten();
    let mut show = Show::new(
        voice.first,
        args.quiet,
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
            show.summary(sense, &results);
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
            let code = exit::of_run(&error);
            voice.fail_if(voice.first || !all_know, Failure::of_run(&error), code)
        }
    }
}

/// The settings of the command line, else of the case, else the defaults.
fn chosen(args: &Args, case: Option<&CaseSettings>, ranks: usize) -> Settings {
    let overrides = Overrides {
        iterations: args.iterations,
        stop: args.stop.iter().map(|rule| rule.0).collect(),
        stop_when_all: args.stop_when_all,
        forward_passes: args.forward_passes,
        seed: args.seed,
        selection: args.cut_selection.as_ref().map(|rule| rule.0),
        simulate: args.simulate,
    };
    let found = overrides.over(case);
    Settings {
        seed: found.seed,
        passes: found.forward_passes,
        selection: found.selection,
        stopping: found.stopping,
        threads: threads(args, ranks),
        simulate: found.simulate,
        sampling: Sampling::Fresh,
        solver: args.solver,
        basis_memory: args.basis_memory << 20,
        checkpoints: args.checkpoint.0,
        resume: args.resume,
        output: args.output.clone(),
        csv: args.csv,
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a positive whole number is expected".to_owned())
}

/// Mebibytes that can be counted in bytes.
fn mebibytes(text: &str) -> Result<u64, String> {
    let most = 1 << 24;
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("a whole number of MiB from 0 to {most} is expected"))
}

/// A positive number that is not out of all proportion.
fn at_most(most: usize, text: &str) -> Result<usize, String> {
    let number = positive(text).ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("a whole number from 1 to {most} is expected"))
}

fn threads_asked(text: &str) -> Result<usize, String> {
    at_most(MAX_THREADS, text)
}

fn passes(text: &str) -> Result<usize, String> {
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

fn selection(text: &str) -> Result<CutRule, String> {
    text.parse().map(|rule| CutRule(rule, text.to_owned()))
}

fn cadence(text: &str) -> Result<Keep, String> {
    text.parse().map(|cadence| Keep(cadence, text.to_owned()))
}

fn stop_rule(text: &str) -> Result<StopArgument, String> {
    text.parse().map(|rule| StopArgument(rule, text.to_owned()))
}
