//! Stopping rules.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Progress;
use crate::settings::MAX_PATHS;

/// A stopping rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum StopRule {
    /// After this many iterations.
    Iterations(usize),
    /// After this much time, by the clock of rank 0.
    TimeLimit(Duration),
    /// When the bound has moved by less than `tolerance`, relative to itself, over `window`
    /// iterations.
    BoundStalling {
        /// Iterations to look back.
        window: usize,
        /// The relative change that counts as none.
        tolerance: f64,
    },
    /// When the bound lies within the 95 % interval of the estimate, once that is from at least
    /// this many paths.
    Statistical {
        /// Least paths.
        paths: usize,
    },
    /// When the bound and the upper bound differ by no more than this, relative to the bound.
    Gap {
        /// The relative difference.
        tolerance: f64,
    },
    /// When the mean outgoing state of the first stage has stayed the same over `window` iterations.
    FirstStage {
        /// Iterations to look back.
        window: usize,
        /// The change of a state that counts as none, relative to it where it is above 1.
        tolerance: f64,
    },
    /// When the value of the policy on the same paths has changed by no more than `tolerance` over `period` iterations.
    Simulation {
        /// Iterations from one simulation to the next.
        period: usize,
        /// Paths.
        paths: usize,
        /// The change, as the root mean square over paths, relative to the value of each.
        tolerance: f64,
    },
    /// When the bound and the upper bound differ by no more than this, in the unit of the objective.
    AbsoluteGap {
        /// The difference.
        difference: f64,
    },
}

/// The stopping criterion: any of some rules, or all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stopping {
    /// The rules. The first that applies is the reason.
    pub rules: Vec<StopRule>,
    /// True if all rules must apply at once.
    pub all: bool,
}

/// Until the bound stalls, within the iteration limit.
impl Default for Stopping {
    fn default() -> Self {
        Self::any(vec![StopRule::Iterations(ITERATIONS), STALLING])
    }
}

/// The iteration limit if none is given, unless the bound stalls before.
const ITERATIONS: usize = 1000;
const STALLING: StopRule = StopRule::BoundStalling {
    window: 100,
    tolerance: 1e-9,
};

/// The reason why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The number of iterations asked for.
    IterationLimit,
    /// The time allowed.
    TimeLimit,
    /// The bound does not move any more.
    BoundStalling,
    /// The bound is within the estimate's interval.
    Statistical,
    /// The bounds from both sides meet.
    Gap,
    /// The first stage's decision does not move any more.
    FirstStage,
    /// The policy does the same on simulated paths as before.
    Simulation,
    /// Interrupted by the user.
    Interrupted,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IterationLimit => "iteration_limit",
            Self::TimeLimit => "time_limit",
            Self::BoundStalling => "bound_stalling",
            Self::Statistical => "statistical",
            Self::Gap => "gap",
            Self::FirstStage => "first_stage",
            Self::Simulation => "simulation",
            Self::Interrupted => "interrupted",
        })
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for StopRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations(limit) => write!(f, "iterations:{limit}"),
            Self::TimeLimit(limit) => write!(f, "time:{}", limit.as_secs_f64()),
            Self::BoundStalling { window, tolerance } => {
                write!(f, "stalling:{window},{tolerance:?}")
            }
            Self::Statistical { paths } => write!(f, "statistical:{paths}"),
            Self::Gap { tolerance } => write!(f, "gap:{tolerance:?}"),
            Self::AbsoluteGap { difference } => write!(f, "absolute_gap:{difference:?}"),
            Self::FirstStage { window, tolerance } => {
                write!(f, "first_stage:{window},{tolerance:?}")
            }
            Self::Simulation {
                period,
                paths,
                tolerance,
            } => write!(f, "simulation:{period},{paths},{tolerance:?}"),
        }
    }
}

impl Stopping {
    /// The criterion of a user, with an iteration limit in any case; `None` without iterations and rules.
    pub fn asked(iterations: Option<usize>, mut rules: Vec<StopRule>, all: bool) -> Option<Self> {
        match iterations {
            Some(iterations) => rules.insert(0, StopRule::Iterations(iterations)),
            None if rules.is_empty() => return None,
            None => rules.push(StopRule::Iterations(ITERATIONS)),
        }
        Some(Self { rules, all })
    }

    /// Stops when any of these rules applies.
    pub fn any(rules: Vec<StopRule>) -> Self {
        Self { rules, all: false }
    }

    /// The reason to stop here, if any. An iteration limit and a time limit end training also where
    /// all rules must apply: otherwise it might never end.
    pub(crate) fn reason(&self, progress: &Progress) -> Option<StopReason> {
        let reasons: Vec<Option<StopReason>> = self
            .rules
            .iter()
            .map(|rule| rule.reason(progress))
            .collect();
        if self.all {
            let limit = reasons.iter().flatten().find(|reason| {
                matches!(reason, StopReason::IterationLimit | StopReason::TimeLimit)
            });
            let is_limit =
                |rule: &&StopRule| matches!(rule, StopRule::Iterations(_) | StopRule::TimeLimit(_));
            let limits = self.rules.iter().filter(is_limit).count();
            let others = reasons.iter().flatten().count() - usize::from(limit.is_some());
            let agreed = limits < self.rules.len() && others >= self.rules.len() - limits;
            return if agreed {
                reasons.into_iter().flatten().next()
            } else {
                limit.copied()
            };
        }
        reasons.into_iter().flatten().next()
    }
}

impl StopRule {
    fn reason(self, progress: &Progress) -> Option<StopReason> {
        let bounds = &progress.bounds;
        // Only an iteration limit ends a run that has not begun.
        match self {
            Self::Iterations(limit) => {
                (bounds.len() >= limit).then_some(StopReason::IterationLimit)
            }
            Self::TimeLimit(limit) => {
                (!bounds.is_empty() && progress.elapsed() >= limit).then_some(StopReason::TimeLimit)
            }
            Self::BoundStalling { window, tolerance } => {
                let last = *bounds.last()?;
                let before = bounds.len().checked_sub(window)?.checked_sub(1)?;
                let before = bounds[before];
                let still = (last - before).abs() <= tolerance * last.abs().max(1.0);
                still.then_some(StopReason::BoundStalling)
            }
            Self::Statistical { paths } => {
                let last = *bounds.last()?;
                let estimate = progress.estimate(paths);
                let half_width = estimate.half_width_95.filter(|_| estimate.paths >= paths)?;
                let inside = (last - estimate.mean).abs() <= half_width;
                inside.then_some(StopReason::Statistical)
            }
            Self::Gap { tolerance } => {
                let gap = progress.difference()? / bounds.last()?.abs().max(1e-9);
                (gap <= tolerance).then_some(StopReason::Gap)
            }
            Self::AbsoluteGap { difference } => {
                (progress.difference()? <= difference).then_some(StopReason::Gap)
            }
            Self::FirstStage { window, tolerance } => {
                let (last, before) = progress.decisions.split_last()?;
                let first = before.len().checked_sub(window)?;
                let same = |other: &Vec<f64>| {
                    let pairs = last.iter().zip(other);
                    pairs
                        .into_iter()
                        .all(|(now, then)| (now - then).abs() <= tolerance * now.abs().max(1.0))
                };
                before[first..]
                    .iter()
                    .all(same)
                    .then_some(StopReason::FirstStage)
            }
            Self::Simulation { tolerance, .. } => {
                let [(_, before), (at, now)] = &progress.simulated[..] else {
                    return None;
                };
                let same = *at == bounds.len() && distance(before, now) <= tolerance;
                same.then_some(StopReason::Simulation)
            }
        }
    }
}

/// The root mean square of the changes of values, each relative to it where it is above 1.
fn distance(before: &[f64], now: &[f64]) -> f64 {
    let pairs = before.iter().zip(now);
    let squares = pairs.map(|(then, now)| ((now - then) / then.abs().max(1.0)).powi(2));
    (squares.sum::<f64>() / now.len().max(1) as f64).sqrt()
}

impl FromStr for StopRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "iterations:N, time:SECONDS, stalling:WINDOW,TOLERANCE, statistical:PATHS, gap:TOLERANCE, \
                        absolute_gap:DIFFERENCE, first_stage:WINDOW,TOLERANCE or simulation:PERIOD,PATHS,TOLERANCE is expected";
        let tolerance = |text: &str| {
            let tolerance = text.parse::<f64>().ok();
            tolerance.filter(|tolerance| *tolerance >= 0.0 && tolerance.is_finite())
        };
        let count = |text: &str| text.parse().ok().filter(|&count: &usize| count > 0);
        let parse = || -> Option<Self> {
            let (name, value) = text.split_once(':')?;
            match name {
                "iterations" => value
                    .parse()
                    .ok()
                    .filter(|&limit| limit > 0)
                    .map(Self::Iterations),
                "time" => {
                    let seconds = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
                    Some(Self::TimeLimit(seconds))
                }
                "stalling" => {
                    let (window, tolerance) = value.split_once(',')?;
                    let tolerance: f64 = tolerance.parse().ok()?;
                    let window = window.parse().ok().filter(|&window: &usize| window > 0)?;
                    (tolerance >= 0.0).then_some(Self::BoundStalling { window, tolerance })
                }
                "statistical" => {
                    let paths = value.parse().ok().filter(|&paths: &usize| paths > 1)?;
                    Some(Self::Statistical { paths })
                }
                "gap" => tolerance(value).map(|tolerance| Self::Gap { tolerance }),
                "absolute_gap" => {
                    tolerance(value).map(|difference| Self::AbsoluteGap { difference })
                }
                "first_stage" => {
                    let (window, change) = value.split_once(',')?;
                    Some(Self::FirstStage {
                        window: count(window)?,
                        tolerance: tolerance(change)?,
                    })
                }
                "simulation" => {
                    let (period, rest) = value.split_once(',')?;
                    let (paths, change) = rest.split_once(',')?;
                    Some(Self::Simulation {
                        period: count(period)?,
                        paths: count(paths).filter(|&paths| paths <= MAX_PATHS)?,
                        tolerance: tolerance(change)?,
                    })
                }
                _ => None,
            }
        };
        parse().ok_or_else(|| expected.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Iteration, TimeSplit};
    use crate::lp::LpStatistics;
    use crate::training::Estimate;

    fn reason(rules: &[&str], all: bool, bounds: &[f64]) -> Option<StopReason> {
        let rules = rules
            .iter()
            .map(|rule| rule.parse().expect("a rule"))
            .collect();
        let stopping = Stopping { rules, all };
        let last = Iteration {
            number: bounds.len(),
            bound: bounds[bounds.len() - 1],
            estimate: Estimate::of(&[9.0, 11.0]),
            upper_bound: Some(9.09),
            gap: None,
            lp: LpStatistics::default(),
            cuts: 0,
            cuts_added: 0,
            time: TimeSplit {
                total: 5.0,
                ..TimeSplit::default()
            },
        };
        stopping.reason(&Progress {
            iterations: vec![last],
            bounds: bounds.to_vec(),
            costs: vec![9.0, 11.0],
            decisions: vec![vec![1.0, 5.0], vec![2.0, 5.0], vec![2.001, 5.0]],
            simulated: vec![(1, vec![100.0, 0.1]), (2, vec![101.0, 0.1])],
        })
    }

    #[test]
    fn each_rule_has_its_reason() {
        assert_eq!(reason(&["iterations:2"], false, &[1.0]), None);
        assert_eq!(
            reason(&["iterations:2"], false, &[1.0, 2.0]),
            Some(StopReason::IterationLimit)
        );
        assert_eq!(
            reason(&["time:5"], false, &[1.0]),
            Some(StopReason::TimeLimit)
        );
        assert_eq!(reason(&["stalling:2,0.01"], false, &[9.0, 9.0]), None);
        assert_eq!(
            reason(&["stalling:2,0.01"], false, &[9.0, 9.0, 9.0]),
            Some(StopReason::BoundStalling)
        );
        assert_eq!(reason(&["stalling:1,0.01"], false, &[8.0, 9.0]), None);
        let endless = format!("stalling:{},0", usize::MAX);
        assert_eq!(reason(&[&endless], false, &[9.0, 9.0]), None);
        assert_eq!(
            reason(&["statistical:2"], false, &[8.5]),
            Some(StopReason::Statistical)
        );
        assert_eq!(reason(&["statistical:3"], false, &[8.5]), None);
    }

    #[test]
    fn rules_on_the_policy_have_their_reasons() {
        let met = |rule: &str, bounds: &[f64]| reason(&[rule], false, bounds).is_some();
        assert!(met("gap:0.011", &[9.0]) && !met("gap:0.009", &[9.0]));
        assert!(met("absolute_gap:0.091", &[9.0]) && !met("absolute_gap:0.089", &[9.0]));
        assert!(met("first_stage:1,0.001", &[9.0]));
        assert!(!met("first_stage:2,0.001", &[9.0]) && met("first_stage:2,0.6", &[9.0]));
        // There are not as many iterations.
        assert!(!met("first_stage:3,9", &[9.0]));
        // One of two paths has changed by a hundredth.
        assert!(met("simulation:1,2,0.0071", &[9.0, 9.0]));
        assert!(!met("simulation:1,2,0.0070", &[9.0, 9.0]));
        assert!(
            !met("simulation:1,2,1", &[9.0]),
            "the last was an iteration ago"
        );
        for rule in [
            "gap:0.01",
            "absolute_gap:1000.0",
            "first_stage:5,0.001",
            "simulation:10,200,0.01",
        ] {
            let parsed: StopRule = rule.parse().expect("a rule");
            assert_eq!(parsed.to_string(), rule);
        }
    }

    #[test]
    fn all_rules_must_agree_but_a_limit_always_ends_it() {
        let both = ["stalling:1,0.01", "statistical:2"];
        assert_eq!(reason(&both, true, &[3.0, 3.0]), None);
        assert_eq!(
            reason(&both, true, &[9.0, 9.0]),
            Some(StopReason::BoundStalling)
        );
        let limited = ["iterations:2", "stalling:1,0.01", "statistical:2"];
        assert_eq!(
            reason(&limited, true, &[3.0, 3.0]),
            Some(StopReason::IterationLimit)
        );
        assert_eq!(
            reason(&["iterations:9", both[0], both[1]], true, &[9.0, 9.0]),
            Some(StopReason::BoundStalling)
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "iterations:0",
            "time:-1",
            "stalling:5",
            "statistical:1",
            "gap:-1",
            "gap:",
            "first_stage:5",
            "first_stage:0,1",
            "simulation:5,100",
            "simulation:5,0,0.1",
            "simulation:5,100,NaN",
            "",
        ] {
            assert!(text.parse::<StopRule>().is_err(), "{text}");
        }
    }
}
