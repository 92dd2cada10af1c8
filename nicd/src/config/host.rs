//! The configuration of the host beside the channel adapter: its services, and the hosts that it sends to.

use proto::ids::Lid;
use proto::units::Bytes;
use serde::{Deserialize, Serialize};

/// The host beside the channel adapter: it answers ARP, neighbour discovery and ping, and serves connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// The services, each on a port of its own.
    pub serve: Vec<ServeConfig>,
    /// Foreign hosts that traffic items may name as receivers.
    #[serde(default)]
    pub remotes: Vec<RemoteConfig>,
}

/// A foreign host that receives traffic: each class connects one queue pair to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteConfig {
    /// The number of its address in the plan (`proto::wire::ethernet::plan`); no adapter has it.
    pub lid: Lid,
    /// The class of the connection.
    pub class: u8,
    /// The port on which a program there accepts connections.
    pub port: u16,
    /// The path MTU to it: 256, 512, 1024, 2048 or 4096 octets, not above the link's.
    pub mtu: Bytes,
}

proto::words! {
    /// The program that a service imitates.
    pub enum ServiceKind {
        /// The server of `rping`: reads the peer's buffer and writes it back.
        Rping = "rping",
        /// The server of the bandwidth tests of `perftest` with `-R`.
        Perftest = "perftest",
    }
}

/// A service of this NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeConfig {
    /// The program.
    pub kind: ServiceKind,
    /// The port of the connection manager.
    pub port: u16,
}

impl ServiceKind {
    /// The port on which the program listens unless told otherwise.
    pub const fn port(self) -> u16 {
        match self {
            ServiceKind::Rping => 7174,
            ServiceKind::Perftest => 18515,
        }
    }
}
