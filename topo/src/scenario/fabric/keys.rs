//! The keys of `[fabric]` and of the tables in it.

use crate::keyfile::keys::{Key, KeyTable, Kind, Need, Variants, words};
use crate::shapes;
use nicd::config::{CnpBody, QueuePairOrder};

/// The words for [`QueuePairOrder`].
pub const QP_ORDERS: [(&str, QueuePairOrder); 2] =
    [("posting", QueuePairOrder::Posting), ("rr", QueuePairOrder::RoundRobin)];
/// The words for [`CnpBody`].
pub const CNP_BODIES: [(&str, CnpBody); 2] =
    [("reserved16", CnpBody::Reserved16), ("none", CnpBody::None)];

/// The keys of `[fabric]`; a shape brings more.
pub static KEYS: KeyTable = KeyTable {
    about: "what a scenario runs on",
    keys: &[
        Key {
            name: "shape",
            kind: Kind::Word(shapes::names),
            need: Need::Default("\"listed\""),
            about: "how the graph is described; without it, by nodes and links",
        },
        Key {
            name: "links",
            kind: Kind::Tables(&LINKS),
            need: Need::Optional,
            about: "every link of listed nodes; else links that differ from the default",
        },
        Key {
            name: "technology",
            kind: Kind::Word(|| vec!["infiniband"]),
            need: Need::Default("\"infiniband\""),
            about: "what frames are",
        },
        Key {
            name: "routing",
            kind: Kind::Word(|| vec!["d-mod-k"]),
            need: Need::Default("\"d-mod-k\""),
            about: "how a path is chosen among shortest ones",
        },
        Key {
            name: "mtu",
            kind: Kind::Octets,
            need: Need::Default("\"2048 B\""),
            about: "largest payload of one packet",
        },
        Key {
            name: "link",
            kind: Kind::Table(&LINK),
            need: Need::Default("{}"),
            about: "the default link",
        },
        Key {
            name: "switch",
            kind: Kind::Table(&SWITCH),
            need: Need::Default("{}"),
            about: "every switch",
        },
        Key { name: "nic", kind: Kind::Table(&NIC), need: Need::Default("{}"), about: "every NIC" },
        Key {
            name: "sl2vl",
            kind: Kind::List(&Kind::Whole(0, 15)),
            need: Need::Optional,
            about: "virtual lane of each of the sixteen service levels; 15 discards",
        },
        Key {
            name: "route",
            kind: Kind::Tables(&ROUTE),
            need: Need::Optional,
            about: "routes that differ from the computed ones",
        },
        Key {
            name: "multicast",
            kind: Kind::Tables(&MULTICAST),
            need: Need::Optional,
            about: "multicast routes",
        },
    ],
    variants: Some(Variants { by: "shape", rows: shapes::rows }),
    open: false,
};

static LINKS: KeyTable = KeyTable {
    about: "one link",
    keys: &[
        Key { name: "a", kind: Kind::Text, need: Need::Required, about: "one end, node:port" },
        Key { name: "b", kind: Kind::Text, need: Need::Optional, about: "the other end" },
        Key { name: "rate", kind: Kind::Rate, need: Need::Optional, about: "its own rate" },
        Key { name: "delay", kind: Kind::Time, need: Need::Optional, about: "its own delay" },
    ],
    variants: None,
    open: false,
};

static LINK: KeyTable = KeyTable {
    about: "the default link",
    keys: &[
        Key {
            name: "rate",
            kind: Kind::Rate,
            need: Need::Default("\"8 Gbps\""),
            about: "data rate",
        },
        Key {
            name: "delay",
            kind: Kind::Time,
            need: Need::Default("\"0.125 mtu\""),
            about: "time of flight each way",
        },
        Key {
            name: "lanes",
            kind: Kind::Whole(1, 12),
            need: Need::Default("4"),
            about: "physical lanes: with the rate they give the symbol time",
        },
        Key {
            name: "vls",
            kind: Kind::Whole(1, 15),
            need: Need::Default("1"),
            about: "operational data lanes, over which buffers are split",
        },
        Key {
            name: "arbitration",
            kind: Kind::Table(&ARBITRATION),
            need: Need::Optional,
            about: "who goes first among lanes; all equal if left out",
        },
    ],
    variants: None,
    open: false,
};

static ARBITRATION: KeyTable = KeyTable {
    about: "the tables of the VL arbiter",
    keys: &[
        Key {
            name: "high",
            kind: Kind::List(&Kind::List(&Kind::Whole(0, 255))),
            need: Need::Default("[]"),
            about: "high-priority table: [lane, weight in 64 octets]",
        },
        Key {
            name: "low",
            kind: Kind::List(&Kind::List(&Kind::Whole(0, 255))),
            need: Need::Default("[]"),
            about: "low-priority table",
        },
        Key {
            name: "high_limit",
            kind: Kind::Whole(0, 255),
            need: Need::Default("0"),
            about: "4096 octets the high table may send before the low one; 0 a packet, 255 any",
        },
    ],
    variants: None,
    open: false,
};

static SWITCH: KeyTable = KeyTable {
    about: "every switch",
    keys: &[
        Key {
            name: "memory",
            kind: Kind::Word(|| vec!["per-input"]),
            need: Need::Default("\"per-input\""),
            about: "memory model",
        },
        Key {
            name: "buffer",
            kind: Kind::Size,
            need: Need::Default("\"36 mtu\""),
            about: "input buffer of one port",
        },
        Key {
            name: "read",
            kind: Kind::Word(|| vec!["multi", "single"]),
            need: Need::Default("\"multi\""),
            about: "how many outputs may read one input at a time",
        },
    ],
    variants: None,
    open: false,
};

static NIC: KeyTable = KeyTable {
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
            name: "cnp_body",
            kind: Kind::Word(|| words(&CNP_BODIES)),
            need: Need::Default("\"reserved16\""),
            about: "what a congestion notification packet carries after its BTH",
        },
        Key {
            name: "buffer",
            kind: Kind::Size,
            need: Need::Default("\"36 mtu\""),
            about: "input buffer of its port",
        },
    ],
    variants: None,
    open: false,
};

static ROUTE: KeyTable = KeyTable {
    about: "what a switch does with some destinations",
    keys: &[
        Key { name: "at", kind: Kind::Text, need: Need::Required, about: "the switch" },
        Key {
            name: "lid",
            kind: Kind::Whole(1, 0xbfff),
            need: Need::Optional,
            about: "one destination",
        },
        Key {
            name: "lids",
            kind: Kind::Text,
            need: Need::Optional,
            about: "a run of them, \"1-5\"",
        },
        Key {
            name: "to",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            need: Need::Optional,
            about: "NICs by name",
        },
        Key {
            name: "port",
            kind: Kind::Whole(1, 254),
            need: Need::Required,
            about: "the port they leave by",
        },
    ],
    variants: None,
    open: false,
};

static MULTICAST: KeyTable = KeyTable {
    about: "where a switch sends copies for a group",
    keys: &[
        Key { name: "at", kind: Kind::Text, need: Need::Required, about: "the switch" },
        Key {
            name: "lid",
            kind: Kind::Whole(0xc000, 0xfffe),
            need: Need::Required,
            about: "the group",
        },
        Key {
            name: "ports",
            kind: Kind::List(&Kind::Whole(1, 254)),
            need: Need::Required,
            about: "the ports, the one a frame came in on left out by itself",
        },
    ],
    variants: None,
    open: false,
};
