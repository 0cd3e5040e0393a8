//! `cobre schema`: the JSON Schemas of a case's files.

use std::path::{Path, PathBuf};

use cobre_files::{FileError, WholeFile, replaceable};
use serde_json::Value;

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
        Err(error) => exit::fail(exit::of_file(&error), NAME, &exit::told(&error)),
    }
}

/// Writes all schemas into a directory; returns how many there are. Schemas that are there are replaced; where a
/// file is another, none is written.
fn write(directory: &Path) -> Result<usize, FileError> {
    let schemas = cobre_case::schemas();
    let place = |file: &str| directory.join(cobre_case::schema_name(file));
    for (file, _) in &schemas {
        replaceable(&place(file), |found| is_schema(file, found))?;
    }
    std::fs::create_dir_all(directory).map_err(|source| FileError::Io {
        action: "create the directory",
        path: directory.to_owned(),
        source,
    })?;
    for (file, schema) in &schemas {
        let mut whole = WholeFile::create(&place(file))?;
        whole.write(format!("{schema:#}\n").as_bytes())?;
        whole.finish()?;
    }
    Ok(schemas.len())
}

/// True if a text is a schema of this file of a case, of whatever version.
fn is_schema(file: &str, text: &[u8]) -> bool {
    let schema: Value = serde_json::from_slice(text).unwrap_or_default();
    schema["title"] == file && schema["$schema"].is_string()
}
