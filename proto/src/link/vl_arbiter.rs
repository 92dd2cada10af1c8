//! The VL arbiter: two weighted tables, high priority before low priority up to a limit.
//!
//! An entry is served until its weight is used up, rounded up to a whole packet; an entry of weight
//! zero is skipped. The high table may send as many octets as the limit allows, then the low table
//! gets one packet if it has one. Only lanes with a packet ready and credits are considered.
//!
//! Source: IBTA Vol 1, 7.6.9 (weights in 64-octet units, limit in 4096-octet units, 255 unlimited).

use crate::ids::VirtualLane;
use crate::link::config::ArbitrationConfig;
use crate::units::Bytes;

#[derive(Clone, Debug)]
struct Entry {
    lane: VirtualLane,
    weight: i64,
}

#[derive(Clone, Debug)]
struct Table {
    entries: Vec<Entry>,
    current: usize,
    /// Octets that the current entry may still send; it keeps its turn while this is positive.
    left: i64,
}

/// The arbiter of one port.
#[derive(Clone, Debug)]
pub struct VlArbiter {
    high: Table,
    low: Table,
    /// `None` if the high table has no limit.
    high_limit: Option<i64>,
    /// Octets that the high table may still send before the low table gets a packet.
    high_left: i64,
}

/// The table entry of a choice, for [`VlArbiter::charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The lane chosen.
    pub lane: VirtualLane,
    high: bool,
    entry: usize,
}

impl Table {
    fn new(entries: &[(u8, u8)], lanes: u8) -> Table {
        let entries: Vec<Entry> = entries
            .iter()
            .filter(|(lane, weight)| *weight > 0 && *lane < lanes)
            .map(|(lane, weight)| Entry {
                lane: VirtualLane::truncate(*lane),
                weight: i64::from(*weight) * 64,
            })
            .collect();
        let left = entries.first().map_or(0, |entry| entry.weight);
        Table { entries, current: 0, left }
    }

    fn choose(&self, eligible: u16) -> Option<usize> {
        let n = self.entries.len();
        let first = (self.current + usize::from(self.left <= 0)).min(n);
        (first..n)
            .chain(0..first)
            .find(|index| eligible & 1 << self.entries[*index].lane.get() != 0)
    }

    fn charge(&mut self, entry: usize, size: i64) {
        if entry != self.current || self.left <= 0 {
            self.current = entry;
            self.left = self.entries[entry].weight;
        }
        self.left -= size;
    }
}

impl VlArbiter {
    /// An arbiter over the first `lanes` data lanes.
    pub fn new(config: &ArbitrationConfig, lanes: u8) -> VlArbiter {
        let high_limit = match config.high_limit {
            255 => None,
            // A limit of zero is used up by one packet, of whatever size.
            n => Some((i64::from(n) * 4096).max(1)),
        };
        VlArbiter {
            high: Table::new(&config.high, lanes),
            low: Table::new(&config.low, lanes),
            high_limit,
            high_left: high_limit.unwrap_or(0),
        }
    }

    /// The lane to serve among `eligible` (bit n is VLn), if any of its tables names one.
    pub fn choose(&self, eligible: u16) -> Option<Choice> {
        let low = self.low.choose(eligible);
        let low_is_due = self.high_limit.is_some() && self.high_left <= 0;
        if !(low_is_due && low.is_some())
            && let Some(entry) = self.high.choose(eligible)
        {
            return Some(Choice { lane: self.high.entries[entry].lane, high: true, entry });
        }
        low.map(|entry| Choice { lane: self.low.entries[entry].lane, high: false, entry })
    }

    /// The chosen lane sent a packet of `size`.
    pub fn charge(&mut self, choice: Choice, size: Bytes) {
        let octets = size.get() as i64;
        if choice.high {
            self.high.charge(choice.entry, octets);
            self.high_left -= octets;
        } else {
            self.low.charge(choice.entry, octets);
            self.high_left = self.high_limit.unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests;
