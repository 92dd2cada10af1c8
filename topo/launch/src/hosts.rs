//! Hosts of a lab: started before its daemons, watched while it runs, and ended with it.

use crate::error::OrHost;
use crate::owner::ProcessIdentity;
use crate::{Job, LaunchError, interrupt};
use emulation::cable::namespace::Namespace;
use emulation::clock::Stopwatch;
use host::exec::ExecRequest;
use host::running::Running;
use host::{HostError, container, exec, namespace};
use scenario::host::HostKind;
use scenario::render::Lab;
use serde::{Deserialize, Serialize};
use start::Starter;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

mod commands;
mod output;
mod start;

pub(crate) use commands::Commands;
pub use start::remove_containers;

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
    /// Starts the hosts of a job, which answer a moment later. Programs get interfaces to ports whose devices have these
    /// `namespaces`.
    ///
    /// # Errors
    /// If one cannot be started; those that were are ended.
    pub fn start(
        job: &Job<'_>,
        namespaces: &[Namespace],
        report: Report<'_>,
    ) -> Result<Hosts, LaunchError> {
        let mut starter = Starter::new(job, namespaces)?;
        let mut hosts = Hosts { running: Vec::new(), folder: job.scratch.to_owned() };
        for (index, host) in job.lab.fabric.hosts.iter().enumerate() {
            let running = starter.start(host, report)?;
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
                let seconds = watch.seconds();
                if seconds > READY_WITHIN_S {
                    let what = format!("hosts do not answer after {seconds:.0} s: {names}");
                    return Err(LaunchError::host(what));
                }
                report(format!("waiting for hosts since {seconds:.0} s: {names}"))?;
            }
        }
        Ok(())
    }

    /// Starts the hosts of a job and waits until they take commands.
    ///
    /// # Errors
    /// As [`Hosts::start`] and [`Hosts::wait_ready`].
    pub fn start_and_wait(job: &Job<'_>, namespaces: &[Namespace]) -> Result<Hosts, LaunchError> {
        let print = &mut |line| {
            eprintln!("{line}");
            Ok(())
        };
        let mut hosts = Hosts::start(job, namespaces, print)?;
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
        self.running.retain_mut(|(_, running)| running.power_off());
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

/// Runs a command on a host, by the folder of its sockets and its name; with standard input, output, error, and a limit.
pub type Exec = fn(
    &Path,
    &str,
    &ExecRequest,
    Box<dyn Read + Send>,
    &mut dyn Write,
    &mut dyn Write,
    Option<Duration>,
) -> Result<i32, HostError>;

/// The way to run commands on hosts of a kind.
pub fn exec_on(kind: HostKind) -> Exec {
    match kind {
        HostKind::Vm => exec::exec,
        HostKind::Netns => namespace::exec,
        HostKind::Container => container::exec,
    }
}
