//! The commands for labs, and how they choose a lab.

use crate::completion;
use crate::exit::{Exit, Failure};
use launch::lab::folder::{HostRecord, RUN};
use launch::lab::{LabRecord, LabStore};
use scenario::keyfile::problem::did_you_mean;
use std::path::PathBuf;

pub mod capture;
pub mod change;
pub mod console;
pub mod down;
pub mod env;
pub mod exec;
pub mod logs;
pub mod show;
pub mod status;
pub mod up;

/// The folder of all labs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Place {
    /// The folder of all labs, instead of the one in this user's runtime folder [env: PAUSEBED_LABS]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The choice of a lab.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Choice {
    /// The lab; needed if there are several
    #[arg(long, value_name = "NAME", add = completion::labs())]
    lab: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Place {
    /// The labs there.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn labs(&self) -> Result<LabStore, Failure> {
        LabStore::open(self.dir.as_deref())
            .map_err(|error| Failure::host(format!("no folder for labs: {error}")))
    }
}

impl Choice {
    /// The chosen lab, which must run.
    ///
    /// # Errors
    /// If there is none, the choice is ambiguous, or the lab has ended.
    pub fn running(&self) -> Result<LabRecord, Failure> {
        running(choose(&self.place.labs()?, self.lab.as_deref())?)
    }
}

/// The host `name` of the chosen lab, which must run, and the folder of its sockets.
///
/// # Errors
/// If there is no such lab or host, or one of them has ended.
pub(super) fn running_host(choice: &Choice, name: &str) -> Result<(PathBuf, HostRecord), Failure> {
    let record = choice.running()?;
    let host = find_host(&record, name)?;
    let ended = match &host.ended {
        Some(why) => Some(why.as_str()),
        None if host.process.is_alive() => None,
        None => Some("its process was killed"),
    };
    if let Some(why) = ended {
        let message = format!("host {name} has ended: {why}; see pausebed logs {name}");
        return Err(Failure::new(Exit::Died, message));
    }
    Ok((choice.place.labs()?.folder(&record.lab).join(RUN), host.clone()))
}

/// The host `name` of a lab.
pub(super) fn find_host<'a>(record: &'a LabRecord, name: &str) -> Result<&'a HostRecord, Failure> {
    let lab = &record.lab;
    record.host(name).ok_or_else(|| match record.hosts.as_slice() {
        [] => Failure::usage(format!("lab {lab} has no hosts")),
        hosts => {
            let hint = did_you_mean(name, hosts.iter().map(|host| host.name.as_str()));
            Failure::usage(format!("lab {lab} has no host {name:?}: {hint}"))
        }
    })
}

/// Refuses a lab that has ended.
pub(super) fn running(record: LabRecord) -> Result<LabRecord, Failure> {
    if record.is_alive() {
        return Ok(record);
    }
    let name = &record.lab;
    let message = format!("lab {name} has ended: pausebed logs, and then pausebed down {name}");
    Err(Failure::new(Exit::Died, message))
}

/// The lab `name`, or the only one.
fn choose(labs: &LabStore, name: Option<&str>) -> Result<LabRecord, Failure> {
    let mut all = labs.all();
    let Some(name) = name else {
        let names: Vec<String> = all.keys().cloned().collect();
        return match (all.pop_first(), names.len()) {
            (Some((_, record)), 1) => Ok(record),
            (None, _) => Err(Failure::usage("no lab is up: pausebed up FILE")),
            _ => Err(Failure::usage(format!("which lab? {}", names.join(", ")))),
        };
    };
    let unknown = || format!("no lab called {name}: pausebed status shows all labs");
    all.remove(name).ok_or_else(|| Failure::usage(unknown()))
}
