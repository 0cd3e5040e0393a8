//! The files of checkpoints: `checkpoint/NNNNNNNN.state` with the bytes, and then
//! `checkpoint/NNNNNNNN.json`, which says whose they are and how they must hash. The last two are
//! kept. Only files on the register of `checkpoint/` are removed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cobre_files::{FileError, Register, WholeFile};
use cobre_results::layout::CHECKPOINT;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::identity::Identity;
use crate::error::SddpError;
use crate::fingerprint::Fingerprint;

/// The version of the layout.
const FORMAT: u64 = 8;
/// The key of a manifest's own fingerprint.
const CHECK: &str = "manifest_sha256";
/// Checkpoints that are kept.
const KEPT: usize = 2;
/// Notes that the run has written all its results.
const FINISHED: &str = "finished";
/// The most bytes of a part on its way to the thread that writes, and the most such parts.
const PART_BYTES: usize = 4 << 20;
const PARTS_WAITING: usize = 8;
/// The most bytes of a manifest that are read.
const LARGEST: u64 = 1 << 20;

/// The parts of a checkpoint on their way to the thread that writes them.
pub(super) struct StateWriter<S>(SyncSender<StatePart<S>>);

enum StatePart<S> {
    /// Bytes of warm starts.
    Bytes(Vec<u8>),
    /// The rest, which ends it.
    State(Box<S>),
}

impl<S> StateWriter<S> {
    /// Adds bytes of warm starts; waits while too much is on its way.
    pub(super) fn push(&self, bytes: &[u8]) {
        for piece in bytes.chunks(PART_BYTES) {
            // Whoever waits for the files learns why the thread has ended.
            let _ = self.0.send(StatePart::Bytes(piece.to_vec()));
        }
    }

    /// Ends the checkpoint.
    pub(super) fn end(self, state: S) {
        let _ = self.0.send(StatePart::State(Box::new(state)));
    }
}

/// Writes the parts of a state as they come: warm starts, the rest, and the length of the rest. Returns its bytes and
/// their hash; `None` if there is no end.
fn write_parts<S: Serialize>(
    mut file: WholeFile,
    parts: &Receiver<StatePart<S>>,
) -> Result<Option<(usize, Fingerprint)>, SddpError> {
    let (mut hasher, mut count) = (Sha256::new(), 0);
    let mut write = |bytes: &[u8]| -> Result<(), SddpError> {
        hasher.update(bytes);
        count += bytes.len();
        Ok(file.write(bytes)?)
    };
    for part in parts {
        match part {
            StatePart::Bytes(bytes) => write(&bytes)?,
            StatePart::State(state) => {
                let state =
                    postcard::to_stdvec(&state).expect("plain data can be written to memory");
                write(&state)?;
                write(&(state.len() as u64).to_le_bytes())?;
                file.finish()?;
                return Ok(Some((count, hasher.into())));
            }
        }
    }
    Ok(None)
}

/// Splits the bytes of a state into the warm starts and the rest.
pub(super) fn split_state(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, length) = bytes.split_last_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    before.split_at_checked(before.len().checked_sub(length)?)
}

/// The checkpoints in a directory.
pub(super) struct Store {
    directory: PathBuf,
    /// The files that are checkpoints' of Cobre.
    register: Arc<Mutex<Register>>,
    identity: Identity,
    /// Damaged checkpoints.
    damaged: Vec<usize>,
    /// The thread that writes the latest one.
    writer: Option<JoinHandle<Result<(), SddpError>>>,
}

impl Store {
    /// The checkpoints of the run whose results are in `output`. Writes nothing.
    ///
    /// # Errors
    /// When something that Cobre did not write is in the way.
    pub(super) fn open(output: &Path, identity: Identity) -> Result<Self, SddpError> {
        Ok(Self {
            directory: output.join(CHECKPOINT),
            register: Arc::new(Mutex::new(survey(output)?)),
            identity,
            damaged: Vec::new(),
            writer: None,
        })
    }

    /// Forgets those of a finished run.
    ///
    /// # Errors
    /// When they are of a run that has not finished, or cannot be removed.
    pub(super) fn start_anew(&self) -> Result<(), SddpError> {
        let mut register = lock(&self.register);
        let finished = register.holds(FINISHED) && self.directory.join(FINISHED).exists();
        if let Some(newest) = numbers(&register).last()
            && !finished
        {
            let place = self.directory.display();
            return Err(SddpError::Checkpoint(format!(
                "{place} holds iteration {newest} of a run that has not finished: go on from it with --resume (Python: resume=True), \
                 or remove that directory to begin anew"
            )));
        }
        register.clone().dissolve()?;
        *register = Register::open_by_name(&self.directory)?;
        Ok(())
    }

    /// Starts to write a checkpoint after an iteration, in a thread of its own, which takes its parts as they come.
    ///
    /// # Errors
    /// When the one before could not be written.
    pub(super) fn begin<S: Serialize + Send + 'static>(
        &mut self,
        iteration: usize,
    ) -> Result<StateWriter<S>, SddpError> {
        self.settle()?;
        let (directory, belongs_to) = (self.directory.clone(), self.identity.json());
        let register = Arc::clone(&self.register);
        let mut damaged = std::mem::take(&mut self.damaged);
        damaged.retain(|number| *number != iteration);
        let (sender, parts) = sync_channel(PARTS_WAITING);
        let write = move || {
            let mut register = lock(&register);
            // Not the one around it: if that is gone, so is the right to write there.
            match cobre_files::make_directory(&directory) {
                Ok(()) => register.note_made(),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(SddpError::io("create the directory", &directory)(error));
                }
                Err(_) => {}
            }
            let names = [name(iteration, "state"), name(iteration, "json")];
            register.claim(names.iter().map(String::as_str))?;
            let file = register.create(&names[0])?;
            let Some((bytes, sha256)) = write_parts(file, &parts)? else {
                // The run has failed in the meantime.
                return Ok(());
            };
            let manifest = checked(json!({
                "format": FORMAT,
                "iteration": iteration,
                "bytes": bytes,
                "sha256": sha256.to_string(),
                "belongs_to": belongs_to,
            }));
            let manifest = format!("{manifest:#}\n");
            put(&mut register, &names[1], &[manifest.as_bytes()])?;
            prune(&mut register, iteration, &damaged);
            Ok(())
        };
        let builder = std::thread::Builder::new().name("cobre-checkpoint".to_owned());
        let started = builder.spawn(write);
        let started = started.map_err(SddpError::io("start a thread to write", &self.directory));
        self.writer = Some(started?);
        Ok(StateWriter(sender))
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
        let mut register = lock(&self.register);
        if !numbers(&register).is_empty() {
            put(&mut register, FINISHED, &[])?;
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
        for &iteration in numbers(&lock(&self.register)).iter().rev() {
            let place = self.directory.join(name(iteration, "json"));
            match whole(&self.directory, iteration) {
                Err(Unusable::Format(format)) => {
                    let (place, directory) = (place.display(), self.directory.display());
                    return Err(SddpError::Checkpoint(format!(
                        "the checkpoint {place} has format {format} and this version of Cobre reads {FORMAT}: resume \
                         with the version that wrote it, or remove {directory} to begin anew"
                    )));
                }
                Err(Unusable::Damaged(problem)) => {
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
        let _ = lock(&self.register).remove(FINISHED);
        Ok(found)
    }
}

/// The iterations of which there is a manifest beside the results in `output`, in order.
pub(super) fn numbers_in(output: &Path) -> Vec<usize> {
    survey(output).map_or(Vec::new(), |register| numbers(&register))
}

/// The register of the checkpoints beside the results in `output`. Manifests that are there are on it, too, if they
/// are checkpoints': earlier versions kept no register. Writes nothing.
///
/// # Errors
/// When something that Cobre did not write is in the way.
pub(super) fn survey(output: &Path) -> Result<Register, FileError> {
    // A link is not followed.
    Register::open(output)?.check_directory(CHECKPOINT)?;
    let directory = output.join(CHECKPOINT);
    // A damaged checkpoint is one still: its manifest says what it should hold.
    let mut register = Register::open_by_name(&directory)?;
    let names: Vec<String> = names(&directory).collect();
    for manifest in names.iter().filter(|name| number(name, "json").is_some()) {
        if !register.holds(manifest) && is_manifest(&directory.join(manifest), manifest) {
            let state = manifest.replace(".json", ".state");
            register.adopt(manifest.clone());
            register.adopt(state);
            let finished = directory.join(FINISHED).symlink_metadata();
            if finished.is_ok_and(|found| found.is_file() && found.len() == 0) {
                register.adopt(FINISHED);
            }
        }
    }
    if let (false, Some(first)) = (register.is_there(), names.first()) {
        return Err(FileError::foreign(directory, format!("holds {first}")));
    }
    // The name that an unfinished file will have.
    let finished = |name: &String| -> String {
        let part = name.strip_prefix('.');
        let part = part.and_then(|name| name.strip_suffix(".part"));
        part.unwrap_or(name).to_owned()
    };
    let is_own = |name: &String| number(name, "json").or(number(name, "state")).is_some();
    for name in names.iter().map(finished).filter(is_own) {
        register.check(&name)?;
    }
    register.check(FINISHED)?;
    Ok(register)
}

impl Drop for Store {
    fn drop(&mut self) {
        // The run has failed already if this was not waited for; the files are whole or not there.
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn lock(register: &Mutex<Register>) -> MutexGuard<'_, Register> {
    register.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(iteration: usize, kind: &str) -> String {
    format!("{iteration:08}.{kind}")
}

/// The iteration that a file of this kind is of, by its name.
fn number(text: &str, kind: &str) -> Option<usize> {
    let digits = text.strip_suffix(kind)?.strip_suffix('.')?;
    let number = digits.parse().ok()?;
    (name(number, kind) == text).then_some(number)
}

fn put(register: &mut Register, name: &str, parts: &[&[u8]]) -> Result<(), SddpError> {
    let mut file = register.create(name)?;
    for part in parts {
        file.write(part)?;
    }
    Ok(file.finish()?)
}

/// The names in a directory, in order.
fn names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.into_iter()
}

/// The iterations of which there is a manifest, in order.
fn numbers(register: &Register) -> Vec<usize> {
    let there = |name: &&str| register.directory().join(name).exists();
    let manifests = register.names().filter(there);
    let mut numbers: Vec<usize> = manifests.filter_map(|name| number(name, "json")).collect();
    numbers.sort_unstable();
    numbers
}

/// A manifest with its own fingerprint; a value that is no object stays without one.
fn checked(mut manifest: Value) -> Value {
    let fingerprint = Fingerprint::of_parts(&[manifest.to_string().as_bytes()]);
    if let Some(keys) = manifest.as_object_mut() {
        keys.insert(CHECK.to_owned(), fingerprint.to_string().into());
    }
    manifest
}

fn read_manifest(place: &Path) -> Result<Value, String> {
    let bytes = cobre_files::read(place, LARGEST)
        .map_err(|error| format!("{}: {error}", place.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("it is cut off or changed ({error})"))
}

/// True if a file is the manifest of a checkpoint, of this version or an earlier one.
fn is_manifest(place: &Path, name: &str) -> bool {
    let is_file = place.symlink_metadata().is_ok_and(|found| found.is_file());
    let manifest = is_file.then(|| read_manifest(place).ok()).flatten();
    manifest.is_some_and(|manifest| {
        let format = manifest["format"].as_u64();
        format.is_some_and(|format| format <= FORMAT)
            && manifest["iteration"].as_u64() == number(name, "json").map(|number| number as u64)
            && manifest["bytes"].is_u64()
            && manifest["sha256"]
                .as_str()
                .is_some_and(|hash| hash.len() == 64)
            && manifest["belongs_to"].is_object()
    })
}

/// The reason why a checkpoint cannot be used.
enum Unusable {
    /// An intact one of another format.
    Format(u64),
    Damaged(String),
}

impl From<String> for Unusable {
    fn from(problem: String) -> Self {
        Self::Damaged(problem)
    }
}

/// The first format whose manifests have a fingerprint of their own.
const FIRST_CHECKED: u64 = 3;

/// A checkpoint's manifest and bytes if they are what was written.
fn whole(directory: &Path, iteration: usize) -> Result<(Value, Vec<u8>), Unusable> {
    let mut manifest = read_manifest(&directory.join(name(iteration, "json")))?;
    let check = manifest.as_object_mut().and_then(|keys| keys.remove(CHECK));
    let damaged = |problem: &str| Err(Unusable::Damaged(problem.to_owned()));
    let format = manifest["format"].as_u64().unwrap_or(FORMAT);
    let is_intact = check == Some(checked(manifest.clone())[CHECK].clone());
    if !is_intact && (format >= FIRST_CHECKED || check.is_some()) {
        return damaged("its manifest has changed since it was written");
    }
    if format != FORMAT {
        return Err(Unusable::Format(format));
    }
    if manifest["iteration"] != iteration {
        let found = &manifest["iteration"];
        return damaged(&format!("it is that of iteration {found}"));
    }
    let place = directory.join(name(iteration, "state"));
    let Some(expected) = manifest["bytes"].as_u64() else {
        return damaged("its manifest does not say how long its state is");
    };
    // A longer one is not read: there may be no memory for it.
    let bytes = cobre_files::read(&place, expected)
        .map_err(|error| format!("{}: {error}", place.display()))?;
    if expected != bytes.len() as u64 {
        let found = bytes.len();
        return damaged(&format!("its state has {found} bytes of {expected}"));
    }
    if manifest["sha256"] != Fingerprint::of_parts(&[&bytes]).to_string() {
        return damaged("its state has changed since it was written");
    }
    Ok((manifest, bytes))
}

/// Removes all but the last whole ones up to this iteration, a manifest before its state: older ones, damaged ones, and
/// what a run that was killed has left. What cannot be removed is in nobody's way.
fn prune(register: &mut Register, iteration: usize, damaged: &[usize]) {
    let mut kept = numbers(register);
    kept.retain(|number| *number <= iteration && !damaged.contains(number));
    kept.drain(..kept.len().saturating_sub(KEPT));
    let is_old = |name: &&str| {
        let found = number(name, "json").or_else(|| number(name, "state"));
        found.is_some_and(|number| !kept.contains(&number))
    };
    // In this order a manifest comes before its state.
    let old: Vec<String> = register.names().filter(is_old).map(str::to_owned).collect();
    for name in old {
        let _ = register.remove(&name);
    }
    // Else the register grows with every checkpoint.
    let _ = register.settle();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_with_any_byte_changed_is_damaged_or_says_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = b"a state";
        let manifest = checked(json!({
            "format": FORMAT,
            "iteration": 7,
            "bytes": state.len(),
            "sha256": Fingerprint::of_parts(&[state]).to_string(),
            "belongs_to": {"seed": "0", "problem": "ab", "warm start": "none"},
        }));
        let place = |kind: &str| directory.path().join(name(7, kind));
        std::fs::write(place("state"), state).expect("it is written");
        let text = format!("{manifest:#}\n").into_bytes();
        let mut found = 0;
        for at in 0..text.len() {
            for other in [text[at] ^ 1, text[at] ^ 0x20, b'0', b' ', 0xff] {
                let mut text = text.clone();
                text[at] = other;
                std::fs::write(place("json"), &text).expect("it is written");
                match whole(directory.path(), 7) {
                    Err(Unusable::Damaged(_)) => found += 1,
                    Err(Unusable::Format(format)) => panic!("{at}: format {format}"),
                    Ok((mut read, bytes)) => {
                        read[CHECK] = manifest[CHECK].clone();
                        assert_eq!((read, &bytes[..]), (manifest.clone(), &state[..]), "{at}");
                    }
                }
            }
        }
        assert!(found > 3 * text.len(), "{found}");
    }

    #[test]
    fn a_manifest_of_a_version_before_is_refused_and_known_as_ours() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = b"a state";
        let place = |kind: &str| directory.path().join(name(7, kind));
        std::fs::write(place("state"), state).expect("it is written");
        for format in 2..FORMAT {
            let manifest = json!({
                "format": format,
                "iteration": 7,
                "bytes": state.len(),
                "sha256": Fingerprint::of_parts(&[state]).to_string(),
                "belongs_to": {"seed": "0"},
            });
            let manifest = match format {
                FIRST_CHECKED.. => checked(manifest),
                _ => manifest,
            };
            std::fs::write(place("json"), manifest.to_string()).expect("it is written");
            let refused = whole(directory.path(), 7).err();
            assert!(matches!(refused, Some(Unusable::Format(found)) if found == format));
            assert!(is_manifest(&place("json"), &name(7, "json")));
        }
    }

    #[test]
    fn a_state_longer_than_its_manifest_says_is_damaged_and_takes_no_memory() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |kind: &str| directory.path().join(name(7, kind));
        let manifest = checked(json!({
            "format": FORMAT,
            "iteration": 7,
            "bytes": 7,
            "sha256": Fingerprint::of_parts(&[b"a state"]).to_string(),
            "belongs_to": {},
        }));
        std::fs::write(place("json"), manifest.to_string()).expect("it is written");
        let state = std::fs::File::create(place("state")).expect("a file");
        // Sparse, and more than any machine has memory for.
        state.set_len(1 << 43).expect("it is sparse");
        let found = whole(directory.path(), 7);
        let Err(Unusable::Damaged(problem)) = found else {
            panic!("it is used");
        };
        assert!(problem.contains("at most 7 are read"), "{problem}");
    }

    #[test]
    fn a_manifest_that_is_no_object_is_damaged() {
        let directory = tempfile::tempdir().expect("a directory");
        for text in ["[]", "1", "true", "null", "\"x\""] {
            std::fs::write(directory.path().join(name(7, "json")), text).expect("it is written");
            let found = whole(directory.path(), 7);
            assert!(matches!(found, Err(Unusable::Damaged(_))), "{text}");
        }
    }
}
