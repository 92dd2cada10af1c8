//! What a lab consists of, in a file as long as it stands: for whoever wants to look inside, and for the
//! next launcher, should this one be killed.
//!
//! The file's name says whose it is: scenario, process id, and when that process began. A launcher
//! removes files of processes that are no more, and the scratch folders that they name, if those bear
//! the lab's mark.

use emulation::daemon::PortInterface;
use emulation::wiring::Wiring;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
        let own = Owner::of(std::process::id()).ok_or(io::ErrorKind::NotFound)?;
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        let name: String = name.chars().map(word).take(80).collect();
        let lab = format!("{name}.{}.{}", own.process, own.began);
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

/// A process that cannot be confused with a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u32,
    /// When it began, in clock ticks since the host did.
    began: u64,
}

impl Owner {
    /// The process of that number, if there is one.
    fn of(process: u32) -> Option<Owner> {
        // Source: proc_pid_stat(5), field 22; the second is a name in brackets and may hold anything.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let began = fields.split(' ').nth(22 - 3)?.parse().ok()?;
        Some(Owner { process, began })
    }

    /// Whose journal has this name.
    fn named(file: &str) -> Option<Owner> {
        let rest = file.strip_suffix(ENDING)?.strip_suffix('.')?;
        let (rest, began) = rest.rsplit_once('.')?;
        let (_, process) = rest.rsplit_once('.')?;
        Some(Owner { process: process.parse().ok()?, began: began.parse().ok()? })
    }

    fn is_alive(self) -> bool {
        Owner::of(self.process) == Some(self)
    }
}

/// Where journals are: a folder of this user's that no other may write to.
fn folder() -> io::Result<PathBuf> {
    let user = nix::unistd::geteuid();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("pausebed"),
        None => std::env::temp_dir().join(format!("pausebed-{user}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let reason = format!("{}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), reason));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user.as_raw() || found.mode() & 0o022 != 0 {
        let reason = format!("{} is not this user's alone", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(folder)
}

/// Removes what launchers left that are no more. Whatever cannot be removed stays for the next.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(Owner::named) else { continue };
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
    fn a_journal_names_its_owner_and_a_process_is_told_from_a_later_one() {
        let own = Owner::of(std::process::id()).expect("this process is there");
        let file = format!("pfister-eight.1.{}.{}.{ENDING}", own.process, own.began);
        assert_eq!(Owner::named(&file), Some(own));
        assert!(own.is_alive());
        assert!(!Owner { began: own.began + 1, ..own }.is_alive());
        assert_eq!(Owner::named("notes.lab.json"), None);
        assert_eq!(Owner::named("x.1.2.json"), None);
    }

    #[test]
    fn a_sweep_removes_what_the_dead_left_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = Owner::of(std::process::id()).expect("this process is there");
        let make = |name: &str, owner: Owner, marked: bool| {
            let lab = format!("{name}.{}.{}", owner.process, owner.began);
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
