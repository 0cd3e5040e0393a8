//! Changes of JSON by key.

use crate::hydrothermal::json::Json;

impl Json {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else {
            return None;
        };
        let mut found = entries.iter().filter(|(own, _)| own == key);
        found.next().map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Self::Object(entries) = self else {
            return None;
        };
        let mut found = entries.iter_mut().filter(|(own, _)| own == key);
        found.next().map(|(_, value)| value)
    }

    /// Takes a key away.
    pub(super) fn take(&mut self, key: &str) -> Option<Self> {
        let Self::Object(entries) = self else {
            return None;
        };
        let place = entries.iter().position(|(own, _)| own == key)?;
        Some(entries.remove(place).1)
    }

    /// Sets a key.
    pub(super) fn put(&mut self, key: &str, value: Self) {
        if let Some(own) = self.get_mut(key) {
            *own = value;
        } else if let Self::Object(entries) = self {
            entries.push((key.to_owned(), value));
        }
    }

    /// Gives a key another name, unless that is taken.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if self.get(to).is_none()
            && let Some(value) = self.take(from)
        {
            self.put(to, value);
        }
    }

    /// The elements of the list of a key, to be changed.
    pub(super) fn each(&mut self, key: &str) -> impl Iterator<Item = &mut Self> {
        let list = match self.get_mut(key) {
            Some(Self::List(list)) => Some(list),
            _ => None,
        };
        list.into_iter().flatten()
    }

    /// The elements of the list of a key.
    pub(super) fn all(&self, key: &str) -> &[Self] {
        match self.get(key) {
            Some(Self::List(list)) => list,
            _ => &[],
        }
    }

    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            Self::Number(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// An object of these entries.
    pub(super) fn object(entries: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let entries = entries.into_iter();
        Self::Object(
            entries
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    }

    /// True if there is nothing in it.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Null => true,
            Self::List(list) => list.is_empty(),
            _ => false,
        }
    }
}
