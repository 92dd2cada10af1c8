//! The journal of a lab in namespaces: a file that lists its parts, for users who inspect the lab, and for the
//! next launcher if this one is killed.
//!
//! The file name contains the scenario, the process id and the start time of the process. A launcher removes the
//! files of processes that have ended, and the scratch folders that they name if these bear the lab's mark.

use crate::owner::{ProcessIdentity, folder, remove_leftovers_in, write_json};
use daemon::PortInterface;
use emulation::wiring::Wiring;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The mark in a scratch folder: a file with the lab's name.
const MARK: &str = "pausebed-lab";
/// The end of a journal's name.
const ENDING: &str = "lab.json";

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The lab's name.
    pub lab: String,
    scratch: PathBuf,
    /// The devices by name.
    nodes: BTreeMap<String, InventoryNode>,
}

/// A device of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct InventoryNode {
    /// The file of its namespace, for `nsenter --net=FILE`; none for the namespace of the launcher.
    namespace: Option<PathBuf>,
    /// Its interfaces by port (`h0:1`).
    interfaces: BTreeMap<String, String>,
}

/// The journal of a lab, which is removed on drop.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Its path.
    pub file: PathBuf,
    /// Its content.
    pub entry: Entry,
}

impl Journal {
    /// Removes the leftovers of killed launchers, and begins a journal for the scenario `name` with its files in
    /// `scratch`.
    ///
    /// # Errors
    /// If there is no private folder of this user, or the journal cannot be written.
    pub fn open(name: &str, scratch: &Path) -> io::Result<Journal> {
        let folder = folder()?;
        remove_leftovers(&folder);
        let own = ProcessIdentity::this()?;
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        let name: String = name.chars().map(word).take(80).collect();
        let lab = format!("{name}.{own}");
        fs::write(scratch.join(MARK), &lab)?;
        let file = folder.join(format!("{lab}.{ENDING}"));
        let entry = Entry { lab, scratch: scratch.to_owned(), nodes: BTreeMap::new() };
        write_json(&file, &entry)?;
        Ok(Journal { file, entry })
    }

    /// Writes the devices with these interfaces.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn enter(&mut self, wiring: &Wiring, interfaces: &[PortInterface]) -> io::Result<()> {
        for face in interfaces {
            let name = wiring.nodes[face.at.node].name.clone();
            let node = self.entry.nodes.entry(name).or_default();
            node.namespace = node.namespace.take().or_else(|| face.namespace.clone());
            node.interfaces.insert(wiring.end_name(face.at), face.name.clone());
        }
        write_json(&self.file, &self.entry)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The run removes the scratch folder. The journal may be gone already.
        let _ = fs::remove_file(&self.file);
    }
}

/// The owner of the journal with this name.
fn owner_of(file: &str) -> Option<ProcessIdentity> {
    ProcessIdentity::named(file.strip_suffix(ENDING)?.strip_suffix('.')?)
}

/// Removes what ended launchers left. The next launcher tries again if something cannot be removed.
pub fn remove_leftovers(folder: &Path) {
    remove_leftovers_in(folder, owner_of, |entry| {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Ok(left) = serde_json::from_str::<Entry>(&text)
            && fs::read_to_string(left.scratch.join(MARK)).is_ok_and(|mark| mark == left.lab)
        {
            let _ = fs::remove_dir_all(&left.scratch);
        }
        let _ = fs::remove_file(entry.path());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_names_its_owner() {
        let own = ProcessIdentity::of(std::process::id()).expect("this process is there");
        let file = format!("pfister-eight.1.{own}.{ENDING}");
        assert_eq!(owner_of(&file), Some(own));
        assert_eq!(owner_of("notes.lab.json"), None);
        assert_eq!(owner_of("x.1.2.json"), None);
    }

    #[test]
    fn leftovers_of_ended_launchers_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = ProcessIdentity::of(std::process::id()).expect("this process is there");
        let make = |name: &str, owner: ProcessIdentity, marked: bool| {
            let lab = format!("{name}.{owner}");
            let scratch = folder.path().join(format!("scratch-{name}"));
            fs::create_dir(&scratch).expect("a folder");
            fs::write(scratch.join(MARK), if marked { &lab } else { "another" }).expect("a file");
            let file = folder.path().join(format!("{lab}.{ENDING}"));
            let entry = Entry { lab, scratch: scratch.clone(), nodes: BTreeMap::new() };
            let text = serde_json::to_string(&entry).expect("plain data");
            fs::write(&file, text).expect("a file");
            [file, scratch]
        };
        let dead = ProcessIdentity { began: own.began + 1, ..own };
        let left = make("left", dead, true);
        let unmarked = make("unmarked", dead, false);
        let living = make("living", own, true);
        let strange = folder.path().join("strange.json");
        fs::write(&strange, "{}").expect("a file");
        remove_leftovers(folder.path());
        let there = |path: &PathBuf| path.exists();
        assert_eq!(left.each_ref().map(there), [false, false]);
        assert_eq!(unmarked.each_ref().map(there), [false, true]);
        assert_eq!(living.each_ref().map(there), [true, true]);
        assert!(strange.exists());
    }
}
