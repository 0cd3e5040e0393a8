//! The status board of a job on several hosts: what the ranks of every host do, as their agents tell it once a second, in memory
//! of the launcher that `cobre top` reads through `/proc`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use cobre_comm::{StatusOfRank, named_memory_of, terminal};
use rustix::fs::MemfdFlags;
use rustix::time::{ClockId, clock_gettime};

use super::frame::LocalJob;

/// The name of the memory, by which readers find it among the descriptors of a process.
const NAME: &str = "cobre-hosts";
/// The last line of a board that was read whole.
const END: &str = "end\n";
/// Bytes of the largest board that is read.
const LARGEST: u64 = 16 << 20;
/// Times that a board is read which is being written.
const ATTEMPTS: usize = 100;

/// The launcher's side.
pub(super) struct StatusBoard {
    /// `None` where there is no such memory: a job without it is only harder to look at.
    memory: Option<File>,
    hosts: Vec<String>,
    /// The lines of each host.
    lines: Vec<String>,
    /// The number of changes: a reader who finds two of them has met a change.
    edition: u64,
}

impl StatusBoard {
    pub(super) fn new(hosts: Vec<String>) -> Self {
        let memory = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC);
        Self {
            memory: memory.ok().map(File::from),
            lines: vec![String::new(); hosts.len()],
            hosts,
            edition: 0,
        }
    }

    /// Shows what a host has told.
    pub(super) fn show(&mut self, host: usize, job: &LocalJob, ranks: &[String]) {
        let name = terminal::one_line(&self.hosts[host]);
        let word = |text: &str| terminal::one_line(text).replace(' ', "_");
        let (machine, address) = (word(&job.machine), word(&job.address));
        let mut lines = format!("host {} {machine} {address} {name}\n", now().as_millis());
        for words in ranks
            .iter()
            .filter_map(|words| StatusOfRank::from_words(words))
        {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "rank {}", words.to_words());
        }
        self.lines[host] = lines;
        self.edition += 1;
        let Some(memory) = &self.memory else {
            return;
        };
        let edition = format!("edition {}\n", self.edition);
        let text = format!("{edition}{}{edition}{END}", self.lines.concat());
        // A write that fails leaves a board that no reader takes for whole.
        let _ = memory.write_all_at(text.as_bytes(), 0);
        let _ = memory.set_len(text.len() as u64);
    }
}

/// The ranks of one host of a job, as its launcher knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusOfHost {
    /// The name of the host in the list of the job.
    pub host: String,
    /// The machine, by a name of its own since it was started.
    pub machine: String,
    /// The address of the report pipe of its ranks, which tells them apart on that machine.
    pub address: String,
    /// The time since the host has told it.
    pub age: Duration,
    /// The ranks, with the times of that moment.
    pub ranks: Vec<StatusOfRank>,
}

impl StatusOfHost {
    /// The jobs on several hosts that a process of this machine is the launcher of: their hosts, by a number of the job.
    pub fn of_launcher(pid: u32) -> Vec<(u64, Vec<Self>)> {
        let boards = named_memory_of(pid, NAME).into_iter();
        let number = |board: &File| board.metadata().map_or(0, |found| found.ino());
        boards
            .filter_map(|board| Some((number(&board), read(&board)?)))
            .collect()
    }
}

/// A whole board.
fn read(board: &File) -> Option<Vec<StatusOfHost>> {
    (0..ATTEMPTS).find_map(|_| {
        let mut bytes = vec![0; usize::try_from(board.metadata().ok()?.len().min(LARGEST)).ok()?];
        board.read_exact_at(&mut bytes, 0).ok()?;
        parse(std::str::from_utf8(&bytes).ok()?, now())
    })
}

/// The hosts of a board; `None` if it is not whole.
fn parse(text: &str, now: Duration) -> Option<Vec<StatusOfHost>> {
    let (edition, rest) = text.split_once('\n')?;
    let rest = rest.strip_suffix(END)?.strip_suffix('\n')?;
    let lines = rest
        .strip_suffix(edition)
        .filter(|_| edition.starts_with("edition "))?;
    let mut hosts = Vec::<StatusOfHost>::new();
    for line in lines.lines() {
        if let Some(words) = line.strip_prefix("rank ") {
            hosts
                .last_mut()?
                .ranks
                .push(StatusOfRank::from_words(words)?);
            continue;
        }
        let mut words = line.strip_prefix("host ")?.splitn(4, ' ');
        let told = Duration::from_millis(words.next()?.parse().ok()?);
        hosts.push(StatusOfHost {
            machine: words.next()?.to_owned(),
            address: words.next()?.to_owned(),
            host: words.next()?.to_owned(),
            age: now.saturating_sub(told),
            ranks: Vec::new(),
        });
    }
    Some(hosts)
}

/// The machine that this process runs on, by a name of its own since it was started; nothing if it has none.
pub fn this_machine() -> String {
    let mut name = String::new();
    if let Ok(mut file) = fs::File::open("/proc/sys/kernel/random/boot_id") {
        // Without a name no ranks are taken for those of this machine.
        let _ = file.read_to_string(&mut name);
    }
    name.trim().to_owned()
}

/// The time by a clock that all processes of this machine share.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> LocalJob {
        LocalJob {
            machine: "m-1".to_owned(),
            address: "5:12:4711".to_owned(),
        }
    }

    #[test]
    fn readers_see_what_hosts_have_told() {
        let mut board = StatusBoard::new(vec!["a".to_owned(), "me@b c".to_owned()]);
        let words = |rank: usize| format!("17 {rank} 2 9 2 1500 tcp");
        board.show(1, &job(), &[words(1), "nonsense".to_owned()]);
        board.show(0, &job(), &[words(0)]);
        // Shorter than before.
        board.show(1, &job(), &[]);
        board.show(1, &job(), &[words(1)]);
        let all = StatusOfHost::of_launcher(std::process::id());
        let own =
            |(_, hosts): &&(u64, Vec<StatusOfHost>)| hosts.iter().any(|host| host.host == "me@b c");
        let hosts = &all.iter().find(own).expect("a board").1;
        let names: Vec<&str> = hosts.iter().map(|host| host.host.as_str()).collect();
        assert_eq!(names, ["a", "me@b c"]);
        assert_eq!(hosts[1].ranks[0].to_words(), words(1));
        assert_eq!((hosts[0].ranks.len(), hosts[1].ranks.len()), (1, 1));
        assert_eq!(hosts[0].address, job().address);
        assert!(hosts[0].age < Duration::from_secs(60));
    }

    #[test]
    fn a_board_that_is_being_written_is_not_read() {
        let whole = "edition 2\nhost 5 m 1:2:3 a\nrank 17 0 2 9 2 1500 tcp\nedition 2\nend\n";
        let now = Duration::from_millis(7);
        let hosts = parse(whole, now).unwrap();
        assert_eq!(hosts[0].age, Duration::from_millis(2));
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut], now), None, "{cut}");
        }
        assert_eq!(
            parse(&whole.replacen("edition 2", "edition 3", 1), now),
            None
        );
        assert_eq!(parse("", now), None);
    }
}
