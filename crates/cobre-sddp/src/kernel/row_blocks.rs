//! Inequalities of large stages in blocks of 8 that have their columns in common, such as the hyperplanes of a plant in
//! a period: their activities and what follows from them take a vector operation for each column of a block.

use super::basis::NO_ROW;
use super::sparse::Sparse;

/// Rows of a block.
pub(super) const LANES: usize = 8;

/// A number for each row of a block: a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f64; LANES]);

impl Lanes {
    /// The same number for all rows.
    pub(super) const fn all(number: f64) -> Self {
        Self([number; LANES])
    }
}

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
    /// Blocks of columns, and the places of these among `columns`; and by column, where its blocks begin and end.
    uses: Vec<(u32, u32)>,
    use_ranges: Vec<(u32, u32)>,
}

/// The rows of a block, and their columns in order.
#[derive(Debug, Default)]
struct Block {
    rows: Vec<usize>,
    columns: Vec<u32>,
}

/// Adds a row to a block; `block_of` has the blocks of each column.
fn add_row(
    blocks: &mut [Block],
    at: usize,
    row: usize,
    by_row: &Sparse,
    block_of: &mut [Vec<usize>],
) {
    blocks[at].rows.push(row);
    let columns = &mut blocks[at].columns;
    for &(column, _) in by_row.list(row) {
        if let Err(place) = columns.binary_search(&column) {
            columns.insert(place, column);
            block_of[column as usize].push(at);
        }
    }
}

impl RowBlocks {
    /// The rows from `first` on in blocks: each of `together` in blocks of its own, and each other row, as far as there
    /// is room, in the block that has most of its columns: a column in fewer blocks costs a pivot less.
    pub(super) fn new(
        first: usize,
        together: impl Iterator<Item = Vec<usize>>,
        by_row: &Sparse,
        columns: usize,
    ) -> Self {
        let mut blocks: Vec<Block> = Vec::new();
        let mut is_placed = vec![false; by_row.count()];
        let mut block_of = vec![Vec::new(); columns];
        for mut rows in together {
            // A row with columns of several groups is in one block.
            rows.retain(|&row| !std::mem::replace(&mut is_placed[row], true));
            for rows in rows.chunks(LANES) {
                let at = blocks.len();
                blocks.push(Block::default());
                for &row in rows {
                    add_row(&mut blocks, at, row, by_row, &mut block_of);
                }
            }
        }
        let first_of_others = blocks.len();
        for row in (first..by_row.count()).filter(|&row| !is_placed[row]) {
            let mut near: Vec<usize> = by_row
                .list(row)
                .iter()
                .flat_map(|entry| &block_of[entry.0 as usize])
                .copied()
                .filter(|&at| blocks[at].rows.len() < LANES)
                .collect();
            near.sort_unstable();
            let near = near.chunk_by(|one, other| one == other);
            // The first of those with most columns in common, or else the last one.
            let at = near.fold(None, |best: Option<&[usize]>, next| match best {
                Some(best) if best.len() >= next.len() => Some(best),
                _ => Some(next),
            });
            let has_room = |at: &usize| blocks[*at].rows.len() < LANES;
            let last = (first_of_others..blocks.len()).next_back().filter(has_room);
            let at = at.map(|at| at[0]).or(last).unwrap_or(blocks.len());
            if at == blocks.len() {
                blocks.push(Block::default());
            }
            add_row(&mut blocks, at, row, by_row, &mut block_of);
        }
        Self::of(&blocks, by_row, columns)
    }

    fn of(blocks: &[Block], by_row: &Sparse, columns: usize) -> Self {
        let mut all = Self {
            places: vec![NO_ROW; by_row.count()],
            starts: vec![0],
            ..Self::default()
        };
        let mut uses = vec![Vec::new(); columns];
        for (number, Block { rows, columns }) in blocks.iter().enumerate() {
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
        all.coefficients = vec![Lanes::all(0.0); all.columns.len()];
        for list in uses {
            let start = all.uses.len() as u32;
            all.uses.extend(list);
            all.use_ranges.push((start, all.uses.len() as u32));
        }
        for row in 0..by_row.count() {
            all.update(row, by_row);
        }
        all
    }

    /// Takes the present coefficients of a row.
    pub(super) fn update(&mut self, row: usize, by_row: &Sparse) {
        let Some((block, lane)) = self.place(row) else {
            return;
        };
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        let columns = self.columns[range.clone()].iter();
        let mut entries = by_row.list(row).iter().peekable();
        for (column, coefficients) in columns.zip(&mut self.coefficients[range]) {
            let found = entries.next_if(|entry| entry.0 == *column);
            coefficients.0[lane] = found.map_or(0.0, |entry| entry.1);
        }
    }

    /// The place of an inequality: its block and lane.
    #[inline]
    pub(super) fn place(&self, row: usize) -> Option<(usize, usize)> {
        let place = *self.places.get(row).filter(|place| **place != NO_ROW)? as usize;
        Some((place / LANES, place % LANES))
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

    /// The blocks that a column is in, with its coefficients; none for other variables.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    pub(super) fn blocks_of(&self, column: usize) -> impl Iterator<Item = (usize, &Lanes)> {
        let (start, end) = self.use_ranges.get(column).copied().unwrap_or_default();
        let uses = self.uses[start as usize..end as usize].iter();
        uses.map(|&(block, at)| (block as usize, &self.coefficients[at as usize]))
    }
}
