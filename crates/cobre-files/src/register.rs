//! The register of a directory: the names of the files that Cobre wrote below it, one JSON text per line in
//! `.cobre-files`. A name is on it before its file is there, so that a process that is killed leaves nothing that
//! the next one does not know.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::below::{Blocked, EntryKind, EntryPlace, find, is_name, part_name};
use crate::error::FileError;
use crate::lock::LOCK;
use crate::proof::replaceable;
use crate::whole::WholeFile;

/// The file of the register.
const REGISTER: &str = ".cobre-files";
/// The beginning of its first line; the version of its layout follows.
const HEADER: &str = "{\"cobre\":\"files\",\"format\":";
/// The version of its layout.
const FORMAT: u64 = 1;
/// The longest wait for another process to write the register.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of it that are read.
const LARGEST: u64 = 16 << 20;

/// The files that Cobre wrote below a directory. Names have a slash between their parts; that of a directory which
/// Cobre made ends with one.
#[derive(Debug, Clone)]
pub struct Register {
    directory: PathBuf,
    names: BTreeSet<String>,
    /// Names that are not in the file yet.
    unwritten: BTreeSet<String>,
    is_there: bool,
    made: bool,
    /// Another process keeps the lock of the directory.
    lock_is_taken: Cell<bool>,
}

impl Register {
    /// Reads the register of a directory; an empty one if there is none. Writes nothing.
    ///
    /// # Errors
    /// When a file of its name is something else, or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, FileError> {
        let mut register = Self {
            directory: directory.to_owned(),
            names: BTreeSet::new(),
            unwritten: BTreeSet::new(),
            is_there: false,
            made: false,
            lock_is_taken: Cell::new(false),
        };
        register.read()?;
        Ok(register)
    }

    /// True if the directory has a register, or names were adopted.
    pub fn is_there(&self) -> bool {
        self.is_there || !self.names.is_empty()
    }

    /// True if Cobre wrote, or is about to write, the file of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a name whose file is proved to be Cobre's in another way.
    pub fn adopt(&mut self, name: impl Into<String>) {
        let name = name.into();
        if is_entry(&name) && self.names.insert(name.clone()) {
            self.unwritten.insert(name);
        }
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
        let path = self.directory.join(name);
        let beside = path.with_file_name(part_name(last(name)));
        let refused = FileError::io("look at", &path);
        let (found, part) = place
            .found()
            .and_then(|found| Ok((found, place.found_part()?)))
            .map_err(refused)?;
        for (found, path) in [(found, path), (part, beside)] {
            match found {
                EntryKind::Nothing => {}
                EntryKind::File if held => {}
                found => return Err(FileError::foreign(path, found.words())),
            }
        }
        Ok(())
    }

    /// Refuses a name if something else than a directory is there. Writes nothing.
    ///
    /// # Errors
    /// When that is so, or cannot be found out.
    pub fn check_directory(&self, name: &str) -> Result<(), FileError> {
        let path = self.directory.join(name);
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
            self.adopt(name);
        }
        self.append()
    }

    /// Starts the file of a name, which is [claimed](Self::claim) first.
    ///
    /// # Errors
    /// As for [`claim`](Self::claim), and when the file cannot be made.
    pub fn create(&mut self, name: &str) -> Result<WholeFile, FileError> {
        self.claim([name])?;
        let path = self.directory.join(name);
        if let Some(place) = self.place(name)? {
            // What a process left that was killed.
            place
                .remove_part()
                .map_err(FileError::io("remove", &path))?;
        }
        let beside = path.with_file_name(part_name(last(name)));
        WholeFile::beside(&path, beside)
    }

    /// Makes a directory below this one if it is not there, and notes that.
    ///
    /// # Errors
    /// When something else is there, or the system refuses.
    pub fn make_directory(&mut self, name: &str) -> Result<(), FileError> {
        let path = self.directory.join(name);
        self.check_directory(name)?;
        if path.is_dir() {
            return Ok(());
        }
        self.adopt(format!("{name}/"));
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
        self.made = true;
    }

    /// Removes the file of a name if the register holds it and it is a file, with what is left of an unfinished
    /// one. Something else of that name stays. The register forgets it when it is next [written](Self::settle).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&mut self, name: &str) -> Result<(), FileError> {
        if !self.names.remove(name) {
            return Ok(());
        }
        self.unwritten.remove(name);
        let path = self.directory.join(name);
        let refused = || FileError::io("remove", &path);
        if let Some(directory) = name.strip_suffix('/') {
            return match self.place_if_clear(directory)? {
                Some(place) => place.remove_directory().map_err(refused()),
                None => Ok(()),
            };
        }
        let Some(place) = self.place_if_clear(name)? else {
            return Ok(());
        };
        if place.found().map_err(refused())? == EntryKind::File {
            place.remove().map_err(refused())?;
        }
        if place.found_part().map_err(refused())? == EntryKind::File {
            place.remove_part().map_err(refused())?;
        }
        Ok(())
    }

    /// Writes the register anew with the names of what is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn settle(&mut self) -> Result<(), FileError> {
        let _turn = self.turn();
        let known = self.names.clone();
        self.read()?;
        // Those that another process has noted meanwhile are kept.
        let mut kept = BTreeSet::new();
        for name in self.names.union(&known) {
            let there = match name.strip_suffix('/') {
                Some(directory) => (directory, EntryKind::Directory),
                None => (name.as_str(), EntryKind::File),
            };
            let place = self.place_if_clear(there.0)?;
            let found = place.map_or(Ok(EntryKind::Nothing), |place| place.found());
            let path = self.directory.join(name);
            if found.map_err(FileError::io("look at", &path))? == there.1 {
                kept.insert(name.clone());
            }
        }
        let mut text = self.header();
        for name in &kept {
            text.push_str(&line(name));
        }
        let path = self.path();
        let beside = path.with_file_name(part_name(REGISTER));
        // What a process left that was killed.
        let own = |bytes: &[u8]| {
            HEADER.as_bytes().starts_with(bytes) || bytes.starts_with(HEADER.as_bytes())
        };
        replaceable(&beside, own)?;
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", &beside)(error));
            }
            _ => {}
        }
        let mut file = WholeFile::beside(&path, beside)?;
        file.write(text.as_bytes())?;
        file.finish()?;
        self.names = kept;
        self.unwritten.clear();
        self.is_there = true;
        Ok(())
    }

    /// Removes every file that it holds, one by one; then, if nothing else is in the directory, the register itself,
    /// and the directory if Cobre made it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn dissolve(mut self) -> Result<(), FileError> {
        // Files before the directories that they are in.
        let names: Vec<String> = self.names.iter().rev().cloned().collect();
        for name in names {
            self.remove(&name)?;
        }
        let entries = std::fs::read_dir(&self.directory);
        let others = entries.into_iter().flatten().flatten();
        if others.filter(|entry| entry.file_name() != REGISTER).count() > 0 {
            return self.settle();
        }
        let path = self.path();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", &path)(error));
            }
            _ => {}
        }
        if self.made {
            // That something else is in it is fine.
            let _ = std::fs::remove_dir(&self.directory);
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.directory.join(REGISTER)
    }

    fn header(&self) -> String {
        let made = if self.made { ",\"made\":true" } else { "" };
        format!("{HEADER}{FORMAT}{made}}}\n")
    }

    /// Reads the file into this.
    fn read(&mut self) -> Result<(), FileError> {
        let path = self.path();
        let opened = File::options()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(());
            }
            Err(_) if path.is_symlink() => return Err(FileError::foreign(path, "is a link")),
            Err(error) => return Err(FileError::io("read", &path)(error)),
        };
        let refused = || FileError::io("read", &path);
        if !file.metadata().map_err(refused())?.is_file() {
            return Err(FileError::foreign(path, "is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST)
            .read_to_end(&mut bytes)
            .map_err(refused())?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let header: Option<Value> = lines
            .next()
            .and_then(|line| serde_json::from_str(line).ok());
        let format = header
            .as_ref()
            .filter(|header| header["cobre"] == "files")
            .and_then(|header| header["format"].as_u64());
        match format {
            Some(FORMAT) => {}
            Some(later) => {
                let what = format!("is a list of files with layout {later}, not {FORMAT}");
                return Err(FileError::foreign(path, what));
            }
            // What a process left that was killed at its first line.
            None if text.is_empty() => {}
            None => return Err(FileError::foreign(path, "is no list of files")),
        }
        self.is_there = true;
        self.made |= header.is_some_and(|header| header["made"] == true);
        let names = lines.filter_map(|line| serde_json::from_str::<String>(line).ok());
        self.names = names.filter(|name| is_entry(name)).collect();
        self.names.extend(self.unwritten.iter().cloned());
        Ok(())
    }

    /// Adds the names that are not in the file yet.
    fn append(&mut self) -> Result<(), FileError> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let _turn = self.turn();
        let path = self.path();
        let refused = || FileError::io("write", &path);
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(refused())?;
        let length = file.metadata().map_err(refused())?.len();
        let mut text = String::new();
        if length == 0 {
            text.push_str(&self.header());
        } else {
            // A line that was cut off must not spoil the next.
            let mut end = [b'\n'];
            file.seek(SeekFrom::End(-1))
                .and_then(|_| file.read_exact(&mut end))
                .map_err(refused())?;
            if end != *b"\n" {
                text.push('\n');
            }
        }
        for name in &self.unwritten {
            text.push_str(&line(name));
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(refused())?;
        self.unwritten.clear();
        self.is_there = true;
        Ok(())
    }

    /// The right to write the register. Where the system has no locks on directories, and where another process holds
    /// the lock for longer than Cobre ever does, lines that are added meanwhile may be lost: their files then stay.
    fn turn(&self) -> Option<File> {
        let directory = File::open(&self.directory).ok()?;
        let start = Instant::now();
        while !self.lock_is_taken.get() {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(directory),
                Err(Errno::WOULDBLOCK) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // Whoever may read a directory can lock it: waiting once is enough.
                Err(_) => self.lock_is_taken.set(true),
            }
        }
        None
    }

    /// The place of a name; none if a directory on the way is not there.
    fn place<'n>(&self, name: &'n str) -> Result<Option<EntryPlace<'n>>, FileError> {
        match self.resolve(name)? {
            Ok(place) => Ok(place),
            Err(Blocked { part, found }) => {
                let path = self.directory.join(part);
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
        let path = self.directory.join(name);
        if !is_name(name) {
            let invalid = io::Error::new(io::ErrorKind::InvalidInput, "it leads elsewhere");
            return Err(FileError::io("use the name", &path)(invalid));
        }
        find(&self.directory, name).map_err(FileError::io("look at", &path))
    }
}

/// True if a text may be on a register.
fn is_entry(name: &str) -> bool {
    is_name(name.strip_suffix('/').unwrap_or(name)) && ![REGISTER, LOCK].contains(&name)
}

fn line(name: &str) -> String {
    format!("{}\n", json!(name))
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            text.push_str(&line(name));
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
}
