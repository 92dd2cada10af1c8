//! Files that a daemon may change: those below some folders. The kernel refuses all others (Landlock).

use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    path_beneath_rules,
};
use std::path::Path;

/// The newest version of Landlock whose rules are used; an older kernel applies those that it has.
const VERSION: ABI = ABI::V5;

/// From now on this thread, and threads that it starts, make, write and remove files below `folders` only. Reading is not
/// confined. Returns false on a kernel without Landlock.
///
/// # Errors
/// If the kernel has Landlock and refuses the rules.
pub(super) fn confine(folders: &[&Path]) -> Result<bool, RulesetError> {
    let changes = AccessFs::from_write(VERSION);
    let status = Ruleset::default()
        .handle_access(changes)?
        .create()?
        .add_rules(path_beneath_rules(folders, changes))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;

    #[test]
    fn a_confined_thread_changes_files_in_its_folder_and_nowhere_else() {
        let place = tempfile::tempdir().expect("a folder");
        let (own, other) = (place.path().join("own"), place.path().join("other"));
        for folder in [&own, &other] {
            fs::create_dir(folder).expect("there is none");
        }
        fs::write(other.join("file"), "precious").expect("it may");
        let inside = || {
            let is_confined = confine(&[&own]).expect("Landlock or none");
            fs::write(own.join("file"), "x").expect("its own folder");
            fs::remove_file(own.join("file")).expect("its own folder");
            let text = fs::read_to_string(other.join("file"));
            let tries = [
                fs::write(other.join("file"), "x"),
                fs::write(other.join("new"), "x"),
                fs::remove_file(other.join("file")),
            ];
            (is_confined, text.ok(), tries.map(|tried| tried.err().map(|error| error.kind())))
        };
        let (is_confined, text, tries) =
            std::thread::scope(|scope| scope.spawn(inside).join()).expect("no panic");
        assert_eq!(text.as_deref(), Some("precious"));
        if !is_confined {
            skip::because!("CONFIG_SECURITY_LANDLOCK: no rules for files");
            return;
        }
        assert_eq!(tries, [Some(PermissionDenied); 3]);
        fs::write(other.join("new"), "x").expect("other threads are free");
    }
}
