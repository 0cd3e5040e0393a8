//! Files that are there complete or not at all.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use cobre_results::ResultsError;

/// Puts a file in its place once all of it is written. A device or a pipe stays what it is and gets the bytes; of
/// a link, what it leads to is replaced.
pub(crate) fn whole(place: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let error = || ResultsError::io("write", place);
    if let Ok(found) = place.metadata()
        && !found.is_file()
        && !found.is_dir()
    {
        let opened = File::options().write(true).open(place);
        return opened
            .and_then(|mut file| file.write_all(bytes))
            .map_err(error());
    }
    let found = place.canonicalize();
    let place = found.as_deref().unwrap_or(place);
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let beside = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, place));
    written.map_err(|lost| {
        // What is half written is of no use; that it may not be there is fine.
        let _ = std::fs::remove_file(&beside);
        error()(lost)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn what_a_link_leads_to_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, b"old").expect("a file");
        symlink(&file, &link).expect("a link");
        whole(&link, b"new").expect("it is written");
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
        whole(&pipe, b"page").expect("it is written");
        assert_eq!(reader.join().expect("it ends"), b"page");
        let found = pipe.metadata().expect("it is there");
        assert!(found.file_type().is_fifo(), "it is no pipe any more");
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("taken");
        std::fs::create_dir(&place).expect("a directory in the way");
        let error = whole(&place, b"text").expect_err("a directory is in the way");
        assert!(error.to_string().contains("taken"), "{error}");
        let left = std::fs::read_dir(directory.path())
            .expect("it is there")
            .count();
        assert_eq!(left, 1);
    }
}
