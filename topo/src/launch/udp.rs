//! The substrate `udp`: daemons on this host, joined by datagrams over loopback, on the wall clock.

use super::daemons::{self, Cabling};
use super::{Job, LaunchError, Outcome, Progress};

/// Runs a job.
///
/// # Errors
/// If a daemon dies, refuses its configuration, or somebody interrupts.
pub fn run(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError> {
    if let Some(attached) = job.lab.fabric.wiring.attached.first() {
        return Err(LaunchError::Config(format!(
            "interface {} can be attached on the backend netns only",
            attached.interface
        )));
    }
    daemons::run(job, Cabling::on_loopback(job), progress)
}
