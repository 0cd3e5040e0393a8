//! Findings: errors and warnings about a case, with file, place and what to do.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// The severity of a finding: an error, or a warning with which the case can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but somebody should look.
    Warning,
}

/// One thing that is wrong with a case, or looks wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The file, as a path below the case.
    pub file: String,
    /// The key or the row; empty for the file as a whole.
    pub place: String,
    /// The value found and the one expected.
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

/// The most errors of a table that are told one by one; its rows are often wrong in the same way.
const MOST_OF_TABLE: usize = 5;
/// The most errors of any other file that are told one by one.
const MOST_OF_FILE: usize = 50;

/// Everything found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    told: Vec<Finding>,
    /// Counts by file and severity, those that are not told included.
    counts: HashMap<(String, Severity), usize>,
    /// Files that could not be read, of which all is said.
    closed: HashSet<String>,
}

impl Findings {
    /// Adds an error.
    pub(crate) fn wrong(&mut self, at: &Place, message: impl Into<String>) {
        self.add(Severity::Error, at, message.into());
    }

    /// Adds a warning.
    pub(crate) fn doubtful(&mut self, at: &Place, message: impl Into<String>) {
        self.add(Severity::Warning, at, message.into());
    }

    /// Says that nothing else is to be told of a file.
    pub(crate) fn close(&mut self, file: &str) {
        self.closed.insert(file.to_owned());
    }

    fn add(&mut self, severity: Severity, at: &Place, message: String) {
        if self.closed.contains(&at.file) {
            return;
        }
        let count = self.counts.entry((at.file.clone(), severity)).or_default();
        *count += 1;
        if *count <= most(&at.file) {
            self.told.push(Finding {
                severity,
                file: at.file.clone(),
                place: at.key.clone(),
                message,
            });
        }
    }

    /// The number of findings, those that are not told included.
    pub(crate) fn count(&self) -> usize {
        self.counts.values().sum()
    }

    /// The number of errors, those that are not told included.
    pub(crate) fn errors(&self) -> usize {
        let errors = self.counts.iter();
        let errors = errors.filter(|((_, severity), _)| *severity == Severity::Error);
        errors.map(|(_, count)| count).sum()
    }

    /// True if there is an error.
    pub(crate) fn any_wrong(&self) -> bool {
        self.told
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// True if there is an error in a table, in whichever form it is: Parquet, or CSV.
    pub(crate) fn any_in_table(&self, file: &str) -> bool {
        let name = |file: &str| {
            let name = file.rsplit_once('.');
            name.map_or(file, |(name, _)| name).to_owned()
        };
        let (wanted, mut errors) = (name(file), self.counts.keys());
        errors.any(|(own, severity)| *severity == Severity::Error && name(own) == wanted)
    }

    /// All of them: errors first, else in the order they were found. Of a file that has many the first are told, and
    /// how many more there are.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        let mut more: Vec<_> = self.counts.into_iter().collect();
        more.sort();
        for ((file, severity), count) in more {
            if let Some(count) = count.checked_sub(most(&file)).filter(|count| *count > 0) {
                let what = match severity {
                    Severity::Error => "errors",
                    Severity::Warning => "warnings",
                };
                self.told.push(Finding {
                    severity,
                    file,
                    place: String::new(),
                    message: format!("and {count} more {what}"),
                });
            }
        }
        self.told.sort_by_key(|finding| finding.severity);
        self.told
    }
}

/// The most findings of a severity that are told of a file.
fn most(file: &str) -> usize {
    let tables = [".parquet", ".csv"];
    if tables.iter().any(|ending| file.ends_with(ending)) {
        MOST_OF_TABLE
    } else {
        MOST_OF_FILE
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
