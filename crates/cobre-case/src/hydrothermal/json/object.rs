//! Objects and choices: each is declared once, with its keys, what they mean, what the format has but this version
//! refuses, and what it passes over with a warning.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Json, Read, expected};
use crate::finding::{Findings, Place};

/// The key that tells editors what an object may have; it is allowed in all.
const SCHEMA: &str = "$schema";

/// An object that is being read.
pub(crate) struct Object<'j, 'f> {
    entries: Vec<(&'j str, &'j Json, bool)>,
    at: Place,
    known: Vec<&'static str>,
    findings: &'f mut Findings,
}

impl<'j, 'f> Object<'j, 'f> {
    /// Opens it, or says that it is something else.
    pub(crate) fn open(json: &'j Json, at: &Place, findings: &'f mut Findings) -> Option<Self> {
        let Json::Object(entries) = json else {
            return expected("an object", json, at, findings);
        };
        let mut seen = HashSet::new();
        for (key, _) in entries {
            if !seen.insert(key.as_str()) {
                findings.wrong(&at.key(key), "the key is there twice");
            }
        }
        Some(Self {
            entries: entries
                .iter()
                .map(|(key, value)| (key.as_str(), value, false))
                .collect(),
            at: at.clone(),
            known: Vec::new(),
            findings,
        })
    }

    fn find(&mut self, key: &'static str) -> Option<&'j Json> {
        self.known.push(key);
        let mut found = None;
        for (_, value, seen) in self.entries.iter_mut().filter(|(name, _, _)| *name == key) {
            *seen = true;
            found = found.or(Some(*value));
        }
        found
    }

    /// The value of a key.
    pub(crate) fn take<T: Read>(&mut self, key: &'static str) -> Option<T> {
        let place = self.at.key(key);
        match self.find(key) {
            Some(value) => T::read(value, &place, self.findings),
            None => T::absent().or_else(|| {
                self.findings.wrong(&place, "the key is missing");
                None
            }),
        }
    }

    /// Refuses a key of the format that this version cannot honour; null is as good as none.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) {
        if let Some(value) = self.find(key)
            && *value != Json::Null
        {
            let message = format!("not supported: {why}; remove the key");
            self.findings.wrong(&self.at.key(key), message);
        }
        self.known.pop();
    }

    /// Passes over a key of the format that changes nothing here, and says so; null is as good as none.
    pub(crate) fn pass_over(&mut self, key: &'static str, why: &str) {
        if let Some(value) = self.find(key)
            && *value != Json::Null
        {
            let message = format!("nothing reads it: {why}");
            self.findings.doubtful(&self.at.key(key), message);
        }
    }

    /// The values of all keys, where the file chooses their names.
    pub(crate) fn all<T: Read>(self) -> Option<Vec<(String, T)>> {
        let named = self.entries.iter().filter(|(key, _, _)| *key != SCHEMA);
        let read: Vec<Option<(String, T)>> = named
            .map(|(key, value, _)| {
                let read = T::read(value, &self.at.key(key), self.findings);
                read.map(|read| ((*key).to_owned(), read))
            })
            .collect();
        read.into_iter().collect()
    }

    /// Says which keys are none of the format.
    pub(crate) fn close(self) {
        let strange = self.entries.iter();
        for (key, _, _) in strange.filter(|(key, _, seen)| !seen && *key != SCHEMA) {
            let message = format!("unknown key; {} are known", self.known.join(", "));
            self.findings.wrong(&self.at.key(key), message);
        }
    }
}

/// The schema of an object with these keys: name, schema, whether it may be left out, and what it
/// means.
pub(crate) fn schema(about: &str, keys: Vec<(&str, Value, bool, &str)>) -> Value {
    let mut properties = Map::new();
    properties.insert(SCHEMA.to_owned(), json!({"type": "string"}));
    let mut required = Vec::new();
    for (key, mut schema, optional, means) in keys {
        schema["description"] = json!(means);
        properties.insert(key.to_owned(), schema);
        if !optional {
            required.push(key);
        }
    }
    json!({
        "type": "object",
        "description": about,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A key as it is written in files: Rust marks those that are its own words.
pub(crate) fn plain(key: &'static str) -> &'static str {
    key.strip_prefix("r#").unwrap_or(key)
}

/// Declares an object: a struct that can be read, whose documentation is its schema's.
macro_rules! object {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $means:literal])+ $key:ident: $kind:ty, )*
        }
        $( refused { $( $other:ident: $why:literal, )* } )?
        $( unread { $( $idle:ident: $reason:literal, )* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        #[allow(dead_code, reason = "some keys are there to be checked only")]
        #[allow(clippy::struct_field_names, reason = "keys are those of the format")]
        pub(crate) struct $name {
            $( $(#[doc = $means])+ pub(crate) $key: $kind, )*
        }

        impl $crate::hydrothermal::json::Read for $name {
            fn read(
                json: &$crate::hydrothermal::json::Json,
                at: &$crate::finding::Place,
                findings: &mut $crate::finding::Findings,
            ) -> Option<Self> {
                let mut object = $crate::hydrothermal::json::Object::open(json, at, findings)?;
                $( let $key = object.take($crate::hydrothermal::json::plain(stringify!($key))); )*
                $( $( object.refuse(stringify!($other), $why); )* )?
                $( $( object.pass_over(stringify!($idle), $reason); )* )?
                object.close();
                Some(Self { $( $key: $key?, )* })
            }

            fn schema() -> serde_json::Value {
                let keys = vec![ $( (
                    $crate::hydrothermal::json::plain(stringify!($key)),
                    <$kind as $crate::hydrothermal::json::Read>::schema(),
                    <$kind as $crate::hydrothermal::json::Read>::absent().is_some(),
                    concat!($($means),+).trim(),
                ), )* $( $( (
                    stringify!($idle),
                    serde_json::json!({}),
                    true,
                    concat!("Nothing reads it: ", $reason, "."),
                ), )* )? ];
                $crate::hydrothermal::json::schema(concat!($($about),+).trim(), keys)
            }
        }
    };
}
pub(crate) use object;

/// Declares a choice between texts: an enum that can be read.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $means:literal])+ $variant:ident = $text:literal, )+
        }
        $( refused { $( $other:literal: $why:literal, )* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $( $(#[doc = $means])+ $variant, )+
        }

        impl $crate::hydrothermal::json::Read for $name {
            fn read(
                json: &$crate::hydrothermal::json::Json,
                at: &$crate::finding::Place,
                findings: &mut $crate::finding::Findings,
            ) -> Option<Self> {
                let text = <String as $crate::hydrothermal::json::Read>::read(json, at, findings)?;
                match text.as_str() {
                    $( $text => return Some(Self::$variant), )+
                    $( $( $other => {
                        findings.wrong(at, concat!("\"", $other, "\" is not supported: ", $why));
                        return None;
                    } )* )?
                    _ => {}
                }
                let known = [$($text),+].join(", ");
                findings.wrong(at, format!("\"{text}\" is none of {known}"));
                None
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({"enum": [$($text),+]})
            }
        }
    };
}
pub(crate) use choice;
