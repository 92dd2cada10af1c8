//! The keys of `[fabric]` and of its lists; links, switches and NICs have files of their own.

use super::explicit::{MULTICAST, ROUTE};
use super::group::GROUP;
use super::{link, nic, switch};
use crate::frames::TECHNOLOGY;
use crate::routes::Routing;
use crate::shapes;
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::units::{BitRate, Duration};

/// The keys of `[fabric]`; a shape brings more.
pub static KEYS: KeyTable = KeyTable {
    about: "what a scenario runs on",
    keys: &[
        Key::new(
            "shape",
            Kind::Word(shapes::names),
            "listed",
            "How the graph is described; without it, by nodes and links.",
        ),
        Key::optional(
            "links",
            Kind::Tables(&LINKS),
            "Every link of listed nodes; else links that differ from the default.",
        ),
        Key::new("technology", TECHNOLOGY, "infiniband", "What frames are."),
        Key::new(
            "routing",
            Kind::Word(Routing::names),
            "d-mod-k",
            "How a path is chosen among shortest ones; all but d-mod-k on Ethernet only (docs/reference/routing.md).",
        ),
        Key::new("mtu", Kind::Octets, "2048 B", "Largest payload of one packet."),
        Key::optional(
            "frame",
            Kind::Octets,
            "A full data frame, DA to FCS, where it is not a RoCEv2 packet with one MTU of payload; \
                    `mtu` as a time and as a size is one such frame; Ethernet only.",
        ),
        Key::new("link", Kind::Table(&link::KEYS), "{}", "The default link."),
        Key::new("switch", Kind::Table(&switch::KEYS), "{}", "Every switch."),
        Key::new("nic", Kind::Table(&nic::KEYS), "{}", "Every NIC."),
        Key::optional(
            "sl2vl",
            Kind::List(&Kind::Whole(0, 15)),
            "Virtual lane of each of the sixteen service levels; 15 discards; InfiniBand only.",
        ),
        Key::optional("route", Kind::Tables(&ROUTE), "Routes that differ from the computed ones."),
        Key::optional("multicast", Kind::Tables(&MULTICAST), "Multicast routes; InfiniBand only."),
        Key::optional(
            "group",
            Kind::Tables(&GROUP),
            "Multicast groups that NICs join; under a subnet manager only.",
        ),
    ],
    variants: &[Variants { by: "shape", rows: shapes::rows }],
    open: false,
};

static LINKS: KeyTable = KeyTable::new("one link", OneLink::KEYS);

proto::params! {
    /// One of `fabric.links` as written.
    pub struct OneLink {
        /// One end, node:port.
        a: String = Text, Required;
        /// The other end.
        b: Option<String> = Text, Optional;
        /// Its own rate.
        rate: Option<BitRate> = Rate, Optional;
        /// Its own delay.
        delay: Option<Duration> = Time, Optional;
    }
}
