//! Files of launchers: the process that they belong to, and the private folder of this user.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A process, distinct from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub process: u32,
    /// Its start time, in clock ticks since boot.
    pub began: u64,
}

impl ProcessIdentity {
    /// The process with this id, if there is one.
    pub fn of(process: u32) -> Option<ProcessIdentity> {
        // Source: proc_pid_stat(5), fields 3 and 22. Field 2 is a name in brackets with any characters.
        // A zombie does not count as a process.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        if fields.starts_with('Z') {
            return None;
        }
        let began = fields.split(' ').nth(22 - 3)?.parse().ok()?;
        Some(ProcessIdentity { process, began })
    }

    /// This process.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn this() -> io::Result<ProcessIdentity> {
        ProcessIdentity::of(std::process::id()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The process of a name that ends with `.process.began`.
    pub fn named(name: &str) -> Option<ProcessIdentity> {
        let (rest, began) = name.rsplit_once('.')?;
        let (_, process) = rest.rsplit_once('.')?;
        Some(ProcessIdentity { process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        ProcessIdentity::of(self.process) == Some(self)
    }
}

/// The PID namespace of this process. Containers may share folders and engines, and process ids of one mean nothing in
/// another.
///
/// # Errors
/// If /proc is not mounted.
pub(crate) fn pid_namespace() -> io::Result<u64> {
    let file = "/proc/self/ns/pid";
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
    fs::metadata(file).map(|file| file.ino()).map_err(named)
}

/// Removes the entries of `folder` whose owner has ended. `owner_of` reads the owner from a name.
pub(crate) fn remove_leftovers_in(
    folder: &Path,
    owner_of: impl Fn(&str) -> Option<ProcessIdentity>,
    remove: impl Fn(&fs::DirEntry),
) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(&owner_of);
        if owner.is_some_and(|owner| !owner.is_alive()) {
            remove(&entry);
        }
    }
}

impl std::fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.process, self.began)
    }
}

/// The private folder of this user; made if it does not exist.
///
/// # Errors
/// If it cannot be made, or others can write to it.
pub fn folder() -> io::Result<PathBuf> {
    let folder = place();
    private(&folder)?;
    Ok(folder)
}

/// The path of that folder.
pub(crate) fn place() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("pausebed"),
        None => std::env::temp_dir().join(format!("pausebed-{}", nix::unistd::geteuid())),
    }
}

/// Makes `folder` if it does not exist, and checks that only this user can write to it.
///
/// # Errors
/// If it cannot be made, or another user owns it or can write to it.
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
        let reason = format!("others can write to {}", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Writes a value as JSON for people, with a newline at the end.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_json(file: &Path, value: &impl Serialize) -> io::Result<()> {
    fs::write(file, serde_json::to_string_pretty(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinct_from_a_later_one_with_its_number_and_can_be_read_from_a_name() {
        let own = ProcessIdentity::this().expect("this process is there");
        assert!(own.is_alive());
        assert!(!ProcessIdentity { began: own.began + 1, ..own }.is_alive());
        assert_eq!(ProcessIdentity::named(&format!("pfister-eight.1.{own}")), Some(own));
        assert_eq!(ProcessIdentity::named("notes.lab"), None);
    }
}
