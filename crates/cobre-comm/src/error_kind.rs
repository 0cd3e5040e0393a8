//! Kinds and fields of errors: what a program acts on, the same in exit codes, JSON and Python exceptions.

use std::error::Error;
use std::path::Path;
use std::str::FromStr;

/// Declares an enum whose variants have names.
macro_rules! names {
    ($(#[$about:meta])+ $enum:ident { $($(#[$doc:meta])+ $variant:ident = $name:literal,)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $enum { $($(#[$doc])+ $variant,)+ }

        impl $enum {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in JSON and Python.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl FromStr for $enum {
            type Err = ();

            fn from_str(name: &str) -> Result<Self, ()> {
                let mut all = Self::ALL.iter();
                all.find(|known| known.name() == name).copied().ok_or(())
            }
        }
    };
}

names! {
    /// The kind of an error.
    ErrorKind {
        /// The command line or a setting is wrong.
        Usage = "usage",
        /// A problem, a policy, a checkpoint or a configuration is not sound, or files of others are in the way.
        Input = "input",
        /// A file cannot be read or written, or the system refused something else.
        Io = "io",
        /// There is not enough memory.
        Memory = "memory",
        /// A linear program cannot be solved.
        Solver = "solver",
        /// Ranks cannot communicate, or one of them is lost.
        Communication = "communication",
        /// A rank was killed, panicked or ended without a reason, or cannot be watched.
        Rank = "rank",
        /// A signal ended the run before its results were saved.
        Stopped = "stopped",
        /// A program gave up for a reason of its own.
        Program = "program",
    }
}

names! {
    /// A field of an error.
    FieldName {
        /// The backend.
        Backend = "backend",
        /// The environment variable.
        Variable = "variable",
        /// The setting, or the place in the file.
        Key = "key",
        /// The value of the variable or of the setting.
        Value = "value",
        /// The values that are allowed.
        Expected = "expected",
        /// The file or directory.
        File = "file",
        /// All errors of the input, one by one.
        Errors = "errors",
        /// The node of the linear program.
        Node = "node",
        /// The opening, from 1.
        Opening = "opening",
        /// The rank that caused the failure.
        Rank = "rank",
        /// The ranks that did not answer or do not end.
        Ranks = "ranks",
        /// The host of the rank.
        Host = "host",
        /// The process of the rank.
        Pid = "pid",
        /// The exit code of the rank.
        ExitCode = "exit_code",
        /// The signal that ended the rank or the run.
        Signal = "signal",
        /// The collective.
        Operation = "operation",
        /// The number of the collective on its communicator, from 1.
        Sequence = "sequence",
        /// The bytes that could not be allocated.
        Bytes = "bytes",
    }
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A number.
    Number(u64),
    /// Several numbers.
    Numbers(Vec<usize>),
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for FieldValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<&Path> for FieldValue {
    fn from(path: &Path) -> Self {
        Self::Text(path.to_string_lossy().into_owned())
    }
}

impl From<Vec<String>> for FieldValue {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for FieldValue {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<&[usize]> for FieldValue {
    fn from(numbers: &[usize]) -> Self {
        Self::Numbers(numbers.to_vec())
    }
}

/// The fields of an error that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(FieldName, FieldValue)>);

impl Fields {
    /// These fields and one more.
    #[must_use]
    pub fn with(mut self, name: FieldName, value: impl Into<FieldValue>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// These fields, and one more if there is a value.
    #[must_use]
    pub fn maybe(self, name: FieldName, value: Option<impl Into<FieldValue>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl IntoIterator for Fields {
    type Item = (FieldName, FieldValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// An error with a kind and fields.
pub trait ClassifiedError: Error {
    /// The kind.
    fn kind(&self) -> ErrorKind;

    /// The fields that are known.
    fn fields(&self) -> Fields;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kind in ErrorKind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
        }
        assert_eq!("solvers".parse::<ErrorKind>(), Err(()));
    }
}
