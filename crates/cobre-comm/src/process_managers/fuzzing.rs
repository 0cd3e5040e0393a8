//! Fuzz targets: what a process manager and rank 0 say.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::meeting_place::MeetingPlace;
use super::pmi::PmiClient;
use crate::fuzzing::Target;

pub(crate) const TARGETS: &[Target] = &[
    ("pmi", pmi as _, 1_000),
    ("meeting_place", meeting_place as _, 20_000),
];

/// Bytes that a socket takes without a reader.
const MOST: usize = 32 << 10;

/// A process manager that says these bytes and hangs up, to rank 0 and to another rank.
fn pmi(_: &Path, input: &[u8]) {
    for own in [None, Some("offer")] {
        let (socket, mut manager) = UnixStream::pair().expect("sockets");
        let said = &input[..input.len().min(MOST)];
        manager.write_all(said).expect("it fits");
        manager.shutdown(Shutdown::Write).expect("a socket");
        let deadline = Instant::now() + Duration::from_secs(60);
        match PmiClient::new(socket, deadline).share(own) {
            Ok(text) => drop(MeetingPlace::parse(&text)),
            Err(error) => assert!(!error.contains(['\n', '\x1b']), "{error:?}"),
        }
    }
}

/// The offer of rank 0: if it is read, it can be written and read again.
fn meeting_place(_: &Path, input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Some(place) = MeetingPlace::parse(text) {
        let text = place.text();
        let again = MeetingPlace::parse(&text).expect("an offer is read back");
        assert_eq!(again.text(), text);
    }
}
