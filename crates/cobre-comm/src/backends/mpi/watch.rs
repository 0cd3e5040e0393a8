//! A thread that looks whether this rank waits in a collective for long, and for whom. It tells; and
//! it ends the job when a rank of the node has left that the others wait for in their node's
//! communicator, which nobody else would find out.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferrompi::Communicator as Comm;

use super::ending;
use super::group::Group;
use super::sys::Window;
use crate::backends::host;
use crate::error::CallPosition;

/// The interval at which it looks.
const LOOK: Duration = Duration::from_millis(250);
/// Looks in a row that must show the same before a rank that left is what another waits for: what
/// it had sent may still be on its way.
const SURE: u32 = 12;

/// Words of a rank in the node status: a cache line.
const LINE: usize = 8;
/// Places in it: whether the rank has left, its last step in the job and on its node, and whether
/// somebody has said that it left too early.
const LEFT: usize = 0;
const JOB: usize = 1;
const NODE: usize = 2;
const TOLD: usize = 3;

/// Rank status beside MPI: memory that all ranks of a node see.
pub(super) struct NodeStatus {
    window: Window,
    own: usize,
    /// Rank in the job, and process, of each rank of the node.
    ranks: Vec<(usize, u32)>,
}

impl NodeStatus {
    /// Collective.
    pub(super) fn new(all: &Comm, node: &Comm) -> ferrompi::Result<Self> {
        let own = [all.rank() as u64, std::process::id().into()];
        let mut said = vec![0; own.len() * node.size() as usize];
        node.allgather(&own, &mut said)?;
        let ranks = said.chunks(own.len());
        let ranks = ranks.map(|said| (said[0] as usize, said[1] as u32));
        let bytes = LINE * size_of::<u64>() * node.size() as usize;
        Ok(Self {
            window: Window::allocate(node, bytes, LINE * size_of::<u64>())?,
            own: node.rank() as usize,
            ranks: ranks.collect(),
        })
    }

    fn word(&self, rank: usize, place: usize) -> &AtomicU64 {
        self.window.word(rank * LINE + place)
    }

    /// This rank leaves the job.
    pub(super) fn leave(&self) {
        self.word(self.own, LEFT).store(1, Relaxed);
    }

    fn has_left(&self, rank: usize) -> bool {
        self.word(rank, LEFT).load(Relaxed) == 1
    }

    fn peers(&self) -> impl Iterator<Item = usize> {
        let own = self.own;
        (0..self.ranks.len()).filter(move |&rank| rank != own)
    }

    fn step(&self, rank: usize, place: usize) -> Option<CallPosition> {
        CallPosition::of_word(self.word(rank, place).load(Relaxed))
    }

    fn who(&self, rank: usize) -> String {
        let (number, pid) = self.ranks[rank];
        host::process(number, pid, &host::name())
    }

    /// Describes a rank of the node.
    fn describe(&self, rank: usize) -> String {
        let number = self.ranks[rank].0;
        let known = [(JOB, "of the job"), (NODE, "of the node")];
        let steps =
            known.map(|(place, whose)| Some(format!("{} {whose}", self.step(rank, place)?)));
        let steps: Vec<String> = steps.into_iter().flatten().collect();
        if self.has_left(rank) {
            format!("rank {number} has left")
        } else if steps.is_empty() {
            format!("rank {number} began no collective yet")
        } else {
            format!("rank {number} last began {}", steps.join(" and "))
        }
    }
}

/// Tracks the calls of this rank on one communicator.
pub(super) struct CallTracker {
    node_status: Arc<NodeStatus>,
    /// True if it is a communicator of the node rather than of the job.
    of_node: bool,
    /// The last collective begun, as a word; 0 before the first.
    last: AtomicU64,
    /// Odd inside of a collective, even outside; each has a number of its own.
    turn: AtomicU64,
    leaving: AtomicBool,
}

impl CallTracker {
    #[inline]
    pub(super) fn enter(&self, step: CallPosition) {
        self.last.store(step.word(), Relaxed);
        let place = if self.of_node { NODE } else { JOB };
        let own = self.node_status.word(self.node_status.own, place);
        own.store(step.word(), Relaxed);
        self.next();
    }

    #[inline]
    pub(super) fn exit(&self) {
        self.next();
    }

    /// One thread at a time is in a collective of a communicator.
    #[inline]
    fn next(&self) {
        self.turn.store(self.turn.load(Relaxed) + 1, Relaxed);
    }

    pub(super) fn last(&self) -> Option<CallPosition> {
        CallPosition::of_word(self.last.load(Relaxed))
    }

    /// From here on this rank waits for the others to leave.
    pub(super) fn leave(&self) {
        self.node_status.leave();
        self.leaving.store(true, Relaxed);
        self.next();
    }
}

/// The thread, and what it looks at.
pub(super) struct StallWatch {
    node_status: Arc<NodeStatus>,
    trackers: Arc<Mutex<Vec<TrackedCall>>>,
    /// Dropped to let the thread end.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A call tracker as it was seen the last time.
struct TrackedCall {
    tracker: Weak<CallTracker>,
    turn: u64,
    since: Instant,
    /// Looks since a rank of the node has left.
    left: u32,
    told: bool,
}

impl StallWatch {
    /// Begins to look, in a job of more than one rank.
    pub(super) fn begin(node_status: NodeStatus, group: Arc<Group>, stall: Duration) -> Self {
        let mut watch = Self {
            node_status: Arc::new(node_status),
            trackers: Arc::default(),
            stop: None,
            thread: None,
        };
        let all = &group.all.comm;
        if all.size() > 1 {
            let (stop, stopped) = channel();
            let detector = StallDetector {
                rank: all.rank() as usize,
                node_status: watch.node_status.clone(),
                trackers: watch.trackers.clone(),
                group,
                stall,
            };
            let builder = std::thread::Builder::new().name("cobre-mpi-watch".to_owned());
            // Without it there are no reports, and that is all.
            watch.thread = builder.spawn(move || detector.run(&stopped)).ok();
            watch.stop = Some(stop);
        }
        watch
    }

    /// A call tracker that is looked at as long as it exists.
    pub(super) fn tracker(&self, of_node: bool) -> Arc<CallTracker> {
        let tracker = Arc::new(CallTracker {
            node_status: self.node_status.clone(),
            of_node,
            last: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
        });
        let mut trackers = self.trackers.lock().unwrap_or_else(PoisonError::into_inner);
        trackers.retain(|seen| seen.tracker.strong_count() > 0);
        trackers.push(TrackedCall {
            tracker: Arc::downgrade(&tracker),
            turn: 0,
            since: Instant::now(),
            left: 0,
            told: false,
        });
        tracker
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct StallDetector {
    rank: usize,
    node_status: Arc<NodeStatus>,
    trackers: Arc<Mutex<Vec<TrackedCall>>>,
    group: Arc<Group>,
    stall: Duration,
}

impl StallDetector {
    fn run(self, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
            let mut trackers = self.trackers.lock().unwrap_or_else(PoisonError::into_inner);
            for seen in &mut *trackers {
                if let Some(tracker) = seen.tracker.upgrade() {
                    self.look(seen, &tracker);
                }
            }
        }
    }

    fn look(&self, seen: &mut TrackedCall, tracker: &CallTracker) {
        let turn = tracker.turn.load(Relaxed);
        if turn != seen.turn || turn.is_multiple_of(2) {
            (seen.turn, seen.since) = (turn, Instant::now());
            (seen.left, seen.told) = (0, false);
            return;
        }
        let left = self
            .node_status
            .peers()
            .find(|&rank| self.node_status.has_left(rank));
        if let (Some(left), true) = (left, tracker.of_node) {
            seen.left += 1;
            if seen.left >= SURE {
                self.end(left, tracker);
            }
        }
        let waited = seen.since.elapsed();
        if waited >= self.stall && !seen.told {
            seen.told = true;
            self.tell(waited, tracker);
        }
    }

    /// A rank that has left never comes: nobody of the node can go on. One of them says so.
    fn end(&self, left: usize, tracker: &CallTracker) {
        let told = self.node_status.word(left, TOLD);
        if told.compare_exchange(0, 1, Relaxed, Relaxed).is_ok() {
            let step = tracker
                .last()
                .map_or_else(String::new, |step| step.to_string());
            let reason = format!(
                "left while others still needed it: rank {} waits for it in {step} of their node",
                self.rank
            );
            let (number, who) = (self.node_status.ranks[left].0, self.node_status.who(left));
            ending::end_because_of(&self.group.all.comm, number, &who, &reason);
        }
    }

    fn tell(&self, waited: Duration, tracker: &CallTracker) {
        let (who, seconds) = (ending::who(self.rank), waited.as_secs());
        let others: Vec<String> = self
            .node_status
            .peers()
            .map(|r| self.node_status.describe(r))
            .collect();
        let others = match &others[..] {
            [] => String::new(),
            some => format!("; on its node, {}", some.join("; ")),
        };
        let does = if tracker.leaving.load(Relaxed) {
            format!("has left and waits for the others to leave, for {seconds} s so far")
        } else {
            let step = tracker
                .last()
                .map_or_else(String::new, |step| step.to_string());
            let whose = if tracker.of_node { "node" } else { "job" };
            format!("waits in {step} of the {whose}, for {seconds} s so far")
        };
        ending::tell(&format!("{who} {does}{others}"));
    }
}
