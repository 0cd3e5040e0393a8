//! Shared-memory jobs as a user without a launcher starts them: real processes with their settings
//! in the environment. How they find each other, what they say when they do not, and what each
//! setting does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cobre_comm::env::fresh_shm_name;
use cobre_comm::env::{COMM_BACKEND, JOB, SHM_NAME, SHM_PREFIX, SHM_RANK, SHM_SIZE};
use cobre_comm::env::{SHM_BUFFER_BYTES, SHM_JOB, SHM_REGIONS, SHM_TIMEOUT_SECS, SHM_WAIT};
use cobre_testkit::random::Random;

const SHM: &str = "/dev/shm";

/// A rank of the job called `name`, running the contract that only needs the ranks to meet.
fn rank(name: &str, rank: usize, size: usize) -> Command {
    contract_rank("identity", name, rank, size)
}

fn contract_rank(contract: &str, name: &str, rank: usize, size: usize) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rank"));
    for variable in JOB {
        command.env_remove(variable);
    }
    command
        .arg(contract)
        .env(COMM_BACKEND, "shm")
        .env(SHM_NAME, name)
        .env(SHM_RANK, rank.to_string())
        .env(SHM_SIZE, size.to_string())
        .env(SHM_TIMEOUT_SECS, "60")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Gives up soon, but not before others have started on a busy machine.
fn hasty(name: &str, number: usize, size: usize) -> Command {
    let mut command = rank(name, number, size);
    command.env(SHM_TIMEOUT_SECS, "3");
    command
}

/// Starts all at once and waits for each.
fn run(commands: impl IntoIterator<Item = Command>) -> Vec<Output> {
    let children: Vec<Child> = commands
        .into_iter()
        .map(|mut command| {
            command
                .spawn()
                .expect("the rank program is built with the tests")
        })
        .collect();
    children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect()
}

fn errors(outputs: &[Output]) -> Vec<String> {
    let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    outputs.iter().map(text).collect()
}

/// The object that `name` stands for.
fn object(name: &str) -> PathBuf {
    PathBuf::from(SHM).join(name.trim_start_matches('/'))
}

/// The version of segments; earlier ones are swept too.
const VERSION: u64 = 3;

/// The segment of a job that was killed while its ranks were gathering: magic, version, the rest.
fn segment(version: u64, rest: usize) -> Vec<u8> {
    let mut bytes = b"cobreshm".to_vec();
    bytes.extend(version.to_ne_bytes());
    bytes.resize(bytes.len() + rest, 0);
    bytes
}

/// In CI a test that cannot run is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "skipped in CI: {reason}");
    println!("skipped: {reason}");
}

/// A file under the job's name, removed when dropped.
struct Squatter(PathBuf);

impl Squatter {
    fn new(name: &str, contents: &[u8], mode: u32) -> Self {
        let path = object(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Self(path)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ranks_meet_in_any_order_and_leave_no_name() {
    for _ in 0..10 {
        let name = fresh_shm_name();
        let outputs = run((0..4).rev().map(|number| rank(&name, number, 4)));
        assert!(
            outputs.iter().all(|output| output.status.success()),
            "{:?}",
            errors(&outputs)
        );
        assert!(!object(&name).exists());
    }
}

/// Contracts on three ranks with one more setting.
fn keeps_contracts_with(variable: &str, value: &str, contracts: &[&str]) {
    for contract in contracts {
        let name = fresh_shm_name();
        let scratch = tempfile::tempdir().unwrap();
        let outputs = run((0..3).map(|number| {
            let mut command = contract_rank(contract, &name, number, 3);
            command
                .args(["--calls", "300", "--seed", "7", "--scratch"])
                .arg(scratch.path())
                .env(variable, value);
            command
        }));
        let kept = outputs.iter().all(|output| output.status.success());
        assert!(kept, "{contract}: {:?}", errors(&outputs));
    }
}

#[test]
fn every_way_of_waiting_works_where_there_is_no_futex() {
    keeps_contracts_with(SHM_WAIT, "portable", &WAITING);
}

#[test]
fn messages_larger_than_the_smallest_buffer_pass_through_it() {
    keeps_contracts_with(SHM_BUFFER_BYTES, "65536", &WAITING);
}

#[test]
fn regions_by_name_keep_every_promise_of_regions() {
    let contracts = [
        "region/leader-large",
        "region/one-copy-per-node",
        "region/partitioned-shapes",
        "region/epochs",
        "region/begin-zeroed",
        "region/empty",
        "region/several-at-once",
        "region/dropped-in-any-order",
        "region/thousands",
        "region/more-than-memory",
        "split/own-sequence",
        "split/beside-the-parent",
        "program",
    ];
    keeps_contracts_with(SHM_REGIONS, "named", &contracts);
}

/// Contracts that wait in every way there is.
const WAITING: [&str; 6] = [
    "barrier/waits-for-the-late",
    "sequence/mixed",
    "sequence/large-and-small",
    "allgatherv/borders",
    "broadcast/large",
    "program",
];

#[test]
fn ranks_that_never_come_are_listed_and_nothing_is_left() {
    let name = fresh_shm_name();
    let outputs = run([0, 2].map(|number| hasty(&name, number, 4)));
    for text in errors(&outputs) {
        assert!(
            text.contains("1, 3") && text.contains(SHM_TIMEOUT_SECS),
            "{text}"
        );
    }
    assert!(!object(&name).exists());
}

#[test]
fn without_rank_0_the_others_say_so() {
    let name = fresh_shm_name();
    let outputs = run([hasty(&name, 1, 2)]);
    let text = &errors(&outputs)[0];
    assert!(text.contains("rank 0 has not created it"), "{text}");
}

#[test]
fn a_rank_0_that_dies_while_ranks_gather_is_noticed_at_once() {
    let name = fresh_shm_name();
    let mut first = rank(&name, 0, 3).spawn().unwrap();
    let second = rank(&name, 1, 3).spawn().unwrap();
    wait_for("the segment", || object(&name).exists());
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    first.kill().unwrap();
    first.wait().unwrap();
    let output = second.wait_with_output().unwrap();
    let text = &errors(&[output])[0];
    assert!(
        text.contains("rank 0") && (text.contains("ended") || text.contains("gone")),
        "{text}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "it waited for the deadline"
    );
    // What it left is swept by the next job's start, be it this one or another test's.
    let next = fresh_shm_name();
    assert!(run([rank(&next, 0, 1)])[0].status.success());
    wait_for("the sweep", || !object(&name).exists());
}

#[test]
fn two_processes_with_one_rank_are_refused_by_all() {
    let name = fresh_shm_name();
    let outputs = run([0, 1, 1].map(|number| rank(&name, number, 3)));
    for text in errors(&outputs) {
        assert!(text.contains("two processes are rank 1"), "{text}");
    }
    assert!(!object(&name).exists());
}

#[test]
fn ranks_that_were_told_different_sizes_say_both() {
    let name = fresh_shm_name();
    let outputs = run([hasty(&name, 0, 3), hasty(&name, 1, 4)]);
    let text = &errors(&outputs)[1];
    assert!(
        text.contains("for 3 ranks") && text.contains("for 4"),
        "{text}"
    );
}

#[test]
fn a_name_that_a_live_job_holds_is_refused_and_that_job_goes_on() {
    let name = fresh_shm_name();
    let first = rank(&name, 0, 2).spawn().unwrap();
    wait_for("the segment", || object(&name).exists());
    let squatter = run([hasty(&name, 0, 2)]);
    let text = &errors(&squatter)[0];
    assert!(text.contains("taken by a job that is running"), "{text}");
    let second = run([rank(&name, 1, 2)]);
    assert!(second[0].status.success(), "{:?}", errors(&second));
    assert!(first.wait_with_output().unwrap().status.success());
}

#[test]
fn what_a_dead_job_left_under_the_name_is_replaced() {
    let name = fresh_shm_name();
    let left = Squatter::new(&name, &segment(VERSION, 100_000), 0o600);
    let outputs = run((0..2).map(|number| rank(&name, number, 2)));
    assert!(
        outputs.iter().all(|output| output.status.success()),
        "{:?}",
        errors(&outputs)
    );
    assert!(!left.0.exists());
}

#[test]
fn leftovers_are_swept_and_other_peoples_files_are_not() {
    let leftovers: Vec<Squatter> = (0..100)
        .map(|i| {
            Squatter::new(
                &fresh_shm_name(),
                &segment(1 + i as u64 % VERSION, 8 * i),
                0o600,
            )
        })
        .collect();
    // Of a process that was killed before it gave its object a name that others find.
    let digits = format!("{:032x}", std::process::id());
    let drafts = [("a", segment(VERSION, 100)), ("b", Vec::new())];
    let drafts = drafts.map(|(first, content)| {
        let name = format!("/.cobre-draft-{first}{}", &digits[1..]);
        Squatter::new(&name, &content, 0o600)
    });
    let readable_by_all = Squatter::new(&fresh_shm_name(), &segment(VERSION, 100), 0o644);
    let other_name = format!("/unrelated-{}", std::process::id());
    let unrelated = Squatter::new(&other_name, &segment(VERSION, 100), 0o600);
    let name = fresh_shm_name();
    assert!(run([rank(&name, 0, 1)])[0].status.success());
    let dead = leftovers.iter().chain(&drafts);
    // A job of another test may be about to remove one of them, and this one's passes over what another has locked.
    wait_for("the sweep", || dead.clone().all(|left| !left.0.exists()));
    assert!(readable_by_all.0.exists() && unrelated.0.exists());
}

/// Contents that are no object of ours, whatever the name.
fn foreign_contents() -> [Vec<u8>; 7] {
    [
        Vec::new(),
        vec![0],
        vec![0; 4096],
        vec![0; 200_000],
        b"someone's data".to_vec(),
        b"cobreshm".to_vec(),
        segment(u64::MAX, 200_000),
    ]
}

#[test]
fn files_of_the_user_that_begin_with_our_prefix_survive_the_sweep() {
    let own = std::process::id();
    let files: Vec<(Squatter, Vec<u8>)> = foreign_contents()
        .into_iter()
        .enumerate()
        .flat_map(|(i, contents)| {
            let chosen = format!("/{SHM_PREFIX}notes-{own}-{i}.txt");
            [chosen, fresh_shm_name()].map(|name| {
                let file = Squatter::new(&name, &contents, 0o600);
                (file, contents.clone())
            })
        })
        .collect();
    let name = fresh_shm_name();
    assert!(run([rank(&name, 0, 1)])[0].status.success());
    for (file, contents) in &files {
        let found = fs::read(&file.0).unwrap_or_else(|error| panic!("{:?}: {error}", file.0));
        assert_eq!(found, *contents, "{:?}", file.0);
    }
}

#[test]
fn a_file_that_is_no_segment_is_refused_and_left_alone() {
    for (i, contents) in foreign_contents().into_iter().enumerate() {
        let name = format!("/another-program-{}-{i}", std::process::id());
        let other = Squatter::new(&name, &contents, 0o600);
        // A follower waits for the rank 0 that replaces what is dead.
        let refused = if i == 6 { 0..1 } else { 0..2 };
        for text in errors(&run(refused.map(|number| hasty(&name, number, 2)))) {
            assert!(text.contains("no segment of Cobre"), "{text}");
        }
        assert_eq!(fs::read(&other.0).unwrap(), contents);
    }
}

/// Delays in microseconds, the same for a seed.
fn delays(seed: u64, most: u64) -> impl Iterator<Item = u64> {
    println!("seed {seed}");
    let mut random = Random::new(&[seed]);
    std::iter::repeat_with(move || random.below(most as usize) as u64)
}

#[test]
fn a_creator_killed_at_any_instant_leaves_a_whole_header_or_nothing() {
    // From start to name, on the machine as it is now.
    let name = fresh_shm_name();
    let start = Instant::now();
    let mut first = rank(&name, 0, 2).spawn().unwrap();
    wait_for("the segment", || object(&name).exists());
    let usual = start.elapsed().as_micros() as u64;
    first.kill().unwrap();
    first.wait().unwrap();
    let mut left = 0;
    for delay in delays(2026, 2 * usual).take(200) {
        let name = fresh_shm_name();
        let mut creator = rank(&name, 0, 2).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(delay));
        creator.kill().unwrap();
        creator.wait().unwrap();
        // Another test's job may sweep it at any time.
        if let Ok(bytes) = fs::read(object(&name)) {
            left += 1;
            let ranks = &bytes[16..24];
            assert!(
                bytes.starts_with(&segment(VERSION, 0)),
                "{:?}",
                &bytes[..16]
            );
            assert_eq!(ranks, 2u64.to_ne_bytes());
        }
    }
    println!("{left} of 200 left a segment");
    assert!(run([rank(&fresh_shm_name(), 0, 1)])[0].status.success());
    wait_for("the sweep", || !object(&name).exists());
}

/// In a mount namespace of its own, where permitted: nothing else is in its `/dev/shm`.
#[test]
fn ranks_killed_with_named_regions_leave_only_what_the_sweep_knows() {
    let program = env!("CARGO_BIN_EXE_rank");
    let scratch = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs tmpfs {SHM} || exit 77
         export {COMM_BACKEND}=shm {SHM_REGIONS}=named {SHM_NAME}=/{SHM_PREFIX}killed
         for delay in \"$@\"; do
             {SHM_SIZE}=2 {SHM_RANK}=0 {program} region/thousands --scratch {scratch} & first=$!
             {SHM_SIZE}=2 {SHM_RANK}=1 {program} region/thousands --scratch {scratch} & second=$!
             sleep $delay
             kill -9 $first $second
             wait
             for file in {SHM}/* {SHM}/.[!.]*; do
                 [ -e $file ] || continue
                 echo left
                 [ \"$(head -c 8 $file)\" = cobreshm ] || {{ echo no header: $file; exit 1; }}
             done
         done
         {SHM_SIZE}=1 {SHM_RANK}=0 {program} identity
         ls -A {SHM}",
        scratch = scratch.path().display(),
    );
    let mut command = Command::new("unshare");
    for variable in JOB {
        command.env_remove(variable);
    }
    command.args(["-m", "sh", "-c", &script, "sh"]);
    let seconds = |micros: u64| format!("{:.6}", micros as f64 / 1e6);
    let delays = delays(2027, 300_000).take(60).map(seconds);
    let Ok(output) = command.args(delays).output() else {
        skip("unshare is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || text.contains("unshare failed") {
        skip(&format!("mounts are not permitted here: {text}"));
        return;
    }
    assert!(output.status.success(), "{said}{text}");
    let left = said.lines().filter(|line| *line == "left").count();
    println!("{left} objects were left by 60 jobs");
    let after: Vec<&str> = said.lines().filter(|line| *line != "left").collect();
    assert!(!after.iter().any(|line| line.contains("cobre-")), "{said}");
}

#[test]
fn ranks_of_another_job_of_the_same_name_are_refused() {
    let name = fresh_shm_name();
    let outputs = run(
        [("monday", 0), ("monday", 1), ("tuesday", 1)].map(|(job, number)| {
            let mut command = rank(&name, number, 2);
            command.env(SHM_JOB, job).env(SHM_TIMEOUT_SECS, "10");
            command
        }),
    );
    let text = &errors(&outputs)[2];
    // It comes too late if the others have met by then.
    assert!(
        text.contains(SHM_JOB) || text.contains("has not created it"),
        "{text}"
    );
    assert!(outputs[0].status.success() && outputs[1].status.success());
}

#[test]
fn a_link_under_the_name_is_refused_by_every_rank() {
    let name = format!("/{SHM_PREFIX}link-{}", std::process::id());
    let target = Squatter::new(
        &format!("/precious-{}", std::process::id()),
        b"precious",
        0o600,
    );
    let link = Squatter(object(&name));
    symlink(&target.0, &link.0).unwrap();
    for text in errors(&run([0, 1].map(|number| hasty(&name, number, 2)))) {
        assert!(text.contains("it is a link"), "{text}");
    }
    assert_eq!(fs::read(&target.0).unwrap(), b"precious");
}

#[test]
fn an_object_that_others_can_write_is_refused() {
    let name = fresh_shm_name();
    let _squatter = Squatter::new(&name, &vec![0; 100_000], 0o666);
    for text in errors(&run([0, 1].map(|number| hasty(&name, number, 2)))) {
        assert!(text.contains("mode 666"), "{text}");
    }
}

#[test]
fn an_object_of_another_user_is_refused() {
    let name = fresh_shm_name();
    let squatter = Squatter::new(&name, &vec![0; 100_000], 0o600);
    if std::os::unix::fs::chown(&squatter.0, Some(12_345), None).is_err() {
        skip("only root can give a file away");
        return;
    }
    for text in errors(&run([0, 1].map(|number| hasty(&name, number, 2)))) {
        assert!(text.contains("user 12345"), "{text}");
    }
    assert!(squatter.0.exists());
}

#[test]
fn names_that_are_no_names_are_refused() {
    for name in ["/", "a/b", "..", &"x".repeat(300)] {
        let text = &errors(&run([hasty(name, 0, 1)]))[0];
        assert!(
            text.contains("one word of at most 255 bytes"),
            "{name}: {text}"
        );
    }
}

/// In a mount namespace of its own, where permitted: `/dev/shm` as small as containers have it.
#[test]
fn a_small_dev_shm_is_an_error_that_says_what_helps_not_a_crash() {
    let program = env!("CARGO_BIN_EXE_rank");
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs {SHM} || exit 77; {SHM_RANK}=0 {SHM_SIZE}=1 \
         {SHM_NAME}=/small {COMM_BACKEND}=shm exec {program} identity"
    );
    let outcome = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output();
    let Ok(output) = outcome else {
        skip("unshare is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || text.contains("unshare failed") {
        skip(&format!("mounts are not permitted here: {text}"));
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("are free in /dev/shm") && text.contains("--shm-size"),
        "{text}"
    );
}
