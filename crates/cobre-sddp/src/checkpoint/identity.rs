//! What a checkpoint belongs to: only the same problem with the same settings can go on from it.

use serde_json::{Map, Value};

use crate::fingerprint::Fingerprint;
use crate::run::Settings;

/// What training starts from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) problem: Fingerprint,
    /// The fingerprint of the policy whose cuts it has from the start.
    pub(crate) policy: Option<String>,
}

/// The names and values of what makes a run what it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity(Map<String, Value>);

impl Identity {
    pub(super) fn of(origin: &Origin, settings: &Settings) -> Self {
        let none = || "none".to_owned();
        let parts = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("problem", origin.problem.to_string()),
            ("warm start", origin.policy.clone().unwrap_or_else(none)),
            ("seed", settings.seed.to_string()),
            ("forward passes", settings.passes.to_string()),
            ("cut selection", format!("{:?}", settings.selection)),
            ("solver", settings.solver.name().to_owned()),
        ];
        let parts = parts.map(|(name, value)| (name.to_owned(), Value::from(value)));
        Self(parts.into_iter().collect())
    }

    pub(super) fn json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// How a checkpoint that belongs to `other` differs, in words; `None` if it does not.
    pub(super) fn difference(&self, other: &Value) -> Option<String> {
        let (name, value) = self
            .0
            .iter()
            .find(|(name, value)| other[*name] != **value)?;
        Some(if name == "problem" {
            "of another problem: other data, another --bound or another --risk".to_owned()
        } else {
            let theirs = other[name].as_str().unwrap_or("none");
            let ours = value.as_str().unwrap_or_default();
            format!("of a run with {name} {theirs}, and this one has {ours}")
        })
    }
}
