//! The balance of a lab: every frame that entered it is delivered, under way, or dropped with one reason.

use crate::daemons::accounts::{on_cables, refused};
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::impairment::Injected;
use emulation::driver::account::Account;
use emulation::driver::{InFlight, Report};
use results::run_directory::result::{Conservation, OnCables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The frames of a lab at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Fabric time, in picoseconds.
    pub at_ps: u64,
    /// Frames by what became of them.
    pub frames: Conservation,
    /// Datagrams and records that sockets refused, by reason. They are no frames of the lab.
    pub refused: BTreeMap<String, u64>,
    /// Whether every frame is accounted for.
    pub closes: bool,
}

impl Balance {
    /// The balance of a running lab, from the accounts of all daemons at one instant.
    pub(super) fn of_accounts(at_ps: u64, accounts: &[Account]) -> Balance {
        let parts = accounts
            .iter()
            .map(|account| (&account.in_flight, &account.injected, &account.exchange));
        let devices = accounts.iter().flat_map(|account| &account.devices);
        let cables = on_cables(parts.clone(), true);
        Balance::new(at_ps, Conservation::of(devices, &cables), parts)
    }

    /// The balance at the end of a lab.
    pub(crate) fn of_reports(reports: &[Report]) -> Balance {
        let parts =
            reports.iter().map(|report| (&report.in_flight, &report.injected, &report.exchange));
        let devices = reports.iter().flat_map(|report| &report.recording.last);
        let cables: OnCables = on_cables(parts.clone(), false);
        let ended = reports.iter().map(|report| report.stopped_at.as_ps()).max();
        Balance::new(ended.unwrap_or_default(), Conservation::of(devices, &cables), parts)
    }

    fn new<'a>(
        at_ps: u64,
        frames: Conservation,
        parts: impl Iterator<Item = (&'a InFlight, &'a Injected, &'a ExchangeReport)>,
    ) -> Balance {
        let mut refused = refused(parts.map(|(.., exchange)| exchange));
        refused.retain(|_, count| *count > 0);
        let closes = frames.closes();
        Balance { at_ps, frames, refused, closes }
    }
}
