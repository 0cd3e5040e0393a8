//! Numbers with keys in front of them: `[stage, value]`, `[stage, block, value]`.

use serde_json::{Value, json};

use super::json::{Json, Read, expected};
use super::number::{Id, Number};
use crate::finding::{Findings, Place};

/// A number with `N` keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed<const N: usize> {
    pub(crate) keys: [Id; N],
    pub(crate) value: Number,
}

impl<const N: usize> Read for Keyed<N> {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let elements = match json {
            Json::List(elements) if elements.len() == N + 1 => elements,
            other => {
                let what = format!("a list of {N} whole numbers and a number");
                return expected(&what, other, at, findings);
            }
        };
        let mut keys = [0; N];
        for (place, key) in keys.iter_mut().enumerate() {
            *key = Id::read(&elements[place], &at.index(place), findings)?;
        }
        let value = Number::read(&elements[N], &at.index(N), findings)?;
        Some(Self { keys, value })
    }

    fn schema() -> Value {
        json!({"type": "array", "items": Number::schema()})
    }
}
