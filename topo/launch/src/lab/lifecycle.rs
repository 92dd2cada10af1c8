//! Start and end of a lab, from outside its supervisor.

use super::balance::Balance;
use super::folder::{LOG, LabRecord, LabStore};
use super::supervisor::StartMessage;
use crate::hosts::remove_containers;
use crate::owner::ProcessIdentity;
use crate::{LaunchError, interrupt};
use emulation::clock::Stopwatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use scenario::host::HostKind;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Time for a process to end, in seconds: a host that swaps is slow.
const ENDS_WITHIN_S: f64 = 15.0;
/// The interval at which the end of a process is polled.
const POLL_NS: u64 = 10_000_000;
/// Octets of the log that are printed when a lab does not start.
const LOG_TAIL: usize = 2_000;

/// Starts the supervisor of the lab in `folder`, and waits until the lab is up. Lines about the progress go to `report`.
///
/// # Errors
/// If the lab does not start, with the reason.
pub fn start(folder: &Path, report: impl Fn(&str)) -> Result<(), LaunchError> {
    let failed = || LaunchError::host("cannot start the supervisor").caused::<io::Error>();
    let mut supervisor = spawn(folder).map_err(failed())?;
    let output = supervisor.stdout.take().expect("standard output was asked for");
    // The pipe ends with the supervisor at the latest.
    for line in BufReader::new(output).lines() {
        match serde_json::from_str(&line.map_err(failed())?) {
            Ok(StartMessage::Progress(line)) => report(&line),
            Ok(StartMessage::Up) => return Ok(()),
            Ok(StartMessage::Failed(reason)) => {
                // The supervisor has nothing left to do.
                let _ = supervisor.wait();
                return Err(LaunchError::host(reason));
            }
            Err(_) => break,
        }
    }
    let how = supervisor.wait().map_err(failed())?;
    let log = log_tail(folder);
    Err(LaunchError::died(format!("the supervisor ended: {how}\n{log}")))
}

#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
fn spawn(folder: &Path) -> io::Result<Child> {
    let log = fs::File::options().create(true).append(true).open(folder.join(LOG))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("keep").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
}

/// The end of a lab's log.
fn log_tail(folder: &Path) -> String {
    let log = fs::read(folder.join(LOG)).unwrap_or_default();
    String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL)..]).into_owned()
}

/// Ends the lab `name` and removes its folder. Returns the balance of its frames, if all daemons stopped in time.
///
/// # Errors
/// If the supervisor does not end, or the folder cannot be removed.
pub fn end(labs: &LabStore, record: &LabRecord) -> io::Result<Option<Balance>> {
    // Until the supervisor has written the journal, the owner of a lab is its starter.
    let has_supervisor = ProcessIdentity::this().ok() != Some(record.owner);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if !has_supervisor || ended(record.owner, signal) {
            break;
        }
    }
    let daemons = record.daemons.iter().filter_map(|daemon| ProcessIdentity::of(daemon.pid));
    let left = daemons.filter(|owner| is_daemon_of(*owner, &labs.folder(&record.lab)));
    let hosts = record.hosts.iter().map(|host| host.process);
    for process in left.chain(hosts) {
        // The kernel ends daemons and hosts with their supervisor; this waits for it.
        ended(process, Signal::SIGKILL);
    }
    if record.hosts.iter().any(|host| host.kind == HostKind::Container) {
        remove_containers();
    }
    if has_supervisor && record.is_alive() {
        return Err(io::Error::other(format!("process {} does not end", record.owner.process)));
    }
    let balance = LabRecord::read(&labs.folder(&record.lab)).ok().and_then(|last| last.balance);
    labs.remove(record).map(|()| balance)
}

/// Sends `signal` to a process and waits for its end. Returns whether it has ended.
fn ended(owner: ProcessIdentity, signal: Signal) -> bool {
    if !owner.is_alive() {
        return true;
    }
    // An error means that it has just ended, or belongs to another user.
    let _ = kill(Pid::from_raw(owner.process as i32), signal);
    let stopwatch = Stopwatch::start();
    while owner.is_alive() && stopwatch.seconds() < ENDS_WITHIN_S {
        interrupt::pause(POLL_NS);
    }
    !owner.is_alive()
}

/// Whether a process was started with a configuration in `folder`.
fn is_daemon_of(owner: ProcessIdentity, folder: &Path) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", owner.process)).unwrap_or_default();
    let words = line.split(|octet| *octet == 0).map(String::from_utf8_lossy);
    words.into_iter().any(|word| Path::new(word.as_ref()).starts_with(folder))
}
