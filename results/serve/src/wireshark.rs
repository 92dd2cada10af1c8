//! The files for Wireshark: the dissector script, the extcap link, and their folders.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub mod extcap;

/// The name of the script in Wireshark's folder.
pub const FILE: &str = "pausebed.lua";

/// The script. Its parts are in the order of their dependencies.
pub const SCRIPT: &str = concat!(
    include_str!("../../../capture/wireshark/crc.lua"),
    include_str!("../../../capture/wireshark/header.lua"),
    include_str!("../../../capture/wireshark/notification.lua"),
    include_str!("../../../capture/wireshark/project.lua"),
    include_str!("../../../capture/wireshark/link_packet.lua"),
    include_str!("../../../capture/wireshark/layout.lua"),
    include_str!("../../../capture/wireshark/checks.lua"),
    include_str!("../../../capture/wireshark/shim.lua"),
);

/// The name of the link in Wireshark's folder of capture programs.
pub const LINK: &str = "pausebed";

/// What exists at the path of the script or the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Nothing,
    /// This script.
    Same,
    /// A script of another version of this program, or a changed one.
    Other,
    /// A file that this program did not write.
    Foreign,
}

/// What exists at `link`, which should point to `program`. A link to another program of this name counts as
/// another version.
///
/// # Errors
/// If it cannot be read.
pub fn present_link(link: &Path, program: &Path) -> io::Result<Present> {
    match std::fs::read_link(link) {
        Ok(target) if target == program => Ok(Present::Same),
        Ok(target) if target.file_name() == Some(OsStr::new(LINK)) => Ok(Present::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Present::Nothing),
        // Not a link at all.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        Ok(_) | Err(_) => Ok(Present::Foreign),
    }
}

/// What exists at `file`.
///
/// # Errors
/// If it cannot be read.
pub fn present(file: &Path) -> io::Result<Present> {
    let found = match std::fs::read(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Present::Nothing),
        Err(error) => return Err(error),
    };
    let mark = SCRIPT.lines().next().unwrap_or_default();
    Ok(if found == SCRIPT.as_bytes() {
        Present::Same
    } else if found.starts_with(mark.as_bytes()) {
        Present::Other
    } else {
        Present::Foreign
    })
}

/// The folder of a user's Lua scripts, from `listing`, the output of `tshark -G folders`.
pub fn folder_of(listing: &str) -> Option<PathBuf> {
    named(listing, "Personal Lua Plugins:")
}

/// The folder of a user's extcap programs, from `listing`.
///
/// Source: Wireshark User's Guide, B.4; before 4.2 it is not listed and lies with the configuration.
pub fn extcap_folder_of(listing: &str) -> Option<PathBuf> {
    let listed = named(listing, "Personal Extcap path:");
    listed.or_else(|| Some(named(listing, "Personal configuration:")?.join("extcap")))
}

fn named(listing: &str, word: &str) -> Option<PathBuf> {
    let behind = |line: &str| Some(line.strip_prefix(word)?.trim().to_owned());
    listing.lines().find_map(behind).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The default folder of Lua scripts.
///
/// Source: Wireshark User's Guide, B.4 (plugin folders).
pub fn usual_folder(home: &Path) -> PathBuf {
    home.join(".local/lib/wireshark/plugins")
}

/// The default folder of extcap programs.
pub fn usual_extcap_folder(home: &Path) -> PathBuf {
    home.join(".local/lib/wireshark/extcap")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_one_that_tshark_lists() {
        let listing = "Temp:                \t/tmp\nPersonal Plugins:    \t/home/a b/4.0\n\
            Personal Lua Plugins:\t/home/a b/.local/lib/wireshark/plugins\n";
        let folder = PathBuf::from("/home/a b/.local/lib/wireshark/plugins");
        assert_eq!(folder_of(listing), Some(folder));
        assert_eq!((folder_of(""), folder_of("Personal Lua Plugins:\t\n")), (None, None));
        let before = "Personal configuration:\t/home/a b/.config/wireshark\n";
        let folder = PathBuf::from("/home/a b/.config/wireshark/extcap");
        assert_eq!(extcap_folder_of(before), Some(folder));
        let since = format!("{before}Personal Extcap path:\t/home/a b/extcap\n");
        assert_eq!(extcap_folder_of(&since), Some(PathBuf::from("/home/a b/extcap")));
        assert_eq!(extcap_folder_of(""), None);
    }

    #[test]
    fn foreign_files_are_distinguished_from_scripts_of_this_program() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(FILE);
        assert_eq!(present(&file).ok(), Some(Present::Nothing));
        for (text, expected) in [
            (SCRIPT.to_owned(), Present::Same),
            (format!("{SCRIPT}-- changed\n"), Present::Other),
            ("-- pausebed, by another author\n".to_owned(), Present::Foreign),
            (String::new(), Present::Foreign),
        ] {
            std::fs::write(&file, text).expect("a file");
            assert_eq!(present(&file).ok(), Some(expected));
        }
        assert!(present(folder.path()).is_err(), "a folder is not a script");
    }
}
