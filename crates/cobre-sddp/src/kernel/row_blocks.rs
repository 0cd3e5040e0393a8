//! Inequalities of large stages in blocks of 8 that have their columns in common, such as the hyperplanes of a plant in
//! a period: their activities and what follows from them take a vector operation for each column of a block.

use super::basis::NO_ROW;
use super::sparse::Sparse;

/// Rows of a block.
pub(super) const LANES: usize = 8;
/// A number for each row of a block.
pub(super) type Lanes = [f64; LANES];

/// The inequalities of a linear program in blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct RowBlocks {
    /// By block and lane: the row.
    pub(super) rows: Vec<[u32; LANES]>,
    /// By row: block × [`LANES`] + lane, [`NO_ROW`] for equalities.
    places: Vec<u32>,
    /// By block, where its columns begin; and these, in order, with their coefficients.
    starts: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<Lanes>,
    /// By column, its blocks and its places among `columns`.
    uses: Vec<(u32, u32)>,
    use_starts: Vec<u32>,
}

impl RowBlocks {
    /// The rows from `first` on in blocks: each of `together` in blocks of its own, with the other rows that have no
    /// further columns as far as there is room.
    pub(super) fn new(
        first: usize,
        together: impl Iterator<Item = Vec<usize>>,
        by_row: &Sparse,
        columns: usize,
    ) -> Self {
        let columns_of = |row: usize| by_row.list(row).iter().map(|entry| entry.0);
        let mut blocks: Vec<(Vec<usize>, Vec<u32>)> = Vec::new();
        let mut is_placed = vec![false; by_row.count()];
        let mut block_of = vec![Vec::new(); columns];
        for mut rows in together {
            // A row with columns of several groups is in one block.
            rows.retain(|&row| !std::mem::replace(&mut is_placed[row], true));
            for rows in rows.chunks(LANES) {
                let mut all: Vec<u32> = rows.iter().flat_map(|&row| columns_of(row)).collect();
                all.sort_unstable();
                all.dedup();
                for &column in &all {
                    block_of[column as usize].push(blocks.len());
                }
                blocks.push((rows.to_vec(), all));
            }
        }
        for row in (first..by_row.count()).filter(|&row| !is_placed[row]) {
            let holds = |block: &(Vec<usize>, Vec<u32>)| {
                block.0.len() < LANES
                    && columns_of(row).all(|column| block.1.binary_search(&column).is_ok())
            };
            let near = columns_of(row).next();
            let near = near.and_then(|column| {
                let candidates = block_of[column as usize].iter().copied();
                candidates.into_iter().find(|&at| holds(&blocks[at]))
            });
            if let Some(at) = near {
                blocks[at].0.push(row);
            } else {
                let mut all: Vec<u32> = columns_of(row).collect();
                all.sort_unstable();
                for &column in &all {
                    block_of[column as usize].push(blocks.len());
                }
                blocks.push((vec![row], all));
            }
        }
        Self::of(&blocks, by_row, columns)
    }

    fn of(blocks: &[(Vec<usize>, Vec<u32>)], by_row: &Sparse, columns: usize) -> Self {
        let mut all = Self {
            places: vec![NO_ROW; by_row.count()],
            starts: vec![0],
            ..Self::default()
        };
        let mut uses = vec![Vec::new(); columns];
        for (number, (rows, columns)) in blocks.iter().enumerate() {
            let mut lanes = [NO_ROW; LANES];
            for (lane, &row) in rows.iter().enumerate() {
                lanes[lane] = row as u32;
                all.places[row] = (number * LANES + lane) as u32;
            }
            all.rows.push(lanes);
            for &column in columns {
                uses[column as usize].push((number as u32, all.columns.len() as u32));
                all.columns.push(column);
            }
            all.starts.push(all.columns.len() as u32);
        }
        all.coefficients = vec![[0.0; LANES]; all.columns.len()];
        all.use_starts.push(0);
        for list in uses {
            all.uses.extend(list);
            all.use_starts.push(all.uses.len() as u32);
        }
        for row in 0..by_row.count() {
            all.update(row, by_row);
        }
        all
    }

    /// Takes the present coefficients of a row.
    pub(super) fn update(&mut self, row: usize, by_row: &Sparse) {
        let Some(&place) = self.places.get(row).filter(|place| **place != NO_ROW) else {
            return;
        };
        let (block, lane) = (place as usize / LANES, place as usize % LANES);
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        let columns = self.columns[range.clone()].iter();
        let mut entries = by_row.list(row).iter().peekable();
        for (column, coefficients) in columns.zip(&mut self.coefficients[range]) {
            let found = entries.next_if(|entry| entry.0 == *column);
            coefficients[lane] = found.map_or(0.0, |entry| entry.1);
        }
    }

    /// The place of a row: its block and lane.
    #[inline]
    pub(super) fn place(&self, row: usize) -> Option<(usize, usize)> {
        let place = self.places[row];
        (place != NO_ROW).then_some((place as usize / LANES, place as usize % LANES))
    }

    /// The number of blocks.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The columns of a block with their coefficients.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    pub(super) fn terms(&self, block: usize) -> impl Iterator<Item = (u32, &Lanes)> {
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        let columns = self.columns[range.clone()].iter().copied();
        columns.zip(&self.coefficients[range])
    }

    /// The blocks that a column is in, with its coefficients.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    pub(super) fn blocks_of(&self, column: usize) -> impl Iterator<Item = (usize, &Lanes)> {
        let range = self.use_starts[column] as usize..self.use_starts[column + 1] as usize;
        let uses = self.uses[range].iter();
        uses.map(|&(block, at)| (block as usize, &self.coefficients[at as usize]))
    }
}
