//! Checkpoints: the state of training after some iterations, from which a run resumes.
//!
//! Training after an iteration depends on the cuts, on the warm starts of work units, and on the
//! progress so far; random numbers depend on the seed and the iteration's number alone. All of it
//! is stored bit for bit, so a resumed run has the bits of one that was never interrupted, on any
//! number of ranks: warm starts are stored by unit, not by rank.

mod cadence;
mod identity;
mod store;

pub use cadence::Cadence;
pub(crate) use identity::Provenance;

use std::path::Path;

use serde::{Deserialize, Serialize};

use self::identity::Identity;
use self::store::Store;
use crate::error::SddpError;
use crate::output::RunOutput;
use crate::policy::SavedCuts;
use crate::rank_work::RankWork;
use crate::ranks::{Backend, ByteBlocks, Ranks, split};
use crate::settings::Settings;
use crate::team::lock;
use crate::training::Progress;

/// True if there is a checkpoint beside the results in `output`.
pub fn exists(output: &Path) -> bool {
    !store::numbers_in(output).is_empty()
}

/// Refuses a directory in which something that Cobre did not write is where checkpoints are kept. Writes nothing.
///
/// # Errors
/// When that is so, or cannot be found out.
pub(crate) fn check(output: &Path) -> Result<(), SddpError> {
    store::survey(output)?;
    Ok(())
}

/// The state of training after an iteration. The warm starts of units come before it.
#[derive(Debug, Serialize, Deserialize)]
struct SavedState {
    progress: Progress,
    cuts: SavedCuts,
    /// The lengths of the units' warm starts: of the forward passes, then by level.
    lengths: Vec<Vec<u64>>,
}

/// The checkpoints of a run. Every rank has one; only the first rank's has files.
pub(crate) struct Checkpoints {
    cadence: Cadence,
    store: Option<Store>,
    /// Seconds of training at the latest one.
    latest: f64,
}

impl Checkpoints {
    /// Opens the checkpoints in `directory`, which the first rank has if results are written.
    ///
    /// # Errors
    /// When there are files of an unfinished run that this one would lose.
    pub(crate) fn new(
        directory: Option<&RunOutput>,
        provenance: &Provenance,
        settings: &Settings,
    ) -> Result<Self, SddpError> {
        let identity = || Identity::of(provenance, settings);
        let store = directory.map(|directory| Store::open(directory.path(), identity()));
        let store = store.transpose()?;
        if let Some(store) = store.as_ref().filter(|_| !settings.resume) {
            store.start_anew()?;
        }
        let cadence = if settings.output.is_some() {
            settings.checkpoints
        } else {
            Cadence::Never
        };
        Ok(Self {
            cadence,
            store,
            latest: 0.0,
        })
    }

    /// True if one is due after this iteration; all ranks agree.
    pub(crate) fn is_due(&self, iteration: usize, seconds: f64) -> bool {
        match self.cadence {
            Cadence::Never => false,
            Cadence::Iterations(every) => iteration.is_multiple_of(every),
            Cadence::Seconds(every) => seconds - self.latest >= every,
        }
    }

    /// Writes a checkpoint after an iteration. Collective. Training goes on while files are
    /// written.
    ///
    /// # Errors
    /// When the one before could not be written, and when a rank is gone.
    pub(crate) fn keep<C: Backend>(
        &mut self,
        work: &RankWork<'_, C>,
        ranks: &Ranks<'_, C>,
        progress: &Progress,
    ) -> Result<(), SddpError> {
        if self.cadence == Cadence::Never {
            return Ok(());
        }
        let count = progress.iterations.len();
        self.latest = progress.time().total;
        let parts = self.store.as_mut().map(|store| store.begin(count));
        let parts = parts.transpose()?;
        let mut lengths = Vec::new();
        let mut gather = |items: usize, mine: &ByteBlocks| -> Result<(), SddpError> {
            let of_items = ranks.gather_lengths(items, mine)?;
            ranks.gather_to_first(&of_items, mine, &mut |piece: &[u8]| {
                if let Some(parts) = &parts {
                    parts.push(piece);
                }
                Ok::<(), SddpError>(())
            })?;
            lengths.push(of_items);
            Ok(())
        };
        let mut mine = ByteBlocks::default();
        for simulator in &work.forward {
            mine.push(&lock(simulator).warm_starts);
        }
        gather(work.passes, &mine)?;
        for (units, all) in work.backward.iter().zip(&work.units) {
            mine.clear();
            for unit in units {
                mine.push(&lock(unit).warm_start);
            }
            gather(all.len(), &mine)?;
        }
        if let Some(parts) = parts {
            let shared = work.read();
            parts.end(SavedState {
                progress: progress.clone(),
                cuts: shared.pool.saved(shared.problem, count),
                lengths,
            });
        }
        Ok(())
    }

    /// Waits until the files are written.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn settle(&mut self) -> Result<(), SddpError> {
        self.store.as_mut().map_or(Ok(()), Store::settle)
    }

    /// Notes that all results are written: the next run may replace them.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub(crate) fn finish(&mut self) -> Result<(), SddpError> {
        self.store.as_mut().map_or(Ok(()), Store::finish)
    }

    /// Restores the newest intact checkpoint on every rank; `None` if there is none. Collective.
    /// `warn` gets a message for each damaged one.
    ///
    /// # Errors
    /// When the state is of another problem or of other settings, and when a rank is gone.
    pub(crate) fn restore<C: Backend>(
        &mut self,
        work: &RankWork<'_, C>,
        ranks: &Ranks<'_, C>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Option<Progress>, SddpError> {
        let found = match &mut self.store {
            Some(store) => store.newest(warn)?,
            None => Vec::new(),
        };
        let bytes = ranks.broadcast_bytes(found)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let split = store::split_state(&bytes);
        let read = split.and_then(|(warm_starts, state)| {
            let state = postcard::from_bytes::<SavedState>(state).ok()?;
            Some((state, warm_starts))
        });
        let (state, warm_starts) =
            read.ok_or_else(|| unreadable("the cuts and figures of a checkpoint"))?;
        let mut shared = work.write();
        let problem = shared.problem;
        let (passes, count) = (work.passes, state.progress.iterations.len());
        if !state.progress.fits(passes) || !state.cuts.fits(problem, passes, count) {
            return Err(unreadable("the cuts and figures of a checkpoint"));
        }
        shared.pool.restore(ranks, problem, &state.cuts, count)?;
        drop(shared);
        restore_warm_starts(work, ranks, &state.lengths, warm_starts)?;
        if let Some(last) = state.progress.iterations.last() {
            self.latest = last.time.total;
            if ranks.is_first() {
                work.add_statistics(last.lp);
            }
        }
        Ok(Some(state.progress))
    }
}

/// Gives the units of this rank their warm starts, which are in `bytes` for all ranks.
fn restore_warm_starts<C: Backend>(
    work: &RankWork<'_, C>,
    ranks: &Ranks<'_, C>,
    lengths: &[Vec<u64>],
    bytes: &[u8],
) -> Result<(), SddpError> {
    let counts = std::iter::once(work.passes).chain(work.units.iter().map(Vec::len));
    let matches = lengths.iter().map(Vec::len).eq(counts);
    let lengths = lengths.concat();
    if !matches || split(&lengths, bytes).count() != lengths.len() {
        return Err(unreadable("the warm starts of units"));
    }
    let mut all = split(&lengths, bytes);
    let mut own = |count: usize| -> Vec<&[u8]> {
        let share = ranks.share(count);
        let all = all.by_ref().take(count).enumerate();
        let own = all.filter(|(number, _)| share.contains(number));
        own.map(|(_, bytes)| bytes).collect()
    };
    let nodes = work.read().problem.nodes.len();
    for (simulator, bytes) in work.forward.iter().zip(own(work.passes)) {
        let warm_starts = &mut lock(simulator).warm_starts;
        put(warm_starts, bytes)?;
        if warm_starts.len() != nodes {
            return Err(unreadable("the warm starts of units"));
        }
    }
    for (units, all) in work.backward.iter().zip(&work.units) {
        for (unit, bytes) in units.iter().zip(own(all.len())) {
            put(&mut lock(unit).warm_start, bytes)?;
        }
    }
    Ok(())
}

fn put<T: for<'de> Deserialize<'de>>(warm_start: &mut T, bytes: &[u8]) -> Result<(), SddpError> {
    let unreadable = |_| unreadable("the warm start of a unit");
    *warm_start = postcard::from_bytes(bytes).map_err(unreadable)?;
    Ok(())
}

/// The error of a checkpoint whose hash is right and whose contents are not.
fn unreadable(what: &str) -> SddpError {
    SddpError::Checkpoint(format!(
        "{what} cannot be read; remove the directory `checkpoint` to begin anew"
    ))
}
