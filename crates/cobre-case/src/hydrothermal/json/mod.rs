//! Reading JSON so that everything wrong is found at once, and the schema of what is read.
//!
//! A type says how it is read, what it says when it cannot be, and what its JSON Schema is: what is
//! accepted and what editors are told cannot differ.

mod list;
mod object;
mod value;

pub(crate) use object::{Object, choice, object, plain, schema};
pub(crate) use value::Json;

use serde_json::Value;

use crate::finding::{Findings, Place};

/// A type that can be read from JSON.
pub(crate) trait Read: Sized {
    /// Reads it, or says what is wrong.
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self>;

    /// The value where the key is missing; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Its JSON Schema.
    fn schema() -> Value;
}

/// Says that something else was expected.
pub(crate) fn expected<T>(
    what: &str,
    json: &Json,
    at: &Place,
    findings: &mut Findings,
) -> Option<T> {
    findings.wrong(
        at,
        format!("{what} is expected, {} is found", json.described()),
    );
    None
}
