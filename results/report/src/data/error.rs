//! Why a run directory cannot be reported.

use std::io;
use std::path::PathBuf;

/// Why a run directory cannot be reported.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what a run writes.
    #[error("{} is not a valid file of a run directory: {why}", file.display())]
    Content {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The page cannot be written.
    #[error("cannot write {}: {source}", file.display())]
    Write {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}
