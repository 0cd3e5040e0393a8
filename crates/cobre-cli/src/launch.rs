//! `cobre launch`: starts the ranks of any program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cobre_files::{FileError, Register};
use cobre_launch::{Bind, Hosts, Launch, LaunchError, MAX_RANKS, Outcome, Output};

use crate::hosts::HostArgs;
use crate::{exit, placement};

/// In front of every line the launcher itself prints.
const NAME: &str = "cobre launch";

/// Starts N ranks of a program on this machine, or on several hosts, and watches over them.
///
/// Each line a rank writes is shown with its number in front. When a rank fails, the others are
/// ended, and the first line printed says which rank failed and how. The exit code is that of this
/// rank, 128 + the signal that killed it, or 124 after the time limit. No process is left behind.
#[derive(clap::Args)]
#[command(
    override_usage = "cobre launch -n N [OPTIONS] -- PROGRAM [ARGS]...\n       cobre launch --hosts a:8,b:8 [OPTIONS] -- PROGRAM [ARGS]..."
)]
pub(crate) struct Args {
    /// Number of ranks [default with hosts: as many as they take]
    #[arg(
        short = 'n',
        long = "ranks",
        value_name = "N",
        value_parser = ranks,
        required_unless_present_any = ["hosts", "hostfile"]
    )]
    ranks: Option<usize>,

    #[command(flatten)]
    hosts: HostArgs,

    /// Backend that connects the ranks [default: the best one for one machine; tcp between hosts]
    #[arg(long, value_name = "shm|tcp|mpi|local")]
    backend: Option<String>,

    /// Ends the job if it takes longer than this many seconds
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Writes the output of rank R to the file rank-R.log in this directory
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,

    /// Where ranks run: none (anywhere), core (a processor each), cores:K (K cores each), socket or numa (one each, shared
    /// out among its ranks)
    #[arg(long, value_name = "WHERE", default_value = "none", value_parser = placement::bind)]
    bind: Bind,

    /// Prints the processors of each rank before it starts
    #[arg(long)]
    report_bindings: bool,

    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        required = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

/// Runs the job and returns the code to exit with.
pub(crate) fn run(args: Args) -> u8 {
    let hosts = match args.hosts.hosts(args.ranks) {
        Ok(hosts) => hosts,
        Err(problem) => return exit::fail(exit::USAGE, NAME, &problem),
    };
    if hosts.is_some() && args.report_bindings {
        let problem = "--report-bindings is for the ranks of this machine";
        return exit::fail(exit::USAGE, NAME, problem);
    }
    let slots = hosts.as_ref().map(|hosts| hosts.list.slots());
    let ranks = slots.or(args.ranks).unwrap_or(1);
    if let Some(directory) = &args.logs
        && let Err(error) = claim_logs(directory, ranks)
    {
        return exit::fail(exit::of_file(&error), NAME, &exit::told(&error));
    }
    let logs = args.logs.clone();
    let code = finish(launch(args, ranks, hosts), NAME);
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

fn launch(args: Args, ranks: usize, hosts: Option<Hosts>) -> Result<Outcome, LaunchError> {
    if args.report_bindings {
        placement::report(NAME, args.bind, ranks, args.backend.as_deref())?;
    }
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    let mut launch = Launch::new(program, ranks)
        .args(command)
        .bind(args.bind)
        .output(args.logs.map_or(Output::Forward, Output::Logs))
        .pass_stdin()
        .handle_signals();
    if let Some(backend) = args.backend {
        launch = launch.backend(backend);
    }
    if let Some(timeout) = args.timeout {
        launch = launch.timeout(timeout);
    }
    if let Some(hosts) = hosts {
        launch = launch.hosts(hosts);
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
