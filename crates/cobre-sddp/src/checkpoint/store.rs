//! The files of checkpoints: `checkpoint/NNNNNNNN.state` with the bytes, and then
//! `checkpoint/NNNNNNNN.json`, which says whose they are and how they must hash. The last two are
//! kept.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::identity::Identity;
use crate::error::SddpError;
use crate::fingerprint::Fingerprint;
use crate::output::Aside;

const FORMAT: u32 = 1;
/// Beside the results.
const PLACE: &str = "checkpoint";
/// Checkpoints that are kept.
const KEPT: usize = 2;
/// Notes that the run has written all its results.
const FINISHED: &str = "finished";

/// The checkpoints in a directory.
pub(super) struct Store {
    directory: PathBuf,
    identity: Identity,
    /// What writes the latest one.
    writer: Option<JoinHandle<Result<(), SddpError>>>,
}

impl Store {
    /// The checkpoints of the run whose results are in `output`.
    pub(super) fn open(output: &Path, identity: Identity) -> Self {
        Self {
            directory: output.join(PLACE),
            identity,
            writer: None,
        }
    }

    /// Forgets those of a finished run.
    ///
    /// # Errors
    /// When they are of a run that has not finished, or cannot be removed.
    pub(super) fn start_anew(&self) -> Result<(), SddpError> {
        let numbers = self.numbers();
        if let Some(newest) = numbers.last()
            && !self.directory.join(FINISHED).exists()
        {
            let place = self.directory.display();
            return Err(SddpError::Checkpoint(format!(
                "{place} holds iteration {newest} of a run that has not finished: go on from it with --resume (Python: resume=True), \
                 or remove that directory to begin anew"
            )));
        }
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SddpError::io("remove", &self.directory)(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes the state after an iteration, in a thread of its own.
    ///
    /// # Errors
    /// When the one before could not be written.
    pub(super) fn write(&mut self, iteration: usize, bytes: Vec<u8>) -> Result<(), SddpError> {
        self.settle()?;
        let (directory, belongs_to) = (self.directory.clone(), self.identity.json());
        let write = move || {
            let sha256 = Fingerprint::of_bytes(&bytes).to_string();
            let manifest = json!({
                "format": FORMAT,
                "iteration": iteration,
                "bytes": bytes.len(),
                "sha256": sha256,
                "belongs_to": belongs_to,
            });
            std::fs::create_dir_all(&directory)
                .map_err(SddpError::io("create the directory", &directory))?;
            put(&file(&directory, iteration, "state"), &bytes)?;
            put(
                &file(&directory, iteration, "json"),
                format!("{manifest:#}\n").as_bytes(),
            )?;
            prune(&directory);
            Ok(())
        };
        let builder = std::thread::Builder::new().name("cobre-checkpoint".to_owned());
        let started = builder.spawn(write);
        let started = started.map_err(SddpError::io("start a thread to write", &self.directory));
        self.writer = Some(started?);
        Ok(())
    }

    /// Waits for what is being written.
    pub(super) fn settle(&mut self) -> Result<(), SddpError> {
        let writer = self.writer.take();
        writer.map_or(Ok(()), |writer| {
            writer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Notes that the run has written all its results.
    pub(super) fn finish(&mut self) -> Result<(), SddpError> {
        self.settle()?;
        if self.directory.exists() {
            put(&self.directory.join(FINISHED), b"")?;
        }
        Ok(())
    }

    /// The state of the newest checkpoint that is whole, empty if there is none; `warn` is told of those
    /// that are not.
    ///
    /// # Errors
    /// When it does not belong to this run.
    pub(super) fn newest(&mut self, warn: &mut dyn FnMut(&str)) -> Result<Vec<u8>, SddpError> {
        let _ = std::fs::remove_file(self.directory.join(FINISHED));
        for &iteration in self.numbers().iter().rev() {
            let place = file(&self.directory, iteration, "json");
            match whole(&self.directory, iteration) {
                Err(problem) => {
                    let place = place.display();
                    warn(&format!("passed over the checkpoint {place}: {problem}"));
                }
                Ok((manifest, bytes)) => {
                    return match self.identity.difference(&manifest["belongs_to"]) {
                        None => Ok(bytes),
                        Some(difference) => Err(SddpError::Checkpoint(format!(
                            "the checkpoint {} is {difference}",
                            place.display()
                        ))),
                    };
                }
            }
        }
        Ok(Vec::new())
    }

    /// The iterations of which there is a manifest, in order.
    pub(super) fn numbers_in(output: &Path) -> Vec<usize> {
        numbers(&output.join(PLACE), "json")
    }

    fn numbers(&self) -> Vec<usize> {
        numbers(&self.directory, "json")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The run has failed already if this was not waited for; the files are whole or not there.
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn file(directory: &Path, iteration: usize, kind: &str) -> PathBuf {
    directory.join(format!("{iteration:08}.{kind}"))
}

fn put(place: &Path, bytes: &[u8]) -> Result<(), SddpError> {
    let mut file = Aside::create(place)?;
    file.write(bytes)?;
    file.finish()
}

/// The iterations of which there is a file of this kind, in order.
fn numbers(directory: &Path, kind: &str) -> Vec<usize> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(kind)?.strip_suffix('.')?.parse().ok()
    };
    let mut numbers: Vec<usize> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// A checkpoint's manifest and bytes if they are what was written.
fn whole(directory: &Path, iteration: usize) -> Result<(Value, Vec<u8>), String> {
    let read = |kind| {
        let place = file(directory, iteration, kind);
        std::fs::read(&place).map_err(|error| format!("{}: {error}", place.display()))
    };
    let manifest: Value = serde_json::from_slice(&read("json")?)
        .map_err(|error| format!("it is cut off or changed ({error})"))?;
    if manifest["format"] != FORMAT {
        return Err(format!(
            "its format is {}, not {FORMAT}",
            manifest["format"]
        ));
    }
    let bytes = read("state")?;
    if manifest["bytes"] != bytes.len() {
        let (expected, found) = (&manifest["bytes"], bytes.len());
        return Err(format!("its state has {found} bytes of {expected}"));
    }
    if manifest["sha256"] != Fingerprint::of_bytes(&bytes).to_string() {
        return Err("its state has changed since it was written".to_owned());
    }
    Ok((manifest, bytes))
}

/// Removes all but the last ones, manifests first. What cannot be removed is in nobody's way.
fn prune(directory: &Path) {
    for kind in ["json", "state"] {
        let numbers = numbers(directory, kind);
        for &old in &numbers[..numbers.len().saturating_sub(KEPT)] {
            let _ = std::fs::remove_file(file(directory, old, kind));
        }
    }
}
