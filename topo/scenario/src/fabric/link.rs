//! `[fabric.link]`: the default link, of either technology.

use crate::keyfile::fields::{Fields, Priorities, meaning, words};
use proto::ids::Priority;
use proto::link::{
    ArbitrationConfig, CreditConfig, EtsConfig, FlowControlConfig, PauseConfig, PauseMode,
    Selection,
};
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::PriorityMap;
use std::num::NonZero;

/// The default link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Data rate.
    pub rate: BitRate,
    /// Time of flight.
    pub delay: Duration,
    /// Flow control; the address of a pausing port is filled in for each port.
    pub control: FlowControlConfig,
}

impl Link {
    /// Lanes over which a buffer is split: on Ethernet all priorities share it.
    pub fn shares(&self) -> u8 {
        match &self.control {
            FlowControlConfig::Credit(credits) => credits.data_lanes,
            FlowControlConfig::Pause(_) => 1,
        }
    }
}

/// Words of `pause`.
pub(crate) const MODES: [(&str, PauseMode); 3] =
    [("none", PauseMode::None), ("pause", PauseMode::Global), ("pfc", PauseMode::Pfc)];
/// Words of `priorities`.
pub(crate) const MAPS: [(&str, PriorityMap); 2] =
    [("dscp", PriorityMap::BY_DSCP), ("pcp", PriorityMap::BY_PCP)];

/// The keys of `[fabric.link]`.
pub static KEYS: KeyTable = KeyTable {
    about: "the default link",
    keys: Common::KEYS,
    variants: &[Variants {
        by: "technology",
        rows: || {
            let infiniband = InfinibandLink::KEYS.iter().chain([&ARBITRATION_KEY]).collect();
            let ethernet = EthernetLink::KEYS.iter().collect();
            vec![("infiniband", infiniband), ("ethernet", ethernet)]
        },
    }],
    open: false,
};

proto::params! {
    /// The keys of both technologies.
    pub struct Common {
        /// Data rate.
        rate: Option<BitRate> = Rate, Else("8 Gbps on InfiniBand, 40 Gbps on Ethernet");
        /// Time of flight each way.
        delay: Duration = Time, Default("0.125 mtu");
    }
}

proto::params! {
    /// The keys of a link of InfiniBand.
    pub struct InfinibandLink {
        /// Physical lanes: with the rate they give the symbol time.
        lanes: u8 = Whole(1, 12), Default("4");
        /// Operational data lanes, over which buffers are split.
        vls: u8 = Whole(1, 15), Default("1");
    }
}

static ARBITRATION_KEY: Key = Key::optional(
    "arbitration",
    Kind::Table(&ARBITRATION),
    "Arbitration among lanes; all equal if left out.",
);

proto::params! {
    /// The keys of a link of Ethernet.
    pub struct EthernetLink {
        /// How the ends stop each other: not at all, by PAUSE, or by PFC for each priority.
        pause: String = Word(|| words(&MODES)), Default("pfc");
        /// Priorities for which PFC is sent; without any pause, those that the measure lossless-drops counts.
        lossless: Priorities = PRIORITIES, Default("[3]") => Not("pause", "pause");
        /// Priorities for which a received PFC is obeyed.
        obeyed: Priorities = PRIORITIES, Default("[0, 1, 2, 3, 4, 5, 6, 7]") => Is("pause", &["pfc"]);
        /// From the arrival of a pause until it is obeyed; switches need headroom for it.
        response: Duration = Time, Default("0 mtu") => Not("pause", "none");
        /// How long a pause that is sent holds, in quanta of 512 bit times.
        pause_time: u16 = Whole(1, 65_535), Default("65535") => Not("pause", "none");
        /// Percent of the pause time after which a pause still wanted is sent again.
        refresh: u8 = Whole(1, 100), Default("25") => Not("pause", "none");
        /// What gives a frame its priority: upper three bits of the DSCP, or the tag's PCP.
        priorities: String = Word(|| words(&MAPS)), Default("dscp");
        /// Traffic class of each of the eight priorities.
        classes: Vec<u8> = PRIORITIES, Default("[0, 1, 2, 3, 4, 5, 6, 7]");
        /// For each of the eight traffic classes: "strict", the highest first, or its weight.
        scheduling: Vec<Selection> = Selection::EACH, Default("[1, 1, 1, 1, 1, 1, 1, 1]");
        /// Line time of a frame beyond DA to FCS; preamble and gap are "20 B".
        overhead: Bytes = Octets, Default("0 B");
    }
}

/// A list of priorities.
pub const PRIORITIES: Kind = Kind::List(&Kind::Whole(0, 7));

static ARBITRATION: KeyTable = KeyTable::new("the tables of the VL arbiter", VlTables::KEYS);

proto::params! {
    /// The tables of the VL arbiter.
    pub struct VlTables {
        /// High-priority table: [lane, weight in 64 octets].
        high: Vec<Vec<u8>> = ENTRIES, Default("[]");
        /// Low-priority table.
        low: Vec<Vec<u8>> = ENTRIES, Default("[]");
        /// Multiples of 4096 octets that the high table may send before the low one; 0 is one packet, 255 no limit.
        high_limit: u8 = Whole(0, 255), Default("0");
    }
}

const ENTRIES: Kind = Kind::List(&Kind::List(&Kind::Whole(0, 255)));

/// Reads `[fabric.link]`.
pub fn read(fields: &Fields<'_>, technology: Technology, rate: BitRate) -> Option<Link> {
    let common: Common = fields.params()?;
    Some(Link {
        rate: common.rate.unwrap_or(rate),
        delay: common.delay,
        control: match technology {
            Technology::Infiniband => FlowControlConfig::Credit(credits(fields)?),
            Technology::Ethernet => FlowControlConfig::Pause(pause(fields)?),
        },
    })
}

fn credits(fields: &Fields<'_>) -> Option<CreditConfig> {
    let InfinibandLink { lanes, vls } = fields.params()?;
    let tables = fields.table("arbitration");
    let arbitration = tables.and_then(|tables| arbitration(&tables, vls)).unwrap_or_default();
    Some(CreditConfig { lanes, data_lanes: vls, arbitration })
}

fn arbitration(fields: &Fields<'_>, vls: u8) -> Option<ArbitrationConfig> {
    let VlTables { high, low, high_limit } = fields.params()?;
    let table = |key: &str, entries: Vec<Vec<u8>>| {
        let entry = |entry: &Vec<u8>| match entry[..] {
            [lane, weight] if lane < vls => Some((lane, weight)),
            _ => None,
        };
        entries.iter().map(entry).collect::<Option<_>>().or_else(|| {
            let message = format!("entries are [lane, weight], lanes 0 to {}", vls - 1);
            fields.refuse(key, message, "for example [[0, 4], [1, 8]]")
        })
    };
    let (high, low) = (table("high", high), table("low", low));
    Some(ArbitrationConfig { high: high?, low: low?, high_limit })
}

fn pause(fields: &Fields<'_>) -> Option<PauseConfig> {
    let link: EthernetLink = fields.params()?;
    let classes: Vec<Priority> = link.classes.into_iter().map(Priority::truncate).collect();
    let default = EtsConfig::default();
    Some(PauseConfig {
        mode: meaning(&MODES, &link.pause)?,
        lossless: link.lossless.0,
        obeyed: link.obeyed.0,
        response: link.response,
        pause_time: NonZero::new(link.pause_time)?,
        refresh: NonZero::new(link.refresh)?,
        priorities: meaning(&MAPS, &link.priorities)?,
        scheduling: EtsConfig {
            classes: eight(fields, "classes", classes).unwrap_or(default.classes),
            selection: eight(fields, "scheduling", link.scheduling).unwrap_or(default.selection),
        },
        overhead: link.overhead,
        ..PauseConfig::default()
    })
}

fn eight<T>(fields: &Fields<'_>, key: &str, list: Vec<T>) -> Option<[T; 8]> {
    let wrong = |list: Vec<T>| {
        fields.error(key, format!("{} entries", list.len()), "one for each, 0 to 7");
    };
    list.try_into().map_err(wrong).ok()
}
