use super::*;
use cobre_comm::ErrorKind;

fn exit(rank: usize, code: i32, batch: u32) -> RankEnd {
    RankEnd {
        rank,
        status: Status::Exited(code),
        batch,
        ended: false,
    }
}

fn kill(rank: usize, batch: u32) -> RankEnd {
    RankEnd {
        rank,
        status: Status::Killed(9),
        batch,
        ended: false,
    }
}

fn ended(end: RankEnd) -> RankEnd {
    RankEnd { ended: true, ..end }
}

fn root_cause(rank: usize, from: usize) -> RootCause {
    RootCause {
        rank,
        from,
        kind: ErrorKind::Io,
        reason: "because".into(),
    }
}

fn rank(ends: &[RankEnd], root_causes: &[RootCause]) -> Option<usize> {
    root(ends, root_causes, None).map(|(rank, _)| rank)
}

#[test]
fn the_first_failure_is_the_cause() {
    let ends = [exit(3, 0, 1), exit(2, 1, 2), kill(0, 3), exit(1, 1, 3)];
    assert_eq!(rank(&ends, &[]), Some(2));
}

#[test]
fn ranks_that_all_succeed_have_no_cause() {
    assert_eq!(rank(&[exit(1, 0, 1), exit(0, 0, 1)], &[]), None);
}

#[test]
fn at_the_same_time_a_signal_is_the_cause_before_a_code_and_then_the_lower_rank() {
    assert_eq!(rank(&[exit(0, 1, 5), kill(3, 5), kill(2, 5)], &[]), Some(2));
    assert_eq!(rank(&[exit(4, 1, 5), exit(1, 1, 5)], &[]), Some(1));
}

#[test]
fn a_report_is_believed_over_the_order_of_ends() {
    let ends = [exit(0, 1, 1), exit(1, 1, 2), kill(2, 3)];
    assert_eq!(rank(&ends, &[root_cause(2, 0), root_cause(1, 1)]), Some(2));
}

#[test]
fn what_the_launcher_ended_is_never_the_cause() {
    let ends = [exit(0, 3, 1), ended(kill(1, 2)), ended(exit(2, 1, 2))];
    assert_eq!(rank(&ends, &[root_cause(1, 2)]), Some(0));
    assert_eq!(rank(&[ended(kill(1, 2))], &[]), None);
}

#[test]
fn a_reported_rank_that_had_to_be_killed_stays_the_cause() {
    let ends = [exit(0, 1, 1), ended(kill(2, 9))];
    assert_eq!(root(&ends, &[root_cause(2, 0)], Some(2)).unwrap().0, 2);
}
