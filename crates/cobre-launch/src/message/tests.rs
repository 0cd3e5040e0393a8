use super::*;
use cobre_comm::ErrorKind;
use std::time::Duration;

fn rank(status: Status, ended: bool) -> RankOutcome {
    RankOutcome {
        pid: 4123,
        host: None,
        status,
        ended,
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

fn text(ranks: Vec<RankOutcome>, cause: FailureCause) -> String {
    Outcome {
        ranks,
        cause: Some(cause),
        survivors: false,
        through: None,
        root: None,
        statements: std::collections::BTreeMap::new(),
    }
    .message("cobre launch")
}

fn full_disk(rank: usize, from: usize) -> RootCause {
    RootCause {
        rank,
        from,
        kind: ErrorKind::Io,
        reason: "the disk is full".into(),
    }
}

#[test]
fn lists_draw_runs_together() {
    assert_eq!(list(&[]), "");
    assert_eq!(list(&[3]), "3");
    assert_eq!(list(&[0, 1]), "0, 1");
    assert_eq!(list(&[0, 1, 2, 5, 7, 8, 9, 10]), "0-2, 5, 7-10");
}

#[test]
fn the_cause_comes_first_then_last_words_then_the_rest() {
    let ended = rank(Status::Killed(15), true);
    let ranks = vec![
        ended.clone(),
        ended,
        rank(Status::Killed(9), false),
        rank(Status::Exited(1), false),
        rank(Status::Exited(0), false),
    ];
    let cause = FailureCause::Rank {
        rank: 2,
        root_cause: None,
        tail: vec!["last".into(), "words".into()],
    };
    let expected = "\
cobre launch: rank 2 (pid 4123) was killed by signal 9 (SIGKILL)
    last
    words
cobre launch: ranks 0, 1 were ended because of it; rank 3 exited with code 1; rank 4 had finished
";
    assert_eq!(text(ranks, cause), expected);
}

#[test]
fn a_reason_a_rank_gave_itself_is_told_apart_from_what_others_say() {
    let cause = |from| FailureCause::Rank {
        rank: 0,
        root_cause: Some(full_disk(0, from)),
        tail: Vec::new(),
    };
    let ranks = || vec![rank(Status::Exited(1), false)];
    assert_eq!(
        text(ranks(), cause(0)),
        "cobre launch: rank 0 (pid 4123) aborted: the disk is full (exited with code 1)\n"
    );
    assert_eq!(
        text(ranks(), cause(1)),
        "cobre launch: rank 0 (pid 4123) exited with code 1; rank 1 reported: the disk is full\n"
    );
}

#[test]
fn ranks_that_ended_alike_share_words() {
    let ranks = vec![rank(Status::Killed(11), false); 3];
    let cause = FailureCause::Rank {
        rank: 0,
        root_cause: None,
        tail: Vec::new(),
    };
    let text = text(ranks, cause);
    assert!(
        text.contains("ranks 1, 2 were killed by signal 11 (SIGSEGV)"),
        "{text}"
    );
}

#[test]
fn the_deadline_names_its_length_and_who_was_running() {
    let cause = FailureCause::Deadline {
        after: Duration::from_secs(5),
        running: vec![0, 2],
    };
    assert_eq!(
        text(Vec::new(), cause),
        "cobre launch: the deadline of 5 s passed with ranks 0, 2 still running\n"
    );
}
