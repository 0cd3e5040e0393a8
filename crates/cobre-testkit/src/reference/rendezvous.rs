//! A rendezvous of ranks: each brings a call and some bytes, and leaves with everybody's bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use cobre_comm::{Cause, Loss};

/// No test waits longer; it fails instead of hanging.
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Rendezvous {
    pub(super) size: usize,
    state: Mutex<RendezvousState>,
    changed: Condvar,
}

/// The contributions of every rank.
pub(super) type Everything = Arc<Vec<Vec<u8>>>;

#[derive(Debug)]
struct RendezvousState {
    /// Number of rendezvous that came about.
    done: u64,
    /// The ranks that have arrived for the next one: the call, and the bytes.
    here: Vec<Option<(String, Vec<u8>)>>,
    last: Everything,
    /// The cause for which no further rendezvous comes about.
    over: Option<Cause>,
    /// The losses of ranks that left.
    left: Vec<Option<Loss>>,
    /// The nodes' own rendezvous, by the call that asked for them.
    nodes: BTreeMap<(u64, usize), Arc<Rendezvous>>,
}

impl Rendezvous {
    pub(super) fn new(size: usize) -> Self {
        let state = RendezvousState {
            done: 0,
            here: vec![None; size],
            last: Arc::default(),
            over: None,
            left: vec![None; size],
            nodes: BTreeMap::new(),
        };
        Self {
            size,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Meets all other ranks, who must bring the same `call`.
    pub(super) fn attend(
        &self,
        rank: usize,
        call: String,
        bytes: &[u8],
    ) -> Result<Everything, Cause> {
        let start = Instant::now();
        let mut state = self.state.lock().unwrap();
        if let Some(cause) = &state.over {
            return Err(cause.clone());
        }
        state.here[rank] = Some((call, bytes.to_vec()));
        let number = state.done;
        state.settle();
        self.changed.notify_all();
        loop {
            if state.done > number {
                return Ok(Arc::clone(&state.last));
            }
            if let Some(cause) = &state.over {
                return Err(cause.clone());
            }
            let left = DEADLINE.saturating_sub(start.elapsed());
            if left.is_zero() {
                let missing = (0..self.size).filter(|&r| state.here[r].is_none());
                state.over = Some(Cause::Deadline {
                    waited: DEADLINE,
                    missing: missing.collect(),
                });
                self.changed.notify_all();
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// No rendezvous comes about any more; the first cause stays.
    pub(super) fn end(&self, cause: Cause) {
        let mut state = self.state.lock().unwrap();
        state.over.get_or_insert(cause);
        self.changed.notify_all();
    }

    /// `rank` will not come again.
    pub(super) fn leave(&self, rank: usize, how: Loss) {
        let mut state = self.state.lock().unwrap();
        state.left[rank] = Some(how);
        state.settle();
        self.changed.notify_all();
    }

    /// The rendezvous of the ranks of `node`, the same for all of them.
    pub(super) fn of_node(&self, call: u64, node: usize, size: usize) -> Arc<Self> {
        let mut state = self.state.lock().unwrap();
        let rendezvous = state.nodes.entry((call, node));
        Arc::clone(rendezvous.or_insert_with(|| Arc::new(Self::new(size))))
    }
}

impl RendezvousState {
    /// Lets the rendezvous come about if all are here and agree; ends it if it cannot any more.
    fn settle(&mut self) {
        if self.over.is_some() || self.here.iter().all(Option::is_none) {
            return;
        }
        let absent = |rank: &usize| self.here[*rank].is_none();
        if (0..self.here.len()).any(|rank| absent(&rank)) {
            let gone = (0..self.here.len())
                .filter(absent)
                .find_map(|rank| Some((rank, self.left[rank].clone()?)));
            if let Some((rank, how)) = gone {
                self.over = Some(Cause::RankLost {
                    rank,
                    host: "here".to_owned(),
                    pid: std::process::id(),
                    how,
                    last: None,
                });
            }
            return;
        }
        let calls: Vec<&str> = self
            .here
            .iter()
            .flatten()
            .map(|(call, _)| &**call)
            .collect();
        if let Some(rank) = calls.iter().position(|call| *call != calls[0]) {
            self.over = Some(Cause::Io {
                action: "mismatch".to_owned(),
                message: format!(
                    "rank 0 made {} while rank {rank} made {}",
                    calls[0], calls[rank]
                ),
            });
            return;
        }
        let bytes = self
            .here
            .iter_mut()
            .map(|slot| slot.take().expect("all are here").1);
        self.last = Arc::new(bytes.collect());
        self.done += 1;
    }
}
