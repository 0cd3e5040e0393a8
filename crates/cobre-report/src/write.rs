//! Files that are there complete or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use cobre_files::{FileError, Register, WholeFile, replaceable};
use cobre_results::ResultsError;

/// Puts a file in its place once all of it is written. A file that is there is replaced if `is_own` finds in its
/// beginning that Cobre wrote it. Below `results`, the directory of a run, it goes on the register, so that the
/// next run there removes it. A device or a pipe stays what it is and gets the bytes; of a link, what it leads to is
/// replaced.
pub(crate) fn whole(
    results: &Path,
    place: &Path,
    is_own: fn(&[u8]) -> bool,
    bytes: &[u8],
) -> Result<(), ResultsError> {
    if let Ok(found) = place.metadata()
        && !found.is_file()
        && !found.is_dir()
    {
        let opened = File::options().write(true).open(place);
        return opened
            .and_then(|mut file| file.write_all(bytes))
            .map_err(ResultsError::io("write", place));
    }
    let put = || -> Result<(), FileError> {
        let mut file = if let Some((mut register, name)) = registered(results, place, is_own)? {
            register.create(&name)?
        } else {
            let found = place.canonicalize();
            let place = found.as_deref().unwrap_or(place);
            replaceable(place, is_own)?;
            WholeFile::create(place)?
        };
        file.write(bytes)?;
        file.finish()
    };
    put().map_err(told)
}

/// Refuses what [`whole`] refuses. Writes nothing.
pub(crate) fn check(
    results: &Path,
    place: &Path,
    is_own: fn(&[u8]) -> bool,
) -> Result<(), ResultsError> {
    if let Ok(found) = place.metadata()
        && !found.is_file()
        && !found.is_dir()
    {
        return Ok(());
    }
    let look = || match registered(results, place, is_own)? {
        Some((register, name)) => register.check(&name),
        None => replaceable(place, is_own),
    };
    look().map_err(told)
}

/// The register of the results and the name of a place on it, if it is below them and may be replaced.
fn registered(
    results: &Path,
    place: &Path,
    is_own: fn(&[u8]) -> bool,
) -> Result<Option<(Register, String)>, FileError> {
    let Some(name) = name_below(results, place) else {
        return Ok(None);
    };
    let mut register = Register::open(results)?;
    // On the register are the results of the run too, which a report does not replace.
    replaceable(place, is_own)?;
    // Earlier versions noted nothing.
    if place.is_file() {
        register.adopt(name.clone());
    }
    Ok(Some((register, name)))
}

/// Refuses a directory if it, or what is around it, is something else. Makes nothing.
pub(crate) fn check_directory(place: &Path) -> Result<(), ResultsError> {
    let is_there = |path: &&Path| !path.as_os_str().is_empty() && path.symlink_metadata().is_ok();
    match place.ancestors().find(is_there) {
        Some(path) if !path.is_dir() => {
            let other = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            Err(ResultsError::io("make", place)(other))
        }
        _ => Ok(()),
    }
}

/// Makes a directory, and those around it; below `results` they go on the register.
pub(crate) fn directory(results: &Path, place: &Path) -> Result<(), ResultsError> {
    let mut missing = Vec::new();
    let mut around = Some(place);
    while let Some(path) = around.filter(|path| !path.as_os_str().is_empty() && !path.exists()) {
        missing.push(path);
        around = path.parent();
    }
    for path in missing.into_iter().rev() {
        match name_below(results, path) {
            Some(name) => Register::open(results)
                .and_then(|mut register| register.make_directory(&name))
                .map_err(told)?,
            None => std::fs::create_dir(path).map_err(ResultsError::io("make", path))?,
        }
    }
    // That it is there, and is a directory.
    std::fs::create_dir_all(place).map_err(ResultsError::io("make", place))
}

fn told(error: FileError) -> ResultsError {
    match error {
        FileError::Io {
            action,
            path,
            source,
        } => ResultsError::Io {
            action,
            path,
            source,
        },
        foreign => ResultsError::InTheWay(foreign.to_string()),
    }
}

/// The name of a place below the directory of results, if it is below.
fn name_below(results: &Path, place: &Path) -> Option<String> {
    let around = match place.parent()? {
        around if around.as_os_str().is_empty() => Path::new("."),
        around => around,
    };
    let around = around.canonicalize().ok()?;
    let below = around.strip_prefix(results.canonicalize().ok()?).ok()?;
    let name: PathBuf = below.join(place.file_name()?);
    name.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn put(place: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
        let results = tempfile::tempdir().expect("a directory");
        whole(
            results.path(),
            place,
            |found| found.starts_with(b"old"),
            bytes,
        )
    }

    #[test]
    fn what_a_link_leads_to_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, b"old").expect("a file");
        symlink(&file, &link).expect("a link");
        put(&link, b"new").expect("it is written");
        assert!(link.is_symlink(), "the link is gone");
        assert_eq!(std::fs::read(&file).expect("it is there"), b"new");
    }

    #[test]
    fn a_pipe_gets_the_bytes_and_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()), "mkfifo");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).expect("it can be read")
        });
        put(&pipe, b"page").expect("it is written");
        assert_eq!(reader.join().expect("it ends"), b"page");
        let found = pipe.metadata().expect("it is there");
        assert!(found.file_type().is_fifo(), "it is no pipe any more");
    }

    #[test]
    fn a_file_that_cobre_did_not_write_is_not_replaced() {
        let results = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let is_own: fn(&[u8]) -> bool = |found| found.starts_with(b"page");
        for directory in [results.path(), elsewhere.path()] {
            let place = directory.join("report.html");
            std::fs::write(&place, "a thesis").expect("a file");
            let error = whole(results.path(), &place, is_own, b"page").expect_err("not ours");
            assert!(error.to_string().contains("report.html"), "{error}");
            assert_eq!(std::fs::read(&place).expect("it is there"), b"a thesis");
            std::fs::write(&place, "page of an earlier version").expect("a file");
            whole(results.path(), &place, is_own, b"page").expect("ours");
        }
        let register = Register::open(results.path()).expect("it is there");
        assert_eq!(register.names().collect::<Vec<_>>(), ["report.html"]);
        assert!(!Register::open(elsewhere.path()).expect("none").is_there());
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("taken");
        std::fs::create_dir(&place).expect("a directory in the way");
        let error = put(&place, b"text").expect_err("a directory is in the way");
        assert!(error.to_string().contains("taken"), "{error}");
        let left = std::fs::read_dir(directory.path())
            .expect("it is there")
            .count();
        assert_eq!(left, 1);
    }
}
