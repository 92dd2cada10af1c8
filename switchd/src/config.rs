//! What a switch is told before it starts.

use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber};
use proto::link::LinkConfig;
use serde::{Deserialize, Serialize};

/// One switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// The node's name.
    pub name: String,
    /// The scenario's seed; the switch's streams come from it and the name.
    pub seed: u64,
    /// The switch's own address.
    pub lid: Lid,
    /// Which memory model, and how it is read.
    pub memory: MemoryConfig,
    /// The service level to virtual lane map: sixteen entries for every pair of ports alike, or
    /// sixteen for each pair, by input and then by output. 15 discards the level.
    pub sl2vl: Vec<u8>,
    /// Congestion control.
    pub scheme: SchemeConfig,
    /// By port, index 0 is port 1.
    pub ports: Vec<PortConfig>,
    /// Linear forwarding table: runs of LIDs and the port they leave by.
    pub routes: Vec<Route>,
    /// Multicast forwarding table.
    pub multicast: Vec<MulticastRoute>,
}

/// One port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// The port leads to a NIC.
    pub faces_adapter: bool,
    /// The link.
    pub link: LinkConfig,
}

/// A memory model and its reading discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// A row of the registry of memory models ("per-input").
    pub kind: String,
    /// Whether several outputs may read one input at once.
    pub read: Read,
}

/// How many outputs may take from one input buffer at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// Any number.
    Multi,
    /// One.
    Single,
}

/// LIDs `first` to `last` leave by `port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// First LID of the run.
    pub first: Lid,
    /// Last LID of the run, included.
    pub last: Lid,
    /// The port they leave by.
    pub port: PortNumber,
}

/// A multicast LID and the ports its copies leave by (never the one they came in on).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastRoute {
    /// The group's LID.
    pub lid: Lid,
    /// The ports.
    pub ports: Vec<PortNumber>,
}
