//! Snapshots of bins, sent to a listener while a run lasts.
//!
//! A snapshot costs the worker one sum over its ports for each bin, and it never waits: a slow listener misses
//! bins. The recording itself is complete.

use crate::recorder::bins::{PortBin, Slot};
use crate::wiring::End;
use serde::{Deserialize, Serialize};

/// Snapshots that may wait for a slow listener.
pub const WAITING_MAX: usize = 256;

/// One bin of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinSnapshot {
    /// The time of the bin.
    pub slot: Slot,
    /// Every port of the worker's devices.
    pub ports: Vec<PortSnapshot>,
}

/// One port over one bin, summed over its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "PortSnapshotTuple")]
pub struct PortSnapshot {
    /// The port.
    pub at: End,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Picoseconds in which a ready frame could not be sent, on the lane with the most.
    pub hold_ps: u64,
    /// Octets waiting for transmission, averaged over the bin.
    pub queue: u64,
    /// Frames marked with FECN or CE.
    pub marks: u64,
    /// Notifications received.
    pub notes: u64,
    /// Frames dropped.
    pub drops: u64,
}

impl PortSnapshot {
    /// A port without traffic.
    pub const fn idle(at: End) -> PortSnapshot {
        PortSnapshot { at, tx_bytes: 0, hold_ps: 0, queue: 0, marks: 0, notes: 0, drops: 0 }
    }

    /// Adds one lane's bin of `length_ps` picoseconds.
    pub fn add(&mut self, bin: &PortBin, length_ps: u64) {
        let [_, tx_bytes, _, _, hold_ps, _, marks, _, notes, _, _, drops] = bin.counts;
        self.tx_bytes += tx_bytes;
        self.hold_ps = self.hold_ps.max(hold_ps);
        self.queue += bin.out.mean(length_ps);
        self.marks += marks;
        self.notes += notes;
        self.drops += drops;
    }
}

/// A snapshot in JSON: the values of its fields, in their order.
type PortSnapshotTuple = (End, u64, u64, u64, u64, u64, u64);

impl From<PortSnapshot> for PortSnapshotTuple {
    fn from(port: PortSnapshot) -> PortSnapshotTuple {
        let PortSnapshot { at, tx_bytes, hold_ps, queue, marks, notes, drops } = port;
        (at, tx_bytes, hold_ps, queue, marks, notes, drops)
    }
}
