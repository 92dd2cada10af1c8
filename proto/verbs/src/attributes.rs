//! Attributes of queue pairs and addresses.

use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;

/// An object of an agent: a device, protection domain, memory region, completion queue, queue pair or address handle.
pub type Handle = u32;

/// The service of a queue pair. Source: IBTA Vol 1, 3.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// A state of a queue pair. Source: IBTA Vol 1, 10.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Made, or made again.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// The send queue is drained.
    Sqd,
    /// The send queue has an error.
    Sqe,
    /// Work is flushed.
    Error,
}

/// What peers may do. Local writing is always permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Access {
    /// RDMA WRITE.
    pub write: bool,
    /// RDMA READ.
    pub read: bool,
    /// Atomics.
    pub atomic: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Access = Access { write: true, read: true, atomic: true };
}

/// An address vector of RoCE. Source: IBTA Vol 1, 11.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressVector {
    /// The peer's GID. IPv4 addresses are mapped (`::ffff:198.18.0.1`).
    pub gid: Ipv6Addr,
    /// Index of the own GID, which decides about address and version of RoCE.
    #[serde(default)]
    pub gid_index: u8,
    /// Hop limit or TTL.
    #[serde(default = "hops")]
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    #[serde(default)]
    pub traffic_class: u8,
    /// Flow label of IPv6, 20 bits.
    #[serde(default)]
    pub flow_label: u32,
    /// Service level.
    #[serde(default)]
    pub service_level: u8,
}

fn hops() -> u8 {
    64
}

/// Attributes of a queue pair to be set: those that are present. A query fills what the agent knows. Numbers have the
/// codes of the standard. Source: IBTA Vol 1, 11.2.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QpAttributes {
    /// The next state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Index of the P_Key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkey_index: Option<u16>,
    /// Number of the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// What the peer may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Q_Key of a datagram queue pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qkey: Option<u32>,
    /// Path MTU: 1 to 5 for 256 to 4096 octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u8>,
    /// The peer's queue pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<u32>,
    /// The first PSN that is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_psn: Option<u32>,
    /// The first PSN that is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_psn: Option<u32>,
    /// The peer's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<AddressVector>,
    /// READs and atomics that the peer may have in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder_resources: Option<u8>,
    /// READs and atomics in flight to the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator_depth: Option<u8>,
    /// Code of the wait that RNR NAKs ask for, 0 to 31.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rnr_timer: Option<u8>,
    /// Local ACK timeout: 4.096 µs · 2^code, 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u8>,
    /// Retransmissions without progress, 0 to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u8>,
    /// Retries after RNR NAKs, 0 to 6, 7 without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rnr_retry: Option<u8>,
}

impl QpAttributes {
    /// To INIT: P_Key, port 1, and what the peer may do.
    pub fn init(access: Access) -> QpAttributes {
        QpAttributes {
            state: Some(State::Init),
            pkey_index: Some(0),
            port: Some(1),
            access: Some(access),
            ..QpAttributes::default()
        }
    }

    /// To INIT for a datagram queue pair.
    pub fn init_datagram(qkey: u32) -> QpAttributes {
        QpAttributes { qkey: Some(qkey), access: None, ..QpAttributes::init(Access::default()) }
    }

    /// To the next state, without anything else.
    pub fn to(state: State) -> QpAttributes {
        QpAttributes { state: Some(state), ..QpAttributes::default() }
    }
}
