//! `cobre schema`: the JSON Schemas of a case's files.

use std::path::{Path, PathBuf};

use crate::exit::{self, say};

/// In front of every message.
const NAME: &str = "cobre schema";

/// Writes a JSON Schema for each JSON file of a case, from the same declarations that read them.
///
/// An editor checks a file that names its schema: "$schema": "schemas/config.schema.json".
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory for the schemas; it is made if need be
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the schemas and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    match write(&args.directory) {
        Ok(count) => {
            say!("{count} schemas in {}", args.directory.display());
            exit::DONE
        }
        Err(problem) => exit::fail(exit::IO, NAME, &problem),
    }
}

/// Writes all schemas into a directory; returns how many there are.
fn write(directory: &Path) -> Result<usize, String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("cannot write {path}: {error}")
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let schemas = cobre_case::schemas();
    for (file, schema) in &schemas {
        let path = directory.join(cobre_case::schema_name(file));
        let written = std::fs::write(&path, format!("{schema:#}\n"));
        // Half a schema is worse than none.
        let written = written.inspect_err(|_| drop(std::fs::remove_file(&path)));
        written.map_err(failed(&path))?;
    }
    Ok(schemas.len())
}
