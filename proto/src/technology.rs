//! The link technology of a fabric: InfiniBand or Ethernet.

use serde::{Deserialize, Serialize};

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
