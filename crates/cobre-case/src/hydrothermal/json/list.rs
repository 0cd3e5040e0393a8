//! Texts, switches, lists, and values that may be left out.

use serde_json::{Value, json};

use super::{Json, Read, expected};
use crate::finding::{Findings, Place};

impl Read for String {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Text(text) => Some(text.clone()),
            other => expected("a text", other, at, findings),
        }
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Read for bool {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Bool(value) => Some(*value),
            other => expected("true or false", other, at, findings),
        }
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl<T: Read> Read for Option<T> {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Null => Some(None),
            other => T::read(other, at, findings).map(Some),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn schema() -> Value {
        json!({"anyOf": [T::schema(), {"type": "null"}]})
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let Json::List(elements) = json else {
            return expected("a list", json, at, findings);
        };
        let read = elements.iter().enumerate();
        let read: Vec<Option<T>> = read
            .map(|(index, element)| T::read(element, &at.index(index), findings))
            .collect();
        read.into_iter().collect()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}
