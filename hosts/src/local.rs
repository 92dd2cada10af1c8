//! Programs of this system that set something up, such as the hooks of a device under test.

use crate::HostError;
use crate::process::{end, spawn, tie};
use crate::streams::Streams;
use crate::text::escaped;
use std::process::Command;
use std::time::Duration;

/// Runs a program with its arguments, which no shell reads. Returns its exit code and what it has printed, with
/// escaped control characters. It ends with this process, and after `limit`.
///
/// # Errors
/// If the limit passes, or its output cannot be read.
#[expect(clippy::disallowed_methods, reason = "only this crate starts the programs of hosts")]
pub fn run(words: &[String], limit: Duration) -> Result<(i32, String), HostError> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| HostError::Invalid("a command has no words".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    tie(&mut command);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let streams = Streams {
        name: "of this system",
        stdout: &mut stdout,
        stderr: &mut stderr,
        limit: Some(limit),
    };
    let code = streams.run(command, spawn, std::io::empty(), end)?;
    Ok((code, escaped(&[stdout, stderr].concat())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_output_and_limit() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let limit = Duration::from_secs(20);
        let (code, text) = run(&words(&["echo", "a b", "$X"]), limit).expect("it runs");
        assert_eq!((code, text.as_str()), (0, "a b $X\n"));
        assert_eq!(run(&words(&["false"]), limit).expect("it runs").0, 1);
        assert_eq!(run(&words(&["no-such-program"]), limit).expect("it is reported").0, 127);
        let late = run(&words(&["sleep", "100"]), Duration::from_millis(300));
        assert!(matches!(late, Err(HostError::Late { .. })), "{late:?}");
        assert!(run(&[], limit).is_err());
    }
}
