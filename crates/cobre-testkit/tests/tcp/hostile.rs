//! Bytes that are damaged between ranks: never a wrong result, never a rank that hangs.
//!
//! `COBRE_HOSTILE=5000 COBRE_HOSTILE_SEED=7 cargo test --release -p cobre-testkit --test tcp hostile`
//! runs so many jobs from this seed; a job that breaks the promise is printed with its number.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use cobre_comm::env::{TCP_PORT, TCP_PROTECTION, TCP_TIMEOUT_SECS, TCP_TOPOLOGY};
use cobre_testkit::random::Random;

use crate::port::free_port;
use crate::proxy::{Attack, Damage, Proxy, Purpose, Way};
use crate::sockets::{self, start, text};

/// Jobs in a run without `COBRE_HOSTILE`.
const JOBS: u64 = 36;
/// Jobs at one time; most of them wait for a moment when lost bytes count as lost.
const AT_ONCE: usize = 4;
/// No job takes longer: the rendezvous ends after a minute, and lost bytes are known after 12 s.
const LIMIT: Duration = Duration::from_secs(120);

const CONTRACTS: [(&str, &str); 4] = [
    ("sequence/mixed", "300"),
    ("sequence/large-and-small", "2000"),
    ("sequence/back-to-back", "300"),
    ("allgatherv/doubling", "100"),
];

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With the right results on all ranks.
    Right,
    /// With an error.
    Error,
    /// With a wrong result, a panic of the library or an end that no rank explains.
    Broken,
    Hung,
}

/// The library that leads the connections of a rank to a proxy, made of `redirect.c`.
static REDIRECT: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tcp/redirect.c");
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("redirect.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
    let made = compile.arg(&library).arg(source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    library
});

/// Lets the connections of a rank pass through `proxy`, whose attack is on one of them: those to rank 0, which listens
/// on `port`, or those to all others.
fn lead_through(command: &mut Command, proxy: &Proxy, port: u16, attack: Attack) {
    if attack.target == 0 {
        command.env(TCP_PORT, proxy.port.to_string());
        return;
    }
    command
        .env("LD_PRELOAD", &*REDIRECT)
        .env("TEST_PROXY_PORT", proxy.port.to_string())
        .env("TEST_SPARED_PORT", port.to_string());
}

/// Runs the ranks of a contract with a proxy between them; what they said.
fn run(
    attack: Attack,
    size: usize,
    settings: &[(&str, &str)],
    contract: (&str, &str),
) -> (End, bool, Vec<String>) {
    let port = free_port();
    let proxy = Proxy::start((attack.target == 0).then_some(port), attack);
    let mut children: Vec<Child> = (0..size)
        .map(|number| {
            let program = env!("CARGO_BIN_EXE_rank");
            let mut command = sockets::rank(program, port, number, size);
            command.args([contract.0, "--calls", contract.1]);
            if number > 0 {
                lead_through(&mut command, &proxy, port, attack);
            }
            command.env_remove(TCP_TIMEOUT_SECS);
            command.envs(settings.iter().copied());
            start(&mut command)
        })
        .collect();
    let begin = Instant::now();
    let is_over = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
    let mut hung = false;
    while !children.iter_mut().all(is_over) {
        if begin.elapsed() > LIMIT {
            hung = true;
            for child in &mut children {
                let _ = child.kill();
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let struck = proxy.struck.load(SeqCst);
    let outputs = sockets::finish(children);
    let told: Vec<String> = outputs.iter().map(|output| text(&output.stderr)).collect();
    let explained = |text: &String| {
        let error = text.contains("expected success, found: ") || text.contains("could not start");
        error && !text.contains("expected bits") && !text.contains("cobre-comm/src")
    };
    let mut ends = outputs.iter().zip(&told);
    let end = if hung {
        End::Hung
    } else if outputs.iter().all(|output| output.status.success()) {
        End::Right
    } else if ends.all(|(output, text)| output.status.success() || explained(text)) {
        End::Error
    } else {
        End::Broken
    };
    (end, struck, told)
}

/// The job with this number.
fn job(seed: u64, number: u64) -> (String, (End, bool, Vec<String>)) {
    let mut random = Random::new(&[seed, number]);
    let size = 2 + random.below(3);
    let mut topology = *random.pick(&["auto", "star"]);
    let contract = *random.pick(&CONTRACTS);
    let mut attack = Attack::random(&mut random, size);
    if size > 2 && random.below(2) == 0 {
        (attack, topology) = (Attack::between_workers(&mut random, size), "ring");
    }
    let protection = *random.pick(&["authentication", "encryption"]);
    let described = format!(
        "job {number} of seed {seed}: {size} ranks, {topology}, {protection}, {contract:?}, {attack:?}"
    );
    (
        described,
        run(
            attack,
            size,
            &[(TCP_TOPOLOGY, topology), (TCP_PROTECTION, protection)],
            contract,
        ),
    )
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect(variable))
}

#[test]
fn damaged_bytes_are_an_error_or_change_nothing() {
    let (jobs, seed) = (
        number("COBRE_HOSTILE", JOBS),
        number("COBRE_HOSTILE_SEED", 1),
    );
    let next = AtomicU64::new(0);
    let (counts, broken) = (Mutex::new([0u64; 3]), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, SeqCst);
                    if number >= jobs {
                        return;
                    }
                    let (described, (end, struck, told)) = job(seed, number);
                    counts.lock().unwrap()[match (end, struck) {
                        (End::Error, _) => 0,
                        (_, true) => 1,
                        (_, false) => 2,
                    }] += 1;
                    if matches!(end, End::Broken | End::Hung) || end == End::Error && !struck {
                        let told = told.join("\n  ");
                        broken
                            .lock()
                            .unwrap()
                            .push(format!("{end:?}: {described}\n  {told}"));
                    }
                }
            });
        }
    });
    let [failed, unharmed, untouched] = counts.into_inner().unwrap();
    println!(
        "hostile tcp: {jobs} jobs of seed {seed}: {failed} ended with an error, {unharmed} were \
         damaged and right, {untouched} ended before the damage"
    );
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The first payload byte of the first frame that rank 1 sends.
fn flip(after: usize) -> Attack {
    Attack {
        rank: 1,
        target: 0,
        purpose: Purpose::Data,
        way: Way::ToTarget,
        after,
        damage: Damage::Flip(1),
    }
}

#[test]
fn a_changed_byte_names_both_ranks_on_both() {
    let contract = ("sequence/back-to-back", "300");
    for protection in ["authentication", "encryption"] {
        let settings = [(TCP_PROTECTION, protection)];
        let (end, struck, told) = run(flip(96 + 136 + 3), 2, &settings, contract);
        assert!(end == End::Error && struck, "{told:?}");
        for text in told {
            let named =
                text.contains("reading on rank 0 (pid ") && text.contains("from rank 1 (pid ");
            assert!(named && text.contains("fails authentication"), "{text}");
        }
    }
}

/// The same on the connection of two ranks that are not the first, by which large messages go.
#[test]
fn a_changed_byte_between_workers_names_both_on_all() {
    let attack = Attack {
        rank: 2,
        target: 1,
        ..flip(96 + 136 + 3)
    };
    let contract = ("sequence/large-and-small", "2000");
    let (end, struck, told) = run(attack, 3, &[(TCP_TOPOLOGY, "ring")], contract);
    assert!(end == End::Error && struck, "{end:?} {told:?}");
    for text in told {
        let named = text.contains("rank 1 (pid ") && text.contains("rank 2 (pid ");
        assert!(named && text.contains("fails authentication"), "{text}");
    }
}

/// That the kit can see a wrong result at all.
#[test]
fn a_changed_byte_without_protection_is_a_wrong_result() {
    let contract = ("sequence/back-to-back", "300");
    let unprotected = [(TCP_PROTECTION, "none")];
    let (end, struck, told) = run(flip(96 + 120 + 3), 2, &unprotected, contract);
    assert!(end == End::Broken && struck, "{told:?}");
    assert!(told[0].contains("expected bits"), "{told:?}");
}

#[test]
fn the_rank_that_asks_for_protection_gets_it() {
    for stronger in ["authentication", "encryption"] {
        it_gets_it(stronger);
    }
}

fn it_gets_it(stronger: &str) {
    let port = free_port();
    let proxy = Proxy::start(Some(port), flip(96 + 136 + 3));
    let ranks = ["none", stronger].into_iter().enumerate();
    let outputs = sockets::run(ranks.map(|(number, protection)| {
        let program = env!("CARGO_BIN_EXE_rank");
        let port = [port, proxy.port][number];
        let mut command = sockets::rank(program, port, number, 2);
        command.args(["sequence/back-to-back", "--calls", "300"]);
        command.env(TCP_PROTECTION, protection);
        command
    }));
    for text in sockets::errors(&outputs) {
        assert!(text.contains("fails authentication"), "{text}");
    }
}

#[test]
fn bytes_that_are_lost_between_living_ranks_end_the_job() {
    let attack = Attack {
        damage: Damage::Drop(136 + 24),
        way: Way::FromTarget,
        ..flip(96 + 10 * (136 + 24))
    };
    let contract = ("sequence/back-to-back", "300");
    // With three ranks, rank 0 answers rank 1 and then waits for it.
    let lost = "160 bytes that were sent do not arrive";
    // While the ranks measure which way is faster.
    let lost_at_start = " bytes that were sent do not arrive";
    for (topology, expected) in [("star", lost), ("auto", lost_at_start)] {
        let (end, struck, told) = run(attack, 3, &[(TCP_TOPOLOGY, topology)], contract);
        assert!(end == End::Error && struck, "{told:?}");
        for text in told {
            assert!(text.contains("from rank 0 to rank 1"), "{text}");
            assert!(text.contains(expected), "{text}");
        }
    }
}
