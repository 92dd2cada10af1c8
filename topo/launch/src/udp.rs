//! The substrate `udp`: daemons on this host, joined by datagrams over loopback, on the wall clock.

use super::daemons::{self, Cabling};
use super::{Job, LaunchError, Outcome, Progress, refuse_interfaces};

/// Runs a job.
///
/// # Errors
/// If a daemon dies, refuses its configuration, or the user interrupts.
pub(crate) fn run(
    job: &Job<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    refuse_interfaces(job)?;
    daemons::run(job, Cabling::on_loopback(job), &[], progress)
}
