//! Values by stage and block, as rows of tables change them.

use std::collections::HashSet;

use super::index::Index;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::number::Id;
use crate::hydrothermal::table::Row;

/// The key of a row: thing, stage, and block if it is about one.
pub(super) type RowKey = (Id, Id, Option<Id>);

/// The same value in every stage and block.
pub(super) fn everywhere<T: Copy>(stages: &[Stage], value: T) -> Vec<Vec<T>> {
    let blocks = stages.iter().map(|stage| vec![value; stage.hours.len()]);
    blocks.collect()
}

/// The index of a list of things, and their values by stage and block: that of each thing, but where rows change it.
pub(super) fn with_bounds<'a, R: Row, T: Copy>(
    (what, list): (&'static str, &Place),
    things: impl Iterator<Item = (Id, &'a str, T)> + Clone,
    (stages, stage_index): (&[Stage], &Index),
    rows: &[R],
    key: impl Fn(&R) -> RowKey,
    change: impl Fn(&mut T, &R),
    findings: &mut Findings,
) -> (Index, Vec<Vec<Vec<T>>>) {
    let names = things.clone().map(|(id, name, _)| (id, name));
    let index = Index::new(what, names, list, findings);
    let whole = things.map(|(_, _, value)| everywhere(stages, value));
    let mut values: Vec<Vec<Vec<T>>> = whole.collect();
    apply(
        rows,
        (&index, stage_index),
        key,
        change,
        &mut values,
        findings,
    );
    (index, values)
}

/// Puts rows in place, by thing, stage and block: those of whole stages first, then those of blocks, which beat
/// them. Says which rows name nothing or come twice.
pub(super) fn apply<R: Row, T>(
    rows: &[R],
    (things, stages): (&Index, &Index),
    key: impl Fn(&R) -> RowKey,
    change: impl Fn(&mut T, &R),
    values: &mut [Vec<Vec<T>>],
    findings: &mut Findings,
) {
    let file = Place::file(R::FILE);
    let mut seen = HashSet::new();
    for of_block in [false, true] {
        let numbered = rows.iter().enumerate();
        for (number, row) in numbered.filter(|(_, row)| key(row).2.is_some() == of_block) {
            let (thing, stage, block) = key(row);
            let at = file.row(number);
            let thing_found = things.find(thing, &at, findings);
            let stage_found = stages.find(stage, &at, findings);
            let (Some(thing_at), Some(stage_at)) = (thing_found, stage_found) else {
                continue;
            };
            if !seen.insert((thing_at, stage_at, block)) {
                let block = block.map(|id| format!(", block {id}"));
                let message = format!(
                    "there is a row of {} {thing}, stage {stage}{} already",
                    things.what(),
                    block.unwrap_or_default()
                );
                findings.wrong(&at, message);
            }
            let values = &mut values[thing_at][stage_at];
            let Some(id) = block else {
                for value in values {
                    change(value, row);
                }
                continue;
            };
            match usize::try_from(id).ok().and_then(|id| values.get_mut(id)) {
                Some(value) => change(value, row),
                None => findings.wrong(&at, format!("stage {stage} has no block {id}")),
            }
        }
    }
}

/// Says where rows of a table make the least of something larger than the most, in a stage of a thing that is sound
/// without them.
pub(super) fn check_order<T>(
    file: &'static str,
    what: &str,
    values: &[Vec<T>],
    stages: &[Stage],
    range: impl Fn(&T) -> (f64, f64),
    findings: &mut Findings,
) {
    for (of_stage, stage) in values.iter().zip(stages) {
        let mut ranges = of_stage.iter().map(&range);
        if let Some((least, most)) = ranges.find(|(least, most)| least > most) {
            let at = Place::file(file).rows(format!("{what}, stage {}", stage.id));
            findings.wrong(
                &at,
                format!("the least, {least}, is above the most, {most}"),
            );
        }
    }
}
