//! The `cobre` command.

mod aborts;
mod amount;
mod bench;
mod compare;
mod dispositions;
mod doctor;
mod exit;
mod export_cuts;
mod fit;
mod hosts;
mod init;
mod job;
mod launch;
mod manual;
mod migrate;
mod placement;
mod report;
mod run;
mod schema;
mod summary;
mod terminal_table;
mod top;
mod validate;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use cobre_comm::terminal;

/// Trains policies for problems under uncertainty, on one core or many machines
#[derive(Parser)]
#[command(name = "cobre", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Validate(validate::Args),
    Fit(fit::Args),
    Init(init::Args),
    Migrate(migrate::Args),
    Schema(schema::Args),
    Report(report::Args),
    Summary(summary::Args),
    Compare(compare::Args),
    ExportCuts(export_cuts::Args),
    Launch(launch::Args),
    Top(top::Args),
    Bench(bench::Args),
    Completions(manual::CompletionArgs),
    /// The part of a job on several hosts that runs on each: frames on standard input and output
    #[command(hide = true)]
    HostAgent,
    #[command(hide = true)]
    Man(manual::ManArgs),
    Doctor(doctor::Args),
}

fn main() -> ExitCode {
    cobre_launch::ignore_file_size_signal();
    let code = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::Run(args) => run::run(&args),
            Command::Validate(args) => validate::run(&args),
            Command::Fit(args) => fit::run(&args),
            Command::Init(args) => init::run(&args),
            Command::Migrate(args) => migrate::run(&args),
            Command::Schema(args) => schema::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Summary(args) => summary::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::ExportCuts(args) => export_cuts::run(&args),
            Command::Launch(args) => launch::run(args),
            Command::Top(args) => top::run(&args),
            Command::Bench(args) => bench::run(args),
            Command::Completions(args) => manual::complete(Cli::command(), &args),
            Command::HostAgent => cobre_launch::host_agent(),
            Command::Man(args) => manual::man(Cli::command(), &args),
            Command::Doctor(args) => doctor::run(&args),
        },
        Err(message) => {
            let message = safe(message);
            // Without a reader there is nobody to tell.
            let _ = message.print();
            if message.use_stderr() {
                run::tell_usage(&message.to_string());
                exit::USAGE
            } else {
                exit::DONE
            }
        }
    };
    if code == exit::DONE && terminal::output_was_lost() {
        let problem = "standard output did not take all of it";
        return ExitCode::from(exit::fail(exit::IO, "cobre", problem));
    }
    ExitCode::from(code)
}

/// The message on a command line of which the words cannot steer a terminal: it repeats some of them.
fn safe(message: clap::Error) -> clap::Error {
    if !message.use_stderr() {
        return message;
    }
    let words = std::env::args_os().map(|word| terminal::one_line(&word.to_string_lossy()));
    match Cli::try_parse_from(words) {
        Err(message) if message.use_stderr() => message,
        // Only a word that is no text is right once it is one.
        _ => Cli::command().error(
            ErrorKind::InvalidUtf8,
            "a word of the command line is not UTF-8",
        ),
    }
}
