//! The program QEMU on this machine.

use crate::HostError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const PROGRAM: &str = "qemu-system-x86_64";
const HINT: &str = "apt-get install qemu-system-x86 (as root), or the package of your distribution";
/// The oldest with `-netdev dgram`.
const OLDEST: u32 = 72;

/// How QEMU executes machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// By the processor.
    Kvm,
    /// By translation in QEMU.
    Tcg,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        })
    }
}

/// QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// The first line it prints for `--version`.
    pub version: String,
}

impl Qemu {
    /// Finds QEMU by PATH, once in a process.
    ///
    /// # Errors
    /// If there is none, or it is older than 7.2.
    #[expect(
        clippy::disallowed_methods,
        reason = "only this crate and launch start child processes"
    )]
    pub fn find() -> Result<Qemu, HostError> {
        static FOUND: OnceLock<Qemu> = OnceLock::new();
        if let Some(qemu) = FOUND.get() {
            return Ok(qemu.clone());
        }
        let output = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
        let missing = HostError::Missing { program: PROGRAM, hint: HINT };
        let output = output.map_err(|_| missing)?;
        if !output.status.success() {
            let what = format!("{PROGRAM} --version has ended with {}", output.status);
            return Err(HostError::Failed(what));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        match number(&version) {
            Some(number) if number >= OLDEST => Ok(FOUND.get_or_init(|| Qemu { version }).clone()),
            _ => Err(HostError::Failed(format!(
                "{PROGRAM} 7.2 or newer is needed; this is {version:?}"
            ))),
        }
    }

    /// A command without arguments.
    #[expect(
        clippy::disallowed_methods,
        reason = "only this crate and launch start child processes"
    )]
    pub fn command(&self) -> Command {
        Command::new(PROGRAM)
    }
}

/// Ten times the major number and the minor number: `QEMU emulator version 7.2.22 (...)` is 72.
fn number(version: &str) -> Option<u32> {
    let text = version.split("version ").nth(1)?;
    let mut parts = text.split(['.', ' ']);
    let (major, minor) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
    Some(major * 10 + minor.min(9))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_ordered() {
        assert_eq!(number("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"), Some(72));
        assert_eq!(number("QEMU emulator version 10.0.2"), Some(100));
        assert_eq!(number("something"), None);
    }
}
