//! `[fabric.nic]`: what all NICs have in common, and which of them are slow or faulty.

use super::link::priorities;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::topology::Topology;
use nicd::config::{
    CnpBody, DrainConfig, Encapsulation, NicParams, ResequenceConfig, RoceConfig, RoceParams,
    StormConfig,
};
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::technology::Technology;

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
            vec![("infiniband", INFINIBAND.iter().collect()), ("ethernet", ethernet)]
        },
    }],
    open: false,
};

static INFINIBAND: [Key; 1] = [Key::new(
    "cnp_body",
    CnpBody::KIND,
    "reserved16",
    "what a congestion notification packet carries after its BTH",
)];

static ETHERNET: [Key; 3] = [
    Key::optional(
        "resequence",
        Kind::Table(&RESEQUENCE),
        "frames that arrive ahead of their turn wait for it, as adaptive routing needs; if left out \
                they go on as they come",
    ),
    Key::new(
        "drain",
        Kind::Tables(&DRAIN),
        "[]",
        "hosts slower than their line, which pause their neighbour when their buffer fills",
    ),
    Key::new(
        "storm",
        Kind::Tables(&STORM),
        "[]",
        "faulty NICs that pause their neighbour for ever",
    ),
];

static RESEQUENCE: KeyTable = KeyTable::new(
    "how frames are put into order, test frames by their sequence and requests by their PSN",
    ResequenceConfig::KEYS,
);

static DRAIN: KeyTable = KeyTable::new(
    "a host that takes frames off its NIC slower than they come",
    &[
        AT,
        Key::required("receive_rate", Kind::Rate, "the rate at which it takes them"),
        Key::required(
            "xoff",
            Kind::Size,
            "with more than this in the buffer the neighbour is paused",
        ),
        Key::required("xon", Kind::Size, "with no more than this it may go on"),
    ],
);

static STORM: KeyTable = KeyTable::new(
    "a NIC that pauses its neighbour for ever",
    &[
        AT,
        Key::new("start", Kind::Time, "0 mtu", "from when on"),
        Key::new("priorities", Kind::List(&Kind::Whole(0, 7)), "[3]", "which priorities"),
    ],
);

const AT: Key =
    Key::required("at", Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]), "which NICs");

/// Reads what all NICs have in common.
pub fn read(fields: &Fields<'_>, technology: Technology, problems: &mut Problems) -> Option<Nic> {
    Some(Nic {
        params: fields.params()?,
        cnp_body: fields.get("cnp_body").unwrap_or(CnpBody::Reserved16),
        wire: match technology {
            Technology::Infiniband => Encapsulation::Infiniband,
            Technology::Ethernet => Encapsulation::Roce(roce(fields, problems)?),
        },
    })
}

fn roce(fields: &Fields<'_>, problems: &mut Problems) -> Option<RoceConfig> {
    let defaults = RoceConfig::default();
    let levels = defaults.dscp.len();
    let RoceParams { roce: version, dscp, cnp_dscp, cn_tags } = fields.params()?;
    let dscp = dscp.map_or(defaults.dscp, |map| map.0);
    if dscp.len() != levels {
        let complaint = Complaint::new(
            format!("{} entries", dscp.len()),
            format!("one for all, or {levels}, one a service level"),
        );
        fields.report(problems, "dscp", complaint);
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
pub fn read_afflicted(
    fields: &Fields<'_>,
    topology: &Topology,
    problems: &mut Problems,
) -> Afflicted {
    let mut afflicted = Afflicted::default();
    for drain in fields.tables("drain") {
        let nodes = nodes(&drain, topology, problems);
        let numbers = drain.rate("receive_rate").zip(drain.size("xoff")).zip(drain.size("xon"));
        if let Some(((rate, xoff), xon)) = numbers {
            let config = DrainConfig { rate, xoff, xon };
            afflicted.drains.extend(nodes.into_iter().map(|node| (node, config)));
        }
    }
    for storm in fields.tables("storm") {
        let nodes = nodes(&storm, topology, problems);
        if let Some(start) = storm.instant("start") {
            let config = StormConfig { start, priorities: priorities(&storm, "priorities") };
            afflicted.storms.extend(nodes.into_iter().map(|node| (node, config)));
        }
    }
    afflicted
}

fn nodes(fields: &Fields<'_>, topology: &Topology, problems: &mut Problems) -> Vec<usize> {
    let mut all = Vec::new();
    for (text, place) in fields.texts("at") {
        match names::adapters(topology, text) {
            Ok(found) => all.extend(found),
            Err(complaint) => problems.report(place, format!("{}.at", fields.path), complaint),
        }
    }
    all
}
