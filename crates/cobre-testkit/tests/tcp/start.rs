//! Jobs over sockets as a user without a launcher starts them: how ranks find each other, what they
//! say when they do not, whom they let in, and what strangers at the door can do: nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::port::free_port;
use crate::sockets::{
    self, all_well, connections, errors, finish, is_open, run, skip, start, text, wait_for,
};
use cobre_comm::env::{
    TCP_BIND, TCP_COORDINATOR, TCP_JOB, TCP_LISTENER, TCP_PORT, TCP_SECRET_FILE, TCP_SIZE,
    TCP_TIMEOUT_SECS, TCP_TOPOLOGY,
};
use cobre_launch::{Launch, Output as LaunchOutput};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A rank that runs the contract which only needs the ranks to meet.
fn rank(port: u16, number: usize, size: usize) -> Command {
    contract_rank("identity", port, number, size)
}

fn contract_rank(contract: &str, port: u16, number: usize, size: usize) -> Command {
    let mut command = sockets::rank(env!("CARGO_BIN_EXE_rank"), port, number, size);
    command.arg(contract);
    command
}

/// Gives up soon, but not before others have started on a busy machine.
fn hasty(port: u16, number: usize, size: usize) -> Command {
    let mut command = rank(port, number, size);
    command.env(TCP_TIMEOUT_SECS, "3");
    command
}

/// A file with a secret, in a directory of its own.
struct Secret(tempfile::TempDir);

impl Secret {
    fn new(contents: &[u8], mode: u32) -> Self {
        let secret = Self(tempfile::tempdir().unwrap());
        fs::write(secret.path(), contents).unwrap();
        fs::set_permissions(secret.path(), fs::Permissions::from_mode(mode)).unwrap();
        secret
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("secret")
    }

    fn given_to(&self, mut command: Command) -> Command {
        command.env(TCP_SECRET_FILE, self.path());
        command
    }
}

#[test]
fn ranks_meet_in_any_order_and_nothing_listens_afterwards() {
    let port = free_port();
    let outputs = run((0..4).rev().map(|number| rank(port, number, 4)));
    all_well(&outputs);
    assert!(!is_open(port));
}

#[test]
fn a_port_can_be_used_again_at_once() {
    let port = free_port();
    for _ in 0..3 {
        all_well(&run((0..2).map(|number| rank(port, number, 2))));
    }
}

#[test]
fn rank_0_says_which_port_it_has_taken() {
    let mut first = start(rank(0, 0, 2).env_remove(TCP_PORT));
    let mut said = String::new();
    let stderr = first.stderr.as_mut().unwrap();
    while !said.ends_with('\n') {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let port = said.split(&format!("{TCP_PORT}=")).nth(1).unwrap();
    let port = port.split_whitespace().next().unwrap().parse().unwrap();
    all_well(&run([rank(port, 1, 2)]));
    all_well(&finish([first]));
}

#[test]
fn ranks_that_never_come_are_listed_by_all() {
    let port = free_port();
    let outputs = run([0, 2].map(|number| hasty(port, number, 4)));
    for text in errors(&outputs) {
        let said = text.contains("deadline: 1, 3; joined: 0, 2");
        assert!(said && text.contains(TCP_TIMEOUT_SECS), "{text}");
    }
}

#[test]
fn without_rank_0_the_others_say_so() {
    let text = &errors(&run([hasty(free_port(), 1, 2)]))[0];
    let said = text.contains("rank 0 was not found") && text.contains(TCP_COORDINATOR);
    // Not that the last attempt was too late.
    assert!(said && text.contains("Connection refused"), "{text}");
}

#[test]
fn a_second_process_with_one_rank_is_refused_and_the_job_goes_on() {
    let port = free_port();
    let first = start(&mut rank(port, 0, 3));
    wait_for("rank 0", || is_open(port));
    let [mut one, mut other] = [0, 1].map(|_| start(&mut rank(port, 1, 3)));
    // Whichever of the two comes later is refused.
    let ended = |twin: &mut Child| twin.try_wait().unwrap().is_some();
    wait_for("one is refused", || ended(&mut one) || ended(&mut other));
    let (refused, second) = if ended(&mut one) {
        (one, other)
    } else {
        (other, one)
    };
    let text = &errors(&finish([refused]))[0];
    assert!(text.contains("two processes are rank 1"), "{text}");
    let third = start(&mut rank(port, 2, 3));
    all_well(&finish([first, second, third]));
}

#[test]
fn ranks_that_were_told_different_sizes_say_both_on_both_sides() {
    let port = free_port();
    let outputs = run([hasty(port, 0, 3), hasty(port, 1, 4)]);
    let texts = errors(&outputs);
    let told = texts[1].contains("for 3 ranks") && texts[1].contains("for 4");
    assert!(told, "{}", texts[1]);
    let told = texts[0].contains("rank 1 came from 127.0.0.1") && texts[0].contains(TCP_SIZE);
    assert!(told, "{}", texts[0]);
}

#[test]
fn ranks_of_another_job_at_the_same_port_are_refused() {
    let port = free_port();
    let outputs = run([(0, "monday"), (1, "tuesday")].map(|(number, job)| {
        let mut command = hasty(port, number, 2);
        command.env(TCP_JOB, job);
        command
    }));
    for text in errors(&outputs) {
        assert!(text.contains(TCP_JOB), "{text}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = &errors(&run([hasty(port, 0, 2)]))[0];
    let named = text.contains(&format!("port {port}")) && text.contains(TCP_PORT);
    assert!(named && text.contains("use"), "{text}");
}

#[test]
fn a_secret_that_all_have_lets_all_in() {
    let (port, secret) = (free_port(), Secret::new(SECRET, 0o600));
    all_well(&run(
        (0..3).map(|number| secret.given_to(rank(port, number, 3)))
    ));
}

#[test]
fn a_rank_with_another_secret_or_none_is_kept_out() {
    let secrets = [
        Some(Secret::new(b"another secret, as long as that", 0o600)),
        None,
    ];
    for other in secrets {
        let (port, secret) = (free_port(), Secret::new(SECRET, 0o600));
        let stranger = match &other {
            Some(secret) => secret.given_to(hasty(port, 1, 2)),
            None => hasty(port, 1, 2),
        };
        let outputs = run([secret.given_to(hasty(port, 0, 2)), stranger]);
        let texts = errors(&outputs);
        assert!(texts[1].contains("another secret"), "{}", texts[1]);
        assert!(texts[0].contains("deadline: 1"), "{}", texts[0]);
    }
}

#[test]
fn a_secret_that_others_can_read_or_guess_is_refused() {
    let cases = [
        (SECRET, 0o644, "mode 644"),
        (SECRET, 0o660, "mode 660"),
        (b"short", 0o600, "5 bytes"),
        (b"", 0o600, "0 bytes"),
    ];
    for (contents, mode, word) in cases {
        let secret = Secret::new(contents, mode);
        let text = &errors(&run([secret.given_to(hasty(free_port(), 0, 2))]))[0];
        assert!(
            text.contains(word) && text.contains(TCP_SECRET_FILE),
            "{text}"
        );
        assert!(!text.contains("0123456789"), "the secret itself: {text}");
    }
    let mut command = hasty(free_port(), 0, 2);
    command.env(TCP_SECRET_FILE, "/nowhere/at/all");
    let text = &errors(&run([command]))[0];
    assert!(text.contains("/nowhere/at/all"), "{text}");
}

#[test]
fn a_pipe_is_no_secret_and_blocks_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("secret");
    let made = Command::new("mkfifo")
        .args(["-m", "600"])
        .arg(&pipe)
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut command = hasty(free_port(), 0, 2);
    command.env(TCP_SECRET_FILE, &pipe);
    let text = &errors(&run([command]))[0];
    assert!(text.contains("no plain file"), "{text}");
}

#[test]
fn a_socket_of_the_launcher_that_others_can_reach_needs_a_secret() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).unwrap();
    let number = listener.as_raw_fd();
    let metadata = fs::metadata(format!("/dev/fd/{number}")).unwrap();
    let mut command = hasty(listener.local_addr().unwrap().port(), 0, 2);
    let address = format!("{number}:{}:{}", metadata.dev(), metadata.ino());
    command.env(TCP_LISTENER, address);
    let text = &errors(&run([command]))[0];
    let said = text.contains("not this machine's loopback") && text.contains(TCP_LISTENER);
    assert!(said && text.contains(TCP_SECRET_FILE), "{text}");
}

#[test]
fn a_rank_that_came_early_waits_as_long_as_rank_0_does() {
    let port = free_port();
    let timed = |number, seconds| {
        let mut command = rank(port, number, 3);
        command.env(TCP_TIMEOUT_SECS, seconds);
        start(&mut command)
    };
    let early = timed(1, "4");
    std::thread::sleep(Duration::from_millis(500));
    let first = timed(0, "30");
    std::thread::sleep(Duration::from_millis(5500));
    let late = timed(2, "30");
    all_well(&finish([first, early, late]));
}

/// A process that holds the port before rank 0 does says no in every way that needs no secret.
#[test]
fn a_stranger_that_says_no_sends_no_rank_away() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let secret = Secret::new(SECRET, 0o600);
    let second = start(&mut secret.given_to(rank(port, 1, 2)));
    let answer = |code: u32| {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(b"cobretcp");
        bytes[8..12].copy_from_slice(&code.to_le_bytes());
        bytes
    };
    for code in 1..=7 {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        stream.write_all(&answer(code)).unwrap();
    }
    for code in [3, 6, 0] {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        stream.write_all(&answer(0)).unwrap();
        stream.read_exact(&mut [0; 32]).unwrap();
        stream.write_all(&answer(code)).unwrap();
    }
    drop(listener);
    let first = start(&mut secret.given_to(rank(port, 0, 2)));
    all_well(&finish([first, second]));
}

#[test]
fn a_door_behind_which_nobody_speaks_is_left_at_the_deadline() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let begin = Instant::now();
    let text = &errors(&run([hasty(port, 1, 2)]))[0];
    assert!(text.contains("rank 0 was not found"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{text}");
}

#[test]
fn a_rank_keeps_nothing_open_that_the_launcher_gave_it() {
    for ranks in [1, 2] {
        let outcome = Launch::new(env!("CARGO_BIN_EXE_victim"), ranks)
            .backend("tcp")
            .args(["barrier", "descriptors", "0"])
            .output(LaunchOutput::Capture { limit: 1 << 16 })
            .run()
            .unwrap();
        let said = text(&outcome.ranks[0].stderr);
        assert!(said.contains("open ") && outcome.cause.is_none(), "{said}");
        assert!(!said.contains("cobre-secret"), "{said}");
        // The two ends of the bell; with a second rank, a connection for data and one for the watch.
        let sockets = said.matches("open socket:").count();
        assert_eq!(sockets, 2 * ranks, "{said}");
    }
}

#[test]
fn a_rank_0_that_cannot_have_enough_descriptors_says_so() {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_rank");
    let mut first = sockets::rank("sh", port, 0, 6);
    first
        .args(["-c", &format!("ulimit -n 10; exec {program} identity")])
        .env(TCP_TIMEOUT_SECS, "6");
    let others = (1..6).map(|number| hasty(port, number, 6));
    let text = &errors(&run([first].into_iter().chain(others)))[0];
    let said = text.contains("Too many open files") && text.contains("ulimit");
    assert!(said, "{text}");
}

#[test]
fn without_a_secret_nothing_but_loopback_is_used() {
    for address in ["0.0.0.0", "10.1.2.3", "::"] {
        let mut host = hasty(free_port(), 0, 2);
        host.env(TCP_BIND, address);
        let mut guest = hasty(free_port(), 1, 2);
        guest.env(TCP_COORDINATOR, address);
        for text in errors(&run([host, guest])) {
            let said = text.contains("not this machine's loopback");
            assert!(said && text.contains(TCP_SECRET_FILE), "{text}");
        }
    }
}

#[test]
fn ranks_meet_over_ipv6() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        skip("this machine has no IPv6");
        return;
    }
    let port = free_port();
    all_well(&run((0..3).map(|number| {
        let mut command = contract_rank("sequence/mixed", port, number, 3);
        command.args(["--calls", "50"]);
        let coordinator = ["", "::1", "[::1]"][number];
        command
            .env(TCP_BIND, "::1")
            .env(TCP_COORDINATOR, coordinator);
        command
    })));
}

#[test]
fn a_rank_0_that_dies_while_ranks_gather_is_noticed_at_once() {
    let port = free_port();
    let mut first = start(&mut rank(port, 0, 3));
    let second = start(&mut rank(port, 1, 3));
    wait_for("rank 1", || connections(port) >= 1);
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    first.kill().unwrap();
    first.wait().unwrap();
    let text = &errors(&finish([second]))[0];
    assert!(text.contains("rank 0"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{text}");
}

#[test]
fn a_rank_that_dies_while_ranks_gather_is_named_by_all() {
    let port = free_port();
    let first = start(&mut rank(port, 0, 4));
    let second = start(&mut rank(port, 1, 4));
    let mut victim = start(&mut rank(port, 2, 4));
    wait_for("ranks 1 and 2", || connections(port) >= 2);
    std::thread::sleep(Duration::from_millis(1500));
    victim.kill().unwrap();
    let pid = victim.id();
    victim.wait().unwrap();
    for text in errors(&finish([first, second])) {
        let named = text.contains(&format!("rank 2 (pid {pid} on"));
        assert!(named && text.contains("is gone"), "{text}");
    }
}

#[test]
fn who_cannot_use_direct_connections_says_so_or_does_without() {
    // A rank that nobody can reach but rank 0 is made with network namespaces elsewhere; here, that
    // the setting of rank 0 counts and any other is none.
    let port = free_port();
    let outputs = run((0..3).map(|number| {
        let mut command = contract_rank("allgatherv/doubling", port, number, 3);
        command.args(["--calls", "50"]);
        command.env(TCP_TOPOLOGY, ["star", "ring", "auto"][number]);
        command
    }));
    all_well(&outputs);
}

/// Connects and sends this.
fn say(port: u16, bytes: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let _ = stream.write_all(bytes);
    Some(stream)
}

/// A hello of another process, recorded: magic, version, byte order, purpose, rank 1 of 3.
fn recorded_hello() -> Vec<u8> {
    let mut bytes = vec![0x5a; 64];
    bytes[..8].copy_from_slice(b"cobretcp");
    bytes[8..10].copy_from_slice(&3u16.to_le_bytes());
    bytes[10..12].copy_from_slice(&0x0102u16.to_ne_bytes());
    bytes[12..16].copy_from_slice(&[1, 0, 0, 0]);
    bytes[16..20].copy_from_slice(&1u32.to_le_bytes());
    bytes[20..24].copy_from_slice(&3u32.to_le_bytes());
    bytes[24..32].copy_from_slice(&0xcbf2_9ce4_8422_2325u64.to_le_bytes());
    bytes
}

/// Everything that was ever seen at an open port; what is returned must stay open.
fn harass(port: u16) -> Vec<TcpStream> {
    let mut open = Vec::new();
    let mut random = vec![0; 4096];
    fs::File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut random)
        .unwrap();
    open.extend(say(port, &random));
    open.extend(say(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    open.extend(say(port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"));
    // A handshake that was recorded, proof included, and one with a wrong proof.
    open.extend(say(port, &[recorded_hello(), vec![0x77; 32]].concat()));
    let mut wrong_rank = recorded_hello();
    wrong_rank[16..20].fill(0xff);
    open.extend(say(port, &[wrong_rank, vec![0; 32]].concat()));
    // Gone, with a reset, before it was accepted.
    for _ in 0..50 {
        if let Some(stream) = say(port, b"x") {
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    }
    open.extend((0..1000).filter_map(|_| say(port, b"")));
    open
}

fn memory_of(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    kibibytes.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn strangers_during_the_rendezvous_change_nothing() {
    let (port, secret) = (free_port(), Secret::new(SECRET, 0o600));
    let member = |number| {
        let mut command = contract_rank("sequence/mixed", port, number, 3);
        command.args(["--calls", "50"]);
        secret.given_to(command)
    };
    let first = start(&mut member(0));
    wait_for("rank 0", || is_open(port));
    let before = memory_of(&first);
    let crowd = harass(port);
    // One byte a second, for as long as the door is open.
    let dripping = std::thread::spawn(move || {
        let Some(mut stream) = say(port, b"c") else {
            return;
        };
        while is_open(port) && stream.write_all(b"o").is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let second = start(&mut member(1));
    let more = harass(port);
    let grown = memory_of(&first).saturating_sub(before);
    assert!(grown < 16 << 10, "rank 0 grew by {grown} KiB");
    let third = start(&mut member(2));
    all_well(&finish([first, second, third]));
    drop((crowd, more));
    dripping.join().unwrap();
}

#[test]
fn strangers_during_a_run_find_no_door() {
    let port = free_port();
    let victim = env!("CARGO_BIN_EXE_victim");
    let mut ranks: Vec<Child> = (0..3)
        .map(|number| {
            let mut command = sockets::rank(victim, port, number, 3);
            command.args(["allreduce", "outside", "1"]);
            start(&mut command)
        })
        .collect();
    let mut said = [0; 4];
    for child in &mut ranks {
        // Each says when it has met the others.
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut said)
            .unwrap();
        assert_eq!(&said, b"met\n");
    }
    assert!(!is_open(port));
    let listeners = listening_sockets(&ranks);
    assert!(listeners.is_empty(), "{listeners:?}");
    assert!(harass(port).is_empty());
    // It has gone on all the time: it ends because one of it is killed, and not before.
    ranks[1].kill().unwrap();
    let outputs = finish(ranks);
    for number in [0, 2] {
        let said = text(&outputs[number].stdout);
        assert!(
            said.contains("rank 1") && said.contains("is gone"),
            "{said}"
        );
    }
}

/// Ports on which these processes listen.
fn listening_sockets(ranks: &[Child]) -> Vec<String> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let inodes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields[3] == "0A").then(|| format!("socket:[{}]", fields[9]))
    });
    let inodes: Vec<String> = inodes.collect();
    let links = ranks.iter().flat_map(|child| {
        let entries = fs::read_dir(format!("/proc/{}/fd", child.id()))
            .into_iter()
            .flatten();
        entries
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
    });
    links
        .map(|link| link.display().to_string())
        .filter(|link| inodes.contains(link))
        .collect()
}

#[test]
fn a_rank_0_without_descriptors_to_spare_still_lets_its_ranks_in() {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_rank");
    let mut command = sockets::rank("sh", port, 0, 3);
    command.args(["-c", &format!("ulimit -n 16; exec {program} identity")]);
    let first = start(&mut command);
    wait_for("rank 0", || is_open(port));
    let crowd: Vec<_> = (0..200).filter_map(|_| say(port, b"")).collect();
    let others = [1, 2].map(|number| start(&mut rank(port, number, 3)));
    all_well(&finish([first].into_iter().chain(others)));
    drop(crowd);
}
