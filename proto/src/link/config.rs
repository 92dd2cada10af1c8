//! What a port is told about its link: rate, sizes, and what keeps it lossless.

use crate::ids::Priority;
use crate::link::outage::Outage;
use crate::units::{BitRate, Bytes, Duration};
use crate::wire::classify::PriorityMap;
use crate::wire::ethernet::{MacAddress, Pfc};
use crate::wire::project::ProjectTypes;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU8, NonZeroU16};

/// Wire size of one full data frame of InfiniBand: LRH, BTH, `mtu` octets of payload, ICRC and VCRC.
pub const fn full_frame(mtu: Bytes) -> Bytes {
    Bytes::new(8 + 12 + mtu.get() + 4 + 2)
}

/// What a port is told about its link and itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Data rate of the link.
    pub rate: BitRate,
    /// Largest payload of one packet: what the transport carries, and of a frame without one what
    /// follows its EtherType.
    pub mtu: Bytes,
    /// Input buffer of the port. With credits it is split evenly over the data lanes; with pause it
    /// belongs to whoever owns the port, and to all priorities.
    pub buffer: Bytes,
    /// What keeps the link lossless, and with it the technology.
    pub control: LinkControl,
}

/// What keeps a link lossless and who goes first on it: a row each for InfiniBand and Ethernet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkControl {
    /// InfiniBand.
    Credits(CreditConfig),
    /// Ethernet.
    Pause(PauseConfig),
}

impl LinkConfig {
    /// How many data lanes the link has: virtual lanes, or priorities.
    pub fn data_lanes(&self) -> u8 {
        match &self.control {
            LinkControl::Credits(credits) => credits.data_lanes,
            LinkControl::Pause(_) => Pfc::PRIORITIES as u8,
        }
    }

    /// Wire size of one full data frame. On Ethernet that is an untagged RoCEv2 packet over IPv4: MAC
    /// header, IPv4, UDP, BTH, `mtu` octets of payload, ICRC and FCS; unless the link is told another.
    pub fn full_frame(&self) -> Bytes {
        let roce = Bytes::new(14 + 20 + 8 + 12 + self.mtu.get() + 4 + 4);
        match &self.control {
            LinkControl::Credits(_) => full_frame(self.mtu),
            LinkControl::Pause(pause) => pause.full_frame.unwrap_or(roce),
        }
    }

    /// The wire size of a full data frame where the link is told one.
    pub fn told_frame(&self) -> Option<Bytes> {
        match &self.control {
            LinkControl::Credits(_) => None,
            LinkControl::Pause(pause) => pause.full_frame,
        }
    }
}

/// A link that credits keep lossless. Source: IBTA Vol 1, 7.9.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditConfig {
    /// Physical lanes: with the rate they give the symbol time (8 data bits of one lane).
    pub lanes: u8,
    /// Operational data lanes, VL0 to VL(n−1), 1 to 15.
    pub data_lanes: u8,
    /// Who goes first among lanes.
    pub arbitration: ArbitrationConfig,
}

impl Default for CreditConfig {
    /// Four physical lanes, one data lane.
    fn default() -> CreditConfig {
        CreditConfig { lanes: 4, data_lanes: 1, arbitration: ArbitrationConfig::default() }
    }
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

/// A link that pauses keep lossless. Source: IEEE 802.3, 31B and 31D; IEEE 802.1Q, 36 and 37.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseConfig {
    /// The port's own address: the source of its MAC control frames.
    pub address: MacAddress,
    /// In what words the two ends pause each other.
    pub mode: PauseMode,
    /// The priorities that this end sends PFC for.
    ///
    /// Shape: bit n is priority n.
    pub lossless: u8,
    /// The priorities for which a received PFC is obeyed.
    ///
    /// Shape: bit n is priority n.
    pub obeyed: u8,
    /// From a pause's arrival until it is obeyed; a frame that starts within it still goes.
    pub response: Duration,
    /// How long a pause that we send holds; zero would end it.
    ///
    /// Units: quanta of 512 bit times.
    pub pause_time: NonZeroU16,
    /// After which share of the pause time it is sent again while it is still wanted. From 100 on the
    /// peer speaks in between.
    ///
    /// Units: hundredths.
    pub refresh: NonZeroU8,
    /// Which priority a frame has.
    pub priorities: PriorityMap,
    /// Under which EtherTypes frames of this project go.
    #[serde(default)]
    pub project: ProjectTypes,
    /// Who goes first among priorities.
    pub scheduling: EtsConfig,
    /// What each frame takes of the line beyond DA to FCS: preamble and gap, where they count.
    pub overhead: Bytes,
    /// What a full data frame takes, DA to FCS, where it is no RoCEv2 packet with one MTU of payload.
    #[serde(default)]
    pub full_frame: Option<Bytes>,
    /// When the link is down: ascending, none within another.
    pub outages: Vec<Outage>,
}

impl Default for PauseConfig {
    /// Priority 3 is lossless and told by DSCP, as is usual for RoCEv2; every PFC is obeyed; what is
    /// sent holds as long as it can and is repeated after a quarter of that.
    fn default() -> PauseConfig {
        PauseConfig {
            address: MacAddress::default(),
            mode: PauseMode::Pfc,
            lossless: 1 << 3,
            obeyed: 0xff,
            response: Duration::ZERO,
            pause_time: NonZeroU16::MAX,
            refresh: QUARTER,
            priorities: PriorityMap::BY_DSCP,
            project: ProjectTypes::DEFAULT,
            scheduling: EtsConfig::default(),
            overhead: Bytes::ZERO,
            full_frame: None,
            outages: Vec::new(),
        }
    }
}

/// Of the pause time, in hundredths.
const QUARTER: NonZeroU8 = NonZeroU8::new(25).expect("it is not zero");

/// In what words the two ends of a link pause each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseMode {
    /// In none: what comes too much is lost.
    None,
    /// PAUSE, which silences the whole link. Source: IEEE 802.3, 31B.
    Global,
    /// PFC, which silences priorities. Source: IEEE 802.3, 31D; IEEE 802.1Q, 36.
    Pfc,
}

/// Which traffic class a priority belongs to, and how each class is selected.
///
/// Source: IEEE 802.1Q, 8.6.6 (traffic classes), 8.6.8 (selection), 37 (ETS).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtsConfig {
    /// The traffic class of each priority.
    ///
    /// Shape: by priority; classes from 0 to 7, the same numbers as priorities have.
    pub classes: [Priority; Pfc::PRIORITIES],
    /// How each traffic class is selected.
    ///
    /// Shape: by traffic class.
    pub selection: [Selection; Pfc::PRIORITIES],
}

impl Default for EtsConfig {
    /// A class a priority, and all of equal weight.
    fn default() -> EtsConfig {
        EtsConfig {
            classes: std::array::from_fn(|priority| Priority::truncate(priority as u8)),
            selection: [Selection::Weighted(NonZeroU8::MIN); Pfc::PRIORITIES],
        }
    }
}

/// How a traffic class is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Ahead of all weighted classes and of strict ones with a lower number.
    Strict,
    /// After the strict classes, by its weight among the weighted ones.
    Weighted(NonZeroU8),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(control: LinkControl) -> LinkConfig {
        let (rate, mtu, buffer) = (BitRate::gbps(40), Bytes::new(1024), Bytes::new(300_000));
        LinkConfig { rate, mtu, buffer, control }
    }

    #[test]
    fn both_technologies_are_written_and_read_back() {
        let mut pause = PauseConfig { mode: PauseMode::Global, ..PauseConfig::default() };
        pause.scheduling.selection[6] = Selection::Strict;
        let credits = LinkControl::Credits(CreditConfig::default());
        for config in [link(credits), link(LinkControl::Pause(pause))] {
            let text = toml::to_string(&config).expect("plain data");
            assert_eq!(toml::from_str(&text), Ok(config), "{text}");
        }
    }

    #[test]
    fn lanes_and_full_frames_are_those_of_the_technology() {
        let infiniband = link(LinkControl::Credits(CreditConfig::default()));
        let ethernet = link(LinkControl::Pause(PauseConfig::default()));
        assert_eq!((infiniband.data_lanes(), infiniband.full_frame()), (1, Bytes::new(1050)));
        assert_eq!((ethernet.data_lanes(), ethernet.full_frame()), (8, Bytes::new(1086)));
    }
}
