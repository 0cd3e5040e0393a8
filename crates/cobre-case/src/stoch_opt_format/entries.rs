//! A JSON object as a list, in the order of the file.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The entries of a JSON object, in the order of the file; a name that comes twice is an error.
#[derive(Debug, Clone)]
pub(super) struct Entries<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryReader(PhantomData))
    }
}

struct EntryReader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntryReader<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries<T>, M::Error> {
        let mut entries: Vec<(String, T)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        while let Some((name, entry)) = map.next_entry::<String, T>()? {
            if !names.insert(name.clone()) {
                return Err(Error::custom(format!("{name} is given twice")));
            }
            entries.push((name, entry));
        }
        Ok(Entries(entries))
    }
}
