//! Small systems of linear equations.

/// A pivot at or below this is treated as zero.
const SMALLEST_PIVOT: f64 = 1e-12;

/// The solution of a system by elimination with row exchanges; none if it is singular.
pub(super) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let rows = column..size;
        let best = rows.max_by(|a, b| {
            let size = |row: &usize| matrix[*row][column].abs();
            size(a).total_cmp(&size(b))
        })?;
        if matrix[best][column].abs() <= SMALLEST_PIVOT {
            return None;
        }
        matrix.swap(column, best);
        right.swap(column, best);
        let pivot = matrix[column].clone();
        for row in column + 1..size {
            let factor = matrix[row][column] / pivot[column];
            for (entry, above) in matrix[row].iter_mut().zip(&pivot).skip(column) {
                *entry -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known = matrix[row].iter().zip(&right).skip(row + 1);
        let known: f64 = known.map(|(entry, value)| entry * value).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}
