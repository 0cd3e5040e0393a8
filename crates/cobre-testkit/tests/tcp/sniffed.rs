//! What somebody reads who listens on the network between two hosts.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use cobre_comm::env::TCP_PROTECTION;
use cobre_testkit::hosts::HOSTS_IN_A_ROW;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::network::{Network, SECRET};
use crate::sockets::{errors, finish, text};

/// Bytes that the kernel keeps until they are read.
const BUFFER: usize = 256 << 20;
/// Longer than any packet between namespaces, which nothing cuts to the size of a wire.
const LONGEST_PACKET: usize = 1 << 18;
/// Nothing crosses for so long after the ranks have ended.
const SILENCE: Duration = Duration::from_millis(100);

/// One direction of a connection: addresses and ports of both sides.
type Way = [u8; 12];

/// The parts of one direction, by their place after the first byte.
#[derive(Default)]
struct Stream {
    first: u32,
    parts: BTreeMap<u32, Vec<u8>>,
}

impl Stream {
    /// All bytes in their order. Nothing may be missing: it would count as unseen.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (&place, part) in &self.parts {
            let known = bytes.len().checked_sub(place as usize);
            let known = known.expect("the sniffer has missed a packet");
            bytes.extend(part.iter().skip(known));
        }
        bytes
    }
}

/// Packets of TCP that cross a router.
struct Sniffer {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<HashMap<Way, Stream>>,
}

impl Sniffer {
    fn start(network: &Network) -> Self {
        let namespace = File::open(format!("/run/netns/{}", network.router())).unwrap();
        // A socket stays in the namespace of the thread that makes it.
        let made = std::thread::spawn(move || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).unwrap();
            let all = Some(eth::ALL);
            socket_with(
                AddressFamily::PACKET,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                all,
            )
            .unwrap()
        });
        let socket: OwnedFd = made.join().unwrap();
        set_socket_recv_buffer_size_force(&socket, BUFFER).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(SILENCE)).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let stop = ended.clone();
        let thread = std::thread::spawn(move || listen(&socket, &stop));
        Self { ended, thread }
    }

    /// What has crossed, each direction of each connection by itself.
    fn finish(self) -> Vec<Vec<u8>> {
        self.ended.store(true, SeqCst);
        let streams = self.thread.join().unwrap();
        streams.values().map(Stream::bytes).collect()
    }
}

/// Takes packets until nothing comes and no rank is left.
fn listen(socket: &OwnedFd, ended: &AtomicBool) -> HashMap<Way, Stream> {
    let mut streams = HashMap::<Way, Stream>::new();
    let mut packet = vec![0; LONGEST_PACKET];
    loop {
        // Before the wait: what came while the last rank ended is still taken.
        let is_over = ended.load(SeqCst);
        match recv(socket, &mut packet[..], RecvFlags::empty()) {
            Ok((length, _)) => drop(take(&packet[..length], &mut streams)),
            Err(Errno::AGAIN) if is_over => return streams,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Adds a frame of Ethernet to its stream, if it is one of TCP over IPv4.
fn take(frame: &[u8], streams: &mut HashMap<Way, Stream>) -> Option<()> {
    let (head, packet) = frame.split_at_checked(14)?;
    if head[12..] != [8, 0] || packet.get(9) != Some(&6) {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let segment = &packet[..length][4 * usize::from(packet[0] & 15)..];
    let way = [&packet[12..20], &segment[..4]].concat();
    let number = u32::from_be_bytes(segment[4..8].try_into().ok()?);
    let stream = streams.entry(way.try_into().ok()?).or_default();
    let begins = segment[13] & 2 != 0;
    if begins {
        stream.first = number.wrapping_add(1);
    }
    let data = &segment[4 * usize::from(segment[12] >> 4)..];
    if !data.is_empty() {
        let place = number.wrapping_sub(stream.first);
        let known = stream.parts.get(&place).map_or(0, Vec::len);
        if known < data.len() {
            stream.parts.insert(place, data.to_vec());
        }
    }
    Some(())
}

/// Calls of the ranks, and what these send in them: large messages and small ones.
fn calls() -> [(&'static str, Vec<u8>); 2] {
    let numbers = [1.0f64; 4].map(f64::to_le_bytes).concat();
    [("allgatherv", vec![1; 64]), ("allreduce", numbers)]
}

/// The reason that a rank gives up for at the end.
const REASON: &str = "no more of this";

/// Runs `calls` on two ranks on each of two hosts until one gives up; what crosses the network between them.
fn sniff(network: &Network, calls: &str, protection: &str) -> Vec<Vec<u8>> {
    let sniffer = Sniffer::start(network);
    let program = [env!("CARGO_BIN_EXE_victim"), calls, "abort", "1", "20000"];
    let settings = [(TCP_PROTECTION, protection)];
    let ranks = network.two_by_two(HOSTS_IN_A_ROW, &program, &settings);
    let outputs: Vec<Output> = finish(ranks);
    for output in &outputs {
        assert!(
            text(&output.stdout).contains(REASON),
            "{calls}: {:?}",
            errors(&outputs)
        );
    }
    sniffer.finish()
}

fn holds(streams: &[Vec<u8>], bytes: &[u8]) -> bool {
    let mut windows = streams
        .iter()
        .flat_map(|stream| stream.windows(bytes.len()));
    windows.any(|window| window == bytes)
}

#[test]
fn encrypted_bytes_between_hosts_say_nothing() {
    let Some(network) = Network::new() else {
        return;
    };
    for (calls, sent) in calls() {
        for protection in ["authentication", "encryption"] {
            let seen = sniff(&network, calls, protection);
            let context = format!("{calls}, {protection}");
            assert!(!holds(&seen, SECRET.as_bytes()), "{context}");
            // That the sniffer would see them: what is authenticated alone is not hidden.
            let is_plain = protection != "encryption";
            assert_eq!(holds(&seen, &sent), is_plain, "{context}");
            assert_eq!(holds(&seen, REASON.as_bytes()), is_plain, "{context}");
        }
    }
}
