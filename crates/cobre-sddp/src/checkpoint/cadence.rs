//! The cadence of checkpoints.

use serde::Serialize;
use std::str::FromStr;

/// The cadence of checkpoints, apart from the one at the end of training. Results do not depend on
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Cadence {
    /// Never, not even at the end.
    Never,
    /// After every so many iterations.
    Iterations(usize),
    /// After the first iteration that ends so many seconds after the one before.
    Seconds(f64),
}

impl Default for Cadence {
    fn default() -> Self {
        Self::Seconds(60.0)
    }
}

impl FromStr for Cadence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "none, iterations:K or minutes:M is expected";
        let parse = || -> Option<Self> {
            if text == "none" {
                return Some(Self::Never);
            }
            let (name, value) = text.split_once(':')?;
            match name {
                "iterations" => {
                    let every = value.parse().ok().filter(|every| *every > 0);
                    every.map(Self::Iterations)
                }
                "minutes" => {
                    let minutes = value.parse().ok();
                    let minutes = minutes.filter(|minutes: &f64| *minutes >= 0.0);
                    minutes.map(|minutes| Self::Seconds(60.0 * minutes))
                }
                _ => None,
            }
        };
        parse().ok_or_else(|| expected.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Cadence;

    #[test]
    fn nonsense_is_refused() {
        assert_eq!("minutes:0.5".parse(), Ok(Cadence::Seconds(30.0)));
        for text in ["", "iterations:0", "minutes:-1", "minutes:NaN", "seconds:5"] {
            assert!(text.parse::<Cadence>().is_err(), "{text}");
        }
    }
}
