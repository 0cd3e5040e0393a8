//! The uncertain series of a stage: how a number of each becomes changes of its linear program.

use cobre_sddp::{Change, ColumnId, RowId};

use super::Program;
use super::inflow::shortfall;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::sampling::Kinds;
use crate::hydrothermal::system::{InflowModel, SourceBlock, Spread};

/// A number of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SeriesNumber {
    /// A standard normal number, which the model of the series makes a value of.
    Drawn(f64),
    /// The value: an inflow without its part from the past, m³/s; a load, MW; a share of the capacity of a source.
    Value(f64),
}

/// The uncertain series of a stage, in the order of [`Kinds`].
#[derive(Debug)]
pub(crate) struct StageSeries {
    inflows: Vec<UncertainInflow>,
    loads: Vec<UncertainLoad>,
    sources: Vec<UncertainSource>,
}

#[derive(Debug)]
struct UncertainInflow {
    model: InflowModel,
    /// The row whose right-hand side it is, and hm³ per unit of it where that is a balance of water.
    row: Option<(RowId, f64)>,
    /// True if the linear program, which all regimes share, does not have its number.
    of_regime: bool,
    /// True if values below zero are zero.
    truncated: bool,
    /// The column of added water, whose bound is what the inflow lacks to zero.
    added: Option<ColumnId>,
}

#[derive(Debug)]
struct UncertainLoad {
    spread: Spread,
    /// Rows with the factors of their blocks.
    rows: Vec<(RowId, f64)>,
}

#[derive(Debug)]
struct UncertainSource {
    spread: Spread,
    may_curtail: bool,
    blocks: Vec<(SourceBlock, ColumnId, Option<RowId>)>,
}

impl StageSeries {
    /// The series in a regime of a stage whose linear program is complete.
    pub(super) fn new(program: &Program<'_>, regime: Option<Id>) -> Self {
        let (system, stage, layout) = (program.system, program.number, &program.layout);
        let inflows = system.hydros.iter().zip(&layout.hydros);
        let inflows = inflows.map(|(plant, layout)| {
            let depends = !plant.inflow.past.is_empty();
            let volume = match layout.inflow {
                Some(_) => 1.0,
                None => program.stage.total_volume(),
            };
            UncertainInflow {
                model: plant.inflow.model(regime, stage).clone(),
                of_regime: plant.inflow.of_regime(regime, stage).is_some(),
                row: layout.drawn.map(|row| (row, volume)),
                truncated: system.non_negativity.truncates() && !depends,
                added: layout.added.filter(|_| !depends),
            }
        });
        let loads = system.buses.iter().zip(&layout.buses);
        let loads = loads.map(|(bus, layout)| {
            let factors = bus.factors[stage].iter().copied();
            UncertainLoad {
                spread: bus.load[stage],
                rows: layout.energy.iter().copied().zip(factors).collect(),
            }
        });
        let sources = system.sources.iter().enumerate().map(|(place, source)| {
            let curtailed = layout.curtailed[place].as_ref();
            let blocks = layout.sources[place].iter().enumerate();
            let blocks = blocks.map(|(block, &column)| {
                let row = curtailed.map(|curtailed| curtailed.rows[block]);
                (source.block(stage, block), column, row)
            });
            UncertainSource {
                spread: source.availability[stage],
                may_curtail: source.may_curtail,
                blocks: blocks.collect(),
            }
        });
        Self {
            inflows: inflows.collect(),
            loads: loads.collect(),
            sources: sources.collect(),
        }
    }

    /// True if a number of some series is drawn.
    pub(super) fn is_uncertain(&self) -> bool {
        let inflows = self.inflows.iter().map(|series| series.model.deviation);
        let loads = self.loads.iter().map(|series| series.spread.deviation);
        let sources = self.sources.iter().map(|series| series.spread.deviation);
        let mut all = inflows.chain(loads).chain(sources);
        all.any(|deviation| deviation > 0.0)
    }

    /// True if some inflow is that of a regime.
    pub(super) fn has_regime(&self) -> bool {
        self.inflows.iter().any(|series| series.of_regime)
    }

    /// The changes for a number of each series. Those that are certain change nothing when they are drawn.
    pub(crate) fn changes(&self, kinds: &Kinds, numbers: &[SeriesNumber]) -> Vec<Change> {
        let mut changes = Vec::new();
        let numbers_of = |kind: &std::ops::Range<usize>| numbers[kind.clone()].iter().copied();
        for (series, number) in self.inflows.iter().zip(numbers_of(&kinds.inflows)) {
            series.change(number, &mut changes);
        }
        for (series, number) in self.loads.iter().zip(numbers_of(&kinds.loads)) {
            series.change(number, &mut changes);
        }
        for (series, number) in self.sources.iter().zip(numbers_of(&kinds.sources)) {
            series.change(number, &mut changes);
        }
        changes
    }
}

impl UncertainInflow {
    fn change(&self, number: SeriesNumber, changes: &mut Vec<Change>) {
        let Some((row, volume)) = self.row else {
            return;
        };
        let value = match number {
            SeriesNumber::Drawn(_) if self.model.deviation == 0.0 && !self.of_regime => return,
            SeriesNumber::Drawn(drawn) => self.model.drawn(drawn),
            SeriesNumber::Value(value) => value,
        };
        let value = if self.truncated {
            value.max(0.0)
        } else {
            value
        };
        changes.push(Change::RowBounds {
            row,
            lower: volume * value,
            upper: volume * value,
        });
        changes.extend(self.added.map(|column| Change::ColumnBounds {
            column,
            lower: 0.0,
            upper: shortfall(value),
        }));
    }
}

impl UncertainLoad {
    fn change(&self, number: SeriesNumber, changes: &mut Vec<Change>) {
        let Spread { mean, deviation } = self.spread;
        let value = match number {
            SeriesNumber::Drawn(_) if deviation == 0.0 => return,
            SeriesNumber::Drawn(drawn) => (mean + deviation * drawn).max(0.0),
            SeriesNumber::Value(value) => value,
        };
        let rows = self.rows.iter();
        changes.extend(rows.map(|&(row, factor)| Change::RowBounds {
            row,
            lower: value * factor,
            upper: value * factor,
        }));
    }
}

impl UncertainSource {
    fn change(&self, number: SeriesNumber, changes: &mut Vec<Change>) {
        let Spread { mean, deviation } = self.spread;
        for &(block, column, row) in &self.blocks {
            let most = match number {
                SeriesNumber::Drawn(_) if deviation == 0.0 => return,
                SeriesNumber::Drawn(drawn) => {
                    block.available((mean + deviation * drawn).clamp(0.0, 1.0))
                }
                SeriesNumber::Value(share) => block.at_share(share),
            };
            changes.push(Change::ColumnBounds {
                column,
                lower: if self.may_curtail { 0.0 } else { most },
                upper: most,
            });
            changes.extend(row.map(|row| Change::RowBounds {
                row,
                lower: most,
                upper: most,
            }));
        }
    }
}
