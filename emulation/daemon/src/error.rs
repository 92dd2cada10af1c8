//! Why a daemon cannot run.

use capture::CaptureError;
use emulation::cable::lines::LinesError;
use std::error::Error;

/// Any error that a daemon keeps as a cause.
pub type BoxedError = Box<dyn Error + Send + Sync>;

/// Why a daemon cannot run. [`with_sources`] prints it with its causes.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A fault of the configuration, of the launcher or of the data plane.
    #[error("{0}")]
    Fault(String),
    /// A step failed.
    #[error("{what}")]
    Step {
        /// The step, or its subject.
        what: String,
        /// The cause.
        source: BoxedError,
    },
    /// The wiring and the hosts do not fit together.
    #[error(transparent)]
    Wiring(#[from] LinesError),
    /// The capture cannot be made.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Turns any error into the cause of a [`DaemonError`].
pub(crate) trait Context<T> {
    /// The value, or a failure of the step `what`.
    fn context(self, what: impl Into<String>) -> Result<T, DaemonError>;
}

impl<T, E: Into<BoxedError>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, DaemonError> {
        self.map_err(|source| DaemonError::Step { what: what.into(), source: source.into() })
    }
}

/// The message of `error` and those of all its sources, separated by colons.
pub fn with_sources(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
