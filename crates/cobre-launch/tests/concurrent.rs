//! Several launches in one process, and the death of that process.

mod processes;

use std::process::Command;
use std::thread;
use std::time::Duration;

use cobre_launch::{Launch, Output, Status};
use processes::{unique_sleep, wait_until, with_argument};

const LIMIT: Duration = Duration::from_secs(60);

fn script(ranks: usize, words: &str) -> Launch {
    Launch::new("sh", ranks)
        .args(["-c", words])
        .output(Output::Capture { limit: 1 << 20 })
        .timeout(LIMIT)
}

#[test]
fn launches_at_the_same_time_do_not_disturb_each_other() {
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                for round in 0..10 {
                    let words = format!("echo {number} {round}; exit {number}");
                    let outcome = script(3, &words).run().unwrap();
                    assert_eq!(i32::from(outcome.exit_code()), number);
                    for rank in outcome.ranks.iter().filter(|rank| !rank.ended) {
                        assert_eq!(rank.stdout, format!("{number} {round}\n").as_bytes());
                        assert_eq!(rank.status, Status::Exited(number));
                    }
                }
            });
        }
    });
}

#[test]
fn a_launch_ends_although_another_goes_on() {
    let mark = unique_sleep();
    thread::scope(|scope| {
        let (long_mark, words) = (mark.clone(), "exec sleep $MARK");
        let long = scope.spawn(move || script(2, words).env("MARK", long_mark).run().unwrap());
        for _ in 0..10 {
            assert_eq!(script(2, "exit 0").run().unwrap().exit_code(), 0);
        }
        wait_until("the long job runs", LIMIT, || {
            with_argument(&mark).len() == 2
        });
        for pid in with_argument(&mark) {
            let words = format!("kill -9 {pid}");
            assert!(Command::new("sh").args(["-c", &words]).status().is_ok());
        }
        assert_eq!(long.join().unwrap().exit_code(), 137);
    });
}

/// Set for the process that the test below starts and kills.
const VICTIM: &str = "MARK";

#[test]
fn nothing_survives_a_killed_program_with_two_jobs() {
    if std::env::var_os(VICTIM).is_some() {
        return two_endless_jobs();
    }
    let this_test = "nothing_survives_a_killed_program_with_two_jobs";
    for _ in 0..3 {
        let mark = unique_sleep();
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this_test])
            .env(VICTIM, &mark)
            .spawn()
            .unwrap();
        wait_until("all run", LIMIT, || with_argument(&mark).len() == 2 * 3 * 3);
        program.kill().unwrap();
        program.wait().unwrap();
        wait_until("all are dead", LIMIT, || with_argument(&mark).is_empty());
    }
}

fn two_endless_jobs() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| script(3, "sleep $MARK & setsid sleep $MARK & exec sleep $MARK").run());
        }
    });
}
