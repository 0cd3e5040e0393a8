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

/// The words after the subcommand of this command line, without some options that have a value.
pub(crate) fn own_arguments(without: &[&str]) -> Vec<OsString> {
    let mut words = std::env::args_os().skip(2);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            break;
        }
        // No value of another option begins like one of these: it would be taken for the option.
        let text = word.to_string_lossy();
        let rest = without.iter().find_map(|name| {
            let rest = text.strip_prefix(name)?;
            (rest.is_empty() || !name.starts_with("--") || rest.starts_with('=')).then_some(rest)
        });
        match rest {
            Some("") => drop(words.next()),
            Some(_) => {}
            None => kept.push(word),
        }
    }
    kept.extend(words);
    kept
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
