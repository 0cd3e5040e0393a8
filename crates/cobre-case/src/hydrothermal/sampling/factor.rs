//! Factors of correlation matrices: F with F · Fᵀ = the matrix.

/// Sweeps of rotations; matrices of correlations need fewer than ten.
const SWEEPS: usize = 100;
/// A pivot below this is none.
const SMALLEST_PIVOT: f64 = 1e-12;

/// The lower triangular factor; `None` if the matrix is not positive definite.
pub(super) fn cholesky(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let mut factor = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let known = factor[row].iter().zip(&factor[column]).take(column);
            let known: f64 = known.map(|(one, other)| one * other).sum();
            let rest = matrix[row][column] - known;
            factor[row][column] = if row == column {
                if rest < SMALLEST_PIVOT {
                    return None;
                }
                libm::sqrt(rest)
            } else {
                rest / factor[column][column]
            };
        }
    }
    Some(factor)
}

/// The factor by eigenvectors. Eigenvalues below zero are taken as zero, and rows scaled so that
/// every series keeps its own deviation.
pub(super) fn spectral(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (values, vectors) = eigen(matrix);
    let roots: Vec<f64> = values
        .iter()
        .map(|value| libm::sqrt(value.max(0.0)))
        .collect();
    vectors
        .iter()
        .map(|row| {
            let scaled: Vec<f64> = row
                .iter()
                .zip(&roots)
                .map(|(entry, root)| entry * root)
                .collect();
            let norm = libm::sqrt(scaled.iter().map(|entry| entry * entry).sum());
            scaled
                .iter()
                .map(|entry| entry / norm.max(SMALLEST_PIVOT))
                .collect()
        })
        .collect()
}

/// Eigenvalues, and eigenvectors as columns, by rotations of Jacobi.
fn eigen(matrix: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let size = matrix.len();
    let mut rest = matrix.to_vec();
    let mut vectors: Vec<Vec<f64>> = (0..size)
        .map(|row| {
            (0..size)
                .map(|column| f64::from(u8::from(row == column)))
                .collect()
        })
        .collect();
    for _ in 0..SWEEPS {
        let mut largest = 0.0_f64;
        for p in 0..size {
            for q in p + 1..size {
                largest = largest.max(rest[p][q].abs());
                if rest[p][q] != 0.0 {
                    rotate(&mut rest, &mut vectors, p, q);
                }
            }
        }
        if largest < 1e-15 {
            break;
        }
    }
    ((0..size).map(|place| rest[place][place]).collect(), vectors)
}

/// Rotates in the plane of `p` and `q` so that their entry vanishes.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let sign = if theta < 0.0 { -1.0 } else { 1.0 };
    let tangent = sign / (theta.abs() + libm::sqrt(theta * theta + 1.0));
    let cosine = 1.0 / libm::sqrt(tangent * tangent + 1.0);
    let sine = tangent * cosine;
    for row in matrix.iter_mut() {
        (row[p], row[q]) = (
            cosine * row[p] - sine * row[q],
            sine * row[p] + cosine * row[q],
        );
    }
    let (above, below) = matrix.split_at_mut(q);
    for (one, other) in above[p].iter_mut().zip(&mut below[0]) {
        (*one, *other) = (cosine * *one - sine * *other, sine * *one + cosine * *other);
    }
    for row in vectors.iter_mut() {
        (row[p], row[q]) = (
            cosine * row[p] - sine * row[q],
            sine * row[p] + cosine * row[q],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(factor: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let entry = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum();
        factor
            .iter()
            .map(|a| factor.iter().map(|b| entry(a, b)).collect())
            .collect()
    }

    fn close(one: &[Vec<f64>], other: &[Vec<f64>]) -> bool {
        let pairs = one.iter().flatten().zip(other.iter().flatten());
        pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn both_factors_give_the_matrix_back() {
        let matrix = vec![
            vec![1.0, 0.8, -0.2],
            vec![0.8, 1.0, 0.1],
            vec![-0.2, 0.1, 1.0],
        ];
        let lower = cholesky(&matrix).expect("it is positive definite");
        assert!(close(&product(&lower), &matrix));
        assert!(close(&product(&spectral(&matrix)), &matrix));
    }

    #[test]
    fn a_matrix_that_is_not_definite_has_a_spectral_factor_only() {
        let ones = vec![vec![1.0; 3]; 3];
        assert_eq!(cholesky(&ones), None);
        assert!(close(&product(&spectral(&ones)), &ones));
        let impossible = vec![
            vec![1.0, 0.9, -0.9],
            vec![0.9, 1.0, 0.9],
            vec![-0.9, 0.9, 1.0],
        ];
        let nearest = product(&spectral(&impossible));
        assert!((0..3).all(|place| (nearest[place][place] - 1.0).abs() < 1e-12));
    }
}
