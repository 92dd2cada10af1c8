//! Files that a daemon may open: those below some folders, and what the kernel shows of itself. The kernel refuses all others
//! (Landlock), so a daemon of root has no use of root's files.

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    path_beneath_rules,
};
use std::path::Path;

/// The newest version of Landlock whose rules are used; an older kernel applies those that it has.
const VERSION: ABI = ABI::V5;

/// What libraries and the clock's self-check read.
const OF_THE_KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// From now on this thread, and threads that it starts, make, write and remove files below `folders` only, read those, `read`
/// and [`OF_THE_KERNEL`], and execute none. Open files stay open. Returns false on a kernel without Landlock.
///
/// # Errors
/// If the kernel has Landlock and refuses the rules.
pub(super) fn confine(folders: &[&Path], read: Option<&Path>) -> Result<bool, RulesetError> {
    let all = AccessFs::from_all(VERSION);
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let status = Ruleset::default()
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(folders, all & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(OF_THE_KERNEL, reading))?
        .add_rules(path_beneath_rules(read, reading))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;

    #[test]
    fn a_confined_thread_opens_files_in_its_folder_and_nowhere_else() {
        let place = tempfile::tempdir().expect("a folder");
        let (own, other) = (place.path().join("own"), place.path().join("other"));
        for folder in [&own, &other] {
            fs::create_dir(folder).expect("there is none");
        }
        let named = other.join("named");
        fs::write(other.join("file"), "precious").expect("it may");
        fs::write(&named, "frames").expect("it may");
        let inside = || {
            let is_confined = confine(&[&own], Some(&named)).expect("Landlock or none");
            fs::write(own.join("file"), "x").expect("its own folder");
            fs::remove_file(own.join("file")).expect("its own folder");
            fs::read_to_string("/proc/self/status").expect("the kernel's");
            let text = fs::read_to_string(&named);
            let tries = [
                fs::read(other.join("file")).map(|_| ()),
                fs::read_dir("/").map(|_| ()),
                fs::write(&named, "x"),
                fs::write(other.join("file"), "x"),
                fs::write(other.join("new"), "x"),
                fs::remove_file(other.join("file")),
            ];
            (is_confined, text.ok(), tries.map(|tried| tried.err().map(|error| error.kind())))
        };
        let (is_confined, text, tries) =
            std::thread::scope(|scope| scope.spawn(inside).join()).expect("no panic");
        assert_eq!(text.as_deref(), Some("frames"));
        if !is_confined {
            skip::because!("CONFIG_SECURITY_LANDLOCK: no rules for files");
            return;
        }
        assert_eq!(tries, [Some(PermissionDenied); 6]);
        fs::write(other.join("new"), "x").expect("other threads are free");
    }
}
