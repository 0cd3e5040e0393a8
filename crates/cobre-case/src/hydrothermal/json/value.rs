//! JSON as it is written: keys in order, twice if they are there twice.

use std::fmt;

use crate::hydrothermal::number;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The kind of the value, in words.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) => number::shown(*value),
            Self::Text(text) => format!("\"{text}\""),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

impl Json {
    /// This with the values of `other` in place of its own; objects are gone through key by key.
    pub(crate) fn overridden_by(self, other: Self) -> Self {
        let (Self::Object(mut entries), Self::Object(others)) = (self, &other) else {
            return other;
        };
        for (key, value) in others {
            match entries.iter_mut().find(|(own, _)| own == key) {
                Some((_, own)) => {
                    *own = std::mem::replace(own, Self::Null).overridden_by(value.clone());
                }
                None => entries.push((key.clone(), value.clone())),
            }
        }
        Self::Object(entries)
    }
}

impl Json {
    /// The value as text, with a line for each key.
    pub(crate) fn pretty(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i128(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Object(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Json, S::Error> {
        let mut found = Vec::new();
        while let Some(element) = list.next_element()? {
            found.push(element);
        }
        Ok(Json::List(found))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Json, M::Error> {
        let mut found = Vec::new();
        while let Some(entry) = map.next_entry()? {
            found.push(entry);
        }
        Ok(Json::Object(found))
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn overrides_go_through_objects_and_replace_the_rest() {
        let json = |text| serde_json::from_str::<Json>(text).expect("it is JSON");
        let own = json(r#"{"a": {"b": 1, "c": [1, 2]}, "d": 4}"#);
        let other = json(r#"{"a": {"c": [3], "e": null}, "d": {"f": 5}}"#);
        let both = json(r#"{"a": {"b": 1, "c": [3], "e": null}, "d": {"f": 5}}"#);
        assert_eq!(own.overridden_by(other), both);
    }
}
