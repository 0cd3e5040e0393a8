//! `cobre launch`: starts the ranks of any program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use cobre_files::{FileError, Register};
use cobre_launch::{Bind, Launch, LaunchError, MAX_RANKS, Outcome, Output};

use crate::exit;

/// In front of every line the launcher itself prints.
const NAME: &str = "cobre launch";

/// Starts N ranks of a program on this machine and watches over them.
///
/// Each line a rank writes is shown with its number in front. When a rank fails, the others are
/// ended, and the first line printed says which rank failed and how. The exit code is that of this
/// rank, 128 + the signal that killed it, or 124 after the time limit. No process is left behind.
#[derive(clap::Args)]
#[command(override_usage = "cobre launch -n N [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct Args {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = ranks)]
    ranks: usize,

    /// Backend that connects the ranks [default: the best one for one machine]
    #[arg(long, value_name = "shm|tcp|mpi|local")]
    backend: Option<String>,

    /// Ends the job if it takes longer than this many seconds
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Writes the output of rank R to the file rank-R.log in this directory
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,

    /// Where ranks run: anywhere, or each on one of the processors available
    #[arg(long, value_enum, default_value_t = Where::None)]
    bind: Where,

    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        required = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Where {
    None,
    Core,
}

/// Runs the job and returns the code to exit with.
pub(crate) fn run(args: Args) -> u8 {
    if let Some(directory) = &args.logs
        && let Err(error) = claim_logs(directory, args.ranks)
    {
        return exit::fail(exit::of_file(&error), NAME, &exit::told(&error));
    }
    let (logs, ranks) = (args.logs.clone(), args.ranks);
    let code = finish(launch(args), NAME);
    if let Some(directory) = logs {
        prove_logs(&directory, ranks);
    }
    code
}

/// Notes that the logs in this directory are a launcher's: the next one replaces them, and no other file.
fn claim_logs(directory: &Path, ranks: usize) -> Result<(), FileError> {
    let names: Vec<String> = (0..ranks).map(Output::log_name).collect();
    let names = || names.iter().map(String::as_str);
    let mut register = Register::open(directory)?;
    for name in names() {
        register.check(name)?;
    }
    std::fs::create_dir_all(directory).map_err(|source| FileError::Io {
        action: "create the directory",
        path: directory.to_owned(),
        source,
    })?;
    register.claim_logs(names())
}

/// Notes what the logs hold at the end, so that a file that somebody puts in their place later is known as theirs.
fn prove_logs(directory: &Path, ranks: usize) {
    let names: Vec<String> = (0..ranks).map(Output::log_name).collect();
    let names = names.iter().map(String::as_str);
    // Without it, they stay logs by their names.
    let _ = Register::open(directory).and_then(|mut register| register.prove(names));
}

/// Says how a job ended, in the name of the command that ran it, and returns the code to exit with.
pub(crate) fn finish(job: Result<Outcome, LaunchError>, name: &str) -> u8 {
    match job {
        Ok(outcome) => {
            exit::complain(&outcome.message(name));
            outcome.exit_code()
        }
        Err(error) => exit::fail(exit::of_launch(&error), name, &exit::told(&error)),
    }
}

fn launch(args: Args) -> Result<Outcome, LaunchError> {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    let mut launch = Launch::new(program, args.ranks)
        .args(command)
        .bind(match args.bind {
            Where::None => Bind::None,
            Where::Core => Bind::Core,
        })
        .output(args.logs.map_or(Output::Forward, Output::Logs))
        .pass_stdin()
        .handle_signals();
    if let Some(backend) = args.backend {
        launch = launch.backend(backend);
    }
    if let Some(timeout) = args.timeout {
        launch = launch.timeout(timeout);
    }
    launch.run()
}

/// Reads a number of ranks.
pub(crate) fn ranks(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MAX_RANKS).contains(number));
    number.ok_or_else(|| format!("a number from 1 to {MAX_RANKS} is expected"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text
        .parse()
        .ok()
        .and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    number
        .filter(|timeout| !timeout.is_zero())
        .ok_or_else(|| "a positive number of seconds is expected".to_owned())
}
