//! The input of a memory model: the ports of a switch, and the configuration.

use crate::config::MemoryConfig;
use proto::units::{BitRate, Bytes, Duration};

/// The properties of a port that a memory model needs.
#[derive(Clone, Copy, Debug)]
pub struct IngressPort {
    /// The configured input buffer.
    pub buffer: Bytes,
    /// The line rate.
    pub rate: BitRate,
    /// The one-way delay of the cable.
    pub delay: Duration,
    /// Octets of the largest frame.
    pub full_frame: Bytes,
    /// Lossless priorities, whose senders can be paused, bit n for priority n.
    pub lossless: u8,
}

/// The switch that a memory model serves.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// By port.
    pub ingress: &'a [IngressPort],
    /// The configuration.
    pub numbers: &'a MemoryConfig,
}

/// `count` ports of 10 Gb/s with buffers of 150 KB, priority 3 lossless. For tests.
#[cfg(test)]
pub(crate) fn ingress(count: usize) -> Vec<IngressPort> {
    let ingress = IngressPort {
        buffer: Bytes::new(150_000),
        rate: BitRate::gbps(10),
        delay: Duration::from_ns(500),
        full_frame: Bytes::new(1518),
        lossless: 1 << 3,
    };
    vec![ingress; count]
}
