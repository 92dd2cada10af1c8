//! Which packets a NIC speaks, and what those of RoCEv2 say of themselves to routers and switches.

use proto::ids::{Dscp, ServiceLevel};
use proto::units::{BitRate, Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// The dialect of a NIC's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// InfiniBand: LRH to VCRC.
    #[default]
    Infiniband,
    /// RoCEv2 on Ethernet.
    Roce(RoceConfig),
}

/// How RoCEv2 packets go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoceConfig {
    /// Over which internet protocol.
    pub version: RoceVersion,
    /// The DSCP of data and acknowledgements by service level, sixteen entries.
    pub dscp: Vec<Dscp>,
    /// The DSCP of CNPs.
    pub cnp_dscp: Dscp,
    /// Frames from a rate limiter have a CN-TAG: its number is the flow id.
    #[serde(default)]
    pub cn_tags: bool,
    /// A host slower than its line; without one, each frame is taken as it arrives.
    #[serde(default)]
    pub drain: Option<DrainConfig>,
    /// A fault: the NIC asks its peer to pause for ever.
    #[serde(default)]
    pub storm: Option<StormConfig>,
    /// Frames that come ahead of their turn wait for it; without it they go on as they come.
    #[serde(default)]
    pub resequence: Option<ResequenceConfig>,
}

/// How frames of one flow that have come by several ways are put into order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResequenceConfig {
    /// No frame so far ahead of what is expected, or further, is held.
    pub window: u32,
    /// How long a missing frame is waited for.
    pub timeout: Duration,
}

/// How a slow host takes frames off the receive buffer, whose size is the link's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainConfig {
    /// The rate at which octets leave the buffer, in order of arrival.
    pub rate: BitRate,
    /// With more than this in the buffer a priority is paused.
    pub xoff: Bytes,
    /// With no more than this it goes on.
    pub xon: Bytes,
}

/// Pause without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StormConfig {
    /// From when on.
    pub start: Instant,
    /// Bit n: priority n.
    pub priorities: u8,
}

/// What RoCEv2 packets go over. A NIC receives both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoceVersion {
    /// IPv4.
    #[serde(rename = "v2-ipv4")]
    V2Ipv4,
    /// IPv6.
    #[serde(rename = "v2-ipv6")]
    V2Ipv6,
}

impl Encapsulation {
    /// The slow host, if there is one.
    pub fn drain(&self) -> Option<DrainConfig> {
        match self {
            Encapsulation::Infiniband => None,
            Encapsulation::Roce(roce) => roce.drain,
        }
    }

    /// How frames are put into order, if they are.
    pub fn resequence(&self) -> Option<ResequenceConfig> {
        match self {
            Encapsulation::Infiniband => None,
            Encapsulation::Roce(roce) => roce.resequence,
        }
    }

    /// The storm, if there is one.
    pub fn storm(&self) -> Option<StormConfig> {
        match self {
            Encapsulation::Infiniband => None,
            Encapsulation::Roce(roce) => roce.storm,
        }
    }
}

impl RoceConfig {
    /// The DSCP of data where nobody has chosen a service level: class selector 3.
    pub const DATA: Dscp = Dscp::truncate(24);
    /// The DSCP of CNPs by habit: class selector 6.
    pub const CNP: Dscp = Dscp::truncate(48);
}

impl Default for RoceConfig {
    /// Over IPv4. Service level n from 1 to 7 is class selector n; the others are
    /// [`RoceConfig::DATA`].
    fn default() -> RoceConfig {
        let dscp = |level: u8| match level {
            1..=7 => Dscp::truncate(level << 3),
            _ => RoceConfig::DATA,
        };
        RoceConfig {
            version: RoceVersion::V2Ipv4,
            dscp: (0..=ServiceLevel::MAX).map(dscp).collect(),
            cnp_dscp: RoceConfig::CNP,
            cn_tags: false,
            drain: None,
            storm: None,
            resequence: None,
        }
    }
}
