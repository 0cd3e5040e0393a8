use super::*;
use cobre_comm::ErrorKind;

const GRACE: Duration = Duration::from_secs(2);

struct Story {
    policy: ShutdownPolicy,
    now: Instant,
    batch: u32,
}

impl Story {
    fn of(size: usize, timeout: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            policy: ShutdownPolicy::new(size, timeout, GRACE, now),
            now,
            batch: 0,
        }
    }

    fn exit(&mut self, rank: usize, code: i32, ended: bool) {
        self.batch += 1;
        let exit = Exit {
            rank,
            status: code << 8,
            batch: self.batch,
            ended,
        };
        self.policy.exited(exit, self.now);
    }

    fn report(&mut self, rank: usize, from: usize) {
        self.policy.reported(RootCause {
            rank,
            from,
            kind: ErrorKind::Io,
            reason: "because".into(),
        });
    }

    /// Moves the clock to the next time something is due.
    fn wait(&mut self) -> Option<Order> {
        self.now = self.policy.next().unwrap();
        self.policy.due(self.now)
    }

    fn signal(&mut self, signal: i32, after: Duration) -> Option<Order> {
        self.now += after;
        self.policy.signalled(signal, self.now)
    }
}

fn all(signal: i32) -> Order {
    Order {
        signal,
        except: None,
    }
}

#[test]
fn a_failure_ends_the_others_first_gently_then_by_force() {
    let mut story = Story::of(3, None);
    story.exit(1, 3, false);
    assert_eq!(
        story.policy.due(story.now),
        None,
        "reports get time to arrive"
    );
    assert_eq!(story.wait(), Some(all(libc::SIGTERM)));
    assert_eq!(story.wait(), Some(all(libc::SIGKILL)));
    assert!(!story.policy.hopeless(story.now));
    story.wait();
    assert!(story.policy.hopeless(story.now));
}

#[test]
fn a_rank_that_finishes_early_ends_nobody() {
    let mut story = Story::of(2, None);
    story.exit(0, 0, false);
    assert_eq!(story.policy.next(), None);
    assert_eq!(story.policy.root(), None);
}

#[test]
fn a_reported_rank_still_alive_is_spared_until_the_grace_is_over() {
    let mut story = Story::of(3, None);
    story.exit(0, 1, false);
    story.report(2, 0);
    assert_eq!(
        story.wait(),
        Some(Order {
            signal: libc::SIGTERM,
            except: Some(2)
        })
    );
    assert_eq!(story.wait(), Some(all(libc::SIGKILL)));
    story.exit(2, 1, true);
    assert_eq!(story.policy.root().unwrap().0, 2);
}

#[test]
fn a_report_from_ranks_that_are_being_ended_makes_none_of_them_the_cause() {
    let mut story = Story::of(3, None);
    story.exit(0, 1, false);
    story.wait();
    story.exit(1, 0, true);
    story.report(1, 2);
    story.exit(2, 1, true);
    assert_eq!(story.policy.root().unwrap().0, 0);
}

#[test]
fn a_report_about_a_rank_that_does_not_exist_is_ignored() {
    let mut story = Story::of(2, None);
    story.exit(0, 1, false);
    story.report(7, 0);
    assert_eq!(story.policy.root().unwrap().0, 0);
}

#[test]
fn a_rank_that_aborted_has_failed_whatever_it_exits_with() {
    let mut story = Story::of(1, None);
    story.exit(0, 0, false);
    assert_eq!(story.policy.root(), None);
    story.report(0, 0);
    assert_eq!(story.policy.root().unwrap().0, 0);
}

#[test]
fn the_deadline_names_who_was_running() {
    let after = Duration::from_secs(5);
    let mut story = Story::of(3, Some(after));
    story.exit(1, 0, false);
    assert_eq!(story.wait(), Some(all(libc::SIGTERM)));
    assert_eq!(
        story.policy.stop,
        Some(EndReason::Deadline {
            after,
            running: vec![0, 2]
        })
    );
}

#[test]
fn the_second_signal_kills() {
    let mut story = Story::of(1, None);
    assert_eq!(
        story.signal(libc::SIGINT, Duration::ZERO),
        Some(all(libc::SIGINT))
    );
    assert_eq!(
        story.signal(libc::SIGINT, Duration::from_secs(1)),
        Some(all(libc::SIGKILL))
    );
    assert_eq!(story.policy.stop, Some(EndReason::Signal(libc::SIGINT)));
}

#[test]
fn a_signal_sent_twice_at_once_counts_once() {
    let mut story = Story::of(1, None);
    assert_eq!(
        story.signal(libc::SIGTERM, Duration::ZERO),
        Some(all(libc::SIGTERM))
    );
    assert_eq!(story.signal(libc::SIGTERM, Duration::from_millis(1)), None);
}

#[test]
fn a_signal_after_a_failure_does_not_hide_it() {
    let mut story = Story::of(2, None);
    story.exit(1, 3, false);
    assert_eq!(
        story.signal(libc::SIGTERM, Duration::ZERO),
        Some(all(libc::SIGTERM))
    );
    assert_eq!(
        (story.policy.root().unwrap().0, &story.policy.stop),
        (1, &None)
    );
}

#[test]
fn times_beyond_the_clock_are_never() {
    let mut story = Story::of(1, Some(Duration::MAX));
    assert_eq!(story.policy.next(), None);
    story.policy.grace = Duration::MAX;
    assert!(story.signal(libc::SIGTERM, Duration::ZERO).is_some());
}
