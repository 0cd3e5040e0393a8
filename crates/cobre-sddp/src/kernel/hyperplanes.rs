//! Hyperplane groups: columns that several inequalities bound from above, such as the generation of a plant in a block
//! below the hyperplanes of its production function.
//!
//! One hyperplane of each group is its reference. The column stands for the slack of that row, and the reference,
//! scaled, is subtracted from every other row of the column. A basis in which the reference is tight then has neither
//! the row nor the column. References change where sparse factors are computed anew, and where a basis is stored: to
//! hyperplanes that are tight. The transformed coefficients are a function of the references alone.

use super::affine::Affine;
use super::basis::{Basis, NO_ROW};
use super::row_blocks::RowBlocks;
use super::sparse::Sparse;

/// The fewest hyperplanes of a group.
const MIN_HYPERPLANES: usize = 2;

/// A column below several hyperplanes.
#[derive(Debug, Clone)]
pub(super) struct HyperplaneGroup {
    pub(super) column: usize,
    /// Its bounds, which are rows of the linear program.
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// The other columns of its hyperplanes.
    others: Vec<u32>,
    hyperplanes: Vec<Hyperplane>,
}

/// A row that bounds the column of its group from above.
#[derive(Debug, Clone)]
struct Hyperplane {
    row: usize,
    /// The coefficient of the group's column, and those of the other columns.
    coefficient: f64,
    slopes: Vec<f64>,
}

/// A row with columns of groups.
#[derive(Debug, Clone)]
struct TransformedRow {
    row: usize,
    /// By entry of the row: its coefficient, and its place by column.
    coefficients: Vec<f64>,
    twins: Vec<usize>,
    members: Vec<Member>,
    /// True if it is no hyperplane and no two members have an entry in common: a member that changes leaves the others
    /// as they are.
    is_separable: bool,
}

/// The part of a group in a row.
#[derive(Debug, Clone)]
struct Member {
    group: usize,
    /// The entry of the group's column, and its coefficient.
    own: usize,
    coefficient: f64,
    /// The entries of the other columns of its hyperplanes.
    entries: Vec<usize>,
}

/// The hyperplane groups of a linear program, and their references.
#[derive(Debug, Clone, Default)]
pub(super) struct HyperplaneGroups {
    pub(super) groups: Vec<HyperplaneGroup>,
    rows: Vec<TransformedRow>,
    /// By group, its rows among `rows`, and its number among their members.
    rows_of: Vec<Vec<(usize, usize)>>,
    /// By row of the linear program: its group, and its number there.
    hyperplane_of: Vec<Option<(u32, u8)>>,
    /// By column: its group.
    group_of: Vec<Option<u32>>,
    /// By group, the number of the hyperplane that is the reference.
    references: Vec<u8>,
    /// The rows, as places among `rows`, that are to be transformed anew.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
    /// By row of the linear program: its groups, and the coefficients of their columns.
    members: Sparse,
    /// The inequalities, those of a group together.
    pub(super) blocks: RowBlocks,
}

/// A hyperplane that becomes the reference of its group when a basis is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewReference {
    pub(super) group: usize,
    pub(super) number: u8,
    /// The place of its row in the basis, and the position of the column.
    pub(super) place: usize,
    pub(super) position: usize,
}

type Terms = Vec<(u32, f64)>;

/// The columns that can be those of groups: `eligible` ones that at least [`MIN_HYPERPLANES`] inequalities with other
/// columns bound from above, none of which has another such column. Gives each with those rows.
pub(super) fn find<'a>(
    inequalities: impl Iterator<Item = &'a Terms> + Clone,
    eligible: &[bool],
) -> Vec<(usize, Vec<usize>)> {
    let bounds = |terms: &'a Terms| {
        let above = terms.iter().filter(|term| term.1 < 0.0);
        above.filter(|term| eligible[term.0 as usize])
    };
    let mut counts = vec![0; eligible.len()];
    for terms in inequalities.clone().filter(|terms| terms.len() > 1) {
        for term in bounds(terms) {
            counts[term.0 as usize] += 1;
        }
    }
    let mut rows = vec![Vec::new(); eligible.len()];
    for (row, terms) in inequalities.enumerate() {
        let is_candidate = |term: &&(u32, f64)| counts[term.0 as usize] >= MIN_HYPERPLANES;
        let mut candidates = terms.iter().filter(is_candidate);
        if let (Some(one), None) = (candidates.next(), candidates.next())
            && one.1 < 0.0
            && terms.len() > 1
        {
            rows[one.0 as usize].push(row);
        }
    }
    let groups = rows.into_iter().enumerate();
    groups
        .filter(|(_, rows)| (MIN_HYPERPLANES..usize::from(u8::MAX)).contains(&rows.len()))
        .collect()
}

impl HyperplaneGroup {
    /// The group of a column with bounds and hyperplanes: rows with their terms.
    pub(super) fn new<'a>(
        column: usize,
        (lower, upper): (f64, f64),
        rows: impl Iterator<Item = (usize, &'a Terms)> + Clone,
    ) -> Self {
        let of_others = rows.clone().flat_map(|(_, terms)| terms);
        let mut others: Vec<u32> = of_others.map(|term| term.0).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|&other| other as usize != column);
        let coefficient = |terms: &Terms, column: u32| {
            let found = terms.iter().find(|term| term.0 == column);
            found.map_or(0.0, |term| term.1)
        };
        let hyperplanes = rows.map(|(row, terms)| Hyperplane {
            row,
            coefficient: coefficient(terms, column as u32),
            slopes: others.iter().map(|&at| coefficient(terms, at)).collect(),
        });
        Self {
            column,
            lower,
            upper,
            hyperplanes: hyperplanes.collect(),
            others,
        }
    }

    /// Adds a row for every other column of its hyperplanes to a row that has its column.
    pub(super) fn widen(&self, terms: &mut Terms) {
        if terms.iter().any(|term| term.0 as usize == self.column) {
            for &other in &self.others {
                if !terms.iter().any(|term| term.0 == other) {
                    terms.push((other, 0.0));
                }
            }
            terms.sort_unstable_by_key(|term| term.0);
        }
    }
}

impl HyperplaneGroups {
    /// The groups of a linear program with these coefficients, the first hyperplane of each as reference.
    pub(super) fn new(
        groups: Vec<HyperplaneGroup>,
        equalities: usize,
        by_row: &mut Sparse,
        by_column: &mut Sparse,
    ) -> Self {
        if groups.is_empty() {
            return Self::default();
        }
        let mut all = Self {
            references: vec![u8::MAX; groups.len()],
            rows_of: vec![Vec::new(); groups.len()],
            hyperplane_of: vec![None; by_row.count()],
            group_of: vec![None; by_column.count()],
            ..Self::default()
        };
        for (number, group) in groups.iter().enumerate() {
            all.group_of[group.column] = Some(number as u32);
            for (at, hyperplane) in group.hyperplanes.iter().enumerate() {
                all.hyperplane_of[hyperplane.row] = Some((number as u32, at as u8));
            }
        }
        all.groups = groups;
        all.members.clear();
        let mut next: Vec<usize> = (0..by_column.count())
            .map(|at| by_column.start(at))
            .collect();
        for row in 0..by_row.count() {
            let list = by_row.list(row);
            let twins = list.iter().map(|&(column, _)| {
                next[column as usize] += 1;
                next[column as usize] - 1
            });
            let twins: Vec<usize> = twins.collect();
            all.add_row(row, list, twins);
        }
        all.is_changed = vec![false; all.rows.len()];
        all.refer(&vec![0; all.groups.len()], by_row, by_column);
        let own_rows = |rows: &Vec<(usize, usize)>| {
            let rows = rows.iter().map(|&(at, _)| all.rows[at].row);
            rows.filter(|&row| row >= equalities).collect()
        };
        let together = all.rows_of.iter().map(own_rows);
        all.blocks = RowBlocks::new(equalities, together, by_row, by_column.count());
        all
    }

    fn add_row(&mut self, row: usize, list: &[(u32, f64)], twins: Vec<usize>) {
        let mut members = Vec::new();
        for (own, &(column, coefficient)) in list.iter().enumerate() {
            let Some(group) = self.group_of[column as usize] else {
                continue;
            };
            let others = self.groups[group as usize].others.iter();
            let entries =
                others.filter_map(|other| list.binary_search_by_key(other, |at| at.0).ok());
            self.rows_of[group as usize].push((self.rows.len(), members.len()));
            members.push(Member {
                group: group as usize,
                own,
                coefficient,
                entries: entries.collect(),
            });
        }
        let groups = members.iter();
        self.members
            .push(groups.map(|member| (member.group as u32, member.coefficient)));
        if !members.is_empty() {
            let entries = members.iter().flat_map(|member| &member.entries);
            let mut entries: Vec<usize> = entries.copied().collect();
            entries.sort_unstable();
            let is_separable = members.len() > 1
                && self.hyperplane_of[row].is_none()
                && entries.windows(2).all(|pair| pair[0] != pair[1]);
            self.rows.push(TransformedRow {
                is_separable,
                row,
                coefficients: list.iter().map(|entry| entry.1).collect(),
                twins,
                members,
            });
        }
    }

    /// Makes these hyperplanes the references.
    pub(super) fn refer(&mut self, references: &[u8], by_row: &mut Sparse, by_column: &mut Sparse) {
        for (group, &new) in references.iter().enumerate() {
            if self.references[group] == new {
                continue;
            }
            self.references[group] = new;
            for &(at, member) in &self.rows_of[group] {
                let row = &self.rows[at];
                if row.is_separable {
                    self.transform_member(row, &row.members[member], by_row, by_column);
                    self.blocks.update(row.row, by_row);
                } else if !std::mem::replace(&mut self.is_changed[at], true) {
                    self.changed.push(at);
                }
            }
        }
        while let Some(at) = self.changed.pop() {
            self.is_changed[at] = false;
            self.transform(&self.rows[at], by_row, by_column);
            self.blocks.update(self.rows[at].row, by_row);
        }
    }

    /// Writes the coefficients of a row for the present references.
    fn transform(&self, row: &TransformedRow, by_row: &mut Sparse, by_column: &mut Sparse) {
        let start = by_row.start(row.row);
        let values = by_row.values_mut(start..start + row.coefficients.len());
        for (value, coefficient) in values.iter_mut().zip(&row.coefficients) {
            value.1 = *coefficient;
        }
        for member in &row.members {
            let reference = self.reference(member.group);
            if reference.row == row.row {
                for value in &mut *values {
                    value.1 = 0.0;
                }
                break;
            }
            let factor = member.coefficient / reference.coefficient;
            values[member.own].1 = factor;
            for (&entry, slope) in member.entries.iter().zip(&reference.slopes) {
                values[entry].1 -= factor * slope;
            }
        }
        for (value, &twin) in values.iter().zip(&row.twins) {
            by_column.set(twin, value.1);
        }
    }

    /// Writes the coefficients of one member of a separable row for its present reference, as [`Self::transform`] does.
    fn transform_member(
        &self,
        row: &TransformedRow,
        member: &Member,
        by_row: &mut Sparse,
        by_column: &mut Sparse,
    ) {
        let start = by_row.start(row.row);
        let mut set = |entry: usize, value: f64| {
            by_row.set(start + entry, value);
            by_column.set(row.twins[entry], value);
        };
        let reference = self.reference(member.group);
        let factor = member.coefficient / reference.coefficient;
        set(member.own, factor);
        for (&entry, slope) in member.entries.iter().zip(&reference.slopes) {
            set(entry, row.coefficients[entry] - factor * slope);
        }
    }

    fn reference(&self, group: usize) -> &Hyperplane {
        &self.groups[group].hyperplanes[usize::from(self.references[group])]
    }

    /// By group, the number of the hyperplane that is the reference.
    pub(super) fn references(&self) -> &[u8] {
        &self.references
    }

    /// True if these can be references.
    pub(super) fn fit(&self, references: &[u8]) -> bool {
        references.len() == self.groups.len()
            && references
                .iter()
                .zip(&self.groups)
                .all(|(&at, group)| usize::from(at) < group.hyperplanes.len())
    }

    /// Transforms right-hand sides as the references do the rows; `template` has them as they were.
    /// `shifts` is work space.
    pub(super) fn transform_rhs(&self, template: &[f64], rhs: &mut [f64], shifts: &mut Vec<f64>) {
        let references = (0..self.groups.len()).map(|group| self.reference(group));
        shifts.clear();
        shifts.extend(
            references
                .clone()
                .map(|one| template[one.row] / one.coefficient),
        );
        for (row, rhs) in rhs.iter_mut().enumerate() {
            let members = self.members.list(row).iter();
            let shift: f64 = members
                .map(|&(group, coefficient)| coefficient * shifts[group as usize])
                .sum();
            *rhs -= shift;
        }
        for reference in references {
            rhs[reference.row] = 0.0;
        }
    }

    /// The column of a group whose reference is this row: its reduced cost is the dual value of the row.
    pub(super) fn column_of_reference(&self, row: usize) -> Option<usize> {
        let (group, number) = self.hyperplane_of.get(row).copied().flatten()?;
        let group = group as usize;
        (self.references[group] == number).then(|| self.groups[group].column)
    }

    /// The references that are not basic, as rows of the linear program with their dual values.
    pub(super) fn dual_values(&self, basis: &Basis) -> impl Iterator<Item = (usize, f64)> {
        let groups = self.groups.iter().enumerate();
        groups.filter_map(|(number, group)| {
            let dual = basis.reduced[group.column];
            let is_tight = basis.sense[group.column] != 0.0 && dual != 0.0;
            is_tight.then(|| (self.reference(number).row, dual))
        })
    }

    /// The hyperplanes that are tight in a basis without basic slacks and whose group's reference is not: of several
    /// the one with the largest dual value, the first of equals. In the order of positions.
    pub(super) fn tight(&self, basis: &Basis) -> Vec<NewReference> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let variables = basis.head[..basis.size()].iter().enumerate();
        let found = variables.filter_map(|(position, &variable)| {
            let group = self.group_of.get(variable as usize).copied().flatten()? as usize;
            let mut found: Option<(f64, NewReference)> = None;
            for (number, hyperplane) in self.groups[group].hyperplanes.iter().enumerate() {
                let place = basis.row_places[hyperplane.row];
                if place == NO_ROW {
                    continue;
                }
                let dual = basis.duals[place as usize];
                if found.as_ref().is_none_or(|(most, _)| dual > *most) {
                    let number = number as u8;
                    let place = place as usize;
                    let new = NewReference {
                        group,
                        number,
                        place,
                        position,
                    };
                    found = Some((dual, new));
                }
            }
            found.map(|found| found.1)
        });
        found.collect()
    }

    /// True if a column is one of a group.
    pub(super) fn has(&self, column: usize) -> bool {
        self.group_of.get(column).is_some_and(Option::is_some)
    }

    /// Computes the columns of groups, whose values are slacks, from those of all others.
    pub(super) fn restore(&self, rhs: &[Affine], parameters: &[f64], values: &mut [f64]) {
        for (number, group) in self.groups.iter().enumerate() {
            let reference = self.reference(number);
            let mut rest = values[group.column] + rhs[reference.row].value(parameters);
            for (&other, slope) in group.others.iter().zip(&reference.slopes) {
                rest -= slope * values[other as usize];
            }
            let value = rest / reference.coefficient;
            values[group.column] = value.max(group.lower).min(group.upper);
        }
    }
}
