//! Other programs on this host: tools, asked for their versions and run.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is; a bare name was found by the search path.
    pub path: PathBuf,
    /// The first line it prints for `--version`.
    pub version: String,
}

/// A tool by name, as the search path has it.
///
/// # Errors
/// If there is none, or it does not answer.
pub fn tool(name: &str) -> io::Result<Found> {
    let path = PathBuf::from(name);
    let version = version(&path)?;
    Ok(Found { path, version })
}

/// Runs a tool to its end: whether it ended well, and what it wrote to its standard output and, if it
/// did not, to its standard error.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
pub fn run(name: &str, arguments: &[&OsStr]) -> io::Result<(bool, String)> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output()?;
    let good = output.status.success();
    let text = if good { output.stdout } else { [output.stdout, output.stderr].concat() };
    Ok((good, String::from_utf8_lossy(&text).into_owned()))
}

#[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
fn version(program: &Path) -> io::Result<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        _ => Err(io::Error::other(format!("--version ends with {}", output.status))),
    }
}

/// What a tool found by [`tool`] answers to `arguments`, at its end.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
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
    fn what_is_not_there_is_an_error_and_not_a_version() {
        assert!(tool("pausebed-no-such-tool").is_err());
        assert!(tool("false").is_err());
        assert!(run("pausebed-no-such-tool", &[]).is_err());
        assert_eq!(run("false", &[]).ok(), Some((false, String::new())));
    }
}
