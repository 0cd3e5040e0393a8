//! The identity of a run: only the same problem with the same settings can resume from a
//! checkpoint.

use serde_json::{Map, Value};

use crate::fingerprint::Fingerprint;
use crate::settings::Settings;

/// The inputs that training starts from.
#[derive(Debug, Clone)]
pub(crate) struct Provenance {
    pub(crate) problem: Fingerprint,
    /// The fingerprint of the warm start.
    pub(crate) policy: Option<String>,
}

/// The inputs of a run that its results depend on, by name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity(Map<String, Value>);

impl Identity {
    pub(super) fn of(provenance: &Provenance, settings: &Settings) -> Self {
        let none = || "none".to_owned();
        let parts = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("problem", provenance.problem.to_string()),
            ("warm start", provenance.policy.clone().unwrap_or_else(none)),
            ("seed", settings.seed.to_string()),
            ("forward passes", settings.passes.to_string()),
            ("cut selection", settings.selection.to_string()),
            ("solver", settings.solver.name().to_owned()),
            ("basis memory", settings.basis_memory.to_string()),
            ("stages of a path", settings.path_stages.to_string()),
        ];
        let parts = parts.map(|(name, value)| (name.to_owned(), Value::from(value)));
        Self(parts.into_iter().collect())
    }

    pub(super) fn json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The difference of a checkpoint with the identity `other`, in words; `None` if there is none.
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
