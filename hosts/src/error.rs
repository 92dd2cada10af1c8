//! Why a host cannot be made, started or used.

use std::fmt::Display;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// Why a host cannot be made, started or used.
#[derive(Debug, Error)]
pub enum HostError {
    /// A name, an address, a path or a command is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A program is missing on this machine.
    #[error("{program} is not installed: {hint}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The command that installs it.
        hint: &'static str,
    },
    /// There is no usable image.
    #[error("{0}; make one with: pausebed vm build")]
    NoImage(String),
    /// Something failed, with its output.
    #[error("{0}")]
    Failed(String),
    /// A time limit has passed.
    #[error("{what} took more than {} s", limit.as_secs_f64())]
    Late {
        /// What was waited for.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

impl HostError {
    /// An error of the operating system, for `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Display) -> impl FnOnce(E) -> HostError {
        move |error| HostError::Io { what: what.to_string(), source: error.into() }
    }
}
