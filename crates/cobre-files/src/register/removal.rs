//! Removal of what a register holds, and of its entries for what is gone.

use std::io;

use super::Register;
use crate::below::EntryKind;
use crate::content::ContentProof;
use crate::error::FileError;
use crate::register_file::{Content, REGISTER, RegisterEntry};

impl Register {
    /// Removes the file of a name if the register holds it and it is a file, with what is left of an unfinished
    /// one. Something else of that name stays. The register forgets it when it is next [written](Self::settle).
    ///
    /// # Errors
    /// When the file is not as Cobre wrote it, and when the system refuses.
    pub fn remove(&mut self, name: &str) -> Result<(), FileError> {
        if !self.holds(name) {
            return Ok(());
        }
        let path = self.directory().join(name);
        let refused = || FileError::io("remove", &path);
        if let Some(directory) = name.strip_suffix('/') {
            if let Some(place) = self.place_if_clear(directory)? {
                place.remove_directory().map_err(refused())?;
            }
        } else if let Some(place) = self.place_if_clear(name)? {
            self.check_content(name)?;
            if place.found().map_err(refused())? == EntryKind::File {
                place.remove().map_err(refused())?;
            }
            if place.found_part().map_err(refused())? == EntryKind::File {
                place.remove_part().map_err(refused())?;
            }
        }
        self.content.entries.remove(name);
        self.unwritten.remove(name);
        Ok(())
    }

    /// Writes the register anew with the names of what is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn settle(&mut self) -> Result<(), FileError> {
        let _turn = self.file.turn();
        let mut found = self.file.read()?;
        // Those that another process has noted meanwhile are kept.
        for (name, entry) in &self.content.entries {
            let known = found.entries.entry(name.clone()).or_default();
            known.open |= entry.open && self.unwritten.contains(name);
            known.log |= entry.log;
        }
        found.made |= self.content.made;
        let mut kept = Content {
            is_there: true,
            made: found.made,
            ..Content::default()
        };
        for (name, entry) in found.entries {
            if let Some(entry) = self.still_there(&name, entry)? {
                kept.entries.insert(name, entry);
            }
        }
        self.file.replace(&kept)?;
        self.content = kept;
        self.unwritten.clear();
        Ok(())
    }

    /// The entry of a name for whose file, unfinished file or directory there is something, with the proof that holds.
    fn still_there(
        &self,
        name: &str,
        mut entry: RegisterEntry,
    ) -> Result<Option<RegisterEntry>, FileError> {
        let path = self.directory().join(name);
        let refused = || FileError::io("look at", &path);
        let directory = name.strip_suffix('/');
        let Some(place) = self.place_if_clear(directory.unwrap_or(name))? else {
            return Ok(None);
        };
        let found = place.found().map_err(refused())?;
        if directory.is_some() {
            return Ok((found == EntryKind::Directory).then_some(entry));
        }
        // A process was killed that wrote it: the next one must know that.
        let is_unfinished = place.found_part().map_err(refused())? == EntryKind::File;
        if found != EntryKind::File {
            return Ok(is_unfinished.then_some(entry));
        }
        let holds = |proof: &ContentProof| proof.holds(&path).unwrap_or(false);
        let proof = entry.proofs.iter().rev().find(|proof| holds(proof));
        let is_own = self.by_name || entry.open || proof.is_some();
        if let Some(proof) = proof.cloned() {
            (entry.proofs, entry.open) = (vec![proof], false);
        }
        Ok((is_own || is_unfinished).then_some(entry))
    }

    /// Removes every file that it holds, one by one; then, if nothing else is in the directory, the register itself,
    /// and the directory if Cobre made it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn dissolve(mut self) -> Result<(), FileError> {
        // Files before the directories that they are in.
        let names: Vec<String> = self.names().rev().map(str::to_owned).collect();
        for name in names {
            self.remove(&name)?;
        }
        let entries = std::fs::read_dir(self.directory());
        let others = entries.into_iter().flatten().flatten();
        if others.filter(|entry| entry.file_name() != REGISTER).count() > 0 {
            return self.settle();
        }
        let path = self.file.path();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", &path)(error));
            }
            _ => {}
        }
        if self.content.made {
            // That something else is in it is fine.
            let _ = std::fs::remove_dir(self.directory());
        }
        Ok(())
    }
}
