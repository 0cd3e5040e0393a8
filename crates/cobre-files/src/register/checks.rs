//! Checks of a register: the place of a name, and whether Cobre wrote what is there.

use std::io;
use std::path::{Path, PathBuf};

use super::{Register, last};
use crate::below::{Blocked, EntryKind, EntryPlace, find, is_name, part_name};
use crate::error::FileError;
use crate::register_file::{Content, RegisterEntry};

impl Register {
    /// Refuses a name if something else than a file of Cobre's is there, or on the way to it. Writes nothing.
    ///
    /// # Errors
    /// When that is so, or cannot be found out.
    pub fn check(&self, name: &str) -> Result<(), FileError> {
        let Some(place) = self.place(name)? else {
            return Ok(());
        };
        let held = self.holds(name);
        let path = self.directory().join(name);
        let beside = path.with_file_name(part_name(last(name)));
        let refused = FileError::io("look at", &path);
        let (found, part) = place
            .found()
            .and_then(|found| Ok((found, place.found_part()?)))
            .map_err(refused)?;
        match part {
            EntryKind::Nothing => {}
            EntryKind::File if held => {}
            found => return Err(FileError::foreign(beside, found.words())),
        }
        match found {
            EntryKind::Nothing => Ok(()),
            EntryKind::File if held => self.check_content(name),
            found => Err(FileError::foreign(path, found.words())),
        }
    }

    /// Refuses a name that the register holds if a file is there that is not as Cobre wrote it. Writes nothing.
    ///
    /// # Errors
    /// When that is so, or cannot be found out.
    pub fn check_content(&self, name: &str) -> Result<(), FileError> {
        let Some(place) = self.place_if_clear(name)? else {
            return Ok(());
        };
        let path = self.directory().join(name);
        let refused = || FileError::io("look at", &path);
        if place.found().map_err(refused())? != EntryKind::File {
            return Ok(());
        }
        let entry = |content: &Content| content.entries.get(name).cloned();
        let known = entry(&self.content).unwrap_or_default();
        if self.is_own(&known, &path)? {
            return Ok(());
        }
        // It may have been written since.
        let known = entry(&self.file.read()?).unwrap_or_default();
        if self.is_own(&known, &path)? {
            Ok(())
        } else if known.proofs.is_empty() {
            Err(FileError::foreign(path, EntryKind::File.words()))
        } else {
            Err(FileError::Changed { path })
        }
    }

    /// True if a file is what an entry says.
    pub(super) fn is_own(&self, entry: &RegisterEntry, path: &Path) -> Result<bool, FileError> {
        if self.by_name || entry.open {
            return Ok(true);
        }
        for proof in entry.proofs.iter().rev() {
            match proof.holds(path) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                Err(error) => return Err(FileError::io("read", path)(error)),
            }
        }
        Ok(false)
    }

    /// Refuses a name if something else than a directory is there. Writes nothing.
    ///
    /// # Errors
    /// When that is so, or cannot be found out.
    pub fn check_directory(&self, name: &str) -> Result<(), FileError> {
        let path = self.directory().join(name);
        let place = self.place(name)?;
        let found = place.map_or(Ok(EntryKind::Nothing), |place| place.found());
        match found.map_err(FileError::io("look at", &path))? {
            EntryKind::Nothing | EntryKind::Directory => Ok(()),
            found => Err(FileError::foreign(path, found.words())),
        }
    }

    /// The place of a name; none if a directory on the way is not there.
    pub(super) fn place<'n>(&self, name: &'n str) -> Result<Option<EntryPlace<'n>>, FileError> {
        match self.resolve(name)? {
            Ok(place) => Ok(place),
            Err(Blocked { part, found }) => {
                let path = self.directory().join(part);
                Err(FileError::foreign(path, found.words()))
            }
        }
    }

    /// As [`place`](Self::place); none also if something else is on the way.
    pub(super) fn place_if_clear<'n>(
        &self,
        name: &'n str,
    ) -> Result<Option<EntryPlace<'n>>, FileError> {
        Ok(self.resolve(name)?.ok().flatten())
    }

    pub(super) fn resolve<'n>(
        &self,
        name: &'n str,
    ) -> Result<Result<Option<EntryPlace<'n>>, Blocked<'n>>, FileError> {
        let path: PathBuf = self.directory().join(name);
        if !is_name(name) {
            let invalid = io::Error::new(
                io::ErrorKind::InvalidInput,
                "it leads elsewhere, or is too long",
            );
            return Err(FileError::io("use the name", &path)(invalid));
        }
        find(self.directory(), name).map_err(FileError::io("look at", &path))
    }
}
