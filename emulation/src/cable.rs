//! Cables: how a frame that leaves one port reaches another.
//!
//! A cable is a link of the wiring, of one of several kinds. Between devices of one worker it may be memory
//! ([`memory`]), which passes the frame on without a copy. All other frames go through the process's datagram
//! socket ([`udp`] or [`unix`]), where the [`shim`] identifies the link; or each cable is a pair of interfaces
//! ([`interface`]) between namespaces ([`namespace`]) with a [`packet_socket`] at either end, where Ethernet
//! frames need no shim.
//!
//! ```text
//!  device ─ departure ─ impairment ─┬─ memory ─────────────────────────────┬─ until `arrived` ─ device
//!                                   └─ outbox ─ socket ~~~ socket ─ inbox ─┘
//! ```
//!
//! * The [`outbox`] puts all frames of one flush for one process into one datagram, because wake-ups and system
//!   calls cost more than frames.
//! * Every frame carries its stamp, the instant its last bit left. The receiver computes the arrival as stamp
//!   plus delay, not from when it read the socket, so the lateness of one hop is not inherited by the next.
//! * The emulated wire is the only queue: sockets are drained eagerly, and a frame that is not yet due waits in
//!   a queue of the worker.
//! * The [`inbox`] verifies every record: what does not come from the configured peer of a known link in this
//!   run is counted by reason and discarded.

pub mod abstract_socket;
pub mod claim;
pub mod datagram;
pub mod exchange;
pub mod firewall;
pub mod host;
pub mod impairment;
pub mod inbox;
pub mod interface;
pub mod interface_info;
pub mod lines;
pub mod link_watch;
pub(crate) mod memory;
pub mod namespace;
pub mod outbox;
pub mod packet_socket;
pub mod peer_socket;
pub mod reconcile;
pub(crate) mod sequence;
pub mod shim;
mod socket_calls;
pub mod udp;
pub mod unix;

use proto::frame::{Frame, FrameKind};
use proto::params::{FromValue, Value};
use serde::{Deserialize, Serialize};

/// The sockets that carry frames between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// UDP.
    #[default]
    Udp,
    /// Unix datagrams.
    Unix,
    /// Packet sockets, one a port.
    Packet,
}

impl FromValue for Carrier {
    fn from_value(value: &Value) -> Option<Carrier> {
        match value.text()? {
            "udp" => Some(Carrier::Udp),
            "unix" => Some(Carrier::Unix),
            _ => None,
        }
    }
}

/// Frames counted by how far they go, for the conservation sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTally {
    /// Frames that cross more than one link: data, ACK, notifications.
    pub end_to_end: u64,
    /// Frames that end at the next port: credits, PAUSE, PFC.
    pub link_local: u64,
}

impl FrameTally {
    /// Counts one frame.
    pub fn count(&mut self, frame: &Frame) {
        self.count_octets(frame.kind, &frame.octets);
    }

    /// Counts one frame, given as octets.
    pub fn count_octets(&mut self, kind: FrameKind, octets: &[u8]) {
        if is_link_local(kind, octets) {
            self.link_local += 1;
        } else {
            self.end_to_end += 1;
        }
    }

    /// All frames.
    pub const fn total(self) -> u64 {
        self.end_to_end + self.link_local
    }

    /// The sum of both, by kind.
    #[must_use]
    pub const fn plus(self, other: FrameTally) -> FrameTally {
        FrameTally {
            end_to_end: self.end_to_end + other.end_to_end,
            link_local: self.link_local + other.link_local,
        }
    }

    /// The difference of both, by kind and at least zero.
    #[must_use]
    pub(crate) const fn minus(self, other: FrameTally) -> FrameTally {
        FrameTally {
            end_to_end: self.end_to_end.saturating_sub(other.end_to_end),
            link_local: self.link_local.saturating_sub(other.link_local),
        }
    }
}

/// Whether no device forwards the frame: InfiniBand link packets and MAC control frames.
///
/// Source: IBTA Vol 1, 7.9.4; IEEE 802.3, 31.4.1.3 (EtherType 88-08).
pub fn is_link_local(kind: FrameKind, octets: &[u8]) -> bool {
    const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
    match kind {
        FrameKind::Infiniband => false,
        FrameKind::InfinibandLink => true,
        FrameKind::Ethernet => octets.get(12..14) == Some(&MAC_CONTROL),
    }
}
