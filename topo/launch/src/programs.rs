//! Other programs on this host, for example tshark.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A program that printed its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path, or its bare name if it was found by PATH.
    pub path: PathBuf,
    /// The first line it prints for `--version`.
    pub version: String,
}

/// Finds a tool by its name in PATH.
///
/// # Errors
/// If there is none, or `--version` fails.
#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
pub fn tool(name: &str) -> io::Result<Found> {
    let mut command = Command::new(name);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => {
            Ok(Found { path: name.into(), version: line.trim().to_owned() })
        }
        _ => Err(io::Error::other(format!("--version ends with {}", output.status))),
    }
}

/// Runs a tool to its end. Returns whether it succeeded, and its standard output; after a failure also its
/// standard error.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
pub fn run(name: &str, arguments: &[&OsStr]) -> io::Result<(bool, String)> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output()?;
    let good = output.status.success();
    let text = if good { output.stdout } else { [output.stdout, output.stderr].concat() };
    Ok((good, String::from_utf8_lossy(&text).into_owned()))
}

/// Runs a tool found by [`tool`] to its end and returns its output.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
pub fn output<'a>(
    tool: &Found,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> io::Result<Output> {
    Command::new(&tool.path).args(arguments).stdin(Stdio::null()).output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_an_error() {
        assert!(tool("pausebed-no-such-tool").is_err());
        assert!(tool("false").is_err());
        assert!(run("pausebed-no-such-tool", &[]).is_err());
        assert_eq!(run("false", &[]).ok(), Some((false, String::new())));
    }
}
