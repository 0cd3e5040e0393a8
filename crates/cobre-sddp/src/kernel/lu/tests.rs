//! LU factors against products with the matrix that they belong to.

use super::*;

/// A sparse matrix of this size with a nonzero diagonal and some dense last rows.
fn matrix(size: usize, cuts: usize, seed: u64) -> Sparse {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut matrix = Sparse::default();
    matrix.clear();
    for column in 0..size {
        let mut entries = vec![(column as u32, 0.5 + next())];
        for row in 0..size {
            let density = if row >= size - cuts { 0.9 } else { 0.05 };
            if row != column && next() < density {
                entries.push((row as u32, 4.0 * next() - 2.0));
            }
        }
        matrix.push(entries.into_iter());
    }
    matrix
}

fn solved(size: usize, cuts: usize, seed: u64) -> Result<f64, Singular> {
    let matrix = matrix(size, cuts, seed);
    let mut positions = Vec::new();
    let lu = Factorizer::default().factorize(&matrix, |row| row >= size - cuts, &mut positions)?;
    let right: Vec<f64> = (0..size).map(|row| (row as f64 * 0.7).sin()).collect();
    let (mut forward, mut backward) = (SolveVector::default(), SolveVector::default());
    forward[..size].copy_from_slice(&right);
    lu.ftran(&mut forward);
    let mut product = vec![0.0; size];
    backward[..size].copy_from_slice(&right);
    lu.btran(&mut backward);
    let mut worst: f64 = 0.0;
    for row in 0..size {
        let column = positions[row] as usize;
        let mut sum = 0.0;
        for (at, value) in entries_of(&matrix, column) {
            product[at] += value * forward[row];
            sum += value * backward[at];
        }
        worst = worst.max((sum - right[row]).abs());
    }
    let errors = product
        .iter()
        .zip(&right)
        .map(|(one, other)| (one - other).abs());
    Ok(errors.fold(worst, f64::max))
}

#[test]
fn solutions_satisfy_the_systems() {
    let mut singular = 0;
    for seed in 1..200 {
        let size = 1 + (seed as usize * 7) % 60;
        let cuts = (seed as usize % 5).min(size - 1);
        match solved(size, cuts, seed) {
            Ok(error) => assert!(error < 1e-6, "seed {seed}, size {size}: {error}"),
            Err(Singular) => singular += 1,
        }
    }
    assert!(singular < 10, "{singular} of 199 are taken for singular");
}

#[test]
fn minus_the_identity_changes_signs() {
    let lu = Lu::minus_identity(3);
    let mut vector = SolveVector::default();
    vector[..3].copy_from_slice(&[1.0, 0.0, -2.0]);
    lu.ftran(&mut vector);
    assert_eq!(vector[..3], [-1.0, 0.0, 2.0]);
    lu.btran(&mut vector);
    assert_eq!(vector[..3], [1.0, 0.0, -2.0]);
}

#[test]
fn a_singular_matrix_is_refused() {
    let mut matrix = Sparse::default();
    matrix.clear();
    for factor in [1.0, 2.0, 0.5] {
        matrix.push([(0, factor), (1, 3.0 * factor), (2, -factor)].into_iter());
    }
    let result = Factorizer::default().factorize(&matrix, |_| false, &mut Vec::new());
    assert!(result.is_err());
}
