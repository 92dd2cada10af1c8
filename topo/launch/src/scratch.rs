//! The temporary folder of a run. Its name contains its owner, so that the next run removes what a killed launcher left.

use super::owner::{ProcessIdentity, pid_namespace, remove_leftovers_in};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(&begin).suffix(&end).permissions(private).tempdir()
}

/// Removes the folders of launchers that have ended.
pub fn remove_leftovers() {
    if let Ok(namespace) = pid_namespace() {
        remove_leftovers_from(&std::env::temp_dir(), namespace);
    }
}

/// Removes the folders in `place` of this user's launchers that have ended. What cannot be removed stays.
fn remove_leftovers_from(place: &Path, namespace: u64) {
    let user = nix::unistd::geteuid().as_raw();
    let prefix = format!("{PREFIX}{namespace}-");
    let owner_of = |name: &str| name.strip_prefix(&prefix).and_then(ProcessIdentity::named);
    remove_leftovers_in(place, owner_of, |entry| {
        // The metadata of the entry itself, not of the target of a link.
        if entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user) {
            let _ = fs::remove_dir_all(entry.path());
        }
    });
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
        remove_leftovers_from(place.path(), here);
        let left = names.map(|name| place.path().join(name).join("file").exists());
        assert_eq!(left, [false, true, true, true]);
    }

    #[test]
    fn a_folder_names_its_owner_and_is_removed_on_drop() {
        let folder = make().expect("a folder");
        let name = folder.path().file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with(PREFIX));
        let mode = fs::metadata(folder.path()).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(ProcessIdentity::named(name), ProcessIdentity::this().ok());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
