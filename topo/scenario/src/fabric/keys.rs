//! The keys of `[fabric]` and of its lists; links, switches and NICs have files of their own.

use super::{link, nic, switch};
use crate::frames::TECHNOLOGIES;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need, Variants, words};
use crate::routes::ROUTINGS;
use crate::shapes;

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
            kind: Kind::Word(|| words(&TECHNOLOGIES)),
            need: Need::Default("\"infiniband\""),
            about: "what frames are",
        },
        Key {
            name: "routing",
            kind: Kind::Word(|| words(&ROUTINGS)),
            need: Need::Default("\"d-mod-k\""),
            about: "how a path is chosen among shortest ones; all but d-mod-k on Ethernet only (docs/routing.md)",
        },
        Key {
            name: "mtu",
            kind: Kind::Octets,
            need: Need::Default("\"2048 B\""),
            about: "largest payload of one packet",
        },
        Key {
            name: "frame",
            kind: Kind::Octets,
            need: Need::Optional,
            about: "a full data frame, DA to FCS, where it is no RoCEv2 packet with one MTU of payload; \
                    `mtu` as a time and as a size is one such frame; Ethernet only",
        },
        Key {
            name: "link",
            kind: Kind::Table(&link::KEYS),
            need: Need::Default("{}"),
            about: "the default link",
        },
        Key {
            name: "switch",
            kind: Kind::Table(&switch::KEYS),
            need: Need::Default("{}"),
            about: "every switch",
        },
        Key {
            name: "nic",
            kind: Kind::Table(&nic::KEYS),
            need: Need::Default("{}"),
            about: "every NIC",
        },
        Key {
            name: "sl2vl",
            kind: Kind::List(&Kind::Whole(0, 15)),
            need: Need::Optional,
            about: "virtual lane of each of the sixteen service levels; 15 discards; InfiniBand only",
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
            about: "multicast routes; InfiniBand only",
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
            need: Need::Optional,
            about: "the port they leave by; or ports",
        },
        Key {
            name: "ports",
            kind: Kind::List(&Kind::Whole(1, 254)),
            need: Need::Optional,
            about: "the ports that lead there, by preference; Ethernet only",
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
