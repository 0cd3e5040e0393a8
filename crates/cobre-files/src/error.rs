//! Reasons why a file is not written, replaced or removed.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Error of writing, replacing or removing a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// Something that Cobre did not write is where it would write.
    #[error(
        "{} {what}, and nothing shows that Cobre wrote it: it is left as it is; move it away, or choose another place",
        path.display()
    )]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// The kind of thing there.
        what: String,
    },
    /// A file that Cobre wrote was changed or replaced since.
    #[error(
        "{} was changed or replaced since Cobre wrote it: it is left as it is; move it away, or choose another place",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl FileError {
    /// Something in the way that Cobre did not write.
    pub fn foreign(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Foreign {
            path: path.into(),
            what: what.into(),
        }
    }

    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source: source.into(),
        }
    }
}
