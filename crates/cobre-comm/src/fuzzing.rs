//! Fuzz targets: functions that read bytes of others, for `fuzz/` and for the sample of it in the tests.

use std::path::Path;

use crate::report::LauncherMessage;
use crate::{backends, process_managers};

/// A name, the reader (of a directory that is its own, and an input), and the mutants of its corpus that a test tries.
pub type Target = (&'static str, fn(&Path, &[u8]), usize);

/// The targets of this build.
pub fn targets() -> Vec<Target> {
    let mut all = vec![("launcher_message", launcher_message as _, 20_000)];
    all.extend(process_managers::fuzzing::TARGETS);
    all.extend(backends::fuzz_targets());
    all
}

/// A line that a rank sends to its launcher: if it is read, it can be written and read again.
fn launcher_message(_: &Path, input: &[u8]) {
    // The launcher reads line by line.
    let line = std::str::from_utf8(input).ok();
    let Some(line) = line.and_then(|text| text.split('\n').next()) else {
        return;
    };
    if let Some(message) = LauncherMessage::decode(line) {
        let written = message.encode();
        let again = LauncherMessage::decode(&written).expect("a message is read back");
        assert_eq!(again.encode(), written);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
