//! What a recorder tells of a bin while the run still lasts, if somebody listens.
//!
//! Listening costs a worker one sum over its ports a bin and never a wait: what a slow listener has not
//! taken yet is enough, and further bins are left out for it. The recording itself misses nothing.

use crate::recorder::bins::{PortBin, Slot};
use crate::wiring::End;
use serde::{Deserialize, Serialize};

/// Bins that may wait for a slow listener.
pub const WAITING_MAX: usize = 256;

/// One bin of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinSnapshot {
    /// When.
    pub slot: Slot,
    /// Every port of the worker's devices.
    pub ports: Vec<PortSnapshot>,
}

/// One port over one bin, all lanes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(End, [u64; 6])", into = "(End, [u64; 6])")]
pub struct PortSnapshot {
    /// Where.
    pub at: End,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Time in which a ready frame was forbidden to leave, on the lane where that was longest.
    pub hold_ps: u64,
    /// Octets waiting to leave, the mean over the bin.
    pub queue: u64,
    /// Frames marked.
    pub marks: u64,
    /// Notifications received.
    pub notes: u64,
    /// Frames lost.
    pub drops: u64,
}

impl PortSnapshot {
    /// A port at which nothing happened.
    pub const fn idle(at: End) -> PortSnapshot {
        PortSnapshot { at, tx_bytes: 0, hold_ps: 0, queue: 0, marks: 0, notes: 0, drops: 0 }
    }

    /// Takes in one lane's bin of `length_ps`.
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

impl From<(End, [u64; 6])> for PortSnapshot {
    fn from((at, [tx_bytes, hold_ps, queue, marks, notes, drops]): (End, [u64; 6])) -> Self {
        PortSnapshot { at, tx_bytes, hold_ps, queue, marks, notes, drops }
    }
}

impl From<PortSnapshot> for (End, [u64; 6]) {
    fn from(port: PortSnapshot) -> Self {
        let PortSnapshot { at, tx_bytes, hold_ps, queue, marks, notes, drops } = port;
        (at, [tx_bytes, hold_ps, queue, marks, notes, drops])
    }
}
