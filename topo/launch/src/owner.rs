//! Whose something is: a process that cannot be confused with a later one of the same number, and the
//! folder of this user in which such things are noted down.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub process: u32,
    /// When it began, in clock ticks since the host did.
    pub began: u64,
}

impl Owner {
    /// The process of that number, if there is one.
    pub fn of(process: u32) -> Option<Owner> {
        // Source: proc_pid_stat(5), fields 3 and 22; the second is a name in brackets and may hold
        // anything. A process that has ended and that nobody has asked about is none.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        if fields.starts_with('Z') {
            return None;
        }
        let began = fields.split(' ').nth(22 - 3)?.parse().ok()?;
        Some(Owner { process, began })
    }

    /// This process.
    ///
    /// # Errors
    /// If the system does not show processes.
    pub fn this() -> io::Result<Owner> {
        Owner::of(std::process::id()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whose a name is that ends with `.process.began`.
    pub fn named(name: &str) -> Option<Owner> {
        let (rest, began) = name.rsplit_once('.')?;
        let (_, process) = rest.rsplit_once('.')?;
        Some(Owner { process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Owner::of(self.process) == Some(self)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.process, self.began)
    }
}

/// A folder of this user's that no other may write to, made if need be.
///
/// # Errors
/// If there is none to be had.
pub fn folder() -> io::Result<PathBuf> {
    let folder = place();
    private(&folder)?;
    Ok(folder)
}

/// Where that folder is, or would be.
pub fn place() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("pausebed"),
        None => std::env::temp_dir().join(format!("pausebed-{}", nix::unistd::geteuid())),
    }
}

/// Makes `folder` if it is not there, and sees to it that it is this user's alone.
///
/// # Errors
/// If it cannot be made, or is somebody else's too.
pub fn private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let reason = format!("{}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), reason));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.uid() == nix::unistd::geteuid().as_raw();
    if !found.is_dir() || !is_ours || found.mode() & 0o022 != 0 {
        let reason = format!("{} is not this user's alone", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_its_number_and_known_by_name() {
        let own = Owner::this().expect("this process is there");
        assert!(own.is_alive());
        assert!(!Owner { began: own.began + 1, ..own }.is_alive());
        assert_eq!(Owner::named(&format!("pfister-eight.1.{own}")), Some(own));
        assert_eq!(Owner::named("notes.lab"), None);
    }
}
