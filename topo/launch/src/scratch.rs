//! The folder for a run's own files: whose it is stands in its name, so that the next run removes what a killed
//! launcher left.

use super::owner::Owner;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// How the names of all such folders begin.
const BEGINNING: &str = "pausebed-run-";

/// A folder that is gone with what this returns.
///
/// # Errors
/// If it cannot be made.
pub fn make() -> io::Result<TempDir> {
    let (begin, end) = (format!("{BEGINNING}{}-", world()?), format!(".{}", Owner::this()?));
    tempfile::Builder::new().prefix(&begin).suffix(&end).tempdir()
}

/// Removes the folders of launchers that are no more.
pub fn sweep() {
    // Where numbers of processes say nothing, nothing is known to be left.
    if let Ok(world) = world() {
        sweep_in(&std::env::temp_dir(), world);
    }
}

/// In which processes are numbered as for this one: a folder may be shared with containers, whose processes
/// nobody sees from here.
fn world() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|file| file.ino())
}

/// Removes the folders in `place` of this user's launchers that are no more. Whatever cannot be removed stays for
/// the next.
fn sweep_in(place: &Path, world: u64) {
    let own = nix::unistd::geteuid().as_raw();
    let is_left = |name: &str| {
        let owner = name.strip_prefix(&format!("{BEGINNING}{world}-")).and_then(Owner::named);
        owner.is_some_and(|owner| !owner.is_alive())
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = |entry: &fs::DirEntry| {
            // What the entry itself is, not what it may point to.
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
    fn folders_of_the_dead_are_removed_and_no_others() {
        let place = tempfile::tempdir().expect("a folder");
        let own = Owner::this().expect("this process is there");
        let dead = Owner { began: own.began + 1, ..own };
        let (here, there) = (world().expect("every Linux has it"), 1);
        let names = [
            format!("{BEGINNING}{here}-x.{dead}"),
            format!("{BEGINNING}{here}-x.{own}"),
            format!("{BEGINNING}{there}-x.{dead}"),
            format!("notes.{dead}"),
        ];
        for name in &names {
            fs::create_dir(place.path().join(name)).expect("a folder");
            fs::write(place.path().join(name).join("file"), "").expect("a file");
        }
        std::os::unix::fs::symlink(
            place.path().join(&names[3]),
            place.path().join(format!("{BEGINNING}{here}-y.{dead}")),
        )
        .expect("a link");
        sweep_in(place.path(), here);
        let left = names.map(|name| place.path().join(name).join("file").exists());
        assert_eq!(left, [false, true, true, true]);
    }

    #[test]
    fn a_folder_says_whose_it_is_and_goes_with_its_owner() {
        let folder = make().expect("a folder");
        let name = folder.path().file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with(BEGINNING));
        assert_eq!(Owner::named(name), Owner::this().ok());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
