//! Why a daemon cannot start or go on.

use capture::CaptureError;
use capture::reader::ReadError;
use emulation::cable::lines::LinesError;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// An error of any kind, kept as the source of another.
pub type BoxedError = Box<dyn Error + Send + Sync>;

/// Why a daemon cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A system call failed.
    #[error("{what}")]
    Io {
        /// What the daemon tried to do.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The configuration is not TOML, or has keys that no daemon knows.
    #[error("the configuration cannot be parsed")]
    Syntax(#[from] toml::de::Error),
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
    /// The wiring contradicts itself.
    #[error(transparent)]
    Wiring(#[from] LinesError),
    /// A device refuses its configuration.
    #[error("{node}")]
    Device {
        /// The name of the device's node.
        node: String,
        /// Why.
        #[source]
        source: BoxedError,
    },
    /// A capture cannot begin.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture cannot be fed in.
    #[error("{}", file.display())]
    Feed {
        /// Its file.
        file: PathBuf,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The kernel does not let this process give up its rights.
    #[error("cannot give up rights: {what}")]
    Rights {
        /// The step that failed.
        what: &'static str,
        /// What the kernel said.
        #[source]
        source: BoxedError,
    },
    /// The launcher broke the protocol, or refuses this daemon.
    #[error("{0}")]
    Launcher(String),
    /// A line of the protocol cannot be parsed.
    #[error("cannot parse {begin:?}")]
    Message {
        /// How the line begins.
        begin: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The data plane panicked.
    #[error("the data plane panicked: {0}")]
    Panic(String),
}

impl DaemonError {
    /// Makes an I/O error of what the daemon tried to do.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> DaemonError {
        let what = what.into();
        move |source| DaemonError::Io { what, source }
    }
}

/// The message of `error` and those of all its sources, separated by colons.
pub fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
