//! Files that are there complete or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::below::part_name;
use crate::content::ContentProof;
use crate::directory::sync_around;
use crate::error::FileError;
use crate::register_file::RegisterFile;

/// A file written beside its place; [`finish`](Self::finish) puts it there. Without that, nothing
/// is left of it.
#[derive(Debug)]
pub struct WholeFile {
    file: Option<BufWriter<File>>,
    beside: PathBuf,
    place: PathBuf,
    in_place: bool,
    /// The register that gets the proof of its content, and its name there.
    proof: Option<(RegisterFile, String)>,
}

impl WholeFile {
    /// Starts a file that will replace what is at `place`: ask [`replaceable`](crate::replaceable) before.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(place: &Path) -> Result<Self, FileError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name}.{}", std::process::id());
        Self::beside(place, place.with_file_name(part_name(&name)))
    }

    /// Starts a file that is written at `beside`, where nothing may be.
    pub(crate) fn beside(place: &Path, beside: PathBuf) -> Result<Self, FileError> {
        let file = File::create_new(&beside).map_err(FileError::io("write", place))?;
        Ok(Self {
            file: Some(BufWriter::new(file)),
            beside,
            place: place.to_owned(),
            in_place: false,
            proof: None,
        })
    }

    /// Lets the register of a directory have the proof of its content, before it is put in place.
    pub(crate) fn proved_in(mut self, register: RegisterFile, name: &str) -> Self {
        self.proof = Some((register, name.to_owned()));
        self
    }

    /// Where it will be.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A second handle on the file, for a writer that wants to own one.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn handle(&self) -> Result<File, FileError> {
        let closed = || std::io::Error::other("the file is closed");
        let file = self.file.as_ref().ok_or_else(closed);
        let file = file.and_then(|file| file.get_ref().try_clone());
        file.map_err(FileError::io("write", &self.beside))
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// When the system does not take them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let file = self.file.as_mut();
        let written = file.map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(FileError::io("write", &self.place))
    }

    /// Puts the complete file in its place.
    ///
    /// # Errors
    /// When the system refuses; then the place is as it was.
    pub fn finish(mut self) -> Result<(), FileError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let error = || FileError::io("write", &self.place);
        let file = file
            .into_inner()
            .map_err(|lost| error()(lost.into_error()))?;
        file.sync_all().map_err(error())?;
        if let Some((register, name)) = &self.proof {
            let proof = ContentProof::of(&self.beside).map_err(error())?;
            register.append(&[proof.json(name)])?;
        }
        std::fs::rename(&self.beside, &self.place).map_err(error())?;
        self.in_place = true;
        sync_around(&self.place).map_err(error())
    }
}

impl Drop for WholeFile {
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

    fn entries(directory: &Path) -> usize {
        std::fs::read_dir(directory).expect("it is there").count()
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.json");
        let mut file = WholeFile::create(&place).expect("it opens");
        file.write(b"half").expect("it is written");
        drop(file);
        assert_eq!(entries(directory.path()), 0);
    }

    #[test]
    fn a_finished_file_replaces_the_old_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.json");
        for text in ["old", "new"] {
            let mut file = WholeFile::create(&place).expect("it opens");
            file.write(text.as_bytes()).expect("it is written");
            file.finish().expect("it is put in place");
        }
        assert_eq!(std::fs::read_to_string(&place).expect("it is there"), "new");
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("taken");
        std::fs::create_dir(&place).expect("a directory in the way");
        let file = WholeFile::create(&place).expect("it opens");
        let error = file.finish().expect_err("a directory is in the way");
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn the_error_names_the_file() {
        let error = WholeFile::create(Path::new("/nowhere/at/all")).expect_err("no such directory");
        assert!(error.to_string().contains("/nowhere/at"), "{error}");
    }
}
