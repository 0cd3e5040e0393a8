//! Spans of time that a rank spends in parts of a run, for a timeline.

use std::cell::{Cell, RefCell};
use std::time::Instant;

/// Most spans that are kept until somebody takes them; later ones are counted only.
const MOST: usize = 1 << 16;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// The forward passes of an iteration.
    Forward,
    /// The backward pass of an iteration, the bound included.
    Backward,
    /// An evaluation of the upper bound.
    UpperBound,
    /// A checkpoint.
    Checkpoint,
    /// Simulated paths.
    Simulation,
    /// A collective of this name, waiting for other ranks included.
    Collective(&'static str),
}

impl SpanKind {
    /// The name on a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::UpperBound => "upper bound",
            Self::Checkpoint => "checkpoint",
            Self::Simulation => "simulation",
            Self::Collective(name) => name,
        }
    }
}

/// The time that this rank was in a part of a run.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The part.
    pub kind: SpanKind,
    /// Its beginning.
    pub start: Instant,
    /// Its end.
    pub end: Instant,
    /// The iteration, from 1; 0 outside training.
    pub iteration: usize,
}

/// The spans of a rank that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct SpanLog {
    on: Cell<bool>,
    iteration: Cell<usize>,
    spans: RefCell<Vec<Span>>,
}

impl SpanLog {
    /// Begins to keep spans, or not.
    pub(crate) fn keep(&self, on: bool) {
        self.on.set(on);
    }

    /// Sets the iteration of the spans that follow.
    pub(crate) fn iteration(&self, number: usize) {
        self.iteration.set(number);
    }

    /// Notes that a part ends now.
    pub(crate) fn note(&self, kind: SpanKind, start: Instant) {
        if !self.on.get() {
            return;
        }
        let mut spans = self.spans.borrow_mut();
        if spans.len() < MOST {
            spans.push(Span {
                kind,
                start,
                end: Instant::now(),
                iteration: self.iteration.get(),
            });
        }
    }

    /// The spans since the last time.
    pub(crate) fn take(&self) -> Vec<Span> {
        self.spans.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_kept_only_when_asked_for_and_never_without_a_limit() {
        let log = SpanLog::default();
        log.note(SpanKind::Forward, Instant::now());
        assert!(log.take().is_empty());
        log.keep(true);
        log.iteration(3);
        for _ in 0..MOST + 5 {
            log.note(SpanKind::Collective("barrier"), Instant::now());
        }
        let spans = log.take();
        assert_eq!((spans.len(), spans[0].iteration), (MOST, 3));
        assert!(log.take().is_empty());
    }
}
