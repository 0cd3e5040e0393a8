//! `--trace FILE`: the timeline of each rank in the trace event format of Chrome, which Perfetto shows. The file is a JSON
//! array that is complete after every iteration, so that it can be read whenever and however a run ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cobre_sddp::{Span, SpanKind};
use serde_json::{Value, json};

/// The first bytes of every trace, by which one is known from other files.
const HEADER: &[u8] = b"[{\"cat\":\"cobre\",";
/// The end of the array, which the next events replace.
const END: &[u8] = b"\n]\n";
/// Most events of a rank: a trace of a long run ends with a mark, not with the disk.
const MOST: usize = 2_000_000;

/// A trace that is being written.
pub(super) struct TraceFile {
    file: File,
    rank: usize,
    /// Events written so far.
    events: usize,
    /// A point in time by both clocks: those of ranks meet in the time of day.
    origin: (Instant, f64),
}

/// The file of a rank whose events go to another one at the end of the job.
pub(super) fn part_of(path: &Path, rank: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".rank-{rank}"));
    name.into()
}

/// Fails if there is a file in the way that is no trace. One that is empty was left by a disk that was full.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let mut start = Vec::new();
    let read = cobre_files::open(path)
        .and_then(|file| file.take(HEADER.len() as u64).read_to_end(&mut start));
    match read {
        Ok(_) if start.is_empty() || start == HEADER => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(format!(
            "--trace {}: there is something else than a trace of cobre; move it, or give another name",
            path.display()
        )),
        Err(error) => Err(format!(
            "--trace {}: {error}; move it, or give another name",
            path.display()
        )),
    }
}

/// Makes room for the trace of a new run: one of an earlier run is removed.
pub(super) fn begin(path: &Path) -> Result<(), String> {
    check(path)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(described(path, &error)),
        _ => Ok(()),
    }
}

fn described(path: &Path, error: &io::Error) -> String {
    format!("--trace {}: {error}", path.display())
}

impl TraceFile {
    /// A new trace of a rank; one that is there is replaced.
    pub(super) fn create(path: &Path, rank: usize) -> Result<Self, String> {
        check(path)?;
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path);
        let file = made.map_err(|error| described(path, &error))?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since_epoch.map_or(0.0, |elapsed| elapsed.as_secs_f64() * 1e6);
        let mut trace = Self {
            file,
            rank,
            events: 0,
            origin: (Instant::now(), micros),
        };
        let name = json!({ "name": format!("rank {rank} (pid {})", std::process::id()) });
        // Written by hand, as the order of keys is what a trace is known by.
        let first = format!(
            "{}\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{rank},\"tid\":0,\"ts\":0,\"args\":{name}}}",
            String::from_utf8_lossy(HEADER)
        );
        let written = append_bytes(&mut trace.file, &[first.as_bytes(), END].concat());
        written.map_err(|error| described(path, &error))?;
        Ok(trace)
    }

    /// Writes spans; the file is complete afterwards.
    ///
    /// # Errors
    /// Those of the file; the spans are then lost.
    pub(super) fn write(&mut self, spans: &[Span]) -> io::Result<()> {
        let room = MOST.saturating_sub(self.events);
        let mut events: Vec<Value> = spans
            .iter()
            .take(room)
            .map(|span| self.event(span))
            .collect();
        if room > 0 && spans.len() >= room {
            events.push(json!({
                "cat": "cobre", "name": "the trace is full", "ph": "i", "s": "p", "pid": self.rank, "tid": 0,
                "ts": self.micros(Instant::now()),
            }));
        }
        if events.is_empty() {
            return Ok(());
        }
        self.append(&events)
    }

    fn micros(&self, at: Instant) -> f64 {
        let (instant, micros) = self.origin;
        let later = at.saturating_duration_since(instant).as_secs_f64();
        let earlier = instant.saturating_duration_since(at).as_secs_f64();
        // A thousandth of a microsecond is finer than the clock.
        ((micros + (later - earlier) * 1e6) * 1e3).round() / 1e3
    }

    fn event(&self, span: &Span) -> Value {
        let category = match span.kind {
            SpanKind::Collective(_) => "waiting",
            _ => "work",
        };
        let start = self.micros(span.start);
        json!({
            "cat": category,
            "name": span.kind.name(),
            "ph": "X",
            "pid": self.rank,
            "tid": 0,
            "ts": start,
            "dur": (span.end - span.start).as_secs_f64() * 1e6,
            "args": { "iteration": span.iteration },
        })
    }

    fn append(&mut self, events: &[Value]) -> io::Result<()> {
        let mut text = Vec::new();
        for event in events {
            text.extend_from_slice(b",\n");
            text.extend_from_slice(event.to_string().as_bytes());
        }
        self.events += events.len();
        text.extend_from_slice(END);
        append_bytes(&mut self.file, &text)
    }
}

/// Replaces the end of an array by more of it, in one write.
fn append_bytes(file: &mut File, text: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END.len() as u64)))?;
    file.write_all(text)
}

/// Puts the traces of so many ranks into one file behind what it holds, and removes them; the ranks whose trace is not
/// here are returned.
pub(super) fn merge(path: &Path, ranks: usize) -> Result<Vec<usize>, String> {
    check(path)?;
    let mut missing = Vec::new();
    for rank in 0..ranks {
        let part = part_of(path, rank);
        if !part.exists() || check(&part).is_err() {
            missing.push(rank);
            continue;
        }
        take_in(path, &part).map_err(|error| described(path, &error))?;
    }
    Ok(missing)
}

fn take_in(path: &Path, part: &Path) -> io::Result<()> {
    let events = std::fs::read(part)?;
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(&events)?;
    } else {
        let rest = events.strip_prefix(b"[").unwrap_or(&events);
        append_bytes(&mut file, &[b",\n", rest].concat())?;
    }
    std::fs::remove_file(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn span() -> Span {
        Span {
            kind: SpanKind::Forward,
            start: Instant::now(),
            end: Instant::now(),
            iteration: 2,
        }
    }

    #[test]
    fn a_trace_is_json_after_every_write_and_traces_of_ranks_become_one() {
        let place = tempfile::tempdir().unwrap();
        let whole = place.path().join("trace.json");
        for rank in [0, 2] {
            let part = part_of(&whole, rank);
            let mut trace = TraceFile::create(&part, rank).unwrap();
            assert_eq!(events(&part).len(), 1);
            for written in 1..4 {
                trace.write(&[span()]).unwrap();
                assert_eq!(events(&part).len(), 1 + written);
            }
        }
        assert_eq!(merge(&whole, 3), Ok(vec![1]));
        let all = events(&whole);
        assert_eq!(all.len(), 8);
        assert_eq!(
            (&all[7]["name"], &all[7]["pid"]),
            (&json!("forward"), &json!(2))
        );
        assert!(!part_of(&whole, 0).exists());
        begin(&whole).unwrap();
        assert!(!whole.exists());
        begin(&whole).unwrap();
    }

    #[test]
    fn an_empty_file_of_a_full_disk_is_no_obstacle() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trace.json");
        File::create(&path).unwrap();
        assert_eq!(check(&path), Ok(()));
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notes.txt");
        std::fs::write(&path, "mine").unwrap();
        assert!(TraceFile::create(&path, 0).is_err());
        assert!(merge(&path, 1).is_err() && begin(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
