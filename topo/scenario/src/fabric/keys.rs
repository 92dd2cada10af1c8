//! The keys of `[fabric]` and of its lists; links, switches and NICs have files of their own.

use super::{link, nic, switch};
use crate::frames::TECHNOLOGIES;
use crate::keyfile::fields::words;
use crate::routes::Routing;
use crate::shapes;
use proto::params::{Key, KeyTable, Kind, Variants};

/// The keys of `[fabric]`; a shape brings more.
pub static KEYS: KeyTable = KeyTable {
    about: "what a scenario runs on",
    keys: &[
        Key::new(
            "shape",
            Kind::Word(shapes::names),
            "listed",
            "how the graph is described; without it, by nodes and links",
        ),
        Key::optional(
            "links",
            Kind::Tables(&LINKS),
            "every link of listed nodes; else links that differ from the default",
        ),
        Key::new(
            "technology",
            Kind::Word(|| words(&TECHNOLOGIES)),
            "infiniband",
            "what frames are",
        ),
        Key::new(
            "routing",
            Kind::Word(Routing::names),
            "d-mod-k",
            "how a path is chosen among shortest ones; all but d-mod-k on Ethernet only (docs/reference/routing.md)",
        ),
        Key::new("mtu", Kind::Octets, "2048 B", "largest payload of one packet"),
        Key::optional(
            "frame",
            Kind::Octets,
            "a full data frame, DA to FCS, where it is no RoCEv2 packet with one MTU of payload; \
                    `mtu` as a time and as a size is one such frame; Ethernet only",
        ),
        Key::new("link", Kind::Table(&link::KEYS), "{}", "the default link"),
        Key::new("switch", Kind::Table(&switch::KEYS), "{}", "every switch"),
        Key::new("nic", Kind::Table(&nic::KEYS), "{}", "every NIC"),
        Key::optional(
            "sl2vl",
            Kind::List(&Kind::Whole(0, 15)),
            "virtual lane of each of the sixteen service levels; 15 discards; InfiniBand only",
        ),
        Key::optional("route", Kind::Tables(&ROUTE), "routes that differ from the computed ones"),
        Key::optional("multicast", Kind::Tables(&MULTICAST), "multicast routes; InfiniBand only"),
    ],
    variants: &[Variants { by: "shape", rows: shapes::rows }],
    open: false,
};

static LINKS: KeyTable = KeyTable::new(
    "one link",
    &[
        Key::required("a", Kind::Text, "one end, node:port"),
        Key::optional("b", Kind::Text, "the other end"),
        Key::optional("rate", Kind::Rate, "its own rate"),
        Key::optional("delay", Kind::Time, "its own delay"),
    ],
);

static ROUTE: KeyTable = KeyTable::new(
    "what a switch does with some destinations",
    &[
        Key::required("at", Kind::Text, "the switch"),
        Key::optional("lid", Kind::Whole(1, 0xbfff), "one destination"),
        Key::optional("lids", Kind::Text, "a run of them, \"1-5\""),
        Key::optional("to", Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]), "NICs by name"),
        Key::optional("port", Kind::Whole(1, 254), "the port they leave by; or ports"),
        Key::optional(
            "ports",
            Kind::List(&Kind::Whole(1, 254)),
            "the ports that lead there, by preference; Ethernet only",
        ),
    ],
);

static MULTICAST: KeyTable = KeyTable::new(
    "where a switch sends copies for a group",
    &[
        Key::required("at", Kind::Text, "the switch"),
        Key::required("lid", Kind::Whole(0xc000, 0xfffe), "the group"),
        Key::required(
            "ports",
            Kind::List(&Kind::Whole(1, 254)),
            "the ports, the one a frame came in on left out by itself",
        ),
    ],
);
