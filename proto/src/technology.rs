//! The link technology of a fabric: InfiniBand or Ethernet.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The link technology of a port, and of the whole fabric: one fabric never mixes both.
///
/// It decides frame formats, link-level flow control (credits or PAUSE and PFC) and the transport's encapsulation
/// (IBA packets or RoCEv2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technology {
    /// InfiniBand: packets with an LRH, and link packets that carry credits (IBTA Vol 1).
    Infiniband,
    /// Ethernet: IEEE 802.3 frames, with PAUSE and PFC.
    Ethernet,
}

impl fmt::Display for Technology {
    /// The technology's word in scenario files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Technology::Infiniband => "infiniband",
            Technology::Ethernet => "ethernet",
        })
    }
}
