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

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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
    let code = match parse(std::env::args_os()) {
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

/// Reads a command line. A number below zero is the value of the option before it, which says what it expects instead.
fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = taking_negative_numbers(Cli::command());
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_option = arg.get_action().takes_values() && !arg.is_positional();
        arg.allow_negative_numbers(is_option)
    });
    command.mut_subcommands(taking_negative_numbers)
}

/// The message on a command line of which the words cannot steer a terminal: it repeats some of them.
fn safe(message: clap::Error) -> clap::Error {
    if !message.use_stderr() {
        return message;
    }
    let words = std::env::args_os().map(|word| terminal::one_line(&word.to_string_lossy()));
    match parse(words.map(OsString::from)) {
        Err(message) if message.use_stderr() => message,
        // Only a word that is no text is right once it is one.
        _ => Cli::command().error(
            ErrorKind::InvalidUtf8,
            "a word of the command line is not UTF-8",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_zero_is_the_value_of_its_option() {
        for (line, said) in [
            ("run case --seed -1", "a whole number from 0"),
            ("run case --iterations -5", "a positive whole number"),
            ("run case --simulate -1", "a whole number from 0"),
            ("launch -n 2 --timeout -1 -- true", "a positive number"),
        ] {
            let words = format!("cobre {line}");
            let found = parse(words.split(' ').map(OsString::from)).err();
            let found = found.map(|error| error.to_string()).unwrap_or_default();
            assert!(found.contains(said), "{line}: {found}");
        }
        let words = "cobre launch -n 2 -- program -1".split(' ');
        assert!(parse(words.map(OsString::from)).is_ok());
        let words = "cobre run case --bound -1e9".split(' ');
        assert!(parse(words.map(OsString::from)).is_ok());
    }

    /// Ranks get the words of their launcher without such options: see `job::own_arguments`.
    #[test]
    fn the_one_option_of_a_letter_with_a_value_is_the_number_of_ranks() {
        let mut open = vec![Cli::command()];
        while let Some(command) = open.pop() {
            for arg in command.get_arguments() {
                let takes_value = arg.get_action().takes_values();
                if let Some(letter) = arg.get_short().filter(|_| takes_value) {
                    assert_eq!(letter, 'n', "{arg:?}");
                }
            }
            open.extend(command.get_subcommands().cloned());
        }
    }
}
