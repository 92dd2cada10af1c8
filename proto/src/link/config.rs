//! Configuration of a link's end: rate, sizes, flow control and arbitration.

use crate::Technology;
use crate::ids::{MacAddress, Priority};
use crate::link::outage::Outage;
use crate::params::{FromValue, Kind, Value};
use crate::units::{BitRate, Bytes, Duration};
use crate::wire::classify::PriorityMap;
use crate::wire::ethernet::Pfc;
use crate::wire::project::ProjectTypes;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU8, NonZeroU16};

/// Wire size of one full data frame of InfiniBand: LRH, BTH, `mtu` octets of payload, ICRC and VCRC.
pub const fn full_frame(mtu: Bytes) -> Bytes {
    Bytes::new(8 + 12 + mtu.get() + 4 + 2)
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Data rate of the link.
    pub rate: BitRate,
    /// Largest transport payload of one packet; for a frame without transport, the octets behind its
    /// EtherType.
    pub mtu: Bytes,
    /// Input buffer of the port. With credits it is split evenly over the data lanes; with pause all
    /// priorities share it, and the port's owner accounts for it.
    pub buffer: Bytes,
    /// Flow control and arbitration, and with them the technology.
    pub control: FlowControlConfig,
}

/// Flow control and arbitration: one variant for each technology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControlConfig {
    /// InfiniBand.
    #[serde(rename = "credits")]
    Credit(CreditConfig),
    /// Ethernet.
    Pause(PauseConfig),
}

impl LinkConfig {
    /// The technology of the link.
    pub fn technology(&self) -> Technology {
        match self.control {
            FlowControlConfig::Credit(_) => Technology::Infiniband,
            FlowControlConfig::Pause(_) => Technology::Ethernet,
        }
    }

    /// The pause configuration; `None` on InfiniBand.
    pub fn pause(&self) -> Option<&PauseConfig> {
        match &self.control {
            FlowControlConfig::Credit(_) => None,
            FlowControlConfig::Pause(pause) => Some(pause),
        }
    }

    /// Octets of line time that a frame takes beyond its own: preamble and gap, where they count.
    pub fn overhead(&self) -> Bytes {
        self.pause().map_or(Bytes::ZERO, |pause| pause.overhead)
    }

    /// The number of data lanes: virtual lanes, or priorities.
    pub fn data_lanes(&self) -> u8 {
        match &self.control {
            FlowControlConfig::Credit(credits) => credits.data_lanes,
            FlowControlConfig::Pause(_) => Pfc::PRIORITIES as u8,
        }
    }

    /// Wire size of one full data frame. On Ethernet that is an untagged RoCEv2 packet over IPv4: MAC
    /// header, IPv4, UDP, BTH, `mtu` octets of payload, ICRC and FCS, unless `full_frame` is configured.
    pub fn full_frame(&self) -> Bytes {
        let roce = Bytes::new(14 + 20 + 8 + 12 + self.mtu.get() + 4 + 4);
        self.pause().map_or(full_frame(self.mtu), |pause| pause.full_frame.unwrap_or(roce))
    }

    /// The configured wire size of a full data frame, if any.
    pub fn configured_frame(&self) -> Option<Bytes> {
        self.pause().and_then(|pause| pause.full_frame)
    }
}

/// A link with credit flow control. Source: IBTA Vol 1, 7.9.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditConfig {
    /// Physical lanes: with the rate they give the symbol time (8 data bits of one lane).
    pub lanes: u8,
    /// Operational data lanes, VL0 to VL(n−1), 1 to 15.
    pub data_lanes: u8,
    /// The arbitration among lanes.
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
    /// 0 is one packet, 255 means no limit.
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

/// A link with PAUSE or PFC. Source: IEEE 802.3, 31B and 31D; IEEE 802.1Q, 36 and 37.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseConfig {
    /// The port's own address: the source of its MAC control frames.
    pub address: MacAddress,
    /// The kind of MAC control frames that both ends use.
    pub mode: PauseMode,
    /// The priorities that this end sends PFC for.
    ///
    /// Shape: bit n is priority n.
    pub lossless: u8,
    /// The priorities for which a received PFC is obeyed.
    ///
    /// Shape: bit n is priority n.
    pub obeyed: u8,
    /// From the arrival of a pause until the port obeys it; frames may still start within this time.
    pub response: Duration,
    /// The pause time of sent XOFF frames; zero would mean XON.
    ///
    /// Units: quanta of 512 bit times.
    pub pause_time: NonZeroU16,
    /// Share of the pause time after which XOFF is repeated. From 100 on the peer sends frames before the
    /// repetition.
    ///
    /// Units: hundredths.
    pub refresh: NonZeroU8,
    /// How the port derives the priority of a frame.
    pub priorities: PriorityMap,
    /// EtherTypes of this project's frame formats.
    #[serde(default)]
    pub project: ProjectTypes,
    /// The arbitration among priorities.
    pub scheduling: EtsConfig,
    /// Octets of line time that each frame takes beyond DA to FCS: preamble and gap, where they count.
    pub overhead: Bytes,
    /// Wire size of a full data frame, DA to FCS, if it is not a RoCEv2 packet with one MTU of payload.
    #[serde(default)]
    pub full_frame: Option<Bytes>,
    /// The rate whose bit times quanta count, if it is not the one at which the port sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_rate: Option<BitRate>,
    /// When the link is down, in ascending order without overlap.
    pub outages: Vec<Outage>,
}

impl Default for PauseConfig {
    /// The usual setting for RoCEv2: priority 3 is lossless, DSCP selects the priority. The port obeys PFC
    /// on every priority, sends the longest pause time and repeats XOFF after a quarter of it.
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
            quanta_rate: None,
            outages: Vec::new(),
        }
    }
}

/// Of the pause time, in hundredths.
const QUARTER: NonZeroU8 = NonZeroU8::new(25).expect("it is not zero");

/// The kind of MAC control frames that the ends of a link use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseMode {
    /// None: a full buffer loses frames.
    None,
    /// PAUSE, which stops the whole link. Source: IEEE 802.3, 31B.
    Global,
    /// PFC, which stops single priorities. Source: IEEE 802.3, 31D; IEEE 802.1Q, 36.
    Pfc,
}

/// The traffic class of each priority, and the transmission selection of each class.
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
    /// One class per priority, all of equal weight.
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

impl Selection {
    /// The word that stands among weights.
    pub const STRICT: &str = "strict";
    /// A key with one selection for each traffic class.
    pub const EACH: Kind =
        Kind::List(&Kind::Either(&[Kind::Word(|| vec![Selection::STRICT]), Kind::Whole(1, 255)]));
}

impl FromValue for Selection {
    fn from_value(value: &Value) -> Option<Selection> {
        let weight = u8::from_value(value).and_then(NonZeroU8::new);
        Some(weight.map_or(Selection::Strict, Selection::Weighted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(control: FlowControlConfig) -> LinkConfig {
        let (rate, mtu, buffer) = (BitRate::gbps(40), Bytes::new(1024), Bytes::new(300_000));
        LinkConfig { rate, mtu, buffer, control }
    }

    #[test]
    fn both_technologies_are_written_and_read_back() {
        let mut pause = PauseConfig { mode: PauseMode::Global, ..PauseConfig::default() };
        pause.scheduling.selection[6] = Selection::Strict;
        let credits = FlowControlConfig::Credit(CreditConfig::default());
        for config in [link(credits), link(FlowControlConfig::Pause(pause))] {
            let text = toml::to_string(&config).expect("plain data");
            assert_eq!(toml::from_str(&text), Ok(config), "{text}");
        }
    }

    #[test]
    fn lanes_and_full_frames_are_those_of_the_technology() {
        let infiniband = link(FlowControlConfig::Credit(CreditConfig::default()));
        let ethernet = link(FlowControlConfig::Pause(PauseConfig::default()));
        assert_eq!((infiniband.data_lanes(), infiniband.full_frame()), (1, Bytes::new(1050)));
        assert_eq!((ethernet.data_lanes(), ethernet.full_frame()), (8, Bytes::new(1086)));
    }
}
