//! The balance of a lab: every frame that entered it is delivered, under way, or dropped with one reason.

use crate::Job;
use crate::daemons::accounts::{on_cables, refused};
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::impairment::Injected;
use emulation::driver::account::Account;
use emulation::driver::{InFlight, Report, evidence};
use emulation::fidelity::judge;
use results::lossless::LosslessDrops;
use results::run_directory::result::{Conservation, OnCables};
use results::verdict::Verdict;
use results::violations::Violations;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// The frames of a lab at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Fabric time, in picoseconds.
    pub at_ps: u64,
    /// Frames by what became of them.
    pub frames: Conservation,
    /// Datagrams and records that sockets refused, by reason. They are not frames of the lab.
    pub refused: BTreeMap<String, u64>,
    /// Whether every frame is accounted for.
    pub closes: bool,
    /// Of a lab that has ended: the frames of lossless lanes that congestion dropped, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless_drops: Option<LosslessDrops>,
    /// Of a lab that has ended: frames that broke a law of physics, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations: Option<Violations>,
    /// Of a lab that has ended: whether the host kept up, which decides about lost lossless frames only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_up: Option<bool>,
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

    /// The balance at the end of the lab of `job`.
    pub(crate) fn of_reports(reports: &[Report], job: &Job<'_>) -> Balance {
        let parts =
            reports.iter().map(|report| (&report.in_flight, &report.injected, &report.exchange));
        let devices = reports.iter().flat_map(|report| &report.recording.last);
        let cables: OnCables = on_cables(parts.clone(), false);
        let ended = reports.iter().map(|report| report.stopped_at.as_ps()).max();
        let recordings = || reports.iter().map(|report| &report.recording);
        let dilation = NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN);
        Balance {
            lossless_drops: LosslessDrops::of(
                &job.lab.fabric,
                recordings(),
                job.run.expected_drops(),
            ),
            violations: Violations::of(&job.lab.fabric, recordings()),
            kept_up: Some(judge(&evidence(reports, Vec::new()), dilation).ok),
            ..Balance::new(ended.unwrap_or_default(), Conservation::of(devices, &cables), parts)
        }
    }

    /// What the end of the lab means for the exit code.
    pub fn verdict(&self) -> Verdict {
        if self.violations.is_some() {
            return Verdict::Fail;
        }
        let kept_up = self.kept_up.unwrap_or(true);
        self.lossless_drops.as_ref().map_or(Verdict::Pass, |drops| drops.verdict(kept_up))
    }

    fn new<'a>(
        at_ps: u64,
        frames: Conservation,
        parts: impl Iterator<Item = (&'a InFlight, &'a Injected, &'a ExchangeReport)>,
    ) -> Balance {
        let mut refused = refused(parts.map(|(.., exchange)| exchange));
        refused.retain(|_, count| *count > 0);
        let closes = frames.closes();
        Balance {
            at_ps,
            frames,
            refused,
            closes,
            lossless_drops: None,
            violations: None,
            kept_up: None,
        }
    }
}
