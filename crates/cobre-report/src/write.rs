//! Files that are there complete or not at all.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use cobre_results::ResultsError;

/// Puts a file in its place once all of it is written.
pub(crate) fn whole(place: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let beside = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, place));
    written.map_err(|error| {
        // What is half written is of no use; that it may not be there is fine.
        let _ = std::fs::remove_file(&beside);
        ResultsError::io("write", place)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
