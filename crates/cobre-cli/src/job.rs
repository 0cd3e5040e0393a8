//! This program as the ranks of a job: joined, or started by itself.

use std::ffi::OsString;

use cobre_comm::{BackendKind, BackendSelection, Environment, available_backends, cpus};
use cobre_launch::{Bind, Launch, Output};

/// True if the environment makes this process a rank of a job.
pub(crate) fn is_rank() -> bool {
    selected(&Environment::process()).is_some_and(|kind| kind != BackendKind::Local)
}

/// True if this process speaks for its job: it is the first rank, or alone. Known without a communicator.
pub(crate) fn is_first() -> bool {
    let env = Environment::process();
    selected(&env) == Some(BackendKind::Local) || env.job_rank().is_none_or(|rank| rank == 0)
}

/// The backend that the environment selects; `None` if it cannot be.
fn selected(env: &Environment<'_>) -> Option<BackendKind> {
    let kind = BackendKind::from_environment(env).and_then(|kind| BackendSelection::new(kind, env));
    kind.ok().map(|selection| selection.kind)
}

/// The reason why this process cannot start ranks on this backend, if it cannot.
pub(crate) fn refusal(ranks: usize, backend: Option<&str>) -> Option<&'static str> {
    if is_rank() {
        Some("-n inside a job: this process is one of its ranks already")
    } else if backend == Some("local") && ranks > 1 {
        Some("--backend local is one rank; leave out -n, or choose another")
    } else if ranks > 1 && available_backends() == ["local"] {
        Some(
            "this build has the backend local alone, which is one rank; leave out -n, or build \
             cobre with the feature shm, tcp or mpi",
        )
    } else {
        None
    }
}

/// The words after the subcommand of this command line, without some options that have a value. Among them are all options of
/// one letter that have one.
pub(crate) fn own_arguments(without: &[&str]) -> Vec<OsString> {
    words_without(std::env::args_os().skip(2), without)
}

fn words_without(mut words: impl Iterator<Item = OsString>, without: &[&str]) -> Vec<OsString> {
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            break;
        }
        // No value of another option begins like one of these: it would be taken for the option.
        let text = word.to_string_lossy();
        let Some((flags, value)) = without.iter().find_map(|name| option_in(&text, name)) else {
            kept.push(word);
            continue;
        };
        if value.is_empty() {
            drop(words.next());
        }
        if flags.len() > 1 {
            kept.push(flags.into());
        }
    }
    kept.extend(words);
    kept
}

/// The option `name` in a word of the command line: the flags of one letter before it, as in `-vn2`, and its value, which is
/// empty if it is the next word.
fn option_in<'w>(word: &'w str, name: &str) -> Option<(&'w str, &'w str)> {
    if name.starts_with("--") {
        let rest = word.strip_prefix(name)?;
        return (rest.is_empty() || rest.starts_with('=')).then_some(("", rest));
    }
    let (flags, value) = word.split_once(name.strip_prefix('-')?)?;
    let letters = flags.strip_prefix('-')?;
    letters
        .bytes()
        .all(|letter| letter.is_ascii_alphabetic())
        .then_some((flags, value))
}

/// A processor for each rank, if there are enough.
pub(crate) fn own_processor(ranks: usize) -> Bind {
    if ranks <= cpus::usable() {
        Bind::Core
    } else {
        Bind::None
    }
}

/// A job of this program with these arguments. Ranks are bound to cores if there are enough.
pub(crate) fn again(
    ranks: usize,
    backend: Option<&str>,
    arguments: Vec<OsString>,
) -> Result<Launch, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let job = Launch::new(program, ranks)
        .args(arguments)
        .bind(own_processor(ranks))
        .output(Output::Plain)
        .handle_signals();
    Ok(match backend {
        Some(backend) => job.backend(backend),
        None => job,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_launcher_are_not_those_of_ranks() {
        for (line, kept) in [
            ("case -n 2 -v", "case -v"),
            ("-n2 case", "case"),
            ("-n=2 case --seed 3", "case --seed 3"),
            ("-vn2 case", "-v case"),
            ("case -vn 2 --quiet", "case -v --quiet"),
            ("--workers 2 case --bound -1e9", "case --bound -1e9"),
            ("--workers=2 case --not-workers", "case --not-workers"),
            ("case -- -n 2", "case -- -n 2"),
        ] {
            let words = line.split(' ').map(OsString::from);
            let found = words_without(words, &["-n", "--workers"]);
            let found: Vec<&str> = found.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(found.join(" "), kept, "{line}");
        }
    }
}
