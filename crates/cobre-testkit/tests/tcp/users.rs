//! Jobs that were started by hand without a secret: ranks of one user find each other, and other
//! users of the machine do not get in.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use cobre_comm::env::{TCP_SECRET_FILE, TCP_TIMEOUT_SECS};

use crate::port::free_port;
use crate::sockets::{self, all_well, errors, finish, is_open, run, skip, start, wait_for};

/// A user without rights, whom no account belongs to.
const OTHER: u32 = 65_534;

/// Another one, who has a directory in `/tmp`: not that of another run of this test.
fn third() -> u32 {
    55_000 + std::process::id() % 10_000
}

/// The name of the file with the secret.
const SECRET: &str = "cobre-tcp-secret";

/// True if other users can be played.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can start processes of other users");
    }
    is_root
}

/// The program `rank` where every user can run it.
struct Program(tempfile::TempDir);

impl Program {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open.clone()).unwrap();
        let program = Self(directory);
        fs::copy(env!("CARGO_BIN_EXE_rank"), program.path()).unwrap();
        fs::set_permissions(program.path(), open).unwrap();
        program
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("rank")
    }

    fn rank(&self, port: u16, number: usize, size: usize) -> Command {
        let program = self.path().display().to_string();
        let mut command = sockets::rank(&program, port, number, size);
        command
            .args(["sequence/mixed", "--calls", "50"])
            .env_remove(TCP_SECRET_FILE)
            .env_remove(RUNTIME);
        command
    }
}

const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// A directory of a session, which nobody but its owner can enter.
fn session() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

#[test]
fn ranks_of_one_user_meet_without_a_secret_and_leave_no_file() {
    let (program, session) = (Program::new(), session());
    for _ in 0..3 {
        let port = free_port();
        let first = start(program.rank(port, 0, 3).env(RUNTIME, session.path()));
        wait_for("rank 0", || is_open(port));
        assert!(session.path().join(SECRET).exists());
        let others =
            [1, 2].map(|number| start(program.rank(port, number, 3).env(RUNTIME, session.path())));
        all_well(&finish([first].into_iter().chain(others)));
        assert_eq!(fs::read_dir(session.path()).unwrap().count(), 0);
    }
}

#[test]
fn another_user_does_not_get_in_and_the_job_goes_on() {
    if !is_root() {
        return;
    }
    let (program, session, port) = (Program::new(), session(), free_port());
    let member = |number| start(program.rank(port, number, 3).env(RUNTIME, session.path()));
    let (first, second) = (member(0), member(1));
    wait_for("rank 0", || is_open(port));
    let stranger = |directory: Option<&std::path::Path>| {
        let mut command = program.rank(port, 2, 3);
        command.uid(OTHER).gid(OTHER).env(TCP_TIMEOUT_SECS, "3");
        command.envs(directory.map(|directory| (RUNTIME, directory)));
        command
    };
    // Once with nothing, once pointed at the other's directory.
    for text in errors(&run([stranger(None), stranger(Some(session.path()))])) {
        assert!(text.contains("another secret"), "{text}");
    }
    all_well(&finish([first, second, member(2)]));
}

#[test]
fn a_directory_that_another_user_has_made_is_no_place_for_a_secret() {
    if !is_root() {
        return;
    }
    let program = Program::new();
    let third = third();
    let place = PathBuf::from(format!("/tmp/cobre-{third}"));
    let elsewhere = tempfile::tempdir().unwrap();
    let hasty = || {
        let mut command = program.rank(free_port(), 0, 2);
        command.uid(third).gid(third).env(TCP_TIMEOUT_SECS, "1");
        command
    };
    let refused = |word: &str| {
        let text = errors(&run([hasty()])).remove(0);
        let said = text.contains(word) && text.contains(TCP_SECRET_FILE);
        assert!(said && text.contains("no secret is given"), "{text}");
    };
    fs::create_dir(&place).unwrap();
    chown(&place, Some(OTHER), Some(OTHER)).unwrap();
    refused("belongs to user 65534");
    chown(&place, Some(third), Some(third)).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    refused("mode 755");
    fs::remove_dir(&place).unwrap();
    symlink(elsewhere.path(), &place).unwrap();
    refused(&format!("cobre-{third}"));
    fs::remove_file(&place).unwrap();
    // With nothing in the way it is made, and removed.
    let text = errors(&run([hasty()])).remove(0);
    assert!(text.contains("these did not join"), "{text}");
    assert!(!place.exists());
    assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
}

#[test]
fn a_secret_that_a_killed_rank_left_is_used_and_removed_by_the_next_job() {
    let (program, session) = (Program::new(), session());
    let port = free_port();
    let mut first = start(program.rank(port, 0, 2).env(RUNTIME, session.path()));
    wait_for("rank 0", || is_open(port));
    first.kill().unwrap();
    first.wait().unwrap();
    let secret = session.path().join(SECRET);
    let left = fs::read(&secret).unwrap();
    assert_eq!(left.len(), 32);
    let port = free_port();
    all_well(&run((0..2).map(|number| {
        let mut command = program.rank(port, number, 2);
        command.env(RUNTIME, session.path());
        command
    })));
    assert!(!secret.exists());
}
