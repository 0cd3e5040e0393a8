//! Many sockets at once. The kernel says which of them have news, so a look costs one system call and not one for each;
//! what had nothing to read, or no room, is left alone until it has news.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::connection::DataLink;
use super::system::{self, EventQueue, PollSource};

/// The data connections of a rank that has many. Atomic only to be shared between threads of this process, of which one
/// at a time is in a collective.
#[derive(Debug)]
pub(super) struct Readiness {
    queue: EventQueue,
    /// By rank: false from the read that found nothing, or the write that found no room, to the next news.
    readable: Vec<AtomicBool>,
    writable: Vec<AtomicBool>,
}

impl Readiness {
    /// `None` with few connections: to try them all costs less than to ask which has news.
    pub(super) fn new(links: &[Option<DataLink>]) -> io::Result<Option<Self>> {
        if links.iter().flatten().count() < system::many_sockets() {
            return Ok(None);
        }
        Self::of(links).map(Some)
    }

    fn of(links: &[Option<DataLink>]) -> io::Result<Self> {
        let queue = EventQueue::new()?;
        for (rank, link) in links.iter().enumerate() {
            if let Some(link) = link {
                queue.add(PollSource::Read(&link.socket), rank)?;
            }
        }
        let all = || links.iter().map(|_| AtomicBool::new(true)).collect();
        Ok(Self {
            queue,
            readable: all(),
            writable: all(),
        })
    }

    pub(super) fn may_read(&self, rank: usize) -> bool {
        self.readable[rank].load(Relaxed)
    }

    pub(super) fn may_write(&self, rank: usize) -> bool {
        self.writable[rank].load(Relaxed)
    }

    /// Notes that there was nothing to read.
    pub(super) fn note_empty(&self, rank: usize) {
        self.readable[rank].store(false, Relaxed);
    }

    /// Notes that there was no room.
    pub(super) fn note_full(&self, rank: usize) {
        self.writable[rank].store(false, Relaxed);
    }

    /// Takes the news that are there, or waits for some, at most for `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        self.queue.wait(limit, |event| {
            if event.is_readable {
                self.readable[event.number].store(true, Relaxed);
            }
            if event.is_writable {
                self.writable[event.number].store(true, Relaxed);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;

    use super::*;
    use crate::backends::tcp::channel::Channel;
    use crate::backends::tcp::connection::Connection;
    use crate::backends::tcp::system::{TcpListener, TcpStream};

    const LONG: Duration = Duration::from_secs(60);

    /// Links to ranks 1 to `count`, and the other ends.
    fn links(count: usize) -> (Vec<Option<DataLink>>, Vec<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut links = vec![None];
        let mut others = Vec::new();
        for _ in 0..count {
            others.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let channel = Channel::plain();
            links.push(Some(DataLink::new(Connection { stream, channel })));
        }
        (links, others)
    }

    fn socket(links: &[Option<DataLink>], rank: usize) -> &TcpStream {
        &links[rank].as_ref().unwrap().socket
    }

    /// Waits until the ranks are exactly these that may be read.
    fn await_readable(readiness: &Readiness, expected: &[usize]) {
        let begin = std::time::Instant::now();
        loop {
            let found: Vec<usize> = (1..readiness.readable.len())
                .filter(|&rank| readiness.may_read(rank))
                .collect();
            if found == expected {
                return;
            }
            assert!(begin.elapsed() < LONG, "{found:?}, not {expected:?}");
            readiness.wait(Duration::from_millis(10));
        }
    }

    #[test]
    fn few_sockets_have_no_queue() {
        let (few, _others) = links(2);
        assert!(Readiness::new(&few).unwrap().is_none());
        let (many, _others) = links(system::many_sockets());
        assert!(Readiness::new(&many).unwrap().is_some());
    }

    #[test]
    fn only_sockets_with_news_are_read() {
        let (links, mut others) = links(3);
        let readiness = Readiness::of(&links).unwrap();
        await_readable(&readiness, &[1, 2, 3]);
        (1..=3).for_each(|rank| readiness.note_empty(rank));
        // What the kernel tells of a new socket is that it has room.
        readiness.wait(Duration::ZERO);
        await_readable(&readiness, &[]);
        others[1].write_all(&[7]).unwrap();
        await_readable(&readiness, &[2]);
        let mut byte = [0];
        socket(&links, 2).read_exact(&mut byte).unwrap();
        readiness.note_empty(2);
        drop(others.pop());
        await_readable(&readiness, &[3]);
    }

    #[test]
    fn a_full_socket_is_written_again_when_there_is_room() {
        let (links, mut others) = links(2);
        let readiness = Readiness::of(&links).unwrap();
        let begin = std::time::Instant::now();
        // Until the buffers of both sides are full.
        while readiness.may_write(1) {
            assert!(begin.elapsed() < LONG);
            while socket(&links, 1).write(&[0; 4096]).is_ok() {}
            readiness.note_full(1);
            readiness.wait(Duration::from_millis(300));
        }
        assert!(readiness.may_write(2));
        let mut bytes = vec![0; 65_536];
        while !readiness.may_write(1) {
            assert!(begin.elapsed() < LONG);
            assert!(others[0].read(&mut bytes).unwrap() > 0);
            readiness.wait(Duration::from_millis(1));
        }
    }
}
