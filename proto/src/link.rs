//! One end of a link: credits, arbitration between lanes, and the line itself.
//!
//! Both devices own one [`port::LinkPort`] a port. It asks its owner what could leave
//! ([`port::LaneSource`]) and answers with what does; it never looks into queues itself. Losslessness
//! is a pair of halves: the transmit gate (may this frame leave on this lane now?) and the receive
//! meter (what may the peer still send?), which speak through control frames of their own.

use crate::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

pub mod credit;
pub mod port;
pub mod serializer;
pub mod vl_arbiter;

/// Wire size of one full data frame: LRH, BTH, `mtu` octets of payload, ICRC and VCRC.
pub const fn full_frame(mtu: Bytes) -> Bytes {
    Bytes::new(8 + 12 + mtu.get() + 4 + 2)
}

/// What a port is told about its link and itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Data rate of the link.
    pub rate: BitRate,
    /// Physical lanes: with the rate they give the symbol time (8 data bits of one lane).
    pub lanes: u8,
    /// Operational data lanes, VL0 to VL(n−1), 1 to 15.
    pub data_lanes: u8,
    /// Largest payload of one packet.
    pub mtu: Bytes,
    /// Input buffer of the port, split evenly over the data lanes.
    pub buffer: Bytes,
    /// Who goes first among lanes.
    pub arbitration: ArbitrationConfig,
}

/// The two tables of the VL arbiter. Source: IBTA Vol 1, 7.6.9.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArbitrationConfig {
    /// High-priority table: (lane, weight in 64-octet units), weight 0 skips the entry.
    pub high: Vec<(u8, u8)>,
    /// Low-priority table.
    pub low: Vec<(u8, u8)>,
    /// Octets the high table may send before the low one gets a chance, in 4096-octet units;
    /// 0 is one packet, 255 is no limit.
    pub high_limit: u8,
}

impl Default for ArbitrationConfig {
    /// Every data lane once in the low table with weight 4, nothing high: the low table of the
    /// subnet manager's defaults, without its high entry, so that equal lanes are served equally.
    fn default() -> ArbitrationConfig {
        ArbitrationConfig {
            high: Vec::new(),
            low: (0..15).map(|vl| (vl, 4)).collect(),
            high_limit: 0,
        }
    }
}
