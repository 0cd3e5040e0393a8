//! The register of a directory: the names of the files that Cobre wrote below it, in `.cobre-files`. A name is on it
//! before its file is there, so that a process that is killed leaves nothing that the next one does not know; and the
//! proof of a file's content is on it before the file is in its place, so that a file that was changed or replaced since
//! is known to be somebody else's.

mod checks;
mod removal;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rustix::fs::{Access, access};

use crate::below::part_name;
use crate::content::ContentProof;
use crate::directory::make_directory;
use crate::error::FileError;
use crate::register_file::{Content, RegisterEntry, RegisterFile, is_entry, lines};
use crate::whole::WholeFile;

/// The files that Cobre wrote below a directory. Names have a slash between their parts; that of a directory which
/// Cobre made ends with one.
#[derive(Debug, Clone)]
pub struct Register {
    file: RegisterFile,
    content: Content,
    /// Names that are not in the file yet.
    unwritten: BTreeSet<String>,
    /// Names prove files, whatever they hold.
    by_name: bool,
}

impl Register {
    /// Reads the register of a directory; an empty one if there is none. Writes nothing.
    ///
    /// # Errors
    /// When a file of its name, or of its unfinished one, is something else, or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, FileError> {
        let file = RegisterFile::new(directory);
        file.check_part()?;
        Ok(Self {
            content: file.read()?,
            file,
            unwritten: BTreeSet::new(),
            by_name: false,
        })
    }

    /// As [`open`](Self::open), for files that prove themselves: a name on it is enough for them to be replaced or
    /// removed, even if they are damaged.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_by_name(directory: &Path) -> Result<Self, FileError> {
        let mut register = Self::open(directory)?;
        register.by_name = true;
        Ok(register)
    }

    /// True if the directory has a register, or names were adopted.
    pub fn is_there(&self) -> bool {
        self.content.is_there || !self.content.entries.is_empty()
    }

    /// True if Cobre wrote, or is about to write, the file of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.content.entries.contains_key(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.content.entries.keys().map(String::as_str)
    }

    /// The names but for logs of a launcher, in order.
    pub fn names_of_results(&self) -> impl DoubleEndedIterator<Item = &str> {
        let entries = self.content.entries.iter();
        let results = entries.filter(|(_, entry)| !entry.log);
        results.map(|(name, _)| name.as_str())
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.file.directory()
    }

    /// Adds a name whose file is proved to be Cobre's in another way.
    pub fn adopt(&mut self, name: impl Into<String>) {
        let name = name.into();
        if let Some(entry) = self.enter(&name) {
            entry.open = true;
        }
        self.unwritten.insert(name);
    }

    /// The entry of a name, which is made if it is not there; none if it may not be on a register.
    fn enter(&mut self, name: &str) -> Option<&mut RegisterEntry> {
        if !is_entry(name) {
            return None;
        }
        if !self.holds(name) {
            self.unwritten.insert(name.to_owned());
        }
        Some(self.content.entries.entry(name.to_owned()).or_default())
    }

    /// Notes names whose files are to be written; all are [checked](Self::check) before the first is noted.
    ///
    /// # Errors
    /// As for [`check`](Self::check), and when the register cannot be written.
    pub fn claim<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str> + Clone,
    ) -> Result<(), FileError> {
        for name in names.clone() {
            self.check(name)?;
        }
        for name in names {
            self.enter(name);
        }
        self.append()
    }

    /// As [`claim`](Self::claim), for logs: they grow, and runs do not remove them. [`prove`](Self::prove) ends that.
    ///
    /// # Errors
    /// As for [`claim`](Self::claim).
    pub fn claim_logs<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str> + Clone,
    ) -> Result<(), FileError> {
        for name in names.clone() {
            self.check(name)?;
        }
        for name in names {
            self.unwritten
                .extend(is_entry(name).then(|| name.to_owned()));
            if let Some(entry) = self.enter(name) {
                (entry.open, entry.log) = (true, true);
            }
        }
        self.append()
    }

    /// Notes what files hold that have grown: from now on they are known by that.
    ///
    /// # Errors
    /// When the register cannot be written.
    pub fn prove<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<(), FileError> {
        let mut proofs = Vec::new();
        for name in names {
            // One that is gone needs no proof.
            if let Ok(proof) = ContentProof::of(&self.directory().join(name)) {
                proofs.push(proof.json(name));
            }
        }
        self.file.append(&proofs)?;
        self.settle()
    }

    /// Starts the file of a name, which is [claimed](Self::claim) first.
    ///
    /// # Errors
    /// As for [`claim`](Self::claim), and when the file cannot be made.
    pub fn create(&mut self, name: &str) -> Result<WholeFile, FileError> {
        self.claim([name])?;
        let path = self.directory().join(name);
        if let Some(place) = self.place(name)? {
            // What a process left that was killed.
            place
                .remove_part()
                .map_err(FileError::io("remove", &path))?;
        }
        let beside = path.with_file_name(part_name(last(name)));
        let file = WholeFile::beside(&path, beside)?;
        Ok(if self.by_name {
            file
        } else {
            file.proved_in(self.file.clone(), name)
        })
    }

    /// Makes a directory below this one if it is not there, and notes that.
    ///
    /// # Errors
    /// When something else is there, or the system refuses.
    pub fn make_directory(&mut self, name: &str) -> Result<(), FileError> {
        let path = self.directory().join(name);
        self.check_directory(name)?;
        if path.is_dir() {
            // Before anything in it, or beside it, is removed.
            let refused = FileError::io("write to the directory", &path);
            return access(&path, Access::WRITE_OK | Access::EXEC_OK).map_err(refused);
        }
        self.enter(&format!("{name}/"));
        self.append()?;
        match make_directory(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FileError::io("create the directory", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Notes that Cobre made the directory itself; [`dissolve`](Self::dissolve) then removes it.
    pub fn note_made(&mut self) {
        self.content.made = true;
    }

    /// Adds the names that are not in the file yet.
    fn append(&mut self) -> Result<(), FileError> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let names = self.unwritten.iter();
        let entries = names.filter_map(|name| Some((name, self.content.entries.get(name)?)));
        let lines: Vec<_> = entries
            .flat_map(|(name, entry)| lines(name, entry))
            .collect();
        self.file.append_to(self.content.made, &lines)?;
        self.unwritten.clear();
        self.content.is_there = true;
        Ok(())
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests;
