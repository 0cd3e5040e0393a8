//! The files of checkpoints: `checkpoint/NNNNNNNN.state` with the bytes, and then
//! `checkpoint/NNNNNNNN.json`, which says whose they are and how they must hash. The last two are
//! kept.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde::Serialize;
use serde_json::{Value, json};

use super::identity::Identity;
use crate::error::SddpError;
use crate::fingerprint::Fingerprint;
use crate::output::Aside;

const FORMAT: u32 = 3;
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
    /// Damaged checkpoints.
    damaged: Vec<usize>,
    /// The thread that writes the latest one.
    writer: Option<JoinHandle<Result<(), SddpError>>>,
}

impl Store {
    /// The checkpoints of the run whose results are in `output`.
    pub(super) fn open(output: &Path, identity: Identity) -> Self {
        Self {
            directory: output.join(PLACE),
            identity,
            damaged: Vec::new(),
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
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(SddpError::io("remove", &self.directory)(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes the state after an iteration and what follows it, in a thread of its own.
    ///
    /// # Errors
    /// When the one before could not be written.
    pub(super) fn write(
        &mut self,
        iteration: usize,
        state: impl Serialize + Send + 'static,
        rest: Vec<u8>,
    ) -> Result<(), SddpError> {
        self.settle()?;
        let (directory, belongs_to) = (self.directory.clone(), self.identity.json());
        let mut damaged = std::mem::take(&mut self.damaged);
        damaged.retain(|number| *number != iteration);
        let write = move || {
            let state =
                postcard::to_stdvec(&state).expect("plain data can be written to warm_start");
            let parts = [&state[..], &rest];
            let manifest = json!({
                "format": FORMAT,
                "iteration": iteration,
                "bytes": state.len() + rest.len(),
                "sha256": Fingerprint::of_parts(&parts).to_string(),
                "belongs_to": belongs_to,
            });
            // Not the one around it: if that is gone, so is the right to write there.
            match std::fs::create_dir(&directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(SddpError::io("create the directory", &directory)(error));
                }
                _ => {}
            }
            put(&file(&directory, iteration, "state"), &parts)?;
            let manifest = format!("{manifest:#}\n");
            put(&file(&directory, iteration, "json"), &[manifest.as_bytes()])?;
            prune(&directory, iteration, &damaged);
            Ok(())
        };
        let builder = std::thread::Builder::new().name("cobre-checkpoint".to_owned());
        let started = builder.spawn(write);
        let started = started.map_err(SddpError::io("start a thread to write", &self.directory));
        self.writer = Some(started?);
        Ok(())
    }

    /// Waits until the files are written.
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
            put(&self.directory.join(FINISHED), &[])?;
        }
        Ok(())
    }

    /// The state of the newest checkpoint that is whole, empty if there is none; `warn` is told of those
    /// that are not.
    ///
    /// # Errors
    /// When it does not belong to this run.
    pub(super) fn newest(&mut self, warn: &mut dyn FnMut(&str)) -> Result<Vec<u8>, SddpError> {
        let mut found = Vec::new();
        for &iteration in self.numbers().iter().rev() {
            let place = file(&self.directory, iteration, "json");
            match whole(&self.directory, iteration) {
                Err(problem) => {
                    let place = place.display();
                    warn(&format!("passed over the checkpoint {place}: {problem}"));
                    self.damaged.push(iteration);
                }
                Ok((manifest, bytes)) => {
                    if let Some(difference) = self.identity.difference(&manifest["belongs_to"]) {
                        let place = place.display();
                        return Err(SddpError::Checkpoint(format!(
                            "the checkpoint {place} is {difference}"
                        )));
                    }
                    found = bytes;
                    break;
                }
            }
        }
        // From here on this is a run that has not finished.
        let _ = std::fs::remove_file(self.directory.join(FINISHED));
        Ok(found)
    }

    /// The iterations of which there is a manifest, in order.
    pub(super) fn numbers_in(output: &Path) -> Vec<usize> {
        numbers(&output.join(PLACE))
    }

    fn numbers(&self) -> Vec<usize> {
        numbers(&self.directory)
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

fn put(place: &Path, parts: &[&[u8]]) -> Result<(), SddpError> {
    let mut file = Aside::create(place)?;
    for part in parts {
        file.write(part)?;
    }
    file.finish()
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The iterations of which there is a manifest, in order.
fn numbers(directory: &Path) -> Vec<usize> {
    let number = |name: String| name.strip_suffix(".json")?.parse().ok();
    let mut numbers: Vec<usize> = names(directory).filter_map(number).collect();
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
    if manifest["sha256"] != Fingerprint::of_parts(&[&bytes]).to_string() {
        return Err("its state has changed since it was written".to_owned());
    }
    Ok((manifest, bytes))
}

/// Removes all but the last whole ones up to this iteration, a manifest before its state: older ones, damaged ones, and
/// what a run that was killed has left. What cannot be removed is in nobody's way.
fn prune(directory: &Path, iteration: usize, damaged: &[usize]) {
    let mut kept = numbers(directory);
    kept.retain(|number| *number <= iteration && !damaged.contains(number));
    kept.drain(..kept.len().saturating_sub(KEPT));
    let is_old = |name: &String| {
        let (number, _) = name.trim_start_matches('.').split_once('.')?;
        let number = number.parse().ok()?;
        Some(name.starts_with('.') || !kept.contains(&number))
    };
    let mut old: Vec<String> = names(directory)
        .filter(|name| is_old(name) == Some(true))
        .collect();
    old.sort_unstable();
    for name in old {
        let _ = std::fs::remove_file(directory.join(name));
    }
}
