//! `[fabric.nic]`: what all NICs have in common, and which of them are slow or faulty.

use super::link::PRIORITIES;
use crate::keyfile::fields::{Fields, Priorities, TEXTS, Texts};
use crate::names;
use crate::topology::Topology;
use nicd::config::{
    CnpBody, DrainConfig, Encapsulation, NicParams, ResequenceConfig, RoceConfig, RoceParams,
    StormConfig,
};
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Instant};

/// What all NICs have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// The parameters of both technologies.
    pub params: NicParams,
    /// What a congestion notification packet carries after its BTH on InfiniBand.
    pub cnp_body: CnpBody,
    /// The wire format of its packets.
    pub wire: Encapsulation,
}

/// The keys of `[fabric.nic]`.
pub static KEYS: KeyTable = KeyTable {
    about: "every NIC",
    keys: NicParams::KEYS,
    variants: &[Variants {
        by: "technology",
        rows: || {
            let ethernet = RoceParams::KEYS.iter().chain(&ETHERNET).collect();
            vec![("infiniband", vec![&CNP_BODY]), ("ethernet", ethernet)]
        },
    }],
    open: false,
};

static CNP_BODY: Key = Key::new(
    "cnp_body",
    CnpBody::KIND,
    "reserved16",
    "What a congestion notification packet carries after its BTH.",
);

static ETHERNET: [Key; 3] = [
    Key::optional(
        "resequence",
        Kind::Table(&RESEQUENCE),
        "Frames that arrive ahead of their turn wait for it, as adaptive routing needs; if left out \
         they go on as they come.",
    ),
    Key::new(
        "drain",
        Kind::Tables(&DRAIN),
        "[]",
        "Hosts slower than their line, which pause their neighbour when their buffer fills.",
    ),
    Key::new(
        "storm",
        Kind::Tables(&STORM),
        "[]",
        "Faulty NICs that pause their neighbour for ever.",
    ),
];

static RESEQUENCE: KeyTable = KeyTable::new(
    "how frames are put into order, test frames by their sequence and requests by their PSN",
    ResequenceConfig::KEYS,
);

static DRAIN: KeyTable =
    KeyTable::new("a host that takes frames off its NIC slower than they come", Drain::KEYS);

proto::params! {
    /// One `[[fabric.nic.drain]]` as written.
    pub struct Drain {
        /// Which NICs.
        at: Texts = TEXTS, Required;
        /// The rate at which it takes them.
        receive_rate: BitRate = Rate, Required;
        /// With more than this in the buffer the neighbour is paused.
        xoff: Bytes = Size, Required;
        /// With no more than this it may go on.
        xon: Bytes = Size, Required;
    }
}

static STORM: KeyTable = KeyTable::new("a NIC that pauses its neighbour for ever", Storm::KEYS);

proto::params! {
    /// One `[[fabric.nic.storm]]` as written.
    pub struct Storm {
        /// Which NICs.
        at: Texts = TEXTS, Required;
        /// From when on.
        start: Instant = Time, Default("0 mtu");
        /// Which priorities.
        priorities: Priorities = PRIORITIES, Default("[3]");
    }
}

/// Reads what all NICs have in common.
pub fn read(fields: &Fields<'_>, technology: Technology) -> Option<Nic> {
    Some(Nic {
        params: fields.params()?,
        cnp_body: fields.get("cnp_body").unwrap_or(CnpBody::Reserved16),
        wire: match technology {
            Technology::Infiniband => Encapsulation::Infiniband,
            Technology::Ethernet => Encapsulation::Roce(roce(fields)?),
        },
    })
}

fn roce(fields: &Fields<'_>) -> Option<RoceConfig> {
    let defaults = RoceConfig::default();
    let levels = defaults.dscp.len();
    let RoceParams { roce: version, dscp, cnp_dscp, cn_tags } = fields.params()?;
    let dscp = dscp.map_or(defaults.dscp, |map| map.0);
    if dscp.len() != levels {
        let hint = format!("one for all, or {levels}, one a service level");
        fields.error("dscp", format!("{} entries", dscp.len()), hint);
    }
    let resequence = fields.table("resequence").and_then(|table| table.params());
    let (drain, storm) = (None, None);
    Some(RoceConfig { version, dscp, cnp_dscp, cn_tags, resequence, drain, storm })
}

/// Slow hosts and storms, with their nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Afflicted {
    /// Hosts slower than their line.
    pub drains: Vec<(usize, DrainConfig)>,
    /// NICs that pause their neighbour for ever.
    pub storms: Vec<(usize, StormConfig)>,
}

/// Reads `fabric.nic.drain` and `fabric.nic.storm`.
pub fn read_afflicted(fields: &Fields<'_>, topology: &Topology) -> Afflicted {
    let nodes = |fields: &Fields<'_>, at: &Texts| {
        let nodes = fields.gather("at", at, |text| names::adapters(topology, text));
        nodes.unwrap_or_default().into_iter()
    };
    let mut afflicted = Afflicted::default();
    for (fields, Drain { at, receive_rate: rate, xoff, xon }) in fields.each("drain") {
        let config = DrainConfig { rate, xoff, xon };
        afflicted.drains.extend(nodes(&fields, &at).map(|node| (node, config)));
    }
    for (fields, Storm { at, start, priorities }) in fields.each("storm") {
        let config = StormConfig { start, priorities: priorities.0 };
        afflicted.storms.extend(nodes(&fields, &at).map(|node| (node, config)));
    }
    afflicted
}
