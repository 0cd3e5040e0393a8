//! The numbers that a problem may have, whichever front end builds it.

/// The largest number of a problem, either way: coefficients, costs, bounds, right-hand sides, states. No unit makes
/// sense of a larger one, and solvers take it for infinite or round it away. A bound that is none is infinite.
pub const LARGEST: f64 = 1e15;

/// The largest coefficient of a column in a row, either way: HiGHS refuses larger ones, or loses the others beside them.
pub const LARGEST_COEFFICIENT: f64 = 1e12;

/// The smallest coefficient and the smallest cost that are not zero: solvers pivot on no smaller number, HiGHS drops
/// coefficients up to a thousandth of it, and takes a reduced cost up to a tenth of it for zero.
pub const SMALLEST: f64 = 1e-9;

/// The largest number of a cut, either way: its slopes, its intercept. HiGHS takes a bound of a hundred times that for
/// infinite.
pub(crate) const LARGEST_OF_CUT: f64 = 1e18;

/// The part of a sum that rounding leaves, relative to its terms, where they cancel.
const REST: f64 = 8.0 * f64::EPSILON;

/// The effect that a rest may have on a row or on the objective, relative to the largest coefficient there.
const REST_EFFECT: f64 = 1e-9;

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

/// The sum of terms; zero if they cancel but for rounding.
pub fn sum_of(terms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut size) = (0.0_f64, 0.0_f64);
    let mut count = 0_usize;
    for term in terms {
        sum += term;
        size += term.abs();
        count += 1;
    }
    let is_rest = count > 1 && sum.abs() <= REST * size;
    if is_rest { 0.0 } else { sum }
}

/// The scale by which a coefficient or a cost is judged: the numbers beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoefficientScale {
    /// The largest of them.
    pub(crate) largest: f64,
    /// The largest value that the column can have, either way; may be infinite.
    pub(crate) reach: f64,
}

impl CoefficientScale {
    /// True if rounding left a number: it is of the size of rounding errors in the numbers beside it, and no value that
    /// the column can have makes it count. Such a number is taken for zero. CoefficientScale a column without bounds, any counts.
    pub(crate) fn is_rest(self, value: f64) -> bool {
        let value = value.abs();
        let is_small = value < SMALLEST && value <= f64::EPSILON * self.largest;
        is_small && value * self.reach <= REST_EFFECT * self.largest
    }
}

/// The error of a coefficient or a cost about `what` that is not zero and too small for solvers.
pub(crate) fn check_small(
    what: impl FnOnce() -> String,
    value: f64,
    beside: CoefficientScale,
) -> Option<String> {
    if value == 0.0 || value.abs() >= SMALLEST || beside.is_rest(value) {
        return None;
    }
    let what = what();
    let remedy = if beside.reach.is_finite() {
        "choose other units"
    } else {
        "choose other units, or 0 if rounding left it"
    };
    Some(format!(
        "{what} is {value:?}; a solver takes 0, or a number of {SMALLEST:e} or more either way: {remedy}"
    ))
}

/// The error of a coefficient of a column in a row about `what`; `None` if all solvers take it.
pub(crate) fn check_coefficient(
    what: impl Fn() -> String,
    value: f64,
    beside: CoefficientScale,
) -> Option<String> {
    if value.abs() > LARGEST_COEFFICIENT && value.is_finite() {
        let what = what();
        return Some(format!(
            "{what} is {value:?}, beyond ±{LARGEST_COEFFICIENT:e}: choose other units"
        ));
    }
    if value.is_finite() {
        check_small(what, value, beside)
    } else {
        check_number(&what(), value)
    }
}

/// The error of a cut with a number that solvers do not take, by the names of the states; `None` if there is none.
pub(crate) fn check_cut<'n>(
    intercept: f64,
    slopes: impl IntoIterator<Item = (&'n str, f64)>,
) -> Option<String> {
    let beyond = |value: f64| value.is_nan() || value.abs() > LARGEST_OF_CUT;
    let found = match slopes.into_iter().find(|(_, slope)| beyond(*slope)) {
        Some((state, slope)) => format!("a slope of {slope:?} in state {state}"),
        None if beyond(intercept) => format!("an intercept of {intercept:?}"),
        None => return None,
    };
    Some(format!(
        "a cut has {found}, beyond ±{LARGEST_OF_CUT:e}: costs times quantities are too large, choose other units"
    ))
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
    fn sums_that_cancel_are_zero_and_others_are_exact() {
        assert_eq!(sum_of([0.1, 0.2, -0.3]), 0.0);
        assert_eq!(sum_of([5e-17]), 5e-17);
        assert_eq!(sum_of([1.0, 1e-12, -1.0]), 1.0 + 1e-12 - 1.0);
        assert_eq!(sum_of([]), 0.0);
    }

    #[test]
    fn a_number_too_small_for_solvers_is_a_rest_or_an_error() {
        let said = |value: f64, largest: f64, reach: f64| {
            let beside = CoefficientScale { largest, reach };
            check_coefficient(|| "it".to_owned(), value, beside)
        };
        for (value, largest, reach) in [
            (0.0, 1.0, 1e15),
            (1e-9, 1e-9, 1e15),
            (-1e12, 1e12, 1.0),
            (0.0, 1.0, f64::INFINITY),
            (5e-17, 1.0, 100.0),
        ] {
            assert_eq!(said(value, largest, reach), None, "{value}");
        }
        for (value, largest, reach) in [
            (1e-12, 1e-12, 1e12),
            (1e-12, 1.0, f64::INFINITY),
            (5e-17, 1.0, f64::INFINITY),
            (5e-17, 1.0, 1e15),
            (9e-10, 1.0, 1.0),
        ] {
            let text = said(value, largest, reach).expect("it is refused");
            assert!(
                text.starts_with(&format!("it is {value:?}; a solver takes")),
                "{text}"
            );
        }
        let text = said(1e16, 1e16, 1.0).expect("it is refused");
        assert!(text.contains("1e16, beyond ±1e12"), "{text}");
        assert!(said(f64::NAN, 1.0, 1.0).is_some());
    }

    #[test]
    fn cuts_have_numbers_that_solvers_take() {
        assert_eq!(check_cut(-1e18, [("x", 1e18)]), None);
        let text = check_cut(0.0, [("x", 1e29)]).expect("it is refused");
        assert!(
            text.contains("a slope of 1e29 in state x, beyond ±1e18"),
            "{text}"
        );
        assert!(check_cut(f64::NAN, []).is_some());
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
