//! How a lab begins and ends, seen from outside its keeper.

use super::folder::{LOG, Labs, Record};
use super::keeper::Told;
use crate::LaunchError;
use crate::owner::Owner;
use emulation::clock::Stopwatch;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A keeper ends its daemons at once; a host that swaps takes a while for it.
const ENDS_WITHIN_S: f64 = 15.0;
/// How often it is looked whether a keeper has ended.
const LOOK_EVERY_NS: u64 = 10_000_000;
/// Octets of the log that are told when a lab does not come up.
const LOG_END: u64 = 2_000;

/// Starts the keeper of the lab in `folder`, and waits until the lab is up.
///
/// # Errors
/// If it does not come up, with what it said.
pub fn start(folder: &Path) -> Result<(), LaunchError> {
    let host = |error: io::Error| LaunchError::Host(format!("cannot start a keeper: {error}"));
    let mut keeper = spawn(folder).map_err(host)?;
    let output = keeper.stdout.take().expect("standard output was asked for");
    let mut line = String::new();
    // It ends with the keeper at the latest.
    BufReader::new(output).read_line(&mut line).map_err(host)?;
    match serde_json::from_str(&line) {
        Ok(Told::Up) => Ok(()),
        Ok(Told::Failed(reason)) => {
            // It has nothing left to do.
            let _ = keeper.wait();
            Err(LaunchError::Host(reason))
        }
        Err(_) => {
            let how = keeper.wait().map_err(host)?;
            let said = log_end(folder);
            Err(LaunchError::Died(format!("the keeper ended: {how}\n{said}")))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
fn spawn(folder: &Path) -> io::Result<Child> {
    let log = fs::File::options().create(true).append(true).open(folder.join(LOG))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("keep").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
}

/// The end of what a lab's keeper and daemons have said.
fn log_end(folder: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut log = fs::File::open(folder.join(LOG))?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
        let mut end = Vec::new();
        log.take(LOG_END).read_to_end(&mut end)?;
        Ok(String::from_utf8_lossy(&end).into_owned())
    };
    read().unwrap_or_default()
}

/// Ends the lab called `name` and removes its folder.
///
/// # Errors
/// If its keeper cannot be ended or its folder not removed.
pub fn end(labs: &Labs, name: &str, record: &Record) -> io::Result<()> {
    // Until its keeper has written the journal a lab is in the name of whoever asked for it.
    let has_keeper = Owner::this().ok() != Some(record.owner);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if !has_keeper || ended(record.owner, signal) {
            break;
        }
    }
    let daemons = record.daemons.iter().filter_map(|daemon| Owner::of(daemon.pid));
    let left = daemons.filter(|owner| is_daemon_of(*owner, &labs.folder(name)));
    for daemon in left {
        // The kernel ends daemons with their keeper; here one is waited for.
        ended(daemon, Signal::SIGKILL);
    }
    if has_keeper && record.is_alive() {
        return Err(io::Error::other(format!("process {} does not end", record.owner.process)));
    }
    labs.remove(name)
}

/// Sends `signal` to a process and waits for its end; true if it has ended.
fn ended(owner: Owner, signal: Signal) -> bool {
    if !owner.is_alive() {
        return true;
    }
    // An error means that it has just ended, or is not ours to end.
    let _ = kill(Pid::from_raw(owner.process as i32), signal);
    let stopwatch = Stopwatch::start();
    while owner.is_alive() && stopwatch.seconds() < ENDS_WITHIN_S {
        timer::wait(None, emulation::clock::monotonic_ns() + LOOK_EVERY_NS);
    }
    !owner.is_alive()
}

/// Whether a process was started with a configuration in `folder`, and is no later one of its number.
fn is_daemon_of(owner: Owner, folder: &Path) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", owner.process)).unwrap_or_default();
    let words = line.split(|octet| *octet == 0).map(String::from_utf8_lossy);
    words.into_iter().any(|word| Path::new(word.as_ref()).starts_with(folder))
}
