//! Risk measures.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// (1 − λ) · expectation + λ · average over the worst α of the outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Risk {
    /// The weight λ of the tail, from 0 to 1.
    pub lambda: f64,
    /// The probability α of the tail, from 0 to 1; 0 means the worst outcome alone.
    pub alpha: f64,
}

impl Risk {
    /// The expectation.
    pub const EXPECTATION: Self = Self {
        lambda: 0.0,
        alpha: 1.0,
    };

    /// True if the measure is the expectation.
    pub fn is_expectation(self) -> bool {
        self.lambda == 0.0 || self.alpha == 1.0
    }

    /// Checks the ranges of the parameters.
    pub(crate) fn check(self) -> Result<(), String> {
        for (name, value) in [("lambda", self.lambda), ("alpha", self.alpha)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!(
                    "the risk measure has {name} = {value}; it is from 0 to 1"
                ));
            }
        }
        Ok(())
    }

    /// The weight of each outcome: with them, the sum of costs is the risk-adjusted cost.
    ///
    /// Probabilities that sum to less than 1 discount: the measure is taken over what can happen,
    /// and multiplied by their sum. Outcomes of equal cost are ordered by number.
    pub fn weights(self, probabilities: &[f64], costs: &[f64], weights: &mut Vec<f64>) {
        weights.clear();
        weights.extend_from_slice(probabilities);
        if self.is_expectation() {
            return;
        }
        let discount: f64 = probabilities.iter().sum();
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(a.cmp(&b)));
        for weight in &mut *weights {
            *weight *= 1.0 - self.lambda;
        }
        let tail = self.alpha * discount;
        let possible = |&&outcome: &&usize| probabilities[outcome] > 0.0;
        if let Some(&worst) = order.iter().find(possible)
            && tail <= probabilities[worst]
        {
            weights[worst] += self.lambda * discount;
            return;
        }
        let mut rest = tail;
        for outcome in order {
            let mass = probabilities[outcome].min(rest);
            weights[outcome] += self.lambda * mass / self.alpha;
            rest -= mass;
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_expectation() {
            write!(f, "expectation")
        } else {
            write!(f, "cvar:{},{}", self.lambda, self.alpha)
        }
    }
}

impl FromStr for Risk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expectation or cvar:LAMBDA,ALPHA is expected, both numbers from 0 to 1";
        if text == "expectation" {
            return Ok(Self::EXPECTATION);
        }
        let numbers = text
            .strip_prefix("cvar:")
            .and_then(|rest| rest.split_once(','));
        let (lambda, alpha) = numbers.ok_or(expected)?;
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| expected.to_owned());
        let risk = Self {
            lambda: number(lambda)?,
            alpha: number(alpha)?,
        };
        risk.check().map(|()| risk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(text: &str, probabilities: &[f64], costs: &[f64]) -> Vec<f64> {
        let mut weights = Vec::new();
        let risk: Risk = text.parse().expect("a risk measure");
        risk.weights(probabilities, costs, &mut weights);
        weights
    }

    #[test]
    fn the_worst_case_takes_all_weight() {
        assert_eq!(weights("cvar:1,0", &[0.5, 0.5], &[1.0, 2.0]), [0.0, 1.0]);
        assert_eq!(
            weights("cvar:0.5,0.25", &[0.5, 0.5], &[3.0, 2.0]),
            [0.75, 0.25]
        );
    }

    #[test]
    fn an_outcome_that_cannot_happen_is_not_the_worst() {
        assert_eq!(weights("cvar:1,0", &[0.0, 1.0], &[9.0, 2.0]), [0.0, 1.0]);
    }

    #[test]
    fn the_tail_may_end_inside_an_outcome() {
        let found = weights("cvar:1,0.75", &[0.25, 0.5, 0.25], &[1.0, 2.0, 3.0]);
        assert_eq!(found, [0.0, 0.5 / 0.75, 0.25 / 0.75]);
    }

    #[test]
    fn discounting_scales_the_measure() {
        let found = weights("cvar:1,0.5", &[0.25, 0.25], &[1.0, 2.0]);
        assert_eq!(found, [0.0, 0.5]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["cvar:2,0.5", "cvar:0.5", "cvar:a,b", "var", "cvar:0.5,NaN"] {
            assert!(text.parse::<Risk>().is_err(), "{text}");
        }
    }
}
