//! Files that are there complete or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::SddpError;

/// A file written beside its place; [`finish`](Self::finish) puts it there. Without that, nothing
/// is left of it.
#[derive(Debug)]
pub(crate) struct Aside {
    file: Option<BufWriter<File>>,
    beside: PathBuf,
    place: PathBuf,
    in_place: bool,
}

impl Aside {
    /// Starts a file that will be at `place`.
    pub(crate) fn create(place: &Path) -> Result<Self, SddpError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let beside = place.with_file_name(format!(".{name}.part"));
        let file = File::create(&beside).map_err(SddpError::io("write", &beside))?;
        Ok(Self {
            file: Some(BufWriter::new(file)),
            beside,
            place: place.to_owned(),
            in_place: false,
        })
    }

    /// The final path.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// A second handle on the file, for a writer that wants to own one.
    pub(crate) fn handle(&self) -> Result<File, SddpError> {
        let error = || std::io::Error::other("the file is closed");
        let file = self
            .file
            .as_ref()
            .ok_or_else(error)
            .and_then(|file| file.get_ref().try_clone());
        file.map_err(SddpError::io("write", &self.beside))
    }

    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), SddpError> {
        let file = self.file.as_mut();
        let written = file.map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(SddpError::io("write", &self.place))
    }

    /// Puts the complete file in its place.
    pub(crate) fn finish(mut self) -> Result<(), SddpError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let error = || SddpError::io("write", &self.place);
        let file = file
            .into_inner()
            .map_err(|lost| error()(lost.into_error()))?;
        file.sync_all().map_err(error())?;
        std::fs::rename(&self.beside, &self.place).map_err(error())?;
        self.in_place = true;
        let directory = self.place.parent().map(File::open);
        directory
            .map_or(Ok(()), |opened| opened.and_then(|opened| opened.sync_all()))
            .map_err(error())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.in_place {
            // What is half written is of no use to anybody; that it may be gone already is fine.
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.json");
        let mut file = Aside::create(&place).expect("it opens");
        file.write(b"half").expect("it is written");
        drop(file);
        assert_eq!(
            std::fs::read_dir(directory.path())
                .expect("it is there")
                .count(),
            0
        );
    }

    #[test]
    fn a_finished_file_replaces_the_old_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.json");
        for text in ["old", "new"] {
            let mut file = Aside::create(&place).expect("it opens");
            file.write(text.as_bytes()).expect("it is written");
            file.finish().expect("it is put in place");
        }
        assert_eq!(std::fs::read_to_string(&place).expect("it is there"), "new");
    }

    #[test]
    fn the_error_names_the_file() {
        let error = Aside::create(Path::new("/nowhere/at/all")).expect_err("no such directory");
        assert!(error.to_string().contains("/nowhere/at"), "{error}");
    }
}
