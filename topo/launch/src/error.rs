//! Why a run has no result, with the error that caused it.

use daemon::BoxedError;
use results::run_directory::WriteError;

/// What went wrong, in the classes that the exit codes of the program distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A daemon ended before its report.
    Died,
    /// The host lacks something.
    Host,
    /// A device or a substrate refuses the configuration.
    Config,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Why a run has no result. [`daemon::with_sources`] prints it with its causes.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct LaunchError {
    /// The class of the failure.
    pub kind: FailureKind,
    what: String,
    source: Option<BoxedError>,
}

impl LaunchError {
    fn new(kind: FailureKind, what: impl Into<String>) -> LaunchError {
        LaunchError { kind, what: what.into(), source: None }
    }

    /// A daemon ended before its report.
    pub(crate) fn died(what: impl Into<String>) -> LaunchError {
        LaunchError::new(FailureKind::Died, what)
    }

    /// The host lacks something.
    pub(crate) fn host(what: impl Into<String>) -> LaunchError {
        LaunchError::new(FailureKind::Host, what)
    }

    /// A device or a substrate refuses the configuration.
    pub(crate) fn config(what: impl Into<String>) -> LaunchError {
        LaunchError::new(FailureKind::Config, what)
    }

    /// The user pressed Ctrl-C.
    pub fn interrupted() -> LaunchError {
        LaunchError::new(FailureKind::Interrupted, "interrupted")
    }

    /// The same failure with its cause, for `map_err(LaunchError::host("…").caused())`.
    pub(crate) fn caused<E: Into<BoxedError>>(self) -> impl FnOnce(E) -> Self {
        move |source| LaunchError { source: Some(source.into()), ..self }
    }

    /// The same failure with further details.
    pub(crate) fn with_appendix(self, appendix: &str) -> LaunchError {
        LaunchError { what: self.what + appendix, ..self }
    }
}

impl From<WriteError> for LaunchError {
    fn from(WriteError { file, source }: WriteError) -> LaunchError {
        LaunchError::host(format!("cannot write {}", file.display())).caused()(source)
    }
}

/// Turns any error into a failure of the host, as its cause.
pub(crate) trait OrHost<T> {
    /// The value, or a failure of the host with this message.
    fn or_host(self, what: impl Into<String>) -> Result<T, LaunchError>;
}

impl<T, E: Into<BoxedError>> OrHost<T> for Result<T, E> {
    fn or_host(self, what: impl Into<String>) -> Result<T, LaunchError> {
        self.map_err(LaunchError::host(what).caused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::with_sources;

    #[test]
    fn an_error_is_printed_with_its_causes() {
        let error: Result<(), std::io::Error> = Err(std::io::Error::other("disk full"));
        let error = error.or_host("cannot write the journal").expect_err("it is one");
        assert_eq!(with_sources(&error), "cannot write the journal: disk full");
        assert_eq!(error.kind, FailureKind::Host);
    }
}
