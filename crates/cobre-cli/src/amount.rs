//! Amounts as a person reads them: in millions or billions, with five digits.

/// The multiple of the unit that amounts are told in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    factor: f64,
    word: &'static str,
    /// Digits after the point.
    digits: usize,
}

impl Scale {
    /// The scale for a value and those like it.
    pub(crate) fn of(value: f64) -> Self {
        let (factor, word) = match value.abs() {
            large if large >= 1e12 && large.is_finite() => (1e12, "trillion"),
            large if large >= 1e9 => (1e9, "billion"),
            large if large >= 1e6 => (1e6, "million"),
            _ => (1.0, ""),
        };
        let size = (value.abs() / factor).log10().floor();
        let digits = if size.is_finite() {
            (4.0 - size).clamp(0.0, 8.0) as usize
        } else {
            4
        };
        Self {
            factor,
            word,
            digits,
        }
    }

    /// A value in this scale.
    pub(crate) fn told(self, value: f64, unit: &str) -> String {
        let Self { factor, digits, .. } = self;
        format!("{:.digits$}{}", value / factor, self.unit(unit))
    }

    /// A value with the half width of its interval.
    pub(crate) fn told_within(self, value: f64, half: f64, unit: &str) -> String {
        let Self { factor, digits, .. } = self;
        let (value, half) = (value / factor, half / factor);
        format!("{value:.digits$} ± {half:.digits$}{}", self.unit(unit))
    }

    /// A bound, with the half width of its interval if it has one that these digits show.
    pub(crate) fn bound(self, value: f64, half: Option<f64>, unit: &str) -> String {
        let digits = self.digits;
        let told = |half: &f64| format!("{:.digits$}", half / self.factor);
        let seen = |half: &f64| told(half).contains(|digit: char| matches!(digit, '1'..='9'));
        match half.filter(seen) {
            Some(half) => self.told_within(value, half, unit),
            None => self.told(value, unit),
        }
    }

    fn unit(self, unit: &str) -> String {
        let words = [self.word, unit].into_iter();
        let words = words.filter(|word| !word.is_empty());
        words.flat_map(|word| [" ", word]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn amounts_have_five_digits_and_a_word() {
        let told = |value: f64, unit: &str| Scale::of(value).told(value, unit);
        assert_eq!(told(5_333_244_388.3, "$"), "5.3332 billion $");
        assert_eq!(told(-15_355_241.2, "$"), "-15.355 million $");
        assert_eq!(told(1189.636, ""), "1189.6");
        assert_eq!(told(0.0, "$"), "0.0000 $");
        let within = Scale::of(15.4e6).told_within(15.4e6, 0.43e6, "$");
        assert_eq!(within, "15.400 ± 0.430 million $");
        let bound = |half| Scale::of(15.4e6).bound(15.4e6, half, "$");
        assert_eq!(bound(Some(430_000.0)), within);
        assert_eq!(bound(Some(40.0)), bound(None));
    }
}
