//! The temporary folder of a run. Its name contains its owner, so that the next run removes what a killed launcher left.

use super::owner::ProcessIdentity;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// The prefix of the names of all such folders.
const PREFIX: &str = "pausebed-run-";

/// Makes a folder that is removed when the returned value is dropped.
///
/// # Errors
/// If it cannot be made.
pub fn make() -> io::Result<TempDir> {
    let (begin, end) =
        (format!("{PREFIX}{}-", pid_namespace()?), format!(".{}", ProcessIdentity::this()?));
    tempfile::Builder::new().prefix(&begin).suffix(&end).tempdir()
}

/// Removes the folders of launchers that have ended.
pub fn remove_leftovers() {
    if let Ok(namespace) = pid_namespace() {
        remove_leftovers_in(&std::env::temp_dir(), namespace);
    }
}

/// The PID namespace of this process. Containers may share the folder, and their process ids mean nothing here.
fn pid_namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|file| file.ino())
}

/// Removes the folders in `place` of this user's launchers that have ended. What cannot be removed stays.
fn remove_leftovers_in(place: &Path, namespace: u64) {
    let own = nix::unistd::geteuid().as_raw();
    let is_left = |name: &str| {
        let owner =
            name.strip_prefix(&format!("{PREFIX}{namespace}-")).and_then(ProcessIdentity::named);
        owner.is_some_and(|owner| !owner.is_alive())
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = |entry: &fs::DirEntry| {
            // The entry itself, not the target of a link.
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own)
        };
        if entry.file_name().to_str().is_some_and(is_left) && is_ours(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_launchers_are_removed_and_no_others() {
        let place = tempfile::tempdir().expect("a folder");
        let own = ProcessIdentity::this().expect("this process is there");
        let dead = ProcessIdentity { began: own.began + 1, ..own };
        let (here, there) = (pid_namespace().expect("every Linux has it"), 1);
        let names = [
            format!("{PREFIX}{here}-x.{dead}"),
            format!("{PREFIX}{here}-x.{own}"),
            format!("{PREFIX}{there}-x.{dead}"),
            format!("notes.{dead}"),
        ];
        for name in &names {
            fs::create_dir(place.path().join(name)).expect("a folder");
            fs::write(place.path().join(name).join("file"), "").expect("a file");
        }
        std::os::unix::fs::symlink(
            place.path().join(&names[3]),
            place.path().join(format!("{PREFIX}{here}-y.{dead}")),
        )
        .expect("a link");
        remove_leftovers_in(place.path(), here);
        let left = names.map(|name| place.path().join(name).join("file").exists());
        assert_eq!(left, [false, true, true, true]);
    }

    #[test]
    fn a_folder_names_its_owner_and_is_removed_on_drop() {
        let folder = make().expect("a folder");
        let name = folder.path().file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with(PREFIX));
        assert_eq!(ProcessIdentity::named(name), ProcessIdentity::this().ok());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
