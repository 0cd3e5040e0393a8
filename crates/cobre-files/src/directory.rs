//! Directories that are still there after a loss of power.
//!
//! A file that is synced is of no use if the name of its directory is not on the disk: the directory around a new one
//! is synced as well.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::error::FileError;

/// Makes a directory, where another is the caller's `AlreadyExists`, and lets the disk have its name.
///
/// # Errors
/// When the system refuses.
pub fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)?;
    sync_around(path)
}

/// Makes a directory and those around it that are missing, and lets the disk have their names.
///
/// # Errors
/// When the system refuses, or something else is there.
pub fn make_directories(path: &Path) -> Result<(), FileError> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .collect();
    let refused = || FileError::io("create the directory", path);
    std::fs::create_dir_all(path).map_err(refused())?;
    missing
        .iter()
        .try_for_each(|made| sync_around(made))
        .map_err(refused())
}

/// Lets the disk have the names in the directory around `path`.
///
/// # Errors
/// When the system refuses. A directory that may be written to and not read cannot be synced; that is no error.
pub(crate) fn sync_around(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
        Some(directory) => directory,
        None => return Ok(()),
    };
    match File::open(directory).and_then(|opened| opened.sync_all()) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_with_those_around_them_and_may_be_there() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("a/b/c");
        for _ in 0..2 {
            make_directories(&path).expect("it is made");
        }
        assert!(path.is_dir());
        let error = make_directory(&path).expect_err("it is there");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_file_in_the_way_is_an_error_with_the_path() {
        let scratch = tempfile::tempdir().expect("a directory");
        let file = scratch.path().join("file");
        std::fs::write(&file, "").expect("it is written");
        let error = make_directories(&file.join("below")).expect_err("a file is in the way");
        assert!(error.to_string().contains("file/below"), "{error}");
    }
}
