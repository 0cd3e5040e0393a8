//! Numbers that mean something: each kind has one check, for JSON and for tables.

use cobre_sddp::{LARGEST, MAX_PASSES, MAX_PATH_STAGES, MAX_PATHS, MAX_UPPER_BOUND_STATES};
use serde_json::{Value, json};

use super::json::{Json, Read, expected};
use super::table::{Cell, Column};
use crate::finding::{Findings, Place};

/// A number that is found where another is expected.
pub(crate) fn shown(value: f64) -> String {
    if value.abs() > LARGEST {
        format!("{value:?} (beyond ±{LARGEST:e})")
    } else {
        format!("{value:?}")
    }
}

/// Declares a kind of number.
macro_rules! number {
    ($(#[doc = $about:literal])+ $name:ident, $what:literal, $valid:expr, $schema:expr) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) struct $name(pub(crate) f64);

        impl $name {
            fn checked(value: f64) -> Option<Self> {
                let valid: fn(f64) -> bool = $valid;
                (value.abs() <= LARGEST && valid(value)).then_some(Self(value))
            }
        }

        impl Read for $name {
            fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
                let value = match json {
                    Json::Integer(value) => Some(*value as f64),
                    Json::Number(value) => Some(*value),
                    _ => None,
                };
                let checked = value.and_then(Self::checked);
                checked.or_else(|| expected($what, json, at, findings))
            }

            fn schema() -> Value {
                $schema
            }
        }

        impl Cell for $name {
            const COLUMN: Column = Column::Number;
            const WHAT: &'static str = $what;

            fn of(value: f64) -> Option<Self> {
                Self::checked(value)
            }
        }
    };
}

number!(
    /// Any finite number.
    Number, "a number", |_| true,
    json!({"type": "number", "minimum": -LARGEST, "maximum": LARGEST})
);
number!(
    /// A number that is not negative.
    NonNegative, "a number that is at least 0", |value| value >= 0.0,
    json!({"type": "number", "minimum": 0, "maximum": LARGEST})
);
number!(
    /// A number above 0.
    Positive, "a number above 0", |value| value > 0.0,
    json!({"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST})
);
number!(
    /// A share of a whole.
    Share, "a number from 0 to 1", |value| (0.0..=1.0).contains(&value),
    json!({"type": "number", "minimum": 0, "maximum": 1})
);
number!(
    /// A part that remains of a whole.
    Efficiency, "a number above 0 and at most 1, as nothing gains energy", |value| value > 0.0 && value <= 1.0,
    json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
);
number!(
    /// A part of a hundred that leaves something.
    Percent, "a number from 0 to below 100", |value| (0.0..100.0).contains(&value),
    json!({"type": "number", "minimum": 0, "exclusiveMaximum": 100})
);

number!(
    /// A number that is not above 0.
    NonPositive, "a number that is at most 0", |value| value <= 0.0,
    json!({"type": "number", "minimum": -LARGEST, "maximum": 0})
);
number!(
    /// A share that is not nothing.
    PositiveShare, "a number above 0 and at most 1", |value| value > 0.0 && value <= 1.0,
    json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
);

/// A whole number that names something.
pub(crate) type Id = i32;

impl Read for Id {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let value = match json {
            Json::Integer(value) => i32::try_from(*value).ok(),
            _ => None,
        };
        value.or_else(|| expected("a whole number of 32 bits", json, at, findings))
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX})
    }
}

impl Cell for Id {
    const COLUMN: Column = Column::Integer;
    const WHAT: &'static str = "a whole number of 32 bits";

    fn of(value: f64) -> Option<Self> {
        let fits = value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
        fits.then_some(value as i32)
    }
}

/// The largest count that only 32 bits limit.
const ANY_COUNT: usize = u32::MAX as usize;
/// The most openings of a stage.
const MOST_OPENINGS: usize = 100_000;

/// The most stages by which a thermal plant is committed ahead.
const MOST_LEAD_STAGES: usize = 120;

/// A count, from one, or another least number, to the largest that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count<const MOST: usize = ANY_COUNT, const LEAST: usize = 1>(pub(crate) usize);

/// Forward passes of an iteration.
pub(crate) type Passes = Count<MAX_PASSES>;
/// Stages of a path of a cyclic study.
pub(crate) type PathStages = Count<MAX_PATH_STAGES>;
/// Paths of a simulation.
pub(crate) type Paths = Count<MAX_PATHS>;
/// Visited states of an upper bound.
pub(crate) type UpperBoundStates = Count<MAX_UPPER_BOUND_STATES>;
/// Stages between a commitment and what is committed.
pub(crate) type LeadStages = Count<MOST_LEAD_STAGES>;
/// Openings of a stage.
pub(crate) type Openings = Count<MOST_OPENINGS>;
/// The order of an estimated model.
pub(crate) type ModelOrder = Count<12, 0>;

impl<const MOST: usize, const LEAST: usize> Read for Count<MOST, LEAST> {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let value = match json {
            Json::Integer(value) => usize::try_from(*value).ok(),
            _ => None,
        };
        let count = value
            .filter(|value| (LEAST..=MOST).contains(value))
            .map(Self);
        count.or_else(|| {
            let what = if MOST == ANY_COUNT {
                format!("a whole number that is at least {LEAST}")
            } else {
                format!("a whole number from {LEAST} to {MOST}")
            };
            expected(&what, json, at, findings)
        })
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// The seed of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) u64);

impl Read for Seed {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let value = match json {
            Json::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        let seed = value.map(Seed);
        seed.or_else(|| expected("a whole number that is at least 0", json, at, findings))
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": 0, "maximum": u64::MAX})
    }
}
