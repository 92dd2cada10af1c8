//! Answers to calls, and why a call is refused.

use crate::attributes::{Handle, QpAttributes};
use crate::octets::Octets;
use crate::pattern::Difference;
use crate::runs::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The agent, to `hello`.
    Hello {
        /// [`crate::VERSION`].
        version: u32,
        /// What executes the verbs.
        agent: String,
        /// Names of the devices.
        devices: Vec<String>,
    },
    /// It is done.
    Done,
    /// The new object.
    Object {
        /// Its handle.
        handle: Handle,
    },
    /// The new memory region.
    Memory {
        /// Its handle.
        handle: Handle,
        /// Virtual address for peers.
        address: u64,
        /// R_Key.
        rkey: u32,
    },
    /// The new queue pair.
    Qp {
        /// Its handle.
        handle: Handle,
        /// Its number on the wire.
        number: u32,
    },
    /// A port.
    Port(Port),
    /// A GID.
    Gid {
        /// The GID.
        gid: Ipv6Addr,
        /// Its kind as the system names it, such as `RoCE v2`; empty if unknown.
        kind: String,
    },
    /// Counters by name.
    Counters(BTreeMap<String, u64>),
    /// Attributes of a queue pair.
    Attributes(QpAttributes),
    /// Completions taken from a queue, in their order.
    Completions(Vec<Run>),
    /// The first difference, if there is one.
    Checked {
        /// Where it is.
        difference: Option<Difference>,
    },
    /// A checksum.
    Checksum {
        /// CRC-32 of IEEE 802.3.
        crc32: u32,
    },
    /// Octets of memory.
    Octets(Octets),
}

/// The state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Whether it is active.
    pub is_active: bool,
    /// Code of the MTU in use: 1 to 5 for 256 to 4096 octets.
    pub active_mtu: u8,
    /// Code of the largest MTU.
    pub max_mtu: u8,
    /// Entries of the GID table.
    pub gids: u32,
    /// The largest message in octets.
    pub message_max: u32,
}

/// Why a call is refused. Nothing has changed, unless the text says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name}: {text}")]
pub struct Refusal {
    /// A word for programs: those of [`Refusal`]'s functions, or the system's name of an error such as `EINVAL`.
    pub name: String,
    /// A sentence for people.
    pub text: String,
}

impl Refusal {
    /// A refusal with this word.
    pub fn new(name: &str, text: impl Into<String>) -> Refusal {
        Refusal { name: name.to_owned(), text: text.into() }
    }

    /// `invalid`: the call has no sense.
    pub fn invalid(text: impl Into<String>) -> Refusal {
        Refusal::new("invalid", text)
    }

    /// `unknown`: there is no such object, or it is of another kind.
    pub fn unknown(what: &str, handle: Handle) -> Refusal {
        Refusal::new("unknown", format!("object {handle} is not a {what}"))
    }

    /// `limit`: the agent does not have as much.
    pub fn limit(text: impl Into<String>) -> Refusal {
        Refusal::new("limit", text)
    }

    /// `unsupported`: the agent cannot do that.
    pub fn unsupported(text: impl Into<String>) -> Refusal {
        Refusal::new("unsupported", text)
    }
}
