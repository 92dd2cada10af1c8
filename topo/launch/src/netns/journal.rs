//! What a lab consists of, in a file as long as it stands: for whoever wants to look inside, and for the
//! next launcher, should this one be killed.
//!
//! The file's name says whose it is: scenario, process id, and when that process began. A launcher
//! removes files of processes that are no more, and the scratch folders that they name, if those bear
//! the lab's mark.

use crate::owner::{Owner, folder};
use daemon::PortInterface;
use emulation::wiring::Wiring;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The mark in a scratch folder: a file that holds the lab's name.
const MARK: &str = "pausebed-lab";
/// How a journal's name ends.
const ENDING: &str = "lab.json";

/// A lab, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Devices by name.
    pub nodes: BTreeMap<String, LabNode>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabNode {
    /// The file of its namespace, for `nsenter --net=FILE`; none for that of the launcher.
    pub namespace: Option<PathBuf>,
    /// Its interfaces by port (`h0:1`).
    pub interfaces: BTreeMap<String, String>,
}

impl Lab {
    /// The lab of these interfaces.
    pub fn of(wiring: &Wiring, interfaces: &[PortInterface]) -> Lab {
        let mut lab = Lab::default();
        for face in interfaces {
            let node = lab.nodes.entry(wiring.nodes[face.at.node].name.clone()).or_default();
            node.namespace = node.namespace.take().or_else(|| face.namespace.clone());
            node.interfaces.insert(wiring.end_name(face.at), face.name.clone());
        }
        lab
    }
}

/// The file's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    lab: String,
    scratch: PathBuf,
    #[serde(flatten)]
    content: Lab,
}

/// The journal of a lab, gone with this.
#[derive(Debug)]
pub struct Journal {
    file: PathBuf,
    entry: Entry,
}

impl Journal {
    /// Removes what killed launchers left, and begins a journal for the scenario `name` whose files
    /// are in `scratch`.
    ///
    /// # Errors
    /// If there is no folder for it that belongs to this user alone.
    pub fn open(name: &str, scratch: &Path) -> io::Result<Journal> {
        let folder = folder()?;
        sweep(&folder);
        let own = Owner::this()?;
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        let name: String = name.chars().map(word).take(80).collect();
        let lab = format!("{name}.{own}");
        fs::write(scratch.join(MARK), &lab)?;
        let file = folder.join(format!("{lab}.{ENDING}"));
        let entry = Entry { lab, scratch: scratch.to_owned(), content: Lab::default() };
        let journal = Journal { file, entry };
        journal.write()?;
        Ok(journal)
    }

    /// Says what the lab consists of.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn enter(&mut self, lab: Lab) -> io::Result<()> {
        self.entry.content = lab;
        self.write()
    }

    /// The lab's name.
    pub fn lab(&self) -> &str {
        &self.entry.lab
    }

    /// Where the journal is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.entry).map_err(io::Error::from)?;
        fs::write(&self.file, text + "\n")
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The scratch folder is its owner's to remove. A file that is gone already is no matter.
        let _ = fs::remove_file(&self.file);
    }
}

/// Whose journal has this name.
fn owner_of(file: &str) -> Option<Owner> {
    Owner::named(file.strip_suffix(ENDING)?.strip_suffix('.')?)
}

/// Removes what launchers left that are no more. Whatever cannot be removed stays for the next.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(owner_of) else { continue };
        if owner.is_alive() {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Ok(left) = serde_json::from_str::<Entry>(&text)
            && fs::read_to_string(left.scratch.join(MARK)).is_ok_and(|mark| mark == left.lab)
        {
            let _ = fs::remove_dir_all(&left.scratch);
        }
        let _ = fs::remove_file(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_names_its_owner() {
        let own = Owner::of(std::process::id()).expect("this process is there");
        let file = format!("pfister-eight.1.{own}.{ENDING}");
        assert_eq!(owner_of(&file), Some(own));
        assert_eq!(owner_of("notes.lab.json"), None);
        assert_eq!(owner_of("x.1.2.json"), None);
    }

    #[test]
    fn a_sweep_removes_what_the_dead_left_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = Owner::of(std::process::id()).expect("this process is there");
        let make = |name: &str, owner: Owner, marked: bool| {
            let lab = format!("{name}.{owner}");
            let scratch = folder.path().join(format!("scratch-{name}"));
            fs::create_dir(&scratch).expect("a folder");
            fs::write(scratch.join(MARK), if marked { &lab } else { "another" }).expect("a file");
            let file = folder.path().join(format!("{lab}.{ENDING}"));
            let entry = Entry { lab, scratch: scratch.clone(), content: Lab::default() };
            let text = serde_json::to_string(&entry).expect("plain data");
            fs::write(&file, text).expect("a file");
            [file, scratch]
        };
        let dead = Owner { began: own.began + 1, ..own };
        let left = make("left", dead, true);
        let unmarked = make("unmarked", dead, false);
        let living = make("living", own, true);
        let strange = folder.path().join("strange.json");
        fs::write(&strange, "{}").expect("a file");
        sweep(folder.path());
        let there = |path: &PathBuf| path.exists();
        assert_eq!(left.each_ref().map(there), [false, false]);
        assert_eq!(unmarked.each_ref().map(there), [false, true]);
        assert_eq!(living.each_ref().map(there), [true, true]);
        assert!(strange.exists());
    }
}
