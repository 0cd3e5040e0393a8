//! JSON in which a key appears twice says two things; readers would take one of them silently.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON whose objects have every key once.
struct UniqueKeys;

/// Refuses text with a key that appears twice in one object, or with something after its end.
pub(crate) fn check(text: &[u8]) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    serde_path_to_error::deserialize::<_, UniqueKeys>(&mut reader)
        .map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<UniqueKeys>()?;
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format!("the key {key:?} appears twice")));
            }
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<UniqueKeys, A::Error> {
        while sequence.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E: Error>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_key_that_appears_twice_is_found_where_it_is() {
        assert_eq!(
            check(br#"{"a": [1, {"b": null, "c": true}], "b": "x"}"#),
            Ok(())
        );
        let error =
            check(br#"{"a": [1, {"b": 0.5, "c": 1, "b": 0.5}]}"#).expect_err("b is there twice");
        assert!(
            error.contains("a[1]") && error.contains("\"b\" appears twice"),
            "{error}"
        );
        assert!(check(br#"{"a": 1} and more"#).is_err());
    }
}
