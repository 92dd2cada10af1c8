//! `[fabric.nic]`: what all NICs have in common, and which of them are slow or faulty.

use super::link::priorities;
use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need, Variants, words};
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::topology::Topology;
use nicd::config::{
    CnpBody, DrainConfig, Encapsulation, QueuePairOrder, ResequenceConfig, RoceConfig, RoceVersion,
    StormConfig,
};
use proto::ids::Dscp;
use proto::technology::Technology;
use proto::units::{Bytes, Duration};

/// What all NICs have in common; the names are those of [`nicd::config::NicConfig`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "documented where they end up")]
pub struct Nic {
    pub qp_order: QueuePairOrder,
    pub ack_every: u32,
    pub ack_delay: Duration,
    pub ack_timeout: Duration,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub rnr_timer: Duration,
    pub receive_depth: u32,
    pub receive_refill: Duration,
    pub cnp_body: CnpBody,
    pub wire: Encapsulation,
    pub buffer: Bytes,
}

/// The words for [`QueuePairOrder`].
pub const QP_ORDERS: [(&str, QueuePairOrder); 2] =
    [("posting", QueuePairOrder::Posting), ("rr", QueuePairOrder::RoundRobin)];
/// The words for [`CnpBody`].
pub const CNP_BODIES: [(&str, CnpBody); 2] =
    [("reserved16", CnpBody::Reserved16), ("none", CnpBody::None)];
const VERSIONS: [(&str, RoceVersion); 2] =
    [("v2-ipv4", RoceVersion::V2Ipv4), ("v2-ipv6", RoceVersion::V2Ipv6)];

/// The keys of `[fabric.nic]`.
pub static KEYS: KeyTable = KeyTable {
    about: "every NIC",
    keys: &[
        Key {
            name: "qp_order",
            kind: Kind::Word(|| words(&QP_ORDERS)),
            need: Need::Default("\"posting\""),
            about: "which queue pair is served next",
        },
        Key {
            name: "ack_every",
            kind: Kind::Whole(1, 65_535),
            need: Need::Default("1"),
            about: "requests an acknowledgement",
        },
        Key {
            name: "ack_delay",
            kind: Kind::Time,
            need: Need::Default("\"16 mtu\""),
            about: "longest wait of a coalesced acknowledgement",
        },
        Key {
            name: "ack_timeout",
            kind: Kind::Span,
            need: Need::Default("\"100000 mtu\""),
            about: "how long an acknowledgement may take: saturation must not look like loss",
        },
        Key {
            name: "retry_count",
            kind: Kind::Whole(0, 7),
            need: Need::Default("7"),
            about: "how often a requester goes back",
        },
        Key {
            name: "rnr_retry",
            kind: Kind::Whole(0, 7),
            need: Need::Default("7"),
            about: "how often after RNR; 7 is for ever",
        },
        Key {
            name: "rnr_timer",
            kind: Kind::Span,
            need: Need::Default("\"10 us\""),
            about: "how long a responder without buffers asks its peer to wait",
        },
        Key {
            name: "receive_depth",
            kind: Kind::Whole(0, 65_535),
            need: Need::Default("0"),
            about: "receive buffers a queue pair posts; 0 is no limit",
        },
        Key {
            name: "receive_refill",
            kind: Kind::Time,
            need: Need::Default("\"0 mtu\""),
            about: "how long it takes to post one again",
        },
        Key {
            name: "buffer",
            kind: Kind::Size,
            need: Need::Default("\"36 mtu\""),
            about: "input buffer of its port",
        },
    ],
    variants: Some(Variants {
        by: "technology",
        rows: || vec![("infiniband", &INFINIBAND), ("ethernet", &ETHERNET)],
    }),
    open: false,
};

static INFINIBAND: [Key; 1] = [Key {
    name: "cnp_body",
    kind: Kind::Word(|| words(&CNP_BODIES)),
    need: Need::Default("\"reserved16\""),
    about: "what a congestion notification packet carries after its BTH",
}];

static ETHERNET: [Key; 7] = [
    Key {
        name: "roce",
        kind: Kind::Word(|| words(&VERSIONS)),
        need: Need::Default("\"v2-ipv4\""),
        about: "what RoCE packets go over",
    },
    Key {
        name: "dscp",
        kind: Kind::Either(&[Kind::Whole(0, 63), Kind::List(&Kind::Whole(0, 63))]),
        need: Need::Optional,
        about: "DSCP of data and acknowledgements, one for all or one for each of the sixteen \
                service levels; if left out, class selector n for levels 1 to 7, else 24",
    },
    Key {
        name: "cnp_dscp",
        kind: Kind::Whole(0, 63),
        need: Need::Default("48"),
        about: "DSCP of congestion notifications",
    },
    Key {
        name: "cn_tags",
        kind: Kind::Flag,
        need: Need::Default("false"),
        about: "frames from a rate limiter have a CN-TAG with its number as flow id (802.1Qau)",
    },
    Key {
        name: "resequence",
        kind: Kind::Table(&RESEQUENCE),
        need: Need::Optional,
        about: "frames that come ahead of their turn wait for it, as adaptive routing needs; if left out \
                they go on as they come",
    },
    Key {
        name: "drain",
        kind: Kind::Tables(&DRAIN),
        need: Need::Default("[]"),
        about: "hosts slower than their line, which pause their neighbour when their buffer fills",
    },
    Key {
        name: "storm",
        kind: Kind::Tables(&STORM),
        need: Need::Default("[]"),
        about: "NICs that go mad and pause their neighbour for ever",
    },
];

static RESEQUENCE: KeyTable = KeyTable {
    about: "how frames are put into order, test frames by their sequence and requests by their PSN",
    keys: &[
        Key {
            name: "window",
            kind: Kind::Whole(2, 1 << 16),
            need: Need::Default("1024"),
            about: "no frame so far ahead of what is expected is held",
        },
        Key {
            name: "timeout",
            kind: Kind::Span,
            need: Need::Default("\"10 ms\""),
            about: "how long a missing frame is waited for; four times the longest delay of a path is enough",
        },
    ],
    variants: None,
    open: false,
};

static DRAIN: KeyTable = KeyTable {
    about: "a host that takes frames off its NIC slower than they come",
    keys: &[
        AT,
        Key {
            name: "receive_rate",
            kind: Kind::Rate,
            need: Need::Required,
            about: "the rate at which it takes them",
        },
        Key {
            name: "xoff",
            kind: Kind::Size,
            need: Need::Required,
            about: "with more than this in the buffer the neighbour is paused",
        },
        Key {
            name: "xon",
            kind: Kind::Size,
            need: Need::Required,
            about: "with no more than this it may go on",
        },
    ],
    variants: None,
    open: false,
};

static STORM: KeyTable = KeyTable {
    about: "a NIC that pauses its neighbour for ever",
    keys: &[
        AT,
        Key {
            name: "start",
            kind: Kind::Time,
            need: Need::Default("\"0 mtu\""),
            about: "from when on",
        },
        Key {
            name: "priorities",
            kind: Kind::List(&Kind::Whole(0, 7)),
            need: Need::Default("[3]"),
            about: "which priorities",
        },
    ],
    variants: None,
    open: false,
};

const AT: Key = Key {
    name: "at",
    kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
    need: Need::Required,
    about: "which NICs",
};

/// Reads what all NICs have in common.
pub fn read(fields: &Fields<'_>, technology: Technology, problems: &mut Problems) -> Option<Nic> {
    Some(Nic {
        qp_order: fields.word("qp_order", &QP_ORDERS)?,
        ack_every: fields.whole("ack_every")?,
        ack_delay: fields.time("ack_delay")?,
        ack_timeout: fields.time("ack_timeout")?,
        retry_count: fields.whole("retry_count")?,
        rnr_retry: fields.whole("rnr_retry")?,
        rnr_timer: fields.time("rnr_timer")?,
        receive_depth: fields.whole("receive_depth")?,
        receive_refill: fields.time("receive_refill")?,
        cnp_body: fields.word("cnp_body", &CNP_BODIES).unwrap_or(CnpBody::Reserved16),
        wire: match technology {
            Technology::Infiniband => Encapsulation::Infiniband,
            Technology::Ethernet => Encapsulation::Roce(roce(fields, problems)?),
        },
        buffer: fields.size("buffer")?,
    })
}

fn roce(fields: &Fields<'_>, problems: &mut Problems) -> Option<RoceConfig> {
    let defaults = RoceConfig::default();
    let levels = defaults.dscp.len();
    let dscp: Vec<Dscp> = match fields.whole("dscp") {
        Some(dscp) => vec![Dscp::truncate(dscp); levels],
        None if fields.has("dscp") => {
            fields.wholes("dscp").into_iter().map(Dscp::truncate).collect()
        }
        None => defaults.dscp,
    };
    if dscp.len() != levels {
        let complaint = Complaint::new(
            format!("{} entries", dscp.len()),
            format!("one for all, or {levels}, one a service level"),
        );
        fields.report(problems, "dscp", complaint);
    }
    Some(RoceConfig {
        version: fields.word("roce", &VERSIONS)?,
        dscp,
        cnp_dscp: Dscp::truncate(fields.whole("cnp_dscp")?),
        cn_tags: fields.flag("cn_tags"),
        resequence: fields.table("resequence").and_then(|table| {
            let (window, timeout) = (table.whole("window")?, table.time("timeout")?);
            Some(ResequenceConfig { window, timeout })
        }),
        drain: None,
        storm: None,
    })
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
