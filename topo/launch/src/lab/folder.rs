//! The folder of a lab, and the journal in it.
//!
//! A folder appears and disappears atomically, by renaming. While it is made or removed its name begins with a dot
//! and ends with its owner, so that the leftovers of a killed process can be identified.

use super::balance::Balance;
pub use crate::daemons::persistent::DaemonRecord;
use crate::error::OrHost;
pub use crate::hosts::HostRecord;
use crate::owner::{ProcessIdentity, folder, private, remove_leftovers_in, write_json};
use crate::{LaunchError, substrate};
use nix::fcntl::{Flock, FlockArg};
use proto::technology::Technology;
use proto::units::BitRate;
use scenario::Scenario;
use scenario::render::Lab;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the journal.
const JOURNAL: &str = "lab.json";
/// The name of the scenario file.
pub const SCENARIO: &str = "scenario.toml";
/// The folder of its run: configurations and sockets of daemons.
pub const RUN: &str = "run";
/// The name of the file with the token, in a lab that permits administration by TCP.
pub const TOKEN: &str = "token";
/// The name of the file with the token that permits reading only.
pub const READ_TOKEN: &str = "read-token";
/// The name of the log of the supervisor and the daemons.
pub const LOG: &str = "lab.log";
/// The environment variable with the folder of all labs.
const LABS_VARIABLE: &str = "PAUSEBED_LABS";
/// The folder of users' runtime folders, and that of marks of users whose folders outlive their sessions
/// (pam_systemd(8), loginctl(1)).
const SESSIONS: &str = "/run/user";
const LINGERING: &str = "/var/lib/systemd/linger";
/// The longest name of a lab: the paths of its sockets must not exceed 107 octets (unix(7)).
const NAME_MAX: usize = 40;

/// The stage of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It is starting.
    Starting,
    /// It runs.
    Up,
    /// It has ended, for this reason.
    Ended(String),
}

/// The journal of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabRecord {
    /// Its name.
    pub lab: String,
    /// The process that holds everything: the supervisor once it runs.
    pub owner: ProcessIdentity,
    /// The process that started it and waits until it is up.
    pub starter: ProcessIdentity,
    /// Whether it ends with the process that started it.
    #[serde(default)]
    pub is_tied: bool,
    /// Its stage.
    pub stage: Stage,
    /// Overrides of the scenario's keys.
    pub sets: Vec<String>,
    /// The name of its substrate.
    pub backend: String,
    /// Whether its daemons can be administered by TCP too.
    #[serde(default)]
    pub tcp: bool,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// The technology of its fabric.
    pub technology: Technology,
    /// Its daemons, once they run.
    pub daemons: Vec<DaemonRecord>,
    /// The names of adapters by address.
    pub addresses: BTreeMap<u64, String>,
    /// Its cables.
    pub links: Vec<LinkRecord>,
    /// Its ports with an interface of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<AttachedRecord>,
    /// Its hosts, once they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// The balance of its frames, once it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
}

/// A port of a lab with an interface of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedRecord {
    /// The port, as in `leaf1:4`.
    pub port: String,
    /// The name of the interface.
    pub interface: String,
    /// Its line rate; without one the nominal rate of its pauses.
    pub rate: BitRate,
}

/// A cable of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// One end, as in `leaf1:4`.
    pub a: String,
    /// The other.
    pub b: String,
    /// Its line rate.
    pub rate: BitRate,
}

impl LabRecord {
    /// A lab of this process, of which nothing runs yet.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn empty(lab: String, technology: Technology) -> io::Result<LabRecord> {
        let owner = ProcessIdentity::this()?;
        Ok(LabRecord {
            lab,
            owner,
            starter: owner,
            is_tied: false,
            stage: Stage::Starting,
            sets: Vec::new(),
            backend: String::new(),
            tcp: false,
            dilation: 1,
            technology,
            daemons: Vec::new(),
            addresses: BTreeMap::new(),
            links: Vec::new(),
            attached: Vec::new(),
            hosts: Vec::new(),
            balance: None,
        })
    }

    /// The journal of a lab that this process starts: `scenario`, rendered as `lab`, with these overrides.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn starting(
        name: impl Into<String>,
        scenario: &Scenario,
        lab: &Lab,
        sets: Vec<String>,
        dilation: u64,
    ) -> Result<LabRecord, LaunchError> {
        let empty = LabRecord::empty(name.into(), lab.fabric.technology);
        let backend = substrate(scenario.run.backend).name.to_owned();
        Ok(LabRecord { sets, backend, dilation, ..empty.or_host("cannot read /proc")? })
    }

    /// Whether the journal in `folder` is that of this lab and names this owner.
    pub fn is_named_in(&self, folder: &Path) -> bool {
        LabRecord::read(folder)
            .is_ok_and(|named| named.owner == self.owner && named.starter == self.starter)
    }

    /// Its daemons, but those that have ended too often.
    pub fn running(&self) -> impl Iterator<Item = &DaemonRecord> {
        self.daemons.iter().filter(|daemon| !daemon.is_given_up)
    }

    /// Whether it runs or starts.
    pub fn is_alive(&self) -> bool {
        self.owner.is_alive()
    }

    /// Whether it starts without a starter: the command was killed.
    pub fn is_abandoned(&self) -> bool {
        self.stage == Stage::Starting && !self.starter.is_alive()
    }

    /// The daemon that hosts `node`.
    pub fn daemon_of(&self, node: &str) -> Option<&DaemonRecord> {
        self.daemons.iter().find(|daemon| daemon.nodes.iter().any(|own| own == node))
    }

    /// Whether programs beside its nodes are to manage it.
    pub fn is_managed(&self) -> bool {
        self.daemons.iter().any(|daemon| daemon.clients.is_some())
    }

    /// The far end of the cable at `port`.
    pub fn peer(&self, port: &str) -> Option<&str> {
        self.links.iter().find_map(|link| match port {
            _ if link.a == port => Some(link.b.as_str()),
            _ if link.b == port => Some(link.a.as_str()),
            _ => None,
        })
    }

    /// The interface of the host at `port`.
    pub fn attached_at(&self, port: &str) -> Option<&AttachedRecord> {
        self.attached.iter().find(|attached| attached.port == port)
    }

    /// The host called `name`.
    pub fn host(&self, name: &str) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The rate of the cable at `port`, or of the attached interface there.
    pub fn rate_of(&self, port: &str) -> Option<BitRate> {
        let link = self.links.iter().find(|link| link.a == port || link.b == port);
        link.map(|link| link.rate).or_else(|| self.attached_at(port).map(|attached| attached.rate))
    }

    /// Reads the journal in `folder`.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn read(folder: &Path) -> io::Result<LabRecord> {
        let text = fs::read_to_string(folder.join(JOURNAL))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes the journal in `folder` atomically.
    ///
    /// # Errors
    /// If the file cannot be written, for example because the folder is gone.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join(format!("{JOURNAL}.new"));
        write_json(&new, self)?;
        fs::rename(new, folder.join(JOURNAL))
    }
}

/// The folder of all labs.
#[derive(Clone, Debug)]
pub struct LabStore {
    root: PathBuf,
}

impl LabStore {
    /// The labs in the folder `named`, else in that of the environment, else in this user's own folder.
    /// Leftovers of killed processes are removed.
    ///
    /// # Errors
    /// If the folder cannot be made, or others can write to it.
    pub fn open(named: Option<&Path>) -> io::Result<LabStore> {
        let variable = || std::env::var_os(LABS_VARIABLE).map(PathBuf::from);
        let root = match named.map(Path::to_owned).or_else(variable) {
            Some(root) => std::path::absolute(root)?,
            None => folder()?.join("labs"),
        };
        private(&root)?;
        let labs = LabStore { root };
        labs.remove_leftovers();
        Ok(labs)
    }

    /// The folder of the lab called `name`.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// All labs by name, with those that have ended by themselves.
    pub fn all(&self) -> BTreeMap<String, LabRecord> {
        let Ok(entries) = fs::read_dir(&self.root) else { return BTreeMap::new() };
        let labs = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_complete = !name.starts_with('.');
            is_complete.then(|| LabRecord::read(&entry.path()).ok())?.map(|record| (name, record))
        });
        labs.collect()
    }

    /// Makes the folder of a lab, with its journal and its scenario. An ended lab of this name is removed first.
    ///
    /// # Errors
    /// If there is such a lab, or the folder cannot be made.
    pub fn create(&self, record: &LabRecord, scenario: &str) -> Result<PathBuf, LaunchError> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = &record.lab;
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_good) {
            return Err(LaunchError::config(format!(
                "{name:?} is not a valid name of a lab: letters, digits, - and _, at most {NAME_MAX} of them"
            )));
        }
        let hidden = self.hidden(name, record.owner);
        private(&hidden)
            .and_then(|()| fs::write(hidden.join(SCENARIO), scenario))
            .and_then(|()| record.write(&hidden))
            .or_host(format!("cannot make {}", hidden.display()))?;
        let moved = self.take_place(&hidden, name);
        if moved.is_err() {
            // The next command removes what stays.
            let _ = fs::remove_dir_all(&hidden);
        }
        moved
    }

    fn take_place(&self, hidden: &Path, name: &str) -> Result<PathBuf, LaunchError> {
        let place = self.folder(name);
        let cannot = || format!("cannot make {}", place.display());
        let _held = self.hold().or_host(cannot())?;
        if place.exists() {
            match LabRecord::read(&place) {
                Ok(there) if there.is_alive() => {
                    let hint = format!("pausebed down {name}, or another --name");
                    return Err(LaunchError::config(format!("lab {name} is up already: {hint}")));
                }
                Ok(_) => self.remove_folder(name).or_host(cannot())?,
                Err(_) => {
                    let place = place.display();
                    return Err(LaunchError::config(format!("{place} is not the folder of a lab")));
                }
            }
        }
        fs::rename(hidden, &place).or_host(cannot())?;
        Ok(place)
    }

    /// Removes the folder of a lab whose owner has ended. A lab of the same name that was started since stays.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, record: &LabRecord) -> io::Result<()> {
        let _held = self.hold()?;
        match LabRecord::read(&self.folder(&record.lab)) {
            Ok(there) if there.starter != record.starter => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => self.remove_folder(&record.lab),
        }
    }

    /// Why labs may end before `down`: their folder goes with the last session of this user.
    pub fn remark(&self) -> Option<&'static str> {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()?;
        let lingers = Path::new(LINGERING).join(&user.name).exists();
        (self.root.starts_with(SESSIONS) && !lingers).then_some(
            "this lab ends with your last session; loginctl enable-linger keeps it, or --dir with a folder that stays",
        )
    }

    /// Lets no other process make or remove folders, until the value is dropped.
    fn hold(&self) -> io::Result<Flock<File>> {
        let lock = Flock::lock(File::open(&self.root)?, FlockArg::LockExclusive);
        lock.map_err(|(_, error)| error.into())
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        // Different from the name under which this process may make a lab of this name.
        let gone = self.hidden(&format!("{name}.gone"), ProcessIdentity::this()?);
        fs::rename(self.folder(name), &gone)?;
        fs::remove_dir_all(gone)
    }

    fn hidden(&self, name: &str, owner: ProcessIdentity) -> PathBuf {
        self.root.join(format!(".{name}.{owner}"))
    }

    /// Removes folders that killed processes were making or removing.
    fn remove_leftovers(&self) {
        let hidden = |name: &str| name.starts_with('.').then(|| ProcessIdentity::named(name))?;
        remove_leftovers_in(&self.root, hidden, |entry| {
            // The next command tries again.
            let _ = fs::remove_dir_all(entry.path());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lab: &str, owner: ProcessIdentity) -> LabRecord {
        let record = LabRecord::empty(lab.to_owned(), Technology::Ethernet);
        LabRecord { owner, starter: owner, ..record.expect("this process is there") }
    }

    #[test]
    fn a_lab_is_complete_or_absent_and_two_of_a_name_do_not_collide() {
        let root = tempfile::tempdir().expect("a folder");
        let labs = LabStore::open(Some(&root.path().join("labs"))).expect("a folder of our own");
        let own = ProcessIdentity::this().expect("this process is there");
        let dead = ProcessIdentity { began: own.began + 1, ..own };
        labs.create(&record("one", own), "text").expect("there is none");
        let again = labs.create(&record("one", own), "other");
        assert!(again.is_err_and(|error| error.to_string().contains("is up already")));
        let text = fs::read_to_string(labs.folder("one").join(SCENARIO));
        assert_eq!(text.expect("the first is unharmed"), "text");
        labs.create(&record("two", dead), "left").expect("there is none");
        labs.create(&record("two", own), "new").expect("its owner has ended");
        assert_eq!(labs.all().into_keys().collect::<Vec<_>>(), ["one", "two"]);
        // The user ends the lab that was there before.
        labs.remove(&record("one", dead)).expect("nothing is left to be done");
        assert_eq!(labs.all().len(), 2);
        assert!(record("one", own).is_named_in(&labs.folder("one")));
        labs.remove(&record("one", own)).expect("it is there");
        assert!(!record("one", own).is_named_in(&labs.folder("one")));
        assert_eq!(labs.all().into_keys().collect::<Vec<_>>(), ["two"]);
        for name in ["", "../x", "a b", &"x".repeat(NAME_MAX + 1)] {
            let refused = labs.create(&record(name, own), "");
            assert!(
                refused.is_err_and(|error| error.to_string().contains("is not a valid name")),
                "{name:?}"
            );
        }
    }

    #[test]
    fn leftovers_of_ended_processes_are_removed_and_nothing_else() {
        let root = tempfile::tempdir().expect("a folder");
        let place = root.path().join("labs");
        let labs = LabStore::open(Some(&place)).expect("a folder of our own");
        let own = ProcessIdentity::this().expect("this process is there");
        let dead = ProcessIdentity { began: own.began + 1, ..own };
        let names = [format!(".x.{dead}"), format!(".x.{own}"), ".notes".into(), "mine".into()];
        for name in &names {
            fs::create_dir(place.join(name)).expect("a folder");
        }
        let foreign = labs.create(&record("mine", own), "");
        assert!(
            foreign.is_err_and(|error| error.to_string().contains("is not the folder of a lab"))
        );
        fs::create_dir_all(place.join(&names[1])).expect("a folder");
        LabStore::open(Some(&place)).expect("the same folder");
        let there: Vec<bool> = names.iter().map(|name| place.join(name).exists()).collect();
        assert_eq!(there, [false, true, true, true]);
    }
}
