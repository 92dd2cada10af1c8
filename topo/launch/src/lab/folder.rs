//! The folder of a lab, and the journal in it.
//!
//! A folder appears whole, by renaming, and goes away in one step, by renaming: at its name there is never
//! half a lab. What is being made or removed has a name that begins with a dot and ends with its owner,
//! so that what a killed process left is known as such.

use crate::owner::{Owner, folder, private};
use emulation::wiring::NodeKind;
use proto::technology::Technology;
use proto::units::BitRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The journal in a lab's folder.
const JOURNAL: &str = "lab.json";
/// What the lab was made from.
pub const SCENARIO: &str = "scenario.toml";
/// Where files of its run are: what daemons are told, and their sockets.
pub const RUN: &str = "run";
/// What shows that somebody may administer it by TCP; in the folder of a lab that permits it.
pub const TOKEN: &str = "token";
/// What its keeper and its daemons say.
pub const LOG: &str = "lab.log";
/// The variable of the environment that says where labs are.
pub const LABS_VARIABLE: &str = "PAUSEBED_LABS";
/// Characters of a lab's name: sockets lie in its folder, and their paths must not exceed 107 octets.
const NAME_MAX: usize = 40;

/// How far a lab is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It is being made.
    Starting,
    /// It runs.
    Up,
    /// It came to an end, as told here.
    Ended(String),
}

/// What is known of a lab: its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub lab: String,
    /// Whose it is: that process holds everything.
    pub owner: Owner,
    /// Who asked for it, and waits until it is up.
    pub starter: Owner,
    /// How far it is.
    pub stage: Stage,
    /// Overrides of the scenario's keys.
    pub sets: Vec<String>,
    /// On what it runs.
    pub backend: String,
    /// Its daemons may be administered by TCP too.
    #[serde(default)]
    pub tcp: bool,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// What the fabric is of.
    pub technology: Technology,
    /// Its daemons, once they run.
    pub daemons: Vec<DaemonRecord>,
    /// Names of adapters by address.
    pub addresses: BTreeMap<u64, String>,
    /// Its cables.
    pub links: Vec<LinkRecord>,
}

/// A daemon of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRecord {
    /// Its process id.
    pub pid: u32,
    /// What it hosts.
    pub kind: NodeKind,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Where it may be administered.
    pub socket: PathBuf,
    /// Where by TCP, with the lab's token, if it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

/// A cable of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// One end, as in `leaf1:4`.
    pub a: String,
    /// The other.
    pub b: String,
    /// How fast it is.
    pub rate: BitRate,
}

impl Record {
    /// Whether it runs, or is about to.
    pub fn is_alive(&self) -> bool {
        self.owner.is_alive()
    }

    /// Whether it is being made for nobody: whoever asked for it was killed meanwhile.
    pub fn is_abandoned(&self) -> bool {
        self.stage == Stage::Starting && !self.starter.is_alive()
    }

    /// The daemon that hosts `node`.
    pub fn daemon_of(&self, node: &str) -> Option<&DaemonRecord> {
        self.daemons.iter().find(|daemon| daemon.nodes.iter().any(|own| own == node))
    }

    /// The far end of the cable at `port`.
    pub fn peer(&self, port: &str) -> Option<&str> {
        self.links.iter().find_map(|link| match port {
            _ if link.a == port => Some(link.b.as_str()),
            _ if link.b == port => Some(link.a.as_str()),
            _ => None,
        })
    }

    /// The rate of the cable at `port`.
    pub fn rate_of(&self, port: &str) -> Option<BitRate> {
        let link = self.links.iter().find(|link| link.a == port || link.b == port);
        link.map(|link| link.rate)
    }

    /// Reads the journal in `folder`.
    ///
    /// # Errors
    /// If there is none, or it is none of ours.
    pub fn read(folder: &Path) -> io::Result<Record> {
        let text = fs::read_to_string(folder.join(JOURNAL))?;
        serde_json::from_str(&text).map_err(io::Error::from)
    }

    /// Writes the journal in `folder`, whole or not at all.
    ///
    /// # Errors
    /// If that cannot be done, as when the folder is gone.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from)?;
        let new = folder.join(format!("{JOURNAL}.new"));
        fs::write(&new, text + "\n")?;
        fs::rename(new, folder.join(JOURNAL))
    }
}

/// Why a lab's folder cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is a lab of that name.
    #[error("lab {0} is up already: pausebed down {0}, or another --name")]
    Exists(String),
    /// Something else has that name.
    #[error("{0} is no lab of ours")]
    Strange(PathBuf),
    /// The name is none.
    #[error("{0:?} is no name for a lab: letters, digits, - and _, at most {NAME_MAX} of them")]
    Name(String),
    /// The system refuses.
    #[error("{0}: {1}")]
    System(PathBuf, io::Error),
}

/// Where labs are.
#[derive(Clone, Debug)]
pub struct Labs {
    root: PathBuf,
}

impl Labs {
    /// Labs in `folder`; if none is named, where the environment says, or in this user's own folder.
    /// What killed processes were making or removing there is removed.
    ///
    /// # Errors
    /// If it cannot be made or is not this user's alone.
    pub fn at(named: Option<&Path>) -> io::Result<Labs> {
        let variable = || std::env::var_os(LABS_VARIABLE).map(PathBuf::from);
        let root = match named.map(Path::to_owned).or_else(variable) {
            Some(root) => std::path::absolute(root)?,
            None => folder()?.join("labs"),
        };
        private(&root)?;
        let labs = Labs { root };
        labs.sweep();
        Ok(labs)
    }

    /// The folder of the lab called `name`.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// All labs by name, those that came to an end by themselves included.
    pub fn all(&self) -> BTreeMap<String, Record> {
        let Ok(entries) = fs::read_dir(&self.root) else { return BTreeMap::new() };
        let labs = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_whole = !name.starts_with('.');
            is_whole.then_some(())?;
            Some((name, Record::read(&entry.path()).ok()?))
        });
        labs.collect()
    }

    /// Makes the folder of a lab, with its journal and its scenario. What is left of a lab of that name
    /// whose owner is no more is removed first.
    ///
    /// # Errors
    /// If there is such a lab, or the folder cannot be made.
    pub fn create(&self, record: &Record, scenario: &str) -> Result<PathBuf, CreateError> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = &record.lab;
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_good) {
            return Err(CreateError::Name(name.clone()));
        }
        let place = self.folder(name);
        let hidden = self.hidden(name, record.owner);
        let system = |error| CreateError::System(hidden.clone(), error);
        private(&hidden).map_err(system)?;
        fs::write(hidden.join(SCENARIO), scenario).map_err(system)?;
        record.write(&hidden).map_err(system)?;
        let moved = self.take_place(&hidden, &place);
        if moved.is_err() {
            // What stays of it is swept away by the next.
            let _ = fs::remove_dir_all(&hidden);
        }
        moved.map(|()| place)
    }

    fn take_place(&self, hidden: &Path, place: &Path) -> Result<(), CreateError> {
        if place.exists() {
            let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match Record::read(place) {
                Ok(there) if there.is_alive() => return Err(CreateError::Exists(name)),
                Ok(_) => self.remove(&name).map_err(|e| CreateError::System(place.into(), e))?,
                Err(_) => return Err(CreateError::Strange(place.to_owned())),
            }
        }
        // Of two that come this far at once, one finds the place taken.
        fs::rename(hidden, place).map_err(|error| CreateError::System(place.to_owned(), error))
    }

    /// Removes the folder of a lab whose owner is no more.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        // Not the place where this process may be making another lab of that name.
        let gone = self.hidden(&format!("{name}.gone"), Owner::this()?);
        fs::rename(self.folder(name), &gone)?;
        fs::remove_dir_all(gone)
    }

    fn hidden(&self, name: &str, owner: Owner) -> PathBuf {
        self.root.join(format!(".{name}.{owner}"))
    }

    /// Removes what others were making or removing when they were killed.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().filter(|name| name.starts_with('.')).and_then(Owner::named);
            if owner.is_some_and(|owner| !owner.is_alive()) {
                // Whatever cannot be removed stays for the next.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lab: &str, owner: Owner) -> Record {
        Record {
            lab: lab.to_owned(),
            owner,
            starter: owner,
            stage: Stage::Starting,
            sets: Vec::new(),
            backend: "udp".to_owned(),
            tcp: false,
            dilation: 1,
            technology: Technology::Ethernet,
            daemons: Vec::new(),
            addresses: BTreeMap::new(),
            links: Vec::new(),
        }
    }

    #[test]
    fn a_lab_is_whole_or_not_there_and_two_of_a_name_do_not_collide() {
        let root = tempfile::tempdir().expect("a folder");
        let labs = Labs::at(Some(&root.path().join("labs"))).expect("a folder of our own");
        let own = Owner::this().expect("this process is there");
        let dead = Owner { began: own.began + 1, ..own };
        labs.create(&record("one", own), "text").expect("there is none");
        let again = labs.create(&record("one", own), "other");
        assert!(matches!(again, Err(CreateError::Exists(_))), "{again:?}");
        let text = fs::read_to_string(labs.folder("one").join(SCENARIO));
        assert_eq!(text.expect("the first is unharmed"), "text");
        labs.create(&record("two", dead), "left").expect("there is none");
        labs.create(&record("two", own), "new").expect("its owner is no more");
        assert_eq!(labs.all().into_keys().collect::<Vec<_>>(), ["one", "two"]);
        labs.remove("one").expect("it is there");
        assert_eq!(labs.all().into_keys().collect::<Vec<_>>(), ["two"]);
        for name in ["", "../x", "a b", &"x".repeat(NAME_MAX + 1)] {
            let refused = labs.create(&record(name, own), "");
            assert!(matches!(refused, Err(CreateError::Name(_))), "{name:?}: {refused:?}");
        }
    }

    #[test]
    fn what_the_dead_were_making_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().expect("a folder");
        let place = root.path().join("labs");
        let labs = Labs::at(Some(&place)).expect("a folder of our own");
        let own = Owner::this().expect("this process is there");
        let dead = Owner { began: own.began + 1, ..own };
        let names = [format!(".x.{dead}"), format!(".x.{own}"), ".notes".into(), "mine".into()];
        for name in &names {
            fs::create_dir(place.join(name)).expect("a folder");
        }
        let strange = labs.create(&record("mine", own), "");
        assert!(matches!(strange, Err(CreateError::Strange(_))), "{strange:?}");
        fs::create_dir_all(place.join(&names[1])).expect("a folder");
        Labs::at(Some(&place)).expect("the same folder");
        let there: Vec<bool> = names.iter().map(|name| place.join(name).exists()).collect();
        assert_eq!(there, [false, true, true, true]);
    }
}
