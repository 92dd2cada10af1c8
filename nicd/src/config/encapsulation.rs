//! The wire format of a NIC's packets, and the settings of RoCEv2.

use proto::ids::{Dscp, ServiceLevel};
use proto::params::{FromValue, Kind, Value};
use proto::units::{BitRate, Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// The wire format of a NIC's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// InfiniBand: LRH to VCRC.
    #[default]
    Infiniband,
    /// RoCEv2 on Ethernet.
    Roce(RoceConfig),
}

/// The settings of a RoCEv2 NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoceConfig {
    /// The IP version of packets that this NIC sends.
    pub version: RoceVersion,
    /// The DSCP of data and acknowledgements: sixteen entries, indexed by service level.
    pub dscp: Vec<Dscp>,
    /// The DSCP of CNPs.
    pub cnp_dscp: Dscp,
    /// Frames from a rate limiter carry a CN-TAG whose flow identifier names the limiter. Source: IEEE
    /// 802.1Q, 33.2 (CN-TAG).
    #[serde(default)]
    pub cn_tags: bool,
    /// A host that is slower than its line; without it frames leave the receive buffer on arrival.
    #[serde(default)]
    pub drain: Option<DrainConfig>,
    /// A fault: the NIC pauses its peer and never resumes it (PFC storm).
    #[serde(default)]
    pub storm: Option<StormConfig>,
    /// Resequencing of frames that arrive ahead of their turn; without it they go on in order of arrival.
    #[serde(default)]
    pub resequence: Option<ResequenceConfig>,
}

proto::params! {
    /// The parameters of `[fabric.nic]` for RoCEv2 packets.
    pub struct RoceParams {
        /// The internet protocol below UDP.
        roce: RoceVersion = RoceVersion::KIND, Default("v2-ipv4");
        /// DSCP of data and acknowledgements, one for all or one for each of the sixteen service levels.
        dscp: Option<DscpMap> = Either(&[DSCP, Kind::List(&DSCP)]), Else("class selector n for service levels 1 to 7, 24 for the others");
        /// DSCP of CNPs.
        cnp_dscp: Dscp = DSCP, Default("48");
        /// Whether frames from a rate limiter have a CN-TAG with its number as flow id.
        cn_tags: bool = Flag, Default("false"), "IEEE 802.1Q, 33.2";
    }
}

const DSCP: Kind = Kind::Whole(0, 63);

/// The DSCP of each service level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpMap(pub Vec<Dscp>);

impl FromValue for DscpMap {
    fn from_value(value: &Value) -> Option<DscpMap> {
        let all =
            || Dscp::from_value(value).map(|dscp| vec![dscp; usize::from(ServiceLevel::MAX) + 1]);
        Vec::from_value(value).or_else(all).map(DscpMap)
    }
}

proto::params! {
    /// Resequencing of the frames of one flow that took different paths.
    #[derive(Copy, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ResequenceConfig {
        /// The reorder window, in frames: a frame this far ahead of the expected one, or further, is not held.
        window: u32 = Whole(2, 1 << 16), Default("1024");
        /// How long the receiver waits for a missing frame; four times the longest delay of a path is enough.
        timeout: Duration = Span, Default("10 ms");
    }
}

/// How a slow host drains the receive buffer. The capacity of the buffer is the link's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainConfig {
    /// The drain rate; frames leave in order of arrival.
    pub rate: BitRate,
    /// A priority with more octets than this in the buffer is paused.
    pub xoff: Bytes,
    /// A paused priority resumes when it has no more octets than this in the buffer.
    pub xon: Bytes,
}

/// A pause without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StormConfig {
    /// When the storm begins.
    pub start: Instant,
    /// The paused priorities: bit n is priority n.
    pub priorities: u8,
}

proto::words! {
    /// The internet protocol below UDP. A NIC receives both.
    pub enum RoceVersion {
        /// IPv4.
        V2Ipv4 = "v2-ipv4",
        /// IPv6.
        V2Ipv6 = "v2-ipv6",
    }
}

impl Encapsulation {
    /// The settings of RoCE; `None` on InfiniBand.
    pub(crate) fn roce(&self) -> Option<&RoceConfig> {
        match self {
            Encapsulation::Infiniband => None,
            Encapsulation::Roce(roce) => Some(roce),
        }
    }

    /// Resequencing, if it is configured.
    pub fn resequence(&self) -> Option<ResequenceConfig> {
        self.roce()?.resequence
    }
}

impl RoceConfig {
    /// The DSCP of data with the default service level: class selector 3.
    pub const DATA: Dscp = Dscp::truncate(24);
    /// The usual DSCP of CNPs: class selector 6.
    pub const CNP: Dscp = Dscp::truncate(48);
}

impl Default for RoceConfig {
    /// IPv4. Service levels 1 to 7 map to the class selector of the same number, the others to
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
