//! What a worker reports while it runs and at its end.

use super::ClockChanges;
use crate::cable::FrameTally;
use crate::cable::exchange::ExchangeReport;
use crate::cable::impairment::Injected;
use crate::cable::inbox::Rejected;
use crate::cable::reconcile::reconcile;
use crate::fidelity::{Evidence, FidelityBin, Lateness, Recent};
use crate::recorder::Recording;
use crate::timer::Priority;
use proto::units::Instant;
use serde::{Deserialize, Serialize};

/// A heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Fabric time of the last step.
    pub at: Instant,
    /// Frames that have left a port so far, of any kind: frame-hops.
    pub departures: u64,
    /// p99 of lateness so far, or of the last minute where the run has no end, in thousandths of a frame time; `None` if
    /// only ports without a rate have sent.
    pub late_p99_thousandths: Option<u64>,
    /// The greatest lateness so far, in thousandths of a frame time.
    pub late_max_thousandths: u64,
    /// Frames found missing so far.
    pub lost: u64,
    /// Frames given up so far, because a socket did not take them.
    #[serde(default)]
    pub unsent: u64,
    /// Datagrams refused so far, and the shim version of a peer of another build.
    pub rejected: Rejected,
    /// CPU time of the process, in nanoseconds.
    pub cpu_ns: u64,
    /// Processes that have ended or taken the place of others, as far as the worker has learned.
    #[serde(default)]
    pub peers_changed: u64,
    /// Lateness since the heartbeat before.
    #[serde(default)]
    pub recent: Recent,
}

/// Frames that were neither in a device nor lost when the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Frames whose last bit had not left their port.
    pub on_the_line: FrameTally,
    /// Frames whose last bit had left and not arrived.
    pub on_cables: FrameTally,
}

/// The report of a worker at the end of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The number of the process.
    pub process: usize,
    /// Fabric time up to which everything has happened.
    pub stopped_at: Instant,
    /// The run ended before the planned stop: by request, or because the worker was overloaded.
    pub cut_short: bool,
    /// How the data-plane thread was scheduled.
    pub priority: Priority,
    /// Frames that left a port, of any kind: frame-hops.
    pub departures: u64,
    /// Changes of the clock.
    pub changes: ClockChanges,
    /// Lateness in measured windows.
    pub lateness: Lateness,
    /// Lateness, losses and load by bin.
    pub timeline: Vec<FidelityBin>,
    /// Frames in flight at the stop.
    pub in_flight: InFlight,
    /// Frames that impairments hit.
    pub injected: Injected,
    /// Departures by ports without a cable.
    pub unwired: u64,
    /// The account of the sockets.
    pub exchange: ExchangeReport,
    /// Wall time since fabric zero, in nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the process during the run, in nanoseconds.
    pub cpu_ns: u64,
    /// Everything the recorder kept.
    pub recording: Recording,
}

impl Report {
    /// CPU time over wall time, in thousandths of a core.
    pub(crate) const fn busy_permille(&self) -> u64 {
        let wall_ns = if self.wall_ns == 0 { 1 } else { self.wall_ns };
        self.cpu_ns.saturating_mul(1_000) / wall_ns
    }
}

/// The evidence about the host from the reports of all processes; `missed` lists processes without heartbeat.
pub fn evidence(reports: &[Report], missed: Vec<usize>) -> Evidence {
    let mut lateness = Lateness::default();
    reports.iter().for_each(|report| lateness.merge(&report.lateness));
    let mut lost = reconcile(reports.iter().map(|report| &report.exchange)).lost.total();
    let mut attached = false;
    for outside in reports.iter().filter_map(|report| report.exchange.outside) {
        attached = true;
        lost += outside.unsent.total() + outside.overflows;
    }
    let uninformed = reports.iter().filter(|report| report.changes.late > 0);
    let uninformed = uninformed.map(|report| report.process).collect();
    let busiest_permille = reports.iter().map(Report::busy_permille).max().unwrap_or(0);
    Evidence { lateness, lost, missed, uninformed, attached, busiest_permille }
}
