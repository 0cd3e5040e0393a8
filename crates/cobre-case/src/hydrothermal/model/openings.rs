//! Openings of a stage, put into its linear program.

use cobre_sddp::{Change, Draft, NodeId};

use super::series::{SeriesNumber, StageSeries};
use crate::hydrothermal::sampling::{Kinds, OpeningSampler};
use crate::hydrothermal::system::System;

/// The changes of each opening of a stage; none if nothing is uncertain.
pub(super) struct Openings(Vec<Vec<Change>>);

impl Openings {
    /// Draws the openings of a stage.
    pub(super) fn new(
        system: &System,
        stage: usize,
        series: &StageSeries,
        sampling: &OpeningSampler,
    ) -> Self {
        let kinds = Kinds::of(system);
        if !series.is_uncertain() {
            // The one outcome of a regime differs from the linear program that all regimes share.
            let certain = vec![SeriesNumber::Drawn(0.0); kinds.sources.end];
            let outcome = series
                .has_regime()
                .then(|| series.changes(&kinds, &certain));
            return Self(outcome.into_iter().collect());
        }
        let drawn = sampling.draw(system, stage);
        let changes = drawn.iter().map(|drawn| {
            let numbers = drawn.iter().map(|number| SeriesNumber::Drawn(*number));
            series.changes(&kinds, &numbers.collect::<Vec<_>>())
        });
        Self(changes.collect())
    }

    /// Gives them to a node.
    pub(super) fn add(self, node: NodeId, draft: &mut Draft) {
        let probability = 1.0 / self.0.len() as f64;
        for changes in self.0 {
            draft.opening(node, probability, changes);
        }
    }
}
