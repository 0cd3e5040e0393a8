//! The `cobre` command.

mod bench;
mod compare;
mod dispositions;
mod doctor;
mod exit;
mod fit;
mod init;
mod job;
mod launch;
mod report;
mod run;
mod schema;
mod summary;
mod terminal_table;
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
    Schema(schema::Args),
    Report(report::Args),
    Summary(summary::Args),
    Compare(compare::Args),
    Launch(launch::Args),
    Bench(bench::Args),
    /// Tells what this machine and this build can do, and what will get in the way
    Doctor,
}

fn main() -> ExitCode {
    cobre_launch::ignore_file_size_signal();
    let code = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::Run(args) => run::run(&args),
            Command::Validate(args) => validate::run(&args),
            Command::Fit(args) => fit::run(&args),
            Command::Init(args) => init::run(&args),
            Command::Schema(args) => schema::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Summary(args) => summary::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Launch(args) => launch::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Doctor => doctor::run(),
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
