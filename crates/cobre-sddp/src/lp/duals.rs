//! The objective value of a dual solution.

/// Returns Σ dual × the bound that its sign points to. Where that bound is infinite, the dual is
/// zero up to the solver's tolerance, and the primal value takes its place.
pub(super) fn value(duals: &[f64], lower: &[f64], upper: &[f64], primal: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (place, &dual) in duals.iter().enumerate() {
        if dual == 0.0 {
            continue;
        }
        let bound = if dual > 0.0 {
            lower[place]
        } else {
            upper[place]
        };
        sum += dual
            * if bound.is_finite() {
                bound
            } else {
                primal[place]
            };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn the_sign_chooses_the_bound() {
        let inf = f64::INFINITY;
        let found = value(
            &[2.0, -3.0, 0.0],
            &[1.0, 0.0, -inf],
            &[5.0, 4.0, inf],
            &[9.0; 3],
        );
        assert_eq!(found, 2.0 - 12.0);
    }

    #[test]
    fn a_dual_within_tolerance_of_zero_does_not_spoil_the_value() {
        assert_eq!(value(&[0.5], &[f64::NEG_INFINITY], &[1.0], &[2.0]), 1.0);
    }
}
