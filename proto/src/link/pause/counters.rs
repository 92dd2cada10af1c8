//! Pause counters, under the names that operators know.
//!
//! Source: the per-priority and global pause counters that `ethtool -S` shows on mlx5 adapters;
//! durations are in microseconds there, and a transition is the end of a pause.

use super::demand::Demand;
use super::each;
use super::gate::PauseGate;
use crate::link::config::PauseMode;
use crate::units::{Duration, Instant};
use crate::wire::ethernet::Pfc;
use std::fmt::Arguments;

const PS_PER_US: u64 = 1_000_000;

/// Frames by kind and priority.
///
/// Shape: tables are by priority.
#[derive(Clone, Debug, Default)]
pub(super) struct PauseCounters {
    /// PAUSE frames received, obeyed or not.
    pub(super) rx_pause: u64,
    /// PAUSE frames sent.
    pub(super) tx_pause: u64,
    /// PFC frames received, obeyed or not, including those that enable no priority.
    rx_pfc: u64,
    /// PFC frames sent.
    tx_pfc: u64,
    rx_priority: [u64; Pfc::PRIORITIES],
    tx_priority: [u64; Pfc::PRIORITIES],
}

impl PauseCounters {
    /// Counts a received PFC frame that enables `priorities`.
    pub(super) fn count_received(&mut self, priorities: u8) {
        self.rx_pfc += 1;
        each(priorities).for_each(|priority| self.rx_priority[priority] += 1);
    }

    /// Counts a sent PFC frame that enables `priorities`.
    pub(super) fn count_sent(&mut self, priorities: u8) {
        self.tx_pfc += 1;
        each(priorities).for_each(|priority| self.tx_priority[priority] += 1);
    }

    /// Adds every total that is not zero, durations closed at `now`.
    pub(super) fn read(
        &self,
        mode: PauseMode,
        gate: &PauseGate,
        demand: &Demand,
        now: Instant,
        named: &mut Vec<(String, u64)>,
    ) {
        let mut add = |name: Arguments<'_>, total: u64| {
            if total > 0 {
                named.push((name.to_string(), total));
            }
        };
        let mut add_all = |stem: Arguments<'_>, frames, (time, transitions): (Duration, u64)| {
            add(stem, frames);
            add(format_args!("{stem}_duration"), time.as_ps() / PS_PER_US);
            add(format_args!("{stem}_transition"), transitions);
        };
        // A pause of the whole link is shown once, not once per priority.
        let in_mode = |of, history| if mode == of { history } else { (Duration::ZERO, 0) };
        let global = |history| in_mode(PauseMode::Global, history);
        let of_priority = |history| in_mode(PauseMode::Pfc, history);
        add_all(format_args!("rx_global_pause"), self.rx_pause, global(gate.history(0, now)));
        add_all(format_args!("tx_global_pause"), self.tx_pause, global(demand.history(0, now)));
        add_all(format_args!("rx_pfc"), self.rx_pfc, (Duration::ZERO, 0));
        add_all(format_args!("tx_pfc"), self.tx_pfc, (Duration::ZERO, 0));
        for n in 0..Pfc::PRIORITIES {
            let (paused, requested) = (gate.history(n, now), demand.history(n, now));
            add_all(format_args!("rx_prio{n}_pause"), self.rx_priority[n], of_priority(paused));
            add_all(format_args!("tx_prio{n}_pause"), self.tx_priority[n], of_priority(requested));
        }
    }
}
