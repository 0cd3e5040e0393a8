//! The register of a directory: the names of the files that Cobre wrote below it, in `.cobre-files`. A name is on it
//! before its file is there, so that a process that is killed leaves nothing that the next one does not know; and the
//! proof of a file's content is on it before the file is in its place, so that a file that was changed or replaced since
//! is known to be somebody else's.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::below::{Blocked, EntryKind, EntryPlace, find, is_name, part_name};
use crate::content::ContentProof;
use crate::error::FileError;
use crate::register_file::{Content, REGISTER, RegisterEntry, RegisterFile, is_entry, lines};
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
    /// When a file of its name is something else, or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, FileError> {
        let file = RegisterFile::new(directory);
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
    fn is_own(&self, entry: &RegisterEntry, path: &Path) -> Result<bool, FileError> {
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
        match std::fs::create_dir(&path) {
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

    /// The place of a name; none if a directory on the way is not there.
    fn place<'n>(&self, name: &'n str) -> Result<Option<EntryPlace<'n>>, FileError> {
        match self.resolve(name)? {
            Ok(place) => Ok(place),
            Err(Blocked { part, found }) => {
                let path = self.directory().join(part);
                Err(FileError::foreign(path, found.words()))
            }
        }
    }

    /// As [`place`](Self::place); none also if something else is on the way.
    fn place_if_clear<'n>(&self, name: &'n str) -> Result<Option<EntryPlace<'n>>, FileError> {
        Ok(self.resolve(name)?.ok().flatten())
    }

    fn resolve<'n>(
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

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn write(register: &mut Register, name: &str) {
        let mut file = register.create(name).expect("it is claimed");
        file.write(b"ours").expect("it is written");
        file.finish().expect("it is put in place");
    }

    #[test]
    fn names_are_known_to_the_next_process() {
        let root = tempfile::tempdir().expect("a directory");
        let mut register = Register::open(root.path()).expect("none");
        assert!(!register.is_there());
        register.make_directory("a").expect("it is made");
        write(&mut register, "a/one.csv");
        // Claimed, and killed while it was written.
        drop(register.create("two\n.csv").map(std::mem::forget));
        let mut next = Register::open(root.path()).expect("it is read");
        let names: Vec<&str> = next.names().collect();
        assert_eq!(names, ["a/", "a/one.csv", "two\n.csv"]);
        write(&mut next, "two\n.csv");
        next.remove("a/one.csv").expect("it is removed");
        next.remove("a/").expect("it is removed");
        next.settle().expect("it is written");
        assert!(!root.path().join("a").exists());
        let last = Register::open(root.path()).expect("it is read");
        assert_eq!(last.names().collect::<Vec<_>>(), ["two\n.csv"]);
    }

    #[test]
    fn what_is_not_on_it_is_refused_and_stays() {
        let root = tempfile::tempdir().expect("a directory");
        let place = |name: &str| root.path().join(name);
        for name in ["run.json", ".page.part"] {
            std::fs::write(place(name), "precious").expect("a file");
        }
        std::fs::create_dir(place("table")).expect("a directory");
        symlink(root.path(), place("link")).expect("a link");
        std::fs::write(place("file"), "precious").expect("a file");
        let mut register = Register::open(root.path()).expect("none");
        for name in [
            "run.json", "page", "table", "link", "link/x", "file/x", "../x", "/x", "",
        ] {
            register.create(name).expect_err(name);
        }
        assert!(!place(".cobre-files").exists(), "nothing is written");
        for name in ["run.json", ".page.part", "file"] {
            assert_eq!(
                std::fs::read(place(name)).expect("it is there"),
                b"precious"
            );
        }
    }

    #[test]
    fn a_hostile_register_reaches_nothing_outside() {
        let root = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (root.path().join("in"), root.path().join("out"));
        for directory in [&inside, &outside] {
            std::fs::create_dir(directory).expect("a directory");
            std::fs::write(directory.join("mine"), "precious").expect("a file");
        }
        symlink(&outside, inside.join("way")).expect("a link");
        symlink(outside.join("mine"), inside.join("direct")).expect("a link");
        std::fs::create_dir(inside.join("kept")).expect("a directory");
        std::fs::write(inside.join("kept/mine"), "precious").expect("a file");
        let absolute = outside.join("mine").display().to_string();
        let names = [
            "../out/mine",
            "way/mine",
            "direct",
            "kept",
            "kept/",
            ".",
            "..",
            "./mine",
            "kept/../mine",
            "way/",
            ".lock",
            ".cobre-files",
            "",
            &absolute,
        ];
        let mut text = "{\"cobre\":\"files\",\"format\":1,\"made\":true}\n".to_owned();
        for name in names {
            text.extend([json!(name).to_string().as_str(), "\n"]);
        }
        text.push_str("nonsense\n\"cut off");
        std::fs::write(inside.join(".cobre-files"), text).expect("a file");
        std::fs::write(inside.join(".lock"), "").expect("a file");
        let register = Register::open(&inside).expect("it is read");
        register.dissolve().expect("what it may remove is removed");
        for kept in [
            "in/mine",
            "out/mine",
            "in/kept/mine",
            "in/direct",
            "in/way",
            "in/.lock",
        ] {
            assert!(root.path().join(kept).exists(), "{kept} is gone");
        }
    }

    #[test]
    fn a_file_of_its_name_that_is_no_register_is_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let place = root.path().join(REGISTER);
        for text in ["my files", "{\"cobre\":\"files\",\"format\":7}\n", "{}"] {
            std::fs::write(&place, text).expect("a file");
            Register::open(root.path()).expect_err(text);
        }
        std::fs::remove_file(&place).expect("it is removed");
        symlink("elsewhere", &place).expect("a link");
        Register::open(root.path()).expect_err("a link");
    }

    #[test]
    fn a_line_that_was_cut_off_spoils_no_other() {
        let root = tempfile::tempdir().expect("a directory");
        let mut register = Register::open(root.path()).expect("none");
        register.claim(["one"]).expect("it is noted");
        let mut file = File::options()
            .append(true)
            .open(root.path().join(REGISTER))
            .expect("it is there");
        file.write_all(b"\"cut").expect("it is written");
        register.claim(["two"]).expect("it is noted");
        let next = Register::open(root.path()).expect("it is read");
        assert_eq!(next.names().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_file_that_was_changed_or_replaced_is_refused_and_stays() {
        let root = tempfile::tempdir().expect("a directory");
        let place = root.path().join("page");
        let mut register = Register::open(root.path()).expect("none");
        write(&mut register, "page");
        write(&mut register, "page");
        register.claim(["planned"]).expect("nothing is there");
        std::fs::write(root.path().join("planned"), "mine").expect("a file");
        std::fs::write(&place, "mine").expect("of the same length");
        for mut next in [register, Register::open(root.path()).expect("it is read")] {
            let error = next.check("page").expect_err("it was changed");
            assert!(matches!(error, FileError::Changed { .. }), "{error}");
            next.create("page").expect_err("it was changed");
            next.remove("page").expect_err("it was changed");
            next.check("planned").expect_err("it was never written");
        }
        assert_eq!(std::fs::read(&place).expect("it is there"), b"mine");
        let mut next = Register::open(root.path()).expect("it is read");
        next.settle().expect("it is written");
        assert!(!next.holds("page"), "it is nobody's again");
        assert!(!next.holds("planned"));
    }

    #[test]
    fn a_copy_of_a_directory_is_known_too() {
        let root = tempfile::tempdir().expect("a directory");
        let copy = tempfile::tempdir().expect("a directory");
        write(&mut Register::open(root.path()).expect("none"), "page");
        for name in ["page", REGISTER] {
            std::fs::copy(root.path().join(name), copy.path().join(name)).expect("a copy");
        }
        let mut next = Register::open(copy.path()).expect("it is read");
        next.remove("page").expect("it is ours");
        assert!(!copy.path().join("page").exists());
    }

    #[test]
    fn a_process_killed_at_any_moment_blocks_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let place = |name: &str| root.path().join(name);
        let mut register = Register::open(root.path()).expect("none");
        write(&mut register, "page");
        // Killed while it wrote the file: the unfinished one is known after others have written the register.
        std::mem::forget(register.create("page").expect("it is claimed"));
        std::mem::forget(register.create("other").expect("it is claimed"));
        register.settle().expect("it is written");
        let mut next = Register::open(root.path()).expect("it is read");
        write(&mut next, "other");
        // Killed between the proof and the file: the old one is known.
        let mut file = next.create("page").expect("it is claimed");
        file.write(b"newer").expect("it is written");
        let proof = json!({"name": "page", "bytes": 5, "sha256": "?", "changed": 0, "inode": 0});
        next.file.append(&[proof]).expect("it is noted");
        std::mem::forget(file);
        let next = Register::open(root.path()).expect("it is read");
        next.check("page").expect("the old one is ours");
        // Killed while it wrote the first line of the register.
        let text = std::fs::read(place(REGISTER)).expect("it is there");
        for length in 0..text.iter().position(|byte| *byte == b'\n').expect("a line") {
            std::fs::write(place(REGISTER), &text[..length]).expect("a file");
            let mut cut = Register::open(root.path()).expect("it is taken for empty");
            cut.claim(["new"]).expect("it is written anew");
            let next = Register::open(root.path()).expect("it is read");
            assert_eq!(next.names().collect::<Vec<_>>(), ["new"]);
        }
    }

    #[test]
    fn names_that_no_file_can_have_are_not_on_it() {
        let root = tempfile::tempdir().expect("a directory");
        let text = format!(
            "{{\"cobre\":\"files\",\"format\":2}}\n\"{}\"\n\"{}\"\n\"sound\"\n",
            "a".repeat(300),
            "a/".repeat(3000)
        );
        std::fs::write(root.path().join(REGISTER), text).expect("a file");
        let mut register = Register::open(root.path()).expect("it is read");
        assert_eq!(register.names().collect::<Vec<_>>(), ["sound"]);
        register.create(&"a".repeat(251)).expect_err("too long");
        write(&mut register, &"a".repeat(249));
    }

    #[test]
    fn logs_grow_and_are_no_results() {
        let root = tempfile::tempdir().expect("a directory");
        let place = root.path().join("rank-0.log");
        let mut register = Register::open(root.path()).expect("none");
        register.claim_logs(["rank-0.log"]).expect("it is noted");
        std::fs::write(&place, "one").expect("a file");
        let mut run = Register::open(root.path()).expect("it is read");
        assert_eq!(run.names_of_results().count(), 0);
        run.settle().expect("it is written");
        std::fs::write(&place, "one, two").expect("it grows");
        register.prove(["rank-0.log"]).expect("it is complete");
        let next = Register::open(root.path()).expect("it is read");
        next.check("rank-0.log").expect("it is ours");
        std::fs::write(&place, "mine").expect("a file");
        next.check("rank-0.log").expect_err("it was changed");
    }
}
