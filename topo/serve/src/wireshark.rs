//! What Wireshark gets: the dissector, one script of a few parts; ports of labs as interfaces; and where
//! both belong.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub mod extcap;

/// Its name in Wireshark's folder.
pub const FILE: &str = "pausebed.lua";

/// The script, its parts in the order in which they need each other.
pub const SCRIPT: &str = concat!(
    include_str!("../../wireshark/crc.lua"),
    include_str!("../../wireshark/header.lua"),
    include_str!("../../wireshark/notification.lua"),
    include_str!("../../wireshark/project.lua"),
    include_str!("../../wireshark/link_packet.lua"),
    include_str!("../../wireshark/layout.lua"),
    include_str!("../../wireshark/checks.lua"),
    include_str!("../../wireshark/shim.lua"),
);

/// The name of the link in Wireshark's folder of capture programs.
pub const LINK: &str = "pausebed";

/// What is where the script, or the link, would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Nothing,
    /// This script.
    Same,
    /// A script of another version of this program, or one that somebody has changed since.
    Other,
    /// Something that this program did not write.
    Foreign,
}

/// Looks what is at `link`, which should lead to `program`. A link to another program of that name is one
/// of another version.
///
/// # Errors
/// If that cannot be read.
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

/// Looks what is at `file`.
///
/// # Errors
/// If that cannot be read.
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

/// The folder in which `listing`, what `tshark -G folders` prints, says that a user's scripts are.
pub fn folder_of(listing: &str) -> Option<PathBuf> {
    named(listing, "Personal Lua Plugins:")
}

/// The folder in which `listing` says, or lets conclude, that a user's capture programs are.
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

/// The folder that Wireshark looks in where nobody has told it otherwise.
///
/// Source: Wireshark User's Guide, B.4 (plugin folders).
pub fn usual_folder(home: &Path) -> PathBuf {
    home.join(".local/lib/wireshark/plugins")
}

/// The same of capture programs.
pub fn usual_extcap_folder(home: &Path) -> PathBuf {
    home.join(".local/lib/wireshark/extcap")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_one_that_tshark_names() {
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
    fn what_others_wrote_is_told_from_what_we_did() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(FILE);
        assert_eq!(present(&file).ok(), Some(Present::Nothing));
        for (text, expected) in [
            (SCRIPT.to_owned(), Present::Same),
            (format!("{SCRIPT}-- changed\n"), Present::Other),
            ("-- pausebed, by somebody else\n".to_owned(), Present::Foreign),
            (String::new(), Present::Foreign),
        ] {
            std::fs::write(&file, text).expect("a file");
            assert_eq!(present(&file).ok(), Some(expected));
        }
        assert!(present(folder.path()).is_err(), "a folder is no script");
    }
}
