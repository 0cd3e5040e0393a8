//! What is wrong with a case, or looks wrong: file, place, and what to do.

use std::fmt;

/// Whether a case can be used in spite of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but somebody should look.
    Warning,
}

/// One thing that is wrong with a case, or looks wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether the case can be used all the same.
    pub severity: Severity,
    /// The file, as a path below the case.
    pub file: String,
    /// The key or the row; empty for the file as a whole.
    pub place: String,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            place,
            message,
            ..
        } = self;
        let colon = if place.is_empty() { "" } else { ": " };
        // A finding is one line of a list, whatever the names in it.
        f.write_str(&format!("{file}: {place}{colon}{message}").replace('\n', "\\n"))
    }
}

/// Everything found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds an error.
    pub(crate) fn wrong(&mut self, at: &Place, message: impl Into<String>) {
        self.add(Severity::Error, at, message.into());
    }

    /// Adds a warning.
    pub(crate) fn doubtful(&mut self, at: &Place, message: impl Into<String>) {
        self.add(Severity::Warning, at, message.into());
    }

    fn add(&mut self, severity: Severity, at: &Place, message: String) {
        self.0.push(Finding {
            severity,
            file: at.file.clone(),
            place: at.key.clone(),
            message,
        });
    }

    /// Whether there is an error.
    pub(crate) fn any_wrong(&self) -> bool {
        self.0
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// All of them: errors first, else in the order they were found.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

/// A place in a file.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    file: String,
    key: String,
}

impl Place {
    /// A file as a whole.
    pub(crate) fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            key: String::new(),
        }
    }

    /// A key of what is here.
    pub(crate) fn key(&self, key: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        Self {
            file: self.file.clone(),
            key: format!("{}{dot}{key}", self.key),
        }
    }

    /// An element of the list that is here.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self {
            file: self.file.clone(),
            key: format!("{}[{index}]", self.key),
        }
    }

    /// A row of a table, counted from 1.
    pub(crate) fn row(&self, row: usize) -> Self {
        Self {
            file: self.file.clone(),
            key: format!("row {}", row + 1),
        }
    }

    /// Rows of a table that are described, not counted.
    pub(crate) fn rows(&self, which: impl Into<String>) -> Self {
        Self {
            file: self.file.clone(),
            key: which.into(),
        }
    }
}
