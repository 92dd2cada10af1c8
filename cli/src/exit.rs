//! Exit codes of the program, and the failures that lead to them.

use launch::lab::client::ClientError;
use launch::{FailureKind, LaunchError, with_sources};
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::pages;
use std::fmt::Display;
use std::path::Path;

/// How a command ends. Of several runs the highest of 6, 5, 4, 1, 0 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Good = 0,
    /// An expectation or a case failed, or congestion dropped lossless frames.
    Failed = 1,
    /// Bad usage or a bad file.
    Usage = 2,
    /// The host lacks something.
    Host = 3,
    /// The host did not keep up.
    Inconclusive = 4,
    /// A daemon died.
    Died = 5,
    /// A capture lacks frames that passed its ports, or a merge lacks runs.
    Incomplete = 6,
    /// The user pressed Ctrl-C.
    Interrupted = 130,
}

/// The exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  success: every expectation is met, every frame accounted for
    1  an expectation or a case failed, frames are unaccounted for, or congestion
       dropped lossless frames
    2  bad usage or a bad file; nothing was started
    3  the host lacks something
    4  inconclusive: the host did not keep up
    5  a daemon died
    6  a capture lacks frames, or a merge lacks runs
  130  interrupted
Of several runs the highest of 6, 5, 4, 1, 0 counts.";

/// How a command ends, or why it has no result.
pub type Outcome = Result<Exit, Failure>;

/// Why a command has no result: its exit code, and the message for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One or several lines; empty if everything has been printed.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Failure {
        Failure { exit, message: message.to_string().trim_end().to_owned() }
    }

    /// Bad usage or a bad file.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// The host lacks something.
    pub(crate) fn host(message: impl Display) -> Failure {
        Failure::new(Exit::Host, message)
    }

    /// The host cannot do something with a file, for `map_err`.
    pub(crate) fn cannot_write<E: Display>(file: &Path) -> impl Fn(E) -> Failure {
        move |error| Failure::host(format!("cannot write {}: {error}", file.display()))
    }

    /// A file that the user named cannot be used, for `map_err`.
    pub(crate) fn bad_file<E: Display>(file: &Path) -> impl Fn(E) -> Failure {
        move |error| Failure::usage(format!("{}: {error}", file.display()))
    }

    /// The same failure with the page that explains `topic`, unless the message names one.
    pub(crate) fn explained(self, topic: &str) -> Failure {
        match pages::of(topic) {
            Some(page) if !self.message.is_empty() && !self.message.contains("see docs/") => {
                Failure { message: format!("{}\nsee {page}", self.message), ..self }
            }
            _ => self,
        }
    }

    /// The same failure with the name of its subject before the message.
    pub(crate) fn of(self, subject: impl Display) -> Failure {
        Failure { message: format!("{subject}: {}", self.message), ..self }
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Exit {
        match kind {
            FailureKind::Died => Exit::Died,
            FailureKind::Host => Exit::Host,
            FailureKind::Config => Exit::Usage,
            FailureKind::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Exit {
        match verdict {
            Verdict::Pass => Exit::Good,
            Verdict::Fail => Exit::Failed,
            Verdict::Inconclusive => Exit::Inconclusive,
        }
    }
}

impl From<&RunResult> for Exit {
    fn from(result: &RunResult) -> Exit {
        if result.is_captured() { result.verdict.into() } else { Exit::Incomplete }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        Failure::new(error.kind.into(), with_sources(&error))
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::Refused(_) => Exit::Usage,
            ClientError::Silent { .. } => Exit::Died,
        };
        Failure::new(exit, with_sources(&error))
    }
}
