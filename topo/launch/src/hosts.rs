//! Hosts of a lab: started before its daemons, watched while it runs, and ended with it.

use crate::error::OrHost;
use crate::owner::ProcessIdentity;
use crate::{Job, LaunchError, interrupt};
use emulation::clock::Stopwatch;
use host::HostError;
use host::image::Image;
use host::running::Running;
use host::vm::{Vm, VmSpec, prepare};
use proto::units::Bytes;
use scenario::host::{Host, HostKind};
use scenario::render::Lab;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod commands;
mod output;

pub(crate) use commands::Commands;

/// Time for all hosts to answer, in seconds. One takes about a second; a busy machine without KVM starts many at once.
const READY_WITHIN_S: f64 = 120.0;
/// The interval of lines about hosts that do not answer yet, in seconds.
const LINE_EVERY_S: f64 = 5.0;
/// Wait for one host before the next is looked at.
const TURN: Duration = Duration::from_millis(20);
/// Time for all hosts to end by themselves, in seconds.
const STOP_WITHIN_S: f64 = 3.0;
/// The interval at which their end is polled.
const POLL_NS: u64 = 10_000_000;

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: HostKind,
    /// Its port, as in `leaf1:4`.
    pub port: String,
    /// The MAC address of its interface.
    pub mac: String,
    /// The addresses of its interface with the lengths of their prefixes.
    pub addresses: Vec<String>,
    /// Its process on this machine.
    pub process: ProcessIdentity,
    /// Why it has ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Takes lines about the progress. An error means that the start is not wanted any more.
pub(crate) type Report<'a> = &'a mut dyn FnMut(String) -> Result<(), LaunchError>;

/// The running hosts of a lab. They end when this value is dropped.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Each with its place among the hosts of the fabric.
    running: Vec<(usize, Running)>,
    /// The folder of their sockets and logs.
    folder: PathBuf,
}

impl Hosts {
    /// Starts the hosts of a job, which answer a moment later.
    ///
    /// # Errors
    /// If one cannot be started; those that were are ended.
    pub fn start(job: &Job<'_>, report: Report<'_>) -> Result<Hosts, LaunchError> {
        let mut images = BTreeMap::new();
        let mut hosts = Hosts { running: Vec::new(), folder: job.scratch.to_owned() };
        for (index, host) in job.lab.fabric.hosts.iter().enumerate() {
            if interrupt::requested() {
                return Err(LaunchError::interrupted());
            }
            let running = match host.kind {
                HostKind::Vm => {
                    let spec = vm_spec(host, job.scratch);
                    let image = image(&mut images, host).map_err(cannot_start(&host.name))?;
                    let mut said = Ok(());
                    let mut progress = |line: &str| said = report(line.to_owned());
                    prepare(image, spec.memory_mib, &mut progress)
                        .map_err(cannot_start(&host.name))?;
                    said?;
                    Vm::start(image, &spec).map(Running::Vm).map_err(cannot_start(&host.name))?
                }
                kind @ (HostKind::Netns | HostKind::Container) => {
                    return Err(LaunchError::config(format!(
                        "host {}: this version cannot start hosts of the kind {}",
                        host.name,
                        kind.word()
                    )));
                }
            };
            hosts.running.push((index, running));
        }
        Ok(hosts)
    }

    /// Waits until all hosts take commands.
    ///
    /// # Errors
    /// If one ends or does not answer in time, or the user interrupts.
    pub fn wait_ready(&mut self, lab: &Lab, report: Report<'_>) -> Result<(), LaunchError> {
        let (watch, mut next_line_s) = (Stopwatch::start(), LINE_EVERY_S);
        let name = |index: usize| lab.fabric.hosts[index].name.as_str();
        let mut waiting: Vec<_> = self.running.iter_mut().map(|(at, host)| (*at, host)).collect();
        while !waiting.is_empty() {
            let mut silent = Vec::new();
            for (index, running) in waiting {
                if interrupt::requested() {
                    return Err(LaunchError::interrupted());
                }
                if running.is_ready(TURN).map_err(cannot_start(name(index)))? {
                    let seconds = watch.seconds();
                    report(format!("host {} answers after {seconds:.1} s", name(index)))?;
                } else {
                    silent.push((index, running));
                }
            }
            waiting = silent;
            if watch.seconds() > next_line_s && !waiting.is_empty() {
                next_line_s += LINE_EVERY_S;
                let names: Vec<&str> = waiting.iter().map(|(index, _)| name(*index)).collect();
                let names = names.join(", ");
                let line = format!("no answer of {names} after {:.0} s", watch.seconds());
                if watch.seconds() > READY_WITHIN_S {
                    return Err(LaunchError::host(line));
                }
                report(line)?;
            }
        }
        Ok(())
    }

    /// Starts the hosts of a job and waits until they take commands.
    ///
    /// # Errors
    /// As [`Hosts::start`] and [`Hosts::wait_ready`].
    pub fn start_and_wait(job: &Job<'_>) -> Result<Hosts, LaunchError> {
        let print = &mut |line| {
            eprintln!("{line}");
            Ok(())
        };
        let mut hosts = Hosts::start(job, print)?;
        hosts.wait_ready(job.lab, print)?;
        Ok(hosts)
    }

    /// The hosts for the journal of a lab.
    ///
    /// # Errors
    /// If one has ended already.
    pub fn records(&self, lab: &Lab) -> Result<Vec<HostRecord>, LaunchError> {
        let record = |(index, running): &(usize, Running)| {
            let host = &lab.fabric.hosts[*index];
            let process = ProcessIdentity::of(running.pid());
            let process = process.ok_or(std::io::ErrorKind::NotFound);
            let addresses = host.addresses.iter();
            Ok(HostRecord {
                name: host.name.clone(),
                kind: host.kind,
                port: lab.fabric.wiring.end_name(host.at),
                mac: host.mac.to_string(),
                addresses: addresses.map(|(ip, prefix)| format!("{ip}/{prefix}")).collect(),
                process: process.map_err(std::io::Error::from).or_host("a host has ended")?,
                ended: None,
            })
        };
        self.running.iter().map(record).collect()
    }

    /// The hosts that have ended since the last call: their places among the hosts of the fabric, and why.
    pub fn take_ended(&mut self) -> Vec<(usize, String)> {
        let ended = self.running.extract_if(.., |(_, running)| !running.is_alive());
        ended.map(|(index, mut running)| (index, running.obituary())).collect()
    }

    /// Powers all hosts off, and kills those that have not ended after a while.
    pub fn stop(mut self) {
        self.running.iter_mut().for_each(|(_, running)| running.power_off());
        let watch = Stopwatch::start();
        while self.running.iter_mut().any(|(_, running)| running.is_alive())
            && watch.seconds() < STOP_WITHIN_S
        {
            interrupt::pause(POLL_NS);
        }
    }
}

/// Turns the error of a host into one of the launcher.
fn cannot_start(name: &str) -> impl FnOnce(HostError) -> LaunchError {
    let what = format!("host {name} cannot be started");
    move |error| match error {
        HostError::Invalid(_) => LaunchError::config(what).caused()(error),
        _ => LaunchError::host(what).caused()(error),
    }
}

/// The image of a virtual machine. Its hashes are checked once for all hosts.
fn image<'a>(
    known: &'a mut BTreeMap<Option<PathBuf>, Image>,
    host: &Host,
) -> Result<&'a Image, HostError> {
    use std::collections::btree_map::Entry;
    Ok(match known.entry(host.kernel.clone()) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let release = host.kernel.as_ref().map(|release| release.to_string_lossy());
            entry.insert(Image::find(release.as_deref())?)
        }
    })
}

fn vm_spec(host: &Host, folder: &Path) -> VmSpec {
    let file = |ending: &str| folder.join(format!("{}.{ending}", host.name));
    let memory = host.memory.map_or(0, Bytes::get);
    VmSpec {
        name: host.name.clone(),
        mac: host.mac.octets(),
        addresses: host.addresses.clone(),
        mtu: u32::try_from(host.mtu.get()).unwrap_or(u32::MAX),
        memory_mib: u32::try_from(memory >> 20).unwrap_or(u32::MAX),
        local: file("peer"),
        remote: file("lab"),
        folder: folder.to_owned(),
    }
}
