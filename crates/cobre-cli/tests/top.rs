//! `cobre top` from the outside: a job in which one rank is held, seen without asking anything of it.

#[allow(dead_code, reason = "shared by tests that each use a part of it")]
#[path = "../../cobre-launch/tests/processes/mod.rs"]
mod processes;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use processes::{command, ranks_of, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// Nothing takes longer unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A run that is ended with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn top(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cobre"))
        .arg("top")
        .args(words)
        .output();
    let output = output.expect("cobre starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_ranks_that_wait_are_shown_with_the_one_they_wait_for() {
    let problem =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two_reservoirs.sof.json");
    for backend in ["shm", "tcp"] {
        let mut run = command(env!("CARGO_BIN_EXE_cobre"));
        run.arg("run").arg(&problem);
        run.args([
            "-n3",
            "--bound=0",
            "--quiet",
            "--threads=1",
            "--iterations=1000000",
            "--backend",
            backend,
        ]);
        let run = Run(run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap());
        let id = run.0.id().to_string();
        let ranks = || ranks_of(run.0.id());
        wait_until("the ranks run", LIMIT, || {
            let (code, stdout, _) = top(&[&id]);
            code == 0 && ranks().len() == 3 && !stdout.contains("without a status")
        });
        let held = Pid::from_raw(ranks()[1].cast_signed()).unwrap();
        kill_process(held, Signal::STOP).unwrap();
        let (mut seen, mut since) = (String::new(), Instant::now());
        wait_until("two wait for rank 1", LIMIT, || {
            let (code, stdout, stderr) = top(&[&id]);
            assert_eq!(code, 0, "{stderr}");
            seen = stdout;
            let both_wait = seen.matches(": waits for rank 1\n").count() == 2;
            if !both_wait && since.elapsed() > Duration::from_secs(3) {
                // Stopped inside a collective, it is in it as all are, or another one is behind with it: stopped elsewhere.
                kill_process(held, Signal::CONT).unwrap();
                std::thread::sleep(Duration::from_millis(3));
                kill_process(held, Signal::STOP).unwrap();
                since = Instant::now();
            }
            both_wait
        });
        assert!(
            seen.starts_with(&format!("3 ranks on {backend}; collective ")),
            "{seen}"
        );
        let of_rank = ranks()[2].to_string();
        // A rank alone stands for itself.
        assert!(top(&[&of_rank]).1.contains(", 2 without a status here"));
        kill_process(held, Signal::CONT).unwrap();
    }
}

#[test]
fn a_process_without_ranks_is_refused() {
    let (code, _, stderr) = top(&[&std::process::id().to_string()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("is no rank"), "{stderr}");
    assert_eq!(top(&["x"]).0, 64);
}
