//! PMI-1: lines of `name=value` over a socket to the process manager, which keeps pairs of key and value for the
//! ranks of a job and lets them wait for each other. MPICH's Hydra speaks it, and Slurm's `srun --mpi=pmi2`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::terminal;

/// The key of the job's offer.
const KEY: &str = "cobre-job";
/// Bytes of the longest line: those of names, key and value at their limits fit twice.
const LONGEST_LINE: usize = 4096;

/// A conversation with the process manager.
pub(super) struct PmiClient {
    socket: UnixStream,
    deadline: Instant,
    /// Bytes that have arrived and belong to no line that was read.
    received: Vec<u8>,
}

impl PmiClient {
    pub(super) fn new(socket: UnixStream, deadline: Instant) -> Self {
        Self {
            socket,
            deadline,
            received: Vec::new(),
        }
    }

    /// The text that rank 0 offers, on every rank: rank 0 brings it in `own`.
    pub(super) fn share(mut self, own: Option<&str>) -> Result<String, String> {
        self.ask(
            "cmd=init pmi_version=1 pmi_subversion=1",
            "response_to_init",
        )?;
        let space = self.ask("cmd=get_my_kvsname", "my_kvsname")?;
        let space = value(&space, "kvsname").ok_or("the answer has no kvsname")?;
        if let Some(text) = own {
            let put = format!("cmd=put kvsname={space} key={KEY} value={text}");
            self.ask(&put, "put_result")?;
        }
        self.ask("cmd=barrier_in", "barrier_out")?;
        let shared = if let Some(text) = own {
            text.to_owned()
        } else {
            let get = format!("cmd=get kvsname={space} key={KEY}");
            let found = self.ask(&get, "get_result")?;
            let found = value(&found, "value").ok_or("the answer has no value")?;
            found.to_owned()
        };
        self.ask("cmd=finalize", "finalize_ack")?;
        Ok(shared)
    }

    /// Sends a line, and returns the answer, which must be `answer` and report success.
    fn ask(&mut self, line: &str, answer: &str) -> Result<String, String> {
        let asked = value(line, "cmd").unwrap_or_default().to_owned();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no answer to {asked} within the deadline: did all ranks start?")
            }
            io::ErrorKind::InvalidData => format!("its answer to {asked} is {error}"),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => format!("it is gone, without an answer to {asked}"),
            _ => format!("{asked}: {error}"),
        };
        self.send(line).map_err(failed)?;
        let said = self.receive().map_err(failed)?;
        let refused = value(&said, "rc").is_some_and(|code| code != "0");
        if value(&said, "cmd") != Some(answer) || refused {
            let said = terminal::one_line(&said);
            return Err(format!("it answered {asked} with \"{said}\""));
        }
        Ok(said)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write_all(format!("{line}\n").as_bytes())
    }

    /// The next line, without its end.
    fn receive(&mut self) -> io::Result<String> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                line.truncate(end);
                return String::from_utf8(line).or_else(|_| invalid("no text"));
            }
            if self.received.len() >= LONGEST_LINE {
                return invalid("longer than a line of PMI can be");
            }
            self.socket.set_read_timeout(Some(self.left()?))?;
            let mut bytes = [0; LONGEST_LINE];
            let room = LONGEST_LINE - self.received.len();
            match self.socket.read(&mut bytes[..room]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The value of `name` in a line of `name=value`.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let words = line.split(' ');
    words
        .filter_map(|word| word.split_once('='))
        .find_map(|(known, value)| (known == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::thread;

    /// The text that a client gets from a manager that answers each line in turn with these bytes, and then hangs up or stays.
    fn talk(
        own: Option<&str>,
        answers: &'static [&'static [u8]],
        stays: bool,
    ) -> Result<String, String> {
        let (socket, manager) = UnixStream::pair().unwrap();
        let limit = Duration::from_millis(if stays { 200 } else { 20_000 });
        let client = PmiClient::new(socket, Instant::now() + limit);
        let manager = thread::spawn(move || {
            let mut lines = BufReader::new(manager.try_clone().unwrap());
            let mut heard = Vec::new();
            for answer in answers {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                heard.push(line);
                // A client that is content before it has read everything hangs up.
                let _ = (&manager).write_all(answer);
            }
            (heard, stays.then_some(manager))
        });
        let shared = client.share(own);
        drop(manager.join().unwrap());
        shared
    }

    // Recorded from Hydra 4.0.2.
    const INIT: &[u8] = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    const NAME: &[u8] = b"cmd=my_kvsname kvsname=kvs_14904_0_1569910448_vm\n";
    const PUT: &[u8] = b"cmd=put_result rc=0 msg=success\n";
    const OUT: &[u8] = b"cmd=barrier_out\n";
    const GOT: &[u8] = b"cmd=get_result rc=0 msg=success value=hello\n";
    const END: &[u8] = b"cmd=finalize_ack\n";

    #[test]
    fn a_recorded_conversation_shares_the_text_of_rank_0() {
        assert_eq!(
            talk(Some("hello"), &[INIT, NAME, PUT, OUT, END], false).unwrap(),
            "hello"
        );
        assert_eq!(
            talk(None, &[INIT, NAME, OUT, GOT, END], false).unwrap(),
            "hello"
        );
    }

    #[test]
    fn a_conversation_with_slurm_shares_it_too() {
        // Recorded from Slurm 22.05.8, srun --mpi=pmi2.
        const ANSWERS: &[&[u8]] = &[
            b"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
            b"cmd=my_kvsname rc=0 kvsname=3.0\n",
            b"cmd=barrier_out rc=0\n",
            b"cmd=get_result rc=0 value=hello\n",
            b"cmd=finalize_ack rc=0\n",
        ];
        assert_eq!(talk(None, ANSWERS, false).unwrap(), "hello");
    }

    #[test]
    fn what_hydra_says_of_an_unknown_key_is_shown() {
        const UNKNOWN: &[u8] = b"cmd=get_result rc=-1 msg=key_nope_not_found value=unknown\n";
        let error = talk(None, &[INIT, NAME, OUT, UNKNOWN], false).unwrap_err();
        assert!(error.contains("key_nope_not_found"), "{error}");
    }

    #[test]
    fn hostile_answers_are_errors_on_one_line() {
        const LONG: &[u8] = &[b'x'; 3 * LONGEST_LINE];
        let cases: [(&'static [&'static [u8]], &str); 6] = [
            (&[b"\xff\xfe\n"], "no text"),
            (&[LONG], "longer"),
            (&[b"cmd=barrier_out\n"], "barrier_out"),
            (&[b"\x1b[2Jcmd=\n"], "init"),
            (&[INIT, b"cmd=my_kvsname\n"], "kvsname"),
            (&[], "gone"),
        ];
        for (answers, expected) in cases {
            let error = talk(None, answers, false).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(['\n', '\x1b']), "{error:?}");
        }
    }

    #[test]
    fn a_manager_that_says_nothing_or_half_a_line_ends_with_the_deadline() {
        for answers in [&[][..], &[b"cmd=resp" as &[u8]][..]] {
            let error = talk(None, answers, true).unwrap_err();
            assert!(error.contains("deadline"), "{error}");
        }
    }
}
