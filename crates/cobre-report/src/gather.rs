//! Collecting a quantity of all entities of a table in few passes, whatever their number.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cobre_results::layout::{BLOCK, HOURS, id_column};
use cobre_results::{ResultsError, Table};

use crate::grid::Grid;
use crate::simulation::{Blocks, Entity, Gathered, MAX_SHOWN, Quantity, SimulationData};

impl SimulationData {
    /// Collects a quantity; none if the case has no such entities.
    pub(crate) fn gather(&self, quantity: Quantity) -> Result<Option<Gathered>, ResultsError> {
        let Some(table) = self.table(quantity.table)? else {
            return Ok(None);
        };
        let names = names(&table, quantity.entity)?;
        let weights = Weights::new(self, &table, quantity.blocks)?;
        let shown = largest(&table, quantity, &names)?;
        let mut places: HashMap<i64, usize> = HashMap::new();
        let mut entities = Vec::new();
        for (id, name) in &names {
            if shown.contains(id) {
                places.insert(*id, entities.len());
                entities.push(Entity {
                    id: *id,
                    name: name.clone(),
                    grid: self.grid(),
                });
            }
        }
        let mut total = self.grid();
        for group in 0..table.groups() {
            let ids = table.integers(group, &id_column(quantity.entity))?;
            let cells = self.places(&table, group)?;
            let mut values = quantity.values(&table, group)?;
            weights.apply(&table, group, &cells, &mut values)?;
            for ((row, (stage, scenario)), value) in cells.into_iter().enumerate().zip(values) {
                total.add(stage, scenario, value);
                if let Some(entity) = places.get(&ids[row]) {
                    entities[*entity].grid.add(stage, scenario, value);
                }
            }
        }
        Ok(Some(Gathered {
            total,
            entities,
            count: names.len(),
        }))
    }

    /// The sum of a column over the rows of each stage, those of blocks weighed by their hours.
    pub(crate) fn column(&self, table: &Table, column: &str) -> Result<Grid, ResultsError> {
        let in_blocks = table.columns().iter().any(|name| name == BLOCK);
        let blocks = if in_blocks {
            Blocks::Mean
        } else {
            Blocks::None
        };
        let weights = Weights::new(self, table, blocks)?;
        let mut grid = self.grid();
        for group in 0..table.groups() {
            let places = self.places(table, group)?;
            let mut values = table.numbers(group, column)?;
            weights.apply(table, group, &places, &mut values)?;
            for ((stage, scenario), value) in places.into_iter().zip(values) {
                grid.add(stage, scenario, value);
            }
        }
        Ok(grid)
    }

    /// The columns of a table that has one per entity, beside those that say which row it is.
    pub(crate) fn gather_columns(
        &self,
        name: &str,
        known: &[&str],
    ) -> Result<Option<Gathered>, ResultsError> {
        let Some(table) = self.table(name)? else {
            return Ok(None);
        };
        let columns = table.columns().iter();
        let columns: Vec<&String> = columns
            .filter(|column| !known.contains(&column.as_str()))
            .collect();
        let mut entities = Vec::new();
        for (id, column) in (0..).zip(columns.iter().take(MAX_SHOWN)) {
            entities.push(Entity {
                id,
                name: (*column).clone(),
                grid: self.column(&table, column)?,
            });
        }
        Ok(Some(Gathered {
            total: self.grid(),
            entities,
            count: columns.len(),
        }))
    }
}

/// The entities to show one by one: those whose values add up to most.
fn largest(
    table: &Table,
    quantity: Quantity,
    names: &[(i64, String)],
) -> Result<BTreeSet<i64>, ResultsError> {
    if names.len() <= MAX_SHOWN {
        return Ok(names.iter().map(|(id, _)| *id).collect());
    }
    let mut sums: HashMap<i64, f64> = HashMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, &id_column(quantity.entity))?;
        let values = quantity.values(table, group)?;
        for (id, value) in ids.into_iter().zip(values) {
            *sums.entry(id).or_default() += value.abs();
        }
    }
    let mut order: Vec<i64> = names.iter().map(|(id, _)| *id).collect();
    order.sort_by(|left, right| sums[right].total_cmp(&sums[left]));
    Ok(order.into_iter().take(MAX_SHOWN).collect())
}

/// The entities of a table in the order of their first rows, with their names.
pub(crate) fn names(table: &Table, entity: &str) -> Result<Vec<(i64, String)>, ResultsError> {
    let mut known = BTreeSet::new();
    let mut names = Vec::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, &id_column(entity))?;
        if ids.iter().all(|id| known.contains(id)) {
            continue;
        }
        let texts = table.texts(group, entity)?;
        for (id, name) in ids.into_iter().zip(texts) {
            if known.insert(id) {
                names.push((id, name));
            }
        }
    }
    Ok(names)
}

/// The weights of blocks in the value of their stage.
struct Weights {
    blocks: Blocks,
    /// The hours of each stage, if they matter.
    hours: Vec<f64>,
}

impl Weights {
    fn new(
        simulation: &SimulationData,
        table: &Table,
        blocks: Blocks,
    ) -> Result<Self, ResultsError> {
        let hours = match blocks {
            Blocks::Mean => stage_hours(table, simulation)?,
            Blocks::None | Blocks::Energy => Vec::new(),
        };
        Ok(Self { blocks, hours })
    }

    /// Weighs the values of a row group, of which the stages and scenarios are given.
    fn apply(
        &self,
        table: &Table,
        group: usize,
        places: &[(usize, usize)],
        values: &mut [f64],
    ) -> Result<(), ResultsError> {
        if self.blocks == Blocks::None {
            return Ok(());
        }
        let hours = table.numbers(group, HOURS)?;
        for ((value, hours), (stage, _)) in values.iter_mut().zip(hours).zip(places) {
            *value *= hours;
            if let Some(all) = self.hours.get(*stage) {
                *value /= all;
            }
        }
        Ok(())
    }
}

/// The hours of each stage.
fn stage_hours(table: &Table, simulation: &SimulationData) -> Result<Vec<f64>, ResultsError> {
    let mut of_blocks: BTreeMap<(usize, i64), f64> = BTreeMap::new();
    for group in 0..table.groups() {
        let blocks = table.integers(group, BLOCK)?;
        let hours = table.numbers(group, HOURS)?;
        let places = simulation.places(table, group)?;
        for (row, (stage, _)) in places.into_iter().enumerate() {
            of_blocks.insert((stage, blocks[row]), hours[row]);
        }
    }
    let mut hours = vec![0.0; simulation.stages.len()];
    for ((stage, _), of_block) in of_blocks {
        hours[stage] += of_block;
    }
    Ok(hours)
}
