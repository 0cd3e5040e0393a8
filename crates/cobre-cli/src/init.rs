//! `cobre init`: a complete case to start from.

use std::fmt::Write;
use std::path::PathBuf;

use cobre_case::template::{BRAZIL_LIKE_HYDROS, TEMPLATES, Template};

use crate::exit::{self, say};

/// In front of every message.
const NAME: &str = "cobre init";

/// Writes a complete case that runs as it is.
///
/// Its JSON files name the schemas beside them, so that an editor checks and explains every key.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Template to start from: one-reservoir, wet-and-dry, cascade, history, four-regions, five-years, large or brazil-like
    #[arg(value_name = "TEMPLATE")]
    template: String,

    /// Directory of the case; it must be new or empty
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Hydro plants of brazil-like, 20 to 160; 60 if left out
    #[arg(long, value_name = "N", value_parser = hydros)]
    hydros: Option<usize>,
}

/// A number of hydro plants.
fn hydros(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| BRAZIL_LIKE_HYDROS.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (BRAZIL_LIKE_HYDROS.start(), BRAZIL_LIKE_HYDROS.end());
        format!("a whole number from {least} to {most} is expected")
    })
}

/// Writes the case and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let Some(template) = Template::find(&args.template) else {
        let mut known = String::new();
        for template in TEMPLATES {
            // Writing to memory does not fail.
            let _ = write!(known, "\n  {:<14} {}", template.name, template.about);
        }
        let problem = format!("there is no template {}; there are{known}", args.template);
        return exit::fail(exit::USAGE, NAME, &problem);
    };
    if args.hydros.is_some() && template.name != "brazil-like" {
        let problem = format!(
            "--hydros is for brazil-like; {} has a size of its own",
            template.name
        );
        return exit::fail(exit::USAGE, NAME, &problem);
    }
    let files = args
        .hydros
        .map_or_else(|| template.files(), Template::brazil_like);
    let directory = args.directory.display();
    match files.write(&args.directory) {
        Ok(()) => {
            say!("{directory}: {}", template.about);
            say!("next: cobre validate {directory}; cobre run {directory}");
            exit::DONE
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            exit::fail(exit::INVALID_INPUT, NAME, &format!("{directory}: {error}"))
        }
        Err(error) => exit::fail(
            exit::IO,
            NAME,
            &format!("cannot write {directory}: {error}"),
        ),
    }
}
