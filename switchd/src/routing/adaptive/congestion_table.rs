//! The congestion table: reported congestion by destination and port.
//!
//! Only congested ways have an entry, so memory grows with congestion, not with destinations times ports. A
//! local entry comes from a queue of this switch and ends when that queue has fallen; a remote entry ends
//! a time-out after its last notification. Source: docs/spec/algorithms.md 6.

use crate::port_set::PortSet;
use proto::ids::{Lid, PortNumber};
use proto::units::{Duration, Instant};

/// A destination and a port towards it.
pub type Way = (Lid, PortNumber);

/// One congested way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The entry comes from a queue of this switch, and no other switch has reported the way since.
    pub local: bool,
    /// The number of notifications.
    pub feedback_count: u32,
    /// The sum of their severities, each multiplied by its position in their order.
    pub feedback: u32,
    /// When a remote entry ends.
    pub expires: Instant,
}

/// The congested ways of a switch.
#[derive(Clone, Debug)]
pub struct CongestionTable {
    /// The lifetime of a remote entry after its last notification.
    timeout: Duration,
    /// In ascending order of ways.
    entries: Vec<(Way, Entry)>,
    /// When the next remote entry ends.
    next: Instant,
    local_ports: PortSet,
}

impl CongestionTable {
    /// An empty table whose remote entries last for `timeout`.
    pub fn new(timeout: Duration) -> CongestionTable {
        let (entries, next, local_ports) = (Vec::new(), Instant::NEVER, PortSet::EMPTY);
        CongestionTable { timeout, entries, next, local_ports }
    }

    /// Whether no way is congested.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Records a notification of `severity` about `way`. A local entry becomes remote when another switch
    /// reports the way; a remote entry stays remote. After n notifications of severity f, feedback is
    /// f·n(n + 1)/2.
    pub fn note(&mut self, way: Way, severity: u32, is_local: bool, now: Instant) {
        self.expire(now);
        let index = match self.find(way) {
            Ok(index) => index,
            Err(index) => {
                let (feedback_count, feedback, expires) = (0, 0, Instant::NEVER);
                let entry = Entry { local: true, feedback_count, feedback, expires };
                self.entries.insert(index, (way, entry));
                index
            }
        };
        let entry = &mut self.entries[index].1;
        if entry.local {
            entry.local = is_local;
        }
        entry.feedback_count = entry.feedback_count.saturating_add(1);
        let weighted = entry.feedback_count.saturating_mul(severity);
        entry.feedback = entry.feedback.saturating_add(weighted);
        if !entry.local {
            entry.expires = now + self.timeout;
        }
        self.update_summary();
    }

    /// The first of `legal` without congestion on the way to `destination`; if all have some, the port with the
    /// least feedback.
    #[inline]
    pub fn choose(&self, destination: Lid, legal: &[PortNumber]) -> PortNumber {
        let first = self.entries.partition_point(|((other, _), _)| *other < destination);
        let rows = &self.entries[first..];
        let count = rows.iter().take_while(|((other, _), _)| *other == destination).count();
        let rows = &rows[..count];
        let feedback = |port: PortNumber| -> u32 {
            let row = rows.iter().find(|((_, other), _)| *other == port);
            row.map_or(0, |(_, entry)| entry.feedback.max(1))
        };
        let mut best = (legal[0], feedback(legal[0]));
        for port in &legal[1..] {
            if best.1 == 0 {
                break;
            }
            let other = feedback(*port);
            if other < best.1 {
                best = (*port, other);
            }
        }
        best.0
    }

    /// Whether there is an entry for that way.
    pub fn is_congested(&self, destination: Lid, port: PortNumber) -> bool {
        self.find((destination, port)).is_ok()
    }

    /// The numbers of remote and local entries for a port.
    pub fn entries_of(&self, port: PortNumber) -> (u64, u64) {
        let here = self.entries.iter().filter(|((_, other), _)| *other == port);
        here.fold((0, 0), |(remote, local), (_, entry)| match entry.local {
            true => (remote, local + 1),
            false => (remote + 1, local),
        })
    }

    /// Removes every expired remote entry.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        if self.next <= now {
            self.entries.retain(|(_, entry)| entry.local || entry.expires > now);
            self.update_summary();
        }
    }

    /// Removes every local entry for `port`.
    pub fn clear_local(&mut self, port: PortNumber) {
        self.entries.retain(|((_, other), entry)| !entry.local || *other != port);
        self.update_summary();
    }

    /// Ports with local entries.
    pub fn local_ports(&self) -> PortSet {
        self.local_ports
    }

    /// When the next remote entry ends.
    pub fn next_expiry(&self) -> Instant {
        self.next
    }

    fn find(&self, way: Way) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&way, |(other, _)| *other)
    }

    /// Recomputes the next expiry and the ports with local entries.
    fn update_summary(&mut self) {
        let remote = self.entries.iter().filter(|(_, entry)| !entry.local);
        self.next = remote.map(|(_, entry)| entry.expires).min().unwrap_or(Instant::NEVER);
        self.local_ports = PortSet::EMPTY;
        for ((_, port), _) in self.entries.iter().filter(|(_, entry)| entry.local) {
            self.local_ports.insert(*port);
        }
    }
}

#[cfg(test)]
mod tests;
