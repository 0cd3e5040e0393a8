//! The numbers that a problem may have, whichever front end builds it.

/// The largest number of a problem, either way: coefficients, costs, bounds, right-hand sides, states. No unit makes
/// sense of a larger one, and solvers take it for infinite or round it away. A bound that is none is infinite.
pub const LARGEST: f64 = 1e15;

/// The most numbers that all openings and validation scenarios of a problem put in place together: half a gibibyte.
pub const MOST_OPENING_NUMBERS: usize = 1 << 26;

/// The error of a number that must be finite, about `what`; `None` if it is in range.
pub(crate) fn check_number(what: &str, value: f64) -> Option<String> {
    if !value.is_finite() {
        Some(format!("{what} is {value}; a finite number is needed"))
    } else if value.abs() > LARGEST {
        Some(format!("{what} is {value:?}, beyond ±{LARGEST:e}"))
    } else {
        None
    }
}

/// Says what is wrong with a pair of bounds, which may be infinite.
pub(crate) fn check_bounds(what: &str, lower: f64, upper: f64, wrong: &mut impl FnMut(String)) {
    if lower.is_nan() || upper.is_nan() {
        wrong(format!("{what} has a bound that is no number"));
        return;
    }
    let beyond = |bound: &f64| bound.is_finite() && bound.abs() > LARGEST;
    if let Some(bound) = [lower, upper].into_iter().find(beyond) {
        wrong(format!(
            "{what} has a bound of {bound:?}, beyond ±{LARGEST:e}; leave it out (Python: infinity) if there is none"
        ));
    } else if lower > upper || lower == f64::INFINITY || upper == f64::NEG_INFINITY {
        wrong(format!(
            "{what} must be at least {lower} and at most {upper}, which nothing is"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lower: f64, upper: f64) -> Option<String> {
        let mut said = None;
        check_bounds("row r", lower, upper, &mut |text| said = Some(text));
        said
    }

    #[test]
    fn numbers_are_finite_and_of_a_size_that_can_be_meant() {
        assert_eq!(check_number("x", 1e15), None);
        assert_eq!(check_number("x", -1e15), None);
        let beyond = check_number("the cost of column a", 1e16);
        let text = "the cost of column a is 1e16, beyond ±1e15";
        assert_eq!(beyond.as_deref(), Some(text));
        assert!(check_number("x", f64::NAN).is_some());
        assert!(check_number("x", f64::INFINITY).is_some());
    }

    #[test]
    fn bounds_are_of_such_a_size_or_infinite() {
        assert_eq!(said(f64::NEG_INFINITY, f64::INFINITY), None);
        assert_eq!(said(-1e15, 1e15), None);
        for (lower, upper) in [(-1e31, 0.0), (0.0, 1e20), (1e30, 1e30)] {
            let text = said(lower, upper).expect("it is refused");
            assert!(text.contains("row r has a bound of"), "{text}");
            assert!(text.contains("beyond ±1e15"), "{text}");
        }
        assert!(said(f64::NAN, 0.0).is_some());
        assert!(said(1.0, 0.0).is_some_and(|text| text.contains("which nothing is")));
    }
}
