//! Jobs run through the library, with their output captured.

use std::time::{Duration, Instant};

use cobre_launch::{FailureCause, Launch, LaunchError, Outcome, Output, Status};

fn script(ranks: usize, words: &str) -> Launch {
    Launch::new("sh", ranks)
        .args(["-c", words])
        .output(Output::Capture { limit: 1 << 20 })
        .timeout(Duration::from_secs(60))
}

fn run(ranks: usize, words: &str) -> Outcome {
    script(ranks, words).run().unwrap()
}

fn cause_rank(outcome: &Outcome) -> usize {
    match &outcome.cause {
        Some(FailureCause::Rank { rank, .. }) => *rank,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_ranks_output_is_kept_apart() {
    let outcome = run(
        3,
        "echo out $COBRE_LAUNCH_RANK of $COBRE_LAUNCH_SIZE; printf err >&2",
    );
    for (number, rank) in outcome.ranks.iter().enumerate() {
        assert_eq!(rank.stdout, format!("out {number} of 3\n").as_bytes());
        assert_eq!(rank.stderr, b"err");
        assert_eq!((rank.status, rank.ended), (Status::Exited(0), false));
        assert!(rank.pid > 0);
    }
    assert_eq!(
        (outcome.exit_code(), outcome.message("x").as_str()),
        (0, "")
    );
}

#[test]
fn captured_output_is_bounded_and_keeps_its_end() {
    let launch = script(2, "seq 100000").output(Output::Capture { limit: 14 });
    let outcome = launch.run().unwrap();
    assert_eq!(outcome.ranks[1].stdout, b"\n99999\n100000\n");
}

#[test]
fn the_rank_that_failed_is_the_cause_and_the_others_were_ended() {
    for _ in 0..20 {
        let outcome = run(4, "[ $COBRE_LAUNCH_RANK = 3 ] && exit 9; exec sleep 1000");
        assert_eq!((cause_rank(&outcome), outcome.exit_code()), (3, 9));
        assert!(!outcome.ranks[3].ended);
        assert!(outcome.ranks[..3].iter().all(|rank| rank.ended));
        assert_eq!(outcome.ranks[0].status, Status::Killed(15));
    }
}

#[test]
fn a_rank_that_ignores_the_request_to_end_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    // Rank 1 fails when the other ignores it.
    let words = "trap '' TERM; [ $COBRE_LAUNCH_RANK = 0 ] && touch $READY; \
                 while [ $COBRE_LAUNCH_RANK = 0 ] || [ ! -e $READY ]; do sleep 0.02; done; exit 1";
    let start = Instant::now();
    let outcome = script(2, words)
        .env("READY", &ready)
        .grace(Duration::from_millis(300))
        .run()
        .unwrap();
    assert_eq!(outcome.ranks[0].status, Status::Killed(9));
    assert_eq!((cause_rank(&outcome), outcome.exit_code()), (1, 1));
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_reported_rank_that_never_ends_is_killed_after_the_grace_and_stays_the_cause() {
    let words = r#"case $COBRE_LAUNCH_RANK in
        0) echo "1 0 rank silent" > /proc/self/fd/${COBRE_LAUNCH_REPORT%%:*}; exit 4;;
        *) trap 'echo asked' TERM; while :; do sleep 0.02; done;;
        esac"#;
    let outcome = script(2, words)
        .grace(Duration::from_millis(300))
        .run()
        .unwrap();
    assert_eq!((cause_rank(&outcome), outcome.exit_code()), (1, 1));
    assert_eq!(outcome.ranks[1].status, Status::Killed(9));
    assert_eq!(
        outcome.ranks[1].stdout, b"",
        "it was given the time to end by itself"
    );
    let text = outcome.message("test");
    assert!(text.contains("rank 0 reported: silent"), "{text}");
}

#[test]
fn a_reported_rank_that_left_without_an_error_fails_the_job_all_the_same() {
    let words = r#"case $COBRE_LAUNCH_RANK in
        0) sleep 0.1; echo "1 0 rank it left" > /proc/self/fd/${COBRE_LAUNCH_REPORT%%:*}; exit 4;;
        *) exit 0;;
        esac"#;
    let outcome = run(2, words);
    assert_eq!((cause_rank(&outcome), outcome.exit_code()), (1, 1));
}

#[test]
fn the_deadline_ends_the_job() {
    let outcome = script(2, "exec sleep 1000")
        .timeout(Duration::from_millis(200))
        .run()
        .unwrap();
    assert_eq!(outcome.exit_code(), 124);
    assert!(
        matches!(&outcome.cause, Some(FailureCause::Deadline { running, .. }) if *running == [0, 1])
    );
}

#[test]
fn standard_input_is_empty_unless_passed() {
    assert_eq!(run(2, "cat; echo done").ranks[0].stdout, b"done\n");
}

#[test]
fn variables_for_the_ranks_do_not_replace_the_launchers_settings() {
    let outcome = script(1, "echo $COLOUR $COBRE_LAUNCH_RANK $COBRE_COMM_BACKEND")
        .env("COLOUR", "green")
        .env("COBRE_LAUNCH_RANK", "7")
        .backend("local")
        .run()
        .unwrap();
    assert_eq!(outcome.ranks[0].stdout, b"green 0 local\n");
}

#[test]
fn ranks_get_no_descriptor_beside_their_streams_the_report_and_the_death_pipe() {
    let extra = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&extra, rustix::io::FdFlags::empty()).unwrap();
    // The directory that the shell reads to expand the names is closed when it tests them.
    let words = "for f in /proc/$$/fd/*; do [ -e $f ] && echo ${f##*/}; done; \
                 echo ${COBRE_LAUNCH_REPORT%%:*}";
    let outcome = run(1, words);
    let text = String::from_utf8(outcome.ranks[0].stdout.clone()).unwrap();
    let numbers = text.split_whitespace().map(|word| word.parse().unwrap());
    let mut numbers: Vec<i32> = numbers.collect();
    let report = numbers.pop().unwrap();
    numbers.sort_unstable();
    let death_pipe = numbers.pop().unwrap();
    assert!(death_pipe >= 100, "{death_pipe}: out of the way of scripts");
    assert_eq!(numbers, [0, 1, 2, report]);
}

#[test]
fn more_ranks_than_possible_are_refused() {
    for ranks in [0, 257] {
        let error = script(ranks, "true").run().unwrap_err();
        assert!(matches!(error, LaunchError::RankCount { .. }), "{error}");
    }
}

#[test]
fn a_program_that_is_missing_is_an_error_of_its_own() {
    let error = Launch::new("./no/such", 4).run().unwrap_err();
    assert!(
        matches!(error, LaunchError::ProgramNotFound { .. }),
        "{error}"
    );
    let error = Launch::new("bad\0name", 1).run().unwrap_err();
    assert!(matches!(error, LaunchError::NotStarted { .. }), "{error}");
}

#[test]
fn a_script_without_interpreter_line_runs_as_in_a_shell() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    std::fs::write(&path, "echo here\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = Launch::new(path, 1)
        .output(Output::Capture { limit: 100 })
        .run()
        .unwrap();
    assert_eq!(outcome.ranks[0].stdout, b"here\n");
}

#[test]
fn ranks_lead_groups_of_their_own_outside_the_launchers_session() {
    let outcome = run(2, "cut -d' ' -f5,6 /proc/$$/stat; echo $$");
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own_session = own
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .nth(3)
        .unwrap();
    for rank in &outcome.ranks {
        let text = String::from_utf8(rank.stdout.clone()).unwrap();
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words[0], words[2], "leads its group");
        assert_ne!(words[1], own_session);
    }
}

#[test]
fn a_launched_program_may_launch() {
    let inner = std::env::current_exe().unwrap();
    let outcome = Launch::new(inner, 2)
        .args(["--exact", "each_ranks_output_is_kept_apart"])
        .output(Output::Capture { limit: 1 << 16 })
        .run()
        .unwrap();
    assert_eq!(outcome.exit_code(), 0, "{}", outcome.message("inner"));
}

#[test]
fn ranks_get_the_descriptors_they_are_given() {
    use std::io::Read;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut launch = Launch::new("sh", 2).output(Output::Capture { limit: 100 });
    let number = launch.inherit(writer.into()).unwrap();
    let launch = launch.args(["-c", &format!("echo rank $COBRE_LAUNCH_RANK >&{number}")]);
    assert_eq!(launch.run().unwrap().exit_code(), 0);
    drop(launch);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["rank 0", "rank 1"]);
}

#[test]
fn a_signal_told_through_a_pipe_is_passed_on() {
    use std::io::Write;
    let (reader, mut writer) = std::io::pipe().unwrap();
    // What this process ignores, its ranks would.
    let launch = Launch::new("env", 2)
        .args(["--default-signal", "sh", "-c"])
        .args(["trap 'exit 5' INT; while :; do sleep 0.01; done"])
        .timeout(Duration::from_secs(60));
    let launch = launch.signals_from(reader.into()).unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        writer.write_all(&[2]).unwrap();
    });
    let outcome = launch.run().unwrap();
    stopper.join().unwrap();
    assert_eq!(outcome.cause, Some(FailureCause::Signal(2)));
    for rank in &outcome.ranks {
        assert!(rank.ended);
        assert!(matches!(rank.status, Status::Exited(5) | Status::Killed(2)));
    }
}
