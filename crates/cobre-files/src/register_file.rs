//! The file of a register: one JSON value per line, added to as names are claimed and files proved.
//!
//! A text claims a name. An object adds to that: `open` lets it hold whatever it holds, as of logs that grow, `log` says
//! that it is one, and the keys of a [`ContentProof`] say what was written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::below::{is_name, part_name};
use crate::content::ContentProof;
use crate::directory::sync_around;
use crate::error::FileError;
use crate::lock::LOCK;
use crate::proof::replaceable;
use crate::whole::WholeFile;

/// The name of the file.
pub(crate) const REGISTER: &str = ".cobre-files";
/// The beginning of its first line; the version of its layout follows.
const HEADER: &str = "{\"cobre\":\"files\",\"format\":";
/// The version of its layout. The first had names alone.
const FORMAT: u64 = 2;
/// The longest wait for another process to write the register.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of it that are read.
const LARGEST: u64 = 16 << 20;

/// The data on a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct RegisterEntry {
    /// What the file may hold: a file that is being replaced has two.
    pub(crate) proofs: Vec<ContentProof>,
    /// Whatever it holds is Cobre's.
    pub(crate) open: bool,
    /// It is a log of a launcher.
    pub(crate) log: bool,
}

/// The content of a register.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) entries: BTreeMap<String, RegisterEntry>,
    pub(crate) made: bool,
    pub(crate) is_there: bool,
}

/// The file of a register.
#[derive(Debug, Clone)]
pub(crate) struct RegisterFile {
    directory: PathBuf,
    /// Another process keeps the lock of the directory.
    lock_is_taken: Arc<AtomicBool>,
}

impl RegisterFile {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            lock_is_taken: Arc::default(),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(REGISTER)
    }

    /// The place of an unfinished one.
    fn part(&self) -> PathBuf {
        self.directory.join(part_name(REGISTER))
    }

    /// Refuses something else than a register in the place of an unfinished one.
    pub(crate) fn check_part(&self) -> Result<(), FileError> {
        let own = |bytes: &[u8]| {
            HEADER.as_bytes().starts_with(bytes) || bytes.starts_with(HEADER.as_bytes())
        };
        let beside = self.part();
        if beside.is_symlink() {
            return Err(FileError::foreign(beside, "is a link"));
        }
        replaceable(&beside, own)
    }

    /// Reads it; nothing is in one that is not there, or that a killed process has cut off at its first line.
    pub(crate) fn read(&self) -> Result<Content, FileError> {
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
                return Ok(Content::default());
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
        parse(&bytes).map_err(|what| FileError::foreign(path, what))
    }

    /// Adds lines.
    pub(crate) fn append(&self, lines: &[Value]) -> Result<(), FileError> {
        self.append_to(false, lines)
    }

    /// Adds lines; a new file says whether Cobre `made` the directory.
    pub(crate) fn append_to(&self, made: bool, lines: &[Value]) -> Result<(), FileError> {
        let _turn = self.turn();
        let path = self.path();
        let refused = || FileError::io("write", &path);
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path)
            .map_err(refused())?;
        let mut head = Vec::new();
        (&file)
            .take(HEADER.len() as u64 + 64)
            .read_to_end(&mut head)
            .map_err(refused())?;
        let mut text = String::new();
        let is_new = is_cut_off(&head);
        if is_new {
            file.set_len(0).map_err(refused())?;
            text.push_str(&header(made));
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
        for line in lines {
            text.extend([line.to_string().as_str(), "\n"]);
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(refused())?;
        // Files that are written next must not outlive a loss of power without what shows that they are Cobre's.
        if is_new {
            sync_around(&path).map_err(refused())?;
        }
        Ok(())
    }

    /// Replaces it. The caller has the [turn](Self::turn).
    pub(crate) fn replace(&self, content: &Content) -> Result<(), FileError> {
        let mut text = header(content.made);
        for (name, entry) in &content.entries {
            for line in lines(name, entry) {
                text.extend([line.to_string().as_str(), "\n"]);
            }
        }
        let path = self.path();
        let beside = self.part();
        self.check_part()?;
        // What a process left that was killed.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", &beside)(error));
            }
            _ => {}
        }
        let mut file = WholeFile::beside(&path, beside)?;
        file.write(text.as_bytes())?;
        file.finish()
    }

    /// The right to write the register. Where the system has no locks on directories, and where another process holds
    /// the lock for longer than Cobre ever does, lines that are added meanwhile may be lost: their files then stay.
    pub(crate) fn turn(&self) -> Option<File> {
        let directory = File::open(&self.directory).ok()?;
        let start = Instant::now();
        while !self.lock_is_taken.load(Ordering::Relaxed) {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(directory),
                Err(Errno::WOULDBLOCK) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // Whoever may read a directory can lock it: waiting once is enough.
                Err(_) => self.lock_is_taken.store(true, Ordering::Relaxed),
            }
        }
        None
    }
}

/// True if a text may be on a register.
pub(crate) fn is_entry(name: &str) -> bool {
    is_name(name.strip_suffix('/').unwrap_or(name)) && ![REGISTER, LOCK].contains(&name)
}

/// The lines of a name.
pub(crate) fn lines(name: &str, entry: &RegisterEntry) -> Vec<Value> {
    let mut lines = Vec::new();
    if entry.open || entry.log {
        lines.push(json!({"name": name, "open": entry.open, "log": entry.log}));
    } else if entry.proofs.is_empty() {
        lines.push(json!(name));
    }
    lines.extend(entry.proofs.iter().map(|proof| proof.json(name)));
    lines
}

fn header(made: bool) -> String {
    let made = if made { ",\"made\":true" } else { "" };
    format!("{HEADER}{FORMAT}{made}}}\n")
}

/// True if this is all of a header that was being written, or nothing.
fn is_cut_off(bytes: &[u8]) -> bool {
    [false, true].iter().any(|made| {
        let whole = header(*made);
        // But for the line break it is whole.
        let last = whole.len() - 1;
        bytes.len() < last && whole.as_bytes().starts_with(bytes)
    })
}

fn parse(bytes: &[u8]) -> Result<Content, String> {
    if is_cut_off(bytes) {
        return Ok(Content {
            is_there: true,
            ..Content::default()
        });
    }
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let header: Option<Value> = lines
        .next()
        .and_then(|line| serde_json::from_str(line).ok());
    let format = header
        .as_ref()
        .filter(|header| header["cobre"] == "files")
        .and_then(|header| header["format"].as_u64());
    let format = match format {
        Some(format @ 1..=FORMAT) => format,
        Some(later) => {
            return Err(format!(
                "is a list of files with layout {later}, not {FORMAT}"
            ));
        }
        None => return Err("is no list of files".to_owned()),
    };
    let mut content = Content {
        made: header.is_some_and(|header| header["made"] == true),
        is_there: true,
        ..Content::default()
    };
    for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(name) = line.as_str().or_else(|| line["name"].as_str()) else {
            continue;
        };
        if !is_entry(name) {
            continue;
        }
        let entry = content.entries.entry(name.to_owned()).or_default();
        // The first layout had nothing but names.
        entry.open |= format == 1 || line["open"] == true;
        entry.log |= line["log"] == true;
        entry.proofs.extend(ContentProof::from_json(&line));
    }
    Ok(content)
}
