//! `cobre export-cuts`: the cuts of a policy for other programs.

use std::path::{Path, PathBuf};

use cobre_comm::ClassifiedError;
use cobre_files::WholeFile;
use cobre_results::layout::POLICY;
use cobre_sddp::{Policy, SddpError, cuts_csv, cuts_sddp_jl, read_policy};

use crate::exit::{self, say};
use crate::terminal_table::plural;

/// In front of every message.
const NAME: &str = "cobre export-cuts";

/// The form of the file.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// A row per cut: node, iteration, pass, intercept, slopes
    Csv,
    /// The JSON that SDDP.jl reads and writes
    SddpJl,
}

/// Writes the cuts of a policy as CSV, or as the JSON of SDDP.jl.
///
/// Either form is in the sense of the problem: a cost to go is at least, a revenue to go at most, intercept + slopes ·
/// state. `cobre run --boundary` takes the JSON, and the output directory itself, as the value after the last stage.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory that `cobre run --output` has written
    #[arg(value_name = "OUTPUT")]
    directory: PathBuf,

    /// File to write; nothing may be there
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Form of the file [default: by its ending, .csv or .json]
    #[arg(long, value_name = "csv|sddp-jl")]
    format: Option<Format>,

    /// Writes the cuts of this node alone
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

/// Exports and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let ending = args.file.extension().and_then(|ending| ending.to_str());
    let format = args.format.or(match ending {
        Some("csv") => Some(Format::Csv),
        Some("json") => Some(Format::SddpJl),
        _ => None,
    });
    let Some(format) = format else {
        let problem = "the name of FILE ends neither in .csv nor in .json: add --format";
        return exit::fail(exit::USAGE, NAME, problem);
    };
    if args.file.symlink_metadata().is_ok() {
        let problem = format!("{}: something is there already", args.file.display());
        return exit::fail(exit::IO, NAME, &problem);
    }
    let policy = match policy(&args.directory) {
        Ok(policy) => policy,
        Err(error) => return exit::fail(exit::of(error.kind()), NAME, &exit::told(&error)),
    };
    let policy = match only(policy, args.node.as_deref()) {
        Ok(policy) => policy,
        Err(problem) => return exit::fail(exit::INVALID_INPUT, NAME, &problem),
    };
    let text = match format {
        Format::Csv => cuts_csv(&policy),
        Format::SddpJl => format!("{:#}\n", cuts_sddp_jl(&policy)),
    };
    let written = WholeFile::create(&args.file).and_then(|mut file| {
        file.write(text.as_bytes())?;
        file.finish()
    });
    if let Err(error) = written {
        return exit::fail(exit::IO, NAME, &exit::told(&error));
    }
    let cuts = policy.cuts.iter().map(Vec::len).sum();
    say!("{}  {}", plural(cuts, "cut"), args.file.display());
    exit::DONE
}

/// The policy in an output directory, or in the directory of a policy itself.
fn policy(directory: &Path) -> Result<Policy, SddpError> {
    let below = directory.join(POLICY);
    read_policy(if below.is_dir() { &below } else { directory })
}

/// The policy with the cuts of one node alone, if that is asked for.
fn only(mut policy: Policy, node: Option<&str>) -> Result<Policy, String> {
    let Some(node) = node else { return Ok(policy) };
    let nodes = &policy.manifest.nodes;
    let place = nodes.iter().position(|name| name == node);
    let place = place.ok_or_else(|| {
        format!(
            "the policy has no node {node}; its nodes are {}",
            cobre_comm::terminal::bounded(&nodes.join(", "))
        )
    })?;
    for (number, cuts) in policy.cuts.iter_mut().enumerate() {
        if number != place {
            cuts.clear();
        }
    }
    Ok(policy)
}
