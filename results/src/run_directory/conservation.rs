//! Conservation of frames: every one is delivered, buffered or dropped with one reason.

use proto::counters::{DeviceReading, Drops};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames that only cables can count.
#[derive(Clone, Debug, Default)]
pub struct OnCables {
    /// End-to-end frames under way at the stop.
    pub under_way: u64,
    /// Frames that ended on a cable, by reason.
    pub dropped: Drops,
    /// Frames that a cable duplicated, or that came from outside.
    pub duplicated: u64,
    /// Frames that left the fabric by attached interfaces.
    pub handed_over: u64,
}

/// End-to-end frames, counted where they begin, end and wait (docs/spec/design.md 5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Frames that were sent first.
    pub injected: u64,
    /// Frames that were delivered.
    pub delivered: u64,
    /// Frames in a device or on a cable at the stop.
    pub buffered: u64,
    /// Frames that ended otherwise, by reason, zeros included.
    pub dropped: BTreeMap<String, u64>,
    /// Messages withdrawn unsent.
    pub withdrawn: u64,
    /// Frames that stay on one link.
    pub link_local: u64,
}

impl Conservation {
    /// The balance when devices and cables were read.
    pub fn of<'a>(
        readings: impl IntoIterator<Item = &'a DeviceReading>,
        cables: &OnCables,
    ) -> Conservation {
        let mut sum = Conservation {
            injected: cables.duplicated,
            delivered: cables.handed_over,
            buffered: cables.under_way,
            ..Conservation::default()
        };
        let mut drops = cables.dropped.clone();
        for reading in readings {
            sum.injected += reading.balance.injected;
            sum.delivered += reading.balance.delivered;
            sum.buffered += reading.balance.buffered;
            sum.withdrawn += reading.balance.withdrawn;
            sum.link_local += reading.balance.link_local;
            reading.ports.iter().for_each(|port| drops.merge(&port.drops));
        }
        let end_to_end = drops.iter().filter(|(reason, _)| reason.is_end_to_end());
        sum.dropped = end_to_end.map(|(reason, n)| (reason.name().to_owned(), n)).collect();
        sum
    }

    /// True if the balance closes: no frame is missing.
    pub fn closes(&self) -> bool {
        self.injected == self.delivered + self.buffered + self.dropped.values().sum::<u64>()
    }
}
